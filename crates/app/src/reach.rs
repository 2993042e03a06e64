//! Remote services that the server sends something to: where they are, how they are authenticated, a connection to
//! them, and what is posted there.
//!
//! Only the configuration, read at the start, says where they are. Nothing that they answer is followed or kept.

mod inbox;

pub use inbox::{Inbox, Unanswered};
pub use store::remote::{OpenError, Tls};

use hyper::header::{DATE, RETRY_AFTER};
use hyper::http::response::Parts as Head;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use std::io;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use store::remote::Renewed;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// The longest that connecting and its handshake may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// Where a remote service is: `SCHEME://HOST[:PORT][/PATH]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// The part before `://`.
    pub scheme: String,
    /// A name or an address, without brackets.
    pub host: String,
    /// The port, if the URL names one.
    pub port: Option<u16>,
    /// The path, from the slash on; `/` where there is none.
    pub path: String,
}

impl Target {
    /// Reads a URL. The error is the end of a sentence that begins with what the URL is for.
    pub fn parse(text: &str) -> Result<Self, String> {
        let wrong = |why: &str| Err(format!("is not a usable URL: {why}"));
        if text.contains(|c: char| !c.is_ascii_graphic()) {
            return wrong("it has characters that a URL cannot have");
        }
        let Some((scheme, rest)) = text.split_once("://") else { return wrong("it has no scheme") };
        if rest.contains(['@', '#', '\\']) {
            return wrong("it must not have a user, password or fragment");
        }
        let (authority, path) = rest.find('/').map_or((rest, "/"), |at| rest.split_at(at));
        let (host, port) = match authority.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            Some((host, port)) => (host, port.strip_prefix(':')),
            None => authority.split_once(':').map_or((authority, None), |(host, port)| (host, Some(port))),
        };
        let port = match port.map(str::parse::<u16>) {
            None => None,
            Some(Ok(port)) if port > 0 => Some(port),
            Some(_) => return wrong("its port is not a number from 1 to 65535"),
        };
        if ServerName::try_from(host.to_owned()).is_err() {
            return wrong("its host is neither a name nor an address");
        }
        Ok(Target { scheme: scheme.to_ascii_lowercase(), host: host.to_owned(), port, path: path.to_owned() })
    }

    /// Whether the target is this machine, so that nobody can listen on the way.
    fn is_local(&self) -> bool {
        self.host == "localhost" || self.host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
    }

    /// Whether secrets may be sent there, because nobody can read them on the way.
    pub fn keeps_secrets(&self) -> bool {
        self.scheme == "https" || self.is_local()
    }

    /// Returns host and port as a header names them.
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

/// Prepares TLS to a service, which is authenticated by its certificate and its name; `whose` is its name in the log.
/// Files that are replaced meanwhile are used from the next connection on.
///
/// # Errors
/// Says which file cannot be used.
pub(crate) fn sealing(whose: &'static str, tls: &Tls) -> Result<Sealing, OpenError> {
    let files = tls.clone();
    Renewed::new(whose, tls.files(), move || files.config().map(Arc::new))
}

/// The result of [`sealing`].
pub(crate) type Sealing = Renewed<Arc<ClientConfig>>;

/// A connection, with or without TLS.
pub(crate) enum Link {
    Plain(TcpStream),
    Sealed(Box<TlsStream<TcpStream>>),
}

/// Connects, with TLS if `tls` is given; to `port` if the target names none.
///
/// # Errors
/// Says why there is no connection, and to which service it would have been.
pub(crate) async fn connect(target: &Target, port: u16, tls: Option<&Sealing>) -> Result<Link, String> {
    let late = |_| format!("{} did not answer in time", target.authority());
    let address = (target.host.as_str(), target.port.unwrap_or(port));
    let stream = tokio::time::timeout(PATIENCE, TcpStream::connect(address)).await.map_err(late)?;
    let stream = stream.map_err(|error| format!("{}: {error}", target.authority()))?;
    let Some(tls) = tls else { return Ok(Link::Plain(stream)) };
    let name = ServerName::try_from(target.host.clone()).map_err(|error| error.to_string())?;
    let sealed = TlsConnector::from(tls.get().await).connect(name, stream);
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

/// Returns when the service that answered wants to be asked again: after a number of seconds, or at a time by its own
/// clock (RFC 9110 §10.2.3).
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
