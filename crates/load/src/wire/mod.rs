//! HTTP/1.1 for one visitor: one kept-alive connection per origin, one request at a time, in plain text or TLS.

mod connection;
mod fault;
mod jar;
mod reach;
mod reply;
mod trust;
mod url;

pub use fault::Fault;
pub use jar::Jar;
pub use reach::Reach;
pub use reply::{Inbox, NO_HTTP, Reply};
pub use url::{Url, Wrong};

use connection::{Connection, Secured};
use rustls::pki_types::ServerName;
use std::io::Write as _;
use std::sync::Arc;
use std::time::Duration;
use tokio_rustls::{TlsConnector, rustls};

/// The body of a request; it determines the method.
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
    /// The address.
    pub url: &'a Url,
    /// The body.
    pub body: Body<'a>,
    /// Header fields besides those that every request has; they must not contain line breaks.
    pub headers: &'a [(&'a str, &'a str)],
    /// The cookies to send.
    pub cookies: Option<&'a Jar>,
}

/// Some providers require the first; without the second, an answer may be compressed (RFC 9110 §12.5.3).
const AGENT: &str =
    concat!("user-agent: portiere-load/", env!("CARGO_PKG_VERSION"), "\r\naccept-encoding: identity\r\n");

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
    /// Creates a wire without connections; a request, connecting included, may take `timeout` and stays in `reach`.
    pub fn new(timeout: Duration, reach: Arc<Reach>) -> Self {
        Wire { timeout, reach, connections: Vec::new(), out: Vec::with_capacity(2 * 1024), answered: 0 }
    }

    /// Sends `request` and waits for the whole response.
    ///
    /// # Errors
    /// [`Fault`]; the connection is then gone, and the next request opens a new one. As in browsers, a request is sent
    /// once more, over a new connection, if an idle connection was closed without a single byte of an answer: a server
    /// may close it while the request is on its way (RFC 9112 §9.3.1 and §9.6).
    pub async fn send(&mut self, request: &Request<'_>) -> Result<Reply<'_>, Fault> {
        let at = self.connection(request.url)?;
        request.write(&mut self.out);
        let connection = &mut self.connections[at];
        connection.send(&self.out, self.timeout).await?;
        self.answered += 1;
        Ok(connection.reply())
    }

    /// Returns true if there is a connection for requests to `url`, as far as is known.
    pub fn is_connected(&self, url: &Url) -> bool {
        self.connections.iter().any(|known| known.leads_to(url) && known.is_made())
    }

    /// Returns the number of connections opened so far.
    pub fn opened(&self) -> u64 {
        self.connections.iter().map(Connection::opened).sum()
    }

    /// Returns the number of responses received so far.
    pub fn answered(&self) -> u64 {
        self.answered
    }

    fn connection(&mut self, url: &Url) -> Result<usize, Fault> {
        if let Some(at) = self.connections.iter().position(|known| known.leads_to(url)) {
            return Ok(at);
        }
        let addresses = self.reach.addresses(url).map_err(Fault::Url)?;
        let tls = url.is_secure().then(|| self.secured(url)).transpose()?;
        self.connections.push(Connection::to(url, addresses, tls));
        Ok(self.connections.len() - 1)
    }

    /// Returns what TLS needs. A host that no certificate can name is a fault: plain text is never sent instead.
    fn secured(&self, url: &Url) -> Result<Secured, Fault> {
        let config = self.reach.tls().ok_or(Fault::Url(Wrong::NoTls))?;
        let name =
            ServerName::try_from(url.host().to_owned()).map_err(|_| Fault::Tls("no certificate is for such a name"))?;
        Ok((TlsConnector::from(config), name))
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
}
