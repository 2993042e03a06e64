//! Which bytes of an HTTP/2 connection belong to requests.

use super::serve::HEADER_BYTES;

/// The connection preface of HTTP/2 (RFC 9113, 3.4).
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// Types of frames (RFC 9113, 6.1, 6.2, 6.10), and the flag of a sender's last frame on a stream.
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const CONTINUATION: u8 = 9;
const END_STREAM: u8 = 1;

/// Follows the frames of one connection by their headers alone. Errors in them are left to the library.
pub struct Frames {
    next: Next,
    /// The newest request, by its stream.
    newest: u32,
    /// The most that is still to come of its header fields.
    head: usize,
}

/// What the next byte belongs to.
#[derive(Clone, Copy)]
enum Next {
    /// The preface, of which so many bytes have come.
    Preface { came: usize },
    /// The header of a frame, of which so many bytes have come (RFC 9113, 4.1).
    Head { came: usize, head: [u8; 9] },
    /// The payload of a frame of that type, of which so many bytes are still to come.
    Payload { kind: u8, left: usize },
    /// A connection that does not begin as HTTP/2 does.
    Unframed,
}

/// The bytes that came, by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Frame headers, and payloads that are no part of a request; without frames, everything. Fields on the stream of
    /// an earlier request (trailers, or what the library drops) are no part of a request.
    pub other: usize,
    /// Bytes of requests' header fields.
    pub heads: usize,
    /// Bytes of bodies.
    pub data: usize,
    /// Requests that began and have a body.
    pub bodies: usize,
}

impl Frames {
    /// Follows a connection on which nothing has come yet.
    pub fn new() -> Self {
        Frames { next: Next::Preface { came: 0 }, newest: 0, head: 0 }
    }

    /// Returns whether the connection has frames.
    pub fn are_there(&self) -> bool {
        matches!(self.next, Next::Head { .. } | Next::Payload { .. })
    }

    /// Counts bytes by kind.
    pub fn tally(&mut self, mut bytes: &[u8]) -> Tally {
        let mut tally = Tally::default();
        while let Some(&first) = bytes.first() {
            let taken = match &mut self.next {
                Next::Preface { came } => {
                    let expected = PREFACE.get(*came) == Some(&first);
                    *came += 1;
                    self.next = match *came {
                        _ if !expected => Next::Unframed,
                        came if came == PREFACE.len() => HEAD,
                        came => Next::Preface { came },
                    };
                    tally.other += 1;
                    1
                }
                Next::Head { came, head } => {
                    head[*came] = first;
                    *came += 1;
                    if *came == head.len() {
                        let head = *head;
                        self.begin(head, &mut tally);
                    }
                    tally.other += 1;
                    1
                }
                Next::Payload { kind, left } => {
                    let taken = bytes.len().min(*left);
                    match *kind {
                        DATA => tally.data += taken,
                        HEADERS | CONTINUATION => {
                            let asks = taken.min(self.head);
                            self.head -= asks;
                            tally.heads += asks;
                            tally.other += taken - asks;
                        }
                        _ => tally.other += taken,
                    }
                    *left -= taken;
                    if *left == 0 {
                        self.next = HEAD;
                    }
                    taken
                }
                Next::Unframed => {
                    tally.other += bytes.len();
                    bytes.len()
                }
            };
            bytes = &bytes[taken..];
        }
        tally
    }

    /// Examines a frame's header.
    fn begin(&mut self, [high, middle, low, kind, flags, stream @ ..]: [u8; 9], tally: &mut Tally) {
        if kind == HEADERS {
            let stream = u32::from_be_bytes(stream) & (u32::MAX >> 1);
            // A client numbers its streams upwards (RFC 9113, 5.1.1).
            let is_new = stream > self.newest;
            self.newest = self.newest.max(stream);
            self.head = if is_new { HEADER_BYTES } else { 0 };
            tally.bodies += usize::from(is_new && flags & END_STREAM == 0);
        }
        self.next = match u32::from_be_bytes([0, high, middle, low]) as usize {
            0 => HEAD,
            left => Next::Payload { kind, left },
        };
    }
}

/// The beginning of a frame.
const HEAD: Next = Next::Head { came: 0, head: [0; 9] };

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(kind: u8, flags: u8, stream: u8, payload: usize) -> Vec<u8> {
        let mut bytes = vec![0, (payload >> 8) as u8, payload as u8, kind, flags, 0, 0, 0, stream];
        bytes.extend(vec![b'x'; payload]);
        bytes
    }

    #[test]
    fn requests_are_told_from_all_else_wherever_what_comes_is_cut() {
        let frames = [
            frame(4, 0, 0, 0),
            frame(HEADERS, END_STREAM, 1, 40),
            frame(HEADERS, 0, 3, 300),
            frame(CONTINUATION, 4, 3, 70),
            frame(DATA, 0, 3, 500),
            frame(HEADERS, 0, 3, 25),
            frame(CONTINUATION, 4, 3, 30),
            frame(HEADERS, END_STREAM, 1, 11),
            frame(6, 0, 0, 8),
            frame(99, 0, 0, 20),
        ];
        let bytes = [PREFACE, &frames.concat()].concat();
        let other = PREFACE.len() + 10 * 9 + 25 + 30 + 11 + 8 + 20;
        let all = Tally { other, heads: 410, data: 500, bodies: 1 };
        for size in 1..bytes.len() {
            let (mut frames, mut sum) = (Frames::new(), Tally::default());
            for part in bytes.chunks(size) {
                let Tally { other, heads, data, bodies } = frames.tally(part);
                sum = Tally {
                    other: sum.other + other,
                    heads: sum.heads + heads,
                    data: sum.data + data,
                    bodies: sum.bodies + bodies,
                };
            }
            assert_eq!((sum, frames.are_there()), (all, true), "{size}");
        }
    }

    #[test]
    fn no_head_is_longer_than_one_may_be() {
        let mut frames = Frames::new();
        let parts: Vec<_> = std::iter::once(frame(HEADERS, 0, 1, 16_000))
            .chain(std::iter::repeat_n(frame(CONTINUATION, 0, 1, 16_000), 3))
            .collect();
        let tally = frames.tally(&[PREFACE, &parts.concat()].concat());
        assert_eq!((tally.heads, tally.other), (HEADER_BYTES, PREFACE.len() + 4 * 9 + 64_000 - HEADER_BYTES));
    }

    #[test]
    fn without_frames_everything_counts() {
        for text in ["GET / HTTP/1.1\r\n\r\n", "PRI * HTTP/1.1\r\n\r\n", "P"] {
            let mut frames = Frames::new();
            assert_eq!(frames.tally(text.as_bytes()), Tally { other: text.len(), ..Tally::default() });
            assert!(!frames.are_there(), "{text}");
        }
    }
}
