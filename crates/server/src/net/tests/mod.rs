//! A listener on loopback with a tiny router, and clients that behave badly.

mod closing;
mod http2;
mod loops;
mod stop;
mod tls;
mod untaken;
mod waiting;

use super::serve::{Stopped, serve_lingering};
use super::*;
use axum::Router;
use axum::body::Body;
use axum::extract::Extension;
use axum::http::StatusCode;
use axum::routing::{get, post};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;

/// Long enough never to cause a failure on a slow machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// Terms that never take effect; a test shortens the one that it is about.
fn generous() -> Terms {
    let caps = Caps::new(1000, 1000, Vec::new());
    Terms {
        header_timeout: PATIENCE,
        idle_timeout: PATIENCE,
        stop_delay: Duration::ZERO,
        hear_out: Duration::ZERO,
        quiet: PATIENCE,
        drain_timeout: PATIENCE,
        caps,
        tls: None,
        hears_hangups: true,
    }
}

async fn whole_body(body: Body) -> (StatusCode, String) {
    body_within(Duration::from_millis(300), body).await
}

async fn body_within(time: Duration, body: Body) -> (StatusCode, String) {
    match Bodies::new(1000, time).read(body).await {
        Ok(bytes) => (StatusCode::OK, bytes.len().to_string()),
        Err(BodyError::TooLarge) => (StatusCode::PAYLOAD_TOO_LARGE, String::new()),
        Err(BodyError::TooSlow) => (StatusCode::REQUEST_TIMEOUT, String::new()),
        Err(BodyError::Broken) => (StatusCode::BAD_REQUEST, String::new()),
        Err(BodyError::NoRoom) => (StatusCode::SERVICE_UNAVAILABLE, String::new()),
    }
}

/// `/slow` runs until `over` says so, and `/forever` even then; both listen to it while they run.
fn router(over: watch::Sender<bool>) -> Router {
    let unheard = over.clone();
    let slow = move || {
        let mut over = over.subscribe();
        async move {
            drop(over.wait_for(|over| *over).await);
            "slow but whole"
        }
    };
    let forever = move || {
        let runs = unheard.subscribe();
        async move {
            std::future::pending::<()>().await;
            drop(runs);
            "never"
        }
    };
    Router::new()
        .route(
            "/",
            get(|Extension(peer): Extension<Peer>| async move { format!("{} {}", peer.address.ip(), peer.tls) }),
        )
        .route("/slow", get(slow))
        .route("/forever", get(forever))
        .route("/panic", get(|| async { panic!("a fault in a handler") as &'static str }))
        .route("/page", get(|| async { vec![b'x'; 4096] }))
        .route("/sheet", get(|| async { vec![b'x'; 60_000] }))
        .route("/large", get(|| async { vec![b'x'; 32 << 20] }))
        .route("/body", post(whole_body))
        .route("/patient", post(|body| body_within(PATIENCE, body)))
}

struct Server {
    address: SocketAddr,
    stop: mpsc::UnboundedSender<()>,
    /// Set when `/slow` may end.
    over: watch::Sender<bool>,
    done: JoinHandle<Stopped>,
}

impl Server {
    fn start(terms: Terms) -> Self {
        Server::lingering(PATIENCE, terms)
    }

    /// Starts a server that gives clients that are still sending so long to close their connections.
    fn lingering(linger: Duration, terms: Terms) -> Self {
        let listeners = Listeners::bind(&["127.0.0.1:0".parse().unwrap()], false).unwrap();
        let address = listeners.addresses()[0];
        let (stop, told) = mpsc::unbounded_channel();
        let over = watch::Sender::new(false);
        let served = serve_lingering(linger, listeners, terms, router(over.clone()), told);
        #[allow(clippy::disallowed_methods, reason = "a test's server ends with its runtime")]
        let done = tokio::spawn(served);
        Server { address, stop, over, done }
    }

    /// Waits until so many requests for `/slow` and `/forever` are running.
    async fn until_running(&self, count: usize) {
        let all = async {
            while self.over.receiver_count() < count {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(PATIENCE / 2, all).await.expect("requests run");
    }

    async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).await.unwrap()
    }

    /// Sends `text` on a new connection; returns all that comes until the server closes it.
    async fn tell(&self, text: &str) -> String {
        let mut stream = self.connect().await;
        stream.write_all(text.as_bytes()).await.unwrap();
        until_closed(&mut stream).await
    }

    async fn get(&self, path: &str) -> String {
        self.tell(&format!("GET {path} HTTP/1.1\r\nhost: a.test\r\nconnection: close\r\n\r\n")).await
    }
}

/// Reads until the other side closes; panics if it does not.
async fn until_closed(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    let read = tokio::time::timeout(PATIENCE / 2, stream.read_to_end(&mut bytes)).await;
    // A reset is also a way to close.
    let _ = read.expect("the server keeps the connection open");
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Reads one response whose whole text ends in `end`.
async fn until(stream: &mut TcpStream, end: &str) -> String {
    let mut text = String::new();
    let mut buffer = [0; 1024];
    while !text.ends_with(end) {
        let count = tokio::time::timeout(PATIENCE / 2, stream.read(&mut buffer)).await.unwrap().unwrap();
        assert!(count > 0, "closed after {text:?}");
        text.push_str(&String::from_utf8_lossy(&buffer[..count]));
    }
    text
}

#[tokio::test]
async fn a_request_knows_its_peer() {
    let server = Server::start(generous());
    let answer = server.get("/").await;
    assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("127.0.0.1 false"), "{answer}");
}

#[tokio::test]
async fn a_fault_in_a_handler_ends_its_connection_only() {
    let server = Server::start(generous());
    assert_eq!(server.get("/panic").await, "");
    assert!(server.get("/").await.starts_with("HTTP/1.1 200"));
}

#[tokio::test]
async fn rfc_6585_5_headers_beyond_their_limits_are_431() {
    let server = Server::start(generous());
    let many: String = (0..101).map(|n| format!("x-{n}: y\r\n")).collect();
    let few: String = (0..90).map(|n| format!("x-{n}: y\r\n")).collect();
    let huge = format!("x: {}\r\n", "y".repeat(33 << 10));
    // The target counts, too: red where the headers alone are measured.
    let long = "x".repeat(33 << 10);
    let (path, query) = (format!("/{long}"), format!("/?{long}"));
    for (target, headers, status) in
        [("/", &*many, "431"), ("/", &few, "200"), ("/", &huge, "431"), (&path, "", "431"), (&query, "", "431")]
    {
        let answer = server.tell(&format!("GET {target} HTTP/1.1\r\nconnection: close\r\n{headers}\r\n")).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{answer}");
    }
}

#[tokio::test]
async fn rfc_9112_6_1_a_request_whose_length_is_said_twice_is_the_last_one() {
    // Red only with another HTTP library: an intermediary may have taken the rest for a part of the first request.
    let server = Server::start(generous());
    let (length, chunked) = ("content-length: 5\r\n", "transfer-encoding: chunked\r\n");
    for framing in [format!("{length}{chunked}"), format!("{chunked}{length}")] {
        let second = "GET / HTTP/1.1\r\nhost: a.test\r\n\r\n";
        let first = format!("POST /body HTTP/1.1\r\nhost: a.test\r\n{framing}\r\n0\r\n\r\n");
        let answers = server.tell(&format!("{first}{second}")).await;
        assert_eq!(answers.matches("HTTP/1.1 ").count(), 1, "{answers}");
    }
}

#[tokio::test]
async fn connections_beyond_the_total_are_closed_at_once() {
    let caps = Caps::new(2, 2, Vec::new());
    let server = Server::start(Terms { caps: Arc::clone(&caps), ..generous() });
    let mut first = server.connect().await;
    let _second = server.connect().await;
    assert_eq!(server.get("/").await, "");
    assert_eq!((caps.open(), caps.refused()), (2, [("total", 1), ("address", 0)]));
    first.write_all(b"GET / HTTP/1.1\r\nconnection: close\r\n\r\n").await.unwrap();
    assert!(until_closed(&mut first).await.starts_with("HTTP/1.1 200"));
    drop(first);
    while caps.open() == 2 {
        tokio::task::yield_now().await;
    }
    assert!(server.get("/").await.starts_with("HTTP/1.1 200"));
}

#[tokio::test]
async fn of_one_address_those_that_are_quiet_go_before_there_are_too_many_and_nobody_else() {
    // Red without asked_aside in serve.rs, converse or makes_way; or with is_idle in place of is_quiet.
    let (caps, quiet) = (Caps::counting_all(100, 8), Duration::from_millis(300));
    let server = Server::start(Terms { caps: Arc::clone(&caps), quiet, ..generous() });
    let mut slow = server.connect().await;
    slow.write_all(b"GET /slow HTTP/1.1\r\nconnection: close\r\n\r\n").await.unwrap();
    let mut silent = server.connect().await;
    let mut half = server.connect().await;
    let head = "POST /patient HTTP/1.1\r\nhost: a.test\r\nexpect: 100-continue\r\ncontent-length: 5\r\n\r\n12";
    half.write_all(head.as_bytes()).await.unwrap();
    until(&mut half, "100 Continue\r\n\r\n").await;
    let mut done = [server.connect().await, server.connect().await, server.connect().await, server.connect().await];
    for stream in &mut done {
        stream.write_all(b"GET / HTTP/1.1\r\n\r\n").await.unwrap();
        until(stream, "127.0.0.1 false").await;
    }
    tokio::time::sleep(2 * quiet).await;
    let mut last = server.connect().await;
    for stream in done.iter_mut().chain([&mut silent]) {
        assert_eq!(until_closed(stream).await, "");
    }
    last.write_all(b"GET / HTTP/1.1\r\nconnection: close\r\n\r\n").await.unwrap();
    assert!(until_closed(&mut last).await.starts_with("HTTP/1.1 200"));
    half.write_all(b"345").await.unwrap();
    assert!(until(&mut half, "\r\n\r\n5").await.starts_with("HTTP/1.1 200"));
    server.over.send_replace(true);
    assert!(until_closed(&mut slow).await.ends_with("slow but whole"));
    assert_eq!(caps.cut(), [("handshake", 0), ("silent", 0), ("untaken", 0), ("made_way", 5), ("chatter", 0)]);
    assert_eq!(caps.refused(), [("total", 0), ("address", 0)]);
}

#[tokio::test]
async fn who_was_answered_a_moment_ago_does_not_go_for_others_of_the_same_address() {
    // Red where is_done alone decides: the next request may be on its way.
    let caps = Caps::counting_all(100, 8);
    let server = Server::start(Terms { caps: Arc::clone(&caps), ..generous() });
    let mut answered = Vec::new();
    for _ in 0..7 {
        let mut stream = server.connect().await;
        stream.write_all(b"GET / HTTP/1.1\r\n\r\n").await.unwrap();
        until(&mut stream, "127.0.0.1 false").await;
        answered.push(stream);
    }
    answered.push(server.connect().await);
    assert_eq!(server.get("/").await, "", "there are eight");
    for stream in &mut answered {
        stream.write_all(b"GET / HTTP/1.1\r\n\r\n").await.unwrap();
        until(stream, "127.0.0.1 false").await;
    }
    assert_eq!(caps.cut(), [("handshake", 0), ("silent", 0), ("untaken", 0), ("made_way", 0), ("chatter", 0)]);
}

#[tokio::test]
async fn connections_that_ask_nothing_make_way_for_others_and_requests_do_not() {
    // Requests that have not come completely do not count yet. Red without `Clock::coming`: with a body that comes byte
    // by byte, a connection is held for as long as a body may take, and the next request can come with the last byte.
    let caps = Caps::counting_all(6, 6);
    let server = Server::start(Terms { caps: Arc::clone(&caps), ..generous() });
    let mut slow = server.connect().await;
    slow.write_all(b"GET /slow HTTP/1.1\r\nconnection: close\r\n\r\n").await.unwrap();
    let mut kept = server.connect().await;
    kept.write_all(b"GET / HTTP/1.1\r\n\r\n").await.unwrap();
    until(&mut kept, "127.0.0.1 false").await;
    let mut silent = [server.connect().await, server.connect().await];
    let mut half = [server.connect().await, server.connect().await];
    let framings = ["content-length: 5\r\n\r\n12", "transfer-encoding: chunked\r\n\r\n2\r\n12\r\n"];
    for (stream, framing) in half.iter_mut().zip(framings) {
        let request = format!("POST /patient HTTP/1.1\r\nhost: a.test\r\nexpect: 100-continue\r\n{framing}");
        stream.write_all(request.as_bytes()).await.unwrap();
        // Sent once the body is asked for.
        until(stream, "100 Continue\r\n\r\n").await;
    }
    let all = async {
        while caps.open() < 6 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, all).await.expect("six connections");
    assert_eq!(caps.admit("192.0.2.1".parse().unwrap()).err(), Some(Full::OfAll));
    assert_eq!(until_closed(&mut kept).await, "");
    for stream in &mut half {
        assert_eq!(until_closed(stream).await.trim(), "");
    }
    for stream in &mut silent {
        assert_eq!(until_closed(stream).await, "");
    }
    server.over.send_replace(true);
    assert!(until_closed(&mut slow).await.ends_with("slow but whole"));
    assert!(caps.admit("192.0.2.1".parse().unwrap()).is_ok());
    assert_eq!(caps.cut(), [("handshake", 0), ("silent", 0), ("untaken", 0), ("made_way", 5), ("chatter", 0)]);
}

#[tokio::test]
async fn a_port_in_use_is_one_clear_line() {
    let first = Listeners::bind(&["127.0.0.1:0".parse().unwrap()], false).unwrap();
    let taken = first.addresses()[0];
    let error = Listeners::bind(&[taken], true).unwrap_err();
    assert!(matches!(error, ListenError::InUse(address) if address == taken));
    let line = error.to_string();
    assert!(line.starts_with(&format!("{taken} is in use")) && !line.contains('\n'), "{line}");
    let foreign = Listeners::bind(&["192.0.2.1:0".parse().unwrap()], false).unwrap_err();
    assert_eq!(foreign.to_string(), "this machine has no address 192.0.2.1");
}

#[tokio::test]
async fn a_port_is_closed_until_it_is_listened_on() {
    // Red where Bound::to listens: whoever connects waits for a server that waits for its database.
    let bound = Bound::to(&["127.0.0.1:0".parse().unwrap()], false).unwrap();
    let address = bound.addresses()[0];
    let refused = TcpStream::connect(address).await.unwrap_err();
    assert_eq!(refused.kind(), std::io::ErrorKind::ConnectionRefused);
    // Two programs may bind an address on which nobody listens yet; one of them gets it.
    let other = Bound::to(&[address], false).unwrap();
    let listeners = bound.listen().unwrap();
    let late = other.listen().unwrap_err();
    assert!(matches!(late, ListenError::InUse(taken) if taken == address), "{late}");
    assert_eq!(listeners.addresses(), [address]);
    let (client, accepted) = tokio::join!(TcpStream::connect(address), listeners.0[0].accept());
    assert!(client.is_ok() && accepted.is_ok());
}

#[test]
fn the_limit_of_open_files_is_the_hard_one() {
    let raised = raise_nofile().unwrap();
    let now = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    assert_eq!((now.current, now.current.unwrap_or(u64::MAX)), (now.maximum, raised));
}
