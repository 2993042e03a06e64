//! Every tag of ours against the one that the `argon2` crate computes.

use hasher::{FairKey, Hasher, Key, KeyId, Keys, Policy, Settings, Stored};
use zeroize::Zeroizing;

use crate::{Random, cases};

fn base64(bytes: &[u8]) -> String {
    use base64::{Engine as _, engine::general_purpose::STANDARD_NO_PAD};
    STANDARD_NO_PAD.encode(bytes)
}

/// The PHC string that the oracle computes.
struct Case {
    algorithm: argon2::Algorithm,
    version: argon2::Version,
    cost: (u32, u32, u32),
    peppered: bool,
    salt: Vec<u8>,
    tag: usize,
    password: Vec<u8>,
}

const PEPPER: [u8; 32] = [0x5a; 32];

impl Case {
    fn draw(draw: &mut Random) -> Self {
        use argon2::{Algorithm::*, Version::*};
        let lanes = draw.between(1, 4);
        Case {
            algorithm: draw.one_of(&[Argon2d, Argon2i, Argon2id]),
            version: draw.one_of(&[V0x10, V0x13]),
            cost: (draw.between(8 * lanes, 300), draw.between(1, 4), lanes),
            peppered: draw.one_of(&[false, true]),
            salt: draw.bytes(8, 64),
            tag: draw.between(12, 64) as usize,
            password: draw.bytes(0, 200),
        }
    }

    fn oracle(&self) -> String {
        let (memory, passes, lanes) = self.cost;
        let params = argon2::Params::new(memory, passes, lanes, Some(self.tag)).unwrap();
        let secret = if self.peppered { &PEPPER[..] } else { &[] };
        let oracle = argon2::Argon2::new_with_secret(secret, self.algorithm, self.version, params).unwrap();
        let mut tag = vec![0; self.tag];
        oracle.hash_password_into(&self.password, &self.salt, &mut tag).unwrap();
        let keyid = if self.peppered { format!(",keyid={}", base64(b"k1")) } else { String::new() };
        format!(
            "${}$v={}$m={memory},t={passes},p={lanes}{keyid}${}${}",
            self.algorithm.as_str(),
            u32::from(self.version),
            base64(&self.salt),
            base64(&tag)
        )
    }
}

fn start(policy: Policy, peppers: Vec<Key>) -> (Hasher, FairKey) {
    let keys = Keys::new(peppers).unwrap();
    let hasher = Hasher::start(Settings { policy, keys, ..Settings::default() }).unwrap();
    (hasher, FairKey::new("main", [192, 0, 2, 1].into()))
}

fn pepper() -> Key {
    Key::pepper(KeyId::new(b"k1").unwrap(), Zeroizing::new(PEPPER))
}

#[tokio::test]
async fn verification_agrees_with_the_oracle_over_random_parameters() {
    let (hasher, key) = start(Policy::default(), vec![pepper()]);
    let mut draw = Random(9106);
    for n in 0..cases(200) {
        let case = Case::draw(&mut draw);
        let text = case.oracle();
        let stored: Stored = text.parse().unwrap_or_else(|error| panic!("case {n}: {text}: {error}"));
        assert_eq!(stored.to_string(), text);
        let verified = hasher.verify(&key, &stored, &case.password).await.unwrap();
        assert!(verified.ok && verified.rehash, "case {n}: {text}");
        let mut wrong = case.password.clone();
        match wrong.last_mut() {
            Some(last) => *last ^= 1,
            None => wrong.push(0),
        }
        let verified = hasher.verify(&key, &stored, &wrong).await.unwrap();
        assert!(!verified.ok && !verified.rehash, "case {n}: {text}");
    }
}

#[tokio::test]
async fn new_hashes_are_those_of_the_oracle() {
    let mut draw = Random(1984);
    for peppered in [false, true] {
        let (hasher, key) = start(Policy::weak(200, 3, 2).unwrap(), if peppered { vec![pepper()] } else { vec![] });
        for _ in 0..20 {
            let salt: [u8; 16] = draw.bytes(16, 16).try_into().unwrap();
            let case = Case {
                algorithm: argon2::Algorithm::Argon2id,
                version: argon2::Version::V0x13,
                cost: (200, 3, 2),
                peppered,
                salt: salt.to_vec(),
                tag: 32,
                password: draw.bytes(1, 100),
            };
            let text = hasher.hash(&key, &case.password, salt).await.unwrap();
            assert_eq!(text, case.oracle());
            let verified = hasher.verify(&key, &text.parse().unwrap(), &case.password).await.unwrap();
            assert!(verified.ok && !verified.rehash);
        }
    }
}

#[tokio::test]
async fn the_default_policy_is_that_of_owasp() {
    let (hasher, key) = start(Policy::default(), vec![]);
    assert!(hasher.policy().meets_owasp());
    let text = hasher.hash(&key, b"correct horse battery staple", [3; 16]).await.unwrap();
    assert!(text.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"), "{text}");
}

#[tokio::test]
async fn a_rehash_takes_todays_form_and_never_a_lower_cost() {
    let (hasher, key) = start(Policy::weak(64, 2, 1).unwrap(), vec![pepper()]);
    let table = [((32, 1, 1), "m=64,t=2,p=1"), ((200, 3, 2), "m=200,t=3,p=2"), ((40, 4, 1), "m=40,t=4,p=1")];
    for (cost, expected) in table {
        let case = Case {
            algorithm: argon2::Algorithm::Argon2i,
            version: argon2::Version::V0x10,
            cost,
            peppered: false,
            salt: vec![1; 8],
            tag: 16,
            password: b"password".to_vec(),
        };
        let stored: Stored = case.oracle().parse().unwrap();
        assert!(hasher.verify(&key, &stored, b"password").await.unwrap().rehash);
        let text = hasher.rehash(&key, &stored, b"password", [4; 16]).await.unwrap();
        assert!(text.starts_with(&format!("$argon2id$v=19${expected},keyid=azE$")), "{text}");
        let verified = hasher.verify(&key, &text.parse().unwrap(), b"password").await.unwrap();
        assert!(verified.ok && !verified.rehash, "{text}");
    }
}

/// Red without `hears_all_of`: a typo behind the 72nd byte would be part of the password from then on.
#[tokio::test]
async fn what_a_format_does_not_hear_is_not_hashed_again() {
    let (hasher, key) = start(Policy::weak(64, 2, 1).unwrap(), vec![]);
    let stored: Stored = "$2b$04$abcdefghijklmnopqrstuubzadhGtS2zEF.gu0yd0opP6cVzb.e0i".parse().unwrap();
    for (length, rehash) in [(72, true), (73, false)] {
        let verified = hasher.verify(&key, &stored, &vec![b'x'; length]).await.unwrap();
        assert_eq!((verified.ok, verified.rehash), (true, rehash), "{length}");
    }
    // The password is 0xa3 alone, which hides the bytes before it in its word of four (crypt_blowfish's wrapper.c).
    let stored: Stored = "$2x$05$/OK.fbVrR/bpIqNJ5ianF.CE5elHaaO4EbggVDjb8P19RukzXSM3e".parse().unwrap();
    for slip in [&b"\xff\xff\xa3"[..], b"\xa3"] {
        let verified = hasher.verify(&key, &stored, slip).await.unwrap();
        assert_eq!((verified.ok, verified.rehash), (true, false), "{slip:?}");
    }
    // A NUL at the end, which an HMAC adds by itself, and one between two copies, as bcrypt repeats a password. Made by
    // bcrypt 5.0.0 and hashlib of Python 3.11.
    let empty = "$2b$04$abcdefghijklmnopqrstuubyCG3zY1GIXMyxfivm.ClDiInHzxjiq";
    let with_nul = "$pbkdf2-sha256$i=1000,l=32$c2l4dGVlbiBieXRlIHNsdA$gWVex7omn8yB+3WKndFd0edaEN4sxVBu0QrnI4WExBM";
    let bcrypt = "$2b$04$abcdefghijklmnopqrstuuVmjM6jkjIR8S39trau1BimPhVX/DTAK";
    for (stored, typed, rehash) in [
        (empty, &b""[..], true),
        (empty, b"\0", false),
        (bcrypt, b"nul\0inside", false),
        (bcrypt, b"nul\0inside\0nul\0inside", false),
        (with_nul, b"nul\0inside", true),
        (with_nul, b"nul\0inside\0", false),
    ] {
        let verified = hasher.verify(&key, &stored.parse().unwrap(), typed).await.unwrap();
        assert_eq!((verified.ok, verified.rehash), (true, rehash), "{stored} {typed:?}");
    }
    let stored: Stored = "$wp$2y$10$Q1xinFjrZeLWJBvxviIL6u834Fu.evIEFHAUVisQ5O.w9Dm0sMdES".parse().unwrap();
    for (typed, rehash) in [("admin", true), ("admin ", false)] {
        let verified = hasher.verify(&key, &stored, typed.as_bytes()).await.unwrap();
        assert_eq!((verified.ok, verified.rehash), (true, rehash), "{typed:?}");
    }
}

/// Red without `spellings`: an import locks out users with a quote in the password. Made by hashlib and bcrypt.
#[tokio::test]
async fn what_programs_in_php_make_of_a_password_is_known() {
    let (hasher, key) = start(Policy::weak(64, 2, 1).unwrap(), vec![]);
    for (stored, typed, rehash) in [
        ("$P$7saltsaltvXFU6LLmynAULjkbJWh6Y0", r#"it's "so""#, true),
        ("$P$7saltsaltvXFU6LLmynAULjkbJWh6Y0", r#" it's "so" "#, false),
        ("$H$7saltsaltkQ9X8jRDfiK5IOz7OVZTT0", "a&b<c>", true),
        ("$wp$2y$04$abcdefghijklmnopqrstuuEGMIWjYVBOZeWWtvtgpSHx6RDBRa73a", "it's", true),
    ] {
        let stored: Stored = stored.parse().unwrap();
        let verified = hasher.verify(&key, &stored, typed.as_bytes()).await.unwrap();
        assert_eq!((verified.ok, verified.rehash), (true, rehash), "{typed}");
        let wrong = hasher.verify(&key, &stored, b"it's not & never").await.unwrap();
        assert!(!wrong.ok);
    }
    // Drupal only trims, where a password is set and where people sign in.
    for (stored, typed, verdict) in [
        ("$S$5saltsaltFsgPVBhKz.LEIfQx9UXQyVQa5YSkUOT7kZ5WCGzQVKv", "it's", (true, true)),
        ("$S$5saltsaltFsgPVBhKz.LEIfQx9UXQyVQa5YSkUOT7kZ5WCGzQVKv", "\tit's ", (true, false)),
        ("U$S$5saltsaltYyPLKT6qp991TVwX.0ZU1.YGtkHEMzO4Mc4Yz1PRhxB", " it's\n", (true, false)),
        ("$S$5saltsaltFsgPVBhKz.LEIfQx9UXQyVQa5YSkUOT7kZ5WCGzQVKv", "it 's", (false, false)),
        // Set by a program, with a blank behind it.
        ("$S$5saltsaltHPpQE5.6ScKO/p3kxutuk5ob.nXvS0fIA2U94.0NMzI", "it's ", (true, false)),
        ("$S$5saltsaltHPpQE5.6ScKO/p3kxutuk5ob.nXvS0fIA2U94.0NMzI", "it's", (false, false)),
    ] {
        let verified = hasher.verify(&key, &stored.parse().unwrap(), typed.as_bytes()).await.unwrap();
        assert_eq!((verified.ok, verified.rehash), verdict, "{stored} {typed:?}");
    }
    // The stored spelling, typed as it is: it may be the password or not, and stays as it is.
    for (stored, typed) in [
        ("$P$7saltsaltvXFU6LLmynAULjkbJWh6Y0", r#"it\'s \"so\""#),
        ("$wp$2y$04$abcdefghijklmnopqrstuuEGMIWjYVBOZeWWtvtgpSHx6RDBRa73a", r"it\'s"),
    ] {
        let stored: Stored = stored.parse().unwrap();
        let verified = hasher.verify(&key, &stored, typed.as_bytes()).await.unwrap();
        assert!(verified.ok && !verified.rehash, "{typed}");
    }
}

/// Red without `tries` in `Hasher::work`: answers are evened out to the time of the most expensive hash, and a name
/// that has one of these could be told by the time that a quote in the password takes.
#[test]
fn all_spellings_are_reckoned_with() {
    let (hasher, _) = start(Policy::weak(64, 2, 1).unwrap(), vec![]);
    for (stored, work) in [
        ("$P$7saltsaltvXFU6LLmynAULjkbJWh6Y0", "chain-md5 n=2560 blocks=17"),
        ("$S$5saltsaltFsgPVBhKz.LEIfQx9UXQyVQa5YSkUOT7kZ5WCGzQVKv", "chain-sha512 n=256 blocks=5"),
        ("$wp$2y$04$abcdefghijklmnopqrstuuEGMIWjYVBOZeWWtvtgpSHx6RDBRa73a", "bcrypt cost=5"),
        ("$2b$04$abcdefghijklmnopqrstuubzadhGtS2zEF.gu0yd0opP6cVzb.e0i", "bcrypt cost=4"),
    ] {
        assert_eq!(hasher.work(&stored.parse().unwrap()).unwrap().to_string(), work);
    }
}

#[tokio::test]
async fn a_retired_pepper_still_verifies_and_asks_for_a_rehash() {
    let new = Key::pepper(KeyId::new(b"k2").unwrap(), Zeroizing::new([7; 32]));
    let (before, key) = start(Policy::weak(64, 1, 1).unwrap(), vec![pepper()]);
    let (after, _) = start(Policy::weak(64, 1, 1).unwrap(), vec![new, pepper()]);
    let stored: Stored = before.hash(&key, b"password", [1; 16]).await.unwrap().parse().unwrap();
    let verified = after.verify(&key, &stored, b"password").await.unwrap();
    assert!(verified.ok && verified.rehash);
    let text = after.hash(&key, b"password", [1; 16]).await.unwrap();
    assert_ne!(text, stored.to_string());
    assert!(before.verify(&key, &text.parse().unwrap(), b"password").await.is_err(), "k2 is unknown there");
}
