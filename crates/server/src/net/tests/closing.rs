//! Connections that are closed while their clients are still sending (RFC 9112, 9.6).

use super::*;

/// A request whose body is refused, and the beginning of the body.
const REFUSED: &[u8] = b"POST /body HTTP/1.1\r\ncontent-length: 300000\r\n\r\nyyyyyyyy";

/// Waits until so many connections are open.
async fn until_open(caps: &Caps, count: usize) {
    let all = async {
        while caps.open() != count {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE / 2, all).await.expect("connections are kept open, or are not");
}

/// Makes a connection that was refused, has got the whole answer, and could still send.
async fn refused(server: &Server) -> TcpStream {
    let mut stream = server.connect().await;
    stream.write_all(REFUSED).await.unwrap();
    assert!(until_closed(&mut stream).await.starts_with("HTTP/1.1 413"));
    stream
}

#[tokio::test]
async fn rfc_9112_9_6_a_refusal_arrives_although_its_request_is_still_sent() {
    // Red without `poll_linger`: later bytes meet a closed connection. Once the client closes too, that is the end.
    let terms = generous();
    let caps = Arc::clone(&terms.caps);
    let server = Server::start(terms);
    for (beginning, status) in [
        ("POST /body HTTP/1.1\r\ncontent-length: 300000\r\n\r\n", "413"),
        ("POST /body HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n493e0\r\n", "413"),
        ("POST /body HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n", "400"),
        ("POST /nowhere HTTP/1.1\r\ncontent-length: 300000\r\n\r\n", "404"),
        ("GET / HTTP/1.1\r\nx: ", "431"),
    ] {
        let mut stream = server.connect().await;
        let beginning = [beginning.as_bytes(), &[b'y'; 100_000]].concat();
        stream.write_all(&beginning).await.unwrap();
        let answer = until_closed(&mut stream).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{status}: {answer}");
        for _ in 0..20 {
            stream.write_all(&[b'y'; 10_000]).await.expect("reset");
        }
        assert_eq!(caps.open(), 1, "{status}");
        drop(stream);
        until_open(&caps, 0).await;
    }
    assert!(caps.cut().iter().all(|(_, count)| *count == 0));
}

#[tokio::test]
async fn rfc_9112_9_6_an_answer_to_a_body_that_was_not_read_says_that_it_is_the_last() {
    // Red without `leaves_body` in serve.rs: a proxy that keeps connections would send the next request on this one.
    let server = Server::start(generous());
    for (request, status) in [
        ("POST /body HTTP/1.1\r\ncontent-length: 300000\r\n\r\nyyyyyyyy", "413"),
        ("POST /body HTTP/1.1\r\ncontent-length: 5\r\n\r\n12", "408"),
        ("POST /body HTTP/1.1\r\ncontent-length: 300000\r\nexpect: 100-continue\r\n\r\n", "413"),
        ("POST /nowhere HTTP/1.1\r\ncontent-length: 5\r\nexpect: 100-continue\r\n\r\n", "404"),
    ] {
        let answer = server.tell(request).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{status}: {answer}");
        assert!(answer.contains("\r\nconnection: close\r\n"), "{status}: {answer}");
    }
    let mut kept = server.connect().await;
    for framing in ["content-length: 5\r\n\r\n12345", "transfer-encoding: chunked\r\n\r\n5\r\n12345\r\n0\r\n\r\n"] {
        kept.write_all(format!("POST /body HTTP/1.1\r\n{framing}").as_bytes()).await.unwrap();
        let answer = until(&mut kept, "\r\n\r\n5").await;
        assert!(answer.starts_with("HTTP/1.1 200") && !answer.contains("connection:"), "{answer}");
    }
}

#[tokio::test]
async fn who_has_sent_all_is_not_waited_for() {
    // Red where every connection lingers.
    let terms = generous();
    let caps = Arc::clone(&terms.caps);
    let server = Server::start(terms);
    let mut stream = server.connect().await;
    stream.write_all(b"GET / HTTP/1.1\r\nconnection: close\r\n\r\n").await.unwrap();
    assert!(until_closed(&mut stream).await.starts_with("HTTP/1.1 200"));
    until_open(&caps, 0).await;
}

#[tokio::test]
async fn who_does_not_close_in_turn_is_not_waited_for_without_end() {
    // Red without the arm `Close` of `Clock::deadline`.
    let terms = generous();
    let caps = Arc::clone(&terms.caps);
    let server = Server::lingering(Duration::from_millis(200), terms);
    let _stream = refused(&server).await;
    until_open(&caps, 0).await;
    assert!(caps.cut().iter().all(|(_, count)| *count == 0));
}

#[tokio::test]
async fn who_goes_on_sending_is_not_listened_to_without_end() {
    // Red without `LINGER` in watched.rs.
    let server = Server::start(generous());
    let (mut stream, mut said) = (refused(&server).await, 0);
    while stream.write_all(&[b'y'; 64 << 10]).await.is_ok() {
        said += 64 << 10;
        assert!(said < 64 << 20, "{said} bytes and still open");
    }
}

#[tokio::test]
async fn connections_that_are_closed_but_for_their_clients_make_way() {
    // Red where `is_idle` takes `Close` for a request.
    let caps = Caps::counting_all(2, 8);
    let server = Server::start(Terms { caps: Arc::clone(&caps), ..generous() });
    let _streams = [refused(&server).await, refused(&server).await];
    assert_eq!(caps.open(), 2);
    assert_eq!(caps.admit("192.0.2.1".parse().unwrap()).err(), Some(Full::OfAll));
    until_open(&caps, 0).await;
}

#[tokio::test]
async fn connections_that_are_closed_but_for_their_clients_go_for_others_of_the_same_address() {
    // Red without the arm `Close` in `is_quiet`: they have been closed for less than PATIENCE.
    let caps = Caps::counting_all(100, 8);
    let server = Server::start(Terms { caps: Arc::clone(&caps), ..generous() });
    let _refused = refused(&server).await;
    let mut others = Vec::new();
    for count in 2..8 {
        others.push(server.connect().await);
        until_open(&caps, count).await;
    }
    others.push(server.connect().await);
    let made_way = async {
        while caps.cut().into_iter().all(|(why, count)| why != "made_way" || count != 1) {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE / 2, made_way).await.expect("it keeps its place");
}

#[tokio::test]
async fn a_server_that_stops_does_not_wait_for_clients_to_close() {
    // Red without `lingers` in serve.rs.
    let server = Server::start(generous());
    let _stream = refused(&server).await;
    server.stop.send(()).unwrap();
    let stopped = tokio::time::timeout(PATIENCE / 2, server.done).await.expect("it waits").unwrap();
    assert_eq!(stopped, Stopped { cut: 0 });
}
