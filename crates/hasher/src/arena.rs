//! The memory in which a thread hashes: mapped once, kept between jobs, wiped after each, given back when idle.

use argon2_rust::{Argon2, Params, params};
use zeroize::Zeroizing;

use crate::{
    job::{Input, Kind, Tag},
    phc::{Algorithm, Version},
};

/// Computes tags on one thread, in memory that it may keep from one job to the next.
pub(crate) trait Kernel {
    /// The tag of `input`.
    ///
    /// # Errors
    /// [`Fault`] when there is no memory for it.
    fn tag(&mut self, kind: Kind, input: &Input) -> Result<Tag, Fault>;
    /// Wipes the memory and gives it back to the system. The next job maps it again.
    fn release(&mut self);
}

/// A tag could not be computed; nothing is known about the password.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fault;

/// The single-lane kernel: a pooled hasher with the widest SIMD that this CPU has. Its memory grows to the largest job
/// seen, is backed by huge pages where the kernel gives them, and is wiped at the end of every job.
#[derive(Default)]
pub(crate) struct Arena {
    hasher: Option<argon2_rust::Hasher>,
}

impl Kernel for Arena {
    fn tag(&mut self, kind: Kind, input: &Input) -> Result<Tag, Fault> {
        let argon2 = configured(kind, input.tag)?;
        let hasher = self.hasher.get_or_insert_with(|| argon2.hasher());
        hasher.set_argon2(argon2);
        let secret = input.pepper.as_ref().map_or(&[][..], |pepper| pepper.key());
        let mut tag = Zeroizing::new(vec![0; input.tag]);
        hasher.hash_into_with_ad(&input.password, &input.salt, secret, &[], &mut tag).map_err(|_| Fault)?;
        Ok(tag)
    }

    fn release(&mut self) {
        self.hasher = None;
    }
}

/// One thread whatever the number of lanes: the pool decides how many cores hash.
fn configured(kind: Kind, tag: usize) -> Result<Argon2, Fault> {
    let params = Params::builder()
        .memory(params::Memory::kib(kind.memory()))
        .passes(kind.cost.passes())
        .lanes(kind.cost.lanes())
        .threads(1)
        .tag_len(params::TagLen::bytes(tag as u64))
        .build()
        .map_err(|_| Fault)?;
    let algorithm = match kind.algorithm {
        Algorithm::Argon2d => argon2_rust::Algorithm::Argon2d,
        Algorithm::Argon2i => argon2_rust::Algorithm::Argon2i,
        Algorithm::Argon2id => argon2_rust::Algorithm::Argon2id,
    };
    let version = match kind.version {
        Version::V16 => argon2_rust::Version::V0x10,
        Version::V19 => argon2_rust::Version::V0x13,
    };
    Ok(Argon2::new(algorithm, version, params))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::Cost;

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// RFC 9106 §5.1 to §5.3, which have a secret and associated data.
    #[test]
    fn the_vectors_of_rfc_9106() {
        let vectors = [
            (Algorithm::Argon2d, "512b391b6f1162975371d30919734294f868e3be3984f3c1a13a4db9fabe4acb"),
            (Algorithm::Argon2i, "c814d9d1dc7f37aa13f0d77f2494bda1c8de6b016dd388d29952a4c4672b6ce8"),
            (Algorithm::Argon2id, "0d640df58d78766c08c037a34a8b53c9d01ef0452d75b65eb52520e96b01e659"),
        ];
        for (algorithm, expected) in vectors {
            let kind = Kind { algorithm, version: Version::V19, cost: Cost::new(32, 3, 4).unwrap() };
            let mut hasher = configured(kind, 32).unwrap().hasher();
            let mut tag = [0; 32];
            hasher.hash_into_with_ad(&[1; 32], &[2; 16], &[3; 8], &[4; 12], &mut tag).unwrap();
            assert_eq!(hex(&tag), expected, "{algorithm:?}");
        }
    }

    /// From the tests of the reference implementation, phc-winner-argon2.
    #[test]
    fn the_vectors_of_the_reference_implementation() {
        use {Algorithm::*, Version::*};
        let vectors = [
            (Argon2i, V16, 1 << 16, 2, 1, "f6c4db4a54e2a370627aff3db6176b94a2a209a62c8e36152711802f7b30c694"),
            (Argon2i, V16, 256, 2, 1, "fd4dd83d762c49bdeaf57c47bdcd0c2f1babf863fdeb490df63ede9975fccf06"),
            (Argon2i, V19, 1 << 16, 2, 1, "c1628832147d9720c5bd1cfd61367078729f6dfb6f8fea9ff98158e0d7816ed0"),
            (Argon2id, V19, 256, 2, 1, "9dfeb910e80bad0311fee20f9c0e2b12c17987b4cac90c2ef54d5b3021c68bfe"),
            (Argon2id, V19, 256, 2, 2, "6d093c501fd5999645e0ea3bf620d7b8be7fd2db59c20d9fff9539da2bf57037"),
        ];
        let mut arena = Arena::default();
        for (algorithm, version, memory, passes, lanes, expected) in vectors {
            let kind = Kind { algorithm, version, cost: Cost::new(memory, passes, lanes).unwrap() };
            let password = Zeroizing::new(b"password".to_vec());
            let input = Input { password, salt: b"somesalt".to_vec(), pepper: None, tag: 32 };
            assert_eq!(hex(&arena.tag(kind, &input).unwrap()), expected, "{algorithm:?} {version:?} m={memory}");
        }
    }

    #[test]
    fn memory_is_kept_between_jobs_and_given_back_on_release() {
        let kind = |memory| Kind {
            algorithm: Algorithm::Argon2id,
            version: Version::V19,
            cost: Cost::new(memory, 1, 1).unwrap(),
        };
        let input = Input { password: Zeroizing::new(vec![1]), salt: vec![2; 16], pepper: None, tag: 32 };
        let mut arena = Arena::default();
        arena.tag(kind(512), &input).unwrap();
        let held = |arena: &Arena| arena.hasher.as_ref().map(argon2_rust::Hasher::reserved_blocks);
        assert_eq!(held(&arena), Some(512));
        arena.tag(kind(64), &input).unwrap();
        assert_eq!(held(&arena), Some(512));
        arena.release();
        assert_eq!(held(&arena), None);
    }
}
