//! Syslog over TCP (RFC 6587, octet counting) and TLS (RFC 5425).
//!
//! Syslog has no answers, so that nobody can know what a receiver has of an open connection. Each batch therefore has a
//! connection of its own: once everything was sent, our side is closed, and the batch is done when the receiver has closed
//! its side, too, which it does when it has read to the end. Over TLS it has to say so (close_notify): a connection that
//! just ends may be that of a receiver that died, or was cut by somebody in between.

use super::Refused;
use crate::audit::wire;
use crate::reach::{Link, Target, connect, tls};
use rules::audit::Line;
use rules::realm::Realm;
use rustls::ClientConfig;
use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};

/// The ports of RFC 5425 and of plain TCP.
const SEALED: u16 = 6514;
const PLAIN: u16 = 514;
/// How long a receiver may take to read to the end.
const PATIENCE: Duration = Duration::from_secs(10);

/// A syslog server.
pub struct Syslog {
    target: Target,
    tls: Option<Arc<ClientConfig>>,
    closes: bool,
}

impl Syslog {
    /// At `tcp://HOST[:PORT]` or `tls://HOST[:PORT]`; `authorities` vouch for the latter, else those of the system. One that
    /// `closes` says over TLS that it has read to the end; of another that is believed without.
    pub fn new(url: &str, authorities: Option<&Path>, closes: bool) -> Result<Self, String> {
        let target = Syslog::target(url)?;
        let tls = if target.scheme == "tls" { Some(tls(authorities)?) } else { None };
        Ok(Syslog { target, tls, closes })
    }

    /// Reads such a URL.
    pub fn target(url: &str) -> Result<Target, String> {
        let target = Target::parse(url)?;
        match target.scheme.as_str() {
            "tls" | "tcp" if target.path == "/" => Ok(target),
            "tls" | "tcp" => Err("is not a URL that can be used: it has a path".to_owned()),
            _ => Err("must begin with tls:// or tcp://".to_owned()),
        }
    }

    /// Waits until the receiver has closed, after our end.
    async fn closed(&self, link: &mut Link) -> Result<(), Refused> {
        let broke = |error| Refused::in_the_midst(format!("the connection broke before all was read: {error}"));
        match read_out(link).await {
            Err(error) if error.kind() != ErrorKind::UnexpectedEof => return Err(broke(error)),
            Err(_) if self.closes => {
                return Err(Refused::in_the_midst(
                    "the receiver ended the connection without close_notify, so that it is not known whether it has read all; \
                     for one that never says it: audit.syslog.require_close_notify",
                ));
            }
            _ => {}
        }
        // What it has not read when it says goodbye is answered with a reset.
        match link {
            Link::Plain(_) => Ok(()),
            Link::Sealed(tls) => read_out(tls.get_mut().0).await.map_err(broke),
        }
    }

    pub(super) async fn send(&self, realm: &Realm, lines: &[Line]) -> Result<(), Refused> {
        let port = if self.tls.is_some() { SEALED } else { PLAIN };
        let mut link = connect(&self.target, port, self.tls.as_ref()).await.map_err(Refused::because)?;
        let broke = |error| Refused::in_the_midst(format!("the connection broke while it was written to: {error}"));
        link.write_all(&framed(realm, lines)).await.map_err(broke)?;
        link.shutdown().await.map_err(broke)?;
        match tokio::time::timeout(PATIENCE, self.closed(&mut link)).await {
            Ok(closed) => closed,
            Err(_) => Err(Refused::in_the_midst("the receiver did not close the connection after the last line")),
        }
    }
}

/// Whatever a receiver says until it closes.
async fn read_out(link: &mut (impl AsyncRead + Unpin)) -> std::io::Result<()> {
    let mut nothing = [0; 512];
    while link.read(&mut nothing).await? > 0 {}
    Ok(())
}

/// Each message with its length before it.
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
