//! Stopping: running requests are finished, and nothing waits for requests that never end.

use super::*;

#[tokio::test]
async fn a_running_request_is_finished() {
    let server = Server::start(generous());
    let mut running = server.connect().await;
    running.write_all(b"GET /slow HTTP/1.1\r\n\r\n").await.unwrap();
    let mut idle = server.connect().await;
    idle.write_all(b"GET / HTTP/1.1\r\n\r\n").await.unwrap();
    until(&mut idle, "127.0.0.1 false").await;
    let mut silent = server.connect().await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    server.until_running(1).await;
    server.stop.send(()).unwrap();
    assert_eq!(until_closed(&mut idle).await, "");
    assert!(!server.done.is_finished(), "the slow request still runs");
    assert!(TcpStream::connect(server.address).await.is_err(), "still accepting");
    server.over.send_replace(true);
    assert!(until_closed(&mut running).await.ends_with("slow but whole"));
    assert_eq!(until_closed(&mut silent).await, "", "who has been there for longer than is heard out");
    assert_eq!(server.done.await.unwrap(), Stopped { cut: 0 });
}

#[tokio::test]
async fn who_has_only_just_come_when_the_server_stops_is_answered() {
    // One connection is accepted and has sent nothing; one is not even accepted: this runtime has one thread, which
    // does not look at the listener before the next `await`.
    let server = Server::start(Terms { hear_out: PATIENCE, ..generous() });
    let mut known = server.connect().await;
    tokio::time::sleep(Duration::from_millis(50)).await;
    let mut late = std::net::TcpStream::connect(server.address).unwrap();
    std::io::Write::write_all(&mut late, b"GET / HTTP/1.1\r\n\r\n").unwrap();
    late.set_nonblocking(true).unwrap();
    let mut late = TcpStream::from_std(late).unwrap();
    server.stop.send(()).unwrap();
    tokio::time::sleep(Duration::from_millis(50)).await;
    known.write_all(b"GET / HTTP/1.1\r\n\r\n").await.unwrap();
    for stream in [&mut known, &mut late] {
        let answer = until_closed(stream).await;
        assert!(answer.contains("connection: close\r\n") && answer.ends_with("127.0.0.1 false"), "{answer}");
    }
    assert_eq!(server.done.await.unwrap(), Stopped { cut: 0 });
}

#[tokio::test]
async fn what_never_ends_is_cut_after_the_drain_time() {
    let server = Server::start(Terms { drain_timeout: Duration::from_millis(200), ..generous() });
    let mut stream = server.connect().await;
    stream.write_all(b"GET /forever HTTP/1.1\r\n\r\n").await.unwrap();
    server.until_running(1).await;
    server.stop.send(()).unwrap();
    assert_eq!(until_closed(&mut stream).await, "");
    assert_eq!(server.done.await.unwrap(), Stopped { cut: 1 });
}

#[tokio::test]
async fn who_is_told_to_stop_a_second_time_waits_for_nothing() {
    // Red where serve hears only the first time: in the stop delay, and in the drain time after it.
    for delay in [Duration::from_secs(3600), Duration::ZERO] {
        let long = Duration::from_secs(3600);
        let server = Server::start(Terms { stop_delay: delay, drain_timeout: long, ..generous() });
        let mut stream = server.connect().await;
        stream.write_all(b"GET /forever HTTP/1.1\r\n\r\n").await.unwrap();
        server.until_running(1).await;
        server.stop.send(()).unwrap();
        tokio::time::sleep(Duration::from_millis(100)).await;
        assert!(!server.done.is_finished(), "what runs is not waited for, {delay:?}");
        server.stop.send(()).unwrap();
        assert_eq!(until_closed(&mut stream).await, "");
        assert_eq!(server.done.await.unwrap(), Stopped { cut: 1 });
    }
}

#[tokio::test]
async fn rfc_9112_9_6_until_the_stop_delay_is_over_each_connection_ends_with_its_answer() {
    let server = Server::start(Terms { stop_delay: Duration::from_secs(10), ..generous() });
    let mut kept = server.connect().await;
    kept.write_all(b"GET / HTTP/1.1\r\n\r\n").await.unwrap();
    assert!(!until(&mut kept, "127.0.0.1 false").await.contains("connection: close"));
    let mut running = server.connect().await;
    running.write_all(b"GET /slow HTTP/1.1\r\n\r\n").await.unwrap();
    let mut silent = server.connect().await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    server.until_running(1).await;
    server.stop.send(()).unwrap();
    tokio::time::sleep(Duration::from_millis(100)).await;
    kept.write_all(b"GET / HTTP/1.1\r\n\r\n").await.unwrap();
    let mut late = TcpStream::connect(server.address).await.expect("the door is closed already");
    late.write_all(b"GET / HTTP/1.1\r\n\r\n").await.unwrap();
    server.over.send_replace(true);
    for (stream, end) in
        [(&mut kept, "127.0.0.1 false"), (&mut late, "127.0.0.1 false"), (&mut running, "slow but whole")]
    {
        let answer = until_closed(stream).await;
        assert!(answer.contains("connection: close\r\n") && answer.ends_with(end), "{answer}");
    }
    assert_eq!(until_closed(&mut silent).await, "", "what never asked is closed at the end");
    assert_eq!(server.done.await.unwrap(), Stopped { cut: 0 });
}
