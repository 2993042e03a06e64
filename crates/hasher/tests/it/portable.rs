//! The kernels that run on any CPU, in cases small enough for an interpreter: `scripts/miri` runs these.

use hasher::{
    argon2::{Algorithm, Block, Cost, H0, Params, Tag, Version, fill},
    bcrypt::{self, Flavor},
    cpu::Level,
};

/// The tags of passwords 0, 1, … with these parameters.
fn tags(params: &Params, together: u8) -> Vec<String> {
    let h0s: Vec<H0> = (0..together).map(|n| H0::new(params, &[n], &[2; 16], &[3; 8], &[4; 12])).collect();
    let mut memory = vec![Block::ZERO; h0s.len() * params.memory_blocks()];
    let mut tags = vec![Tag::default(); h0s.len()];
    fill(Level::Portable, params, &h0s, &mut memory, &mut tags);
    tags.iter().map(|tag| hex(tag)).collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// RFC 9106 §5.3.
#[test]
fn the_vector_of_rfc_9106() {
    let cost = Cost::new(32, 3, 4).unwrap();
    let params = Params::new(Algorithm::Argon2id, Version::V19, cost, 32).unwrap();
    let h0 = H0::new(&params, &[1; 32], &[2; 16], &[3; 8], &[4; 12]);
    let mut memory = vec![Block::ZERO; params.memory_blocks()];
    let mut tags = [Tag::default()];
    fill(Level::Portable, &params, &[h0], &mut memory, &mut tags);
    let expected = "0d640df58d78766c08c037a34a8b53c9d01ef0452d75b65eb52520e96b01e659";
    assert_eq!(hex(&tags[0]), expected);
}

/// Every variant, several fills and several lanes in lock step, tags longer than one digest: the same as one by one.
#[test]
fn fills_in_lock_step_are_as_alone() {
    let all = [
        (Algorithm::Argon2id, Version::V19, (8, 2, 1), 65),
        (Algorithm::Argon2d, Version::V16, (9, 2, 1), 4),
        (Algorithm::Argon2i, Version::V19, (16, 1, 2), 97),
        (Algorithm::Argon2id, Version::V19, (33, 3, 4), 64),
    ];
    // An interpreter takes a second for each block.
    let (cases, most) = if cfg!(miri) { (&all[..1], 2) } else { (&all[..], 8) };
    for &(algorithm, version, (memory, passes, lanes), tag_bytes) in cases {
        let cost = Cost::new(memory, passes, lanes).unwrap();
        let params = Params::new(algorithm, version, cost, tag_bytes).unwrap();
        let together = tags(&params, most);
        for fewer in 1..most {
            assert_eq!(together[..usize::from(fewer)], tags(&params, fewer));
        }
        assert!(together.iter().all(|tag| tag.len() == 2 * tag_bytes as usize));
    }
}

/// The empty password at the lowest cost that there is, as OpenBSD's implementation hashes it, beside another.
#[test]
#[cfg_attr(miri, ignore = "minutes, and there is no unsafe code in it")]
fn bcrypt_of_two() {
    let hash: bcrypt::Hash = "$2b$04$abcdefghijklmnopqrstuubyCG3zY1GIXMyxfivm.ClDiInHzxjiq".parse().unwrap();
    let job = |key: &[u8]| bcrypt::Job { flavor: Flavor::B, key: key.to_vec().into(), salt: hash.salt };
    let mut tags = [[0; bcrypt::TAG_BYTES]; 2];
    bcrypt::crypt(hash.cost, &[job(b""), job(b"other")], &mut tags);
    assert_eq!(tags[0], hash.tag);
    assert_ne!(tags[1], hash.tag);
}
