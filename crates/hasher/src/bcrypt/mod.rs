//! bcrypt (N. Provos and D. Mazières, "A Future-Adaptable Password Scheme", USENIX 1999): several passwords in lock
//! step.
//!
//! One password is a chain of dependent loads: each Blowfish round looks up four words by the bytes of the word that
//! the previous round made, and waits for them longer than it computes. The chains of several passwords do not depend
//! on each other, so one core walks them side by side and works on one while another waits. The result of each job is
//! the same as if it ran alone.
//!
//! What is hashed:
//! - **The key is bytes.** Nothing here knows about characters, and a NUL is a byte like any other (as in Go, Java and
//!   Rust; in C the key ends there, so a caller that must agree with C on such passwords cuts them first).
//! - **72 bytes count.** A shorter key is followed by one NUL, then repeated; the rest of a longer one is ignored, as
//!   in every implementation. This is bcrypt's own rule and needed to verify existing hashes; a caller that makes new
//!   ones refuses longer passwords or hashes them first.
//! - **The [flavor](Flavor)** matters only for keys with bytes from 0x80.
//!
//! ```
//! use hasher::bcrypt::{Flavor, Hash, Job, TAG_BYTES, crypt};
//!
//! let (flavor, cost, salt) = (Flavor::B, 4, [7; 16]);
//! let jobs = ["one", "two"].map(|key| Job { flavor, key: key.as_bytes().to_vec().into(), salt });
//! let mut tags = [[0; TAG_BYTES]; 2];
//! crypt(cost, &jobs, &mut tags);
//! assert_ne!(tags[0], tags[1]);
//!
//! let stored = Hash { flavor, cost, salt, tag: tags[0] }.to_string();
//! assert!(stored.starts_with("$2b$04$"));
//! # assert_eq!(stored.parse::<Hash>().unwrap().tag, tags[0]);
//! ```
//!
//! Modules: `key` lays a key out as words, `lanes` is the kernel, `tables` is what Blowfish starts from, `text` reads
//! and writes stored hashes.

mod key;
mod lanes;
mod tables;
mod text;

use std::{array, fmt};

use zeroize::Zeroizing;

use {key::Key, lanes::Lanes};

pub(crate) use key::BYTES as KEY_BYTES;
pub use text::{BadText, Hash};

/// Most jobs that [`crypt`] takes at once. Eight states fill two thirds of a first-level cache of 48 KiB.
pub const MAX_TOGETHER: usize = 8;

/// Least cost: 2^4 rounds of both key schedules.
pub const MIN_COST: u32 = 4;

/// Greatest cost of the text format: 2^31 rounds, days. A caller that takes hashes from outside sets a lower limit.
pub const MAX_COST: u32 = 31;

/// Bytes of a tag: 184 bits; the last byte of the third block is not kept.
pub const TAG_BYTES: usize = 23;

/// Whose variant of bcrypt made a hash. The variants differ only for keys with bytes from 0x80.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Flavor {
    /// `$2a$` as crypt_blowfish 1.3 computes it: correct, except that a key which the sign extension bug of its early
    /// versions would have made equal to others (each byte from 0x80 follows only 0xff in its word of four) gives a
    /// result of its own. So a hash from the time of the bug does not accept those others. UTF-8 has no 0xff: for text
    /// this is the same as [`Flavor::B`], and as what OpenBSD, Java, Go and Rust call `$2a$`, except for long keys of
    /// OpenBSD before 5.5 (2014), which kept the length of a key, with the NUL, in one byte: a password of 255 bytes or
    /// more counted as one shorter by a multiple of 256. That is not reproduced: where it left fewer than 72 bytes,
    /// such a hash does not accept its password here.
    A,
    /// `$2b$`: correct for every key. The flavor for new hashes.
    B,
    /// `$2x$`: with the sign extension bug of crypt_blowfish before 1.1, where a byte from 0x80 overwrites the bytes
    /// before it in its word. Verified, never written.
    X,
    /// `$2y$`: correct for every key; the name of crypt_blowfish and PHP for [`Flavor::B`].
    Y,
}

/// One password to hash.
pub struct Job {
    /// How bytes from 0x80 are read.
    pub flavor: Flavor,
    /// The password; of more than 72 bytes, the first 72 count.
    pub key: Zeroizing<Vec<u8>>,
    /// The 128 bits of salt.
    pub salt: [u8; 16],
}

impl fmt::Debug for Job {
    /// Prints neither key nor salt: a log is no place for anything that helps to guess a password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Job").field("flavor", &self.flavor).finish_non_exhaustive()
    }
}

/// Hashes all jobs at one cost, in lock step: `tags[i]` is the tag of `jobs[i]`. Takes 2^cost times some 50
/// microseconds for one job, and little more for four. The states (4 KiB per job) are on the stack and wiped at the
/// end, like everything that follows from a key; `tags` are the caller's to wipe.
///
/// # Panics
/// When there are no jobs or more than [`MAX_TOGETHER`], when there are not as many tags, or when the cost is not
/// [`MIN_COST`] to [`MAX_COST`].
pub fn crypt(cost: u32, jobs: &[Job], tags: &mut [[u8; TAG_BYTES]]) {
    crypt_with_pauses(cost, jobs, tags, &mut || {});
}

/// As [`crypt`], with a `pause` several times a millisecond: for threads that let others go first.
///
/// # Panics
/// As [`crypt`].
pub(crate) fn crypt_with_pauses(cost: u32, jobs: &[Job], tags: &mut [[u8; TAG_BYTES]], pause: &mut dyn FnMut()) {
    assert!((MIN_COST..=MAX_COST).contains(&cost), "a cost of bcrypt");
    assert_eq!(jobs.len(), tags.len(), "a tag for each job");
    match jobs.len() {
        1 => together::<1>(cost, jobs, tags, pause),
        2 => together::<2>(cost, jobs, tags, pause),
        3 => together::<3>(cost, jobs, tags, pause),
        4 => together::<4>(cost, jobs, tags, pause),
        5 => together::<5>(cost, jobs, tags, pause),
        6 => together::<6>(cost, jobs, tags, pause),
        7 => together::<7>(cost, jobs, tags, pause),
        8 => together::<8>(cost, jobs, tags, pause),
        count => panic!("{count} jobs together"),
    }
}

/// "OrpheanBeholderScryDoubt", the text that is encrypted at the end.
const MAGIC: [[u32; 2]; 3] = [[0x4f72_7068, 0x6561_6e42], [0x6568_6f6c, 0x6465_7253], [0x6372_7944, 0x6f75_6274]];

/// EksBlowfishSetup and the encryption after it (§3 of the paper) of K jobs.
fn together<const K: usize>(cost: u32, jobs: &[Job], tags: &mut [[u8; TAG_BYTES]], pause: &mut dyn FnMut()) {
    // Laid out where they stay: a move leaves a copy behind.
    let mut keys = [const { Key::BLANK }; K];
    keys.iter_mut().zip(jobs).for_each(|(key, job)| key.set(job.flavor, &job.key));
    let salts: [[u32; 4]; K] = array::from_fn(|lane| salt_words(&jobs[lane].salt));
    let mut lanes = Lanes::new();

    lanes.mix(|lane, word| keys[lane].first(word));
    lanes.expand_salted(&salts);
    for _ in 0..1u32 << cost {
        pause();
        lanes.mix(|lane, word| keys[lane].words()[word]);
        lanes.expand();
        lanes.mix(|lane, word| salts[lane][word % 4]);
        lanes.expand();
    }
    for (place, magic) in MAGIC.into_iter().enumerate() {
        for (tag, block) in tags.iter_mut().zip(lanes.encrypt_64_times(magic).iter()) {
            let bytes = Zeroizing::new(block.map(u32::to_be_bytes));
            let room = &mut tag[place * 8..];
            room.iter_mut().zip(bytes.as_flattened()).for_each(|(to, from)| *to = *from);
        }
    }
}

fn salt_words(salt: &[u8; 16]) -> [u32; 4] {
    let (words, _) = salt.as_chunks::<4>();
    array::from_fn(|word| u32::from_be_bytes(words[word]))
}

#[cfg(test)]
mod tests {
    use zeroize::ZeroizeOnDrop;

    use super::*;

    #[test]
    fn there_is_a_pause_before_each_round() {
        let job = Job { flavor: Flavor::B, key: b"one".to_vec().into(), salt: [7; 16] };
        let mut pauses = 0;
        crypt_with_pauses(6, &[job], &mut [[0; TAG_BYTES]], &mut || pauses += 1);
        assert_eq!(pauses, 64);
    }

    /// The state, the key as it is mixed in, and the blocks encrypted with both are wiped on drop.
    #[test]
    fn what_follows_from_a_key_is_wiped() {
        fn wiped<T: ZeroizeOnDrop>(_: &T) {}
        wiped(&Key::BLANK);
        wiped(&tables::initial());
        wiped(&Lanes::<2>::new().encrypt_64_times([1, 2]));
    }
}
