//! Machines that hash passwords: the server's side, which lets them in, and their own side, which dials.
//!
//! A worker dials the server over TLS 1.3; both sides show a raw public key (RFC 7250) and know the other one's by its
//! SHA-256: there are no certificates, names or authorities. What is said then is [`hasher::remote::frame`]'s, and what a
//! worker is asked, and whether it is believed, is the hasher's to know.

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

/// What both sides speak, as ALPN (RFC 7301) names it: how they greet each other, which stays. In which version they go on is said in
/// the greeting ([`hasher::remote::versions`]).
const PROTOCOL: &[u8] = b"portiere-verifier/1";
