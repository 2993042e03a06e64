//! Hashing on other machines, which are told nothing and believed nothing.
//!
//! Argon2 first computes a pre-hash, H0, of password, salt and pepper (RFC 9106 §3.2); all of the slow work follows
//! from H0 and the parameters. So a worker receives H0 and sends back the tag: it sees no password, salt, account or
//! verdict. The stored verifier binds the account, H0 and the tag under a key that stays here, and H0 is computed here
//! from the typed password: a wrong password gives another H0, and no tag that anybody returns makes it right.
//!
//! A bad worker can only refuse and be slow. So a tag that does not match is computed again here before the password is
//! called wrong (if the caller is throttled, one in eight, and nobody waits for that); one ask in 64 is a canary, a
//! random H0 whose tag is computed here too; a worker that was wrong once is asked nothing more, and [`Parted::Lied`]
//! says so. A late ask is computed here as well, and the first result is taken; if a worker goes away, each of its asks
//! is given to another worker once, then computed here.
//!
//! This module knows nothing of networks: [`Link`] gives out asks to be sent and takes answers that came, [`frame`]
//! turns them into bytes. Modules: `worker` keeps the books of one worker, `desk` those of all, `link` is the handle of
//! a worker, `state` what callers are told, `canary` draws the test asks, `speed` knows how fast a worker is,
//! `versions` which language both sides speak.

mod canary;
pub(crate) mod desk;
pub mod frame;
mod link;
mod speed;
mod state;
pub mod versions;
pub(crate) mod worker;

pub use link::Link;
pub use state::{Counts, Introduction, Lie, Name, Parted, WorkerState};
pub use worker::MOST_HELD;

pub(crate) use canary::Chance;
