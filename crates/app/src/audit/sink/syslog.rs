//! Syslog over TCP (RFC 6587, octet counting) and TLS (RFC 5425).
//!
//! Syslog has no answers, so that nobody can know what a receiver has of an open connection. Each batch therefore has a
//! connection of its own: once everything was sent, our side is closed, and the batch is done when the receiver has closed
//! its side, too, which it does when it has read to the end.

use super::Refused;
use super::link::{Link, Target, connect, tls};
use crate::audit::wire;
use rules::audit::Line;
use rules::realm::Realm;
use rustls::ClientConfig;
use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// The ports of RFC 5425 and of plain TCP.
const SEALED: u16 = 6514;
const PLAIN: u16 = 514;
/// How long a receiver may take to read to the end.
const PATIENCE: Duration = Duration::from_secs(10);

/// A syslog server.
pub struct Syslog {
    target: Target,
    tls: Option<Arc<ClientConfig>>,
}

impl Syslog {
    /// At `tcp://HOST[:PORT]` or `tls://HOST[:PORT]`; `authorities` vouch for the latter, else those of the system.
    pub fn new(url: &str, authorities: Option<&Path>) -> Result<Self, String> {
        let target = Syslog::target(url)?;
        let tls = if target.scheme == "tls" { Some(tls(authorities)?) } else { None };
        Ok(Syslog { target, tls })
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

    pub(super) async fn send(&self, realm: &Realm, lines: &[Line]) -> Result<(), Refused> {
        let port = if self.tls.is_some() { SEALED } else { PLAIN };
        let mut link = connect(&self.target, port, self.tls.as_ref()).await?;
        link.write_all(&framed(realm, lines)).await?;
        link.shutdown().await?;
        match tokio::time::timeout(PATIENCE, read_out(&mut link)).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(Refused::because(format!("the connection broke before all was read: {error}"))),
            Err(_) => Err(Refused::because("the receiver did not close the connection after the last line")),
        }
    }
}

/// Whatever a receiver says until it closes.
async fn read_out(link: &mut Link) -> std::io::Result<()> {
    let mut nothing = [0; 512];
    loop {
        match link.read(&mut nothing).await {
            Ok(0) => return Ok(()),
            Ok(_) => {}
            // Closed without the goodbye of TLS: closed all the same, and after ours.
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(()),
            Err(error) => return Err(error),
        }
    }
}

/// Each message with its length before it.
fn framed(realm: &Realm, lines: &[Line]) -> Vec<u8> {
    let host = realm.issuer.split("://").nth(1).unwrap_or_default();
    let host = host.split(['/', ':']).next().unwrap_or_default();
    let mut bytes = Vec::with_capacity(lines.len() * 500);
    for line in lines {
        let message = wire::syslog(&realm.id, host, line);
        bytes.extend_from_slice(format!("{} ", message.len()).as_bytes());
        bytes.extend_from_slice(message.as_bytes());
    }
    bytes
}
