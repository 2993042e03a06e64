//! HTTP/1.1 as one visitor speaks it: one kept-alive connection per origin, one request at a time, in plain text or TLS.

mod jar;
mod reach;
mod reply;
mod trust;
mod url;

pub use jar::Jar;
pub use reach::Reach;
pub use reply::{Inbox, Reply};
pub use url::{Url, Wrong};

use rustix::io::Errno;
use rustls::pki_types::ServerName;
use std::io::{ErrorKind, Write as _};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;
use tokio_rustls::{TlsConnector, rustls};

/// Why there is no response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// No connection could be made.
    Connect(ErrorKind),
    /// The same, because this process or this machine may open no more files: a limit of the generator's own.
    NoFiles,
    /// The same, because this machine has no port left to come from: a limit of the generator's own.
    NoPorts,
    /// A connection was made, but TLS was not agreed on, for this reason.
    Tls(&'static str),
    /// The connection ended in the middle of a response, or before it.
    Closed,
    /// Reading or writing failed otherwise.
    Broken(ErrorKind),
    /// The response was not whole in time.
    Timeout,
    /// What came is no HTTP/1.1 response.
    Malformed(&'static str),
    /// The URL does not lead to this machine, or to one that is owned.
    Url(Wrong),
}

impl Fault {
    /// True where there was no connection at all: whoever goes on at once then only goes round, and keeps a core busy with it. A
    /// connection that ended is another matter, since the next one is work for the server as the one before was.
    pub const fn is_unconnected(self) -> bool {
        match self {
            Fault::Connect(_) | Fault::NoFiles | Fault::NoPorts | Fault::Tls(_) => true,
            Fault::Closed | Fault::Broken(_) | Fault::Timeout | Fault::Malformed(_) | Fault::Url(_) => false,
        }
    }
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Fault::Connect(kind) => write!(f, "no connection ({kind})"),
            Fault::NoFiles => {
                f.write_str("no connection: the generator itself may open no more files, which is no failure of the server (ulimit -n)")
            }
            Fault::NoPorts => f.write_str(
                "no connection: the generator itself has no port left, which is no failure of the server (keep connections open)",
            ),
            Fault::Tls(why) => write!(f, "TLS failed: {why}"),
            Fault::Closed => f.write_str("the connection was closed early"),
            Fault::Broken(kind) => write!(f, "the connection broke ({kind})"),
            Fault::Timeout => f.write_str("no response in time"),
            Fault::Malformed(what) => f.write_str(what),
            Fault::Url(wrong) => write!(f, "{wrong}"),
        }
    }
}

/// What goes along with a request; it decides its method.
#[derive(Clone, Copy, Debug)]
pub enum Body<'a> {
    /// GET.
    Nothing,
    /// POST of an encoded form.
    Form(&'a str),
    /// POST of JSON.
    Json(&'a str),
}

/// One request.
pub struct Request<'a> {
    /// Where it goes.
    pub url: &'a Url,
    /// What goes along.
    pub body: Body<'a>,
    /// Header fields beside those that every request has; they must hold no line breaks.
    pub headers: &'a [(&'a str, &'a str)],
    /// Cookies to send along.
    pub cookies: Option<&'a Jar>,
}

/// Some providers ask for it.
const AGENT: &str = concat!("user-agent: portiere-load/", env!("CARGO_PKG_VERSION"), "\r\n");

impl Request<'_> {
    fn write(&self, out: &mut Vec<u8>) {
        out.clear();
        let (method, body) = match self.body {
            Body::Nothing => ("GET", None),
            Body::Form(text) => ("POST", Some(("application/x-www-form-urlencoded", text))),
            Body::Json(text) => ("POST", Some(("application/json", text))),
        };
        for part in [method, " ", self.url.target(), " HTTP/1.1\r\nhost: ", self.url.authority(), "\r\n", AGENT] {
            out.extend_from_slice(part.as_bytes());
        }
        for (name, value) in self.headers {
            for part in [name, ": ", value, "\r\n"] {
                out.extend_from_slice(part.as_bytes());
            }
        }
        let mut before = "cookie: ";
        for (name, value) in self.cookies.into_iter().flat_map(|jar| jar.sent_to(self.url)) {
            for part in [before, name, "=", value] {
                out.extend_from_slice(part.as_bytes());
            }
            before = "; ";
        }
        if before == "; " {
            out.extend_from_slice(b"\r\n");
        }
        if let Some((kind, text)) = body {
            // Writing into a Vec cannot fail.
            let _ = write!(out, "content-type: {kind}\r\ncontent-length: {}\r\n\r\n{text}", text.len());
        } else {
            out.extend_from_slice(b"\r\n");
        }
    }
}

/// The connections of one visitor.
pub struct Wire {
    timeout: Duration,
    reach: Arc<Reach>,
    connections: Vec<Connection>,
    out: Vec<u8>,
    answered: u64,
}

impl Wire {
    /// No connection yet; each request, connecting included, may take `timeout`, and goes no further than `reach`.
    pub fn new(timeout: Duration, reach: Arc<Reach>) -> Self {
        Wire { timeout, reach, connections: Vec::new(), out: Vec::with_capacity(2 * 1024), answered: 0 }
    }

    /// Sends `request` and waits for the whole response.
    ///
    /// # Errors
    /// [`Fault`]; the connection is then gone, and the next request makes a new one. A request is sent again, once and as browsers do,
    /// over a connection of its own, where one that had been idle was closed without a single byte of an answer: a server may close such
    /// a one while the request is on its way (RFC 9112 §9.3.1 and §9.6).
    pub async fn send(&mut self, request: &Request<'_>) -> Result<Reply<'_>, Fault> {
        let at = self.connection(request.url)?;
        request.write(&mut self.out);
        let connection = &mut self.connections[at];
        let answered = tokio::time::timeout(self.timeout, connection.exchange(&self.out)).await;
        let outcome = answered.unwrap_or(Err(Fault::Timeout));
        if outcome.is_err() || !connection.inbox.keeps_alive() {
            connection.stream = None;
        }
        self.answered += u64::from(outcome.is_ok());
        outcome.map(|()| connection.inbox.reply())
    }

    /// True when there is a connection that requests to `url` go over, as far as is known.
    pub fn is_connected(&self, url: &Url) -> bool {
        self.connections.iter().any(|known| known.leads_to(url) && known.stream.is_some())
    }

    /// How many connections have been made so far.
    pub fn opened(&self) -> u64 {
        self.connections.iter().map(|connection| connection.opened).sum()
    }

    /// How many responses have come so far.
    pub fn answered(&self) -> u64 {
        self.answered
    }

    fn connection(&mut self, url: &Url) -> Result<usize, Fault> {
        if let Some(at) = self.connections.iter().position(|known| known.leads_to(url)) {
            return Ok(at);
        }
        let addresses = self.reach.addresses(url).map_err(Fault::Url)?;
        let authority = url.authority().to_owned();
        let tls = url.is_secure().then(|| self.secured(url)).transpose()?;
        self.connections.push(Connection {
            authority,
            addresses,
            tls,
            stream: None,
            opened: 0,
            answered: None,
            inbox: Inbox::default(),
        });
        Ok(self.connections.len() - 1)
    }

    /// What `https` needs. A host that no certificate can name is a fault: nothing goes there in plain text instead.
    fn secured(&self, url: &Url) -> Result<(TlsConnector, ServerName<'static>), Fault> {
        let config = self.reach.tls().ok_or(Fault::Url(Wrong::NoTls))?;
        let name =
            ServerName::try_from(url.host().to_owned()).map_err(|_| Fault::Tls("no certificate is for such a name"))?;
        Ok((TlsConnector::from(config), name))
    }
}

struct Connection {
    authority: String,
    addresses: Vec<SocketAddr>,
    /// For `https`, and only there.
    tls: Option<(TlsConnector, ServerName<'static>)>,
    stream: Option<Stream>,
    /// How often it was made.
    opened: u64,
    /// When the last answer had come.
    answered: Option<Instant>,
    inbox: Inbox,
}

/// The time without any answer after which a server may have closed a connection for being idle: the shortest that is usual is two
/// seconds.
const IDLE: Duration = if cfg!(test) { Duration::from_millis(50) } else { Duration::from_secs(1) };

enum Stream {
    Plain(TcpStream),
    Secure(Box<TlsStream<TcpStream>>),
}

impl Connection {
    async fn exchange(&mut self, request: &[u8]) -> Result<(), Fault> {
        let opened = self.opened;
        let stream = self.stream().await?;
        let is_used = self.opened == opened;
        match self.over(stream, request).await {
            // Nobody has answered: the server had closed it while it was idle.
            Err(Fault::Closed) if is_used && self.has_rested() && self.inbox.is_untouched() => {
                let stream = self.stream().await?;
                self.over(stream, request).await
            }
            outcome => outcome,
        }
    }

    /// Asks over `stream`, which is kept where that goes well.
    async fn over(&mut self, mut stream: Stream, request: &[u8]) -> Result<(), Fault> {
        self.inbox.reset();
        match &mut stream {
            Stream::Plain(stream) => converse(stream, request, &mut self.inbox).await?,
            Stream::Secure(stream) => converse(stream.as_mut(), request, &mut self.inbox).await?,
        }
        self.stream = Some(stream);
        self.answered = Some(Instant::now());
        Ok(())
    }

    /// True where nothing was answered for so long that a server may have closed it for that. One that hangs up on who has just been
    /// answered does so for another reason, which is its failure.
    fn has_rested(&self) -> bool {
        self.answered.is_some_and(|answered| answered.elapsed() >= IDLE)
    }

    fn leads_to(&self, url: &Url) -> bool {
        self.authority == url.authority() && self.tls.is_some() == url.is_secure()
    }

    /// The one that there is, or another where it was closed meanwhile.
    async fn stream(&mut self) -> Result<Stream, Fault> {
        if let Some(stream) = self.stream.take().filter(is_open) {
            return Ok(stream);
        }
        let stream = self.connect().await?;
        self.opened += 1;
        Ok(stream)
    }

    async fn connect(&self) -> Result<Stream, Fault> {
        let stream = connect(&self.addresses).await?;
        let Some((connector, name)) = &self.tls else { return Ok(Stream::Plain(stream)) };
        let agreed = Box::pin(connector.connect(name.clone(), stream)).await.map_err(broken)?;
        Ok(Stream::Secure(Box::new(agreed)))
    }
}

/// Sends a request and reads the whole response.
async fn converse<S>(stream: &mut S, request: &[u8], inbox: &mut Inbox) -> Result<(), Fault>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    stream.write_all(request).await.map_err(broken)?;
    // What TLS holds back is sent here; plain text has nothing to flush.
    stream.flush().await.map_err(broken)?;
    loop {
        let count = stream.read_buf(inbox.space()).await.map_err(broken)?;
        if count == 0 {
            return inbox.close();
        }
        if inbox.advance()? {
            return Ok(());
        }
    }
}

/// False when the server has closed an idle connection meanwhile. Costs no system call while nothing has happened. Under TLS
/// anything that comes unasked after a response is the announcement of a close.
fn is_open(stream: &Stream) -> bool {
    let stream = match stream {
        Stream::Plain(stream) => stream,
        Stream::Secure(stream) => stream.get_ref().0,
    };
    matches!(stream.try_read(&mut [0]), Err(error) if error.kind() == ErrorKind::WouldBlock)
}

async fn connect(addresses: &[SocketAddr]) -> Result<TcpStream, Fault> {
    let mut fault = Fault::Connect(ErrorKind::AddrNotAvailable);
    for address in addresses {
        match TcpStream::connect(address).await {
            Ok(stream) => {
                stream.set_nodelay(true).map_err(broken)?;
                return Ok(stream);
            }
            Err(error) => fault = unconnected(&error),
        }
    }
    Err(fault)
}

fn unconnected(error: &std::io::Error) -> Fault {
    match Errno::from_io_error(error) {
        Some(Errno::MFILE | Errno::NFILE) => Fault::NoFiles,
        // No port is left to come from: those of connections that ended rest for a minute.
        Some(Errno::ADDRNOTAVAIL) => Fault::NoPorts,
        _ => Fault::Connect(error.kind()),
    }
}

/// What TLS itself objects to.
fn objection(error: &rustls::Error) -> &'static str {
    use rustls::{AlertDescription as Alert, CertificateError as Certificate, Error};
    match error {
        Error::InvalidCertificate(Certificate::UnknownIssuer | Certificate::BadSignature) => {
            "nobody who is trusted signed the certificate (--ca FILE)"
        }
        Error::InvalidCertificate(Certificate::NotValidForName | Certificate::NotValidForNameContext { .. }) => {
            "the certificate is for another name (subjectAltName)"
        }
        Error::InvalidCertificate(Certificate::Expired | Certificate::ExpiredContext { .. }) => {
            "the certificate has run out"
        }
        Error::InvalidCertificate(Certificate::NotValidYet | Certificate::NotValidYetContext { .. }) => {
            "the certificate is not good yet"
        }
        error if trust::is_of_an_authority(error) => {
            "the server shows the certificate of an authority as its own, which is trusted only where --ca FILE names exactly that one"
        }
        Error::InvalidCertificate(_) => "the certificate is not trusted (--ca FILE)",
        Error::AlertReceived(Alert::CertificateRequired) => {
            "the server wants a certificate of the client, and none is shown here"
        }
        Error::PeerIncompatible(_) | Error::AlertReceived(Alert::ProtocolVersion) => {
            "the server offers no version or cipher that is safe (TLS 1.2 at least)"
        }
        Error::AlertReceived(Alert::HandshakeFailure) => {
            "the server offers no cipher that is safe, or wants a certificate of the client, and none is shown here"
        }
        Error::InvalidMessage(_) => "it is no https",
        _ => "the server and the generator do not agree",
    }
}

fn broken(error: std::io::Error) -> Fault {
    if let Some(error) = error.get_ref().and_then(|inside| inside.downcast_ref::<rustls::Error>()) {
        return Fault::Tls(objection(error));
    }
    match error.kind() {
        ErrorKind::ConnectionReset | ErrorKind::BrokenPipe | ErrorKind::UnexpectedEof => Fault::Closed,
        kind => Fault::Broken(kind),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(request: &Request<'_>) -> String {
        let mut out = Vec::new();
        request.write(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_get_has_no_body() {
        let url = Url::parse("http://localhost:1/a?b").unwrap();
        let request =
            Request { url: &url, body: Body::Nothing, headers: &[("accept", "*/*")], cookies: Some(&Jar::default()) };
        assert_eq!(written(&request), format!("GET /a?b HTTP/1.1\r\nhost: localhost:1\r\n{AGENT}accept: */*\r\n\r\n"));
    }

    #[test]
    fn who_may_open_no_more_files_is_told_from_who_is_not_let_in() {
        let of = |errno: Errno| unconnected(&errno.into());
        assert_eq!([of(Errno::MFILE), of(Errno::NFILE)], [Fault::NoFiles; 2]);
        assert_eq!(of(Errno::ADDRNOTAVAIL), Fault::NoPorts);
        assert_eq!(of(Errno::CONNREFUSED), Fault::Connect(ErrorKind::ConnectionRefused));
        assert!(Fault::NoFiles.to_string().contains("the generator itself"));
    }

    /// Red where whoever is hung up on pauses: a server that closes each connection was offered ten a second of each user.
    #[test]
    fn only_who_gets_no_connection_would_go_round() {
        let refused = Fault::Connect(ErrorKind::ConnectionRefused);
        assert!(
            [refused, Fault::NoFiles, Fault::NoPorts, Fault::Tls("it is no https")].iter().all(|f| f.is_unconnected())
        );
        let others = [
            Fault::Closed,
            Fault::Broken(ErrorKind::Other),
            Fault::Timeout,
            Fault::Malformed(""),
            Fault::Url(Wrong::NoTls),
        ];
        assert!(!others.iter().any(|fault| fault.is_unconnected()));
    }

    #[test]
    fn what_tls_objects_to_is_told() {
        use rustls::{CertificateError as Certificate, Error};
        let of = |error: Error| broken(std::io::Error::new(ErrorKind::InvalidData, error)).to_string();
        assert!(of(Error::InvalidCertificate(Certificate::UnknownIssuer)).contains("--ca FILE"));
        assert!(of(Error::InvalidCertificate(Certificate::Expired)).contains("has run out"));
        assert!(of(Error::InvalidCertificate(Certificate::NotValidForName)).contains("another name"));
        assert!(of(Error::AlertReceived(rustls::AlertDescription::CertificateRequired)).contains("of the client"));
    }

    #[test]
    fn a_post_carries_its_form_and_all_cookies_in_one_line() {
        let url = Url::parse("http://localhost/a").unwrap();
        let mut jar = Jar::default();
        jar.keep("a=1");
        jar.keep("b=2; Path=/");
        let request = Request { url: &url, body: Body::Form("x=y"), headers: &[], cookies: Some(&jar) };
        let expected = format!(
            "POST /a HTTP/1.1\r\nhost: localhost\r\n{AGENT}cookie: a=1; b=2\r\n\
             content-type: application/x-www-form-urlencoded\r\ncontent-length: 3\r\n\r\nx=y"
        );
        assert_eq!(written(&request), expected);
    }

    /// A server that on each connection answers as many requests as said, reads one more, and closes.
    fn closing_after(answers: &'static [usize]) -> String {
        use std::io::Read as _;
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        std::thread::spawn(move || {
            for answers in answers {
                let (mut stream, _) = listener.accept().unwrap();
                for _ in 0..*answers {
                    assert!(stream.read(&mut [0; 4096]).unwrap() > 0);
                    stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").unwrap();
                }
                let _ = stream.read(&mut [0; 4096]);
            }
        });
        url
    }

    /// Red without the second `over`: what a browser does not notice was told as a failure of the server. Red without `has_rested`: so
    /// was a server that hangs up on whom it has just answered told as sound.
    #[test]
    fn what_was_closed_for_being_idle_is_asked_again_once() {
        let asked = |answers, pause: Duration| {
            let url = Url::parse(&closing_after(answers)).unwrap();
            let mut wire = Wire::new(Duration::from_secs(30), Arc::default());
            let request = Request { url: &url, body: Body::Form("a=b"), headers: &[], cookies: None };
            crate::run::runtime().unwrap().block_on(async {
                let first = wire.send(&request).await.map(|reply| reply.status());
                tokio::time::sleep(pause).await;
                let second = wire.send(&request).await.map(|reply| reply.status());
                ([first, second], wire.opened())
            })
        };
        let (soon, later) = (Duration::ZERO, IDLE);
        assert_eq!(asked(&[1, 1], later), ([Ok(200), Ok(200)], 2));
        assert_eq!(asked(&[1, 0], later), ([Ok(200), Err(Fault::Closed)], 2), "once");
        assert_eq!(asked(&[0, 0], later), ([Err(Fault::Closed), Err(Fault::Closed)], 2), "never on a new one");
        // A machine that stands still makes a pause of its own.
        let hung_up = (0..5).any(|_| asked(&[1, 1], soon) == ([Ok(200), Err(Fault::Closed)], 1));
        assert!(hung_up, "it was not idle");
    }
}
