//! Hashing on other machines, which are told nothing and believed nothing.
//!
//! Argon2 first computes a pre-hash, H0, of password, salt and pepper (RFC 9106 §3.2); all that is slow follows from H0
//! and the parameters. So a worker is sent H0 and sends back the tag: it sees no password, salt, account or verdict. The
//! stored verifier binds the account, H0 and the tag under a key that stays here, and H0 is computed here from what was
//! typed: a wrong password gives another H0, and no tag that anybody returns makes it right.
//!
//! What is left to a bad worker is to refuse and to be slow. So what does not match is computed again here before it is
//! called wrong (where the caller is throttled, one in eight, and nobody waits for that); one ask in 64 is a canary, a random H0
//! whose tag is computed here too; whoever was wrong once is asked nothing more, and [`Parted::Lied`] says so. An ask that is late is computed here
//! as well, and whoever comes first is taken; a worker that goes away has its asks given to another one once, then
//! computed here.
//!
//! This module knows nothing of networks: [`Link`] has asks to be sent and takes answers that came, [`frame`] makes bytes
//! of them. Rooms: `worker` is the books of one worker, `desk` of all, `link` the handle of one, `state` what the outside is told,
//! `canary` draws what is asked to test, `speed` is how fast one is, `versions` which language both sides speak.

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

pub(crate) use canary::Chance;
