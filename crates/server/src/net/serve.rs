//! Accepting connections, serving them, and stopping.

use super::clock::{Alarm, BODY_AHEAD, Clock, Running};
use super::farewell::{self, Farewell};
use super::pause::Pause;
use super::refusals::{too_large, too_many};
use super::watched::Watched;
use super::{Caps, Cut, Listeners, Peer, Place, Terms, TlsReload, hear_hangups, tls};
use crate::loops::{end_of, panic_of, tell_of_panic};
use axum::body::Body;
use axum::response::Response;
use hyper::Request;
use hyper::body::Incoming;
use hyper::header::{CONNECTION, CONTENT_LENGTH, HeaderValue};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::futures::OwnedNotified;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tower::{Service, ServiceExt};

/// The most bytes that a request's headers may take together.
pub const HEADER_BYTES: usize = 32 << 10;
/// Requests that one HTTP/2 connection may have open at a time.
pub const STREAMS: u32 = 100;
/// Streams that a client may open and reset before we accept them; with more, the connection is closed (CVE-2023-44487,
/// rapid reset).
const PENDING_RESETS: usize = 20;
/// Streams that we reset because of the client's errors before the connection is closed.
const ERROR_RESETS: usize = 128;
/// How much an HTTP/2 client may send ahead, for a request and for the connection.
pub const STREAM_WINDOW: u32 = 64 << 10;
const CONNECTION_WINDOW: u32 = 256 << 10;
/// A ping is sent after so long without a frame, and its answer may take so long.
const PING_EVERY: Duration = Duration::from_secs(20);
const PING_WITHIN: Duration = Duration::from_secs(10);

/// How long a client that still sends when we close its connection has to close it too.
const LINGER: Duration = Duration::from_secs(1);

/// The beginning of an HTTP/2 connection only (RFC 9113, 3.4): we know no HTTP/1 method of that name.
const HTTP2: &[u8] = b"PRI";

/// How many connections the kernel may have queued: more than it allows (net.core.somaxconn is 4096).
const QUEUE: usize = 8192;
/// A service that can answer requests, such as an `axum::Router`.
pub trait Answers:
    Service<Request<Body>, Response = Response, Error = Infallible, Future: Send> + Clone + Send + Sync + 'static
{
}

impl<S> Answers for S where
    S: Service<Request<Body>, Response = Response, Error = Infallible, Future: Send> + Clone + Send + Sync + 'static
{
}

/// How serving ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stopped {
    /// Connections that had not finished within the drain time, or when the server was told again, and were cut.
    pub cut: usize,
}

/// How far serving is from its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    /// Not ending.
    Serving,
    /// Every request is answered, with the notice that the client should not come here again.
    Leaving,
    /// No new connection is accepted; running requests are finished.
    Closing,
    /// Nothing is waited for.
    Cutting,
}

/// Serves `service` on `listeners` until it is `told` to stop, and for the stop delay after that, in which each
/// connection ends with its response. Then accepts nothing more, finishes the running requests (for at most the drain
/// time) and returns. Told again, it returns at once. Each request carries a [`Peer`] among its extensions.
///
/// The delay is for proxies that keep connections open: an idle connection may be closed just as a request arrives,
/// which a proxy may not send again (RFC 9112, 9.3.1). If the connection is closed after a response that announced it
/// (9.6), nothing is lost.
pub async fn serve<S: Answers>(
    listeners: Listeners,
    terms: Terms,
    service: S,
    told: mpsc::UnboundedReceiver<()>,
) -> Stopped {
    serve_lingering(LINGER, listeners, terms, service, told).await
}

/// Likewise; clients that still send when we close their connections have `linger` to close them too.
pub async fn serve_lingering<S: Answers>(
    linger: Duration,
    listeners: Listeners,
    terms: Terms,
    service: S,
    mut told: mpsc::UnboundedReceiver<()>,
) -> Stopped {
    let hangup = if terms.hears_hangups { hear_hangups() } else { None };
    let (stages, stage) = watch::channel(Stage::Serving);
    let room = Arc::new(Room { either: builder(), http1: builder().http1_only(), terms, linger, service, stage });
    let mut background = JoinSet::new();
    background.spawn(tls::watch(room.terms.tls.clone(), hangup));
    let mut doors = JoinSet::new();
    for listener in listeners.0 {
        doors.spawn(Arc::clone(&room).accept(listener));
    }
    tokio::select! {
        () = heard(&mut told) => {}
        // A closed port, or a certificate that is not renewed, would be noticed too late.
        never = panic_of(&mut doors) => match never {},
        never = panic_of(&mut background) => match never {},
    }
    stages.send_replace(Stage::Leaving);
    let orderly = async {
        tokio::time::sleep(room.terms.stop_delay).await;
        stages.send_replace(Stage::Closing);
        std::future::pending().await
    };
    let mut cut = 0;
    tokio::select! {
        () = all_closed(&mut doors, &mut cut) => {}
        () = orderly => {}
        () = heard(&mut told) => {
            stages.send_replace(Stage::Cutting);
        }
    }
    all_closed(&mut doors, &mut cut).await;
    Stopped { cut }
}

/// Ready once told to stop; never, if every sender is gone.
async fn heard(told: &mut mpsc::UnboundedReceiver<()>) {
    if told.recv().await.is_none() {
        std::future::pending().await
    }
}

/// Ready once each listener is closed and its connections have ended; adds up those that were cut.
async fn all_closed(doors: &mut JoinSet<usize>, cut: &mut usize) {
    while let Some(door) = doors.join_next().await {
        *cut += door.unwrap_or_default();
    }
}

/// HTTP/1.1 and HTTP/2 on the same port, each with its limits. [`Clock`] keeps the header and idle times, since it can
/// tell the two apart. HTTP/1 takes at most 100 headers, hyper's default, whose array lies on the stack.
fn builder() -> Builder<TokioExecutor> {
    let mut builder = Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(None).max_buf_size(HEADER_BYTES);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(STREAMS)
        .max_pending_accept_reset_streams(PENDING_RESETS)
        .max_local_error_reset_streams(ERROR_RESETS)
        .max_header_list_size(HEADER_BYTES as u32)
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        // A response is taken piece by piece, the next once the socket has room for all of the one before. With more,
        // it would count as taken when the client has only said that it will take it (see [`super::clock`]).
        .max_send_buf_size(1)
        .keep_alive_interval(PING_EVERY)
        .keep_alive_timeout(PING_WITHIN);
    builder
}

/// State that all connections share.
struct Room<S> {
    either: Builder<TokioExecutor>,
    /// For connections known not to be HTTP/2: detecting it costs a connection half a buffer more.
    http1: Builder<TokioExecutor>,
    terms: Terms,
    linger: Duration,
    service: S,
    stage: watch::Receiver<Stage>,
}

/// What a task of a listener is, in the log.
const TASK: &str = "a connection";

impl<S: Answers> Room<S> {
    /// Accepts until told to stop, then waits for its connections. Returns how many it had to cut.
    async fn accept(self: Arc<Self>, listener: TcpListener) -> usize {
        let mut connections = JoinSet::new();
        let mut stop = pin!(comes(self.stage.clone(), Stage::Closing));
        let mut pause = Pause::default();
        loop {
            tokio::select! {
                () = &mut stop => break,
                accepted = listener.accept() => match accepted {
                    Ok((stream, address)) => {
                        pause = Pause::default();
                        self.welcome(&mut connections, stream, address);
                    }
                    Err(error) => pause.after(error, "cannot accept connections").await,
                },
                Some(ended) = connections.join_next() => tell_of_panic(ended, TASK),
            }
        }
        self.close(listener, &mut connections);
        let drained = tokio::time::timeout(self.terms.drain_timeout, end_of(&mut connections, TASK));
        let whole = tokio::select! {
            drained = drained => drained.is_ok(),
            () = comes(self.stage.clone(), Stage::Cutting) => false,
        };
        if whole { 0 } else { connections.len() }
    }

    /// Closes the listener. Connections that the kernel has accepted already are still served: their request may be on
    /// its way, and would be lost.
    fn close(self: &Arc<Self>, listener: TcpListener, connections: &mut JoinSet<()>) {
        let Ok(listener) = listener.into_std() else { return };
        // Bounded: they may arrive as fast as they are accepted.
        for (stream, address) in std::iter::from_fn(|| listener.accept().ok()).take(QUEUE) {
            if let Ok(stream) = stream.set_nonblocking(true).and_then(|()| TcpStream::from_std(stream)) {
                self.welcome(connections, stream, address);
            }
        }
    }

    fn welcome(self: &Arc<Self>, connections: &mut JoinSet<()>, stream: TcpStream, address: SocketAddr) {
        let address = SocketAddr::new(address.ip().to_canonical(), address.port());
        let Ok(place) = Caps::admit(&self.terms.caps, address.ip()) else { return };
        // Responses are small and complete: waiting for more bytes would only delay them.
        let _ = stream.set_nodelay(true);
        let room = Arc::clone(self);
        connections.spawn(async move {
            room.greet(stream, address, &place).await;
        });
    }

    /// Ready once nothing more is to be expected of a connection: at the end, unless it has only just come and sent no
    /// request yet.
    async fn time_to_go(&self, came: Instant, was_asked: impl Fn() -> bool) {
        comes(self.stage.clone(), Stage::Closing).await;
        if !was_asked() {
            tokio::time::sleep_until(came + self.terms.hear_out).await;
        }
    }

    /// Returns the protocol of a connection without TLS, once something is sent: until then, it needs no memory for a
    /// request. `None` if nothing comes in time.
    async fn spoken(&self, stream: &TcpStream, came: Instant, place: &Place) -> Option<&Builder<TokioExecutor>> {
        let mut first = [0; HTTP2.len()];
        let heard = tokio::time::timeout_at(came + self.terms.header_timeout, stream.peek(&mut first));
        let bytes = tokio::select! {
            heard = heard => heard.inspect_err(|_| place.cut(Cut::Silent)).ok()?.ok()?,
            () = self.time_to_go(came, || false) => return None,
            () = makes_way(place, came + self.terms.quiet) => return None,
        };
        Some(if HTTP2.starts_with(&first[..bytes]) { &self.either } else { &self.http1 })
    }

    /// Does the TLS handshake, if there is TLS, then HTTP.
    async fn greet(&self, stream: TcpStream, address: SocketAddr, place: &Place) {
        let came = Instant::now();
        let Some(tls) = &self.terms.tls else {
            let Some(builder) = self.spoken(&stream, came, place).await else {
                return tracing::debug!(%address, "connection waited too long");
            };
            return self.converse((stream, came, came), builder, (Peer { address, tls: false }, place)).await;
        };
        let handshake = tokio::time::timeout(self.terms.header_timeout, TlsReload::acceptor(tls).accept(stream));
        let stream = tokio::select! {
            done = handshake => done,
            () = self.time_to_go(came, || false) => return,
            () = makes_way(place, came + self.terms.quiet) => return,
        };
        match stream {
            Ok(Ok(stream)) => {
                let builder =
                    if stream.get_ref().1.alpn_protocol() == Some(b"h2") { &self.either } else { &self.http1 };
                let peer = Peer { address, tls: true };
                Box::pin(self.converse((stream, came, Instant::now()), builder, (peer, place))).await;
            }
            Ok(Err(error)) => {
                tls.fails();
                tracing::debug!(%address, %error, "TLS handshake failed");
            }
            Err(_) => {
                place.cut(Cut::Handshake);
                tracing::debug!(%address, "TLS handshake took too long");
            }
        }
    }

    /// Answers a request.
    fn answer(
        &self,
        mut request: Request<Incoming>,
        clock: &Arc<Clock>,
        peer: Peer,
    ) -> impl Future<Output = Result<Response, Infallible>> + Send + use<S> {
        let multiplexed = request.version() == hyper::Version::HTTP_2;
        // With HTTP/2, bytes of requests were not counted in the first place.
        let told = if multiplexed { 0 } else { told_bytes(&request) };
        let running = clock.request((multiplexed, told), || self.terms.caps.admit(peer.address.ip()));
        request.extensions_mut().insert(peer);
        // The buffer's limit applies to bytes before a head is complete, not to a complete head.
        let fits = multiplexed || head_bytes(&request) <= HEADER_BYTES;
        let request = request.map(|body| clock.coming(body));
        let asked = match running {
            Err(full) => Err(too_many(full)),
            Ok(_) if !fits => Err(too_large()),
            Ok(running) => Ok((running, self.service.clone().oneshot(request))),
        };
        answered(asked, multiplexed, self.stage.clone())
    }

    /// Speaks HTTP on a connection that `came` then and was first listened to at `since`, until either side ends it,
    /// its clock runs out, it has to make way, or the server stops.
    async fn converse<IO>(
        &self,
        (stream, came, since): (IO, Instant, Instant),
        builder: &Builder<TokioExecutor>,
        (peer, place): (Peer, &Place),
    ) where
        IO: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let clock = Clock::start(since, self.terms.header_timeout, self.terms.idle_timeout, self.linger);
        let io = TokioIo::new(Watched::new(stream, Arc::clone(&clock)));
        let mut alarm = Alarm::new(Arc::clone(&clock));
        let answer = service_fn(|request: Request<Incoming>| self.answer(request, &clock, peer));
        let mut connection = pin!(builder.serve_connection(io, answer));
        let mut leave = pin!(comes(self.stage.clone(), Stage::Leaving));
        let mut stop = pin!(self.time_to_go(came, || clock.was_asked()));
        let (mut leaving, mut stopping, mut farewell) = (false, false, Farewell::default());
        let (mut made_to_go, mut aside) = (pin!(place.made_to_go()), pin!(place.asked_aside()));
        let (mut makes_way, mut steps_aside, mut told_off) = (false, false, false);
        let ended = std::future::poll_fn(|context| {
            leaving = leaving || leave.as_mut().poll(context).is_ready();
            // HTTP/2 says which requests it still takes (RFC 9113, 6.8): the client may send the others elsewhere.
            if leaving && !stopping && (clock.multiplexed() || stop.as_mut().poll(context).is_ready()) {
                stopping = true;
                connection.as_mut().graceful_shutdown();
            }
            if let Poll::Ready(ended) = connection.as_mut().poll(context) {
                return Poll::Ready(Some(ended));
            }
            // RFC 9113, 5.4.1: with a GOAWAY, so that other users' requests on it are answered.
            if !told_off && clock.said_too_much().is_some() {
                told_off = true;
                connection.as_mut().graceful_shutdown();
                if let Poll::Ready(ended) = connection.as_mut().poll(context) {
                    return Poll::Ready(Some(ended));
                }
            }
            if stopping && (clock.lingers() || farewell.poll(context, clock.is_done()).is_ready()) {
                return Poll::Ready(Some(Ok(())));
            }
            let quiet = || clock.is_quiet(self.terms.quiet);
            if !steps_aside && has_to_go(aside.as_mut(), context, quiet, || place.asked_aside()) {
                // A part of a response may still be on its way, and HTTP/2 announces which requests it no longer takes.
                steps_aside = true;
                if !clock.is_done() {
                    return Poll::Ready(None);
                }
                connection.as_mut().graceful_shutdown();
                if let Poll::Ready(ended) = connection.as_mut().poll(context) {
                    return Poll::Ready(Some(ended));
                }
            }
            // Not while a request with its whole body is answered: it makes way when it is told the next time.
            makes_way =
                has_to_go(made_to_go.as_mut(), context, || clock.is_idle(self.terms.quiet), || place.made_to_go());
            if makes_way {
                return Poll::Ready(None);
            }
            match alarm.poll(context) {
                // As at a stop: with TLS and HTTP/2, a client that sends a request just then learns it was not read.
                Poll::Ready(()) if clock.is_done() => {
                    if !std::mem::replace(&mut stopping, true) {
                        connection.as_mut().graceful_shutdown();
                        context.waker().wake_by_ref();
                    }
                    Poll::Pending
                }
                over => over.map(|()| None),
            }
        });
        let ended = ended.await;
        farewell::told(peer.address, (place, &clock), &ended, makes_way || steps_aside);
    }
}

/// Returns the response to an admitted request, or its refusal. With HTTP/1 it says whether it is the last one here: at
/// a stop, and if a body's rest would have to be read to find the next request (RFC 9112, 9.6; RFC 9110, 10.1.1).
async fn answered<E>(
    asked: Result<(Running, impl Future<Output = Result<Response, E>>), Response>,
    multiplexed: bool,
    stage: watch::Receiver<Stage>,
) -> Result<Response, E> {
    let (running, answer) = match asked {
        Ok(asked) => asked,
        Err(refused) => return Ok(refused),
    };
    let mut answer = answer.await;
    let is_last = !multiplexed && (running.leaves_body() || *stage.borrow() != Stage::Serving);
    if let (Ok(response), true) = (&mut answer, is_last) {
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    answer.map(|response| response.map(|body| running.answered(body)))
}

/// Returns whether the connection was told to go and may; if it may not go yet, it waits to be told again.
fn has_to_go(
    mut told: Pin<&mut Option<OwnedNotified>>,
    context: &mut Context<'_>,
    may: impl Fn() -> bool,
    again: impl Fn() -> Option<OwnedNotified>,
) -> bool {
    while told.as_mut().as_pin_mut().is_some_and(|told| told.poll(context).is_ready()) {
        if may() {
            return true;
        }
        told.set(again());
    }
    false
}

/// Returns the size of the target and the headers of an HTTP/1 request, as they are sent.
fn head_bytes(request: &Request<Incoming>) -> usize {
    let (uri, headers) = (request.uri(), request.headers().iter());
    let headers = headers.map(|(name, value)| name.as_str().len() + value.len() + ": \r\n".len());
    uri.path().len() + uri.query().map_or(0, str::len) + headers.sum::<usize>()
}

/// Returns the bytes that a request has taken, as far as it says: its target, its headers, and the beginning of a body.
fn told_bytes(request: &Request<Incoming>) -> usize {
    let announced = request.headers().get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
    head_bytes(request) + announced.unwrap_or(0).min(BODY_AHEAD)
}

/// Ready once a connection without a request has to make way: for others of its own address, only if it was quiet.
async fn makes_way(place: &Place, quiet: Instant) {
    let (Some(told), Some(mut aside)) = (place.made_to_go(), place.asked_aside()) else {
        return std::future::pending().await;
    };
    let steps_aside = async {
        loop {
            aside.await;
            match place.asked_aside() {
                Some(again) if Instant::now() < quiet => aside = again,
                _ => return,
            }
        }
    };
    tokio::select! {
        () = told => {}
        () = steps_aside => {}
    }
    place.cut(Cut::MadeWay);
}

/// Ready once that stage has come.
async fn comes(mut stage: watch::Receiver<Stage>, awaited: Stage) {
    // An error means that `serve` itself was dropped, which is the same.
    let _ = stage.wait_for(|stage| *stage >= awaited).await;
}
