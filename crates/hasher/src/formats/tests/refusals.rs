//! What is refused, and what the refusal says.

use super::{ALICE, keys, parse};
use crate::{
    ParseError, Refusal, Stored,
    argon2::{Cost, Params},
    formats::{Argon2Hash, Recipe, limits, serial::Serial},
    job::Kind,
    policy::Policy,
};

const ARGON2: &str =
    "$argon2id$v=19$m=19456,t=2,p=1$c29tZXNhbHRzb21lc2FsdA$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4";
const BOUND: &str =
    "$pv1$m=64,t=2,p=1,keyid=azE,bindid=YjE$c2l4dGVlbiBieXRlIHNsdA$xCx6TzAjWZx7FnQVoBzb/MoX5N9ILT3QY0qhOXwGUj4";
const BCRYPT: &str = "$2b$10$abcdefghijklmnopqrstuuzxGOZEy/WPRLMjjU2/y65oP0ZJGIbym";
const PBKDF2: &str = "$pbkdf2-sha256$i=600000,l=16$AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAA";
const PASSLIB: &str = "$pbkdf2-sha256$600000$AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAA";
const SCRYPT: &str = "$scrypt$ln=17,r=8,p=1$AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAA";
const PHPASS: &str = "$P$984478476IagS59wHZvyQMArzfx58u.";
const DRUPAL: &str = "$S$C33783772bRXEx1aCsvY.dqgaaSu76XmVlKrW9Qu8IQlvxHlmzLf";
const FIREBASE: &str = "$firebase$ln=14,r=8,p=1,importid=ZmI$42xEC+ixf3L2lwc$AAAAAAAAAAAAAAAAAAAAAA";
const WERKZEUG: &str = "scrypt:32768:8:1$salt$00112233445566778899aabbccddeeff";
const DJANGO: &str = "pbkdf2_sha256$600000$salt$AAAAAAAAAAAAAAAAAAAAAA==";
const LDAP: &str = "{PBKDF2-SHA512}600000$AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAA";
const SHA_CRYPT: &str = "$5$rounds=1000$saltstring$3dlQDYsIvobiTdBmdRh69499cPg0FjGUz9fG5xex1vC";
const CRYPT7: &str = "$7$C6..../....SodiumChloride$kBGj9fHznVYFQMEn/qDCfrDevf9YDtcDdKvEqHJLV8D";

/// `good` with `from` once replaced by `to`.
fn changed(good: &str, from: &str, to: &str) -> (String, Result<Stored, ParseError>) {
    parse(good);
    let text = good.replacen(from, to, 1);
    assert_ne!(text, good);
    let parsed = text.parse();
    (text, parsed)
}

#[test]
fn what_lies_outside_the_limits_is_refused_by_name() {
    use crate::formats::limits::*;
    let table: [(&str, &str, &str, Limit); 38] = [
        (ARGON2, "m=19456", "m=1048577", ARGON2_MEMORY),
        (ARGON2, "m=19456", "m=4294967295", ARGON2_MEMORY),
        (ARGON2, "m=19456", "m=7", ARGON2_MEMORY),
        (ARGON2, "t=2", "t=65", ARGON2_PASSES),
        (ARGON2, "t=2", "t=0", ARGON2_PASSES),
        (ARGON2, "p=1", "p=0", ARGON2_LANES),
        (ARGON2, "p=1", "p=65", ARGON2_LANES),
        (ARGON2, "m=19456,t=2,p=1", "m=15,t=2,p=2", Limit { least: 16, ..ARGON2_MEMORY }),
        (ARGON2, "c29tZXNhbHRzb21lc2FsdA", "c29tZQ", ARGON2_SALT),
        (ARGON2, "c29tZXNhbHRzb21lc2FsdA", "", ARGON2_SALT),
        (ARGON2, "nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4", "nf65EOgLrQM", ARGON2_TAG),
        (ARGON2, "p=1", "p=1,data=", ARGON2_DATA),
        (BOUND, "m=64", "m=1048577", ARGON2_MEMORY),
        (BOUND, "c2l4dGVlbiBieXRlIHNsdA", "c29tZQ", ARGON2_SALT),
        (BCRYPT, "$10$", "$16$", BCRYPT_COST),
        (BCRYPT, "$10$", "$31$", BCRYPT_COST),
        (BCRYPT, "$10$", "$03$", BCRYPT_COST),
        (PBKDF2, "i=600000", "i=10000001", PBKDF2_ITERATIONS),
        (PBKDF2, "i=600000", "i=999", PBKDF2_ITERATIONS),
        (PBKDF2, "i=600000", "i=0", PBKDF2_ITERATIONS),
        (PASSLIB, "600000", "10000001", PBKDF2_ITERATIONS),
        (PBKDF2, "$AAAAAAAAAAAAAAAAAAAAAA$", "$AAAA$", SALT),
        (PASSLIB, "$AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAA", "$AAAAAA$AAAAAAAAAAAAAAAAAAAA", TAG),
        (DJANGO, "600000", "10000001", PBKDF2_ITERATIONS),
        (LDAP, "600000", "10000001", PBKDF2_ITERATIONS),
        (SCRYPT, "ln=17", "ln=9", SCRYPT_LOG_N),
        (SCRYPT, "ln=17", "ln=300", SCRYPT_LOG_N),
        (SCRYPT, "ln=17", "ln=19", SCRYPT_WORK),
        (SCRYPT, "r=8", "r=0", SCRYPT_R),
        (SCRYPT, "p=1", "p=0", SCRYPT_P),
        (SCRYPT, "p=1", "p=3", SCRYPT_WORK),
        (WERKZEUG, "32768:8:1", "1048576:8:1", SCRYPT_WORK),
        (FIREBASE, "ln=14", "ln=19", SCRYPT_WORK),
        (SHA_CRYPT, "rounds=1000", "rounds=999", SHA_CRYPT_ROUNDS),
        (SHA_CRYPT, "rounds=1000", "rounds=1200001", SHA_CRYPT_ROUNDS),
        (SHA_CRYPT, "rounds=1000", "rounds=999999999", SHA_CRYPT_ROUNDS),
        (SHA_CRYPT, "saltstring", "saltstringsaltstr", SHA_CRYPT_SALT),
        (CRYPT7, "$C6..../....", "$H6..../....", SCRYPT_WORK),
    ];
    for (good, from, to, limit) in table {
        let (text, parsed) = changed(good, from, to);
        assert_eq!(parsed, Err(ParseError::Limit(limit)), "{text}");
    }
    for (good, digit) in [(PHPASS, "$P$4"), (PHPASS, "$P$G"), (PHPASS, "$P$z"), (DRUPAL, "$S$G")] {
        let (text, parsed) = changed(good, &good[..4], digit);
        assert_eq!(parsed, Err(ParseError::Limit(CHAIN_LOG_ROUNDS)), "{text}");
    }
    assert_eq!("$".repeat(1025).parse::<Stored>(), Err(ParseError::Limit(TEXT)));
}

#[test]
fn a_limit_says_what_would_be_admitted() {
    let error = changed(BCRYPT, "$10$", "$31$").1.unwrap_err();
    assert_eq!(error.to_string(), "outside the limits: bcrypt cost must be 4 to 15");
}

/// The greatest of everything is admitted: a limit that refuses what it names would lock people out.
#[test]
fn what_lies_at_the_limits_is_admitted() {
    for (good, from, to) in [
        (ARGON2, "m=19456,t=2,p=1", "m=1048576,t=64,p=64"),
        (ARGON2, "m=19456,t=2,p=1", "m=8,t=1,p=1"),
        (BCRYPT, "$10$", "$15$"),
        (BCRYPT, "$10$", "$04$"),
        (PBKDF2, "i=600000", "i=10000000"),
        (PBKDF2, "i=600000", "i=1000"),
        (SCRYPT, "ln=17", "ln=18"),
        (SCRYPT, "ln=17,r=8,p=1", "ln=17,r=8,p=2"),
        (SCRYPT, "ln=17,r=8,p=1", "ln=10,r=1,p=1"),
        (PHPASS, "$P$9", "$P$5"),
        (PHPASS, "$P$9", "$P$F"),
        (DRUPAL, "$S$C", "$S$F"),
        (SHA_CRYPT, "rounds=1000", "rounds=1000000"),
        (SHA_CRYPT, "saltstring", "sixteencharacter"),
        (SHA_CRYPT, "saltstring", ""),
    ] {
        let (text, parsed) = changed(good, from, to);
        assert_eq!(parsed.map(|stored| stored.to_string()), Ok(text));
    }
}

/// Should a kind outside the limits ever come so far, it is not computed.
#[test]
fn the_limits_hold_again_before_the_slow_part() {
    let argon2 = |tag_bytes| {
        let Kind::Argon2(params) = parse(ARGON2).prepare(b"", ALICE, &keys()).unwrap().kind else { panic!() };
        Kind::Argon2(Params { tag_bytes, ..params })
    };
    let digest = crate::Digest::Md5;
    for kind in [
        argon2(11),
        argon2(65),
        Kind::Bcrypt { cost: 16 },
        Kind::Bcrypt { cost: 3 },
        Kind::Serial(Serial::pbkdf2(digest, 10_000_001, 16)),
        Kind::Serial(Serial::scrypt(19, 8, 1, 32)),
        Kind::Serial(Serial::scrypt(255, u32::MAX, u32::MAX, 32)),
        Kind::Serial(Serial::chain(digest, 1 << 18, 8)),
        Kind::Serial(Serial::sha_crypt(digest, 1_200_001, 8)),
    ] {
        assert!(limits::kind(&kind).is_err(), "{kind:?}");
    }
    assert!(limits::kind(&argon2(64)).is_ok());
    // The kernels take what RFC 9106 has, and a policy does not.
    assert!(
        Cost::new(8 * Cost::MAX_LANES, u32::MAX, Cost::MAX_LANES).is_ok() && Cost::new(Cost::MAX_MEMORY, 1, 1).is_ok()
    );
    for (m, t, p) in [(Policy::MAX_MEMORY + 1, 1, 1), (512, 65, 1), (520, 1, 65), (512, 0, 1), (512, 1, 0), (15, 1, 2)]
    {
        assert!(Policy::weak(m, t, p).is_err(), "{m} {t} {p}");
    }
}

#[test]
fn a_refusal_to_verify_names_the_limit() {
    let Kind::Argon2(params) = parse(ARGON2).prepare(b"", ALICE, &keys()).unwrap().kind else { panic!() };
    let outsized = Argon2Hash::blank(Params { tag_bytes: 65, ..params }, None, vec![0; 16]);
    let refused = Stored(Recipe::Argon2(outsized)).prepare(b"", ALICE, &keys()).err();
    assert_eq!(refused, Some(Refusal::Limit(limits::ARGON2_TAG)));
}

/// At import, instead of answering its owner "wrong" for ever.
#[test]
fn a_firebase_hash_is_as_long_as_its_signer_key() {
    let refused = parse(FIREBASE).prepare(b"", ALICE, &keys()).err();
    assert!(matches!(refused, Some(Refusal::Unsupported(why)) if why.contains("as long as")), "{refused:?}");
    let longer = FIREBASE.replacen("$AAAAAAAAAAAAAAAAAAAAAA", &format!("${}", "A".repeat(86)), 1);
    assert!(parse(&longer).prepare(b"", ALICE, &keys()).is_ok());
}

#[test]
fn what_deviates_is_malformed() {
    let table = [
        (ARGON2, "$v=19", "$v=19$"),
        (ARGON2, "m=19456,t=2", "t=2,t=2"),
        (ARGON2, "m=19456", "m=019456"),
        (ARGON2, "m=19456", "m=+19456"),
        (ARGON2, "m=19456", "m=4294967296"),
        (ARGON2, "m=19456", "M=19456"),
        (ARGON2, ",p=1", ""),
        (ARGON2, "p=1", "p=1,"),
        (ARGON2, "p=1", "p=1,p=1"),
        (ARGON2, "p=1", "p=1,keyid="),
        (ARGON2, "p=1", "p=1,keyid=azE,keyid=azE"),
        (ARGON2, "p=1", "p=1,keyid=AAAAAAAAAAAA"),
        (ARGON2, "p=1", "p=1,data=AAAA,keyid=azE"),
        (ARGON2, "p=1", "p=1,data=AAAA,data=AAAA"),
        (ARGON2, "c29tZXNhbHRzb21lc2FsdA", "c29tZXNhbHRzb21lc2FsdA=="),
        (ARGON2, "c29tZXNhbHRzb21lc2FsdA", "c29tZXNhbHRzb21lc2FsdB"),
        (ARGON2, "c29tZXNhbHRzb21lc2FsdA", "c29tZXNhbHRzb21lc2Fsd-"),
        (ARGON2, "i/4", "i/4$"),
        (ARGON2, "i/4", "i/4\n"),
        (BOUND, ",bindid=YjE", ""),
        (BOUND, ",keyid=azE", ""),
        (BOUND, ",keyid=azE,bindid=YjE", ",bindid=YjE,keyid=azE"),
        (BOUND, "bindid=YjE", "bindid=YjE,x=1"),
        (BOUND, "xCx6TzAjWZx7FnQVoBzb", "xCx6TzAjWZx7FnQV"),
        (BCRYPT, "$10$", "$9$"),
        (BCRYPT, "$10$", "$+9$"),
        (BCRYPT, "$10$", "$010$"),
        (BCRYPT, "GIbym", "GIby"),
        (BCRYPT, "GIbym", "GIbymm"),
        (BCRYPT, "GIbym", "GIb+m"),
        (BCRYPT, "abcdefghijklmnopqrstu", "abcdefghijklmnopqrsé"),
        (PBKDF2, "l=16", "l=17"),
        (PBKDF2, "i=600000,l=16", "l=16,i=600000"),
        (PBKDF2, "i=600000", "i=0600000"),
        (PASSLIB, "$AAAA", "$AAA+"),
        (SCRYPT, "ln=17,r=8", "r=8,ln=17"),
        (SCRYPT, "p=1", "p=1,"),
        (SCRYPT, "p=1", "p=1,p=8"),
        (SCRYPT, "p=1", "p=1,keyid=azE"),
        (WERKZEUG, "32768", "32767"),
        (WERKZEUG, "32768", "0"),
        (WERKZEUG, "$0011", "$001g"),
        (DJANGO, "==", ""),
        (PHPASS, "58u.", "58u"),
        (PHPASS, "58u.", "58u.."),
        (PHPASS, "58u.", "58uz"),
        (PHPASS, "84478476", "8447847-"),
        (DRUPAL, "zLf", "zL"),
        (FIREBASE, ",importid=ZmI", ""),
        (FIREBASE, "importid=ZmI", "importid=ZmI,x=1"),
        (CRYPT7, "LV8D", "LV8"),
        (CRYPT7, "LV8D", "LV8z"),
    ];
    for (good, from, to) in table {
        let (text, parsed) = changed(good, from, to);
        assert!(matches!(parsed, Err(ParseError::Malformed(_) | ParseError::Limit(_))), "{text}: {parsed:?}");
    }
}

#[test]
fn what_is_not_supported_is_said_so() {
    for (good, from, to) in [
        (ARGON2, "argon2id", "argon2"),
        (ARGON2, "argon2id", "Argon2id"),
        (ARGON2, "v=19", "v=18"),
        (ARGON2, "v=19", "v=019"),
        (BCRYPT, "$2b$", "$2$"),
        (BCRYPT, "$2b$", "$2z$"),
        (BOUND, "$pv1$", "$pv2$"),
        (PBKDF2, "sha256", "md5"),
        (PBKDF2, "-sha256", "-"),
        (DJANGO, "sha256", "sha512"),
        (LDAP, "{PBKDF2-SHA512}", "{X}"),
        (LDAP, "{PBKDF2-SHA512}", "{CRYPT}"),
        (LDAP, "{PBKDF2-SHA512}", "{"),
        (SHA_CRYPT, "$5$", "$1$"),
        (SHA_CRYPT, "$5$", "{CRYPT}$1$"),
        (SHA_CRYPT, "$5$", "{CRYPT}$y$"),
        (SHA_CRYPT, "$5$", "{CRYPT}"),
    ] {
        let (text, parsed) = changed(good, from, to);
        assert!(matches!(parsed, Err(ParseError::Unsupported(_))), "{text}: {parsed:?}");
    }
    for text in
        ["", "$", "$$", "$1$salt$hash", "$4$salt$hash", "!", "plain", "AAAA ", "5f4dcc3b5aa765d61d8327deb882cf99"]
    {
        assert!(matches!(text.parse::<Stored>(), Err(ParseError::Unsupported(_) | ParseError::Limit(_))), "{text}");
    }
}

/// Whatever is cut off at the end, it is another exact hash of the format or refused; with a fixed length, refused.
#[test]
fn what_is_cut_off_is_refused() {
    for good in [
        ARGON2, BOUND, BCRYPT, PBKDF2, PASSLIB, SCRYPT, PHPASS, DRUPAL, FIREBASE, WERKZEUG, DJANGO, LDAP, CRYPT7,
        SHA_CRYPT,
    ] {
        for end in 0..good.len() {
            if let Ok(stored) = good[..end].parse::<Stored>() {
                assert!(stored != parse(good), "{}", &good[..end]);
                assert_eq!(parse(&stored.to_string()), stored);
            }
        }
    }
    for good in [BOUND, BCRYPT, PBKDF2, PHPASS, DRUPAL, CRYPT7, SHA_CRYPT] {
        assert!((0..good.len()).all(|end| good[..end].parse::<Stored>().is_err()), "{good}");
    }
}

#[test]
fn md5_crypt_is_refused_with_a_reason() {
    for text in ["$1$saltsalt$UsdFqFVB.FsuinRDK5eE..", "{CRYPT}$1$saltsalt$UsdFqFVB.FsuinRDK5eE.."] {
        let error = text.parse::<Stored>().unwrap_err();
        assert!(error.to_string().contains("md5-crypt ($1$), a fast digest"), "{error}");
    }
}
