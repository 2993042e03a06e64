//! HTTP/2 with prior knowledge (RFC 9113 §3.3), used well and badly.

use super::*;
use http_body_util::{BodyExt, Empty};
use hyper::body::Bytes;
use hyper::client::conn::http2::handshake;
use hyper_util::rt::{TokioExecutor, TokioIo};

pub(super) const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Makes a frame (RFC 9113 §4.1).
pub(super) fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut bytes = (payload.len() as u32).to_be_bytes()[1..].to_vec();
    bytes.extend([kind, flags]);
    bytes.extend(stream.to_be_bytes());
    bytes.extend(payload);
    bytes
}

#[tokio::test]
async fn many_requests_share_a_connection() {
    let server = Server::start(generous());
    let (sender, connection) = handshake(TokioExecutor::new(), TokioIo::new(server.connect().await)).await.unwrap();
    let mut requests = tokio::task::JoinSet::new();
    for _ in 0..50 {
        let mut sender = sender.clone();
        requests.spawn(async move {
            let uri = "http://a.test/".parse::<axum::http::Uri>().unwrap();
            let request = hyper::Request::builder().uri(uri).body(Empty::<Bytes>::new()).unwrap();
            sender.send_request(request).await.unwrap().into_body().collect().await.unwrap().to_bytes()
        });
    }
    drop(sender);
    let (answers, _) = tokio::join!(requests.join_all(), connection);
    assert!(answers.iter().all(|body| &body[..] == b"127.0.0.1 false"));
}

#[tokio::test]
async fn ds_07_a_flood_of_resets_closes_the_connection() {
    let server = Server::start(generous());
    let mut stream = server.connect().await;
    let mut flood = PREFACE.to_vec();
    flood.extend(frame(4, 0, 0, &[]));
    // :method GET, :scheme http, :path /, :authority a (RFC 7541 appendix A), then CANCEL.
    for id in (1..20_000).step_by(2) {
        flood.extend(frame(1, 5, id, &[0x82, 0x86, 0x84, 0x41, 0x01, b'a']));
        flood.extend(frame(3, 0, id, &8u32.to_be_bytes()));
    }
    let (mut reading, mut writing) = stream.split();
    let mut answer = Vec::new();
    let write = async { drop(writing.write_all(&flood).await) };
    let read =
        async { drop(tokio::time::timeout(PATIENCE / 2, reading.read_to_end(&mut answer)).await.expect("open")) };
    tokio::join!(write, read);
    assert!(server.get("/").await.starts_with("HTTP/1.1 200"));
}

#[tokio::test]
async fn ds_07_headers_without_end_close_the_connection() {
    let server = Server::start(generous());
    let mut stream = server.connect().await;
    let mut flood = PREFACE.to_vec();
    flood.extend(frame(4, 0, 0, &[]));
    flood.extend(frame(1, 1, 1, &[0x82, 0x86, 0x84, 0x41, 0x01, b'a']));
    // A literal field `x` whose value has 127 + 1 + 122 * 128 bytes (RFC 7541 §5.1).
    let mut field = vec![0x00, 0x01, b'x', 0x7f, 0x81, 0x7a];
    field.extend([b'y'; 15_744]);
    let (mut reading, mut writing) = stream.split();
    let write = async {
        let _ = writing.write_all(&flood).await;
        for _ in 0..2_000 {
            if writing.write_all(&frame(9, 0, 1, &field)).await.is_err() {
                break;
            }
        }
    };
    let mut answer = Vec::new();
    let read =
        async { drop(tokio::time::timeout(PATIENCE / 2, reading.read_to_end(&mut answer)).await.expect("open")) };
    tokio::join!(write, read);
}

#[tokio::test]
async fn frames_that_ask_for_nothing_close_the_connection() {
    // CVE-2019-9512, CVE-2019-9515 and the like (RFC 9113 §10.5). Red without `Chatter`.
    let terms = generous();
    let caps = Arc::clone(&terms.caps);
    let server = Server::start(terms);
    let kinds = [
        frame(8, 0, 0, &1u32.to_be_bytes()),
        frame(4, 0, 0, &[]),
        frame(6, 0, 0, &[0; 8]),
        frame(2, 0, 1, &[0, 0, 0, 0, 9]),
    ];
    for one in kinds {
        let mut stream = server.connect().await;
        let mut opening = PREFACE.to_vec();
        opening.extend(frame(4, 0, 0, &[]));
        opening.extend(frame(1, 5, 1, &[0x82, 0x86, 0x84, 0x41, 0x01, b'a']));
        let (mut reading, mut writing) = stream.split();
        let write = async {
            let _ = writing.write_all(&opening).await;
            let many = one.repeat(1_000);
            let mut said = 0;
            while writing.write_all(&many).await.is_ok() {
                said += many.len();
                assert!(said < 64 << 20, "{one:?}: {said} bytes and still open");
            }
        };
        let mut answer = Vec::new();
        let read = async { drop(reading.read_to_end(&mut answer).await) };
        tokio::join!(write, read);
    }
    let cut = caps.cut().into_iter().find(|(why, _)| *why == "chatter");
    // h2 itself ends some of them.
    assert!(cut.is_some_and(|(_, cut)| cut >= 1), "{cut:?}");
}

#[tokio::test]
async fn little_that_is_asked_does_not_pay_for_much_that_is_said() {
    // Red where each request, or each announced body, gives back much more than it takes.
    for (flags, asks) in [(5, fields("GET", "/")), (4, fields("POST", "/body"))] {
        let server = Server::start(generous());
        let mut stream = server.connect().await;
        let (mut reading, mut writing) = stream.split();
        let write = async {
            let mut opening = PREFACE.to_vec();
            opening.extend(frame(4, 0, 0, &[]));
            let _ = writing.write_all(&opening).await;
            let pings = frame(6, 0, 0, &[0; 8]).repeat(2_000);
            for id in (1..).step_by(2) {
                let round = [frame(1, flags, id, &asks), pings.clone()].concat();
                if writing.write_all(&round).await.is_err() {
                    break;
                }
                assert!(id < 4_000, "{id}: still open");
            }
        };
        let mut answer = Vec::new();
        let read = async { drop(reading.read_to_end(&mut answer).await) };
        tokio::join!(write, read);
    }
}

#[tokio::test]
async fn what_is_asked_pays_for_what_is_said() {
    // Red without `Frames`, which counts these bytes as heads and bodies: they are more than any chatter may be.
    let server = Server::start(generous());
    let (mut sender, connection) = handshake(TokioExecutor::new(), TokioIo::new(server.connect().await)).await.unwrap();
    let asks = async move {
        for number in 0..400 {
            let uri = format!("http://a.test/body?{}", "x".repeat(number)).parse::<axum::http::Uri>().unwrap();
            let request = hyper::Request::post(uri).header("x-long", "y".repeat(1_000 + number));
            let body = http_body_util::Full::new(Bytes::from(vec![b'z'; 900]));
            let answer = sender.send_request(request.body(body).unwrap()).await.unwrap();
            answer.into_body().collect().await.unwrap();
        }
    };
    let ((), ended) = tokio::join!(asks, connection);
    ended.unwrap();
}

#[tokio::test]
async fn each_request_pays_for_the_frames_around_it() {
    // Red without `was_of_a_request` in `Clock::request`: these window updates are twice the chatter that is allowed.
    let server = Server::start(generous());
    let mut stream = server.connect().await;
    stream.write_all(&[PREFACE, &frame(4, 0, 0, &[])].concat()).await.unwrap();
    let updates = frame(8, 0, 0, &1u32.to_be_bytes()).repeat(70);
    for id in (1..1_200).step_by(2) {
        let round = [updates.clone(), frame(1, 5, id, &fields("GET", "/"))].concat();
        stream.write_all(&round).await.unwrap();
        assert_eq!(answered(&mut stream, id).await[0], OK);
    }
}

/// `:status: 200` (RFC 7541, appendix A).
const OK: u8 = 0x88;

/// Reads up to the head of the response on that stream; panics if the connection ends, or a GOAWAY comes.
async fn answered(stream: &mut TcpStream, id: u32) -> Vec<u8> {
    loop {
        let mut head = [0; 9];
        tokio::time::timeout(PATIENCE, stream.read_exact(&mut head)).await.unwrap().expect("closed");
        let [high, middle, low, kind, _, of @ ..] = head;
        let mut payload = vec![0; u32::from_be_bytes([0, high, middle, low]) as usize];
        tokio::time::timeout(PATIENCE, stream.read_exact(&mut payload)).await.unwrap().expect("closed");
        assert_ne!(kind, 7, "GOAWAY before the answer to {id}");
        if (kind, u32::from_be_bytes(of)) == (1, id) {
            return payload;
        }
    }
}

#[tokio::test]
async fn bodies_that_are_refused_end_no_connection() {
    // Red without `grant`: behind a proxy, other users' requests are on it. The first body is refused for its announced
    // size, the second for the bytes that came, the third unread.
    let announced = [&fields("POST", "/body")[..], &[0x0f, 0x0d, 5], b"65535"].concat();
    for asks in [announced, fields("POST", "/body"), fields("POST", "/nowhere")] {
        let server = Server::start(generous());
        let mut stream = server.connect().await;
        stream.write_all(&[PREFACE, &frame(4, 0, 0, &[])].concat()).await.unwrap();
        for id in (1..60).step_by(2) {
            let mut round = frame(1, 4, id, &asks);
            for (flags, size) in [(0, 16_384), (0, 16_384), (0, 16_384), (1, 16_383)] {
                round.extend(frame(0, flags, id, &vec![b'z'; size]));
            }
            stream.write_all(&round).await.unwrap();
            assert_ne!(answered(&mut stream, id).await[0], OK);
        }
        stream.write_all(&frame(1, 5, 61, &fields("GET", "/"))).await.unwrap();
        assert_eq!(answered(&mut stream, 61).await[0], OK);
    }
}

#[tokio::test]
async fn heads_that_are_refused_end_no_connection() {
    // Red where `Frames` counts HEADERS or CONTINUATION: the library itself answers these with 431.
    let server = Server::start(generous());
    let mut stream = server.connect().await;
    stream.write_all(&[PREFACE, &frame(4, 0, 0, &[])].concat()).await.unwrap();
    // A literal field `x` whose value has 127 + 105 + 6 * 128 bytes (RFC 7541 §5.1).
    let field = [&[0x00, 0x01, b'x', 0x7f, 0xe9, 0x06], &[b'y'; 1_000][..]].concat();
    let head = [fields("GET", "/"), field.repeat(33)].concat();
    for id in (1..60).step_by(2) {
        let parts: Vec<_> = head.chunks(16_384).collect();
        let mut round = frame(1, 1, id, parts[0]);
        for (number, part) in parts.iter().enumerate().skip(1) {
            round.extend(frame(9, if number + 1 == parts.len() { 4 } else { 0 }, id, part));
        }
        stream.write_all(&round).await.unwrap();
        assert_ne!(answered(&mut stream, id).await[0], OK);
    }
    stream.write_all(&frame(1, 5, 61, &fields("GET", "/"))).await.unwrap();
    assert_eq!(answered(&mut stream, 61).await[0], OK);
}

#[tokio::test]
async fn data_that_nobody_asked_for_is_chatter() {
    // Red where all DATA is granted: this request was answered before, and its body is not read.
    is_chatter(&frame(0, 0, 1, &[b'z'; 1_000])).await;
}

#[tokio::test]
async fn heads_of_a_request_that_was_answered_are_chatter() {
    // Red where `Frames` takes all HEADERS for those of a request: the library reads these and drops them.
    is_chatter(&frame(1, 4, 1, &[0x82; 16_000])).await;
}

/// Checks that a client that sends this again and again after the response is cut for it.
async fn is_chatter(said_again: &[u8]) {
    let terms = generous();
    let caps = Arc::clone(&terms.caps);
    let server = Server::start(terms);
    let mut stream = server.connect().await;
    let opening = [PREFACE, &frame(4, 0, 0, &[]), &frame(1, 4, 1, &fields("POST", "/nowhere"))].concat();
    stream.write_all(&opening).await.unwrap();
    assert_ne!(answered(&mut stream, 1).await[0], OK);
    let (mut reading, mut writing) = stream.split();
    let write = async {
        let (data, mut said) = (said_again.repeat(16), 0);
        while writing.write_all(&data).await.is_ok() {
            said += data.len();
            assert!(said < 64 << 20, "{said} bytes and still open");
        }
    };
    let mut answer = Vec::new();
    let read = async { drop(reading.read_to_end(&mut answer).await) };
    tokio::join!(write, read);
    until_chatter(&caps).await;
}

#[tokio::test]
async fn rfc_9113_5_4_1_who_says_too_much_is_told_to_go_and_what_was_asked_is_answered() {
    // Red without `graceful_shutdown` for `said_too_much`, or where the connection is cut at once.
    let terms = generous();
    let caps = Arc::clone(&terms.caps);
    let server = Server::start(terms);
    let mut stream = server.connect().await;
    let (mut reading, mut writing) = stream.split();
    let asked = [PREFACE, &frame(4, 0, 0, &[]), &frame(1, 5, 1, &fields("GET", "/slow"))].concat();
    let pings = frame(6, 0, 0, &[0; 8]).repeat(20_000);
    let write = async { writing.write_all(&[asked, pings].concat()).await.unwrap() };
    let told = async {
        // GOAWAY: its type, no flags, on stream 0.
        until_bytes(&mut reading, &[7, 0, 0, 0, 0, 0]).await;
        server.over.send_replace(true);
        until_bytes(&mut reading, b"slow but whol").await
    };
    tokio::join!(write, told);
    drop(stream);
    until_chatter(&caps).await;
}

#[tokio::test]
async fn pings_do_not_keep_a_connection_open() {
    let server = Server::start(Terms { idle_timeout: Duration::from_millis(400), ..generous() });
    let mut stream = server.connect().await;
    let mut opening = PREFACE.to_vec();
    opening.extend(frame(4, 0, 0, &[]));
    opening.extend(frame(1, 5, 1, &[0x82, 0x86, 0x84, 0x41, 0x01, b'a']));
    stream.write_all(&opening).await.unwrap();
    let start = tokio::time::Instant::now();
    while stream.write_all(&frame(6, 0, 0, &[0; 8])).await.is_ok() {
        tokio::time::sleep(Duration::from_millis(50)).await;
        assert!(start.elapsed() < PATIENCE / 2, "pings keep the connection open");
    }
}

/// Makes a request's fields (RFC 7541 §6.2.2), with names of its appendix A.
pub(super) fn fields(method: &str, path: &str) -> Vec<u8> {
    let mut bytes = vec![0x86, 0x01, 0x01, b'a'];
    for (name, value) in [(2, method), (4, path)] {
        bytes.extend([name, value.len() as u8]);
        bytes.extend(value.as_bytes());
    }
    bytes
}

/// Sends GETs for `path` at once on one connection; returns the statuses of those answered before `sender` is dropped.
async fn asked_at_once(server: &Server, path: &str, times: usize) -> Vec<u16> {
    let (sender, connection) = handshake(TokioExecutor::new(), TokioIo::new(server.connect().await)).await.unwrap();
    let mut requests = tokio::task::JoinSet::new();
    for _ in 0..times {
        let (mut sender, uri) = (sender.clone(), format!("http://a.test{path}"));
        requests.spawn(async move {
            let request = hyper::Request::builder().uri(uri).body(Empty::<Bytes>::new()).unwrap();
            let answer = sender.send_request(request).await.unwrap();
            assert_eq!(answer.headers().contains_key("retry-after"), answer.status() != 200);
            answer.status().as_u16()
        });
    }
    drop(sender);
    let (mut statuses, _) = tokio::join!(requests.join_all(), connection);
    statuses.sort_unstable();
    statuses
}

#[tokio::test]
async fn a_request_beside_others_takes_the_place_of_a_connection() {
    // Red without `further` in `Clock::request`; for the second round, without `_place` in `Taken` or `Drop for Place`.
    let caps = Caps::new(3, 1000, Vec::new());
    let server = Server::start(Terms { caps: Arc::clone(&caps), ..generous() });
    let refused = || caps.refused().iter().map(|(_, count)| count).sum::<u64>();
    for round in 1..=2 {
        server.over.send_replace(false);
        let later = async {
            while refused() < 2 * round {
                tokio::task::yield_now().await;
            }
            server.over.send_replace(true);
        };
        let (statuses, ()) = tokio::join!(asked_at_once(&server, "/slow", 5), later);
        assert_eq!(statuses, [200, 200, 200, 503, 503]);
        while caps.open() > 0 {
            tokio::task::yield_now().await;
        }
    }
    assert_eq!(refused(), 4);
}

/// A client that sends a request just then is told that it may send it again elsewhere (RFC 9113, 6.8).
#[tokio::test]
async fn who_steps_aside_for_others_says_which_requests_it_takes_no_more() {
    // Red where serve.rs drops the connection instead of calling graceful_shutdown.
    let (caps, quiet) = (Caps::counting_all(100, 8), Duration::from_millis(300));
    let server = Server::start(Terms { caps: Arc::clone(&caps), quiet, ..generous() });
    let mut stream = server.connect().await;
    // GET /, from HPACK's static table, except for the authority.
    let get = frame(1, 5, 1, &[0x82, 0x84, 0x86, 0x41, 1, b'a']);
    stream.write_all(&[PREFACE, &frame(4, 0, 0, &[]), &get].concat()).await.unwrap();
    until_bytes(&mut stream, b"127.0.0.1 fals").await;
    tokio::time::sleep(2 * quiet).await;
    let mut others = Vec::new();
    for _ in 0..7 {
        others.push(server.connect().await);
    }
    // The type of GOAWAY, no flags, stream 0.
    until_bytes(&mut stream, &[7, 0, 0, 0, 0, 0]).await;
}

/// Reads until these bytes came in one piece. The last byte of a body comes by itself: see `Taken` in net/clock.rs.
async fn until_bytes(stream: &mut (impl AsyncReadExt + Unpin), wanted: &[u8]) -> Vec<u8> {
    let (mut bytes, mut buffer, mut seen) = (Vec::<u8>::new(), [0; 1024], 0);
    while !bytes[seen..].windows(wanted.len()).any(|window| window == wanted) {
        seen = bytes.len().saturating_sub(wanted.len());
        let count = tokio::time::timeout(PATIENCE, stream.read(&mut buffer)).await.unwrap().unwrap();
        assert!(count > 0, "closed after {bytes:?}");
        bytes.extend(&buffer[..count]);
    }
    bytes
}

/// Waits until a connection is counted as cut for its chatter.
async fn until_chatter(caps: &Caps) {
    let counted = async {
        while caps.cut().into_iter().all(|(why, count)| why != "chatter" || count != 1) {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, counted).await.expect("it is not counted");
}

#[tokio::test]
async fn rfc_9113_6_8_whoever_has_gone_without_a_word_keeps_no_server_from_stopping() {
    // Red without `farewell` in net/serve.rs, converse: it would wait for the answer to a PING for the drain time.
    let server = Server::start(Terms { drain_timeout: Duration::from_secs(3600), ..generous() });
    let mut stream = server.connect().await;
    // :method GET, :scheme http, :path /, :authority a (RFC 7541 appendix A).
    let get = frame(1, 5, 1, &[0x82, 0x86, 0x84, 0x41, 0x01, b'a']);
    stream.write_all(&[PREFACE.to_vec(), frame(4, 0, 0, &[]), get].concat()).await.unwrap();
    until_bytes(&mut stream, b"127.0.0.1 fals").await;
    server.stop.send(()).unwrap();
    assert_eq!(server.done.await.unwrap(), Stopped { cut: 0 });
}
