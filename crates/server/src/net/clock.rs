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
/// While a request is being answered, the server takes the time and there is no limit here: the body has its own
/// ([`super::Bodies`]). The idle time starts once the last response is ready, so that a client that does not take it is
/// cut off as well. With HTTP/2, other responses may be taken meanwhile: there the time runs for each, see [`Taken`].
#[derive(Clone, Copy, Debug)]
enum Waiting {
    /// The headers of a request, of which some may have come.
    Headers { since: Instant },
    /// The next request, of which nothing has come.
    Nothing { since: Instant },
    /// The server, which is answering so many requests.
    Answers { running: usize },
    /// HTTP/1: the client, which has to close a connection that we have closed (see [`super::watched`]).
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
    /// HTTP/2: bytes between requests mostly begin no request (pings, window updates).
    multiplexed: bool,
    /// A request came.
    asked: bool,
    /// A part of the next request came.
    heard: bool,
    /// A part of the last request's body was not read, or the body broke off.
    unread: bool,
    /// Running requests whose client still owes a part of the body: no work is done on them yet.
    coming: usize,
    /// HTTP/2: responses that the client has not taken yet, oldest first, and since when they are ready.
    untaken: BTreeMap<u64, Instant>,
    /// Since when the client has read nothing of what is on its way.
    full: Option<Instant>,
    /// The number of the next response.
    next: u64,
    /// HTTP/2: bytes of bodies that the client may send.
    granted: usize,
    /// Bytes that belong to no request.
    chatter: Chatter,
    /// There were too many of them at some time.
    too_much: bool,
}

impl State {
    /// Returns since when the client has not taken something that is ready.
    fn stalls_since(&self) -> Option<Instant> {
        self.untaken.first_key_value().map(|(_, since)| *since).into_iter().chain(self.full).min()
    }

    /// Returns whether the client has not taken something for so long, whatever else it asks for meanwhile.
    fn stalls(&self, long: Duration) -> bool {
        self.stalls_since().is_some_and(|since| since.elapsed() >= long)
    }

    /// Notes that a part of a request came, or may have.
    fn hear(&mut self) {
        match self.waiting {
            Waiting::Answers { .. } | Waiting::Close { .. } => return,
            _ if self.multiplexed => return,
            Waiting::Nothing { .. } => self.waiting = Waiting::Headers { since: Instant::now() },
            Waiting::Headers { .. } => {}
        }
        self.heard = true;
    }

    /// HTTP/2: allows so many more bytes.
    fn grant(&mut self, bytes: usize) {
        self.granted = (self.granted + bytes).min(MOST_GRANTED);
    }

    /// Notes that a part of a body was read: with HTTP/2 as much more may come; with HTTP/1 it was counted as chatter
    /// before. An empty part belongs to no request (CVE-2019-9518).
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

/// How much a connection may send that belongs to no request: at once, and per second. The control frames of a client
/// (settings, pings, window updates; RFC 9113, 10.5) are a few dozen bytes per request. Beyond this, the connection is
/// told to go, and its earlier requests are answered, since they may be many users'; at twice as much it is cut.
const CHATTER: f64 = 256.0 * 1024.0;
const CHATTER_A_SECOND: f64 = 8.0 * 1024.0;
/// The bytes a request takes besides its headers and body, and a part of a body besides its own bytes.
const FRAMING: usize = 1024;
const FRAMING_OF_A_PART: usize = 32;
/// HTTP/1: how much of an announced body counts as sent: some of it was, if the client is answered before it is read.
pub const BODY_AHEAD: usize = 4096;
/// HTTP/2: of each body a client may send one window, and then as much as we read of it (RFC 9113, 5.2), whether we
/// read the body or refuse the request; what it sends beyond that is chatter.
const WINDOW: usize = STREAM_WINDOW as usize;
const MOST_GRANTED: usize = STREAMS as usize * WINDOW;

/// The bytes so far that belong to no request, as a leaky bucket.
#[derive(Clone, Copy, Debug)]
struct Chatter {
    bytes: f64,
    at: Instant,
}

impl Chatter {
    /// Adds bytes that came.
    fn came(&mut self, bytes: usize) {
        let now = Instant::now();
        let leaked = now.duration_since(self.at).as_secs_f64() * CHATTER_A_SECOND;
        (self.bytes, self.at) = ((self.bytes - leaked).max(0.0) + bytes as f64, now);
    }

    /// Removes bytes that turned out to belong to a request.
    fn was_of_a_request(&mut self, bytes: usize) {
        self.bytes = (self.bytes - bytes as f64).max(0.0);
    }
}

impl Clock {
    /// Starts the clock of a connection that has waited for the first request's headers since `since`.
    pub fn start(since: Instant, header: Duration, idle: Duration, linger: Duration) -> Arc<Self> {
        let state = State {
            waiting: Waiting::Headers { since },
            multiplexed: false,
            asked: false,
            heard: false,
            unread: false,
            coming: 0,
            untaken: BTreeMap::new(),
            full: None,
            next: 0,
            granted: 0,
            chatter: Chatter { bytes: 0.0, at: since },
            too_much: false,
        };
        Arc::new(Clock { header, idle, linger, state: Mutex::new(state) })
    }

    /// Notes that a request's headers are complete; so many of the bytes counted so far belong to it. It runs until the
    /// guard is dropped. The connection's own place serves one request: others at the same time need a `further` one.
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

    /// Returns whether any request came.
    pub fn was_asked(&self) -> bool {
        self.lock().asked
    }

    /// Returns whether no request is answered, except those whose body still comes, and no response is untaken; or one
    /// has been untaken for so long. Otherwise a client that takes nothing would keep its places as long as it likes: a
    /// request now and then is enough for one to be answered at any time.
    pub fn is_idle(&self, long: Duration) -> bool {
        let state = self.lock();
        let running = if let Waiting::Answers { running } = state.waiting { running } else { 0 };
        state.stalls(long) || (running <= state.coming && state.untaken.is_empty())
    }

    /// Returns whether all requests were answered, and no other has begun.
    pub fn is_done(&self) -> bool {
        let state = self.lock();
        state.asked && matches!(state.waiting, Waiting::Nothing { .. }) && state.untaken.is_empty()
    }

    /// Returns whether no request, not even a part of one, came for so long, and no response is untaken; or one has
    /// been untaken for so long.
    pub fn is_quiet(&self, long: Duration) -> bool {
        let state = self.lock();
        match state.waiting {
            _ if state.stalls(long) => true,
            Waiting::Headers { since } | Waiting::Nothing { since } => {
                since.elapsed() >= long && !state.heard && state.untaken.is_empty()
            }
            Waiting::Close { .. } => true,
            Waiting::Answers { .. } => false,
        }
    }

    /// Returns whether the client has sent something, or may yet, that we have not read and will not read.
    pub fn left_something(&self) -> bool {
        let state = self.lock();
        state.heard || state.unread
    }

    /// Notes that we have closed the connection, and wait for the client to close it.
    pub fn linger(&self) {
        let mut state = self.lock();
        if !matches!(state.waiting, Waiting::Close { .. }) {
            state.waiting = Waiting::Close { since: Instant::now() };
        }
    }

    /// Returns whether we wait for the client to close the connection.
    pub fn lingers(&self) -> bool {
        matches!(self.lock().waiting, Waiting::Close { .. })
    }

    /// Wraps the body of a running request, which counts as coming as long as the client owes a part of it.
    pub fn coming(self: &Arc<Self>, body: Incoming) -> Body {
        if body.is_end_stream() {
            return Body::new(body);
        }
        self.lock().coming += 1;
        Body::new(Coming { body, owed: Some(Owed(Arc::clone(self))) })
    }

    /// Returns whether requests came by HTTP/2.
    pub fn multiplexed(&self) -> bool {
        self.lock().multiplexed
    }

    /// Counts bytes that came; returns whether they are far too many for the requests among them.
    pub fn bytes_came(&self, came: Tally) -> bool {
        let mut state = self.lock();
        state.grant(came.bodies * WINDOW);
        let granted = came.data.min(state.granted);
        state.granted -= granted;
        // A connection that was told to go cannot make more requests: the library drops those that it does not answer.
        let dropped = if state.too_much { came.heads } else { 0 };
        state.chatter.came(came.other + came.data - granted + dropped);
        state.too_much |= state.chatter.bytes > CHATTER;
        state.hear();
        state.chatter.bytes > 2.0 * CHATTER
    }

    /// Notes whether there is no room on the way to the client, as it does not read. With HTTP/2 it can go on asking.
    pub fn is_full(&self, full: bool) {
        let mut state = self.lock();
        state.full = if full { state.full.or_else(|| Some(Instant::now())) } else { None };
    }

    /// Returns the reason if the connection is to go because of what it sent.
    pub fn said_too_much(&self) -> Option<Cut> {
        self.lock().too_much.then_some(Cut::Chatter)
    }

    /// Returns the moment at which the connection will have waited too long, if it waits for its client.
    fn deadline(&self) -> Option<Instant> {
        let state = self.lock();
        let waits = match state.waiting {
            Waiting::Headers { since } => Some(since + self.header),
            Waiting::Nothing { since } => Some(since + self.idle),
            Waiting::Close { since } => Some(since + self.linger),
            Waiting::Answers { .. } => None,
        };
        let takes = state.stalls_since().map(|since| since + self.idle);
        waits.into_iter().chain(takes).min()
    }

    /// Returns why the connection is cut now that its time is over; `None` if it was merely unused.
    pub fn fault(&self) -> Option<Cut> {
        let state = self.lock();
        match state.waiting {
            _ if state.stalls_since().is_some() => Some(Cut::Untaken),
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
    /// HTTP/1: returns whether a part of the body was not read, because the client still owes it or it came unread.
    pub fn leaves_body(&self) -> bool {
        let state = self.clock.lock();
        state.unread || state.coming > 0
    }

    /// Wraps the body of the response. With HTTP/2, the client has the idle time to take it, whatever else goes on. The
    /// request's place is held until then.
    pub fn answered(mut self, body: Body) -> Body {
        let watched = !body.is_end_stream() && self.clock.multiplexed();
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

/// A request's body. The client owes a part of it until it ends, breaks, or is no longer wanted.
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

/// A response's body that is held until the client has made room for all of it (RFC 9113, 5.2).
///
/// If a client makes room for a single byte, a whole frame is taken from us, and the rest of it waits elsewhere. So the
/// last byte is sent on its own: there is no room for it before there is room for all others.
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

/// A response that is not taken yet, with its number.
struct Untaken(Arc<Clock>, u64);

impl Untaken {
    /// Registers a response that is ready now.
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
/// The timer is reset only when it fires or has to fire earlier, not at each request: on a busy connection once per
/// header timeout.
pub struct Alarm {
    clock: Arc<Clock>,
    sleep: Pin<Box<Sleep>>,
}

impl Alarm {
    /// Makes the alarm of that clock's connection.
    pub fn new(clock: Arc<Clock>) -> Self {
        let first = clock.deadline().unwrap_or_else(|| Instant::now() + clock.header);
        Alarm { clock, sleep: Box::pin(tokio::time::sleep_until(first)) }
    }

    /// Ready once the connection has waited too long. Must be polled after the connection itself, in the same task.
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
