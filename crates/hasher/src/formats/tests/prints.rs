//! What is printed, and what is wiped.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use zeroize::{ZeroizeOnDrop, Zeroizing};

use super::{ALICE, id, keys, parse, vectors::VECTORS};
use crate::{
    argon2::{Cost, H0},
    bcrypt,
    formats::{
        Digest,
        import::{self, Fast, Firebase, Imported, Salted},
        text,
    },
    job::Input,
    remote::frame::{Answer, Ask},
};

/// Bytes as a derived `Debug` would print some of them.
fn listed(bytes: &[u8]) -> String {
    format!("{bytes:?}").trim_matches(['[', ']']).to_owned()
}

/// A log is no place for salts and tags: a password can be guessed from them.
#[test]
fn nothing_prints_a_salt_or_a_tag() {
    for (_, text) in VECTORS {
        let stored = parse(text);
        let printed = format!("{stored:?} {:?}", Imported::from(stored.clone()));
        let kept = stored.to_string();
        let tag = &kept[kept.len() - 12..];
        assert!(printed.len() < 100 && !printed.contains(tag), "{printed}");
    }
    let secret = b"seventeen bytes of";
    let shown = |printed: String| {
        let parts = [listed(secret), listed(&secret[..16]), STANDARD.encode(secret), "seventeen".to_owned()];
        assert!(parts.iter().all(|part| !printed.contains(part.as_str())), "{printed}");
        assert!(!printed.contains("115, 101, 118"), "{printed}");
    };
    let salt = *secret.first_chunk::<16>().unwrap();
    let mut tag = [9; bcrypt::TAG_BYTES];
    tag[..18].copy_from_slice(secret);
    let (flavor, cost) = (bcrypt::Flavor::B, 10);
    shown(format!("{:?}", bcrypt::Hash { flavor, cost, salt, tag }));
    shown(format!("{:?}", bcrypt::Job { flavor, key: secret.to_vec().into(), salt }));
    for salted in [Salted::Before(secret.to_vec()), Salted::After(secret.to_vec())] {
        shown(format!("{salted:?}"));
        let fast = Fast::new(Digest::Md5, salted, &salt).unwrap();
        shown(format!("{fast:?} {:?}", Imported::Fast(fast.clone())));
    }
    shown(format!("{:?}", H0::from_bytes(&[b's'; 64])));
    shown(format!("{:?}", import::Salted::Not));
    let project = Firebase::new(id(b"fb"), &STANDARD.encode(secret), 8, 14).unwrap();
    shown(format!("{project:?}"));
    let ask = Ask { id: 1, cost: Cost::new(64, 1, 1).unwrap(), tag_bytes: 18, h0: H0::from_bytes(&[b's'; 64]) };
    shown(format!("{ask:?} {:?}", Answer { id: 1, tag: Some(Zeroizing::new(secret.to_vec())) }));
}

/// What follows from a password is wiped by its type, and was never in a piece of memory that was too small for it and
/// left behind.
#[test]
fn what_follows_from_a_password_is_wiped() {
    fn wiped<T: ZeroizeOnDrop>(_: &T) {}
    let whole = |bytes: &Zeroizing<Vec<u8>>| assert_eq!(bytes.capacity(), bytes.len());
    for (password, text) in VECTORS {
        match parse(text).prepare(password, ALICE, &keys()).unwrap().input {
            Input::Argon2(h0) => wiped(&h0),
            Input::Bcrypt(job) => whole(&job.key),
            Input::Serial { password, .. } => whole(&password),
        }
    }
    whole(&Digest::Sha384.of(&[b"password"]));
    whole(&text::hex_text(&[7; 33]));
}
