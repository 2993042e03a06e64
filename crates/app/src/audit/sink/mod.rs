//! Receivers of a stream's entries: a syslog server, or an HTTP server.
//!
//! No redirect is followed, and of an answer only its status and how long to wait are kept.

mod http;
mod syslog;
#[cfg(test)]
mod tests;

pub use http::{Credentials, Http};
pub use syslog::Syslog;

use rules::audit::Line;
use rules::realm::Realm;
use std::time::Duration;

/// The names of the streams that there can be.
pub const NAMES: [&str; 2] = [SYSLOG, HTTP];
/// The stream over syslog.
pub const SYSLOG: &str = "syslog";
/// The stream over HTTP.
pub const HTTP: &str = "http";

/// A receiver of entries.
pub enum Sink {
    /// Over syslog.
    Syslog(Syslog),
    /// Over HTTP.
    Http(Box<Http>),
}

/// Why entries were not accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// The reason, in a sentence for the operator.
    pub why: String,
    /// How long the receiver asked to wait.
    pub after: Option<Duration>,
    /// Whether what was sent is refused, and not only for the moment: the same would be refused again.
    pub for_good: bool,
    /// Whether one of the entries may be what makes the receiver fail.
    pub doubtful: bool,
}

impl Refused {
    pub(super) fn because(why: impl Into<String>) -> Self {
        Refused { why: why.into(), after: None, for_good: false, doubtful: false }
    }

    /// The receiver failed after it had begun to read.
    pub(super) fn in_the_midst(why: impl Into<String>) -> Self {
        Refused { doubtful: true, ..Refused::because(why) }
    }
}

impl From<std::io::Error> for Refused {
    fn from(error: std::io::Error) -> Self {
        Refused::because(error.to_string())
    }
}

impl Sink {
    /// Closes the connection that is kept, once it was not used for a while.
    pub(super) fn let_go(&self) {
        if let Sink::Http(http) = self {
            http.let_go();
        }
    }

    /// Sends entries; once this is done, the receiver has them.
    pub(super) async fn send(&self, realm: &Realm, lines: &[Line]) -> Result<(), Refused> {
        match self {
            Sink::Syslog(syslog) => syslog.send(realm, lines).await,
            Sink::Http(http) => http.send(realm, lines).await,
        }
    }
}
