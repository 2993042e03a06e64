//! Messages of the protocol, version 3.0: the ones that we send, and the parts of the answers that we read.
//!
//! PostgreSQL documentation, chapter "Frontend/Backend Protocol".

use crate::engine::{Row, Value};

/// Types by their numbers in `pg_type`, which never change.
mod oid {
    pub(super) const BOOL: u32 = 16;
    pub(super) const BYTEA: u32 = 17;
    pub(super) const NAME: u32 = 19;
    pub(super) const INT8: u32 = 20;
    pub(super) const INT2: u32 = 21;
    pub(super) const INT4: u32 = 23;
    pub(super) const TEXT: u32 = 25;
    pub(super) const VARCHAR: u32 = 1043;
}

/// The type as which a value is sent; 0 leaves it to the server.
pub(super) fn kind(value: &Value) -> u32 {
    match value {
        Value::Null => 0,
        Value::Int(_) => oid::INT8,
        Value::Text(_) => oid::TEXT,
        Value::Blob(_) => oid::BYTEA,
    }
}

/// The server sent something that is no message of the protocol, or a message that is too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Garbled;

/// A value or a message is longer than the protocol can express.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TooLong;

/// Writes one message: its letter, its length, its body.
fn message(
    out: &mut Vec<u8>,
    letter: u8,
    body: impl FnOnce(&mut Vec<u8>) -> Result<(), TooLong>,
) -> Result<(), TooLong> {
    out.push(letter);
    let begin = out.len();
    out.extend([0; 4]);
    body(out)?;
    let length = i32::try_from(out.len() - begin).map_err(|_| TooLong)?;
    out[begin..begin + 4].copy_from_slice(&length.to_be_bytes());
    Ok(())
}

fn string(out: &mut Vec<u8>, text: &str) {
    out.extend_from_slice(text.as_bytes());
    out.push(0);
}

fn count(out: &mut Vec<u8>, number: usize) -> Result<(), TooLong> {
    out.extend(u16::try_from(number).map_err(|_| TooLong)?.to_be_bytes());
    Ok(())
}

/// Prepares a statement under a name; an unnamed statement is replaced by the next unnamed one.
pub(super) fn parse(out: &mut Vec<u8>, name: &str, sql: &str, kinds: &[u32]) -> Result<(), TooLong> {
    message(out, b'P', |out| {
        string(out, name);
        string(out, sql);
        count(out, kinds.len())?;
        kinds.iter().for_each(|kind| out.extend(kind.to_be_bytes()));
        Ok(())
    })
}

/// Asks for the columns of a statement.
pub(super) fn describe(out: &mut Vec<u8>, name: &str) -> Result<(), TooLong> {
    message(out, b'D', |out| {
        out.push(b'S');
        string(out, name);
        Ok(())
    })
}

/// Runs a statement with these arguments to the end; all arguments and all answers are binary.
pub(super) fn run(out: &mut Vec<u8>, name: &str, args: &[Value], more: Option<i64>) -> Result<(), TooLong> {
    message(out, b'B', |out| {
        string(out, "");
        string(out, name);
        out.extend([0, 1, 0, 1]);
        count(out, args.len() + usize::from(more.is_some()))?;
        for value in args {
            argument(out, value)?;
        }
        more.iter().for_each(|number| integer(out, *number));
        out.extend([0, 1, 0, 1]);
        Ok(())
    })?;
    out.extend_from_slice(b"E\0\0\0\x09\0\0\0\0\0");
    Ok(())
}

fn argument(out: &mut Vec<u8>, value: &Value) -> Result<(), TooLong> {
    let bytes = match value {
        Value::Null => {
            out.extend((-1_i32).to_be_bytes());
            return Ok(());
        }
        Value::Int(number) => {
            integer(out, *number);
            return Ok(());
        }
        Value::Text(text) => text.as_bytes(),
        Value::Blob(bytes) => bytes,
    };
    out.extend(i32::try_from(bytes.len()).map_err(|_| TooLong)?.to_be_bytes());
    out.extend_from_slice(bytes);
    Ok(())
}

fn integer(out: &mut Vec<u8>, number: i64) {
    out.extend(8_i32.to_be_bytes());
    out.extend(number.to_be_bytes());
}

/// Ends a flight: everything sent since the last one commits or fails together, and is answered.
pub(super) const SYNC: &[u8] = b"S\0\0\0\x04";

/// Ends the connection.
pub(super) const TERMINATE: &[u8] = b"X\0\0\0\x04";

/// A message from the server.
#[derive(Debug, PartialEq)]
pub(super) enum Message<'a> {
    /// A statement was prepared.
    Prepared,
    /// The types of a statement's columns.
    Columns(Vec<u32>),
    /// A row, to be read with [`row`].
    Row(&'a [u8]),
    /// A statement was completed, with this many rows.
    Complete(u64),
    /// A statement failed: nothing of the flight is committed, and its rest is skipped.
    Failed(Failure),
    /// A notice beside the answers.
    Notice(Failure),
    /// A flight ended; tells whether a transaction is still open.
    Ready {
        /// `false`: everything sent before the end was committed, unless something failed.
        open: bool,
    },
    /// Nothing that we need.
    Other,
}

/// A failure that the server reports, or a notice.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Failure {
    /// `ERROR`, `FATAL`, `PANIC`; `WARNING`, `NOTICE` and below.
    pub(super) severity: String,
    /// The SQLSTATE.
    pub(super) code: String,
    /// A sentence in the server's language.
    pub(super) text: String,
    /// Whether it lacks the severity that is the same in every language: a pooler sent it, not the server.
    pub(super) of_pooler: bool,
}

impl Failure {
    fn parse(body: &[u8]) -> Result<Self, Garbled> {
        let (mut failure, mut localized) = (Failure::default(), String::new());
        for field in body.split(|byte| *byte == 0) {
            let Some((letter, value)) = field.split_first() else { continue };
            let value = || String::from_utf8_lossy(value).into_owned();
            match letter {
                b'S' => localized = value(),
                b'V' => failure.severity = value(),
                b'C' => failure.code = value(),
                b'M' => failure.text = value(),
                _ => {}
            }
        }
        if failure.severity.is_empty() {
            // PgBouncer sends it in English only.
            (failure.severity, failure.of_pooler) = (localized, true);
        }
        if failure.severity.is_empty() { Err(Garbled) } else { Ok(failure) }
    }

    /// Whether it ends the connection.
    pub(super) fn is_last(&self) -> bool {
        self.severity != "ERROR"
    }

    /// Whether it ends the connection without telling what the server did: the sender may have lost the server in the
    /// middle of an answer, or after everything was committed.
    pub(super) fn is_hearsay(&self) -> bool {
        self.is_last() && (self.of_pooler || self.code.starts_with("08") || self.code.starts_with("58"))
    }
}

/// The maximum length of a message; anything longer is not taken for one.
const LONGEST: usize = 1 << 30;

/// Returns the first message in these bytes and its length; `None` if it is not complete yet.
pub(super) fn next(bytes: &[u8]) -> Result<Option<(Message<'_>, usize)>, Garbled> {
    let Some((&[letter, a, b, c, d], rest)) = bytes.split_first_chunk() else { return Ok(None) };
    let length = u32::from_be_bytes([a, b, c, d]) as usize;
    if !(4..LONGEST).contains(&length) {
        return Err(Garbled);
    }
    let Some(body) = rest.get(..length - 4) else { return Ok(None) };
    let message = match letter {
        b'1' => Message::Prepared,
        b'T' => Message::Columns(columns(body).ok_or(Garbled)?),
        b'D' => Message::Row(body),
        b'C' => Message::Complete(rows(body)),
        b'E' => Message::Failed(Failure::parse(body)?),
        b'N' => Message::Notice(Failure::parse(body)?),
        b'Z' => Message::Ready { open: body != b"I" },
        // Bound, closed, no columns, parameter types, settings, notifications, empty query.
        b'2' | b'3' | b'n' | b't' | b'S' | b'A' | b'I' => Message::Other,
        _ => return Err(Garbled),
    };
    Ok(Some((message, length + 1)))
}

/// The number at the end of a tag: `UPDATE 3`, `INSERT 0 1`, `SELECT 5`.
fn rows(body: &[u8]) -> u64 {
    let tag = std::str::from_utf8(body).unwrap_or_default().trim_end_matches('\0');
    tag.rsplit(' ').next().and_then(|number| number.parse().ok()).unwrap_or(0)
}

fn columns(body: &[u8]) -> Option<Vec<u32>> {
    let (count, mut rest) = body.split_first_chunk().map(|(count, rest)| (u16::from_be_bytes(*count), rest))?;
    let mut types = Vec::with_capacity(count.into());
    for _ in 0..count {
        let end = rest.iter().position(|byte| *byte == 0)?;
        // After the name: table (4), column (2), type (4), its size (2), its modifier (4), format (2).
        let (fixed, after) = rest[end + 1..].split_first_chunk::<18>()?;
        types.push(u32::from_be_bytes([fixed[6], fixed[7], fixed[8], fixed[9]]));
        rest = after;
    }
    Some(types)
}

/// Reads a row whose columns have these types.
pub(super) fn row(body: &[u8], columns: &[u32]) -> Result<Row, Garbled> {
    let (count, mut rest) = body.split_first_chunk().ok_or(Garbled)?;
    if usize::from(u16::from_be_bytes(*count)) != columns.len() {
        return Err(Garbled);
    }
    let mut row = Row::with_capacity(columns.len());
    for kind in columns {
        let (length, after) = rest.split_first_chunk().ok_or(Garbled)?;
        let Ok(length) = usize::try_from(i32::from_be_bytes(*length)) else {
            row.push(Value::Null);
            rest = after;
            continue;
        };
        let (bytes, after) = after.split_at_checked(length).ok_or(Garbled)?;
        row.push(value(*kind, bytes)?);
        rest = after;
    }
    Ok(row)
}

fn value(kind: u32, bytes: &[u8]) -> Result<Value, Garbled> {
    let fixed = |garbled| move |_| garbled;
    Ok(match kind {
        oid::INT8 => Value::Int(i64::from_be_bytes(bytes.try_into().map_err(fixed(Garbled))?)),
        oid::INT4 => Value::Int(i32::from_be_bytes(bytes.try_into().map_err(fixed(Garbled))?).into()),
        oid::INT2 => Value::Int(i16::from_be_bytes(bytes.try_into().map_err(fixed(Garbled))?).into()),
        oid::BOOL => Value::Int((bytes == [1]).into()),
        oid::TEXT | oid::VARCHAR | oid::NAME => {
            Value::Text(std::str::from_utf8(bytes).map_err(|_| Garbled)?.to_owned())
        }
        oid::BYTEA => Value::Blob(bytes.to_vec()),
        _ => return Err(Garbled),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(letter: u8, body: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        message(&mut out, letter, |out| {
            out.extend_from_slice(body);
            Ok(())
        })
        .unwrap();
        out
    }

    #[test]
    fn a_message_is_read_once_it_is_all_there() {
        let bytes = said(b'C', b"INSERT 0 7\0");
        for end in 0..bytes.len() {
            assert_eq!(next(&bytes[..end]), Ok(None), "{end}");
        }
        let mut two = bytes.clone();
        two.extend(said(b'Z', b"I"));
        assert_eq!(next(&two), Ok(Some((Message::Complete(7), bytes.len()))));
        assert_eq!(next(&two[bytes.len()..]), Ok(Some((Message::Ready { open: false }, 6))));
    }

    #[test]
    fn what_is_no_message_is_garbled() {
        for bytes in
            [b"?\0\0\0\x04".as_slice(), b"Z\0\0\0\x03", b"Z\xff\xff\xff\xff", b"T\0\0\0\x06\0\x01", b"E\0\0\0\x04"]
        {
            assert_eq!(next(bytes), Err(Garbled), "{bytes:?}");
        }
        let texts = [oid::TEXT];
        for body in [b"\0\x02\0\0\0\0".as_slice(), b"\0\x01\0\0\0\x09x", b"\0\x01\0\0\0\x01\xff", b""] {
            assert_eq!(row(body, &texts), Err(Garbled), "{body:?}");
        }
        assert_eq!(row(b"\0\x01\0\0\0\x01x", &[oid::INT8]), Err(Garbled));
    }

    #[test]
    fn a_row_is_read_by_the_types_of_its_columns() {
        let columns = [oid::INT8, oid::INT4, oid::TEXT, oid::BYTEA, oid::TEXT];
        let body =
            b"\0\x05\0\0\0\x08\xff\xff\xff\xff\xff\xff\xff\xfe\0\0\0\x04\0\0\0\x05\0\0\0\x02hi\0\0\0\0\xff\xff\xff\xff";
        let wanted =
            vec![Value::Int(-2), Value::Int(5), Value::Text("hi".to_owned()), Value::Blob(vec![]), Value::Null];
        assert_eq!(row(body, &columns), Ok(wanted));
    }

    #[test]
    fn a_failure_is_read_in_the_servers_own_words() {
        let body = b"SFEHLER\0VERROR\0C23505\0Mdoppelt\0Dpersonal\0\0";
        let failure =
            Failure { severity: "ERROR".into(), code: "23505".into(), text: "doppelt".into(), of_pooler: false };
        assert_eq!(next(&said(b'E', body)).unwrap().unwrap().0, Message::Failed(failure));
    }

    #[test]
    fn what_a_pooler_says_is_read_and_known_as_its_own() {
        // Red without `S`: PgBouncer sends no `V`.
        let read = |body: &[u8]| match next(&said(b'E', body)).unwrap().unwrap().0 {
            Message::Failed(failure) => failure,
            other => panic!("{other:?}"),
        };
        let failure = read(b"SFATAL\0C08P01\0Mserver conn crashed?\0\0");
        assert_eq!((failure.severity.as_str(), failure.code.as_str()), ("FATAL", "08P01"));
        assert!(failure.of_pooler && failure.is_last() && failure.is_hearsay());
        for (body, hearsay) in [
            (b"SFATAL\0C57P01\0Mgone\0\0".as_slice(), true),
            (b"SERROR\0C08P01\0Mno\0\0", false),
            (b"SFATAL\0VFATAL\0C57P01\0Mshut down\0\0", false),
            (b"SFATAL\0VFATAL\0C58P01\0Mno file\0\0", true),
        ] {
            assert_eq!(read(body).is_hearsay(), hearsay, "{body:?}");
        }
    }
}
