//! HTTP/2: answers that their client does not take, and those that it does.

use super::http2::{PREFACE, fields, frame};
use super::*;
use http_body_util::{BodyExt, Empty};
use hyper::body::Bytes;
use hyper::client::conn::http2::handshake;
use hyper_util::rt::{TokioExecutor, TokioIo};

#[tokio::test]
async fn an_answer_that_is_not_taken_closes_the_connection_whatever_else_is_asked() {
    // Red without `takes` in `Clock::deadline`; for the windows beyond 0, without `split_off` in `Taken::poll_frame`;
    // for the short answer, where only long ones are watched in `Running::answered`.
    for (path, window) in [("/page", 0_u32), ("/page", 1), ("/page", 4095), ("/", 0), ("/", 1), ("/", 14)] {
        let server = Server::start(Terms { idle_timeout: Duration::from_millis(500), ..generous() });
        let mut stream = server.connect().await;
        let mut opening = PREFACE.to_vec();
        // SETTINGS_INITIAL_WINDOW_SIZE (RFC 9113 §6.5.2).
        opening.extend(frame(4, 0, 0, &[&[0, 4], &window.to_be_bytes()[..]].concat()));
        opening.extend(frame(1, 5, 1, &fields("GET", path)));
        stream.write_all(&opening).await.unwrap();
        let start = tokio::time::Instant::now();
        for id in (3..).step_by(2) {
            if stream.write_all(&frame(1, 5, id, &fields("HEAD", "/"))).await.is_err() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
            assert!(start.elapsed() < PATIENCE / 2, "the answer waits for its client: {path}, window {window}");
        }
        assert!(start.elapsed() >= Duration::from_millis(500), "closed before its time");
    }
}

#[tokio::test]
async fn answers_that_are_taken_are_whole_and_hold_nothing_up() {
    let idle_timeout = Duration::from_secs(6);
    let server = Server::start(Terms { idle_timeout, ..generous() });
    let (mut sender, connection) = handshake(TokioExecutor::new(), TokioIo::new(server.connect().await)).await.unwrap();
    let asking = async move {
        let start = tokio::time::Instant::now();
        while start.elapsed() < idle_timeout * 3 / 2 {
            let request = hyper::Request::builder().uri("http://a.test/page").body(Empty::<Bytes>::new()).unwrap();
            let answer = sender.send_request(request).await.expect("cut, although every answer was taken");
            assert_eq!(answer.headers()["content-length"], "4096");
            assert_eq!(answer.into_body().collect().await.unwrap().to_bytes(), vec![b'x'; 4096]);
            tokio::time::sleep(idle_timeout / 10).await;
        }
    };
    drop(tokio::join!(asking, connection));
}

#[tokio::test]
async fn an_answer_that_is_not_taken_keeps_its_place() {
    // Red without `_place: place` in `Running::answered`. Where no other runs on: without `untaken` in
    // `Clock::request`, and for the short answer, where only long ones are watched.
    for (path, first) in [("/", "/forever"), ("/page", "/forever"), ("/", "/"), ("/page", "/page")] {
        let caps = Caps::new(10, 1000, Vec::new());
        let server = Server::start(Terms { caps: Arc::clone(&caps), ..generous() });
        let mut stream = server.connect().await;
        let mut opening = PREFACE.to_vec();
        opening.extend(frame(4, 0, 0, &[&[0, 4], &0_u32.to_be_bytes()[..]].concat()));
        opening.extend(frame(1, 5, 1, &fields("GET", first)));
        stream.write_all(&opening).await.unwrap();
        for id in (3..9).step_by(2) {
            // The one before is answered by then, unless it runs on.
            tokio::time::sleep(Duration::from_millis(50)).await;
            stream.write_all(&frame(1, 5, id, &fields("GET", path))).await.unwrap();
        }
        let start = tokio::time::Instant::now();
        while caps.open() < 4 {
            tokio::task::yield_now().await;
            assert!(start.elapsed() < PATIENCE, "{} places", caps.open());
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
        assert_eq!(caps.open(), 4, "{path}");
        drop(stream);
    }
}

/// Returns what a client sends that has this to say first, and then asks for `path` so many times.
fn asking(settings: &[u8], path: &str, times: u32) -> Vec<u8> {
    let mut bytes = [PREFACE, &frame(4, 0, 0, settings)].concat();
    (0..times).for_each(|time| bytes.extend(frame(1, 5, 2 * time + 1, &fields("GET", path))));
    bytes
}

#[tokio::test]
async fn who_takes_no_answers_makes_way_whatever_else_is_asked() {
    // Red without `stalls` in `Clock::is_idle`: a few connections of one client would hold all places for as long as it
    // likes.
    let caps = Caps::counting_all(4, 4);
    let quiet = Duration::from_millis(300);
    let server = Server::start(Terms { caps: Arc::clone(&caps), quiet, ..generous() });
    let mut stream = server.connect().await;
    stream.write_all(&asking(&[0, 4, 0, 0, 0, 0], "/", 4)).await.unwrap();
    until_open(&caps, 4).await;
    // Running all the time: without the answers, it would be in use.
    stream.write_all(&frame(3, 0, 7, &8_u32.to_be_bytes())).await.unwrap();
    until_open(&caps, 3).await;
    stream.write_all(&frame(1, 5, 9, &fields("GET", "/forever"))).await.unwrap();
    tokio::time::sleep(2 * quiet).await;
    until_open(&caps, 4).await;
    assert_eq!(caps.admit("192.0.2.1".parse().unwrap()).err(), Some(Full::OfAll));
    until_open(&caps, 0).await;
    assert!(caps.admit("192.0.2.1".parse().unwrap()).is_ok());
}

#[tokio::test]
async fn an_answer_is_not_taken_by_who_only_says_so() {
    // Red with a larger `max_send_buf_size`: the library takes answers from us as long as the client's windows have
    // room, whether or not it reads anything.
    let caps = Caps::new(10_000, 10_000, Vec::new());
    let server = Server::start(Terms { caps: Arc::clone(&caps), ..generous() });
    let mut stream = server.connect().await;
    // A window of 2 GiB for each answer, and for all. Nothing is read.
    stream.write_all(&asking(&[0, 4, 0x7f, 0xff, 0xff, 0xff], "/sheet", 100)).await.unwrap();
    stream.write_all(&frame(8, 0, 0, &(i32::MAX as u32 - 65_535).to_be_bytes())).await.unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    // The kernel keeps some of the six megabytes for us.
    assert!(caps.open() > 5, "{}", caps.open());
}

/// Waits until so many places are taken.
async fn until_open(caps: &Caps, places: usize) {
    let start = tokio::time::Instant::now();
    while caps.open() != places {
        tokio::time::sleep(Duration::from_millis(5)).await;
        assert!(start.elapsed() < PATIENCE, "{} places", caps.open());
    }
}
