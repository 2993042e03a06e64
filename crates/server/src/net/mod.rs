//! The wire: listening, TLS, connections and their limits, and the client's identity.
//!
//! Owns every limit that holds before a request has a route: time for headers, idle time, connections in all and from
//! one address, size of headers, memory for bodies, HTTP/2 floods. Owns no routes, statuses or permissions.

mod address;
mod body;
mod caps;
mod certificate;
mod clock;
mod farewell;
mod forwarded;
mod frames;
mod listen;
mod pause;
mod refusals;
mod serve;
#[cfg(test)]
mod tests;
mod tls;
mod watched;

pub use address::{AddressKey, Cidr, CidrError, LOOPBACK, NetworkKey};
pub use body::{Bodies, BodyError};
pub use caps::{Caps, Cut, Full, Place};
pub use forwarded::{Client, Proxies, client_address};
pub use listen::{Bound, ListenError, Listeners, raise_nofile};
pub use pause::Pause;
pub use serve::serve;
pub use tls::{TlsError, TlsReload, bared, hear_hangups, next_hangup};

use crate::config::Config;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// The other end of the connection that carried a request: an extension of every request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Its address; an IPv4 peer of a dual-stack socket is written as IPv4.
    pub address: SocketAddr,
    /// Whether the connection is TLS.
    pub tls: bool,
}

/// See [`Terms::hear_out`].
const HEAR_OUT: Duration = Duration::from_secs(1);

/// See [`Terms::quiet`]: longer than a handshake over a satellite, or the pause between two requests of one page.
const QUIET: Duration = Duration::from_secs(3);

/// The terms on which connections are served.
#[derive(Clone)]
pub struct Terms {
    /// Time for the TLS handshake, and for the headers of a request.
    pub header_timeout: Duration,
    /// Time for the next request to begin, and for the client to take its last response.
    pub idle_timeout: Duration,
    /// How long a server that was told to stop still answers new requests, and says that it is leaving.
    pub stop_delay: Duration,
    /// How long a connection that has only just come has to send a request, when the server stops.
    pub hear_out: Duration,
    /// A connection without a request for this long makes way for others of the same address.
    pub quiet: Duration,
    /// Time for running requests when the server stops.
    pub drain_timeout: Duration,
    /// How many connections there may be.
    pub caps: Arc<Caps>,
    /// TLS, unless a proxy does it.
    pub tls: Option<Arc<TlsReload>>,
    /// Whether SIGHUP has an effect here.
    pub hears_hangups: bool,
}

impl Terms {
    /// Makes the configured terms, for a process that may have so many `files` open; reads the certificate, and fails
    /// if it cannot be used.
    pub fn of(config: &Config, files: u64) -> Result<Self, TlsError> {
        let limits = &config.limits;
        let tls = match (&config.tls.certificate, &config.tls.key) {
            (Some(certificate), Some(key)) => Some(TlsReload::load(certificate, key, config.public_url(0).host())?),
            _ => None,
        };
        Ok(Terms {
            header_timeout: limits.header_timeout,
            idle_timeout: limits.idle_timeout,
            stop_delay: config.stop_delay(),
            hear_out: HEAR_OUT,
            quiet: QUIET,
            drain_timeout: limits.drain_timeout,
            caps: Caps::of(config, files),
            tls,
            hears_hangups: true,
        })
    }
}
