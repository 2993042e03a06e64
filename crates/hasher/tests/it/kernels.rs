//! Every kernel of this CPU, in cases small enough for an interpreter: `scripts/miri` promises it vector instructions.

use hasher::{
    argon2::{Algorithm, Block, Cost, H0, Params, Tag, Version, fill},
    cpu::Level,
};

fn tags(level: Level, params: &Params, together: u8) -> Vec<Tag> {
    let h0s: Vec<H0> = (0..together).map(|number| H0::new(params, &[number], &[2; 16], &[], &[])).collect();
    let mut memory = vec![Block::ZERO; h0s.len() * params.memory_blocks()];
    let mut tags = vec![Tag::default(); h0s.len()];
    fill(level, params, &h0s, &mut memory, &mut tags);
    tags
}

/// Every variant, one lane and two, one password and three in lock step.
#[test]
fn each_computes_what_the_portable_one_does() {
    let levels: Vec<Level> = Level::available().filter(|level| *level != Level::Portable).collect();
    for (algorithm, version, cost) in [
        (Algorithm::Argon2id, Version::V19, (16, 2, 2)),
        (Algorithm::Argon2i, Version::V19, (8, 2, 1)),
        (Algorithm::Argon2d, Version::V16, (8, 2, 1)),
    ] {
        let params = Params::new(algorithm, version, Cost::new(cost.0, cost.1, cost.2).unwrap(), 32).unwrap();
        let expected = tags(Level::Portable, &params, 3);
        for level in &levels {
            assert_eq!(tags(*level, &params, 1), expected[..1], "{level:?} {algorithm:?}");
            assert_eq!(tags(*level, &params, 3), expected, "{level:?} {algorithm:?}");
        }
    }
}
