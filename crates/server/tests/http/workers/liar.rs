//! A worker that speaks the language and computes nothing.

use hasher::argon2::Tag;
use hasher::remote::frame::{Answer, Frame, HEADER, Ready};
use hasher::remote::versions::Versions;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{AlwaysResolvesClientRawPublicKeys, ClientConnection};
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer, ServerName, UnixTime};
use rustls::sign::CertifiedKey;
use rustls::{ClientConfig, DigitallySignedStruct, Error, SignatureScheme, StreamOwned};
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;

pub type Stream = StreamOwned<ClientConnection, TcpStream>;

/// A thread that lies until it is sent away.
pub struct Liar(JoinHandle<Vec<u8>>);

impl Liar {
    /// With the key of an enrolled worker.
    pub fn start(folder: &Path, door: &str) -> Liar {
        let mut stream = dial(folder, door);
        say(&mut stream, &Frame::Hello { speaks: Versions::OURS }).unwrap();
        let (welcome, _) = hear(&mut stream).unwrap();
        assert!(matches!(welcome, Frame::Welcome { .. }), "{welcome:?}");
        let ready = Ready { threads: 8, memory: 1 << 20, holds: 64, rate: u64::MAX };
        say(&mut stream, &Frame::Ready(ready)).unwrap();
        Liar(std::thread::spawn(move || lie(stream)))
    }

    /// What it was told until it was sent away.
    pub fn end(self) -> Vec<u8> {
        self.0.join().unwrap()
    }

    /// What the server says to a worker of this folder.
    pub fn knock(folder: &Path, door: &str) -> String {
        Liar::stay(folder, door).0
    }

    /// The same, and the connection, which stays until it is dropped.
    pub fn stay(folder: &Path, door: &str) -> (String, Stream) {
        let mut stream = dial(folder, door);
        say(&mut stream, &Frame::Hello { speaks: Versions::OURS }).unwrap();
        match hear(&mut stream).unwrap().0 {
            Frame::Welcome { .. } => ("welcome".into(), stream),
            Frame::Refused(why) => (why, stream),
            other => panic!("{other:?}"),
        }
    }

    /// What the server says to one that begins with these bytes: in which version it goes on, or why it does not. Nothing where it
    /// hangs up.
    pub fn begin(folder: &Path, door: &str, bytes: &[u8]) -> Option<Result<u8, String>> {
        let mut stream = dial(folder, door);
        stream.write_all(bytes).and_then(|()| stream.flush()).unwrap();
        match hear(&mut stream).ok()?.0 {
            Frame::Welcome { version, .. } => Some(Ok(version)),
            Frame::Refused(why) => Some(Err(why)),
            other => panic!("{other:?}"),
        }
    }

    /// What the server says to one that says this of itself.
    pub fn ready(folder: &Path, door: &str, ready: Ready) -> String {
        let (_, mut stream) = Liar::stay(folder, door);
        say(&mut stream, &Frame::Ready(ready)).unwrap();
        match hear(&mut stream).unwrap().0 {
            Frame::Refused(why) => why,
            other => panic!("{other:?}"),
        }
    }

    /// Says this again and again, which nobody asked for; whether it was sent away before it was asked anything.
    pub fn babble(folder: &Path, door: &str, frame: &Frame, times: usize) -> bool {
        let (_, mut stream) = Liar::stay(folder, door);
        say(&mut stream, &Frame::Ready(Ready { threads: 1, memory: 1 << 20, holds: 0, rate: 1 })).unwrap();
        (0..times).any(|_| say(&mut stream, frame).is_err()) || hear(&mut stream).is_err()
    }
}

fn lie(mut stream: Stream) -> Vec<u8> {
    let mut heard = Vec::new();
    while let Ok((frame, bytes)) = hear(&mut stream) {
        heard.extend(bytes);
        let answer = match frame {
            Frame::Asks(asks) => {
                let tag = |id: u64| Some(Tag::new(vec![id as u8; 32]));
                Frame::Answers(asks.iter().map(|ask| Answer { id: ask.id, tag: tag(ask.id) }).collect())
            }
            Frame::Ping => Frame::Pong,
            _ => continue,
        };
        if say(&mut stream, &answer).is_err() {
            break;
        }
    }
    heard
}

fn dial(folder: &Path, door: &str) -> Stream {
    let mut der = vec![0x30, 0x2e, 2, 1, 0, 0x30, 5, 6, 3, 0x2b, 0x65, 0x70, 4, 0x22, 4, 0x20];
    der.extend(std::fs::read(folder.join("worker.key")).unwrap());
    let key = aws_lc_rs::sign::any_eddsa_type(&PrivatePkcs8KeyDer::from(der.as_slice())).unwrap();
    let public = CertificateDer::from(key.public_key().unwrap().as_ref().to_vec());
    let certified = Arc::new(CertifiedKey::new(vec![public], key));
    let mut config = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Anybody))
        .with_client_cert_resolver(Arc::new(AlwaysResolvesClientRawPublicKeys::new(certified)));
    config.alpn_protocols = vec![b"portiere-verifier/1".to_vec()];
    let connection = ClientConnection::new(Arc::new(config), ServerName::try_from("liar").unwrap()).unwrap();
    StreamOwned::new(connection, TcpStream::connect(door).unwrap())
}

fn say(stream: &mut Stream, frame: &Frame) -> io::Result<()> {
    stream.write_all(&frame.encode())?;
    stream.flush()
}

fn hear(stream: &mut Stream) -> io::Result<(Frame, Vec<u8>)> {
    let mut header = [0; HEADER];
    stream.read_exact(&mut header)?;
    let (kind, length) = Frame::header(header).unwrap();
    let mut body = vec![0; length];
    stream.read_exact(&mut body)?;
    Ok((Frame::decode(kind, &body).unwrap(), body))
}

/// It does not care who it works for.
#[derive(Debug)]
struct Anybody;

impl ServerCertVerifier for Anybody {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }
    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }
    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }
    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![SignatureScheme::ED25519]
    }
    fn requires_raw_public_keys(&self) -> bool {
        true
    }
}
