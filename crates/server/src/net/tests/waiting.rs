//! Clients that make the server wait.

use super::*;
use tokio::time::Instant;

const SHORT: Duration = Duration::from_millis(300);

#[tokio::test]
async fn ds_08_headers_that_do_not_come_close_the_connection() {
    let server = Server::start(Terms { header_timeout: SHORT, ..generous() });
    for beginning in ["", "G", "GET / HTTP/1.1\r\nhost: a", "PRI * HTTP/2.0\r\n"] {
        let start = Instant::now();
        assert_eq!(server.tell(beginning).await, "", "{beginning:?}");
        assert!(start.elapsed() >= SHORT && start.elapsed() < PATIENCE / 2, "{:?}", start.elapsed());
    }
}

#[tokio::test]
async fn ds_08_a_byte_at_a_time_gains_no_time() {
    let server = Server::start(Terms { header_timeout: SHORT, ..generous() });
    let mut stream = server.connect().await;
    let start = Instant::now();
    while stream.write_all(b"G").await.is_ok() {
        tokio::time::sleep(SHORT / 10).await;
        assert!(start.elapsed() < PATIENCE / 2, "a trickle keeps the connection open");
    }
    assert!(start.elapsed() >= SHORT);
}

#[tokio::test]
async fn a_connection_without_a_request_lives_for_the_idle_time() {
    let idle_timeout = 20 * SHORT;
    let server = Server::start(Terms { header_timeout: SHORT / 3, idle_timeout, ..generous() });
    let mut stream = server.connect().await;
    let mut start = Instant::now();
    for _ in 0..2 {
        start = Instant::now();
        stream.write_all(b"GET / HTTP/1.1\r\n\r\n").await.unwrap();
        until(&mut stream, "127.0.0.1 false").await;
        tokio::time::sleep(SHORT).await;
    }
    assert_eq!(until_closed(&mut stream).await, "");
    assert!(start.elapsed() >= idle_timeout, "closed before the idle time");
}

#[tokio::test]
async fn the_next_request_has_the_header_time_and_not_the_idle_time() {
    let server = Server::start(Terms { header_timeout: SHORT, ..generous() });
    let mut stream = server.connect().await;
    stream.write_all(b"GET / HTTP/1.1\r\n\r\n").await.unwrap();
    until(&mut stream, "127.0.0.1 false").await;
    stream.write_all(b"GET / HT").await.unwrap();
    assert_eq!(until_closed(&mut stream).await, "");
}

#[tokio::test]
async fn a_request_that_is_answered_slowly_is_not_cut() {
    let short = Duration::from_secs(4);
    let server = Server::start(Terms { header_timeout: short, idle_timeout: short, ..generous() });
    let later = async {
        server.until_running(1).await;
        tokio::time::sleep(short * 3 / 2).await;
        server.over.send_replace(true);
    };
    let (answer, ()) = tokio::join!(server.get("/slow"), later);
    assert!(answer.ends_with("slow but whole"), "{answer}");
}

#[tokio::test]
async fn a_client_that_does_not_take_its_answer_is_cut() {
    let terms = Terms { idle_timeout: SHORT, ..generous() };
    let server = Server::start(terms.clone());
    let mut stream = server.connect().await;
    stream.write_all(b"GET /large HTTP/1.1\r\n\r\n").await.unwrap();
    let start = Instant::now();
    while terms.caps.open() > 0 || start.elapsed() < SHORT {
        tokio::time::sleep(SHORT / 10).await;
        assert!(start.elapsed() < PATIENCE / 2, "the answer waits for its client");
    }
}

#[tokio::test]
async fn a_body_is_whole_or_refused_for_its_size_or_its_time() {
    let server = Server::start(generous());
    let chunk = format!("3e8\r\n{}\r\n", "x".repeat(1000));
    for (request, status) in [
        (format!("content-length: 1000\r\n\r\n{}", "x".repeat(1000)), "200"),
        ("content-length: 1001\r\n\r\n".to_owned(), "413"),
        (format!("transfer-encoding: chunked\r\n\r\n{chunk}0\r\n\r\n"), "200"),
        (format!("transfer-encoding: chunked\r\n\r\n{chunk}1\r\nx\r\n"), "413"),
        ("content-length: 5\r\n\r\nx".to_owned(), "408"),
        ("transfer-encoding: chunked\r\n\r\nnonsense\r\n".to_owned(), "400"),
    ] {
        let answer = server.tell(&format!("POST /body HTTP/1.1\r\nconnection: close\r\n{request}")).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{request}: {answer}");
    }
}
