//! Chance, which is the same in every run.

/// Numbers for each thing that chance decides. Two machines that differ in one thing meet the same people in the same
/// order, so that they differ by that, and not by who came when.
pub(super) struct Chances {
    pub(super) coming: Chance,
    pub(super) kind: Chance,
    pub(super) late: Chance,
    pub(super) core: Chance,
    pub(super) sync: Chance,
    pub(super) place: Chance,
}

impl Chances {
    pub(super) fn new() -> Self {
        let [coming, kind, late, core, sync, place] =
            [1, 2, 3, 4, 5, 6].map(|of: u64| Chance(0x9E37_79B9_7F4A_7C15_u64.wrapping_mul(of)));
        Chances { coming, kind, late, core, sync, place }
    }
}

/// Pseudorandom numbers, the same in every run (xorshift).
pub(super) struct Chance(u64);

impl Chance {
    pub(super) fn next(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }
}
