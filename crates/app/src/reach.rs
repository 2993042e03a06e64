//! Whoever is sent something: where they are, how they are believed, a connection to them, and what is posted there.
//!
//! Where they are is the operator's word alone, read from the configuration at the start. Nothing that they answer is
//! followed or kept.

use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::Request;
use hyper::header::{DATE, HOST, HeaderMap, RETRY_AFTER};
use hyper::http::response::Parts as Head;
use hyper_util::rt::TokioIo;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use std::fmt::Display;
use std::io;
use std::net::IpAddr;
use std::path::Path;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::Instant;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// The longest that connecting and its handshake may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// The longest that posting something may take, all in all.
const LONGEST: Duration = Duration::from_secs(30);
/// The most of an answer's body that is read, to be thrown away, and for how long: what was answered is known by then.
const ANSWER: usize = 64 << 10;
const MOMENT: Duration = Duration::from_secs(1);

/// Where somebody is: `SCHEME://HOST[:PORT][/PATH]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// Before `://`.
    pub scheme: String,
    /// A name or an address, without brackets.
    pub host: String,
    /// The port, where it is said.
    pub port: Option<u16>,
    /// From the slash on; `/` where there is none.
    pub path: String,
}

impl Target {
    /// Reads a URL. The error is the end of a sentence that begins with what it is for.
    pub fn parse(text: &str) -> Result<Self, String> {
        let wrong = |why: &str| Err(format!("is not a URL that can be used: {why}"));
        if text.contains(|c: char| !c.is_ascii_graphic()) {
            return wrong("it has other characters than a URL has");
        }
        let Some((scheme, rest)) = text.split_once("://") else { return wrong("it has no scheme") };
        if rest.contains(['@', '#', '\\']) {
            return wrong("it may have no user, password or fragment");
        }
        let (authority, path) = rest.find('/').map_or((rest, "/"), |at| rest.split_at(at));
        let (host, port) = match authority.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            Some((host, port)) => (host, port.strip_prefix(':')),
            None => authority.split_once(':').map_or((authority, None), |(host, port)| (host, Some(port))),
        };
        let port = match port.map(str::parse::<u16>) {
            None => None,
            Some(Ok(port)) if port > 0 => Some(port),
            Some(_) => return wrong("its port is none"),
        };
        if ServerName::try_from(host.to_owned()).is_err() {
            return wrong("its host is no name and no address");
        }
        Ok(Target { scheme: scheme.to_ascii_lowercase(), host: host.to_owned(), port, path: path.to_owned() })
    }

    /// Whether it is this machine, where nobody listens on the way.
    pub fn is_local(&self) -> bool {
        self.host == "localhost" || self.host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
    }

    /// Whether what is secret may be sent there: nobody reads it on the way.
    pub fn keeps_secrets(&self) -> bool {
        self.scheme == "https" || self.is_local()
    }

    /// Host and port as a header names them.
    pub fn authority(&self) -> String {
        let host = if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() };
        self.port.map_or(host.clone(), |port| format!("{host}:{port}"))
    }
}

impl std::fmt::Display for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}://{}{}", self.scheme, self.authority(), self.path)
    }
}

/// How somebody is believed: always by their certificate and their name. `authorities` vouch for them, else those of the
/// system.
///
/// # Errors
/// What keeps the file from being used.
pub(crate) fn tls(authorities: Option<&Path>) -> Result<Arc<ClientConfig>, String> {
    let mut roots = RootCertStore::empty();
    match authorities {
        None => drop(roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs)),
        Some(file) => {
            let unreadable = |why: String| format!("{}: {why}", file.display());
            let read = CertificateDer::pem_file_iter(file).and_then(Iterator::collect::<Result<Vec<_>, _>>);
            let found = read.map_err(|error| unreadable(error.to_string()))?;
            if found.is_empty() {
                return Err(unreadable("no certificate is in it".to_owned()));
            }
            for certificate in found {
                roots.add(certificate).map_err(|error| unreadable(error.to_string()))?;
            }
        }
    }
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let config = config.map_err(|error| error.to_string())?.with_root_certificates(roots).with_no_client_auth();
    Ok(Arc::new(config))
}

/// Why nothing was answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unanswered {
    /// In a sentence for the operator, with who it is about.
    pub why: String,
    /// Whether there was somebody who may have read what was sent.
    pub reached: bool,
}

/// An HTTP server that things are posted to.
pub struct Inbox {
    target: Target,
    tls: Option<Arc<ClientConfig>>,
}

impl Inbox {
    /// The one at a URL of http or https; `authorities` vouch for the latter, else those of the system.
    ///
    /// # Errors
    /// What keeps the authorities from being used.
    pub fn at(target: Target, authorities: Option<&Path>) -> Result<Self, String> {
        let tls = if target.scheme == "https" { Some(tls(authorities)?) } else { None };
        Ok(Inbox { target, tls })
    }

    /// Posts a body with these header fields, on a connection of its own, and gives the head of the answer, and its body as far as
    /// it came within a moment and is short.
    ///
    /// # Errors
    /// Why there is no answer.
    pub async fn post(&self, fields: HeaderMap, body: Bytes) -> Result<(Head, Bytes), Unanswered> {
        let port = if self.tls.is_some() { 443 } else { 80 };
        let authority = self.target.authority();
        let by = Instant::now() + LONGEST;
        let not_reached = |why: String| Unanswered { why, reached: false };
        let failed = |error: &dyn Display| format!("{authority}: {error}");
        let request = Request::post(self.target.path.as_str()).header(HOST, &authority).body(Full::new(body));
        let mut request = request.map_err(|error| not_reached(failed(&error)))?;
        request.headers_mut().extend(fields);
        let link = connect(&self.target, port, self.tls.as_ref()).await.map_err(not_reached)?;
        let why = match tokio::time::timeout_at(by, exchange(link, request)).await {
            Ok(Ok(answer)) => return Ok(answer),
            Ok(Err(error)) => failed(&error),
            Err(_) => format!("{authority} did not answer in time"),
        };
        Err(Unanswered { why, reached: true })
    }
}

/// One request and its answer.
async fn exchange(link: Link, request: Request<Full<Bytes>>) -> Result<(Head, Bytes), hyper::Error> {
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(link)).await?;
    let (mut connection, mut asked) = (pin!(connection), pin!(sender.send_request(request)));
    // The connection ends with the answer, or answers with its end.
    let answer = tokio::select! {
        answer = &mut asked => answer?,
        ended = &mut connection => {
            let answer = asked.await.map_err(|error| ended.err().unwrap_or(error))?;
            return Ok((answer.into_parts().0, Bytes::new()));
        }
    };
    let (head, body) = answer.into_parts();
    let mut said = Bytes::new();
    if head.status.is_success() {
        // What it says is read, so that it may finish.
        let mut whole = pin!(Limited::new(body, ANSWER).collect());
        let read = async {
            tokio::select! {
                biased;
                read = &mut whole => read.ok(),
                _ = &mut connection => whole.await.ok(),
            }
        };
        let read = tokio::time::timeout(MOMENT, read).await.ok().flatten();
        said = read.map(|read| read.to_bytes()).unwrap_or_default();
    }
    Ok((head, said))
}

/// Bytes there and back.
pub(crate) enum Link {
    Plain(TcpStream),
    Sealed(Box<TlsStream<TcpStream>>),
}

/// Connects, sealed where `tls` says how; to `port` where the target names none.
///
/// # Errors
/// Why there is no connection, with who it would have been to.
pub(crate) async fn connect(target: &Target, port: u16, tls: Option<&Arc<ClientConfig>>) -> Result<Link, String> {
    let late = |_| format!("{} did not answer in time", target.authority());
    let address = (target.host.as_str(), target.port.unwrap_or(port));
    let stream = tokio::time::timeout(PATIENCE, TcpStream::connect(address)).await.map_err(late)?;
    let stream = stream.map_err(|error| format!("{}: {error}", target.authority()))?;
    let Some(tls) = tls else { return Ok(Link::Plain(stream)) };
    let name = ServerName::try_from(target.host.clone()).map_err(|error| error.to_string())?;
    let sealed = TlsConnector::from(Arc::clone(tls)).connect(name, stream);
    let sealed = tokio::time::timeout(PATIENCE, sealed).await.map_err(late)?;
    let sealed = sealed.map_err(|error| format!("TLS to {}: {error}", target.authority()))?;
    Ok(Link::Sealed(Box::new(sealed)))
}

macro_rules! each {
    ($self:expr, $link:ident => $act:expr) => {
        match $self.get_mut() {
            Link::Plain($link) => {
                let $link = Pin::new($link);
                $act
            }
            Link::Sealed($link) => {
                let $link = Pin::new($link.as_mut());
                $act
            }
        }
    };
}

impl AsyncRead for Link {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        each!(self, link => link.poll_read(context, into))
    }
}

impl AsyncWrite for Link {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        each!(self, link => link.poll_write(context, bytes))
    }
    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        each!(self, link => link.poll_flush(context))
    }
    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        each!(self, link => link.poll_shutdown(context))
    }
}

/// When whoever answered wants to be asked again: in so many seconds, or at a time, by their own clock (RFC 9110 §10.2.3).
pub fn retry_after(head: &Head) -> Option<Duration> {
    let asked = head.headers.get(RETRY_AFTER)?.to_str().ok()?;
    if let Ok(seconds) = asked.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let time = |text: &str| httpdate::parse_http_date(text).ok();
    let now = time(head.headers.get(DATE)?.to_str().ok()?)?;
    Some(time(asked)?.duration_since(now).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_asks_for_another_time_says_how_long_or_when() {
        let told = |fields: &[(&str, &str)]| {
            let answer =
                fields.iter().fold(hyper::Response::builder(), |answer, (name, value)| answer.header(*name, *value));
            retry_after(&answer.body(()).unwrap().into_parts().0)
        };
        let date = ("date", "Sat, 28 Nov 2026 01:00:00 GMT");
        let seconds = |seconds| Some(Duration::from_secs(seconds));
        assert_eq!(told(&[("retry-after", "90")]), seconds(90));
        assert_eq!(told(&[date, ("retry-after", "Sat, 28 Nov 2026 01:02:00 GMT")]), seconds(120));
        assert_eq!(told(&[date, ("retry-after", "Sat, 28 Nov 2026 00:02:00 GMT")]), seconds(0));
        for nothing in
            [&[date][..], &[("retry-after", "Sat, 28 Nov 2026 01:02:00 GMT")], &[date, ("retry-after", "soon")]]
        {
            assert_eq!(told(nothing), None, "{nothing:?}");
        }
    }

    #[test]
    fn a_target_is_read_whole_or_refused() {
        let read =
            |text| Target::parse(text).map(|target| (target.to_string(), target.host.clone(), target.is_local()));
        assert_eq!(read("https://siem.test/in?a=b").unwrap().0, "https://siem.test/in?a=b");
        assert_eq!(read("tcp://[::1]:514").unwrap(), ("tcp://[::1]:514/".into(), "::1".into(), true));
        assert!(!read("http://localhost.evil.test").unwrap().2);
        assert_eq!(read("HTTPS://siem.test:8088").unwrap().0, "https://siem.test:8088/");
        for bad in [
            "",
            "siem",
            "https://",
            "https://u:p@h",
            "https://h:0",
            "https://h:x",
            "https://h#a",
            "https://h b",
            "https://h\n",
        ] {
            assert!(read(bad).is_err(), "{bad:?}");
        }
    }
}
