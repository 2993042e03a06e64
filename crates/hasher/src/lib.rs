//! Password hashing that spends CPU on purpose and says no in time.
//!
//! A sign-in with a password costs one deliberately slow hash, three quarters of all the CPU that the sign-in needs. This
//! crate decides how many of them run (a [pool](Settings::threads) of low-priority threads), in how much memory (kept
//! between jobs, under a [ceiling](Settings::memory)), and how many may wait (a gate that knows the measured cost of a
//! job, refuses past [a waiting time](Settings::max_wait), and is fair by [`FairKey`]).
//!
//! ```
//! use hasher::{FairKey, Hasher, Policy, Settings, Stored};
//! # let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
//! # runtime.block_on(async {
//! let hasher = Hasher::start(Settings { policy: Policy::new(64, 1, 1)?, ..Settings::default() })?;
//! let key = FairKey::new("main", "192.0.2.7".parse()?);
//!
//! let text = hasher.hash(&key, b"correct horse", [7; 16]).await?;
//! let stored: Stored = text.parse()?;
//! assert!(hasher.verify(&key, &stored, b"correct horse").await?.ok);
//! assert!(!hasher.verify(&key, &stored, b"wrong").await?.ok);
//! assert!(!hasher.decoy(&key, [9; 16], b"correct horse").await?.ok);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # }).unwrap();
//! ```
//!
//! The kernels can be used without all that: [`argon2`], [`bcrypt`], and [`cpu`] for what they may run on.
//!
//! **Threads.** A [`Hasher`] is `Send + Sync`, and its clones are the same pool. Its futures run on any executor, and hold no thread
//! while they wait: whoever asks computes what is cheap (H0, an HMAC), the pool the rest.
//!
//! **What blocks** is outside of the pool: [`Key::check`], [`Keys::checks`] and [`Keys::confirm`] take the time of a hash for each import
//! key, what [`tune`] measures takes all cores for some seconds, and kernels compute where they are called. All else is over at once.
//!
//! **What may be dropped.** All futures of a [`Hasher`], and [`remote::Link::asks`], are cancel-safe: they fit into a `select!` and under a
//! timeout. A job that waits leaves the queue, and its password is wiped; one that runs is finished for nobody. Whoever drops a
//! verification does not learn what it found, but the guess may have been made: where failures are counted, count it. Of
//! [`Hasher::calibrate`] only the waiting ends, not the measuring, and [`Hasher::stop`] has stopped the pool from when it is first polled.
//!
//! **What will grow** is `#[non_exhaustive]`: more kernels, formats and things to be told about the pool. [`Refusal`], [`KeysError`],
//! [`Role`] and [`import::Imported`] are not: whoever tells them apart has to think about a new one.
//!
//! Rooms: `formats` reads and writes stored hashes, `policy` says what a new one costs, `gate` admits, with `books` of what
//! waits in `queue`, in `fair` order; `cost` and `calibrate` measure, `pool` runs, `native` is where it meets the kernels
//! `argon2` and `bcrypt`, `arena` holds the memory. Chance is an argument (salts), and so is every limit; nothing here
//! reads the environment, the wall clock or a database.

mod arena;
pub mod argon2;
pub mod bcrypt;
mod books;
mod calibrate;
mod coming;
mod cost;
mod courtesy;
/// Which kernels run here, and which would on a lesser CPU.
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

/// Handlers share it, whatever threads they run on; and who waits for an answer may be moved to another.
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
