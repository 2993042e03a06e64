//! What needs context, from exports of the other systems. Hashes are of Python 3.11's hashlib, bcrypt 5.0.0,
//! argon2-cffi 25.1.0, passlib 1.7.4 and Django 5.2.19, in the shape that each system documents.

use super::{ALICE, SNOWMAN, id, keys, parse, tag, verify, verify_as};
use crate::{
    Cost, Digest, Keys, ParseError, Refusal, Stored,
    formats::{Draft, import},
};
use import::{Fast, Firebase, Imported, Salted};

/// Accepts the right password only, and so does what is kept.
fn holds(stored: &Stored) {
    let kept = parse(&stored.to_string());
    assert!(kept == *stored, "{stored}");
    assert!(verify(&kept, SNOWMAN) && !verify(&kept, b"wrong") && !verify(&kept, b""), "{stored}");
}

/// Wraps a fast digest as an import does.
fn wrap(fast: &Fast, keys: &Keys) -> Stored {
    let Draft { kind, input, seal } = Draft::wrap(Cost::new(64, 2, 1).unwrap(), fast, [7; 16], keys);
    seal.stored(&tag(kind, &input))
}

fn holds_imported(imported: Imported) {
    match imported {
        Imported::Stored(stored) => holds(&stored),
        Imported::Fast(fast) => {
            holds(&wrap(&fast, &Keys::default()));
            let peppered = wrap(&fast, &keys());
            assert!(peppered.to_string().contains(",keyid=azE$"));
            holds(&peppered);
        }
    }
}

/// What is often taken for a hash is told apart from what is unknown.
#[test]
fn a_text_that_is_no_hash_is_refused_with_what_it_looks_like() {
    for (text, why) in [
        (" $2b$10$", "begins with a blank"),
        ("!", "an account without a password"),
        ("*LK*", "an account without a password"),
        ("x", "an account without a password"),
        ("5f4dcc3b5aa765d61d8327deb882cf99", "does not name its algorithm"),
        ("5baa61e4c9b93f3f0682250b6cf8331b7ee68fd8", "does not name its algorithm"),
        ("5f4dcc3b5aa765d61d8327deb882cf9", "unknown algorithm"),
        ("zf4dcc3b5aa765d61d8327deb882cf99", "unknown algorithm"),
        ("$y$j9T$F5Jx5fExrKuPp53xLKQ..1$X3DX6M94c7o.9agCG9G317fhZg9SqC.5i5rd.RhAtQ7", "yescrypt ($y$), which is not"),
        ("{CRYPT}$y$j9T$F5Jx5fExrKuPp53xLKQ..1$X3DX6M94c7o.9agCG9G317fhZg9SqC.5i5rd.RhAtQ7", "yescrypt ($y$)"),
        ("$gy$j9T$x$y", "gost-yescrypt"),
        ("$apr1$saltsalt$AAAAAAAAAAAAAAAAAAAAAA", "Apache's md5-crypt ($apr1$)"),
        ("{MD5-CRYPT}$1$saltsalt$UsdFqFVB.FsuinRDK5eE..", "md5-crypt ($1$)"),
        ("$sha1$40000$jtNX3nZ2$hBNaIXkt4wBI2o5rsi8KejSjNqIq", "sha1-crypt"),
        ("$md5,rounds=5000$GUBv0xjJ$$mSwgIswdjlTY0YxV7HBVm0", "Sun's MD5"),
        ("$NT$7f8fe03093cc84b267b109625f6bbf4b", "the NT hash"),
        ("*2470C0C06DEE42FD1618BB99005ADCA2EC9D1E19", "MySQL's hash"),
        ("!$2b$10$abcdefghijklmnopqrstuuzxGOZEy/WPRLMjjU2/y65oP0ZJGIbym", "a locked account: remove the !"),
        ("!!$6$saltstring$x", "a locked account"),
        ("ada:$6$saltstring$x:19000:0:99999:7:::", "a whole line of /etc/shadow"),
        ("Ada:!:19000:0:99999:7:::", "a whole line of /etc/shadow"),
        ("ada:$apr1$saltsalt$AAAAAAAAAAAAAAAAAAAAAA", "a whole line of /etc/shadow or .htpasswd"),
        ("userPassword:: e1NTSEF9YWJj", "a line of LDIF"),
        ("userpassword: {SSHA}YWJj", "a line of LDIF"),
        ("e1NTSEF9YWJj", "base64 of an LDAP value"),
    ] {
        let refused = text.parse::<Stored>();
        assert!(matches!(refused, Err(ParseError::Unsupported(told)) if told.contains(why)), "{text}: {refused:?}");
    }
}

#[rustfmt::skip]
#[test]
fn keycloak() {
    for (credential, secret) in [
        (r#"{"hashIterations":2750,"algorithm":"pbkdf2","additionalParameters":{}}"#, r#"{"value":"T/ayAfwnDJY5Ubux6akTF0kZgELgliPYZRdQcYqrUyAThEnYw8km+vzZXYgnxmN6B/62pVr6T8zxW11HZEoMUA==","salt":"c2l4dGVlbiBieXRlIHNsdA==","additionalParameters":{}}"#),
        (r#"{"hashIterations":2750,"algorithm":"pbkdf2-sha1","additionalParameters":{}}"#, r#"{"value":"T/ayAfwnDJY5Ubux6akTF0kZgELgliPYZRdQcYqrUyAThEnYw8km+vzZXYgnxmN6B/62pVr6T8zxW11HZEoMUA==","salt":"c2l4dGVlbiBieXRlIHNsdA==","additionalParameters":{}}"#),
        (r#"{"hashIterations":2750,"algorithm":"pbkdf2-sha256","additionalParameters":{}}"#, r#"{"value":"reCJfHZpxM9yCuh7ShX9ifMjqROc4gmSsPFd5ApkF/n/CUwxGhfI+r8MmdMq8+fIIqgSBNtoaF2XTt6FIH5pwg==","salt":"c2l4dGVlbiBieXRlIHNsdA==","additionalParameters":{}}"#),
        (r#"{"hashIterations":2750,"algorithm":"pbkdf2-sha512","additionalParameters":{}}"#, r#"{"value":"1G1gpZQVBXu+khPMVNSOcTg3+fIcveS9gLKLNLrhKZCRijsAochFbNwanJYH8mWJQJezk1M9UPvuSRaA5WUpWQ==","salt":"c2l4dGVlbiBieXRlIHNsdA==","additionalParameters":{}}"#),
        (r#"{"hashIterations":5,"algorithm":"argon2","additionalParameters":{"hashLength":["32"],"memory":["128"],"type":["id"],"version":["1.3"],"parallelism":["1"]}}"#, r#"{"value":"wHc9NfQc0WMvhR+EpLC+nSwcmm9d9IZL9jKIJo4F8Mo=","salt":"c2l4dGVlbiBieXRlIHNsdA==","additionalParameters":{}}"#),
    ] {
        let stored = import::keycloak(credential, secret).unwrap();
        holds(&stored);
    }
}

#[test]
fn keycloak_of_another_shape_is_refused() {
    let secret = r#"{"value":"AAAAAAAAAAAAAAAAAAAAAA==","salt":"AAAAAAAAAAA="}"#;
    let argon2 = |from: &str, to: &str| {
        let data = r#"{"hashIterations":5,"algorithm":"argon2","additionalParameters":{"hashLength":["16"],"memory":["128"],"type":["id"],"version":["1.3"],"parallelism":["1"]}}"#;
        assert!(data.contains(from));
        import::keycloak(&data.replacen(from, to, 1), secret)
    };
    assert!(argon2("5", "5").is_ok());
    for (from, to) in [
        (r#""128""#, r#""1048577""#),
        (r#""128""#, r#""-1""#),
        (r#""128""#, r#""128","64""#),
        (r#""id""#, r#""idd""#),
        (r#""1.3""#, r#""1.2""#),
        (r#""16""#, r#""17""#),
        (":5", ":65"),
        (":5", ":-5"),
        ("argon2", "argon3"),
        (r#"["1"]"#, "[]"),
        (r#"["1"]"#, "1"),
        ("{", ""),
    ] {
        assert!(argon2(from, to).is_err(), "{from} {to}");
    }
    let pbkdf2 = |iterations: &str| {
        // Programs that process an export write null for what is not there, and Keycloak reads it.
        let rest = r#""algorithm":"pbkdf2-sha256","additionalParameters":null"#;
        import::keycloak(&format!(r#"{{"hashIterations":{iterations},{rest}}}"#), secret)
    };
    let nothing = r#"{"hashIterations":5,"algorithm":"argon2","additionalParameters":null}"#;
    assert!(
        matches!(import::keycloak(nothing, secret), Err(ParseError::Malformed(why)) if why.contains("no additional"))
    );
    assert!(pbkdf2("27500").is_ok());
    assert!(matches!(pbkdf2("1"), Err(ParseError::Limit(_))));
    assert!(matches!(pbkdf2("10000001"), Err(ParseError::Limit(_))));
    assert!(matches!(pbkdf2(&" ".repeat(5000)), Err(ParseError::Limit(_))));
}

#[rustfmt::skip]
#[test]
fn fusionauth() {
    for user in [
        r#"{"encryptionScheme":"bcrypt","factor":5,"salt":"abcdefghijklmnopqrstuu","password":"zxGOZEy/WPRLMjjU2/y65oP0ZJGIbym"}"#,
        r#"{"encryptionScheme":"salted-pbkdf2-hmac-sha256","factor":2400,"salt":"c2l4dGVlbiBieXRlIHNsdA==","password":"8Fdm4ccpG4eozou9HQqznxk0rUTj+rZwwEed6P0RiS0="}"#,
        r#"{"encryptionScheme":"salted-pbkdf2-hmac-sha256-512","factor":2400,"salt":"c2l4dGVlbiBieXRlIHNsdA==","password":"8Fdm4ccpG4eozou9HQqznxk0rUTj+rZwwEed6P0RiS0dvw+QQ7DzThXJL92EVP+mO2LryGADVYwy5s+BwcFB1w=="}"#,
        r#"{"encryptionScheme":"salted-pbkdf2-hmac-sha512-512","factor":2400,"salt":"c2l4dGVlbiBieXRlIHNsdA==","password":"M3eAjBZZbIwFWlrLvgxD42cD8srDUq0jj6Q4ckwQIsZbf43zjSTtwoArz1kXpN4mmfWFjz+BLe1wdHIPaLMy1g=="}"#,
    ] {
        holds(&import::fusionauth(user).unwrap());
        assert!(import::fusionauth(&user.replacen(r#""factor":"#, r#""factor":99999999"#, 1)).is_err());
        assert!(import::fusionauth(&user.replacen(r#"Scheme":""#, r#"Scheme":"md5"#, 1)).is_err());
    }
}

#[rustfmt::skip]
#[test]
fn auth0() {
    for custom in [
        r#"{"algorithm":"pbkdf2","hash":{"value":"$pbkdf2-sha512$i=1000,l=64$c2l4dGVlbiBieXRlIHNsdA$MY36Y1wfpLg9S8MhluzrQBGRvJkYQXPyYB0SkurKgS/BqmEsSMVR1UO1F0ROz7yYU7ARyb4zUEM321ialY7EPw","encoding":"utf8"}}"#,
        r#"{"algorithm":"bcrypt","hash":{"value":"$2a$05$abcdefghijklmnopqrstuuzxGOZEy/WPRLMjjU2/y65oP0ZJGIbym"}}"#,
        r#"{"algorithm":"argon2","hash":{"value":"$argon2id$v=19$m=64,t=2,p=1$c2l4dGVlbiBieXRlIHNsdA$HoBxDvjpuzDyVhG02bj2Iujn/zaH0axi1UoVfcjjxwg","encoding":"utf8"}}"#,
        r#"{"algorithm":"scrypt","hash":{"value":"20df4fc94142a0c9c2d3def580ba629efd2dbdd2adbdae563a1cb63c29902b544bbcd61607868b60db064f62d0bb58fb57155a8a1c95f92f1e8c6065192cb670","encoding":"hex"},"salt":{"value":"7369787465656e206279746520736c74","encoding":"hex"},"keylen":64,"cost":1024,"blockSize":8,"parallelization":1,"password":{"encoding":"utf8"}}"#,
        r#"{"algorithm":"ldap","hash":{"value":"{SSHA}bJEyREZReRc3ZGtsXQsVmueIKvkKoVQK","encoding":"utf8"}}"#,
        r#"{"algorithm":"sha256","hash":{"value":"5251f537da347f6dce2f6addfaa9e9790a8cb08b1a340951fd23e3dcf69d6d8a","encoding":"hex"},"salt":{"value":"salt","encoding":"utf8","position":"prefix"}}"#,
        r#"{"algorithm":"md5","hash":{"value":"578315e8298c5d45590dc7fd580cf92c","encoding":"hex"},"salt":{"value":"salt","position":"suffix"}}"#,
        r#"{"algorithm":"sha1","hash":{"value":"a00BjQNcdgZNRkWzVRsIhEWxARQ=","encoding":"base64"}}"#,
    ] {
        holds_imported(import::auth0(custom).unwrap());
        assert!(import::auth0(&custom.replacen(r#"thm":""#, r#"thm":"md4"#, 1)).is_err());
        assert!(import::auth0(&custom.replacen("{", r#"{"password":{"encoding":"utf16le"},"#, 1)).is_err());
    }
    // HMACs of Python's hmac module. A key is not guessed, and a salt beside it is no part of Auth0's format.
    let hmac = r#"{"algorithm":"hmac","hash":{"value":"3731d45af18758b9febb5f706de5615e99e9364bf2e3a7f0dc82001653635b5c","encoding":"hex","digest":"sha256","key":{"value":"73616c74206b6579","encoding":"hex"}}}"#;
    holds_imported(import::auth0(hmac).unwrap());
    holds_imported(import::auth0(&hmac.replace("73616c74206b6579\",\"encoding\":\"hex\"", "salt key\"")).unwrap());
    for (from, to) in [
        (r#""digest":"sha256","#, ""),
        (r#""sha256""#, r#""whirlpool""#),
        (r#""sha256""#, r#""sha1""#),
        (r#","key":{"value":"73616c74206b6579","encoding":"hex"}"#, ""),
        ("73616c74206b6579", ""),
        (r#""algorithm""#, r#""salt":{"value":"x"},"algorithm""#),
    ] {
        assert!(hmac.contains(from) && import::auth0(&hmac.replacen(from, to, 1)).is_err(), "{from} {to}");
    }
    // Its own text may not be of another algorithm, or have a salt beside.
    let bcrypt = "$2a$05$abcdefghijklmnopqrstuuzxGOZEy/WPRLMjjU2/y65oP0ZJGIbym";
    assert!(import::auth0(&format!(r#"{{"algorithm":"argon2","hash":{{"value":"{bcrypt}"}}}}"#)).is_err());
    let salted = format!(r#"{{"algorithm":"bcrypt","hash":{{"value":"{bcrypt}"}},"salt":{{"value":"x"}}}}"#);
    assert!(import::auth0(&salted).is_err());
}

/// The example of firebase/scrypt.
#[test]
fn firebase() {
    let project = Firebase::new(id(b"fb"), "Bw==", 8, 14).unwrap();
    let hash = "lSrfV15cpx95/sZS2W9c9Kp6i/LVgQNDNC/qzrCnh1SAyZvqmZqAjTdn3aoItz+VHjoZilo78198JAdRuid5lQ==";
    let stored = project.user(hash, "42xEC+ixf3L2lw==").unwrap();
    assert!(verify(&stored, b"user1password") && !verify(&stored, b"user2password"));
    let url_safe = project.user(&hash.replace('+', "-").replace('/', "_"), "42xEC-ixf3L2lw").unwrap();
    assert!(url_safe == stored);
    let text = stored.to_string();
    assert!(!text.contains("jxspr8Ki"), "the signer key is not in the text");
    let refused = verify_as(&stored, b"user1password", ALICE, &Keys::default());
    assert!(matches!(refused, Err(Refusal::Unsupported(why)) if why.contains("imported")));
    // red without the check of the key: every password would be wrong.
    for wrong in [&b"not base64"[..], &[0xff; 64]] {
        let keys = Keys::new([crate::Key::import(id(b"fb"), wrong.to_vec().into())]).unwrap();
        let refused = verify_as(&stored, b"user1password", ALICE, &keys);
        assert!(matches!(refused, Err(Refusal::Unsupported(why)) if why.contains("base64")));
    }
    assert!(Firebase::new(id(b"fb"), "Bw==", 8, 19).is_err(), "512 MiB");
    assert!(Firebase::new(id(b"fb"), "?", 8, 14).is_err());
    assert!(project.user("", "42xEC+ixf3L2lw==").is_err() && project.user(hash, "42xEC+ixf3L2lw==?").is_err());
}

#[test]
fn devise() {
    // bcrypt 5.0.0 of the password, then "devise pepper".
    let peppered = super::vectors::devise();
    let core = &peppered[peppered.find("$2a$").unwrap()..];
    let stored = import::devise(core, Some(id(b"dv"))).unwrap();
    assert_eq!(stored.to_string(), peppered);
    assert!(!peppered.contains("devise pepper"));
    holds(&stored);
    let plain = import::devise(core, None).unwrap();
    assert!(!verify(&plain, SNOWMAN) && verify(&plain, &[SNOWMAN, b"devise pepper"].concat()));
    assert!(verify_as(&stored, SNOWMAN, ALICE, &Keys::default()).is_err());
    assert!(import::devise("$1$abc", Some(id(b"dv"))).is_err());
}

#[test]
fn fast_digests_are_taken_to_be_wrapped_and_never_stored() {
    for text in [
        "{MD5}4SxxBv3su0rpUi1SpYImug==",
        "{SMD5}oXORoVhLPueEZdn/z9e8UJESwrg=",
        "{SHA}a00BjQNcdgZNRkWzVRsIhEWxARQ=",
        "{SSHA}koT7eR03nOA9C6Rvp9x8ojq/o/ALwRhD",
        "{SSHA256}TKPbJn9v85nfWS1FTSXW7A5qIHJQ5jEQtrvFmMNCelCsVerdmzMGYA==",
        "{SSHA512}88YhpshW6Q5BhnIgg/xXyxSfqiEI6gnW5QWgvCqk/X0sLtH264Ut1cWYzuSzVdb5slRwnjh5NztHoICqumXgo3ivtfZea+29",
        "{SHA256}4hDI3fCGE/DGxKI6/r4pBNG49klSSxY76gLFY5z2swk=",
        "{SHA384}R7+azL0lQRz17JdPFy9O8C3BWKGlV6FPe7ifQDMejpkIu6rtVvfx5iCu6k2+juy+",
        "{SHA512}iqhBZhqUvCF37xC+jQY1alf8SPFurJWuPzHV5SPfR5hxLBW6KkzJ2eWFGCnOQf1VWKAqCm7K0YJS7sB2EC1qnQ==",
        "{SSHA384}ZND8TYZXFOYjT3ShcfSFD48CYun/889w4pDjR6mPjq0OoJBvXMu4pROLSnyWW45jc2FsdHNhbHQ=",
        "md5$saltSALT0123456789abcd$69924d7705717c73213d5444b4db0da8",
        "sha1$TF9KI6HgAiYu$02f10e7f465b93b7cf1e980a3eace0403c4ccb9d",
        // Of Werkzeug before 3.0, with Python's hmac.
        "sha256$abcdefghijklmnop$8790e42a90c05e797fd849f32f42f590a240cf8f243124ae078d37ee412ebeab",
        "sha1$abcdefgh$7f430e4f3c8c5d75c475bb9ed855374e98cc8050",
        "md5$abcdefghijklmnop$0e7ea6b2b8a5145e51b260ef7df21927",
        "sha512$abcd$537e34d242db3300600394e36bb2abd20320ceafb6c05b855666e9f2385a3c3c9ab49d62bc57ab41a95522610f5dde57b23dd56ee866f292ca1c92432008fa0a",
    ] {
        assert!(matches!(text.parse::<Stored>(), Err(ParseError::Unsupported(_))), "{text}");
        let imported = import::text(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        assert!(matches!(imported, Imported::Fast(_)), "{text}");
        holds_imported(imported);
    }
    for text in [
        "{SHA}a00BjQNcdgZNRkWzVRsIhEWxAQ==",
        "{SSHA}a00BjQNcdgZNRkWzVRsIhEWxARQ=",
        "{SHA}",
        "{SHA}!",
        "md5$s$00",
        "sha1$$",
    ] {
        assert!(import::text(text).is_err(), "{text}");
    }
}

#[test]
fn raw_digests_with_their_salt() {
    // hashlib of Python 3.11
    let salted = [
        (Digest::Md5, Salted::Not, "e12c7106fdecbb4ae9522d52a58226ba"),
        (
            Digest::Sha256,
            Salted::Before(b"salt".to_vec()),
            "5251f537da347f6dce2f6addfaa9e9790a8cb08b1a340951fd23e3dcf69d6d8a",
        ),
        (Digest::Md5, Salted::After(b"salt".to_vec()), "578315e8298c5d45590dc7fd580cf92c"),
    ];
    for (digest, salt, hex) in salted {
        let fast = Fast::hex(digest, salt.clone(), hex).unwrap();
        holds_imported(Imported::Fast(fast.clone()));
        assert!(Fast::hex(digest, salt.clone(), &hex.to_uppercase()).unwrap() == fast);
        assert!(Fast::hex(digest, salt.clone(), &hex[2..]).is_err() && Fast::base64(digest, salt, hex).is_err());
        assert_eq!(format!("{fast:?}"), format!("Fast({} …)", digest.name()));
    }
    assert!(Fast::hex(Digest::Md5, Salted::Before(vec![]), "578315e8298c5d45590dc7fd580cf92c").is_err());
    assert!(Fast::hex(Digest::Md5, Salted::After(vec![0; 129]), "578315e8298c5d45590dc7fd580cf92c").is_err());
}

/// A stored wrapped hash is not the digest: who knows only the digest does not sign in.
#[test]
fn the_old_digest_is_no_password() {
    let Ok(Imported::Fast(fast)) = import::text("{SHA}a00BjQNcdgZNRkWzVRsIhEWxARQ=") else { panic!() };
    let stored = wrap(&fast, &keys());
    assert!(!verify(&stored, fast.value()) && !verify(&stored, b"a00BjQNcdgZNRkWzVRsIhEWxARQ="));
}

/// As it is exported, beside the project's parameters. The signer key stays out of it.
#[test]
fn firebase_as_json() {
    let user = r#"{"localId":"x","email":"a@example.com","passwordHash":"lSrfV15cpx95/sZS2W9c9Kp6i/LVgQNDNC/qzrCnh1SAyZvqmZqAjTdn3aoItz+VHjoZilo78198JAdRuid5lQ==","salt":"42xEC+ixf3L2lw==","base64_salt_separator":"Bw==","rounds":8,"mem_cost":14,"import_key":"fb"}"#;
    let stored = import::firebase(user).unwrap();
    assert!(verify(&stored, b"user1password") && !verify(&stored, b"user2password"));
    assert_eq!(import::any(user), Ok(Imported::Stored(stored)));
    for (from, to) in [
        (r#""import_key":"fb""#, r#""import_key":"ninebytes""#),
        (r#""import_key":"fb""#, r#""import_key":"""#),
        (r#","import_key":"fb""#, ""),
        (r#""mem_cost":14"#, r#""mem_cost":19"#),
        (r#""rounds":8"#, r#""rounds":0"#),
        (r#""rounds":8"#, r#""rounds":8,"base64_signer_key":"AAAA""#),
        ("Bw==", "?"),
        (r#""salt":"42xEC+ixf3L2lw==","#, ""),
    ] {
        assert!(user.contains(from) && import::firebase(&user.replacen(from, to, 1)).is_err(), "{from} {to}");
    }
}

/// As Auth0's support exports a user, and as one is imported there.
#[test]
fn auth0_as_it_is_exported() {
    let hash = "$2b$05$abcdefghijklmnopqrstuuzxGOZEy/WPRLMjjU2/y65oP0ZJGIbym";
    for user in [
        format!(r#"{{"_id":{{"$oid":"1"}},"email":"a@example.com","passwordHash":"{hash}","tenant":"t"}}"#),
        format!(r#"{{"email":"a@example.com","password_hash":"{hash}"}}"#),
        format!(
            r#"{{"email":"a@example.com","custom_password_hash":{{"algorithm":"bcrypt","hash":{{"value":"{hash}"}}}}}}"#
        ),
    ] {
        let Ok(Imported::Stored(stored)) = import::any(&user) else { panic!("{user}") };
        assert_eq!(stored.to_string(), hash, "{user}");
        holds(&stored);
    }
}

#[test]
fn devise_as_json() {
    let peppered = super::vectors::devise();
    let core = &peppered[peppered.find("$2a$").unwrap()..];
    let user = |rest: &str| import::any(&format!(r#"{{"id":7,"encrypted_password":"{core}"{rest}}}"#));
    let Ok(Imported::Stored(stored)) = user(r#","import_key":"dv""#) else { panic!() };
    assert_eq!(stored.to_string(), peppered);
    holds(&stored);
    assert_eq!(user(""), import::text(core), "where there is no pepper");
    assert!(user(r#","import_key":"ninebytes""#).is_err() && user(r#","import_key":7"#).is_err());
}

/// Nothing is parsed before its length is known.
#[test]
fn a_long_text_is_refused_before_it_is_read() {
    let padded = |bytes: usize| {
        let user = r#"{"encryptionScheme":"bcrypt","factor":5,"salt":"abcdefghijklmnopqrstuu","password":"zxGOZEy/WPRLMjjU2/y65oP0ZJGIbym"}"#;
        format!("{user}{}", " ".repeat(bytes - user.len()))
    };
    assert!(import::any(&padded(4096)).is_ok());
    for text in [padded(4097), padded(1 << 20), "[".repeat(1 << 20), "x".repeat(5000), String::new()] {
        assert_eq!(import::any(&text), Err(ParseError::Limit(crate::formats::limits::JSON)), "{}", text.len());
    }
    assert!(matches!(import::any(&"x".repeat(2000)), Err(ParseError::Limit(limit)) if limit.most == 1024));
}
