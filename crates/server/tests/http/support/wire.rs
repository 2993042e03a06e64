//! HTTP/1.1 for tests: one request per connection, every byte as given.

use super::{facts, until};
use load::wire::Jar;
use serde_json::Value;
use socket2::{Domain, Socket, Type};
use std::collections::HashMap;
use std::fmt;
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddrV4, TcpStream};
use std::time::Duration;

/// A request.
#[derive(Clone, Debug)]
pub struct Call {
    method: String,
    target: String,
    headers: Vec<(String, String)>,
    body: Option<Vec<u8>>,
    from: Ipv4Addr,
}

impl Call {
    /// Makes a request with any method, without a body.
    pub fn new(method: &str, target: &str) -> Self {
        let (method, target) = (method.into(), target.into());
        Call { method, target, headers: Vec::new(), body: None, from: Ipv4Addr::LOCALHOST }
    }

    /// Comes from another address: 127.0.0.`host`, all of which belong to this machine.
    pub fn from(self, host: u8) -> Self {
        Call { from: Ipv4Addr::new(127, 0, 0, host), ..self }
    }

    pub fn get(target: &str) -> Self {
        Call::new("GET", target)
    }

    /// Makes a POST of a form.
    pub fn post(target: &str, fields: &[(&str, &str)]) -> Self {
        let body = form_urlencoded::Serializer::new(String::new()).extend_pairs(fields).finish();
        Call::new("POST", target).body("application/x-www-form-urlencoded", body)
    }

    pub fn body(mut self, kind: &str, body: impl Into<Vec<u8>>) -> Self {
        self.body = Some(body.into());
        self.header("content-type", kind)
    }

    /// Adds a header field.
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    pub fn bearer(self, token: &str) -> Self {
        self.header("authorization", &format!("Bearer {token}"))
    }

    pub fn cookies(self, jar: &Jar) -> Self {
        let line: Vec<String> = jar.iter().map(|(name, value)| format!("{name}={value}")).collect();
        if line.is_empty() { self } else { self.header("cookie", &line.join("; ")) }
    }

    fn bytes(&self, host: &str) -> Vec<u8> {
        let mut head = format!("{} {} HTTP/1.1\r\nconnection: close\r\n", self.method, self.target);
        if !self.headers.iter().any(|(name, _)| name == "host") {
            head.push_str(&format!("host: {host}\r\n"));
        }
        for (name, value) in &self.headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        if let Some(body) = &self.body {
            head.push_str(&format!("content-length: {}\r\n", body.len()));
        }
        head.push_str("\r\n");
        let mut bytes = head.into_bytes();
        bytes.extend_from_slice(self.body.as_deref().unwrap_or(b""));
        bytes
    }

    fn connect(&self, port: u16) -> std::io::Result<TcpStream> {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
        socket.bind(&SocketAddrV4::new(self.from, 0).into())?;
        socket.connect(&SocketAddrV4::new(Ipv4Addr::LOCALHOST, port).into())?;
        Ok(socket.into())
    }

    fn begin(&self, port: u16) -> TcpStream {
        let mut stream = self.connect(facts::next_node(port)).unwrap();
        stream.write_all(&self.bytes(&format!("localhost:{port}"))).unwrap();
        stream
    }

    /// Sends it and hangs up at once.
    pub fn abandon(&self, port: u16) {
        drop(self.begin(port));
    }

    /// Sends it and hangs up once the server works on it, as `begun` tells; returns whether no answer had come by then.
    #[track_caller]
    pub fn abandon_once(&self, port: u16, mut begun: impl FnMut() -> bool) -> bool {
        let stream = self.begin(port);
        stream.set_nonblocking(true).unwrap();
        let waits = || stream.peek(&mut [0]).is_err_and(|error| error.kind() == ErrorKind::WouldBlock);
        until("it is begun, or answered", || !waits() || begun());
        waits()
    }

    /// Sends it to the server at this port, to one of its nodes in turn; `None` if the connection breaks before the
    /// whole answer came.
    pub fn try_send(&self, port: u16) -> Option<Answer> {
        self.exchange(self.connect(facts::next_node(port)).ok()?, port)
    }

    /// Likewise, only to the node at this port.
    pub fn try_send_here(&self, port: u16) -> Option<Answer> {
        self.exchange(self.connect(port).ok()?, port)
    }

    /// Likewise over IPv6, to the server that listens at this port of [::1].
    pub fn try_send_v6(&self, port: u16) -> Option<Answer> {
        self.exchange(TcpStream::connect((Ipv6Addr::LOCALHOST, port)).ok()?, port)
    }

    fn exchange(&self, mut stream: TcpStream, port: u16) -> Option<Answer> {
        // Longer than any wait for a hash.
        stream.set_read_timeout(Some(Duration::from_secs(120))).ok()?;
        stream.set_nodelay(true).ok()?;
        // A server that refuses a long request may close before all of it is written.
        let written = stream.write_all(&self.bytes(&format!("localhost:{port}")));
        let mut bytes = Vec::new();
        let read = stream.read_to_end(&mut bytes);
        Answer::parse(&bytes, self.method == "HEAD").filter(|_| (written.is_ok() && read.is_ok()) || !bytes.is_empty())
    }
}

/// A response.
#[derive(Clone)]
pub struct Answer {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl fmt::Debug for Answer {
    /// For the reader of a failed test: the beginning of the body, as text.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let body: String = self.text().chars().take(2_000).collect();
        write!(f, "{} {:?}\n{body}", self.status, self.headers)
    }
}

impl Answer {
    fn parse(bytes: &[u8], bodiless: bool) -> Option<Answer> {
        let end = bytes.windows(4).position(|four| four == b"\r\n\r\n")?;
        let head = std::str::from_utf8(&bytes[..end]).ok()?;
        let mut lines = head.split("\r\n");
        let status = lines.next()?.split(' ').nth(1)?.parse().ok()?;
        let headers: Vec<(String, String)> = lines
            .filter_map(|line| line.split_once(':'))
            .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
            .collect();
        let answer = Answer { status, headers, body: bytes[end + 4..].to_vec() };
        let length = answer.header("content-length").map(|length| length.parse::<usize>());
        match length {
            Some(Ok(length)) if !bodiless && length != answer.body.len() => None,
            _ => Some(answer),
        }
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub fn all(&self, name: &str) -> Vec<&str> {
        self.headers.iter().filter(|(known, _)| known == name).map(|(_, value)| value.as_str()).collect()
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {} {}", self.status, self.text()))
    }

    pub fn location(&self) -> Option<&str> {
        self.header("location")
    }

    /// Returns the parameters of a redirect, from query or fragment.
    #[track_caller]
    pub fn landed(&self) -> HashMap<String, String> {
        let to = self.location().unwrap_or_else(|| panic!("no redirect: {} {}", self.status, self.text()));
        let carried = to.split_once(['?', '#']).map_or("", |(_, carried)| carried);
        pairs_of(carried).into_iter().collect()
    }

    /// Returns the error code of a JSON body.
    pub fn error(&self) -> String {
        serde_json::from_slice::<Value>(&self.body)
            .ok()
            .and_then(|json| json["error"].as_str().map(str::to_owned))
            .unwrap_or_default()
    }

    #[track_caller]
    pub fn must_be(self, status: u16) -> Self {
        assert_eq!(self.status, status, "{:?} {}", self.headers, self.text());
        self
    }

    /// Checks for a JSON error.
    #[track_caller]
    pub fn must_fail(self, status: u16, code: &str) -> Self {
        assert_eq!((self.status, self.error().as_str()), (status, code), "{}", self.text());
        self
    }

    /// EPAGE: checks for a local page that refuses, and leads nowhere.
    #[track_caller]
    pub fn must_stay_here(self) -> Self {
        assert_eq!(self.status, 400, "{}", self.text());
        assert_eq!(self.location(), None);
        assert!(self.header("refresh").is_none() && !self.text().contains("http-equiv=\"refresh\""));
        self
    }
}

/// Returns the decoded pairs of a query or form.
pub fn pairs_of(text: &str) -> Vec<(String, String)> {
    form_urlencoded::parse(text.as_bytes()).map(|(name, value)| (name.into_owned(), value.into_owned())).collect()
}
