//! Who takes the lines of a stream: a syslog server, or an HTTP server.
//!
//! Nothing that a receiver answers is followed or kept: no redirect, and of the answer only its status and how long to wait.

mod http;
mod syslog;
#[cfg(test)]
mod tests;

pub use http::{Credentials, Http};
pub use syslog::Syslog;

use rules::audit::Line;
use rules::realm::Realm;
use std::time::Duration;

/// What the streams are called that there can be.
pub const NAMES: [&str; 2] = [SYSLOG, HTTP];
/// The one over syslog.
pub const SYSLOG: &str = "syslog";
/// The one over HTTP.
pub const HTTP: &str = "http";

/// Who takes lines.
pub enum Sink {
    /// Over syslog.
    Syslog(Syslog),
    /// Over HTTP.
    Http(Box<Http>),
}

/// Why lines were not taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// In a sentence for the operator.
    pub why: String,
    /// How long the receiver asked to wait.
    pub after: Option<Duration>,
    /// Whether it is what was sent that is refused, and not the moment: the same would be refused again.
    pub for_good: bool,
    /// Whether it may be one of the lines over which the receiver fails.
    pub doubtful: bool,
}

impl Refused {
    pub(super) fn because(why: impl Into<String>) -> Self {
        Refused { why: why.into(), after: None, for_good: false, doubtful: false }
    }

    /// The receiver failed once it had begun to read.
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
    /// Ends what is kept of a connection, once that was not used for a while.
    pub(super) fn let_go(&self) {
        if let Sink::Http(http) = self {
            http.let_go();
        }
    }

    /// Sends lines; once this is done, the receiver has them.
    pub(super) async fn send(&self, realm: &Realm, lines: &[Line]) -> Result<(), Refused> {
        match self {
            Sink::Syslog(syslog) => syslog.send(realm, lines).await,
            Sink::Http(http) => http.send(realm, lines).await,
        }
    }
}
