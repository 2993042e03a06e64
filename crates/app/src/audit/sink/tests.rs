//! Receivers that take everything, and receivers that do not.

use super::http::OTHERWISE;
use super::syslog::was_read;
use super::*;
use crate::reach::{Link, Tls};
use hyper::header::HeaderName;
use rules::Time;
use rules::realm::Settings;
use rustls::server::WebPkiClientVerifier;
use std::path::Path;
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
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

/// The bytes that a receiver got.
type Got = Arc<Mutex<Vec<u8>>>;

/// Answers each connection with what `act` does; returns its port, and what it got.
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
async fn read_request(stream: &mut (impl AsyncRead + Unpin), got: &Got) {
    let mut request = Vec::new();
    loop {
        let mut some = [0; 4096];
        let many = stream.read(&mut some).await.unwrap();
        assert!(many > 0, "it ends before it is whole");
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

fn http(url: &str, credentials: Credentials) -> Result<Sink, String> {
    let http = Http::new(url, &Tls::default(), credentials).map_err(|error| error.to_string())?;
    Ok(Sink::Http(Box::new(http)))
}

async fn answering(answer: &'static str) -> (Sink, Got, JoinHandle<()>) {
    let act = move |mut stream: TcpStream, got: Got| async move {
        read_request(&mut stream, &got).await;
        stream.write_all(answer.as_bytes()).await.unwrap();
    };
    let (port, got, running) = receiver(act).await;
    let url = format!("http://127.0.0.1:{port}/in?x=1");
    let secret = |text: &str| Some(Zeroizing::new(text.as_bytes().to_vec()));
    let credentials = Credentials { token: secret("tok"), key: secret("key"), ..Credentials::default() };
    (http(&url, credentials).unwrap(), got, running)
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
    let nobody = http("http://127.0.0.1:1/", Credentials::default()).unwrap();
    assert!(nobody.send(&realm(), &lines(1)).await.is_err());
}

#[tokio::test]
async fn a_status_that_is_not_about_what_was_sent_is_no_reason_to_look_for_a_line() {
    // Red without them in OTHERWISE: if a receiver wanted another form of entries, the first would be skipped, then the
    // next.
    for status in (400..500).chain([500, 503, 304]) {
        let answer: &'static str = format!("HTTP/1.1 {status} x\r\ncontent-length: 0\r\n\r\n").leak();
        let (sink, _, _running) = answering(answer).await;
        let refused = sink.send(&realm(), &lines(1)).await.unwrap_err();
        let of_content = (400..500).contains(&status) && !OTHERWISE.iter().any(|other| other.as_u16() == status);
        assert_eq!(refused.for_good, of_content, "{status}");
    }
    assert!([400, 413, 416, 422].iter().all(|status| OTHERWISE.iter().all(|other| other.as_u16() != *status)));
}

#[test]
fn the_guide_has_each_status_that_is_not_about_a_line() {
    let guide = include_str!("../../../../../docs/guide/audit.md");
    let said: Vec<String> = OTHERWISE.iter().map(|status| status.as_str().to_owned()).collect();
    let (last, others) = said.split_last().unwrap();
    let sentence = format!("{} and {last} are not about a line.", others.join(", "));
    assert!(guide.split_whitespace().collect::<Vec<_>>().join(" ").contains(&sentence), "{sentence}");
}

fn given(fields: &[(&'static str, &'static str)]) -> Credentials {
    let field = |(name, value): &(&str, &str)| (name.parse::<HeaderName>().unwrap(), value.parse().unwrap());
    let fields = fields.iter().map(field);
    Credentials { headers: fields.collect(), ..Credentials::default() }
}

async fn takes(mut stream: impl AsyncRead + AsyncWrite + Unpin, got: Got) {
    read_request(&mut stream, &got).await;
    stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await.unwrap();
}

#[tokio::test]
async fn a_receiver_that_wants_header_fields_of_its_own_gets_them() {
    for (fields, wanted) in [
        (&[("Authorization", "Splunk 0a1b")][..], &["authorization: Splunk 0a1b"][..]),
        (&[], &["content-type: application/x-ndjson"]),
        (&[("DD-API-KEY", "k"), ("Content-Type", "text/plain")], &["dd-api-key: k", "content-type: text/plain"]),
        (&[("X-Tag", "a"), ("X-Tag", "b")], &["x-tag: a", "x-tag: b"]),
        // The field that tells batches apart is ours.
        (&[("Portiere-Batch", "x")], &["portiere-batch: 00000000000000000000000000-00000000000000000000000000"]),
    ] {
        let (port, got, _running) = receiver(takes).await;
        let sink = http(&format!("http://127.0.0.1:{port}/"), given(fields)).unwrap();
        sink.send(&realm(), &lines(1)).await.unwrap();
        let text = String::from_utf8(got.lock().unwrap().clone()).unwrap();
        let head: Vec<&str> = text.split("\r\n\r\n").next().unwrap().lines().collect();
        for field in wanted {
            let name = field.split(':').next().unwrap();
            assert!(head.contains(field), "{field}: {head:?}");
            let others = head.iter().filter(|line| line.starts_with(name) && !wanted.contains(line)).count();
            assert_eq!(others, 0, "nothing else in its place: {head:?}");
        }
    }
    let token = Some(Zeroizing::new(b"tok".to_vec()));
    let twice = Credentials { token, ..given(&[("Authorization", "ApiKey x")]) };
    assert!(http("https://siem.test/", twice).is_err_and(|why| why.contains("token_file")), "which of them is meant?");
}

#[tokio::test]
async fn a_batch_is_named_whatever_ids_its_lines_have() {
    // Red where the ids are the name: no field can have some of them, and the batch would be sent again for good.
    let long = "x".repeat(100_000);
    for id in ["a\nb", "\u{7f}", "é", "", "-", long.as_str()] {
        let (port, got, _running) = receiver(takes).await;
        let mut lines = lines(2);
        lines[0].id = id.to_owned();
        let sink = http(&format!("http://127.0.0.1:{port}/"), Credentials::default()).unwrap();
        assert_eq!(sink.send(&realm(), &lines).await, Ok(()), "{id:?}");
        let text = String::from_utf8(got.lock().unwrap().clone()).unwrap();
        let name = text.lines().find_map(|line| line.strip_prefix("portiere-batch: ")).unwrap();
        assert!(name.len() == 64 + 1 + 26 && name.ends_with("-00000000000000000000000001"), "{name}");
    }
}

#[tokio::test]
async fn what_was_taken_is_taken_whatever_becomes_of_the_rest_of_the_answer() {
    // Red without MOMENT in reach/inbox.rs, and where the end of the connection is the answer.
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
        let sink = http(&format!("http://127.0.0.1:{port}/"), Credentials::default()).unwrap();
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
    Sink::Syslog(Syslog::new(&format!("tcp://127.0.0.1:{port}"), &Tls::default(), true).unwrap())
}

/// Returns the messages in bytes that were framed by octet counting.
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
        // What it has not read when it closes is answered with a reset.
        stream.read_exact(&mut [0; 64]).await.unwrap();
        stream.set_zero_linger().unwrap();
    })
    .await;
    assert!(syslog(port).send(&realm(), &lines(200)).await.is_err());
}

#[tokio::test]
async fn a_receiver_that_closes_at_once_has_nothing() {
    // Red without `has_ended` and `was_read`: the end was seen before the reset, and all counted as delivered.
    let (port, _, _running) = receiver(|stream, _| async move { drop(stream) }).await;
    let sink = syslog(port);
    for turn in 0..60 {
        // Few enough to be sent at a stroke, and more than a socket takes at a stroke.
        let many = if turn % 20 == 0 { 5000 } else { turn % 7 + 1 };
        let sent = sink.send(&realm(), &lines(many)).await;
        assert!(sent.as_ref().is_err_and(|refused| refused.doubtful), "{turn}: {sent:?}");
    }
}

#[tokio::test]
async fn a_reset_that_comes_behind_the_end_is_seen() {
    // Red without `was_read`: a read reports the end, whatever came after it.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut link = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
    drop(listener.accept().await.unwrap());
    assert_eq!(link.read(&mut [0; 1]).await.unwrap(), 0, "the end");
    link.write_all(b"line").await.unwrap();
    // Once the reset has come, the socket has no peer.
    while link.peer_addr().is_ok() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(link.read(&mut [0; 1]).await.unwrap(), 0, "the end, still");
    assert!(was_read(&Link::Plain(link)).is_err());
}

/// A certificate for `localhost` with its key, and the file of the authority that vouches for it.
fn certificate(folder: &Path) -> (rustls::ServerConfig, std::path::PathBuf) {
    certificate_over(folder, rustls::DEFAULT_VERSIONS)
}

fn certificate_over(
    folder: &Path,
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
    let at = |host: &str, authorities: Option<&Path>| {
        let tls = Tls { authorities: authorities.map(Path::to_path_buf), identity: None };
        Sink::Syslog(Syslog::new(&format!("tls://{host}:{port}"), &tls, true).unwrap())
    };
    for stranger in [at("localhost", None), at("127.0.0.1", Some(authority.as_path()))] {
        let refused = stranger.send(&realm(), &lines(1)).await.unwrap_err();
        assert!(refused.why.contains("TLS"), "{}", refused.why);
    }
    assert!(got.lock().unwrap().is_empty());
    at("localhost", Some(authority.as_path())).send(&realm(), &lines(5)).await.unwrap();
    assert_eq!(messages(&got.lock().unwrap()).len(), 5);
}

/// A server that lets in a client with the certificate that is made here, and the files for that client.
fn guarded(folder: &Path, version: &'static rustls::SupportedProtocolVersion) -> (rustls::ServerConfig, Tls) {
    let made = |name: &str| rcgen::generate_simple_self_signed([name.to_owned()]).unwrap();
    let file = |name: &str, text: String| {
        std::fs::write(folder.join(name), text).unwrap();
        folder.join(name)
    };
    let (ours, theirs) = (made("portiere"), made("localhost"));
    let (chain, key) = (file("ours.pem", ours.cert.pem()), file("ours.key", ours.signing_key.serialize_pem()));
    let tls = Tls { authorities: Some(file("theirs.pem", theirs.cert.pem())), identity: Some((chain, key)) };
    let mut known = rustls::RootCertStore::empty();
    known.add(ours.cert.der().clone()).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let guard = WebPkiClientVerifier::builder_with_provider(Arc::new(known), Arc::clone(&provider)).build().unwrap();
    let config = rustls::ServerConfig::builder_with_provider(provider).with_protocol_versions(&[version]).unwrap();
    let key = rustls::pki_types::PrivateKeyDer::try_from(theirs.signing_key.serialize_der()).unwrap();
    let config = config.with_client_cert_verifier(guard).with_single_cert(vec![theirs.cert.der().clone()], key);
    (config.unwrap(), tls)
}

#[tokio::test]
async fn a_receiver_that_wants_a_certificate_is_shown_ours() {
    // RFC 5425 §4.2.1. Red without `identity` in store/sealing.rs, config: the receiver takes nobody else's log.
    for version in [&rustls::version::TLS12, &rustls::version::TLS13] {
        let folder = tempfile::tempdir().unwrap();
        let (config, tls) = guarded(folder.path(), version);
        let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(config));
        let act = move |stream: TcpStream, got: Got| {
            let acceptor = acceptor.clone();
            async move {
                let Ok(mut stream) = acceptor.accept(stream).await else { return };
                let mut first = [0; 1];
                stream.read_exact(&mut first).await.unwrap();
                if first == *b"P" {
                    return takes(stream, got).await;
                }
                let mut all = first.to_vec();
                stream.read_to_end(&mut all).await.unwrap();
                got.lock().unwrap().extend(all);
                let _ = stream.shutdown().await;
            }
        };
        let (port, got, _running) = receiver(act).await;
        let sinks = |tls: &Tls| {
            let over_http = Http::new(&format!("https://localhost:{port}"), tls, Credentials::default());
            let over_syslog = Syslog::new(&format!("tls://localhost:{port}"), tls, true);
            [Sink::Http(Box::new(over_http.ok().unwrap())), Sink::Syslog(over_syslog.ok().unwrap())]
        };
        let bare = Tls { identity: None, ..tls.clone() };
        for sink in sinks(&bare) {
            assert!(sink.send(&realm(), &lines(3)).await.is_err(), "{version:?}: nobody is shown");
        }
        assert!(got.lock().unwrap().is_empty());
        for sink in sinks(&tls) {
            sink.send(&realm(), &lines(3)).await.unwrap();
            assert!(!std::mem::take(&mut *got.lock().unwrap()).is_empty(), "{version:?}");
        }
    }
}

/// How a receiver over TLS ends.
#[derive(Clone, Copy, Debug, PartialEq)]
enum End {
    /// It reads all, then sends close_notify.
    Goodbye,
    /// It reads all, and its connection just ends.
    Abrupt,
    /// It reads some and dies.
    Dies,
    /// It reads some, then sends close_notify.
    Leaves,
    /// It reads nothing, and its connection just ends.
    Vanishes,
    /// It reads nothing, and sends close_notify.
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
        // Only the close_notify of TLS: the connection ends as its socket is closed, whatever is unread.
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
                let tls = Tls { authorities: Some(authority.clone()), identity: None };
                let sink = Sink::Syslog(Syslog::new(&url, &tls, closes).unwrap());
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
