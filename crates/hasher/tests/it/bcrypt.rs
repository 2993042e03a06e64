//! bcrypt against published vectors, and against the `bcrypt` crate for every number of jobs together.

use hasher::bcrypt::{Flavor, Hash, Job, MAX_TOGETHER, crypt};
use proptest::{collection::vec, prelude::*};

use crate::cases;

fn job(flavor: Flavor, key: &[u8], salt: [u8; 16]) -> Job {
    Job { flavor, key: key.to_vec().into(), salt }
}

fn tag_of(cost: u32, flavor: Flavor, key: &[u8], salt: [u8; 16]) -> [u8; 23] {
    let mut tags = [[0; 23]];
    crypt(cost, &[job(flavor, key, salt)], &mut tags);
    tags[0]
}

/// The hash of another key in the place of this one, as text.
fn again(text: &str, key: &[u8]) -> String {
    let hash: Hash = text.parse().unwrap();
    Hash { tag: tag_of(hash.cost, hash.flavor, key, hash.salt), ..hash }.to_string()
}

/// The oracle: correct for every flavor but X, and A where it differs.
fn oracle(cost: u32, key: &[u8], salt: [u8; 16]) -> [u8; 23] {
    let mut bytes = key.to_vec();
    bytes.push(0);
    bytes.truncate(72);
    bcrypt::bcrypt(cost, salt, &bytes)[..23].try_into().unwrap()
}

/// The vectors of crypt_blowfish 1.3 (`tests` in its wrapper.c), all that are of a password.
const CRYPT_BLOWFISH: [(&[u8], &str); 29] = [
    (b"U*U", "$2a$05$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW"),
    (b"U*U*", "$2a$05$CCCCCCCCCCCCCCCCCCCCC.VGOzA784oUp/Z0DY336zx7pLYAy0lwK"),
    (b"U*U*U", "$2a$05$XXXXXXXXXXXXXXXXXXXXXOAcXxm9kjPGEMsLznoKqmqw7tc8WCx4a"),
    (
        b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789chars after 72 are ignored",
        "$2a$05$abcdefghijklmnopqrstuu5s2v8.iXieOjg/.AySBTTZIIVFJeBui",
    ),
    (b"\xa3", "$2x$05$/OK.fbVrR/bpIqNJ5ianF.CE5elHaaO4EbggVDjb8P19RukzXSM3e"),
    (b"\xff\xff\xa3", "$2x$05$/OK.fbVrR/bpIqNJ5ianF.CE5elHaaO4EbggVDjb8P19RukzXSM3e"),
    (b"\xff\xff\xa3", "$2y$05$/OK.fbVrR/bpIqNJ5ianF.CE5elHaaO4EbggVDjb8P19RukzXSM3e"),
    (b"\xff\xff\xa3", "$2a$05$/OK.fbVrR/bpIqNJ5ianF.nqd1wy.pTMdcvrRWxyiGL2eMz.2a85."),
    (b"\xff\xff\xa3", "$2b$05$/OK.fbVrR/bpIqNJ5ianF.CE5elHaaO4EbggVDjb8P19RukzXSM3e"),
    (b"\xa3", "$2y$05$/OK.fbVrR/bpIqNJ5ianF.Sa7shbm4.OzKpvFnX1pQLmQW96oUlCq"),
    (b"\xa3", "$2a$05$/OK.fbVrR/bpIqNJ5ianF.Sa7shbm4.OzKpvFnX1pQLmQW96oUlCq"),
    (b"\xa3", "$2b$05$/OK.fbVrR/bpIqNJ5ianF.Sa7shbm4.OzKpvFnX1pQLmQW96oUlCq"),
    (b"1\xa3345", "$2x$05$/OK.fbVrR/bpIqNJ5ianF.o./n25XVfn6oAPaUvHe.Csk4zRfsYPi"),
    (b"\xff\xa3345", "$2x$05$/OK.fbVrR/bpIqNJ5ianF.o./n25XVfn6oAPaUvHe.Csk4zRfsYPi"),
    (b"\xff\xa334\xff\xff\xff\xa3345", "$2x$05$/OK.fbVrR/bpIqNJ5ianF.o./n25XVfn6oAPaUvHe.Csk4zRfsYPi"),
    (b"\xff\xa334\xff\xff\xff\xa3345", "$2y$05$/OK.fbVrR/bpIqNJ5ianF.o./n25XVfn6oAPaUvHe.Csk4zRfsYPi"),
    (b"\xff\xa334\xff\xff\xff\xa3345", "$2a$05$/OK.fbVrR/bpIqNJ5ianF.ZC1JEJ8Z4gPfpe1JOr/oyPXTWl9EFd."),
    (b"\xff\xa3345", "$2y$05$/OK.fbVrR/bpIqNJ5ianF.nRht2l/HRhr6zmCp9vYUvvsqynflf9e"),
    (b"\xff\xa3345", "$2a$05$/OK.fbVrR/bpIqNJ5ianF.nRht2l/HRhr6zmCp9vYUvvsqynflf9e"),
    (b"\xa3ab", "$2a$05$/OK.fbVrR/bpIqNJ5ianF.6IflQkJytoRVc1yuaNtHfiuq.FRlSIS"),
    (b"\xa3ab", "$2x$05$/OK.fbVrR/bpIqNJ5ianF.6IflQkJytoRVc1yuaNtHfiuq.FRlSIS"),
    (b"\xa3ab", "$2y$05$/OK.fbVrR/bpIqNJ5ianF.6IflQkJytoRVc1yuaNtHfiuq.FRlSIS"),
    (b"\xd1\x91", "$2x$05$6bNw2HLQYeqHYyBfLMsv/OiwqTymGIGzFsA4hOTWebfehXHNprcAS"),
    (b"\xd0\xc1\xd2\xcf\xcc\xd8", "$2x$05$6bNw2HLQYeqHYyBfLMsv/O9LIGgn8OMzuDoHfof8AQimSGfcSWxnS"),
    (&[0xaa; 72], "$2a$05$/OK.fbVrR/bpIqNJ5ianF.swQOIzjOiJ9GHEPuhEkvqrUyvWhEMx6"),
    (&AND_MORE, "$2a$05$/OK.fbVrR/bpIqNJ5ianF.swQOIzjOiJ9GHEPuhEkvqrUyvWhEMx6"),
    (&repeated([0xaa, 0x55]), "$2a$05$/OK.fbVrR/bpIqNJ5ianF.R9xrDjiycxMbQE2bp.vgqlYpW5wx2yy"),
    (&repeated([0x55, 0xaa, 0xff]), "$2a$05$/OK.fbVrR/bpIqNJ5ianF.9tQZzcJfm3uj2NvJ/n5xkhpqLrMpWCe"),
    (b"", "$2a$05$CCCCCCCCCCCCCCCCCCCCC.7uG0VCzI2bS7j6ymqJi9CdcdxiRTWNy"),
];

/// 72 times 0xaa, and what must not count.
const AND_MORE: [u8; 107] = {
    let mut bytes = [0xaa; 107];
    bytes.last_chunk_mut::<35>().unwrap().copy_from_slice(b"chars after 72 are ignored as usual");
    bytes
};

const fn repeated<const N: usize>(unit: [u8; N]) -> [u8; 72] {
    let mut bytes = [0; 72];
    let mut at = 0;
    while at < 72 {
        bytes[at] = unit[at % N];
        at += 1;
    }
    bytes
}

/// What libxcrypt 4.4 makes of text that is not ASCII, in three flavors, and of 0xff up to and past the 72 bytes.
const LIBXCRYPT: [(&[u8], &str); 18] = [
    (b"\x80", "$2x$04$abcdefghijklmnopqrstuuhR.sOLIGFLn1YE.KAdcFPWxRvkPyMhu"),
    (b"\x80", "$2a$04$abcdefghijklmnopqrstuunsHWqg9A2vfCwJ8Di4HnSWV89vMFgpO"),
    (b"\x80", "$2y$04$abcdefghijklmnopqrstuunsHWqg9A2vfCwJ8Di4HnSWV89vMFgpO"),
    (b"p\xc3\xa4ssw\xc3\xb6rd", "$2x$04$abcdefghijklmnopqrstuusLa1VKyG1SwS4T/Tip3T/Cdo9gT8Ol."),
    (b"p\xc3\xa4ssw\xc3\xb6rd", "$2a$04$abcdefghijklmnopqrstuuyx2n0Zzopyr9QuYTMCfOJJOj526QVoC"),
    (b"p\xc3\xa4ssw\xc3\xb6rd", "$2y$04$abcdefghijklmnopqrstuuyx2n0Zzopyr9QuYTMCfOJJOj526QVoC"),
    (
        b"\xd0\xbf\xd0\xb0\xd1\x80\xd0\xbe\xd0\xbb\xd1\x8c",
        "$2x$04$abcdefghijklmnopqrstuucX5wNaw6MCD2UK2qPWM77BNRKmA/DiS",
    ),
    (
        b"\xd0\xbf\xd0\xb0\xd1\x80\xd0\xbe\xd0\xbb\xd1\x8c",
        "$2a$04$abcdefghijklmnopqrstuuEcURSwic20Q66XyIAO.9pxf2gB7Z9F.",
    ),
    (
        b"\xd0\xbf\xd0\xb0\xd1\x80\xd0\xbe\xd0\xbb\xd1\x8c",
        "$2y$04$abcdefghijklmnopqrstuuEcURSwic20Q66XyIAO.9pxf2gB7Z9F.",
    ),
    (
        b"\xe5\xaf\x86\xe7\xa0\x81\xe5\xaf\x86\xe7\xa0\x81",
        "$2x$04$abcdefghijklmnopqrstuuotu0tT7S3q.3zg8O.z2MuWHEksNSdc2",
    ),
    (
        b"\xe5\xaf\x86\xe7\xa0\x81\xe5\xaf\x86\xe7\xa0\x81",
        "$2a$04$abcdefghijklmnopqrstuutdmRj/DFL0VP7VU.lG66r66sLMJ8ucK",
    ),
    (
        b"\xe5\xaf\x86\xe7\xa0\x81\xe5\xaf\x86\xe7\xa0\x81",
        "$2y$04$abcdefghijklmnopqrstuutdmRj/DFL0VP7VU.lG66r66sLMJ8ucK",
    ),
    (b"a\xffb\xffc\xff", "$2x$04$abcdefghijklmnopqrstuuua7HuNFe9bJCSg54T1Go.mJxI8daiu2"),
    (b"a\xffb\xffc\xff", "$2a$04$abcdefghijklmnopqrstuu0dY6iWSbU8kGr3fLH8LEsjCIUkf7deS"),
    (b"a\xffb\xffc\xff", "$2y$04$abcdefghijklmnopqrstuu0dY6iWSbU8kGr3fLH8LEsjCIUkf7deS"),
    (&[0xff; 71], "$2a$04$abcdefghijklmnopqrstuuQoDew8oeU8FBl/ONyLXrvDriTDGlC3m"),
    (&[0xff; 72], "$2a$04$abcdefghijklmnopqrstuuFqHjb/rDLNN/ZBWitRnJrogHVUGKnN."),
    (&[0xff; 73], "$2a$04$abcdefghijklmnopqrstuuFqHjb/rDLNN/ZBWitRnJrogHVUGKnN."),
];

#[test]
fn the_vectors_of_crypt_blowfish() {
    for (key, text) in CRYPT_BLOWFISH {
        assert_eq!(again(text, key), text, "{key:02x?}");
    }
}

#[test]
fn text_beyond_ascii_as_in_libxcrypt() {
    for (key, text) in LIBXCRYPT {
        assert_eq!(again(text, key), text, "{key:02x?}");
    }
}

#[test]
fn lengths_around_the_limit_and_nul_inside() {
    let salt = [0x3c; 16];
    for length in [0, 1, 3, 4, 5, 54, 55, 56, 70, 71, 72, 73, 74, 144, 255, 256, 257, 1024] {
        let key: Vec<u8> = (0..length).map(|at| (at * 7 + 1) as u8).collect();
        assert_eq!(tag_of(4, Flavor::B, &key, salt), oracle(4, &key, salt), "{length} bytes");
    }
    for key in [&b"\0"[..], b"\0\0", b"a\0b", b"\0ab", b"ab\0", b"ab\0ab"] {
        assert_eq!(tag_of(4, Flavor::B, key, salt), oracle(4, key, salt), "{key:02x?}");
    }
}

#[test]
fn only_72_bytes_count_and_all_of_them() {
    let tag = |key: &[u8]| tag_of(4, Flavor::B, key, [7; 16]);
    let full = [b'x'; 72];
    assert_eq!(tag(&full), tag(&[b'x'; 73]));
    assert_eq!(tag(&full), tag(&[b'x'; 1024]));
    assert_ne!(tag(&full), tag(&full[..71]));
    // What a NUL at the end means: the key is repeated after one, so "ab" is "ab NUL ab".
    assert_eq!(tag(b"ab"), tag(b"ab\0ab"));
    assert_ne!(tag(b"ab"), tag(b"ab\0"));
    assert_ne!(tag(b"ab"), tag(b"abab"));
}

#[test]
fn the_costs_differ_and_are_those_of_the_oracle() {
    for cost in 4..=9 {
        assert_eq!(tag_of(cost, Flavor::Y, b"cost", [9; 16]), oracle(cost, b"cost", [9; 16]), "cost {cost}");
    }
}

#[test]
fn all_flavors_run_together() {
    let mut tags = vec![[0; 23]; MAX_TOGETHER];
    for vectors in CRYPT_BLOWFISH.chunks(MAX_TOGETHER) {
        let hashes: Vec<Hash> = vectors.iter().map(|(_, text)| text.parse().unwrap()).collect();
        let jobs: Vec<Job> =
            vectors.iter().zip(&hashes).map(|((key, _), hash)| job(hash.flavor, key, hash.salt)).collect();
        crypt(5, &jobs, &mut tags[..jobs.len()]);
        assert!(hashes.iter().zip(&tags).all(|(hash, tag)| hash.tag == *tag));
    }
}

#[test]
fn a_job_does_not_print_its_key() {
    assert!(!format!("{:?}", job(Flavor::B, b"sesame", [1; 16])).contains(&format!("{:?}", b"sesame")));
    assert!(!format!("{:?}", job(Flavor::B, b"sesame", [1; 16])).contains("sesame"));
}

#[test]
#[should_panic(expected = "a cost of bcrypt")]
fn a_cost_of_32_is_refused() {
    tag_of(32, Flavor::B, b"", [0; 16]);
}

#[test]
#[should_panic(expected = "a tag for each job")]
fn a_tag_is_needed_for_each_job() {
    crypt(4, &[job(Flavor::B, b"", [0; 16])], &mut []);
}

#[test]
#[should_panic(expected = "0 jobs together")]
fn no_jobs_are_refused() {
    crypt(4, &[], &mut []);
}

/// A key of any bytes, short ones and those around the limit often, bytes from 0x80 often.
fn keys() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![vec(any::<u8>(), 0..16), vec(any::<u8>(), 68..76), vec(any::<u8>(), 0..200), vec(0x80u8.., 0..80)]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(10), failure_persistence: None, ..ProptestConfig::default() })]

    /// Ten times eight numbers of jobs, each with its own keys.
    #[test]
    fn every_number_of_jobs_is_as_the_bcrypt_crate(
        drawn in vec((keys(), any::<[u8; 16]>()), MAX_TOGETHER),
        correct in prop_oneof![Just(Flavor::B), Just(Flavor::Y)],
    ) {
        let expected: Vec<_> = drawn.iter().map(|(key, salt)| oracle(4, key, *salt)).collect();
        for count in 1..=MAX_TOGETHER {
            let jobs: Vec<_> = drawn[..count].iter().map(|(key, salt)| job(correct, key, *salt)).collect();
            let mut tags = vec![[0; 23]; count];
            crypt(4, &jobs, &mut tags);
            prop_assert_eq!(&tags, &expected[..count], "{} together", count);
        }
    }

    /// Without 0xff, which UTF-8 never has, `$2a$` is no different.
    #[test]
    fn a_is_b_for_text(key in vec(0..=0xfeu8, 0..80), text in ".{0,40}", salt: [u8; 16]) {
        prop_assert_eq!(tag_of(4, Flavor::A, &key, salt), oracle(4, &key, salt));
        prop_assert_eq!(tag_of(4, Flavor::A, text.as_bytes(), salt), oracle(4, text.as_bytes(), salt));
    }

    /// For ASCII there is one bcrypt.
    #[test]
    fn all_flavors_agree_on_ascii(key in vec(0..0x80u8, 0..80), salt: [u8; 16]) {
        let b = tag_of(4, Flavor::B, &key, salt);
        for flavor in [Flavor::A, Flavor::X, Flavor::Y] {
            prop_assert_eq!(tag_of(4, flavor, &key, salt), b);
        }
    }
}
