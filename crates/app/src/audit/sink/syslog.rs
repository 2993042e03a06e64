//! Syslog over TCP (RFC 6587, octet counting) and TLS (RFC 5425).
//!
//! Syslog has no answers, so nobody can know how much a receiver has read from an open connection. Each batch therefore
//! has a connection of its own: once everything was sent, our side is closed, and the batch is done when the receiver
//! has closed its side, too, which it does when it has read to the end. A receiver that closes before us has not read
//! to the end. Over TLS it has to say so (close_notify): a connection that just ends may be that of a receiver that
//! died, or was cut by somebody in between.
//!
//! Data that reaches a closed socket is answered with a reset. The reset may still be under way when the end is seen,
//! and a read may report it as the end all the same. So we wait for it, and check for it where a read does not show it.

use super::Refused;
use crate::audit::wire;
use crate::reach::{Link, OpenError, Sealing, Target, Tls, connect, sealing};
use rules::audit::Line;
use rules::realm::Realm;
use std::future::poll_fn;
use std::io::ErrorKind;
use std::pin::Pin;
use std::task::Poll;
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt, ReadBuf};

/// The ports of RFC 5425 and of plain TCP.
const SEALED: u16 = 6514;
const PLAIN: u16 = 514;
/// How long a receiver may take to read to the end.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long a reset takes beyond the round trip, and the longest that we wait for one.
const RESET: Duration = Duration::from_millis(50);
const RESET_AT_MOST: Duration = Duration::from_secs(1);

/// A syslog server.
pub struct Syslog {
    target: Target,
    tls: Option<Sealing>,
    closes: bool,
}

impl Syslog {
    /// At `tcp://HOST[:PORT]` or `tls://HOST[:PORT]`, with TLS as `tls` says. A receiver that `closes` says over TLS
    /// that it has read to the end; any other is believed without.
    ///
    /// # Errors
    /// What is wrong with the URL, or which file cannot be used.
    pub fn new(url: &str, tls: &Tls, closes: bool) -> Result<Self, OpenError> {
        let target = Syslog::target(url).map_err(OpenError::Settings)?;
        let tls = if target.scheme == "tls" { Some(sealing("the syslog server of the audit log", tls)?) } else { None };
        Ok(Syslog { target, tls, closes })
    }

    /// Reads such a URL.
    pub fn target(url: &str) -> Result<Target, String> {
        let target = Target::parse(url)?;
        match target.scheme.as_str() {
            "tls" | "tcp" if target.path == "/" => Ok(target),
            "tls" | "tcp" => Err("is not a usable URL: it has a path".to_owned()),
            _ => Err("must begin with tls:// or tcp://".to_owned()),
        }
    }

    /// Waits until the receiver has closed its side, after ours.
    async fn closed(&self, link: &mut Link) -> Result<(), Refused> {
        let broke = |error| Refused::in_the_midst(format!("the connection broke before all was read: {error}"));
        match read_out(link).await {
            Err(error) if error.kind() != ErrorKind::UnexpectedEof => return Err(broke(error)),
            Err(_) if self.closes => {
                return Err(Refused::in_the_midst(
                    "the receiver ended the connection without close_notify, so it may not have read everything; for a \
                     receiver that never sends one: audit.syslog.require_close_notify",
                ));
            }
            _ => {}
        }
        // What the receiver has not read when it says goodbye is answered with a reset.
        match link {
            Link::Plain(_) => Ok(()),
            Link::Sealed(tls) => read_out(tls.get_mut().0).await.map_err(broke),
        }
    }

    pub(super) async fn send(&self, realm: &Realm, lines: &[Line]) -> Result<(), Refused> {
        let port = if self.tls.is_some() { SEALED } else { PLAIN };
        let asked = Instant::now();
        let mut link = connect(&self.target, port, self.tls.as_ref()).await.map_err(Refused::because)?;
        // Connecting takes at least one round trip.
        let reset = (asked.elapsed() * 2 + RESET).min(RESET_AT_MOST);
        let broke = |error| Refused::in_the_midst(format!("the connection broke while it was written to: {error}"));
        link.write_all(&framed(realm, lines)).await.map_err(broke)?;
        link.flush().await.map_err(broke)?;
        if has_ended(&mut link).await.map_err(broke)? {
            return Err(Refused::in_the_midst("the receiver closed the connection before the last line was sent"));
        }
        link.shutdown().await.map_err(broke)?;
        match tokio::time::timeout(PATIENCE, self.closed(&mut link)).await {
            Ok(closed) => closed?,
            Err(_) => {
                return Err(Refused::in_the_midst("the receiver did not close the connection after the last line"));
            }
        }
        tokio::time::sleep(reset).await;
        was_read(&link)
    }
}

/// Whether the receiver's end has been seen already. Whatever else it says is ignored.
async fn has_ended(link: &mut Link) -> std::io::Result<bool> {
    // What has arrived meanwhile is known only after the runtime has looked.
    tokio::task::yield_now().await;
    loop {
        let mut nothing = [0; 512];
        let mut into = ReadBuf::new(&mut nothing);
        let read = poll_fn(|context| Poll::Ready(Pin::new(&mut *link).poll_read(context, &mut into))).await;
        match read {
            Poll::Pending => return Ok(false),
            Poll::Ready(read) => read?,
        }
        if into.filled().is_empty() {
            return Ok(true);
        }
    }
}

/// Checks that nothing that was sent reached a closed socket. After the receiver's end, reads no longer tell.
pub(super) fn was_read(link: &Link) -> Result<(), Refused> {
    let socket = match link {
        Link::Plain(socket) => socket,
        Link::Sealed(tls) => tls.get_ref().0,
    };
    match socket.take_error() {
        Ok(None) => Ok(()),
        Ok(Some(error)) | Err(error) => Err(Refused::in_the_midst(format!(
            "the receiver closed the connection before it had read to the end: {error}"
        ))),
    }
}

/// Reads and discards what a receiver says until it closes.
async fn read_out(link: &mut (impl AsyncRead + Unpin)) -> std::io::Result<()> {
    let mut nothing = [0; 512];
    while link.read(&mut nothing).await? > 0 {}
    Ok(())
}

/// Puts the length of each message before it.
pub(super) fn framed(realm: &Realm, lines: &[Line]) -> Vec<u8> {
    let host = Target::parse(&realm.issuer).map(|issuer| issuer.host).unwrap_or_default();
    let mut bytes = Vec::with_capacity(lines.len() * 500);
    for line in lines {
        let message = wire::syslog(&realm.id, &host, line);
        bytes.extend_from_slice(format!("{} ", message.len()).as_bytes());
        bytes.extend_from_slice(message.as_bytes());
    }
    bytes
}
