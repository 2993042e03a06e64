//! What an operator may change.

use std::{fmt, num::NonZeroUsize, thread, time::Duration};

use crate::{calibrate::Calibration, cpu::Level, machine, pepper::Keys, policy::Policy};

/// How the pool, the gate and new hashes are set up. The defaults suit a server that signs people in.
///
/// ```
/// use std::time::Duration;
///
/// use hasher::{Policy, Settings};
///
/// let settings = Settings {
///     policy: Policy::new(12_288, 3, 1)?, // KiB, passes, lanes: one of OWASP's
///     memory: Some(64 << 20),             // bytes, over all threads
///     max_wait: Duration::from_secs(1),
///     ..Settings::default()
/// };
/// let (threads, memory) = settings.in_force()?; // of a pool with these settings on this machine
/// assert!((1..=5).contains(&threads) && memory <= 64 << 20, "each thread has 12 MiB at least");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Settings {
    /// Threads that hash. Default: as many as the machine runs at once. Never more than [`Settings::memory`] allows.
    pub threads: Option<NonZeroUsize>,
    /// Most memory for hashing passwords, in bytes, over all threads. More than the machine or its container has counts
    /// as all of that. Default: a quarter of it, but at least what one hash of the policy needs. Where the system does
    /// not tell how much there is (not on Linux), the value counts as it is, and the default is 512 MiB.
    pub memory: Option<u64>,
    /// How long a job may be expected to wait before it begins. A job that would wait longer is answered with
    /// [`Refusal::Busy`] at once; with [`Duration::ZERO`], so is every job that finds no thread free.
    ///
    /// [`Refusal::Busy`]: crate::Refusal::Busy
    pub max_wait: Duration,
    /// How long a thread keeps memory that it does not need before it gives that memory back.
    pub idle: Duration,
    /// Steps of niceness (0 to 19) by which the threads rank behind the rest of the process. Linux only.
    pub nice: u8,
    /// What new hashes look like.
    pub policy: Policy,
    /// The keys that stored hashes may name; the first of each role is for new hashes.
    pub keys: Keys,
    /// What [`Hasher::calibrate`] found earlier. Ignored unless it is from this very machine.
    ///
    /// [`Hasher::calibrate`]: crate::Hasher::calibrate
    pub calibration: Option<Calibration>,
    /// The vector instructions to use. Default: the best that this CPU has.
    pub level: Option<Level>,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            threads: None,
            memory: None,
            max_wait: Duration::from_secs(3),
            idle: Duration::from_secs(10),
            nice: 10,
            policy: Policy::default(),
            keys: Keys::default(),
            calibration: None,
            level: None,
        }
    }
}

/// The settings with every default filled in from the machine.
pub(crate) struct Limits {
    pub(crate) threads: usize,
    /// In KiB.
    pub(crate) memory: u64,
    pub(crate) max_wait: Duration,
    pub(crate) idle: Duration,
}

impl Settings {
    /// Returns how many threads hash, and in how many bytes of memory at most, on this machine.
    ///
    /// # Errors
    /// [`StartError::TooLittleMemory`], as [`Hasher::start`](crate::Hasher::start) would return.
    pub fn in_force(&self) -> Result<(usize, u64), StartError> {
        self.limits().map(|limits| (limits.threads, limits.memory * 1024))
    }

    pub(crate) fn limits(&self) -> Result<Limits, StartError> {
        let need = u64::from(self.policy.cost.memory());
        let memory = match self.memory {
            Some(bytes) => machine::capped(bytes, machine::memory()) / 1024,
            None => (machine::quarter() / 1024).max(need),
        };
        let fit = usize::try_from(memory / need).unwrap_or(usize::MAX);
        if fit == 0 {
            return Err(StartError::TooLittleMemory);
        }
        let threads = self.threads.or_else(|| thread::available_parallelism().ok()).map_or(1, NonZeroUsize::get);
        Ok(Limits { threads: threads.min(fit), memory, max_wait: self.max_wait, idle: self.idle })
    }
}

/// Why the pool cannot start.
#[derive(Debug)]
#[non_exhaustive]
pub enum StartError {
    /// The memory ceiling is below what one hash of the policy needs.
    TooLittleMemory,
    /// The system refused to start another thread.
    Thread(std::io::Error),
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StartError::TooLittleMemory => {
                f.write_str("the memory ceiling for hashing is less than one hash of the policy needs")
            }
            StartError::Thread(error) => write!(f, "cannot start a hashing thread: {error}"),
        }
    }
}

impl std::error::Error for StartError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            StartError::TooLittleMemory => None,
            StartError::Thread(error) => Some(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn threads(threads: usize, memory: u64) -> Option<usize> {
        let settings = Settings { threads: NonZeroUsize::new(threads), memory: Some(memory), ..Settings::default() };
        settings.limits().ok().map(|limits| limits.threads)
    }

    #[test]
    fn the_ceiling_limits_the_threads() {
        let one = 19_456 * 1024;
        assert_eq!(threads(8, 8 * one), Some(8));
        assert_eq!(threads(8, 3 * one + 1), Some(3));
        assert_eq!(threads(2, 100 * one), Some(2));
        assert_eq!(threads(2, one - 1), None);
    }

    #[test]
    fn an_error_of_the_system_is_the_source() {
        let error = StartError::Thread(std::io::ErrorKind::WouldBlock.into());
        assert!(std::error::Error::source(&error).is_some_and(|source| source.is::<std::io::Error>()));
    }

    #[test]
    fn the_defaults_start_on_any_machine() {
        let limits = Settings::default().limits().unwrap();
        assert!(limits.threads >= 1);
        assert!(limits.memory >= limits.threads as u64 * 19_456);
    }
}
