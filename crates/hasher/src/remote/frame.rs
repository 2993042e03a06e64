//! The language of a server and its workers: small binary frames.
//!
//! ```text
//! frame   = length of the body (4 bytes) kind (1 byte) body
//! ask     = id (8) memory in KiB (4) passes (4) lanes (4) tag length (1) H0 (64)
//! answer  = id (8) length (1) tag; length 0: not computed
//! ```
//!
//! Numbers are big-endian. A body is no longer than [`MOST`], and nothing in it is trusted before all of it has come. A
//! frame that deviates from this is an error, and ends the conversation.
//!
//! A conversation begins with a greeting, which is the same in every version of this language: a worker sends
//! [`Frame::Hello`] or [`Frame::Enroll`] with the [`Versions`] that it speaks, and receives [`Frame::Refused`],
//! [`Frame::Enrolled`], or a [`Frame::Welcome`] that begins with the version in which both go on. Anything that a later
//! version adds comes after that.

use std::fmt;

use zeroize::Zeroizing;

use crate::{
    argon2::{Cost, H0, Tag},
    formats::limits,
    remote::versions::Versions,
};

/// Longest body, in bytes.
pub const MOST: usize = 64 << 10;
/// Bytes before a body.
pub const HEADER: usize = 5;
/// Most asks, or answers, in one frame.
pub const TOGETHER: usize = 512;
/// Length of an enrolment token.
pub const TOKEN: usize = 32;
/// Longest text, in bytes.
const TEXT: usize = 400;

/// One hash to compute: all that a worker is told.
#[derive(Clone)]
pub struct Ask {
    /// Identifies the answer to this ask.
    pub id: u64,
    /// Memory (in KiB), passes and lanes of Argon2id, version 19; no more than a [`Policy`](crate::Policy) may have.
    pub cost: Cost,
    /// Length of the tag, in bytes: 12 to 64.
    pub tag_bytes: u8,
    /// The pre-hash.
    pub h0: H0,
}

/// Prints no pre-hash.
impl fmt::Debug for Ask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ask").field("id", &self.id).field("cost", &self.cost).finish_non_exhaustive()
    }
}

/// The answer to an ask.
#[derive(Clone)]
pub struct Answer {
    /// The id of the ask.
    pub id: u64,
    /// The tag; `None`: it was not computed.
    pub tag: Option<Tag>,
}

/// Prints no tag.
impl fmt::Debug for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Answer").field("id", &self.id).finish_non_exhaustive()
    }
}

/// What a worker can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ready {
    /// Threads that hash.
    pub threads: u16,
    /// Most memory of one hash, in KiB.
    pub memory: u64,
    /// How many asks it takes before it has answered the first: its credits. A canary may come on top of them, so that
    /// a worker with one credit is tested, too.
    pub holds: u32,
    /// Hashes that it measured in a thousand seconds at the server's parameters.
    pub rate: u64,
}

/// What new hashes of the server look like, so that a worker can measure how many it computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    /// Memory (in KiB), passes and lanes.
    pub cost: Cost,
    /// Length of the tag, in bytes.
    pub tag_bytes: u8,
}

/// One message between server and worker.
pub enum Frame {
    /// Worker: it is enrolled, and is here.
    Hello {
        /// The versions that it speaks.
        speaks: Versions,
    },
    /// Worker: it wants to be enrolled.
    Enroll {
        /// The versions that it speaks.
        speaks: Versions,
        /// The token that an operator was given.
        token: Zeroizing<[u8; TOKEN]>,
        /// The name that it wants.
        name: String,
    },
    /// Server: the conversation goes on.
    Welcome {
        /// The version in which it goes on.
        version: u8,
        /// What the server's new hashes look like.
        terms: Terms,
    },
    /// Server: the worker is enrolled, under this name.
    Enrolled(String),
    /// Server: the worker is refused, for this reason.
    Refused(String),
    /// Worker: it is ready for asks.
    Ready(Ready),
    /// Worker: it has another number of credits from now on.
    Holds(u32),
    /// Server: asks to compute.
    Asks(Vec<Ask>),
    /// Worker: answers to asks.
    Answers(Vec<Answer>),
    /// Either side: asks for a [`Frame::Pong`].
    Ping,
    /// Either side: answers a [`Frame::Ping`].
    Pong,
}

/// Bytes that are not a frame, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadFrame(pub &'static str);

impl fmt::Display for BadFrame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl std::error::Error for BadFrame {}

impl fmt::Debug for Frame {
    /// Prints neither pre-hashes nor tags nor tokens.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Frame::Ready(ready) => ready.fmt(f),
            Frame::Asks(asks) => write!(f, "Asks({})", asks.len()),
            Frame::Answers(answers) => write!(f, "Answers({})", answers.len()),
            Frame::Refused(why) => write!(f, "Refused({why})"),
            other => write!(f, "Frame({})", other.kind()),
        }
    }
}

impl Frame {
    fn kind(&self) -> u8 {
        match self {
            Frame::Hello { .. } => 1,
            Frame::Enroll { .. } => 2,
            Frame::Welcome { .. } => 3,
            Frame::Enrolled(_) => 4,
            Frame::Refused(_) => 5,
            Frame::Ready(_) => 6,
            Frame::Holds(_) => 7,
            Frame::Asks(_) => 8,
            Frame::Answers(_) => 9,
            Frame::Ping => 10,
            Frame::Pong => 11,
        }
    }

    /// Encodes the frame. Texts are cut to what a frame holds, and of more than [`TOGETHER`] asks or answers only so
    /// many are written.
    pub fn encode(&self) -> Zeroizing<Vec<u8>> {
        // Allocated at about its final size: a buffer that grows leaves copies behind.
        let size = match self {
            Frame::Asks(asks) => 2 + asks.len() * 85,
            Frame::Answers(answers) => 2 + answers.len() * 73,
            _ => 2 + TEXT + TOKEN,
        };
        let mut out = Zeroizing::new(Vec::with_capacity(HEADER + size));
        out.extend([0; HEADER - 1]);
        out.push(self.kind());
        self.body(&mut out);
        let length = (out.len() - HEADER) as u32;
        out[..4].copy_from_slice(&length.to_be_bytes());
        out
    }

    fn body(&self, out: &mut Vec<u8>) {
        match self {
            Frame::Hello { speaks } => versions(out, *speaks),
            Frame::Enroll { speaks, token, name } => {
                versions(out, *speaks);
                out.extend_from_slice(&**token);
                text(out, name);
            }
            Frame::Welcome { version, terms } => {
                out.push(*version);
                cost(out, terms.cost);
                out.push(terms.tag_bytes);
            }
            Frame::Enrolled(said) | Frame::Refused(said) => text(out, said),
            Frame::Ready(ready) => {
                out.extend(ready.threads.to_be_bytes());
                out.extend(ready.memory.to_be_bytes());
                out.extend(ready.holds.to_be_bytes());
                out.extend(ready.rate.to_be_bytes());
            }
            Frame::Holds(holds) => out.extend(holds.to_be_bytes()),
            Frame::Asks(asks) => {
                for ask in count(out, asks) {
                    out.extend(ask.id.to_be_bytes());
                    cost(out, ask.cost);
                    out.push(ask.tag_bytes);
                    out.extend_from_slice(ask.h0.as_bytes());
                }
            }
            Frame::Answers(answers) => {
                for answer in count(out, answers) {
                    let tag = answer.tag.as_ref().map_or(&[][..], |tag| &tag[..tag.len().min(64)]);
                    out.extend(answer.id.to_be_bytes());
                    out.push(tag.len() as u8);
                    out.extend_from_slice(tag);
                }
            }
            Frame::Ping | Frame::Pong => {}
        }
    }

    /// Returns the kind and the length of the body that follows a header.
    ///
    /// # Errors
    /// When the body would be longer than any may be.
    pub fn header(header: [u8; HEADER]) -> Result<(u8, usize), BadFrame> {
        let [a, b, c, d, kind] = header;
        let length = u32::from_be_bytes([a, b, c, d]) as usize;
        if length > MOST { Err(BadFrame("a frame is too long")) } else { Ok((kind, length)) }
    }

    /// Reads a body of this kind.
    ///
    /// # Errors
    /// When the body is anything but one exact frame.
    pub fn decode(kind: u8, body: &[u8]) -> Result<Frame, BadFrame> {
        let mut rest = Rest(body);
        let frame = match kind {
            1 => Frame::Hello { speaks: rest.versions()? },
            2 => Frame::Enroll { speaks: rest.versions()?, token: Zeroizing::new(rest.array()?), name: rest.text()? },
            3 => Frame::Welcome {
                version: rest.byte()?,
                terms: Terms { cost: rest.cost()?, tag_bytes: rest.tag_bytes()? },
            },
            4 => Frame::Enrolled(rest.text()?),
            5 => Frame::Refused(rest.text()?),
            6 => Frame::Ready(Ready {
                threads: u16::from_be_bytes(rest.array()?),
                memory: rest.long()?,
                holds: rest.number()?,
                rate: rest.long()?,
            }),
            7 => Frame::Holds(rest.number()?),
            8 => Frame::Asks(rest.many(Rest::ask)?),
            9 => Frame::Answers(rest.many(Rest::answer)?),
            10 => Frame::Ping,
            11 => Frame::Pong,
            _ => return Err(BadFrame("a frame is of an unknown kind")),
        };
        if rest.0.is_empty() { Ok(frame) } else { Err(BadFrame("a frame has extra bytes at its end")) }
    }
}

fn versions(out: &mut Vec<u8>, versions: Versions) {
    out.extend([versions.lowest(), versions.highest()]);
}

fn cost(out: &mut Vec<u8>, cost: Cost) {
    for number in [cost.memory(), cost.passes(), cost.lanes()] {
        out.extend(number.to_be_bytes());
    }
}

fn text(out: &mut Vec<u8>, text: &str) {
    let end = (0..=text.len().min(TEXT)).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    out.extend((end as u16).to_be_bytes());
    out.extend_from_slice(&text.as_bytes()[..end]);
}

fn count<'a, T>(out: &mut Vec<u8>, items: &'a [T]) -> &'a [T] {
    let items = &items[..items.len().min(TOGETHER)];
    out.extend((items.len() as u16).to_be_bytes());
    items
}

/// The part that was not read yet.
struct Rest<'a>(&'a [u8]);

const SHORT: BadFrame = BadFrame("a frame ends too early");

impl<'a> Rest<'a> {
    fn take(&mut self, length: usize) -> Result<&'a [u8], BadFrame> {
        let (taken, rest) = self.0.split_at_checked(length).ok_or(SHORT)?;
        self.0 = rest;
        Ok(taken)
    }
    fn array<const N: usize>(&mut self) -> Result<[u8; N], BadFrame> {
        let (taken, rest) = self.0.split_first_chunk().ok_or(SHORT)?;
        self.0 = rest;
        Ok(*taken)
    }
    fn byte(&mut self) -> Result<u8, BadFrame> {
        self.array().map(|[byte]| byte)
    }
    fn versions(&mut self) -> Result<Versions, BadFrame> {
        Versions::between(self.byte()?, self.byte()?).ok_or(BadFrame("the lowest version is above the highest"))
    }
    fn number(&mut self) -> Result<u32, BadFrame> {
        self.array().map(u32::from_be_bytes)
    }
    fn long(&mut self) -> Result<u64, BadFrame> {
        self.array().map(u64::from_be_bytes)
    }
    fn text(&mut self) -> Result<String, BadFrame> {
        let length = usize::from(u16::from_be_bytes(self.array()?));
        if length > TEXT {
            return Err(BadFrame("a text is too long"));
        }
        let text = std::str::from_utf8(self.take(length)?).map_err(|_| BadFrame("a text is not UTF-8"))?;
        if text.chars().any(char::is_control) {
            Err(BadFrame("a text has control characters"))
        } else {
            Ok(text.to_owned())
        }
    }
    fn cost(&mut self) -> Result<Cost, BadFrame> {
        let (memory, passes, lanes) = (self.number()?, self.number()?, self.number()?);
        limits::argon2(memory, passes, lanes).map_err(|_| BadFrame("parameters of Argon2 are outside the limits"))
    }
    fn tag_bytes(&mut self) -> Result<u8, BadFrame> {
        let length = self.byte()?;
        limits::ARGON2_TAG.admit(length.into()).map(|()| length).map_err(|_| BadFrame("a tag has 12 to 64 bytes"))
    }
    fn many<T>(&mut self, one: fn(&mut Self) -> Result<T, BadFrame>) -> Result<Vec<T>, BadFrame> {
        let count = usize::from(u16::from_be_bytes(self.array()?));
        if count > TOGETHER {
            return Err(BadFrame("a frame has too many entries"));
        }
        (0..count).map(|_| one(self)).collect()
    }
    fn ask(&mut self) -> Result<Ask, BadFrame> {
        let (id, cost, tag_bytes) = (self.long()?, self.cost()?, self.tag_bytes()?);
        Ok(Ask { id, cost, tag_bytes, h0: self.h0()? })
    }
    fn h0(&mut self) -> Result<H0, BadFrame> {
        let (taken, rest) = self.0.split_first_chunk().ok_or(SHORT)?;
        self.0 = rest;
        Ok(H0::from_bytes(taken))
    }
    fn answer(&mut self) -> Result<Answer, BadFrame> {
        let (id, length) = (self.long()?, usize::from(self.byte()?));
        if length > 64 {
            return Err(BadFrame("a tag has at most 64 bytes"));
        }
        let tag = self.take(length)?;
        Ok(Answer { id, tag: (length > 0).then(|| Zeroizing::new(tag.to_vec())) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ask(id: u64) -> Ask {
        Ask { id, cost: Cost::new(64, 2, 1).unwrap(), tag_bytes: 32, h0: H0::from_bytes(&[id as u8; 64]) }
    }

    fn frames() -> Vec<Frame> {
        let ready = Ready { threads: 2, memory: 1 << 20, holds: 16, rate: 363_000 };
        let tag = |byte| Some(Zeroizing::new(vec![byte; 32]));
        vec![
            Frame::Hello { speaks: Versions::OURS },
            Frame::Hello { speaks: Versions::between(2, 5).unwrap() },
            Frame::Enroll { speaks: Versions::OURS, token: Zeroizing::new([7; TOKEN]), name: "büro-1".into() },
            Frame::Welcome { version: 1, terms: Terms { cost: Cost::new(19_456, 2, 1).unwrap(), tag_bytes: 32 } },
            Frame::Enrolled("büro-1".into()),
            Frame::Refused("no".into()),
            Frame::Ready(ready),
            Frame::Holds(0),
            Frame::Asks(vec![ask(1), ask(u64::MAX)]),
            Frame::Answers(vec![Answer { id: 1, tag: tag(9) }, Answer { id: 2, tag: None }]),
            Frame::Ping,
            Frame::Pong,
        ]
    }

    fn read(bytes: &[u8]) -> Result<Frame, BadFrame> {
        let (header, body) = bytes.split_first_chunk().unwrap();
        let (kind, length) = Frame::header(*header)?;
        assert_eq!(length, body.len());
        Frame::decode(kind, body)
    }

    #[test]
    fn what_is_written_is_read_as_it_was() {
        for frame in frames() {
            let bytes = frame.encode();
            assert_eq!(*read(&bytes).unwrap().encode(), *bytes, "{frame:?}");
        }
        let full = Frame::Asks((0..TOGETHER as u64).map(ask).collect()).encode();
        assert!(full.len() <= HEADER + MOST && read(&full).is_ok());
    }

    #[test]
    fn a_frame_with_a_byte_more_or_less_is_none() {
        for frame in frames() {
            let bytes = frame.encode();
            let (kind, body) = (bytes[4], &bytes[HEADER..]);
            for end in 0..body.len() {
                assert!(Frame::decode(kind, &body[..end]).is_err(), "{frame:?} of {end} bytes");
            }
            assert!(Frame::decode(kind, &[body, &[0]].concat()).is_err(), "{frame:?}");
        }
        assert!(Frame::header([0, 1, 0, 1, 9]).is_err());
        assert!(Frame::header([255, 255, 255, 255, 9]).is_err());
    }

    /// A side that speaks a later version has to be understood that far, and to understand the answer.
    #[test]
    fn a_greeting_looks_the_same_in_every_version() {
        // Red where Hello, Enroll, Enrolled, Refused or the beginning of Welcome is changed.
        let hello = Frame::Hello { speaks: Versions::between(2, 5).unwrap() };
        assert_eq!(*hello.encode(), [0, 0, 0, 2, 1, 2, 5]);
        let token = Zeroizing::new([7; TOKEN]);
        let enroll = Frame::Enroll { speaks: Versions::between(2, 5).unwrap(), token, name: "ab".into() };
        assert_eq!(*enroll.encode(), [&[0, 0, 0, 38, 2, 2, 5][..], &[7; TOKEN], &[0, 2, b'a', b'b']].concat());
        let said = |kind| [0, 0, 0, 4, kind, 0, 2, b'n', b'o'];
        assert_eq!(*Frame::Enrolled("no".into()).encode(), said(4));
        assert_eq!(*Frame::Refused("no".into()).encode(), said(5));
        let terms = Terms { cost: Cost::new(19_456, 2, 1).unwrap(), tag_bytes: 32 };
        assert_eq!(Frame::Welcome { version: 9, terms }.encode()[..6], [0, 0, 0, 14, 3, 9]);
        // Versions that cannot exist.
        for versions in [[0, 0], [0, 1], [2, 1]] {
            assert!(Frame::decode(1, &versions).is_err(), "{versions:?}");
            assert!(Frame::decode(2, &[&versions[..], &[7; TOKEN], &[0, 0]].concat()).is_err(), "{versions:?}");
        }
    }

    #[test]
    fn a_tag_is_as_long_as_one_that_is_stored_may_be() {
        for (length, read) in [(11, false), (12, true), (64, true), (65, false)] {
            let bytes = Frame::Asks(vec![Ask { tag_bytes: length, ..ask(1) }]).encode();
            assert_eq!(Frame::decode(bytes[4], &bytes[HEADER..]).is_ok(), read, "{length}");
        }
    }

    #[test]
    fn a_frame_prints_no_secret() {
        let printed: String = frames().iter().map(|frame| format!("{frame:?}")).collect();
        assert!(!printed.contains("7, 7") && !printed.contains("9, 9"), "{printed}");
    }

    proptest! {
        #[test]
        fn any_bytes_are_one_exact_frame_or_none(kind in 0u8..14, body in proptest::collection::vec(any::<u8>(), 0..300)) {
            if let Ok(frame) = Frame::decode(kind, &body) {
                prop_assert_eq!(&frame.encode()[HEADER..], &body[..]);
            }
        }
    }
}
