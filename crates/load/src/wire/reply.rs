//! Parses an HTTP/1.1 response without doing IO: bytes go in, and it says when the response is complete.

use super::Fault;
use std::cmp::Ordering;
use std::ops::Range;

/// The longest response that is read, in bytes. A sign-in page is under 50 KB; this only stops a runaway response.
const MAX_REPLY: usize = 8 * 1024 * 1024;
/// The most header fields of a response.
const MAX_HEADERS: usize = 128;
/// What is said of something that is no HTTP.
pub const NO_HTTP: &str = "the response is not HTTP";

/// A response, borrowed from the connection's buffer.
#[derive(Clone, Copy)]
pub struct Reply<'a> {
    inbox: &'a Inbox,
}

impl<'a> Reply<'a> {
    /// Returns the status code.
    pub fn status(self) -> u16 {
        self.inbox.status
    }

    /// Returns the body; a chunked one is decoded.
    pub fn body(self) -> &'a [u8] {
        &self.inbox.bytes[self.inbox.body.clone()]
    }

    /// Returns the body as text, with anything that is not UTF-8 replaced.
    pub fn text(self) -> std::borrow::Cow<'a, str> {
        String::from_utf8_lossy(self.body())
    }

    /// Returns the first header of this name that is readable text; the name is case-insensitive.
    pub fn header(self, name: &'a str) -> Option<&'a str> {
        self.headers(name).next()
    }

    /// Returns every header of this name that is readable text, in order.
    pub fn headers(self, name: &'a str) -> impl Iterator<Item = &'a str> {
        let bytes = &self.inbox.bytes;
        let named = move |field: &&Field| bytes[field.name.clone()].eq_ignore_ascii_case(name.as_bytes());
        self.inbox.fields.iter().filter(named).filter_map(|f| std::str::from_utf8(&bytes[f.value.clone()]).ok())
    }
}

#[derive(Clone)]
struct Field {
    name: Range<usize>,
    value: Range<usize>,
}

/// How far the response has been read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Head,
    /// The body ends at this offset.
    Counted(usize),
    /// The next chunk begins at this offset; decoded bytes are moved down to the end of `body`.
    Chunks(usize),
    /// The body ends with the connection (RFC 9112 §6.3, case 8).
    UntilClose,
    Whole,
}

/// The receiving side of a connection: a buffer that is reused for each response.
pub struct Inbox {
    bytes: Vec<u8>,
    fields: Vec<Field>,
    body: Range<usize>,
    status: u16,
    stage: Stage,
    keep_alive: bool,
}

impl Default for Inbox {
    fn default() -> Self {
        let bytes = Vec::with_capacity(16 * 1024);
        Inbox { bytes, fields: Vec::new(), body: 0..0, status: 0, stage: Stage::Head, keep_alive: true }
    }
}

impl Inbox {
    /// Prepares for the next response.
    pub fn reset(&mut self) {
        self.bytes.clear();
        self.begin();
    }

    /// Returns true if not one byte has come since the last reset.
    pub fn is_untouched(&self) -> bool {
        self.stage == Stage::Head && self.bytes.is_empty()
    }

    /// Returns the buffer that received bytes are appended to, with room for at least 4 KiB.
    pub fn space(&mut self) -> &mut Vec<u8> {
        self.bytes.reserve(4 * 1024);
        &mut self.bytes
    }

    /// Parses further after bytes were appended; returns true once the response is complete.
    ///
    /// # Errors
    /// [`Fault::Malformed`] if it is not an HTTP/1.1 response, or is too long.
    pub fn advance(&mut self) -> Result<bool, Fault> {
        if self.bytes.len() > MAX_REPLY {
            return Err(Fault::Malformed("the response is too long"));
        }
        loop {
            let moved_on = match self.stage {
                Stage::Head => self.read_head()?,
                Stage::Chunks(at) => self.read_chunk(at)?,
                Stage::UntilClose => false,
                Stage::Counted(end) => match self.bytes.len().cmp(&end) {
                    Ordering::Less => false,
                    Ordering::Greater => return Err(Fault::Malformed("more than one response")),
                    Ordering::Equal => {
                        self.stage = Stage::Whole;
                        true
                    }
                },
                Stage::Whole => return Ok(true),
            };
            if !moved_on {
                return Ok(false);
            }
        }
    }

    /// Handles the peer's close: it ends a body without a length, and is a fault otherwise.
    ///
    /// # Errors
    /// [`Fault::Closed`] if the response is not complete.
    pub fn close(&mut self) -> Result<(), Fault> {
        if self.stage != Stage::UntilClose {
            return Err(Fault::Closed);
        }
        self.body.end = self.bytes.len();
        self.stage = Stage::Whole;
        Ok(())
    }

    /// Returns true if the connection may carry another request (RFC 9112 §9.3).
    pub fn keeps_alive(&self) -> bool {
        self.stage == Stage::Whole && self.keep_alive
    }

    /// Returns the response; only meaningful once it is complete.
    pub fn reply(&self) -> Reply<'_> {
        Reply { inbox: self }
    }

    fn begin(&mut self) {
        self.fields.clear();
        self.body = 0..0;
        self.status = 0;
        self.stage = Stage::Head;
        self.keep_alive = true;
    }

    /// Returns true if the head was complete. An interim response (1xx) is dropped, and the next head is read.
    fn read_head(&mut self) -> Result<bool, Fault> {
        let mut room = [httparse::EMPTY_HEADER; MAX_HEADERS];
        let mut head = httparse::Response::new(&mut room);
        let end = match head.parse(&self.bytes) {
            Ok(httparse::Status::Complete(end)) => end,
            Ok(httparse::Status::Partial) => return Ok(false),
            Err(httparse::Error::TooManyHeaders) => {
                return Err(Fault::Malformed("the response has more than 128 header fields"));
            }
            Err(_) if !self.bytes.starts_with(b"HTTP/") => return Err(Fault::Malformed(NO_HTTP)),
            Err(_) => return Err(Fault::Malformed("the response has no readable head")),
        };
        self.status = head.code.unwrap_or_default();
        self.keep_alive = head.version == Some(1);
        let start = self.bytes.as_ptr() as usize;
        let span = |part: &[u8]| {
            let from = part.as_ptr() as usize - start;
            from..from + part.len()
        };
        let fields = head.headers.iter().map(|h| Field { name: span(h.name.as_bytes()), value: span(h.value) });
        self.fields.extend(fields);
        if (100..200).contains(&self.status) {
            self.bytes.drain(..end);
            self.begin();
            return Ok(!self.bytes.is_empty());
        }
        self.stage = self.framing(end)?;
        Ok(true)
    }

    /// Determines how the body ends (RFC 9112 §6.3).
    fn framing(&mut self, head: usize) -> Result<Stage, Fault> {
        let reply = self.reply();
        let asks_close = |value: &str| value.split(',').any(|option| option.trim().eq_ignore_ascii_case("close"));
        let close = reply.headers("connection").any(asks_close);
        let chunked = reply.header("transfer-encoding").map(|coding| coding.trim().eq_ignore_ascii_case("chunked"));
        let length = reply.header("content-length").map(|value| value.trim().parse::<usize>());
        let coded = reply.headers("content-encoding").any(|coding| !coding.trim().eq_ignore_ascii_case("identity"));
        self.keep_alive &= !close;
        self.body = head..head;
        match (chunked, length) {
            _ if matches!(self.status, 204 | 304) => Ok(Stage::Counted(head)),
            // Of a redirect nobody reads the body.
            _ if coded && !matches!(self.status, 300..=399) => {
                Err(Fault::Malformed("the response is compressed, although that was not accepted"))
            }
            (Some(true), length) => {
                // Chunks outweigh a length, and such a connection is not used again (RFC 9112 §6.3, case 3).
                self.keep_alive &= length.is_none();
                Ok(Stage::Chunks(head))
            }
            (Some(_), _) => Err(Fault::Malformed("the response has an unknown transfer coding")),
            (None, Some(Ok(length))) if length <= MAX_REPLY => {
                self.body.end = head + length;
                Ok(Stage::Counted(head + length))
            }
            (None, Some(_)) => Err(Fault::Malformed("the response has an unusable content length")),
            (None, None) => {
                self.keep_alive = false;
                Ok(Stage::UntilClose)
            }
        }
    }

    /// Returns true if a chunk, or the trailer after the last one, was complete (RFC 9112 §7.1).
    fn read_chunk(&mut self, at: usize) -> Result<bool, Fault> {
        const WRONG: Fault = Fault::Malformed("the response has an unreadable chunk");
        let (line, size) = match httparse::parse_chunk_size(&self.bytes[at..]) {
            Ok(httparse::Status::Complete(found)) => found,
            Ok(httparse::Status::Partial) => return Ok(false),
            Err(_) => return Err(WRONG),
        };
        let size = usize::try_from(size).ok().filter(|size| *size <= MAX_REPLY).ok_or(WRONG)?;
        let data = at + line;
        if size == 0 {
            return self.read_trailer(data);
        }
        let end = data + size;
        if self.bytes.len() < end + 2 {
            return Ok(false);
        }
        if &self.bytes[end..end + 2] != b"\r\n" {
            return Err(WRONG);
        }
        self.bytes.copy_within(data..end, self.body.end);
        self.body.end += size;
        self.stage = Stage::Chunks(end + 2);
        Ok(true)
    }

    /// Skips trailer fields: lines until an empty one.
    fn read_trailer(&mut self, mut at: usize) -> Result<bool, Fault> {
        loop {
            let Some(length) = self.bytes[at..].windows(2).position(|two| two == b"\r\n") else { return Ok(false) };
            at += length + 2;
            if length == 0 {
                self.stage = Stage::Counted(at);
                return Ok(true);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Feeds `bytes` in pieces of `step`; returns the body once it is complete.
    fn read(bytes: &[u8], step: usize) -> Result<Option<(u16, String, bool)>, Fault> {
        let mut inbox = Inbox::default();
        let mut whole = false;
        for piece in bytes.chunks(step) {
            inbox.space().extend_from_slice(piece);
            whole = inbox.advance()?;
        }
        if !whole && inbox.close().is_err() {
            return Ok(None);
        }
        let reply = inbox.reply();
        Ok(Some((reply.status(), reply.text().into_owned(), inbox.keeps_alive())))
    }

    /// Red without `coded`: a page that was compressed unasked was said to have no form.
    #[test]
    fn what_is_compressed_is_not_taken_for_text() {
        let of = |status: &str, coding: &str| {
            let head = format!("HTTP/1.1 {status}\r\nContent-Encoding: {coding}\r\nContent-Length: 1\r\n\r\nx");
            read(head.as_bytes(), 999).map(|read| read.is_some())
        };
        assert_eq!([of("200 OK", "identity"), of("302 Found", "gzip")], [Ok(true), Ok(true)]);
        for status in ["200 OK", "400 Bad Request"] {
            assert!(of(status, "gzip").unwrap_err().to_string().contains("compressed"));
        }
    }

    #[test]
    fn every_framing_reads_alike_in_pieces_of_any_size() {
        let chunked =
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;x=y\r\nhello\r\n6\r\n world\r\n0\r\nT: x\r\n\r\n";
        let counted = "HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\nhello world";
        let interim =
            "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 11\r\n\r\nhello world";
        for text in [chunked, counted, interim] {
            for step in 1..=text.len() {
                let expected = Some((200, "hello world".to_owned(), true));
                assert_eq!(read(text.as_bytes(), step).unwrap(), expected, "{text} in {step}");
            }
        }
    }

    /// Red where chunks with a length are an unknown coding, or the connection is kept.
    #[test]
    fn chunks_outweigh_a_length_and_end_the_connection() {
        let text =
            b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n";
        assert_eq!(read(text, 7).unwrap(), Some((200, "hello".to_owned(), false)));
    }

    #[test]
    fn many_header_fields_are_read_and_too_many_are_told() {
        let with = |count: usize| format!("HTTP/1.1 204 No\r\n{}\r\n", "X: y\r\n".repeat(count));
        assert!(read(with(MAX_HEADERS).as_bytes(), 999).unwrap().is_some());
        let fault = read(with(MAX_HEADERS + 1).as_bytes(), 9999).unwrap_err();
        assert_eq!(fault, Fault::Malformed("the response has more than 128 header fields"));
        assert_eq!(read(b"\x15\x03\x01\0\x02\x02\x16", 99), Err(Fault::Malformed(NO_HTTP)), "an alert of TLS");
    }

    #[test]
    fn a_body_without_length_ends_with_the_connection() {
        let text = b"HTTP/1.1 200 OK\r\n\r\nhello";
        assert_eq!(read(text, 3).unwrap(), Some((200, "hello".to_owned(), false)));
    }

    #[test]
    fn a_response_cut_short_is_not_whole() {
        assert_eq!(read(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello", 4).unwrap(), None);
        assert_eq!(read(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel", 4).unwrap(), None);
        assert_eq!(read(b"HTTP/1.1 20", 4).unwrap(), None);
    }

    #[test]
    fn statuses_without_body_have_none() {
        let text = b"HTTP/1.1 304 Not Modified\r\nContent-Length: 100\r\nConnection: keep-alive, Close\r\n\r\n";
        assert_eq!(read(text, 7).unwrap(), Some((304, String::new(), false)));
    }

    #[test]
    fn what_is_no_http_is_malformed() {
        for text in [
            "SSH-2.0-x\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nabcd",
            "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nabc",
        ] {
            assert!(matches!(read(text.as_bytes(), text.len()), Err(Fault::Malformed(_))), "{text}");
        }
    }

    #[test]
    fn headers_are_found_whatever_their_case() {
        let mut inbox = Inbox::default();
        inbox.space().extend_from_slice(
            b"HTTP/1.1 302 Found\r\nset-cookie: a=b\r\nLocation: /x\r\nSet-Cookie: c=d\r\nContent-Length: 0\r\n\r\n",
        );
        assert!(inbox.advance().unwrap());
        let reply = inbox.reply();
        assert_eq!(reply.header("location"), Some("/x"));
        assert_eq!(reply.headers("SET-COOKIE").collect::<Vec<_>>(), ["a=b", "c=d"]);
        assert_eq!(reply.header("retry-after"), None);
    }
}
