//! Published test vectors, for every kernel and every number of fills in lock step.

use hasher::{
    argon2::{Algorithm, Block, Cost, H0, MAX_TOGETHER, Params, Tag, Version, fill},
    cpu::Level,
};

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The tag of `h0`, the same from every kernel and every place among others.
fn tag(params: &Params, h0: &H0) -> String {
    let mut found: Option<Tag> = None;
    for level in Level::available() {
        for together in 1..=MAX_TOGETHER {
            let other = H0::new(params, b"another", b"othersalt", &[], &[]);
            let mut h0s = vec![other; together];
            h0s[together / 2] = h0.clone();
            let mut memory = vec![Block::ZERO; together * params.memory_blocks()];
            let mut tags = vec![Tag::default(); together];
            fill(level, params, &h0s, &mut memory, &mut tags);
            let tag = tags.swap_remove(together / 2);
            assert!(found.as_ref().is_none_or(|found| *found == tag), "{level:?} with {together}");
            found = Some(tag);
        }
    }
    hex(&found.unwrap())
}

/// As [`tag`], by the best kernel only: for costs that take long.
fn tag_alone(params: &Params, h0: &H0) -> String {
    let mut memory = vec![Block::ZERO; params.memory_blocks()];
    let mut tags = [Tag::default()];
    fill(Level::best(), params, std::slice::from_ref(h0), &mut memory, &mut tags);
    hex(&tags[0])
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
        let params = Params::new(algorithm, Version::V19, Cost::new(32, 3, 4).unwrap(), 32).unwrap();
        let h0 = H0::new(&params, &[1; 32], &[2; 16], &[3; 8], &[4; 12]);
        assert_eq!(tag(&params, &h0), expected, "{algorithm:?}");
    }
}

/// RFC 9106 §5.3 prints the pre-hash.
#[test]
fn the_pre_hash_of_rfc_9106() {
    let cost = Cost::new(32, 3, 4).unwrap();
    let params = Params::new(Algorithm::Argon2id, Version::V19, cost, 32).unwrap();
    let h0 = H0::new(&params, &[1; 32], &[2; 16], &[3; 8], &[4; 12]);
    assert_eq!(
        hex(h0.as_bytes()),
        "2889de487eb42ae500c0007ed9252f1069eadec40d5765b485de6dc2437a67b8\
         546a2f0acc1a0882db8fcf74714b472e94df421a5da1112ffa11434370a1e997"
    );
    assert_eq!(H0::from_bytes(h0.as_bytes()).as_bytes(), h0.as_bytes());
    assert_eq!(format!("{h0:?}"), "H0(..)");
}

/// Computed by phc-winner-argon2, the reference implementation: more data than the 32 bytes that some libraries allow.
#[test]
fn long_associated_data_as_in_the_reference_implementation() {
    use {Algorithm::*, Version::*};
    let vectors = [
        (Argon2d, V19, 33, "e5cd8e36c4582ed46dc9c37d8517f834ed22f2635fbaedc264110cfacd959e89"),
        (Argon2d, V19, 64, "bf252060a8a69ebeffc0051c78f3f35c76dc4f8c50bd8b49d01709c5fb18fbba"),
        (Argon2d, V19, 200, "32067b5c4886a16c909b393d8b2d9515e02c51acf7cf39bd91893e8c183aefd4"),
        (Argon2d, V16, 33, "ac28759dfc4bdb4861f88678d3012377eda7bec7c96010454502148112826bc2"),
        (Argon2d, V16, 64, "a15ce85da42765549b48f69922f9a4424750c2c28bf8d3b3aca79fceedd8c313"),
        (Argon2d, V16, 200, "66fe322358c66d719cee67d8ec2a80cdaeb6da30a679c08cbe5319c2d7210f37"),
        (Argon2i, V19, 33, "8e7e94e028142303774c5752dc25f97999e438460d3f7c4c2a880d6475b5f1bd"),
        (Argon2i, V19, 64, "eda09c9df9466143cc520e3ed7c59909e0eb2d97cfba07011387aeb95ce81d89"),
        (Argon2i, V19, 200, "13f4cc6bf2b44eccd6cba1c30d24a6ef2c679275e9a59cf87046cb73775687d8"),
        (Argon2i, V16, 33, "7150b756cdfbfe4eaa0609d12a5fa20f0fa8305aa6aaff449ea82475ae64a371"),
        (Argon2i, V16, 64, "11a849aba96994c28b2a8fdd5bf354384edc8b110ec667959069c17676ef3594"),
        (Argon2i, V16, 200, "34e74020f551eb27060fcc4ac39f061637c0ba29cd209aacebe510bb40fc9cde"),
        (Argon2id, V19, 33, "fe5cf3d6a7f4c09bb37dcb229099dce09f3208bbf07cb63b628a80365cf9ca9b"),
        (Argon2id, V19, 64, "9c98971fa1f9318d04da9da2edf18b4fc21c94611361735c8c320d500fd9ee02"),
        (Argon2id, V19, 200, "db0722071f0f5afe695eef4866502aeee1ebe0969f42ca0a691a349bc767a8b7"),
        (Argon2id, V16, 33, "d56f254cf0b91d36336bbafaa525d87016111989481fa9b62277f6597abd0c44"),
        (Argon2id, V16, 64, "eaef2deaa88697e72a28c3b90e3b78534e941778065b8b3cac8a2c9e6c83ae87"),
        (Argon2id, V16, 200, "83defb40583aac64f0a696b0976978d31bd18f53af6a95569b5608b45abef6f0"),
    ];
    let data: Vec<u8> = (0..200).collect();
    for (algorithm, version, bytes, expected) in vectors {
        let params = Params::new(algorithm, version, Cost::new(128, 2, 2).unwrap(), 32).unwrap();
        let h0 = H0::new(&params, b"password", b"somesalt", b"pepper", &data[..bytes]);
        assert_eq!(tag(&params, &h0), expected, "{algorithm:?} {version:?} with {bytes} bytes");
    }
}

/// From the tests of the reference implementation.
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
    for (algorithm, version, memory, passes, lanes, expected) in vectors {
        let cost = Cost::new(memory, passes, lanes).unwrap();
        let params = Params::new(algorithm, version, cost, 32).unwrap();
        let h0 = H0::new(&params, b"password", b"somesalt", &[], &[]);
        let found = if memory > 1024 { tag_alone(&params, &h0) } else { tag(&params, &h0) };
        assert_eq!(found, expected, "{algorithm:?} {version:?} m={memory}");
    }
}
