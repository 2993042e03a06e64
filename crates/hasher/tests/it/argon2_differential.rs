//! Every kernel and every number of fills in lock step against two other implementations, over random parameters.
//! Kernels are those that masking each feature of the CPU in turn leaves.

use hasher::{
    argon2::{Algorithm, Block, Cost, H0, MAX_TOGETHER, Params, Tag, Version, fill},
    cpu::Level,
};

use crate::{Random, cases, levels};

/// Parameter sets of one everyday run.
const SETS: u32 = 200;

struct Inputs {
    password: Vec<u8>,
    salt: Vec<u8>,
    secret: Vec<u8>,
    data: Vec<u8>,
}

impl Inputs {
    fn random(random: &mut Random) -> Self {
        Inputs {
            password: random_password(random),
            salt: random.bytes(8, 40),
            secret: random.bytes(0, 40),
            data: random.bytes(0, 100),
        }
    }

    fn h0(&self, params: &Params) -> H0 {
        H0::new(params, &self.password, &self.salt, &self.secret, &self.data)
    }
}

/// Now and then as long as people's may be, which is several blocks of BLAKE2b.
fn random_password(random: &mut Random) -> Vec<u8> {
    let most = random.one_of(&[80, 80, 80, 1024]);
    random.bytes(0, most)
}

fn random_cost(random: &mut Random) -> Cost {
    // Now and then many passes or lanes, in little memory: more than a stored hash may have.
    match random.between(0, 15) {
        0 => {
            let lanes = random.between(1, 8);
            return Cost::new(random.between(8 * lanes, 8 * lanes + 20), random.between(5, 200), lanes).unwrap();
        }
        1 => {
            let lanes = random.between(9, 200);
            return Cost::new(8 * lanes, random.between(1, 4), lanes).unwrap();
        }
        _ => {}
    }
    let lanes = random.one_of(&[1, 1, 1, 2, 3, 4, 5, 8]);
    // Now and then segments of more than 128 blocks, which take more than one block of addresses.
    let most = random.one_of(&[8 * lanes + 20, 64 * lanes, 900 * lanes]);
    Cost::new(random.between(8 * lanes, most), random.between(1, 4), lanes).unwrap()
}

fn random_params(random: &mut Random) -> Params {
    let tag_bytes = random.between(4, 300);
    let cost = random_cost(random);
    let algorithm = random.one_of(&[Algorithm::Argon2d, Algorithm::Argon2i, Algorithm::Argon2id]);
    let version = random.one_of(&[Version::V16, Version::V19]);
    let tag_bytes = random.one_of(&[4, 16, 32, 63, 64, 65, 96, 97, tag_bytes]);
    Params::new(algorithm, version, cost, tag_bytes).unwrap()
}

/// Memory that holds something everywhere: the last blocks of a fill of its own, over and over.
fn dirty(blocks: usize, params: &Params, h0: &H0) -> Vec<Block> {
    let mut other = *params;
    other.cost = Cost::new(8, 1, 1).unwrap();
    let mut full = [Block::ZERO; 8];
    fill(Level::Portable, &other, std::slice::from_ref(h0), &mut full, &mut [Tag::default()]);
    assert!(!full.contains(&Block::ZERO));
    full.into_iter().cycle().take(blocks).collect()
}

fn tags(level: Level, params: &Params, inputs: &[Inputs]) -> Vec<Vec<u8>> {
    let h0s: Vec<H0> = inputs.iter().map(|inputs| inputs.h0(params)).collect();
    let mut memory = dirty(inputs.len() * params.memory_blocks(), params, &h0s[0]);
    let mut tags = vec![Tag::default(); inputs.len()];
    fill(level, params, &h0s, &mut memory, &mut tags);
    tags.iter().map(|tag| tag.to_vec()).collect()
}

/// What `argon2` computes, which takes at most 32 bytes of data.
fn first_oracle(params: &Params, inputs: &Inputs) -> Option<Vec<u8>> {
    let cost = params.cost;
    let algorithm = match params.algorithm {
        Algorithm::Argon2d => argon2::Algorithm::Argon2d,
        Algorithm::Argon2i => argon2::Algorithm::Argon2i,
        Algorithm::Argon2id => argon2::Algorithm::Argon2id,
    };
    let version = match params.version {
        Version::V16 => argon2::Version::V0x10,
        Version::V19 => argon2::Version::V0x13,
    };
    let mut builder = argon2::ParamsBuilder::new();
    builder.m_cost(cost.memory()).t_cost(cost.passes()).p_cost(cost.lanes());
    builder.data(argon2::AssociatedData::new(&inputs.data).ok()?).output_len(params.tag_bytes() as usize);
    let argon2 = argon2::Argon2::new_with_secret(&inputs.secret, algorithm, version, builder.build().unwrap()).unwrap();
    let mut tag = vec![0; params.tag_bytes() as usize];
    argon2.hash_password_into(&inputs.password, &inputs.salt, &mut tag).unwrap();
    Some(tag)
}

/// What `argon2-rust` computes.
fn second_oracle(params: &Params, inputs: &Inputs) -> Vec<u8> {
    use argon2_rust::params::{Memory, TagLen};
    let cost = params.cost;
    let algorithm = match params.algorithm {
        Algorithm::Argon2d => argon2_rust::Algorithm::Argon2d,
        Algorithm::Argon2i => argon2_rust::Algorithm::Argon2i,
        Algorithm::Argon2id => argon2_rust::Algorithm::Argon2id,
    };
    let version = match params.version {
        Version::V16 => argon2_rust::Version::V0x10,
        Version::V19 => argon2_rust::Version::V0x13,
    };
    let theirs = argon2_rust::Params::builder()
        .memory(Memory::kib(cost.memory().into()))
        .passes(cost.passes())
        .lanes(cost.lanes())
        .threads(1)
        .tag_len(TagLen::bytes(params.tag_bytes().into()))
        .build()
        .unwrap();
    let mut tag = vec![0; params.tag_bytes() as usize];
    argon2_rust::Argon2::new(algorithm, version, theirs)
        .hash_into_with_ad(&inputs.password, &inputs.salt, &inputs.secret, &inputs.data, &mut tag)
        .unwrap();
    tag
}

/// The numbers in lock step to try: every one; but sets with much memory, many passes or many lanes, which take most of
/// the time, get one number each, in turn.
fn numbers(set: u32, params: &Params) -> std::ops::RangeInclusive<usize> {
    let one = 1 + set as usize % MAX_TOGETHER;
    let cost = params.cost;
    let dear = cost.memory() > 64 * cost.lanes() || cost.passes() > 4 || cost.lanes() > 8;
    if dear { one..=one } else { 1..=MAX_TOGETHER }
}

#[test]
fn every_kernel_and_number_together_computes_what_others_compute() {
    let levels = levels();
    for set in 0..cases(SETS) {
        let mut random = Random(set.into());
        let params = random_params(&mut random);
        let numbers = numbers(set, &params);
        let inputs: Vec<Inputs> = (0..*numbers.end()).map(|_| Inputs::random(&mut random)).collect();
        let expected: Vec<Vec<u8>> = inputs.iter().map(|inputs| second_oracle(&params, inputs)).collect();
        for (inputs, expected) in inputs.iter().zip(&expected) {
            if let Some(tag) = first_oracle(&params, inputs) {
                assert_eq!(&tag, expected, "set {set}: {params:?}");
            }
        }
        for &level in &levels {
            for together in numbers.clone() {
                let tags = tags(level, &params, &inputs[..together]);
                assert_eq!(tags, expected[..together], "set {set}: {level:?}, {together} together, {params:?}");
            }
        }
    }
}
