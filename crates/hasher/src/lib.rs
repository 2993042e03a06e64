//! Password hashing that spends CPU on purpose and says no in time.
//!
//! A password sign-in costs one deliberately slow hash: three quarters of all the CPU that the sign-in needs. This
//! crate decides how many hashes run at once (a [pool](Settings::threads) of low-priority threads), in how much memory
//! (kept between jobs, under a [ceiling](Settings::memory)), and how many may wait (a gate knows the measured cost of a
//! job, refuses jobs beyond [a waiting time](Settings::max_wait), and is fair by [`FairKey`]).
//!
//! ```
//! use hasher::{FairKey, Hasher, Settings, Stored};
//! # use std::io::Read as _;
//! # fn random() -> std::io::Result<[u8; 16]> {
//! #     let mut bytes = [0; 16];
//! #     std::fs::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
//! #     Ok(bytes)
//! # }
//! # fn of_name(_: &str) -> [u8; 16] {
//! #     [9; 16]
//! # }
//! # let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
//! # runtime.block_on(async {
//! let hasher = Hasher::start(Settings::default())?; // once, when the program starts: Argon2id as OWASP wants it
//! let who = FairKey::new("main", "192.0.2.7".parse()?); // tenant and address: whose share of the time it takes
//!
//! // A new password: 16 fresh bytes from the system's source of randomness are its salt.
//! let text = hasher.hash(&who, b"correct horse", random()?).await?;
//! // A sign-in.
//! let stored: Stored = text.parse()?;
//! assert!(hasher.verify(&who, &stored, b"correct horse").await?.ok);
//! assert!(!hasher.verify(&who, &stored, b"wrong").await?.ok);
//! // A name that does not exist takes as long. This salt is not random, but made from the name under a secret key.
//! assert!(!hasher.decoy(&who, of_name("nobody"), b"correct horse").await?.ok);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # }).unwrap();
//! ```
//!
//! The kernels can be used by themselves: [`argon2`] and [`bcrypt`], with [`cpu`] to tell what they may run on.
//!
//! **Threads.** A [`Hasher`] is `Send + Sync`, and its clones share one pool. Its futures run on any executor and hold
//! no thread while they wait: the caller's thread computes the cheap parts (H0, an HMAC), the pool computes the rest.
//!
//! **What blocks** runs outside the pool: [`Key::check`], [`Keys::checks`] and [`Keys::confirm`] take the time of one
//! hash for each import key, the measurements in [`tune`] occupy all cores for some seconds, and the kernels compute on
//! the calling thread. Everything else returns at once.
//!
//! **What may be dropped.** All futures of a [`Hasher`], and [`remote::Link::asks`], are cancel-safe: they fit into a
//! `select!` and under a timeout. A waiting job leaves the queue, and its password is wiped; a running job is finished
//! and its result discarded. A caller that drops a verification does not learn its result, but the guess may have been
//! made: where failures are counted, count it. Dropping [`Hasher::calibrate`] ends only the waiting, not the measuring;
//! [`Hasher::stop`] stops the pool as soon as it is first polled.
//!
//! **What will grow** is `#[non_exhaustive]`: kernels, formats, the [`State`] of the pool. [`Refusal`], [`KeysError`],
//! [`Role`] and [`import::Imported`] are not: code that matches on them must consider a new variant. Nor are
//! [`CpuTime`] and [`remote::WorkerState`], which tests of other crates make up.
//!
//! Modules: `formats` reads and writes stored hashes, `policy` sets the cost of a new one, `gate` admits jobs, with
//! `books` of the jobs that wait in `queue`, in `fair` order; `coming` knows of jobs on their way, [`caller`] of callers
//! who hang up, [`turn`] of when a job began; `cost` and `calibrate` measure, `pool` runs the jobs, `native` connects it
//! to the kernels `argon2` and `bcrypt`, `arena` holds the memory. The README lists all of them. Random bytes (salts)
//! are arguments, and so is every limit; nothing here reads the environment, the wall clock or a database.

mod arena;
pub mod argon2;
pub mod bcrypt;
mod books;
mod calibrate;
pub mod caller;
mod coming;
mod cost;
mod courtesy;
/// Which kernels this CPU runs, and which ones a lesser CPU would run.
///
/// ```
/// use hasher::cpu::{Features, Level};
///
/// assert_eq!(Level::best(), Level::with(Features::detect()));
/// assert!(Level::with(Features::detect().without_avx512f()) < Level::Avx512);
/// assert!(Level::available().any(|level| level == Level::Portable));
/// ```
pub mod cpu;
mod evening;
mod fair;
mod formats;
mod gate;
mod hasher;
mod holding;
mod home;
mod job;
mod kinds;
mod machine;
mod meters;
mod native;
mod pepper;
mod policy;
mod pool;
mod priority;
mod queue;
pub mod remote;
mod settings;
mod state;
#[cfg(test)]
mod tests;
mod took;
pub mod tune;
pub mod turn;

pub use argon2::{Algorithm, BadCost, Cost, Version};
pub use calibrate::{BadCalibration, Calibration};
pub use coming::Coming;
pub use cpu::Level;
pub use fair::FairKey;
pub use formats::{Digest, Limit, ParseError, Stored, Subject, import};
pub use hasher::{Hasher, MAX_PASSWORD, Verified};
pub use job::Work;
pub use kinds::UnknownWork;
pub use meters::CpuTime;
pub use pepper::{BadKey, Key, KeyCheck, KeyId, Keys, KeysError, Role, Twice};
pub use policy::{Policy, SALT_BYTES, TAG_BYTES};
pub use priority::step_ahead;
pub use settings::{Settings, StartError};
pub use state::{KindState, Refusal, State};

/// Handlers on any thread share a `Hasher`, and a task that waits for an answer may move to another thread.
const _: () = {
    const fn shared<T: Send + Sync>() {}
    shared::<Hasher>();
    const fn moved<T: Send>() {}
    moved::<Coming>();
    moved::<remote::Link>();
    moved::<argon2::Arena>();
};

/// The README's code compiles.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
