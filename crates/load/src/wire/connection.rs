//! One connection that is kept, and made anew where a server has closed it.

use super::fault::{Fault, broken, unconnected};
use super::{Inbox, Reply, Url};
use rustls::pki_types::ServerName;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;
use tokio_rustls::{TlsConnector, rustls};

/// All that is known of the way to one origin, and the connection while there is one.
pub(super) struct Connection {
    authority: String,
    addresses: Vec<SocketAddr>,
    /// For `https`, and only there.
    tls: Option<Secured>,
    stream: Option<Stream>,
    opened: u64,
    /// When the last answer had come.
    answered: Option<Instant>,
    inbox: Inbox,
}

/// The time without any answer after which a server may have closed a connection for being idle: the shortest that is usual is two
/// seconds.
const IDLE: Duration = if cfg!(test) { Duration::from_millis(50) } else { Duration::from_secs(1) };

/// How TLS is spoken, and whose certificate is expected.
pub(super) type Secured = (TlsConnector, ServerName<'static>);

enum Stream {
    Plain(TcpStream),
    Secure(Box<TlsStream<TcpStream>>),
}

impl Connection {
    /// The way to the origin of `url`, which nobody has gone yet.
    pub(super) fn to(url: &Url, addresses: Vec<SocketAddr>, tls: Option<Secured>) -> Connection {
        let (authority, inbox) = (url.authority().to_owned(), Inbox::default());
        Connection { authority, addresses, tls, stream: None, opened: 0, answered: None, inbox }
    }

    /// Asks, over a connection of before where there is one; within `timeout`, connecting included.
    pub(super) async fn send(&mut self, request: &[u8], timeout: Duration) -> Result<(), Fault> {
        let answered = tokio::time::timeout(timeout, self.exchange(request)).await;
        let outcome = answered.unwrap_or(Err(Fault::Timeout));
        if outcome.is_err() || !self.inbox.keeps_alive() {
            self.stream = None;
        }
        outcome
    }

    /// What came last.
    pub(super) fn reply(&self) -> Reply<'_> {
        self.inbox.reply()
    }

    /// True where one is open, as far as is known.
    pub(super) fn is_made(&self) -> bool {
        self.stream.is_some()
    }

    /// How often it was made.
    pub(super) fn opened(&self) -> u64 {
        self.opened
    }

    async fn exchange(&mut self, request: &[u8]) -> Result<(), Fault> {
        let opened = self.opened;
        let stream = self.stream().await?;
        let had_rested = self.opened == opened && self.has_rested();
        match self.over(stream, request).await {
            // Nobody has answered: the server had closed it while it was idle.
            Err(Fault::Closed) if had_rested && self.inbox.is_untouched() => {
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

    /// True where requests to `url` go this way.
    pub(super) fn leads_to(&self, url: &Url) -> bool {
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

#[cfg(test)]
mod tests {
    use super::super::{Body, Request, Wire};
    use super::*;
    use std::io::Write as _;
    use std::sync::Arc;

    /// A server that on each connection answers as many requests as said, reads one more, thinks for so long, and closes.
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

    /// Red without the second `over`: what a browser does not notice was told as a failure of the server. Red without `has_rested`: so
    /// was a server that hangs up on whom it has just answered told as sound.
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
        // A machine that stands still makes a pause of its own.
        let gives_up = ([Ok(200), Err(Fault::Closed)], 1);
        assert!((0..5).any(|_| asked(&[1, 1], soon) == gives_up), "it was not idle");
        let slowly = || asked_of(closing_after(&[1, 1], IDLE * 2), soon);
        assert!((0..5).any(|_| slowly() == gives_up), "nor while the server had the request");
    }
}
