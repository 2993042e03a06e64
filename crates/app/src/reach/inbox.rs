//! An HTTP server that receives posts, one after the other, on one connection for as long as that lasts.
//!
//! The other end may close a kept connection at any moment, also while a post is under way. So a post that finds no
//! answer there is sent once more, on a new connection: it may arrive twice, as whatever is sent again may.

use super::{Link, OpenError, Sealing, Target, Tls, connect, sealing};
use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::Request;
use hyper::body::Incoming;
use hyper::client::conn::http1::{Connection, SendRequest, handshake};
use hyper::header::{HOST, HeaderMap};
use hyper::http::response::Parts as Head;
use hyper_util::rt::TokioIo;
use std::fmt::Display;
use std::pin::{Pin, pin};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::time::{Instant, timeout, timeout_at};

/// The longest that a post may take, all in all.
const LONGEST: Duration = Duration::from_secs(30);
/// The most that is read of an answer's body, and for how long: what was answered is known by then.
const ANSWER: usize = 64 << 10;
const MOMENT: Duration = Duration::from_secs(1);
/// How long a connection is kept on which nothing is posted: a device in between may forget it silently.
const UNUSED: Duration = Duration::from_secs(10);
/// How long a connection is kept at all: a server that is reached by a name may be elsewhere by then.
const KEPT: Duration = Duration::from_secs(60);

/// Why there was no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unanswered {
    /// The reason, in a sentence for the operator that names the server.
    pub why: String,
    /// Whether a server may have read what was sent.
    pub reached: bool,
}

/// An HTTP server that things are posted to.
pub struct Inbox {
    target: Target,
    tls: Option<Sealing>,
    /// The connection that the last answer came on.
    kept: Mutex<Option<Line>>,
}

/// A connection on which one request after the other can be sent.
struct Line {
    sender: SendRequest<Full<Bytes>>,
    connection: Pin<Box<Connection<TokioIo<Link>, Full<Bytes>>>>,
    began: Instant,
    used: Instant,
}

/// An answer, with the connection if that can be used again.
type Answered = (Head, Bytes, Option<Line>);

impl Inbox {
    /// At an http or https URL; `whose` is its name in the log, and `tls` says how https is secured.
    ///
    /// # Errors
    /// Says which file cannot be used.
    pub fn at(whose: &'static str, target: Target, tls: &Tls) -> Result<Self, OpenError> {
        let tls = if target.scheme == "https" { Some(sealing(whose, tls)?) } else { None };
        Ok(Inbox { target, tls, kept: Mutex::default() })
    }

    /// Posts a body with these header fields. Returns the head of the answer, and its body if that is short and came
    /// within a moment.
    ///
    /// # Errors
    /// Why there is no answer.
    pub async fn post(&self, fields: HeaderMap, body: Bytes) -> Result<(Head, Bytes), Unanswered> {
        let authority = self.target.authority();
        let by = Instant::now() + LONGEST;
        let not_reached = |why: String| Unanswered { why, reached: false };
        let failed = |error: &dyn Display| format!("{authority}: {error}");
        let request = Request::post(self.target.path.as_str()).header(HOST, &authority).body(Full::new(body));
        let mut request = request.map_err(|error| not_reached(failed(&error)))?;
        request.headers_mut().extend(fields);
        let late = |_| Unanswered { why: format!("{authority} did not answer in time"), reached: true };
        if let Some(mut line) = self.kept()
            && line.is_open().await
            && let Ok(answered) = timeout_at(by, line.ask(request.clone())).await.map_err(late)?
        {
            return Ok(self.keep(answered));
        }
        let port = if self.tls.is_some() { 443 } else { 80 };
        let link = connect(&self.target, port, self.tls.as_ref()).await.map_err(not_reached)?;
        let asked = async { Line::on(link).await?.ask(request).await };
        match timeout_at(by, asked).await.map_err(late)? {
            Ok(answered) => Ok(self.keep(answered)),
            Err(error) => Err(Unanswered { why: failed(&error), reached: true }),
        }
    }

    /// Closes the kept connection, if it was not used for a while. Nothing else does that, so a caller that posts has
    /// to call this now and then.
    pub fn let_go(&self) {
        let line = self.kept();
        *self.kept.lock().unwrap_or_else(PoisonError::into_inner) = line;
    }

    /// Takes the kept connection, for one use, if it may still be good.
    fn kept(&self) -> Option<Line> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner).take();
        kept.filter(|line| line.used.elapsed() < UNUSED && line.began.elapsed() < KEPT)
    }

    fn keep(&self, (head, said, line): Answered) -> (Head, Bytes) {
        *self.kept.lock().unwrap_or_else(PoisonError::into_inner) = line;
        (head, said)
    }
}

impl Line {
    async fn on(link: Link) -> Result<Self, hyper::Error> {
        let (sender, connection) = handshake(TokioIo::new(link)).await?;
        let now = Instant::now();
        Ok(Line { sender, connection: Box::pin(connection), began: now, used: now })
    }

    /// Whether a request can be sent on it, as far as is known here. Nothing was read from it while it was not used.
    async fn is_open(&mut self) -> bool {
        // That it was closed is known only after the runtime has looked.
        tokio::task::yield_now().await;
        let ready = async {
            tokio::select! {
                biased;
                _ = &mut self.connection => false,
                ready = self.sender.ready() => ready.is_ok(),
            }
        };
        timeout(MOMENT, ready).await.unwrap_or(false)
    }

    /// Sends one request and returns its answer.
    async fn ask(mut self, request: Request<Full<Bytes>>) -> Result<Answered, hyper::Error> {
        let (answer, goes_on) = {
            let mut asked = pin!(self.sender.send_request(request));
            // The connection may end with the answer, or before it is read.
            tokio::select! {
                answer = &mut asked => (answer?, true),
                ended = &mut self.connection => {
                    (asked.await.map_err(|error| ended.err().unwrap_or(error))?, false)
                }
            }
        };
        let (head, body) = answer.into_parts();
        // The body of a refusal is not read, and without that no request can follow.
        if !head.status.is_success() {
            return Ok((head, Bytes::new(), None));
        }
        let read = timeout(MOMENT, self.read(body, goes_on)).await;
        match read {
            Ok((said, true)) => {
                self.used = Instant::now();
                Ok((head, said, Some(self)))
            }
            Ok((said, false)) => Ok((head, said, None)),
            Err(_) => Ok((head, Bytes::new(), None)),
        }
    }

    /// Reads the body of an answer, so that the server may finish, and tells whether another request can follow.
    /// Returns nothing of a body that is long, or is cut.
    async fn read(&mut self, body: Incoming, goes_on: bool) -> (Bytes, bool) {
        let mut whole = pin!(Limited::new(body, ANSWER).collect());
        let (read, goes_on) = match goes_on {
            true => tokio::select! {
                biased;
                read = &mut whole => (read.ok(), true),
                _ = &mut self.connection => (whole.await.ok(), false),
            },
            false => (whole.await.ok(), false),
        };
        let goes_on = goes_on && read.is_some();
        (read.map(|read| read.to_bytes()).unwrap_or_default(), goes_on)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::{TcpListener, TcpStream};

    /// What a receiver does with a request.
    #[derive(Clone, Copy, Debug, PartialEq)]
    enum Act {
        /// Answers, and waits for the next.
        Stays,
        /// Answers at length, and waits for the next.
        Chatters,
        /// Answers, and closes without having said so.
        Closes,
        /// Refuses, and says why.
        Refuses,
        /// Closes without an answer.
        Breaks,
    }

    /// The bodies that arrived, each with the number of its connection.
    type Came = Arc<Mutex<Vec<(usize, String)>>>;

    /// Does one act after the other with the requests that arrive, on however many connections.
    #[allow(clippy::disallowed_methods, reason = "a receiver of a test")]
    async fn receiver(acts: &'static [Act]) -> (Inbox, Came) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let target = Target::parse(&format!("http://{}/in", listener.local_addr().unwrap())).unwrap();
        let came = Came::default();
        let theirs = Arc::clone(&came);
        tokio::spawn(async move {
            let mut acts = acts.iter();
            for number in 0.. {
                let (mut stream, _) = listener.accept().await.unwrap();
                while let Some(body) = body_of(&mut stream).await {
                    theirs.lock().unwrap().push((number, body));
                    let act = acts.next().unwrap();
                    let answer: String = match act {
                        Act::Stays | Act::Closes => "HTTP/1.1 200 x\r\ncontent-length: 2\r\n\r\nok".to_owned(),
                        Act::Chatters => format!("HTTP/1.1 200 x\r\ncontent-length: 9000\r\n\r\n{}", "-".repeat(9000)),
                        Act::Refuses => "HTTP/1.1 503 x\r\ncontent-length: 2\r\n\r\nno".to_owned(),
                        Act::Breaks => break,
                    };
                    stream.write_all(answer.as_bytes()).await.unwrap();
                    if *act == Act::Closes {
                        break;
                    }
                }
            }
        });
        (Inbox::at("a test", target, &Tls::default()).unwrap(), came)
    }

    /// Returns the body of the next request; `None` if no more comes.
    async fn body_of(stream: &mut TcpStream) -> Option<String> {
        let mut text = String::new();
        loop {
            let mut some = [0; 1024];
            let many = stream.read(&mut some).await.ok().filter(|many| *many > 0)?;
            text.push_str(std::str::from_utf8(&some[..many]).unwrap());
            let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse::<usize>().ok());
            if body.len() >= length.unwrap() {
                return Some(body.to_owned());
            }
        }
    }

    #[tokio::test]
    async fn a_connection_is_kept_for_ten_seconds_without_use_and_a_minute_in_all() {
        // Red without the limits in `kept`, or where `let_go` keeps what is too old.
        let (inbox, came) = receiver(&[Act::Stays; 9]).await;
        let post = async || inbox.post(HeaderMap::new(), Bytes::from_static(b"a")).await.unwrap();
        let is_kept_after = |time| {
            if let Some(line) = inbox.kept.lock().unwrap().as_mut() {
                line.used -= time;
                line.began -= time;
            }
            inbox.let_go();
            inbox.kept.lock().unwrap().is_some()
        };
        post().await;
        assert!(is_kept_after(UNUSED - MOMENT));
        post().await;
        assert!(!is_kept_after(UNUSED));
        for _ in 0..6 {
            post().await;
            assert!(is_kept_after(UNUSED - MOMENT));
        }
        assert!(!is_kept_after(MOMENT * 6), "it is a minute old");
        post().await;
        let numbers: Vec<_> = came.lock().unwrap().iter().map(|(number, _)| *number).collect();
        assert_eq!(numbers, [0, 0, 1, 1, 1, 1, 1, 1, 2]);
    }

    #[tokio::test]
    async fn what_is_posted_goes_over_one_connection_as_long_as_that_lasts_and_arrives_all_the_same() {
        // Red where each post has a connection of its own, or where a connection that ended meanwhile is an error.
        let acts = &[
            Act::Stays,
            Act::Chatters,
            Act::Closes,
            Act::Stays,
            Act::Breaks,
            Act::Stays,
            Act::Refuses,
            Act::Breaks,
            Act::Stays,
        ];
        let (inbox, came) = receiver(acts).await;
        let mut answers = Vec::new();
        for name in ["a", "b", "c", "d", "e", "f", "g", "h"] {
            let answer = inbox.post(HeaderMap::new(), Bytes::from_static(name.as_bytes())).await;
            answers.push(answer.map(|(head, said)| (head.status.as_u16(), said.len())).map_err(|lost| lost.reached));
        }
        let well = Ok((200, 2));
        assert_eq!(answers, [well, Ok((200, 9000)), well, well, well, Ok((503, 0)), Err(true), well]);
        let came: Vec<_> = came.lock().unwrap().iter().map(|(number, body)| format!("{number}{body}")).collect();
        // A post that broke on a kept connection comes again on a new one; one that breaks there is reported.
        assert_eq!(came, ["0a", "0b", "0c", "1d", "1e", "2e", "2f", "3g", "4h"]);
    }
}
