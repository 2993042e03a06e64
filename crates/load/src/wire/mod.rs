//! HTTP/1.1 as one visitor speaks it: one kept-alive connection per origin, one request at a time, plain text, loopback.

mod jar;
mod reply;
mod url;

pub use jar::Jar;
pub use reply::{Inbox, Reply};
pub use url::{Url, Wrong};

use std::io::{ErrorKind, Write as _};
use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Why there is no response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// No connection could be made.
    Connect(ErrorKind),
    /// The connection ended in the middle of a response, or before it.
    Closed,
    /// Reading or writing failed otherwise.
    Broken(ErrorKind),
    /// The response was not whole in time.
    Timeout,
    /// What came is no HTTP/1.1 response.
    Malformed(&'static str),
    /// The URL does not lead to this machine.
    Url(Wrong),
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Fault::Connect(kind) => write!(f, "no connection ({kind})"),
            Fault::Closed => f.write_str("the connection was closed early"),
            Fault::Broken(kind) => write!(f, "the connection broke ({kind})"),
            Fault::Timeout => f.write_str("no response in time"),
            Fault::Malformed(what) => f.write_str(what),
            Fault::Url(wrong) => write!(f, "{wrong}"),
        }
    }
}

/// One request.
pub struct Request<'a> {
    /// Where it goes.
    pub url: &'a Url,
    /// The encoded form of a POST; without one it is a GET.
    pub form: Option<&'a str>,
    /// Header fields beside those that every request has; they must hold no line breaks.
    pub headers: &'a [(&'a str, &'a str)],
    /// Cookies to send along.
    pub cookies: Option<&'a Jar>,
}

impl Request<'_> {
    fn write(&self, out: &mut Vec<u8>) {
        out.clear();
        let method = if self.form.is_some() { "POST" } else { "GET" };
        for part in [method, " ", self.url.target(), " HTTP/1.1\r\nhost: ", self.url.authority(), "\r\n"] {
            out.extend_from_slice(part.as_bytes());
        }
        for (name, value) in self.headers {
            for part in [name, ": ", value, "\r\n"] {
                out.extend_from_slice(part.as_bytes());
            }
        }
        let mut before = "cookie: ";
        for (name, value) in self.cookies.into_iter().flat_map(Jar::iter) {
            for part in [before, name, "=", value] {
                out.extend_from_slice(part.as_bytes());
            }
            before = "; ";
        }
        if before == "; " {
            out.extend_from_slice(b"\r\n");
        }
        if let Some(form) = self.form {
            out.extend_from_slice(b"content-type: application/x-www-form-urlencoded\r\ncontent-length: ");
            // Writing into a Vec cannot fail.
            let _ = write!(out, "{}\r\n\r\n{form}", form.len());
        } else {
            out.extend_from_slice(b"\r\n");
        }
    }
}

/// The connections of one visitor.
pub struct Wire {
    timeout: Duration,
    connections: Vec<Connection>,
    out: Vec<u8>,
    answered: u64,
}

impl Wire {
    /// No connection yet; each request, connecting included, may take `timeout`.
    pub fn new(timeout: Duration) -> Self {
        Wire { timeout, connections: Vec::new(), out: Vec::with_capacity(2 * 1024), answered: 0 }
    }

    /// Sends `request` and waits for the whole response.
    ///
    /// # Errors
    /// [`Fault`]; the connection is then gone, and the next request makes a new one. Nothing is sent twice.
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

    /// How many responses have come so far.
    pub fn answered(&self) -> u64 {
        self.answered
    }

    fn connection(&mut self, url: &Url) -> Result<usize, Fault> {
        if let Some(at) = self.connections.iter().position(|known| known.authority == url.authority()) {
            return Ok(at);
        }
        let addresses = url.addresses().map_err(Fault::Url)?;
        let authority = url.authority().to_owned();
        self.connections.push(Connection { authority, addresses, stream: None, inbox: Inbox::default() });
        Ok(self.connections.len() - 1)
    }
}

struct Connection {
    authority: String,
    addresses: Vec<SocketAddr>,
    stream: Option<TcpStream>,
    inbox: Inbox,
}

impl Connection {
    async fn exchange(&mut self, request: &[u8]) -> Result<(), Fault> {
        let mut stream = match self.stream.take().filter(is_open) {
            Some(stream) => stream,
            None => connect(&self.addresses).await?,
        };
        stream.write_all(request).await.map_err(broken)?;
        self.inbox.reset();
        loop {
            let count = stream.read_buf(self.inbox.space()).await.map_err(broken)?;
            if count == 0 {
                return self.inbox.close();
            }
            if self.inbox.advance()? {
                self.stream = Some(stream);
                return Ok(());
            }
        }
    }
}

/// False when the server has closed an idle connection meanwhile. Costs no system call while nothing has happened.
fn is_open(stream: &TcpStream) -> bool {
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
            Err(error) => fault = Fault::Connect(error.kind()),
        }
    }
    Err(fault)
}

fn broken(error: std::io::Error) -> Fault {
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
        let request = Request { url: &url, form: None, headers: &[("accept", "*/*")], cookies: Some(&Jar::default()) };
        assert_eq!(written(&request), "GET /a?b HTTP/1.1\r\nhost: localhost:1\r\naccept: */*\r\n\r\n");
    }

    #[test]
    fn a_post_carries_its_form_and_all_cookies_in_one_line() {
        let url = Url::parse("http://localhost/a").unwrap();
        let mut jar = Jar::default();
        jar.keep("a=1");
        jar.keep("b=2; Path=/");
        let request = Request { url: &url, form: Some("x=y"), headers: &[], cookies: Some(&jar) };
        let expected = "POST /a HTTP/1.1\r\nhost: localhost\r\ncookie: a=1; b=2\r\n\
                        content-type: application/x-www-form-urlencoded\r\ncontent-length: 3\r\n\r\nx=y";
        assert_eq!(written(&request), expected);
    }
}
