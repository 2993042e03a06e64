//! A connection's stream as its clock sees it, and how it is closed.

use super::clock::Clock;
use super::frames::Frames;
use std::io;
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// A stream that reports incoming bytes to the clock.
pub struct Watched<S> {
    stream: S,
    clock: Arc<Clock>,
    frames: Frames,
    /// There was no room to write.
    full: bool,
    /// Bytes read since the connection's task last yielded.
    turn: usize,
    /// No more bytes can come: the other end closed the stream, or it broke.
    ended: bool,
    /// We have shut down our side.
    shut: bool,
    /// Bytes discarded since then.
    discarded: usize,
}

/// Bytes that are read in a turn: a client that sends more waits until all others had their turn.
const TURN: usize = 16 << 10;

/// How many bytes are discarded on a connection that we have closed, and how many at a time.
const LINGER: usize = 1 << 20;
const SCOOP: usize = 4 << 10;

impl<S> Watched<S> {
    /// Watches `stream` for `clock`.
    pub fn new(stream: S, clock: Arc<Clock>) -> Self {
        let frames = Frames::new();
        Watched { stream, clock, frames, full: false, turn: 0, ended: false, shut: false, discarded: 0 }
    }
}

impl<S: AsyncRead + Unpin> Watched<S> {
    /// RFC 9112, 9.6: if a client still sends when we close (a body that we refused), the kernel answers unread bytes
    /// with a reset, which may destroy our last response before the client reads it. So bytes are read and discarded
    /// until the client closes as well, for at most the time that the clock allows. With HTTP/2, a stream is closed
    /// instead of the connection.
    fn poll_linger(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let mut buffer = [MaybeUninit::uninit(); SCOOP];
        let end = self.discarded + TURN;
        while self.discarded < end.min(LINGER) {
            let mut scoop = ReadBuf::uninit(&mut buffer);
            match Pin::new(&mut self.stream).poll_read(context, &mut scoop) {
                Poll::Ready(Ok(())) if !scoop.filled().is_empty() => self.discarded += scoop.filled().len(),
                Poll::Ready(_) => return Poll::Ready(()),
                Poll::Pending if self.discarded == 0 && !self.clock.left_something() => return Poll::Ready(()),
                Poll::Pending => {
                    self.clock.linger();
                    return Poll::Pending;
                }
            }
        }
        if self.discarded >= LINGER {
            return Poll::Ready(());
        }
        self.clock.linger();
        context.waker().wake_by_ref();
        Poll::Pending
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Watched<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.turn >= TURN {
            self.turn = 0;
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        let before = buffer.filled().len();
        let answer = Pin::new(&mut self.stream).poll_read(context, buffer);
        let came = &buffer.filled()[before..];
        self.turn = if answer.is_pending() { 0 } else { self.turn + came.len() };
        self.ended |= match answer {
            Poll::Ready(Ok(())) => came.is_empty() && buffer.remaining() > 0,
            Poll::Ready(Err(_)) => true,
            Poll::Pending => false,
        };
        if came.is_empty() {
            return answer;
        }
        let tally = self.frames.tally(came);
        match self.clock.bytes_came(tally) {
            true => {
                self.ended = true;
                Poll::Ready(Err(io::Error::other("too many bytes that ask for nothing")))
            }
            false => answer,
        }
    }
}

impl<S> Watched<S> {
    /// Tells the clock when there begins or ends to be no room to write.
    fn wrote<T>(&mut self, answer: Poll<T>) -> Poll<T> {
        if answer.is_pending() != self.full {
            self.full = answer.is_pending();
            self.clock.is_full(self.full);
        }
        answer
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Watched<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let wrote = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.wrote(wrote)
    }
    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let wrote = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.wrote(wrote)
    }
    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        // With TLS, what was written may wait here.
        let flushed = Pin::new(&mut self.stream).poll_flush(context);
        self.wrote(flushed)
    }
    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if !self.shut {
            ready!(Pin::new(&mut self.stream).poll_shutdown(context))?;
            self.shut = true;
        }
        if !self.ended && !self.frames.are_there() {
            ready!(self.poll_linger(context));
        }
        Poll::Ready(Ok(()))
    }
}
