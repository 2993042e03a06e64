//! How long a connection may keep the server waiting.

use super::frames::Tally;
use super::serve::{STREAM_WINDOW, STREAMS};
use super::{Cut, Full, Place};
use axum::body::{Body, Bytes};
use hyper::body::{Body as _, Frame, Incoming, SizeHint};
use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::time::{Instant, Sleep};

/// What a connection waits for, and since when.
///
/// While a request is answered the time is ours and there is no limit here: the body has its own
/// ([`super::read_body`]). Once the last answer is ready the idle time runs, so that a client that does not take its
/// answer is cut off as well. By HTTP/2 further answers may be taken meanwhile: there it runs for each, see [`Taken`].
#[derive(Clone, Copy, Debug)]
enum Waiting {
    /// The headers of a request, of which a part may have come.
    Headers { since: Instant },
    /// The next request, of which nothing has come.
    Nothing { since: Instant },
    /// Us, with so many requests.
    Answers { running: usize },
    /// HTTP/1: the client, to close what we have closed (see [`super::watched`]).
    Close { since: Instant },
}

/// One connection's clock.
pub struct Clock {
    header: Duration,
    idle: Duration,
    linger: Duration,
    state: Mutex<State>,
}

struct State {
    waiting: Waiting,
    /// HTTP/2: bytes between requests are mostly not the beginning of one (pings, window updates).
    multiplexed: bool,
    /// A request came.
    asked: bool,
    /// A part of the next one did.
    heard: bool,
    /// Of the last one's body something was not read, or it broke.
    unread: bool,
    /// Requests that run, and of whose bodies the client still owes a part: nothing is done about them yet.
    coming: usize,
    /// HTTP/2: answers that the client has not taken yet, the oldest first, and since when they are ready.
    untaken: BTreeMap<u64, Instant>,
    /// The number of the next one.
    next: u64,
    /// HTTP/2: bytes of bodies that the client may send.
    granted: usize,
    /// Bytes that became no part of a request.
    chatter: Chatter,
    /// They were too many at some time.
    too_much: bool,
}

impl State {
    /// A part of a request came, or may have.
    fn hear(&mut self) {
        match self.waiting {
            Waiting::Answers { .. } | Waiting::Close { .. } => return,
            _ if self.multiplexed => return,
            Waiting::Nothing { .. } => self.waiting = Waiting::Headers { since: Instant::now() },
            Waiting::Headers { .. } => {}
        }
        self.heard = true;
    }

    /// HTTP/2: so many bytes more may come.
    fn grant(&mut self, bytes: usize) {
        self.granted = (self.granted + bytes).min(MOST_GRANTED);
    }

    /// A part of a body was read: by HTTP/2 as much more may come, and by HTTP/1 it was counted with all else. An empty one asks
    /// for nothing (CVE-2019-9518).
    fn was_read(&mut self, bytes: usize) {
        let framing = if bytes > 0 { FRAMING_OF_A_PART } else { 0 };
        if self.multiplexed {
            self.grant(bytes);
            self.chatter.was_of_a_request(framing);
        } else {
            self.chatter.was_of_a_request(bytes + framing);
        }
    }
}

/// How much a connection may say that is no part of a request: what it may say at once, and each second. A client's own frames
/// (settings, pings, window updates; RFC 9113, 10.5) are a few dozen bytes for a request. Beyond, it is told to go, and whatever
/// it asked before is answered, since it may be many people's; at twice as much it is cut.
const CHATTER: f64 = 256.0 * 1024.0;
const CHATTER_A_SECOND: f64 = 8.0 * 1024.0;
/// What a request takes beside the bytes of its headers and of its body, and a part of a body beside its own.
const FRAMING: usize = 1024;
const FRAMING_OF_A_PART: usize = 32;
/// HTTP/1: how much of a body that was announced is taken for sent: whoever is answered before the body was read has sent some of it.
pub const BODY_AHEAD: usize = 4096;
/// HTTP/2: what a client may send of bodies is a window for each request that has one, and as much again as we read of it (RFC
/// 9113, 5.2). That is its right, whether we read it or refuse the request; what is beyond is chatter.
const WINDOW: usize = STREAM_WINDOW as usize;
const MOST_GRANTED: usize = STREAMS as usize * WINDOW;

/// What was said so far that belongs to no request, as a bucket that leaks.
#[derive(Clone, Copy, Debug)]
struct Chatter {
    bytes: f64,
    at: Instant,
}

impl Chatter {
    /// More came.
    fn came(&mut self, bytes: usize) {
        let now = Instant::now();
        let leaked = now.duration_since(self.at).as_secs_f64() * CHATTER_A_SECOND;
        (self.bytes, self.at) = ((self.bytes - leaked).max(0.0) + bytes as f64, now);
    }

    /// So much of it was of a request.
    fn was_of_a_request(&mut self, bytes: usize) {
        self.bytes = (self.bytes - bytes as f64).max(0.0);
    }
}

impl Clock {
    /// Starts with the first request's headers, which are waited for since then.
    pub fn start(since: Instant, header: Duration, idle: Duration, linger: Duration) -> Arc<Self> {
        let state = State {
            waiting: Waiting::Headers { since },
            multiplexed: false,
            asked: false,
            heard: false,
            unread: false,
            coming: 0,
            untaken: BTreeMap::new(),
            next: 0,
            granted: 0,
            chatter: Chatter { bytes: 0.0, at: since },
            too_much: false,
        };
        Arc::new(Clock { header, idle, linger, state: Mutex::new(state) })
    }

    /// A request's headers are complete; so many of the bytes that were counted are said to belong to it so far. It runs until the
    /// guard is dropped. The connection's own place is one request's: what is asked beside it needs a `further` one.
    pub fn request(
        self: &Arc<Self>,
        (multiplexed, bytes): (bool, usize),
        further: impl FnOnce() -> Result<Place, Full>,
    ) -> Result<Running, Full> {
        let mut state = self.lock();
        state.chatter.was_of_a_request(bytes + FRAMING);
        (state.multiplexed, state.asked) = (multiplexed, true);
        (state.heard, state.unread) = (false, false);
        let running = if let Waiting::Answers { running } = state.waiting { running } else { 0 };
        let place = if running + state.untaken.len() > 0 { Some(further()?) } else { None };
        state.waiting = Waiting::Answers { running: running + 1 };
        Ok(Running { clock: Arc::clone(self), place })
    }

    /// Whether any request came.
    pub fn was_asked(&self) -> bool {
        self.lock().asked
    }

    /// Whether no request is being answered, as far as we know them, and no answer is to be taken.
    pub fn is_idle(&self) -> bool {
        let state = self.lock();
        let running = if let Waiting::Answers { running } = state.waiting { running } else { 0 };
        running <= state.coming && state.untaken.is_empty()
    }

    /// Whether all that was asked is answered, and nothing more is asked.
    pub fn is_done(&self) -> bool {
        let state = self.lock();
        state.asked && matches!(state.waiting, Waiting::Nothing { .. }) && state.untaken.is_empty()
    }

    /// Whether nothing has been asked for so long, not even in part, and no answer is to be taken.
    pub fn is_quiet(&self, long: Duration) -> bool {
        let state = self.lock();
        match state.waiting {
            Waiting::Headers { since } | Waiting::Nothing { since } => {
                since.elapsed() >= long && !state.heard && state.untaken.is_empty()
            }
            Waiting::Close { .. } => true,
            Waiting::Answers { .. } => false,
        }
    }

    /// Whether the client has said something, or may say it yet, that we have not read and will not read.
    pub fn left_something(&self) -> bool {
        let state = self.lock();
        state.heard || state.unread
    }

    /// We have closed the connection, and wait for the client to do so.
    pub fn linger(&self) {
        let mut state = self.lock();
        if !matches!(state.waiting, Waiting::Close { .. }) {
            state.waiting = Waiting::Close { since: Instant::now() };
        }
    }

    /// Whether that is so.
    pub fn lingers(&self) -> bool {
        matches!(self.lock().waiting, Waiting::Close { .. })
    }

    /// The body of a request that runs, which is waited for as long as the client owes a part of it.
    pub fn coming(self: &Arc<Self>, body: Incoming) -> Body {
        if body.is_end_stream() {
            return Body::new(body);
        }
        self.lock().coming += 1;
        Body::new(Coming { body, owed: Some(Owed(Arc::clone(self))) })
    }

    /// Whether requests came by HTTP/2.
    pub fn multiplexed(&self) -> bool {
        self.lock().multiplexed
    }

    /// Bytes came; whether they are much too many for what is asked with them.
    pub fn bytes_came(&self, came: Tally) -> bool {
        let mut state = self.lock();
        state.grant(came.bodies * WINDOW);
        let granted = came.data.min(state.granted);
        state.granted -= granted;
        // Who was told to go asks for nothing more: the library drops what it does not answer by then.
        let dropped = if state.too_much { came.heads } else { 0 };
        state.chatter.came(came.other + came.data - granted + dropped);
        state.too_much |= state.chatter.bytes > CHATTER;
        state.hear();
        state.chatter.bytes > 2.0 * CHATTER
    }

    /// Why the connection is to go, where that is for what it said.
    pub fn said_too_much(&self) -> Option<Cut> {
        self.lock().too_much.then_some(Cut::Chatter)
    }

    /// The moment at which the connection has waited too long, if it waits for its client.
    fn deadline(&self) -> Option<Instant> {
        let state = self.lock();
        let waits = match state.waiting {
            Waiting::Headers { since } => Some(since + self.header),
            Waiting::Nothing { since } => Some(since + self.idle),
            Waiting::Close { since } => Some(since + self.linger),
            Waiting::Answers { .. } => None,
        };
        let takes = state.untaken.first_key_value().map(|(_, since)| *since + self.idle);
        waits.into_iter().chain(takes).min()
    }

    /// Why it is cut now that its time is over; `None` where it only was not used any more.
    pub fn fault(&self) -> Option<Cut> {
        let state = self.lock();
        match state.waiting {
            _ if !state.untaken.is_empty() => Some(Cut::Untaken),
            Waiting::Headers { .. } => Some(Cut::Silent),
            Waiting::Answers { .. } | Waiting::Nothing { .. } | Waiting::Close { .. } => None,
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A request that is being answered.
pub struct Running {
    clock: Arc<Clock>,
    place: Option<Place>,
}

impl Running {
    /// HTTP/1: whether a part of its body was not read, which the client owes still, or has sent to nobody.
    pub fn leaves_body(&self) -> bool {
        let state = self.clock.lock();
        state.unread || state.coming > 0
    }

    /// The same answer, which by HTTP/2 the client has the idle time to take, whatever else goes on. The request's place is
    /// held until then.
    pub fn answered(mut self, body: Body) -> Body {
        let watched = body.size_hint().lower() >= WORTH_IT && self.clock.multiplexed();
        let untaken = watched.then(|| Untaken::new(&self.clock));
        match (untaken, self.place.take()) {
            (None, None) => body,
            (untaken, place) => Body::new(Taken { body, last: None, untaken, _place: place }),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let mut state = self.clock.lock();
        state.waiting = match state.waiting {
            Waiting::Answers { running } if running > 1 => Waiting::Answers { running: running - 1 },
            Waiting::Close { since } => Waiting::Close { since },
            _ => Waiting::Nothing { since: Instant::now() },
        };
    }
}

/// A request's body. The client owes a part of it until it ends, breaks, or is wanted no more.
struct Coming {
    body: Incoming,
    owed: Option<Owed>,
}

impl Drop for Coming {
    fn drop(&mut self) {
        if let Some(Owed(clock)) = &self.owed {
            clock.lock().unread = true;
        }
    }
}

struct Owed(Arc<Clock>);

impl Drop for Owed {
    fn drop(&mut self) {
        self.0.lock().coming -= 1;
    }
}

impl hyper::body::Body for Coming {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(context));
        if let (Some(Ok(frame)), Some(Owed(clock))) = (&frame, &self.owed) {
            clock.lock().was_read(frame.data_ref().map_or(0, Bytes::len));
        }
        if let (Some(Err(_)), Some(Owed(clock))) = (&frame, &self.owed) {
            clock.lock().unread = true;
        }
        if self.body.is_end_stream() || !matches!(frame, Some(Ok(_))) {
            self.owed = None;
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// The least body that is watched, in bytes: a shorter one holds no more than its stream does.
const WORTH_IT: u64 = 1024;

/// An answer's body that is there until the client lets all of it come (RFC 9113, 5.2).
///
/// Whoever lets a single byte come has the whole of a frame taken from us, and waits for the rest of it elsewhere. So the
/// last byte goes by itself: there is no room for it before there is for all others.
struct Taken {
    body: Body,
    last: Option<Bytes>,
    untaken: Option<Untaken>,
    _place: Option<Place>,
}

impl hyper::body::Body for Taken {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        if let Some(last) = self.last.take() {
            return Poll::Ready(Some(Ok(Frame::data(last))));
        }
        let mut frame = ready!(Pin::new(&mut self.body).poll_frame(context));
        let data = frame.as_mut().and_then(|frame| frame.as_mut().ok()).and_then(Frame::data_mut);
        let splits = self.untaken.is_some() && self.body.is_end_stream();
        if let Some(data) = data.filter(|data| data.len() > 1 && splits) {
            self.last = Some(data.split_off(data.len() - 1));
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.last.is_none() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        match &self.last {
            Some(last) => SizeHint::with_exact(last.len() as u64),
            None => self.body.size_hint(),
        }
    }
}

/// An answer that is not taken yet, with its number.
struct Untaken(Arc<Clock>, u64);

impl Untaken {
    /// Ready now.
    fn new(clock: &Arc<Clock>) -> Self {
        let mut state = clock.lock();
        let number = state.next;
        state.next += 1;
        state.untaken.insert(number, Instant::now());
        Untaken(Arc::clone(clock), number)
    }
}

impl Drop for Untaken {
    fn drop(&mut self) {
        self.0.lock().untaken.remove(&self.1);
    }
}

/// Wakes the connection's task when its clock runs out.
///
/// The timer is set again only when it fires or must fire earlier, not at each request: on a busy connection once in
/// a header time.
pub struct Alarm {
    clock: Arc<Clock>,
    sleep: Pin<Box<Sleep>>,
}

impl Alarm {
    /// For the connection of that clock.
    pub fn new(clock: Arc<Clock>) -> Self {
        let first = clock.deadline().unwrap_or_else(|| Instant::now() + clock.header);
        Alarm { clock, sleep: Box::pin(tokio::time::sleep_until(first)) }
    }

    /// Ready once the connection has waited too long. To be polled after the connection itself, in the same task.
    pub fn poll(&mut self, context: &mut Context<'_>) -> Poll<()> {
        if let Some(deadline) = self.clock.deadline()
            && deadline < self.sleep.deadline()
        {
            self.sleep.as_mut().reset(deadline);
        }
        while self.sleep.as_mut().poll(context).is_ready() {
            let now = Instant::now();
            match self.clock.deadline() {
                Some(deadline) if deadline <= now => return Poll::Ready(()),
                Some(deadline) => self.sleep.as_mut().reset(deadline),
                None => self.sleep.as_mut().reset(now + self.clock.header),
            }
        }
        Poll::Pending
    }
}
