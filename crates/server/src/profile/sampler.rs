//! Samples the threads of this process: a signal per hundredth second of CPU time, and the stack that it interrupts.
//!
//! Between profiles there is no timer and no handler, so nothing is paid. A thread that waits gets no signal.

/// The error on other systems.
pub const ELSEWHERE: &str = "profiles can be taken only on Linux, on x86-64 and ARM64";
/// Whether samples can be taken on this kind of system.
pub const HERE: bool = cfg!(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")));

/// A stack that was seen.
pub struct Seen {
    /// The thread's name.
    pub thread: String,
    /// The thread's ID.
    pub id: u64,
    /// Addresses, the innermost first: that of the instruction, then those to which calls return.
    pub addresses: Vec<u64>,
    /// How often it was seen.
    pub times: u64,
    /// Whether there was no room for the outermost addresses.
    pub cut: bool,
}

impl Seen {
    /// Returns addresses inside the functions, the outermost first. A call may be the last instruction of a function:
    /// it returns to an address behind the function.
    pub fn looked_up(&self) -> impl Iterator<Item = u64> {
        let inside = |(at, address): (usize, &u64)| if at == 0 { *address } else { address.saturating_sub(1) };
        self.addresses.iter().enumerate().map(inside).rev()
    }
}

#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
mod signals {
    use super::Seen;
    use pprof::{MAX_DEPTH, ProfilerGuard, ProfilerGuardBuilder};
    use std::fs::{self, OpenOptions};
    use std::hash::{BuildHasher, Hasher, RandomState};
    use std::path::Path;

    /// Takes samples until it is dropped.
    pub struct Sampler(ProfilerGuard<'static>);

    /// Checks that the library can keep a file for stacks that do not fit into memory: it does not say why it cannot.
    fn room(folder: &Path) -> Result<(), String> {
        let name = format!(".portiere-profile-{:016x}", RandomState::new().build_hasher().finish());
        try_out(&folder.join(name)).map_err(|error| {
            format!("a profile needs a folder for temporary files (TMPDIR): {}: {error}", folder.display())
        })
    }

    /// Creates a file and removes it. Others may write into that folder, too: what exists already, above all a link, is
    /// left alone.
    fn try_out(file: &Path) -> std::io::Result<()> {
        OpenOptions::new().write(true).create_new(true).open(file)?;
        fs::remove_file(file)
    }

    impl Sampler {
        /// Begins, with so many samples per second of CPU time.
        ///
        /// # Errors
        /// Why it cannot be done here.
        pub fn start(frequency: u32) -> Result<Self, String> {
            room(&std::env::temp_dir())?;
            let frequency = i32::try_from(frequency).unwrap_or(i32::MAX);
            let begun = ProfilerGuardBuilder::default().frequency(frequency).build();
            begun.map(Sampler).map_err(|error| format!("this system does not allow samples to be taken: {error}"))
        }

        /// Returns what was seen so far.
        ///
        /// # Errors
        /// Why it is lost.
        pub fn seen(&self) -> Result<Vec<Seen>, String> {
            let report = self.0.report().build_unresolved();
            let report = report.map_err(|error| format!("the samples cannot be read: {error}"))?;
            let seen = report.data.into_iter().map(|(stack, times)| Seen {
                thread: String::from_utf8_lossy(&stack.thread_name[..stack.thread_name_length]).into_owned(),
                id: stack.thread_id,
                addresses: stack.frames.iter().map(|frame| frame.ip as u64).collect(),
                times: u64::try_from(times).unwrap_or(0),
                cut: stack.frames.len() >= MAX_DEPTH,
            });
            Ok(seen.collect())
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn a_link_that_somebody_left_is_neither_followed_nor_removed() {
            let folder = tempfile::tempdir().unwrap();
            let (kept, link) = (folder.path().join("kept"), folder.path().join("link"));
            fs::write(&kept, "text").unwrap();
            std::os::unix::fs::symlink(&kept, &link).unwrap();
            assert!(try_out(&link).is_err() && link.is_symlink());
            assert_eq!(fs::read_to_string(&kept).unwrap(), "text");
        }

        #[test]
        fn room_is_looked_for_and_nothing_is_left_of_it() {
            let folder = tempfile::tempdir().unwrap();
            // With a predictable name, somebody could have taken it.
            let known = folder.path().join(format!(".portiere-profile-{}", std::process::id()));
            fs::write(&known, "taken").unwrap();
            room(folder.path()).unwrap();
            assert_eq!(fs::read_to_string(&known).unwrap(), "taken");
            assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
            assert!(room(&folder.path().join("nowhere")).unwrap_err().contains("TMPDIR"));
        }
    }
}

#[cfg(not(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"))))]
mod signals {
    use super::{ELSEWHERE, Seen};

    /// Takes no samples.
    pub struct Sampler;

    impl Sampler {
        /// Refuses.
        ///
        /// # Errors
        /// Always.
        pub fn start(_frequency: u32) -> Result<Self, String> {
            Err(ELSEWHERE.into())
        }

        /// Returns nothing.
        ///
        /// # Errors
        /// Never.
        pub fn seen(&self) -> Result<Vec<Seen>, String> {
            Ok(Vec::new())
        }
    }
}

pub use signals::Sampler;
