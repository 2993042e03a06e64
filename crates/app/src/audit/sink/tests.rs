//! Receivers that take everything, and receivers that do not.

use super::syslog::was_read;
use super::*;
use crate::reach::Link;
use rules::Time;
use rules::realm::Settings;
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use zeroize::Zeroizing;

fn realm() -> Realm {
    Realm { id: "main".into(), issuer: "https://login.example.test:8443/x".into(), settings: Settings::default() }
}

fn lines(many: usize) -> Vec<Line> {
    let line = |number: usize| Line {
        id: format!("{number:026}"),
        at: Time(1_700_000_000_000),
        kind: "session.started".into(),
        user: Some("ada".into()),
        client: None,
        session: None,
        address: None,
        request: None,
        detail: "{}".into(),
        block: 1,
    };
    (0..many).map(line).collect()
}

/// What a receiver got.
type Got = Arc<Mutex<Vec<u8>>>;

/// Answers each connection with what `act` does; where it is, and what it got.
#[allow(clippy::disallowed_methods, reason = "a receiver of a test")]
async fn receiver<F>(act: impl Fn(TcpStream, Got) -> F + Send + 'static) -> (u16, Got, JoinHandle<()>)
where
    F: Future<Output = ()> + Send,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (port, got) = (listener.local_addr().unwrap().port(), Got::default());
    let theirs = Arc::clone(&got);
    let running = tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            act(stream, Arc::clone(&theirs)).await;
        }
    });
    (port, got, running)
}

/// Reads a request to the end of its body.
async fn read_request(stream: &mut TcpStream, got: &Got) {
    let mut request = Vec::new();
    loop {
        let mut some = [0; 4096];
        let many = stream.read(&mut some).await.unwrap();
        request.extend_from_slice(&some[..many]);
        let text = String::from_utf8_lossy(&request).into_owned();
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse::<usize>().ok());
        if body.len() >= length.unwrap() {
            got.lock().unwrap().extend_from_slice(&request);
            return;
        }
    }
}

async fn answering(answer: &'static str) -> (Sink, Got, JoinHandle<()>) {
    let act = move |mut stream: TcpStream, got: Got| async move {
        read_request(&mut stream, &got).await;
        stream.write_all(answer.as_bytes()).await.unwrap();
    };
    let (port, got, running) = receiver(act).await;
    let url = format!("http://127.0.0.1:{port}/in?x=1");
    let (token, key) = (Zeroizing::new(b"tok".to_vec()), Zeroizing::new(b"key".to_vec()));
    (Sink::Http(Box::new(Http::new(&url, None, Some(&token), Some(&key)).unwrap())), got, running)
}

#[tokio::test]
async fn lines_are_posted_with_a_token_and_a_signature() {
    let (sink, got, _running) = answering("HTTP/1.1 204 No Content\r\n\r\n").await;
    sink.send(&realm(), &lines(3)).await.unwrap();
    let text = String::from_utf8(got.lock().unwrap().clone()).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    for wanted in [
        "POST /in?x=1 HTTP/1.1",
        "authorization: Bearer tok",
        "content-type: application/x-ndjson",
        "portiere-batch: 00000000000000000000000000-00000000000000000000000002",
        "portiere-signature: t=1700000000,v1=",
    ] {
        assert!(head.contains(wanted), "{wanted}: {head}");
    }
    assert_eq!(body.lines().count(), 3);
    let signed = aws_lc_rs::hmac::sign(
        &aws_lc_rs::hmac::Key::new(aws_lc_rs::hmac::HMAC_SHA256, b"key"),
        format!("1700000000.{body}").as_bytes(),
    );
    assert!(head.contains(&rules::secret::hexadecimal(signed.as_ref())));
}

#[tokio::test]
async fn whatever_is_no_success_is_refused() {
    for (answer, why, after) in [
        ("HTTP/1.1 500 No\r\ncontent-length: 0\r\n\r\n", "500", None),
        ("HTTP/1.1 404 No\r\ncontent-length: 0\r\n\r\n", "404", None),
        ("HTTP/1.1 302 No\r\nlocation: http://127.0.0.1:1/\r\ncontent-length: 0\r\n\r\n", "not followed", None),
        ("HTTP/1.1 401 No\r\ncontent-length: 0\r\n\r\n", "token", None),
        ("HTTP/1.1 429 No\r\nretry-after: 7\r\ncontent-length: 0\r\n\r\n", "429", Some(7)),
        ("HTTP/1.1 100 Continue\r\n\r\n", "", None),
        ("no HTTP at all\r\n\r\n", "", None),
        ("", "", None),
    ] {
        let (sink, _, _running) = answering(answer).await;
        let refused = sink.send(&realm(), &lines(1)).await.unwrap_err();
        assert!(refused.why.contains(why), "{answer}: {}", refused.why);
        assert_eq!(refused.after, after.map(Duration::from_secs));
    }
    let nobody = Http::new("http://127.0.0.1:1/", None, None, None).unwrap();
    assert!(Sink::Http(Box::new(nobody)).send(&realm(), &lines(1)).await.is_err());
}

#[tokio::test]
async fn what_was_taken_is_taken_whatever_becomes_of_the_rest_of_the_answer() {
    // Red without MOMENT in reach.rs, and where the end of the connection is the answer.
    for answer in [
        "HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n4\r\nkept",
    ] {
        let (sink, _, _running) = answering(answer).await;
        assert_eq!(sink.send(&realm(), &lines(1)).await, Ok(()), "cut: {answer}");
        let act = move |mut stream: TcpStream, got: Got| async move {
            read_request(&mut stream, &got).await;
            stream.write_all(answer.as_bytes()).await.unwrap();
            std::mem::forget(stream);
        };
        let (port, _, _running) = receiver(act).await;
        let sink = Sink::Http(Box::new(Http::new(&format!("http://127.0.0.1:{port}/"), None, None, None).unwrap()));
        assert_eq!(sink.send(&realm(), &lines(1)).await, Ok(()), "held open: {answer}");
    }
}

#[test]
fn a_host_is_named_as_it_is() {
    let realm = |issuer: &str| Realm { issuer: issuer.to_owned(), ..realm() };
    for (issuer, host) in [("https://[2001:db8::1]:8443/x", "2001:db8::1"), ("https://id.test", "id.test")] {
        let text = String::from_utf8(super::syslog::framed(&realm(issuer), &lines(1))).unwrap();
        assert!(text.contains(&format!(" {host} portiere ")), "{text}");
    }
}

fn syslog(port: u16) -> Sink {
    Sink::Syslog(Syslog::new(&format!("tcp://127.0.0.1:{port}"), None, true).unwrap())
}

/// The messages in what was framed by octet counting.
fn messages(mut bytes: &[u8]) -> Vec<String> {
    let mut found = Vec::new();
    while !bytes.is_empty() {
        let space = bytes.iter().position(|byte| *byte == b' ').unwrap();
        let length: usize = std::str::from_utf8(&bytes[..space]).unwrap().parse().unwrap();
        found.push(String::from_utf8(bytes[space + 1..space + 1 + length].to_vec()).unwrap());
        bytes = &bytes[space + 1 + length..];
    }
    found
}

#[tokio::test]
async fn syslog_is_done_when_the_receiver_has_read_to_the_end() {
    let (port, got, _running) = receiver(|mut stream, got| async move {
        let mut all = Vec::new();
        stream.read_to_end(&mut all).await.unwrap();
        got.lock().unwrap().extend(all);
    })
    .await;
    syslog(port).send(&realm(), &lines(200)).await.unwrap();
    let messages = messages(&got.lock().unwrap());
    assert_eq!(messages.len(), 200);
    let start = "<110>1 2023-11-14T22:13:20.000Z login.example.test portiere - session.started - {";
    assert!(messages[7].starts_with(start), "{}", messages[7]);
}

#[tokio::test]
async fn a_receiver_that_ends_before_it_has_read_has_nothing() {
    let (port, _, _running) = receiver(|mut stream, _| async move {
        // What is not read when it closes is answered with a reset.
        stream.read_exact(&mut [0; 64]).await.unwrap();
        stream.set_zero_linger().unwrap();
    })
    .await;
    assert!(syslog(port).send(&realm(), &lines(200)).await.is_err());
}

#[tokio::test]
async fn a_receiver_that_closes_at_once_has_nothing() {
    // red without `has_ended` and `was_read`: its end was seen before the reset, and all counted as delivered.
    let (port, _, _running) = receiver(|stream, _| async move { drop(stream) }).await;
    let sink = syslog(port);
    for turn in 0..60 {
        // So few that they are sent at a stroke, and more than a socket takes at a stroke.
        let many = if turn % 20 == 0 { 5000 } else { turn % 7 + 1 };
        let sent = sink.send(&realm(), &lines(many)).await;
        assert!(sent.as_ref().is_err_and(|refused| refused.doubtful), "{turn}: {sent:?}");
    }
}

#[tokio::test]
async fn a_reset_that_comes_behind_the_end_is_seen() {
    // red without `was_read`: a read tells the end, whatever came after it.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut link = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
    drop(listener.accept().await.unwrap());
    assert_eq!(link.read(&mut [0; 1]).await.unwrap(), 0, "the end");
    link.write_all(b"line").await.unwrap();
    // Once the reset has come, the socket is connected to nobody.
    while link.peer_addr().is_ok() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(link.read(&mut [0; 1]).await.unwrap(), 0, "the end, still");
    assert!(was_read(&Link::Plain(link)).is_err());
}

/// A certificate for `localhost`, its key, and the file of whoever vouches for it.
fn certificate(folder: &std::path::Path) -> (rustls::ServerConfig, std::path::PathBuf) {
    certificate_over(folder, rustls::DEFAULT_VERSIONS)
}

fn certificate_over(
    folder: &std::path::Path,
    versions: &[&'static rustls::SupportedProtocolVersion],
) -> (rustls::ServerConfig, std::path::PathBuf) {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let file = folder.join("authority.pem");
    std::fs::write(&file, made.cert.pem()).unwrap();
    let key = rustls::pki_types::PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider).with_protocol_versions(versions).unwrap();
    (config.with_no_client_auth().with_single_cert(vec![made.cert.der().clone()], key).unwrap(), file)
}

#[tokio::test]
async fn over_tls_only_whoever_is_vouched_for_gets_anything() {
    let folder = tempfile::tempdir().unwrap();
    let (config, authority) = certificate(folder.path());
    let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(config));
    let (port, got, _running) = receiver(move |stream, got| {
        let acceptor = acceptor.clone();
        async move {
            let Ok(mut stream) = acceptor.accept(stream).await else { return };
            let mut all = Vec::new();
            let _ = stream.read_to_end(&mut all).await;
            got.lock().unwrap().extend(all);
            let _ = stream.shutdown().await;
        }
    })
    .await;
    let at =
        |host: &str, authority| Sink::Syslog(Syslog::new(&format!("tls://{host}:{port}"), authority, true).unwrap());
    for stranger in [at("localhost", None), at("127.0.0.1", Some(authority.as_path()))] {
        let refused = stranger.send(&realm(), &lines(1)).await.unwrap_err();
        assert!(refused.why.contains("TLS"), "{}", refused.why);
    }
    assert!(got.lock().unwrap().is_empty());
    at("localhost", Some(authority.as_path())).send(&realm(), &lines(5)).await.unwrap();
    assert_eq!(messages(&got.lock().unwrap()).len(), 5);
}

/// How a receiver over TLS ends.
#[derive(Clone, Copy, Debug, PartialEq)]
enum End {
    /// It reads all and says goodbye.
    Goodbye,
    /// It reads all, and its connection just ends.
    Abrupt,
    /// It reads some and dies.
    Dies,
    /// It reads some and says goodbye.
    Leaves,
    /// It reads nothing, and its connection just ends.
    Vanishes,
    /// It reads nothing and says goodbye.
    Declines,
}

async fn ending(acceptor: tokio_rustls::TlsAcceptor, stream: TcpStream, end: End) {
    let mut stream = acceptor.accept(stream).await.unwrap();
    match end {
        End::Goodbye | End::Abrupt => drop(stream.read_to_end(&mut Vec::new()).await.unwrap()),
        End::Dies | End::Leaves => drop(stream.read_exact(&mut [0; 64]).await.unwrap()),
        End::Vanishes | End::Declines => {}
    }
    if matches!(end, End::Goodbye | End::Leaves | End::Declines) {
        // The goodbye of TLS alone: the connection ends as its socket is closed, whatever is unread.
        stream.get_mut().1.send_close_notify();
        stream.flush().await.unwrap();
    }
}

#[tokio::test]
async fn over_tls_a_connection_that_just_ends_is_no_delivery() {
    for version in [&rustls::version::TLS12, &rustls::version::TLS13] {
        for (end, strict, lenient) in [
            (End::Goodbye, true, true),
            (End::Abrupt, false, true),
            (End::Dies, false, false),
            (End::Leaves, false, false),
            (End::Vanishes, false, false),
            (End::Declines, false, false),
        ] {
            let folder = tempfile::tempdir().unwrap();
            let (config, authority) = certificate_over(folder.path(), &[version]);
            let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(config));
            let act = move |stream, _| ending(acceptor.clone(), stream, end);
            let (port, _, _running) = receiver(act).await;
            for (closes, taken) in [(true, strict), (false, lenient)] {
                let url = format!("tls://localhost:{port}");
                let sink = Sink::Syslog(Syslog::new(&url, Some(&authority), closes).unwrap());
                let sent = sink.send(&realm(), &lines(2000)).await;
                assert_eq!(sent.is_ok(), taken, "{version:?} {end:?} {closes}: {sent:?}");
                if (end, closes) == (End::Abrupt, true) {
                    assert!(sent.unwrap_err().why.contains("require_close_notify"));
                }
            }
        }
    }
}

#[test]
fn only_what_can_be_trusted_is_a_target() {
    for bad in ["http://siem.test/", "ftp://siem.test/", "https://u:p@siem.test/", "siem.test"] {
        assert!(Http::target(bad).is_err(), "{bad}");
    }
    for good in ["https://siem.test/services/collector", "http://localhost:8088/in", "http://127.0.0.1/"] {
        assert!(Http::target(good).is_ok(), "{good}");
    }
    for bad in ["udp://h:514", "tls://h/path", "syslog.test:514", "https://h"] {
        assert!(Syslog::target(bad).is_err(), "{bad}");
    }
}
