//! Where the threads of this process are: a signal for each hundredth second of CPU, and the stack that it interrupts.
//!
//! Between profiles there is no timer and no handler, so that nothing is paid. A thread that waits gets no signal.

/// What is said on other systems.
pub const ELSEWHERE: &str = "profiles are taken on Linux alone, on x86-64 and ARM64";
/// Whether samples can be taken on a system like this.
pub const HERE: bool = cfg!(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")));

/// A stack that was seen.
pub struct Seen {
    /// What the thread is called.
    pub thread: String,
    /// Addresses, the innermost first: of the instruction, and then those to which calls return.
    pub addresses: Vec<u64>,
    /// How often.
    pub times: u64,
    /// There was no room for the outermost ones.
    pub cut: bool,
}

impl Seen {
    /// Addresses in the functions, the outermost first. A call may be the last thing that a function does, and then returns
    /// to behind it.
    pub fn looked_up(&self) -> impl Iterator<Item = u64> {
        let inside = |(at, address): (usize, &u64)| if at == 0 { *address } else { address.saturating_sub(1) };
        self.addresses.iter().enumerate().map(inside).rev()
    }
}

#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
mod signals {
    use super::Seen;
    use pprof::{MAX_DEPTH, ProfilerGuard, ProfilerGuardBuilder};
    use std::fs::{self, File};

    /// Takes samples until it is dropped.
    pub struct Sampler(ProfilerGuard<'static>);

    /// The library keeps a file for stacks that find no room in memory, and says nothing of why it has none.
    fn room() -> Result<(), String> {
        let folder = std::env::temp_dir();
        let probe = folder.join(format!(".portiere-profile-{}", std::process::id()));
        let made = File::create(&probe).and_then(|_| fs::remove_file(&probe));
        made.map_err(|error| {
            format!("a profile needs a folder for temporary files (TMPDIR): {}: {error}", folder.display())
        })
    }

    impl Sampler {
        /// Begins, with so many samples for a second of CPU.
        ///
        /// # Errors
        /// Why it cannot be done here.
        pub fn start(frequency: u32) -> Result<Self, String> {
            room()?;
            let frequency = i32::try_from(frequency).unwrap_or(i32::MAX);
            let begun = ProfilerGuardBuilder::default().frequency(frequency).build();
            begun.map(Sampler).map_err(|error| format!("this system lets nobody take samples: {error}"))
        }

        /// What was seen so far.
        ///
        /// # Errors
        /// Why it is lost.
        pub fn seen(&self) -> Result<Vec<Seen>, String> {
            let report = self.0.report().build_unresolved();
            let report = report.map_err(|error| format!("the samples cannot be read: {error}"))?;
            let seen = report.data.into_iter().map(|(stack, times)| Seen {
                thread: String::from_utf8_lossy(&stack.thread_name[..stack.thread_name_length]).into_owned(),
                addresses: stack.frames.iter().map(|frame| frame.ip as u64).collect(),
                times: u64::try_from(times).unwrap_or(0),
                cut: stack.frames.len() >= MAX_DEPTH,
            });
            Ok(seen.collect())
        }
    }
}

#[cfg(not(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"))))]
mod signals {
    use super::{ELSEWHERE, Seen};

    /// Takes no samples.
    pub struct Sampler;

    impl Sampler {
        /// Says so.
        ///
        /// # Errors
        /// Always.
        pub fn start(_frequency: u32) -> Result<Self, String> {
            Err(ELSEWHERE.into())
        }

        /// Nothing.
        ///
        /// # Errors
        /// Never.
        pub fn seen(&self) -> Result<Vec<Seen>, String> {
            Ok(Vec::new())
        }
    }
}

pub use signals::Sampler;
