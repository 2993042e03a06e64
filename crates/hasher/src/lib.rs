//! Password hashing that spends CPU on purpose and says no in time.
//!
//! A sign-in with a password costs one deliberately slow hash, nine tenths of all the CPU that the sign-in needs. This
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
//! Rooms: `phc` reads and writes stored hashes, `policy` says what a new one costs, `gate` admits, `fair` orders what
//! waits, `cost` measures, `pool` runs, `arena` holds the memory. Chance is an argument (salts), and so is every
//! limit; nothing here reads the environment, the wall clock or a database.

mod arena;
mod cost;
mod fair;
mod gate;
mod hasher;
mod job;
mod machine;
mod pepper;
mod phc;
mod policy;
mod pool;
mod settings;
#[cfg(test)]
mod tests;

pub use fair::FairKey;
pub use gate::{Refusal, State};
pub use hasher::{Hasher, MAX_PASSWORD, Verified};
pub use pepper::{KeyId, Pepper};
pub use phc::{Algorithm, Argon2Hash, ParseError, Stored, Version};
pub use policy::{BadCost, Cost, Policy, SALT_BYTES, TAG_BYTES};
pub use settings::{Settings, StartError};
