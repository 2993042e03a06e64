//! What this CPU can do for a hash: detected once, at run time, so that one binary serves every machine.

use std::sync::OnceLock;

/// The vector instructions that a kernel may need. The portable kernel needs none of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Features {
    /// 256-bit integer vectors.
    pub avx2: bool,
    /// 512-bit vectors with 64-bit rotates and three-operand logic.
    pub avx512f: bool,
}

impl Features {
    /// What the CPU and the operating system offer.
    #[cfg(target_arch = "x86_64")]
    pub fn detect() -> Self {
        Features { avx2: is_x86_feature_detected!("avx2"), avx512f: is_x86_feature_detected!("avx512f") }
    }

    /// What the CPU and the operating system offer.
    #[cfg(not(target_arch = "x86_64"))]
    pub fn detect() -> Self {
        Features::default()
    }

    /// These features without AVX-512, as on a CPU that lacks it.
    #[must_use]
    pub fn without_avx512f(self) -> Self {
        Features { avx512f: false, ..self }
    }

    /// These features without AVX2, as on a CPU that lacks it.
    #[must_use]
    pub fn without_avx2(self) -> Self {
        Features { avx2: false, ..self }
    }
}

/// A family of kernels, from the one that runs anywhere to the fastest. All compute the same tags.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Level {
    /// 64-bit scalar code, for every CPU.
    Portable,
    /// 256-bit vectors of x86-64.
    Avx2,
    /// 512-bit vectors of x86-64.
    Avx512,
}

impl Level {
    /// All levels, the slowest first.
    pub const ALL: &'static [Level] = &[Level::Portable, Level::Avx2, Level::Avx512];

    /// The fastest level that this CPU runs, detected once.
    pub fn best() -> Level {
        static BEST: OnceLock<Level> = OnceLock::new();
        *BEST.get_or_init(|| Level::with(Features::detect()))
    }

    /// The fastest level that a CPU with these features runs.
    pub fn with(features: Features) -> Level {
        Level::ALL.iter().copied().rev().find(|level| level.runs_with(features)).unwrap_or(Level::Portable)
    }

    /// Whether a CPU with these features runs this kernel.
    fn runs_with(self, features: Features) -> bool {
        match self {
            Level::Portable => true,
            Level::Avx2 => features.avx2,
            Level::Avx512 => features.avx512f,
        }
    }

    /// All levels that this CPU runs, the slowest first.
    pub fn available() -> impl Iterator<Item = Level> {
        let features = Features::detect();
        Level::ALL.iter().copied().filter(move |level| level.runs_with(features))
    }

    /// The level's name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Level::Portable => "portable",
            Level::Avx2 => "avx2",
            Level::Avx512 => "avx512",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_masked_feature_takes_its_kernel_away() {
        let all = Features { avx2: true, avx512f: true };
        assert_eq!(Level::with(all), Level::Avx512);
        assert_eq!(Level::with(all.without_avx512f()), Level::Avx2);
        assert_eq!(Level::with(all.without_avx2()), Level::Avx512);
        assert_eq!(Level::with(all.without_avx512f().without_avx2()), Level::Portable);
    }

    #[test]
    fn the_best_is_available_and_portable_always_is() {
        assert_eq!(Level::available().next(), Some(Level::Portable));
        assert_eq!(Level::available().last(), Some(Level::best()));
    }
}
