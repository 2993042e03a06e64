//! A connection that is kept open, and reopened if the server has closed it.

use super::fault::{Fault, broken, most_telling, unconnected};
use super::{Inbox, Reply, Url};
use rustls::pki_types::ServerName;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;
use tokio_rustls::{TlsConnector, rustls};

/// The way to one origin, and the connection while there is one.
pub(super) struct Connection {
    authority: String,
    addresses: Vec<SocketAddr>,
    /// Only for `https`.
    tls: Option<Secured>,
    stream: Option<Stream>,
    opened: u64,
    /// When the last answer was complete.
    answered: Option<Instant>,
    inbox: Inbox,
}

/// The time without an answer after which a server may have closed a connection as idle: the shortest common idle
/// timeout is two seconds.
const IDLE: Duration = if cfg!(test) { Duration::from_millis(50) } else { Duration::from_secs(1) };

/// The TLS configuration, and the name that the certificate has to be for.
pub(super) type Secured = (TlsConnector, ServerName<'static>);

enum Stream {
    Plain(TcpStream),
    Secure(Box<TlsStream<TcpStream>>),
}

impl Connection {
    /// Creates the way to the origin of `url`, without connecting.
    pub(super) fn to(url: &Url, addresses: Vec<SocketAddr>, tls: Option<Secured>) -> Connection {
        let (authority, inbox) = (url.authority().to_owned(), Inbox::default());
        Connection { authority, addresses, tls, stream: None, opened: 0, answered: None, inbox }
    }

    /// Sends a request, over an existing connection if there is one; within `timeout`, connecting included.
    pub(super) async fn send(&mut self, request: &[u8], timeout: Duration) -> Result<(), Fault> {
        let answered = tokio::time::timeout(timeout, self.exchange(request)).await;
        let outcome = answered.unwrap_or(Err(Fault::Timeout));
        if outcome.is_err() || !self.inbox.keeps_alive() {
            self.stream = None;
        }
        outcome
    }

    /// Returns the last response.
    pub(super) fn reply(&self) -> Reply<'_> {
        self.inbox.reply()
    }

    /// Returns true if a connection is open, as far as is known.
    pub(super) fn is_made(&self) -> bool {
        self.stream.is_some()
    }

    /// Returns how often it was opened.
    pub(super) fn opened(&self) -> u64 {
        self.opened
    }

    async fn exchange(&mut self, request: &[u8]) -> Result<(), Fault> {
        let opened = self.opened;
        let stream = self.stream().await?;
        let had_rested = self.opened == opened && self.has_rested();
        match self.over(stream, request).await {
            // Not one byte has come back: the server had closed the connection while it was idle.
            Err(Fault::Closed) if had_rested && self.inbox.is_untouched() => {
                let stream = self.stream().await?;
                self.over(stream, request).await
            }
            outcome => outcome,
        }
    }

    /// Sends a request over `stream`, which is kept if that succeeds.
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

    /// Returns true if there was no answer for so long that a server may have closed the connection as idle. A server
    /// that hangs up right after an answer does so for another reason, which counts as a failure.
    fn has_rested(&self) -> bool {
        self.answered.is_some_and(|answered| answered.elapsed() >= IDLE)
    }

    /// Returns true if requests to `url` use this connection.
    pub(super) fn leads_to(&self, url: &Url) -> bool {
        self.authority == url.authority() && self.tls.is_some() == url.is_secure()
    }

    /// Returns the existing connection, or a new one if it was closed meanwhile.
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
    // Sends what TLS has buffered; plain text has nothing to flush.
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

/// Returns false if the server has closed an idle connection meanwhile. Costs no system call while nothing has
/// happened. Under TLS, anything unsolicited after a response announces a close.
fn is_open(stream: &Stream) -> bool {
    let stream = match stream {
        Stream::Plain(stream) => stream,
        Stream::Secure(stream) => stream.get_ref().0,
    };
    matches!(stream.try_read(&mut [0]), Err(error) if error.kind() == ErrorKind::WouldBlock)
}

async fn connect(addresses: &[SocketAddr]) -> Result<TcpStream, Fault> {
    let mut faults = Vec::new();
    for address in addresses {
        match TcpStream::connect(address).await {
            Ok(stream) => {
                stream.set_nodelay(true).map_err(broken)?;
                return Ok(stream);
            }
            Err(error) => faults.push(unconnected(&error, address.ip())),
        }
    }
    Err(most_telling(&faults))
}

#[cfg(test)]
mod tests {
    use super::super::{Body, Request, Wire};
    use super::*;
    use std::io::Write as _;
    use std::sync::Arc;

    /// Starts a server that on each connection answers the given number of requests, reads one more, waits, and closes.
    fn closing_after(answers: &'static [usize], thought: Duration) -> String {
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
                std::thread::sleep(thought);
            }
        });
        url
    }

    /// Red where the last address speaks for both: a machine without ::1 said that the generator had no port left.
    #[test]
    fn a_server_that_is_not_there_has_refused() {
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let url = Url::parse(&format!("http://localhost:{port}/")).unwrap();
        let tried = crate::run::runtime().unwrap().block_on(connect(&url.addresses().unwrap()));
        assert_eq!(tried.map(|_| ()), Err(Fault::Connect(ErrorKind::ConnectionRefused)));
    }

    /// Red without the second `over`: a failure that browsers hide was counted against the server. Red without
    /// `has_rested`: a server that hangs up right after an answer counted as sound.
    #[test]
    fn what_was_closed_for_being_idle_is_asked_again_once() {
        let asked_of = |url: String, pause: Duration| {
            let url = Url::parse(&url).unwrap();
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
        let asked = |answers, pause| asked_of(closing_after(answers, Duration::ZERO), pause);
        assert_eq!(asked(&[1, 1], later), ([Ok(200), Ok(200)], 2));
        assert_eq!(asked(&[1, 0], later), ([Ok(200), Err(Fault::Closed)], 2), "once");
        assert_eq!(asked(&[0, 0], later), ([Err(Fault::Closed), Err(Fault::Closed)], 2), "never on a new one");
        // A machine that stalls adds a pause of its own.
        let gives_up = ([Ok(200), Err(Fault::Closed)], 1);
        assert!((0..5).any(|_| asked(&[1, 1], soon) == gives_up), "it was not idle");
        let slowly = || asked_of(closing_after(&[1, 1], IDLE * 2), soon);
        assert!((0..5).any(|_| slowly() == gives_up), "nor while the server had the request");
    }
}
