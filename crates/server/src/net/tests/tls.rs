//! TLS from files: what is offered, what is refused, and what happens when the files change.

use super::*;
use crate::net::certificate::{end, misnamed, outlived};
use crate::net::tls::TlsError;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

struct Files {
    _folder: tempfile::TempDir,
    certificate: PathBuf,
    key: PathBuf,
}

impl Files {
    /// Makes a new folder for the files, still empty.
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (certificate, key) = (folder.path().join("cert.pem"), folder.path().join("key.pem"));
        Files { _folder: folder, certificate, key }
    }

    /// Writes a new self-signed certificate for `login.test` and returns it.
    fn renew(&self) -> CertificateDer<'static> {
        let made = rcgen::generate_simple_self_signed(vec!["login.test".to_owned()]).unwrap();
        std::fs::write(&self.certificate, made.cert.pem()).unwrap();
        std::fs::write(&self.key, made.signing_key.serialize_pem()).unwrap();
        self.lend(0o600);
        made.cert.der().clone()
    }

    fn lend(&self, mode: u32) {
        std::fs::set_permissions(&self.key, std::fs::Permissions::from_mode(mode)).unwrap();
    }

    fn load(&self) -> Result<Arc<TlsReload>, TlsError> {
        TlsReload::load(&self.certificate, &self.key, "login.test")
    }
}

/// Connects with TLS, trusting only `root`.
async fn greeted(
    server: &Server,
    root: &CertificateDer<'static>,
    alpn: &[u8],
) -> std::io::Result<TlsStream<TcpStream>> {
    let mut roots = RootCertStore::empty();
    roots.add(root.clone()).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let client = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let mut client = client.with_root_certificates(roots).with_no_client_auth();
    client.alpn_protocols = vec![alpn.to_vec()];
    let name = ServerName::try_from("login.test").unwrap();
    TlsConnector::from(Arc::new(client)).connect(name, server.connect().await).await
}

/// Sends GET over TLS, trusting only `root`; returns the negotiated protocol and the response.
async fn ask(
    server: &Server,
    root: &CertificateDer<'static>,
    alpn: &[u8],
) -> std::io::Result<(Option<Vec<u8>>, String)> {
    let mut stream = greeted(server, root, alpn).await?;
    let agreed = stream.get_ref().1.alpn_protocol().map(<[u8]>::to_vec);
    stream.write_all(b"GET / HTTP/1.1\r\nconnection: close\r\n\r\n").await?;
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer).await;
    Ok((agreed, String::from_utf8_lossy(&answer).into_owned()))
}

#[tokio::test]
async fn rfc_7301_both_protocols_are_offered() {
    let files = Files::new();
    let root = files.renew();
    let server = Server::start(Terms { tls: Some(files.load().unwrap()), ..generous() });
    let (agreed, answer) = ask(&server, &root, b"http/1.1").await.unwrap();
    assert_eq!(agreed.as_deref(), Some(&b"http/1.1"[..]));
    assert!(answer.ends_with("127.0.0.1 true"), "{answer}");
    let (agreed, _) = ask(&server, &root, b"h2").await.unwrap();
    assert_eq!(agreed.as_deref(), Some(&b"h2"[..]));
    assert!(ask(&server, &root, b"gopher").await.is_err());
}

#[tokio::test]
async fn rfc_9112_9_6_a_refusal_arrives_although_its_body_is_still_sent() {
    // Red without `poll_linger`: the rest of the body meets a closed connection, and its reset destroys the response.
    let files = Files::new();
    let root = files.renew();
    let server = Server::start(Terms { tls: Some(files.load().unwrap()), ..generous() });
    let mut stream = greeted(&server, &root, b"http/1.1").await.unwrap();
    stream.write_all(b"POST /body HTTP/1.1\r\ncontent-length: 300000\r\n\r\n").await.unwrap();
    stream.write_all(&[b'y'; 100_000]).await.unwrap();
    stream.flush().await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.expect("not closed as TLS is closed");
    assert!(answer.starts_with("HTTP/1.1 413"), "{answer}");
    for _ in 0..20 {
        stream.write_all(&[b'y'; 10_000]).await.expect("reset");
        stream.flush().await.expect("reset");
    }
}

#[tokio::test]
async fn a_client_that_does_not_shake_hands_is_closed() {
    let files = Files::new();
    files.renew();
    let header_timeout = Duration::from_millis(300);
    let tls = files.load().unwrap();
    let server = Server::start(Terms { tls: Some(Arc::clone(&tls)), header_timeout, ..generous() });
    assert_eq!(server.tell("").await, "");
    assert_eq!(tls.failed(), 0, "that is a connection that was cut");
    assert!(!server.get("/").await.starts_with("HTTP"), "plain HTTP on a TLS port");
    assert_eq!(tls.failed(), 1);
}

#[tokio::test]
async fn changed_files_are_read_again_and_broken_ones_are_not_taken() {
    let files = Files::new();
    let old = files.renew();
    let tls = files.load().unwrap();
    let server = Server::start(Terms { tls: Some(Arc::clone(&tls)), ..generous() });
    assert!(ask(&server, &old, b"http/1.1").await.is_ok());
    std::fs::write(&files.certificate, "half a file").unwrap();
    tls.reload_if_changed();
    assert!(tls.reload().is_err());
    assert!(ask(&server, &old, b"http/1.1").await.is_ok(), "the old certificate stays");
    let new = files.renew();
    tls.reload_if_changed();
    assert!(ask(&server, &old, b"http/1.1").await.is_err());
    assert!(ask(&server, &new, b"http/1.1").await.is_ok());
}

#[tokio::test]
async fn files_that_could_not_be_read_are_tried_until_they_can() {
    // Red if `reload` noted the stamp before it could read the file: after a chmod, nothing of the file has changed.
    let files = Files::new();
    files.renew();
    let tls = files.load().unwrap();
    let server = Server::start(Terms { tls: Some(Arc::clone(&tls)), ..generous() });
    let new = files.renew();
    let key = std::fs::read(&files.key).unwrap();
    std::fs::write(&files.key, vec![b'x'; key.len()]).unwrap();
    let written = std::fs::metadata(&files.key).unwrap().modified().unwrap();
    tls.reload_if_changed();
    assert!(ask(&server, &new, b"http/1.1").await.is_err());
    std::fs::write(&files.key, key).unwrap();
    std::fs::File::options().append(true).open(&files.key).unwrap().set_modified(written).unwrap();
    tls.reload_if_changed();
    assert!(ask(&server, &new, b"http/1.1").await.is_ok());
}

#[tokio::test]
async fn what_is_no_file_keeps_nobody_waiting() {
    // Red without O_NONBLOCK in `content`: opening a pipe waits for a writer.
    let files = Files::new();
    let old = files.renew();
    let tls = files.load().unwrap();
    let server = Server::start(Terms { tls: Some(Arc::clone(&tls)), ..generous() });
    for file in [&files.certificate, &files.key] {
        std::fs::remove_file(file).unwrap();
        rustix::fs::mknodat(rustix::fs::CWD, file, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
        let looked = tokio::time::timeout(PATIENCE, tls.look(true)).await;
        // Releases a blocked reader, or the runtime would wait for it.
        drop(std::fs::File::options().read(true).write(true).open(file).unwrap());
        assert!(looked.is_ok(), "{}", file.display());
        let told = tls.reload().unwrap_err().to_string();
        assert!(told.contains("not a regular file") && told.contains("cert.pem"), "{told}");
        assert!(ask(&server, &old, b"http/1.1").await.is_ok(), "the old certificate stays");
    }
    std::fs::remove_file(&files.certificate).unwrap();
    std::fs::create_dir(&files.certificate).unwrap();
    let told = files.load().err().unwrap().to_string();
    assert!(told.contains("not a regular file"), "{told}");
    std::fs::remove_dir(&files.certificate).unwrap();
    std::fs::File::create(&files.certificate).unwrap().set_len((1 << 20) + 1).unwrap();
    let told = files.load().err().unwrap().to_string();
    assert!(told.contains("longer than 1 MiB"), "{told}");
}

#[test]
fn what_is_wrong_is_said_with_the_file() {
    let (files, others) = (Files::new(), Files::new());
    assert!(matches!(files.load(), Err(TlsError::Unreadable(file, _)) if file == files.certificate));
    files.renew();
    others.renew();
    let mismatch = TlsReload::load(&files.certificate, &others.key, "login.test").err().unwrap();
    assert!(matches!(&mismatch, TlsError::Mismatch { key, .. } if *key == others.key), "{mismatch}");
    let swapped = TlsReload::load(&files.key, &files.certificate, "login.test").err().unwrap();
    assert!(matches!(&swapped, TlsError::Empty(file, "certificate") if *file == files.key), "{swapped}");
    std::fs::write(&files.key, "").unwrap();
    assert!(matches!(files.load(), Err(TlsError::Empty(file, "private key")) if file == files.key));
    std::fs::write(&files.key, "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n").unwrap();
    assert!(matches!(files.load(), Err(TlsError::Invalid(file, _)) if file == files.key));
}

#[test]
fn what_no_program_can_read_is_said_in_words() {
    // Red without LOCKED and NO_VERSION_3 in net/tls.rs: the parser's own messages are about Base64 and DER.
    let files = Files::new();
    files.renew();
    let key = std::fs::read_to_string(&files.key).unwrap();
    for locked in [
        "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n",
        "-----BEGIN EC PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,00\n\nAAAA\n-----END EC PRIVATE KEY-----\n",
    ] {
        std::fs::write(&files.key, locked).unwrap();
        let told = files.load().err().unwrap().to_string();
        assert!(told.contains("is encrypted") && told.contains("key.pem"), "{told}");
    }
    std::fs::write(&files.key, key).unwrap();
    std::fs::write(&files.certificate, "-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----\n").unwrap();
    let told = files.load().err().unwrap().to_string();
    assert!(told.contains("X.509 version 3") && told.contains("cert.pem"), "{told}");
}

/// Makes a certificate for `names`, valid in 2030.
fn of_2030(names: &[&str]) -> (rcgen::Certificate, rcgen::KeyPair) {
    let mut params =
        rcgen::CertificateParams::new(names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>()).unwrap();
    params.not_before = rcgen::date_time_ymd(2030, 1, 1);
    params.not_after = rcgen::date_time_ymd(2030, 6, 1);
    let key = rcgen::KeyPair::generate().unwrap();
    (params.self_signed(&key).unwrap(), key)
}

#[test]
fn a_certificate_that_browsers_refuse_is_told_of() {
    // Red without any arm of `outlived`, or without SOON.
    let (made, _) = of_2030(&["login.test", "192.0.2.1", "2001:db8::1"]);
    let at = |date: &str| outlived(made.der(), rules::utc::parse(date).unwrap());
    assert_eq!(at("2029-12-31T23:59:59Z").as_deref(), Some("is not valid before 2030-01-01T00:00:00Z"));
    assert_eq!((at("2030-01-01T00:00:00Z"), at("2030-05-24T00:00:00Z")), (None, None));
    assert_eq!(at("2030-05-26T00:00:00Z").as_deref(), Some("ends at 2030-06-01T00:00:00Z"));
    assert_eq!(at("2030-06-02T00:00:00Z").as_deref(), Some("ended at 2030-06-01T00:00:00Z"));
    assert_eq!(end(made.der()), rules::utc::parse("2030-06-01T00:00:00Z"));
    // Red without `misnamed`.
    for (host, fits) in [
        ("login.test", true),
        ("192.0.2.1", true),
        ("[2001:db8::1]", true),
        ("www.login.test", false),
        ("[2001:db8::2]", false),
        ("localhost", false),
    ] {
        assert_eq!(misnamed(made.der(), host).is_none(), fits, "{host}");
    }
}

#[test]
fn what_is_in_force_is_what_is_told_of() {
    let files = Files::new();
    files.renew();
    let tls = files.load().unwrap();
    assert_eq!(tls.doubts(), Vec::<String>::new());
    let (made, key) = of_2030(&["other.test"]);
    std::fs::write(&files.certificate, made.pem()).unwrap();
    std::fs::write(&files.key, key.serialize_pem()).unwrap();
    tls.reload().unwrap();
    let doubts = tls.doubts();
    assert_eq!(doubts.len(), 2, "{doubts:?}");
    assert!(
        doubts.iter().all(|doubt| doubt.contains("cert.pem")) && doubts[1].ends_with("is not for login.test"),
        "{doubts:?}"
    );
    assert_eq!(tls.outlived(), doubts.first().cloned());
}

// Red without `bared` in tls.rs. Debian's group `ssl-cert` is how a key is lent to a server.
#[test]
fn a_key_that_everybody_may_read_is_told_of() {
    let files = Files::new();
    files.renew();
    let tls = files.load().unwrap();
    for (mode, told) in [(0o400, 0), (0o600, 0), (0o640, 0), (0o644, 1), (0o604, 1), (0o602, 1)] {
        files.lend(mode);
        let doubts = tls.doubts();
        assert_eq!(
            doubts.iter().filter(|doubt| doubt.contains("key.pem is open to everybody")).count(),
            told,
            "{mode:o}"
        );
    }
}

#[tokio::test]
async fn rfc_8446_6_1_a_connection_that_is_not_used_any_more_is_closed_as_tls_is_closed() {
    // Red where the alarm ends it at once (net/serve.rs, converse): a client that asks then cannot know if it was read.
    let files = Files::new();
    let root = files.renew();
    let idle_timeout = Duration::from_millis(300);
    let server = Server::start(Terms { tls: Some(files.load().unwrap()), idle_timeout, ..generous() });
    let mut stream = greeted(&server, &root, b"http/1.1").await.unwrap();
    stream.write_all(b"GET / HTTP/1.1\r\n\r\n").await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.expect("not closed as TLS is closed");
    assert!(answer.ends_with("127.0.0.1 true"), "{answer}");
}
