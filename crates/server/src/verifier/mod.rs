//! Machines that hash passwords: the server's side, which lets them in, and their own side, which dials.
//!
//! A worker dials the server over TLS 1.3. Both sides show a raw public key (RFC 7250) and know the other side's by its
//! SHA-256: there are no certificates, names or authorities. [`hasher::remote::frame`] defines what they say then; what
//! a worker is asked, and whether it is believed, is the hasher's business.

mod callers;
mod folder;
mod identity;
mod listener;
mod places;
mod wire;
mod worker;

pub use callers::Strangers;
pub use folder::Folder;
pub use identity::Identity;
pub use listener::Workers;
pub use worker::{Work, enroll, serve};

/// Why a worker was not enrolled.
pub enum Unenrolled {
    /// No server was reached, and one that starts or stops may be soon.
    Away(String),
    /// Anything else.
    Failed(String),
}

impl From<String> for Unenrolled {
    fn from(why: String) -> Self {
        Unenrolled::Failed(why)
    }
}
impl From<&str> for Unenrolled {
    fn from(why: &str) -> Self {
        Unenrolled::Failed(why.to_owned())
    }
}

/// The ALPN name (RFC 7301) of what both sides speak: how they greet each other, which stays. The greeting says in
/// which version they go on ([`hasher::remote::versions`]).
const PROTOCOL: &[u8] = b"portiere-verifier/1";
