//! A request's whole body, within its size, its time, and the memory for all bodies.

use crate::config::Config;
use axum::body::Body;
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::body::Body as _;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The part of a body that needs no room: forms and token requests are smaller.
const FREE: usize = 4 << 10;
/// The room that all bodies that come piece by piece share beyond that: a thousand bodies of the default size, if there
/// is memory for so many besides hashing.
const ROOM: usize = 64 << 20;
/// The room is at most this part of the default memory for hashing passwords (a quarter of all memory).
const SHARE: u64 = 4;
/// Room is granted in steps of so many bytes.
const STEP: usize = 1 << 10;

/// Why a body could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyError {
    /// More bytes came than allowed, or were announced (RFC 9110 §15.5.14: 413).
    TooLarge,
    /// It did not come in time (RFC 9110 §15.5.9: 408).
    TooSlow,
    /// The connection broke, or its framing is wrong.
    Broken,
    /// The body is large, and other bodies hold all the room (RFC 9110 §15.6.4: 503).
    NoRoom,
}

/// How bodies are read: each within its size and its time, and all large ones together within one amount of memory,
/// whoever sends them and however slowly.
#[derive(Clone)]
pub struct Bodies {
    size: usize,
    timeout: Duration,
    room: Arc<Semaphore>,
}

impl Bodies {
    /// Makes the configured limits.
    pub fn of(config: &Config) -> Self {
        let size = usize::try_from(config.limits.body_size.0).unwrap_or(usize::MAX);
        let share = usize::try_from(hasher::tune::default_memory() / SHARE).unwrap_or(usize::MAX);
        Bodies::within(size, config.limits.body_timeout, ROOM.min(share))
    }

    /// Allows at most `size` bytes for each body, all of them within `timeout`.
    #[cfg(test)]
    pub fn new(size: usize, timeout: Duration) -> Self {
        Bodies::within(size, timeout, ROOM)
    }

    /// Likewise, with so much room for all large bodies.
    fn within(size: usize, timeout: Duration, room: usize) -> Self {
        let room = room.max(size.saturating_mul(4)) / STEP;
        Bodies { size, timeout, room: Arc::new(Semaphore::new(room.min(Semaphore::MAX_PERMITS))) }
    }

    /// Reads all of `body`. An announced length beyond the limit is refused before any byte is read. The bytes keep
    /// their room until they are dropped.
    pub async fn read(&self, body: Body) -> Result<Bytes, BodyError> {
        if body.size_hint().lower() > self.size as u64 {
            return Err(BodyError::TooLarge);
        }
        tokio::time::timeout(self.timeout, self.whole(body)).await.unwrap_or(Err(BodyError::TooSlow))
    }

    /// Reads into one buffer: kept frame by frame, a body in chunks of one byte would hold fifty times its size.
    async fn whole(&self, mut body: Body) -> Result<Bytes, BodyError> {
        let announced = usize::try_from(body.size_hint().lower()).unwrap_or(self.size);
        let mut read = Held { bytes: BytesMut::with_capacity(announced.min(FREE)), room: None };
        while let Some(frame) = body.frame().await {
            // Trailers have no meaning here.
            let Ok(data) = frame.map_err(|_| BodyError::Broken)?.into_data() else { continue };
            if data.len() > self.size - read.bytes.len() {
                return Err(BodyError::TooLarge);
            }
            // The body came in one piece, or was read before and is read again: no room is held for a slow sender, and
            // few requests wait behind a door (admission; a request that waits to be refused has dropped its body).
            if read.bytes.is_empty() && data.len() > FREE && body.is_end_stream() {
                return Ok(data);
            }
            self.make_room(&mut read, data.len(), announced)?;
            read.bytes.extend_from_slice(&data);
        }
        Ok(if read.room.is_some() { Bytes::from_owner(read) } else { read.bytes.freeze() })
    }

    /// Makes room for `more` bytes. The buffer grows to the announced size, or doubles.
    fn make_room(&self, read: &mut Held, more: usize, announced: usize) -> Result<(), BodyError> {
        let wanted = read.bytes.len() + more;
        if wanted <= FREE.max(read.bytes.capacity()) {
            return Ok(());
        }
        let capacity = announced.max(wanted.next_power_of_two()).min(self.size);
        let steps = (capacity - read.bytes.capacity()).div_ceil(STEP);
        let room =
            u32::try_from(steps).ok().and_then(|steps| Arc::clone(&self.room).try_acquire_many_owned(steps).ok());
        let room = room.ok_or(BodyError::NoRoom)?;
        match &mut read.room {
            Some(held) => held.merge(room),
            None => read.room = Some(room),
        }
        read.bytes.reserve(capacity - read.bytes.len());
        Ok(())
    }
}

/// What has come of a large body, with its room.
struct Held {
    bytes: BytesMut,
    room: Option<OwnedSemaphorePermit>,
}

impl AsRef<[u8]> for Held {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl fmt::Display for BodyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            BodyError::TooLarge => "the body is too large",
            BodyError::TooSlow => "the body came too slowly",
            BodyError::Broken => "the body broke off",
            BodyError::NoRoom => "too many large bodies at a time",
        })
    }
}

impl std::error::Error for BodyError {}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::body::Frame;
    use std::convert::Infallible;
    use std::pin::Pin;
    use std::task::{Context, Poll};
    use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
    use tokio::task::JoinHandle;

    const SIZE: usize = 64 << 10;

    /// A body that comes piece by piece.
    struct Pieces(UnboundedReceiver<Vec<u8>>);

    impl hyper::body::Body for Pieces {
        type Data = Bytes;
        type Error = Infallible;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            context: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
            self.0.poll_recv(context).map(|piece| piece.map(|piece| Ok(Frame::data(piece.into()))))
        }
    }

    /// Sends such a body to a task that reads it.
    fn reading(bodies: &Bodies) -> (UnboundedSender<Vec<u8>>, JoinHandle<Result<Bytes, BodyError>>) {
        let (sender, receiver) = unbounded_channel();
        let bodies = bodies.clone();
        #[allow(clippy::disallowed_methods, reason = "a test's task ends with its runtime")]
        let reader = tokio::spawn(async move { bodies.read(Body::new(Pieces(receiver))).await });
        (sender, reader)
    }

    fn bodies() -> Bodies {
        Bodies { room: Arc::new(Semaphore::new(4 * SIZE / STEP)), ..Bodies::new(SIZE, Duration::from_secs(60)) }
    }

    /// Red without `make_room`; for the last part, without `room` in [`Held`].
    #[tokio::test]
    async fn large_bodies_share_their_room_and_small_ones_need_none() {
        let bodies = bodies();
        let mut slow: Vec<_> = (0..8).map(|_| reading(&bodies)).collect();
        for (sender, _) in &slow {
            for _ in 0..15 {
                sender.send(vec![b'x'; FREE]).unwrap();
            }
        }
        while slow.iter().filter(|(_, reader)| reader.is_finished()).count() < 4 {
            tokio::task::yield_now().await;
        }
        let (refused, held): (Vec<_>, Vec<_>) = slow.drain(..).partition(|(_, reader)| reader.is_finished());
        for (_, reader) in refused {
            assert_eq!(reader.await.unwrap(), Err(BodyError::NoRoom));
        }
        let (small, reader) = reading(&bodies);
        small.send(vec![b'y'; FREE]).unwrap();
        drop(small);
        assert_eq!(reader.await.unwrap().unwrap().len(), FREE);
        let mut whole = Vec::new();
        for (sender, reader) in held {
            drop(sender);
            whole.push(reader.await.unwrap().unwrap());
        }
        assert!(whole.iter().all(|bytes| bytes.len() == 15 * FREE), "what came is whole");
        assert!(bodies.room.available_permits() < SIZE / STEP, "what is worked on keeps its room");
        drop(whole);
        assert_eq!(bodies.room.available_permits(), 4 * SIZE / STEP);
    }

    #[tokio::test]
    async fn what_was_read_before_is_not_copied() {
        let bodies = bodies();
        for length in [0, 1, FREE, FREE + 1, SIZE] {
            let bytes = Bytes::from(vec![b'z'; length]);
            let again = bodies.read(Body::from(bytes.clone())).await.unwrap();
            assert_eq!(again, bytes);
            assert!(length <= FREE || again.as_ptr() == bytes.as_ptr(), "{length}");
        }
        assert_eq!(bodies.read(Body::from(vec![0; SIZE + 1])).await, Err(BodyError::TooLarge));
    }
}
