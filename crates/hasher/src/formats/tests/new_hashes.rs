//! What we write ourselves: plain, peppered, bound.

use super::{ALICE, SNOWMAN, binding, id, keys, parse, pepper, tag, verify_as};
use crate::{
    Cost, Key, Keys, Refusal, Role, Stored, Subject,
    formats::{Check, Draft, Prepared},
};
use zeroize::Zeroizing;

fn cost() -> Cost {
    Cost::new(64, 2, 1).unwrap()
}

fn hash(password: &[u8], subject: Subject<'_>, keys: &Keys) -> Stored {
    let Draft { kind, input, seal } = Draft::new(cost(), password, *b"sixteen byte slt", (subject, keys));
    let stored = seal.stored(&tag(kind, &input));
    assert!(parse(&stored.to_string()) == stored, "{stored}");
    stored
}

#[test]
fn each_form_has_its_text() {
    let plain = Keys::default();
    let peppered = Keys::new([pepper()]).unwrap();
    // argon2-cffi 25.1.0 made the tag.
    assert_eq!(
        hash(SNOWMAN, ALICE, &plain).to_string(),
        "$argon2id$v=19$m=64,t=2,p=1$c2l4dGVlbiBieXRlIHNsdA$HoBxDvjpuzDyVhG02bj2Iujn/zaH0axi1UoVfcjjxwg"
    );
    assert!(hash(SNOWMAN, ALICE, &peppered).to_string().starts_with("$argon2id$v=19$m=64,t=2,p=1,keyid=azE$c2l4"));
    // argon2-cffi 25.1.0 (C core), blake2b and hmac of Python 3.11
    assert_eq!(
        hash(SNOWMAN, ALICE, &keys()).to_string(),
        "$pv1$m=64,t=2,p=1,keyid=azE,bindid=YjE$c2l4dGVlbiBieXRlIHNsdA$xCx6TzAjWZx7FnQVoBzb/MoX5N9ILT3QY0qhOXwGUj4"
    );
    for keys in [plain, peppered, keys()] {
        for password in [&b""[..], b"nul\0inside", &[b'x'; 72], &[b'x'; 73], &[b'x'; 1024]] {
            let stored = hash(password, ALICE, &keys);
            assert_eq!(verify_as(&stored, password, ALICE, &keys), Ok(true));
            assert_eq!(verify_as(&stored, &[password, b"\0"].concat(), ALICE, &keys), Ok(false));
        }
    }
}

#[test]
fn without_its_pepper_a_hash_is_not_wrong_but_unsupported() {
    let stored = hash(SNOWMAN, ALICE, &Keys::new([pepper()]).unwrap());
    assert_eq!(stored.keys().collect::<Vec<_>>(), [(Role::Pepper, id(b"k1"))]);
    assert!(matches!(verify_as(&stored, SNOWMAN, ALICE, &Keys::default()), Err(Refusal::Unsupported(_))));
    let another = Key::pepper(id(b"k1"), Zeroizing::new([9; 32]));
    assert_eq!(verify_as(&stored, SNOWMAN, ALICE, &Keys::new([another]).unwrap()), Ok(false));
}

#[test]
fn a_rotated_pepper_still_verifies() {
    let old = hash(SNOWMAN, ALICE, &keys());
    let new = |role: fn(_, _) -> Key, name, byte| role(id(name), Zeroizing::new([byte; 32]));
    let rotated = Keys::new([new(Key::pepper, b"k2", 9), pepper(), new(Key::binding, b"b2", 8), binding()]).unwrap();
    assert_eq!(verify_as(&old, SNOWMAN, ALICE, &rotated), Ok(true));
    let fresh = hash(SNOWMAN, ALICE, &rotated);
    let named = [(Role::Pepper, id(b"k2")), (Role::Binding, id(b"b2"))];
    assert_eq!(fresh.keys().collect::<Vec<_>>(), named);
}

#[test]
fn a_bound_verifier_is_worth_nothing_to_others() {
    let stored = hash(SNOWMAN, ALICE, &keys());
    let as_user = |realm, user| verify_as(&stored, SNOWMAN, Subject { realm, user }, &keys()).unwrap();
    assert!(as_user("main", "alïce"));
    for (realm, user) in [("main", "bob"), ("other", "alïce"), ("mainalï", "ce"), ("", "mainalïce"), ("alïce", "main")]
    {
        assert!(!as_user(realm, user), "{realm} {user}");
    }
    let another = Key::binding(id(b"b1"), Zeroizing::new([9; 32]));
    let keys = Keys::new([pepper(), another]).unwrap();
    assert_eq!(verify_as(&stored, SNOWMAN, ALICE, &keys), Ok(false));
}

/// Whoever computes tags may answer anything: with a wrong password no tag is right, not even the right one.
#[test]
fn no_tag_makes_a_wrong_password_right() {
    let stored = hash(SNOWMAN, ALICE, &keys());
    let prepare = |password: &[u8]| stored.prepare(password, ALICE, &keys()).unwrap();
    let Prepared { kind, input, check } = prepare(SNOWMAN);
    let right = tag(kind, &input);
    assert!(check.accepts(&right));
    for tag in [&right[1..], &right[..31], &[0; 32], &[], &[&right[..], &[0]].concat()] {
        assert!(!check.accepts(tag));
    }
    let wrong = prepare(b"wrong").check;
    for tag in [&right[..], &[0; 32], &[]] {
        assert!(!wrong.accepts(tag));
    }
}

#[test]
fn a_tag_of_another_length_is_never_right() {
    let check = Check::Tag(vec![1, 2, 3]);
    assert!(check.accepts(&[1, 2, 3]));
    assert!(
        !check.accepts(&[]) && !check.accepts(&[1, 2]) && !check.accepts(&[1, 2, 3, 4]) && !check.accepts(&[1, 2, 4])
    );
    let drupal = Check::Drupal { bytes: vec![1, 2], last: 3 };
    assert!(drupal.accepts(&[1, 2, 0xff, 9]) && drupal.accepts(&[1, 2, 3]));
    assert!(
        !drupal.accepts(&[1, 2]) && !drupal.accepts(&[1, 2, 2]) && !drupal.accepts(&[1, 3, 3]) && !drupal.accepts(&[])
    );
    let firebase = Check::Firebase { signer: Zeroizing::new(vec![0; 16]), hash: vec![0; 16] };
    assert!(!Check::Never.accepts(&[]) && !Check::Never.accepts(&[0; 16]));
    assert!(!firebase.accepts(&[]) && !firebase.accepts(&[0; 31]) && !firebase.accepts(&[0; 32]));
}

#[test]
fn nothing_prints_a_secret() {
    let stored = hash(SNOWMAN, ALICE, &keys());
    assert_eq!(format!("{stored:?}"), "Stored(argon2id, bound …)");
    assert_eq!(format!("{:?}", hash(SNOWMAN, ALICE, &Keys::default())), "Stored(argon2id …)");
}
