//! The RFCs' examples, the attacks of this field, and the round trip.

use super::*;
use crate::id::Kid;
use crate::secret::{base64url, from_base64url};
use crate::time::{Span, Time};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::sync::LazyLock;

const NOW: Time = Time::from_seconds(1_800_000_000);
const EXP: i64 = 1_800_000_300;

/// RFC 7515 A.2, A.3: the keys, and the claims that both sign. RFC 8037 A.2: the key.
const RSA_7515: &str = r#"{"kty":"RSA","n":"ofgWCuLjybRlzo0tZWJjNiuSfb4p4fAkd_wWJcyQoTbji9k0l8W26mPddxHmfHQp-Vaw-4qPCJrcS2mJPMEzP1Pt0Bm4d4QlL-yRT-SFd2lZS-pCgNMsD1W_YpRPEwOWvG6b32690r2jZ47soMZo9wGzjb_7OMg0LOL-bSf63kpaSHSXndS5z5rexMdbBYUsLA9e-KXBdQOS-UTo7WTBEMa2R2CapHg665xsmtdVMTBQY4uDZlxvb3qCo5ZwKh9kG4LT6_I5IhlJH7aGhyxXFvUK-DWNmoudF8NAco9_h9iaGNj8q2ethFkMLs91kzk2PAcDTW9gb54h4FRWyuXpoQ","e":"AQAB"}"#;
const EC_7515: &str = r#"{"kty":"EC","crv":"P-256","x":"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU","y":"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"}"#;
const ED_8037: &str = r#"{"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}"#;
const RS256_7515: &str = "eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ.cC4hiUPoj9Eetdgtv3hF80EGrhuB__dzERat0XF9g2VtQgr9PJbu3XOiZj5RZmh7AAuHIm4Bh-0Qc_lF5YKt_O8W2Fp5jujGbds9uJdbF9CUAr7t1dnZcAcQjbKBYNX4BAynRFdiuB--f_nZLgrnbyTyWzO75vRK5h6xBArLIARNPvkSjtQBMHlb1L07Qe7K0GarZRmB_eSN9383LcOLn6_dO--xi12jzDwusC-eOkHWEsqtFZESc6BfI7noOPqvhJ1phCnvWh6IeYI2w9QOYEUipUTI8np6LbgGY9Fs98rqVt5AXLIhWkWywlVmtVrBp0igcN_IoypGlUPQGe77Rw";
const ES256_7515: &str = "eyJhbGciOiJFUzI1NiJ9.eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ.DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-Kg6NU1Q";

fn signer(alg: Alg) -> SigningKey {
    let pkcs8 = generate(alg).unwrap();
    SigningKey::from_pkcs8(alg, Kid::from("k1"), &pkcs8).ok().unwrap()
}

static SIGNERS: LazyLock<[SigningKey; 4]> = LazyLock::new(|| Alg::ALL.map(signer));

fn ed() -> &'static SigningKey {
    &SIGNERS[3]
}

fn expect() -> Expect<'static> {
    Expect::new(&Alg::ALL, &[Typ::Jwt], NOW)
}

/// Checks `token` against every test key.
fn check(token: &str, expect: &Expect<'_>) -> Result<Claims, Refused> {
    let keys: Vec<VerifyingKey> = SIGNERS.iter().map(|key| key.verifying_key().ok().unwrap()).collect();
    verify(token, &keys, expect)
}

/// A token of that exact header and those exact claims, validly signed by the Ed25519 key.
fn forge(header: &str, claims: &str) -> String {
    use aws_lc_rs::signature::Ed25519KeyPair;
    static PAIR: LazyLock<(Ed25519KeyPair, VerifyingKey)> = LazyLock::new(|| {
        let pkcs8 = generate(Alg::EdDSA).unwrap();
        let key = SigningKey::from_pkcs8(Alg::EdDSA, Kid::from("k1"), &pkcs8).ok().unwrap();
        (Ed25519KeyPair::from_pkcs8(&pkcs8).unwrap(), key.verifying_key().ok().unwrap())
    });
    let signed = format!("{}.{}", base64url(header.as_bytes()), base64url(claims.as_bytes()));
    let token = format!("{signed}.{}", base64url(PAIR.0.sign(signed.as_bytes()).as_ref()));
    FORGED_BY.get_or_init(|| &PAIR.1);
    token
}

static FORGED_BY: std::sync::OnceLock<&'static VerifyingKey> = std::sync::OnceLock::new();

fn check_forged(header: &str, claims: &str, expect: &Expect<'_>) -> Result<Claims, Refused> {
    let token = forge(header, claims);
    verify(&token, [*FORGED_BY.get().unwrap()], expect)
}

const HEADER: &str = r#"{"alg":"EdDSA","typ":"JWT"}"#;

#[test]
fn rfc_7515_examples_verify() {
    let then = Expect { untyped: true, ..Expect::new(&Alg::ALL, &[], Time::from_seconds(1_300_819_379)) };
    for (jwk, token) in [(RSA_7515, RS256_7515), (EC_7515, ES256_7515)] {
        let key = Jwk::parse(jwk.as_bytes()).unwrap().verifying_key(Alg::RS256).ok().unwrap();
        let claims = verify(token, [&key], &then).unwrap();
        assert_eq!((claims.issuer(), claims.expires()), (Some("joe"), Some(Time::from_seconds(1_300_819_380))));
        assert_eq!(claims.all()["http://example.com/is_root"], true);
        let late = Expect { now: Time::from_seconds(1_300_819_440), ..then };
        assert_eq!(verify(token, [&key], &late), Err(Refused("the token has expired")));
        assert!(verify(token, [&key], &Expect { times: Times::AllButExp, ..late }).is_ok());
        assert_eq!(verify(token, [], &then), Err(Refused("no key of the signer fits")));
    }
}

#[test]
fn rfc_8037_signature_verifies_and_its_payload_is_no_claims() {
    let token = "eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc.hgyY0il_MGCjP0JzlnLWG1PPOt7-09PGcvMg3AIbQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7sVvpAr_MuM0KAg";
    let key = Jwk::parse(ED_8037.as_bytes()).unwrap().verifying_key(Alg::RS256).ok().unwrap();
    let (signed, signature) = token.rsplit_once('.').unwrap();
    assert!(key.signed(signed.as_bytes(), &from_base64url(signature).unwrap()));
    let refused = verify(token, [&key], &Expect { untyped: true, required: &[], ..expect() });
    assert_eq!(refused, Err(Refused("the claims are not a JSON object with each member once")));
}

#[test]
fn what_each_algorithm_signs_it_verifies() {
    for (alg, key) in Alg::ALL.into_iter().zip(SIGNERS.iter()) {
        for typ in Typ::ALL {
            let claims = json!({"iss": "us", "sub": "ä\"\u{0}", "aud": ["a", "b"], "exp": EXP, "iat": 1_800_000_000, "jti": "j"});
            let token = key.sign(typ, &claims).unwrap();
            let header: Value =
                serde_json::from_slice(&from_base64url(token.split('.').next().unwrap()).unwrap()).unwrap();
            assert_eq!(header, json!({"alg": alg.name(), "typ": typ.name(), "kid": "k1"}));
            let algs = [alg];
            let wanted = Expect {
                issuer: Some("us"),
                audience: Some("b"),
                required: &["exp", "iat", "jti"],
                ..Expect::new(&algs, std::slice::from_ref(&typ), NOW)
            };
            let found = check(&token, &wanted).unwrap();
            assert_eq!(Value::from(found.all().clone()), claims);
            assert_eq!((found.id(), found.sole_audience(), found.audience().count()), (Some("j"), None, 2));
            assert_eq!(claimed(&token, "sub").as_deref(), Some("ä\"\u{0}"));
            for other in Alg::ALL.into_iter().filter(|other| *other != alg) {
                assert!(check(&token, &Expect { algs: &[other], ..wanted }).is_err(), "{alg} taken for {other}");
            }
            for other in Typ::ALL.into_iter().filter(|other| *other != typ) {
                assert!(
                    check(&token, &Expect { typ: &[other], ..wanted }).is_err(),
                    "JW-16: {typ:?} taken for {other:?}"
                );
            }
            assert!(check(&token, &Expect { issuer: Some("them"), ..wanted }).is_err());
            assert!(check(&token, &Expect { audience: Some("c"), ..wanted }).is_err());
            assert!(check(&token, &Expect { required: &["nonce"], ..wanted }).is_err());
        }
    }
}

#[test]
fn a_key_serves_one_algorithm_and_one_type() {
    let rsa = generate(Alg::RS256).unwrap();
    assert!(SigningKey::from_pkcs8(Alg::ES256, Kid::from("k"), &rsa).is_err());
    assert!(SigningKey::from_pkcs8(Alg::EdDSA, Kid::from("k"), &rsa).is_err());
    assert!(SigningKey::from_pkcs8(Alg::RS256, Kid::from("k"), &generate(Alg::ES256).unwrap()).is_err());
    assert!(SigningKey::from_pkcs8(Alg::RS256, Kid::from("k"), &rsa[..rsa.len() - 1]).is_err());
    let [pkcs1, pss] =
        [Alg::RS256, Alg::PS256].map(|alg| SigningKey::from_pkcs8(alg, Kid::from("k"), &rsa).ok().unwrap());
    let token = pss.sign(Typ::Jwt, &json!({"exp": EXP})).unwrap();
    assert!(verify(&token, [&pss.verifying_key().ok().unwrap()], &expect()).is_ok());
    assert!(verify(&token, [&pkcs1.verifying_key().ok().unwrap()], &expect()).is_err(), "same key, other algorithm");
    let renamed = Jwk::parse(&serde_json::to_vec(&pss.public_jwk()).unwrap()).unwrap();
    assert_eq!(renamed, pss.public_jwk());
    assert_eq!(renamed.alg(Alg::RS256), Alg::PS256);
}

/// JW-01: there is no unsigned token.
#[test]
fn alg_none_is_refused_in_every_spelling() {
    for alg in [r#""none""#, r#""None""#, r#""nOnE""#, r#""NONE""#, r#""""#, "null", "[]", "{}", "0", r#""eddsa""#] {
        let header = format!(r#"{{"alg":{alg},"typ":"JWT"}}"#);
        let signed = forge(&header, &format!(r#"{{"exp":{EXP}}}"#));
        let unsigned = &signed[..=signed.rfind('.').unwrap()];
        for token in [&signed[..], unsigned, unsigned.trim_end_matches('.')] {
            let key = *FORGED_BY.get().unwrap();
            assert!(verify(token, [key], &expect()).is_err(), "{alg}");
        }
    }
    assert_eq!(check_forged(r#"{"typ":"JWT"}"#, "{}", &expect()), Err(Refused("alg is not accepted")));
    assert_eq!(Alg::parse("none"), None);
    let unsigned = format!("{}.{}.", base64url(HEADER.as_bytes()), base64url(b"{}"));
    assert!(check(&unsigned, &Expect { required: &[], ..expect() }).is_err());
}

/// JW-02: a public key is never an HMAC secret.
#[test]
fn hmac_keyed_with_a_public_key_is_refused() {
    for key in SIGNERS.iter() {
        let jwk = serde_json::to_value(key.public_jwk()).unwrap();
        let number = jwk.get("n").or(jwk.get("x")).and_then(Value::as_str).and_then(from_base64url).unwrap();
        for secret in [jwk.to_string().into_bytes(), number, Vec::new()] {
            for alg in ["HS256", "HS384", "HS512"] {
                let header = json!({"alg": alg, "typ": "JWT", "kid": "k1"}).to_string();
                let claims = json!({"exp": EXP}).to_string();
                let signed = format!("{}.{}", base64url(header.as_bytes()), base64url(claims.as_bytes()));
                let token = format!("{signed}.{}", base64url(&hmac(alg, &secret, signed.as_bytes())));
                assert_eq!(check(&token, &expect()), Err(Refused("alg is not accepted")));
            }
        }
    }
    assert!(Jwk::parse(br#"{"kty":"oct","k":"AyM1SysPpbyDfgZld3umj1qzKObwVMkoqQ"}"#).is_err());
}

fn hmac(alg: &str, secret: &[u8], message: &[u8]) -> Vec<u8> {
    use hmac::{Hmac, KeyInit, Mac};
    fn tag<M: Mac + KeyInit>(secret: &[u8], message: &[u8]) -> Vec<u8> {
        let mut mac = <M as KeyInit>::new_from_slice(secret).unwrap();
        mac.update(message);
        mac.finalize().into_bytes().to_vec()
    }
    match alg {
        "HS256" => tag::<Hmac<sha2::Sha256>>(secret, message),
        "HS384" => tag::<Hmac<sha2::Sha384>>(secret, message),
        _ => tag::<Hmac<sha2::Sha512>>(secret, message),
    }
}

/// JW-05: a time of the wrong type is never "no time".
#[test]
fn times_are_whole_seconds_or_the_token_is_refused() {
    let wrong = [
        r#""9999999999""#,
        "null",
        "true",
        "[]",
        "{}",
        "1e400",
        "-1",
        "1.5",
        "1e10",
        "253402300800",
        "9223372036854775808",
    ];
    for value in wrong {
        for name in ["exp", "nbf", "iat"] {
            let others = if name == "exp" { String::new() } else { format!(r#","exp":{EXP}"#) };
            let claims = format!(r#"{{"{name}":{value}{others}}}"#);
            assert!(check_forged(HEADER, &claims, &expect()).is_err(), "{claims}");
            for times in [Times::AllButExp, Times::Unjudged] {
                let lenient = Expect { required: &[], times, ..expect() };
                assert!(check_forged(HEADER, &claims, &lenient).is_err(), "{claims}");
            }
        }
    }
    assert_eq!(check_forged(HEADER, "{}", &expect()), Err(Refused("a required claim is missing")));
}

#[test]
fn clocks_may_differ_by_the_skew_and_no_more() {
    let now = NOW.seconds();
    for (name, second, accepted) in [
        ("exp", now - 59, true),
        ("exp", now - 60, false),
        ("nbf", now + 60, true),
        ("nbf", now + 61, false),
        ("iat", now + 60, true),
        ("iat", now + 61, false),
        ("iat", 0, true),
    ] {
        let others = if name == "exp" { String::new() } else { format!(r#","exp":{EXP}"#) };
        let result = check_forged(HEADER, &format!(r#"{{"{name}":{second}{others}}}"#), &expect());
        assert_eq!(result.is_ok(), accepted, "{name} {}", second - now);
    }
    let exact = Expect { skew: Span::ZERO, ..expect() };
    assert!(check_forged(HEADER, &format!(r#"{{"exp":{now}}}"#), &exact).is_err());
    assert!(check_forged(HEADER, &format!(r#"{{"exp":{}}}"#, now + 1), &exact).is_ok());
}

/// A token of ours may come from a clock that is as far ahead as this one is behind.
#[test]
fn two_clocks_of_ours_may_be_off() {
    // Red where `Expect::ours` allows for one clock.
    let now = NOW.seconds();
    let ours = Expect { algs: expect().algs, required: &[], ..Expect::ours(expect().typ, "us", NOW) };
    for (name, second, by_all, but_exp) in [
        ("exp", now - 119, true, true),
        ("exp", now - 120, false, true),
        ("nbf", now + 120, true, true),
        ("nbf", now + 121, false, false),
        ("iat", now + 120, true, true),
        ("iat", now + 121, false, false),
    ] {
        let others = if name == "exp" { String::new() } else { format!(r#","exp":{EXP}"#) };
        let token = |iss: &str| format!(r#"{{"iss":"{iss}","{name}":{second}{others}}}"#);
        for (times, accepted) in [(Times::All, by_all), (Times::AllButExp, but_exp), (Times::Unjudged, true)] {
            let ours = Expect { times, ..ours };
            assert_eq!(check_forged(HEADER, &token("us"), &ours).is_ok(), accepted, "{name} {second} {times:?}");
            assert!(check_forged(HEADER, &token("them"), &ours).is_err());
        }
    }
}

/// JW-07: a token says plainly whom it is for.
#[test]
fn audience_is_a_string_or_strings() {
    for (aud, accepted) in [
        (r#""us""#, true),
        (r#"["them","us"]"#, true),
        (r#""them""#, false),
        ("[]", false),
        ("5", false),
        ("null", false),
        (r#"{"us":"us"}"#, false),
        (r#"["us",5]"#, false),
        (r#"[["us"]]"#, false),
    ] {
        let wanted = Expect { audience: Some("us"), ..expect() };
        let result = check_forged(HEADER, &format!(r#"{{"exp":{EXP},"aud":{aud}}}"#), &wanted);
        assert_eq!(result.is_ok(), accepted, "{aud}");
        let well_formed = accepted || aud == r#""them""#;
        let unasked = check_forged(HEADER, &format!(r#"{{"exp":{EXP},"aud":{aud}}}"#), &expect());
        assert_eq!(unasked.is_ok(), well_formed, "{aud}");
    }
    assert!(
        check_forged(HEADER, &format!(r#"{{"exp":{EXP}}}"#), &Expect { audience: Some("us"), ..expect() }).is_err()
    );
    for name in ["iss", "sub", "jti"] {
        assert!(check_forged(HEADER, &format!(r#"{{"exp":{EXP},"{name}":5}}"#), &expect()).is_err());
    }
}

/// JW-10: a token brings no key, no extension and no other transformation with it.
#[test]
fn headers_choose_nothing() {
    let claims = format!(r#"{{"exp":{EXP}}}"#);
    let long = format!(r#""kid":"{}""#, "k".repeat(257));
    for member in [
        r#""jku":"http://sink.example""#,
        r#""x5u":"http://sink.example""#,
        r#""x5c":["MIIB"]"#,
        r#""crit":["x"]"#,
        r#""crit":[]"#,
        r#""b64":false"#,
        r#""b64":true"#,
        r#""zip":"DEF""#,
        r#""cty":"JWT""#,
        r#""kid":"../../../dev/null""#,
        r#""kid":"' OR 1=1--""#,
        r#""kid":"k1\u0000""#,
        r#""kid":5"#,
        r#""kid":null"#,
        r#""kid":["k1"]"#,
        r#""alg":"EdDSA""#,
        r#""x":{"y":1,"y":1}"#,
        r#""typ":"JWT""#,
        &format!(r#""jwk":{ED_8037}"#),
        &long,
    ] {
        let header = format!(r#"{{"alg":"EdDSA","typ":"JWT",{member}}}"#);
        assert!(check_forged(&header, &claims, &expect()).is_err(), "{member}");
    }
    for header in [
        r#"{"alg":"EdDSA"}"#,
        r#"{"alg":"EdDSA","typ":""}"#,
        r#"{"alg":"EdDSA","typ":null}"#,
        r#"{"alg":"EdDSA","typ":"at+jwt"}"#,
        r#"["EdDSA"]"#,
        r#""EdDSA""#,
        "",
        "{}x",
        "\u{FEFF}{}",
    ] {
        assert!(check_forged(header, &claims, &expect()).is_err(), "{header}");
    }
    for header in [
        r#"{"typ":"application/jwt","alg":"Ed25519","kid":"k1","x5t":"unused","other":[1]}"#,
        r#" {"alg" : "EdDSA", "typ" : "jWt"} "#,
    ] {
        assert!(check_forged(header, &claims, &expect()).is_ok(), "{header}");
    }
    assert!(check_forged(r#"{"alg":"EdDSA"}"#, &claims, &Expect { untyped: true, ..expect() }).is_ok());
    for alg in ["RS256", "PS256", "ES256"] {
        let header = format!(r#"{{"alg":"{alg}","typ":"JWT"}}"#);
        assert!(check_forged(&header, &claims, &expect()).is_err(), "the key is for EdDSA, whatever the header says");
    }
    assert!(
        check_forged(HEADER, &format!(r#"{{"exp":{EXP},"exp":{EXP}}}"#), &expect()).is_err(),
        "a claim named twice"
    );
    let deep = format!(r#"{{"exp":{EXP},"x":{}{}}}"#, "[".repeat(5000), "]".repeat(5000));
    assert!(check_forged(HEADER, &deep, &expect()).is_err());
}

/// JW-13: the size is checked before the shape, and the shape before anything is decoded.
#[test]
fn a_megabyte_of_dots_is_refused_for_its_size_and_16_kib_for_their_shape() {
    let dots = ".".repeat(900 * 1024);
    for long in [&dots[..], &dots[..=16 * 1024]] {
        assert_eq!(check_none(long), Refused("the token is too long"));
    }
    for shapeless in [&dots[..16 * 1024], "", ".", "...", "a.b", "!.!", "a.b.c.d", "!.!.!.!", "a.b.c.d.e"] {
        assert_eq!(check_none(shapeless), Refused("the token does not have three parts"), "{shapeless}");
    }
    for token in ["..", "é.é.é", "\0.\0.\0", " . . "] {
        check_none(token);
    }
}

fn check_none(token: &str) -> Refused {
    verify(token, [], &expect()).unwrap_err()
}

#[test]
fn every_flipped_bit_is_refused() {
    for (alg, key) in Alg::ALL.into_iter().zip(SIGNERS.iter()).filter(|(alg, _)| *alg != Alg::PS256) {
        let token = key.sign(Typ::Jwt, &json!({"exp": EXP, "sub": "s"})).unwrap();
        assert!(check(&token, &expect()).is_ok());
        let public = key.verifying_key().ok().unwrap();
        for at in 0..token.len() * 8 {
            let mut bytes = token.clone().into_bytes();
            bytes[at / 8] ^= 1 << (at % 8);
            if let Ok(flipped) = String::from_utf8(bytes) {
                assert!(verify(&flipped, [&public], &expect()).is_err(), "{alg} bit {at}");
            }
        }
        for tail in ["=", "==", "A", ".", " ", "\n", "AAAA"] {
            assert!(check(&format!("{token}{tail}"), &expect()).is_err(), "{tail:?}");
        }
    }
}

#[test]
fn a_public_key_is_sound_or_refused() {
    let edit = |json: &str, name: &str, value: Value| {
        let mut jwk: Value = serde_json::from_str(json).unwrap();
        jwk[name] = value;
        Jwk::parse(&serde_json::to_vec(&jwk).unwrap())
    };
    let modulus = |bytes: Vec<u8>| edit(RSA_7515, "n", base64url(&bytes).into());
    let odd = |length: usize| [vec![0xC1; length - 1], vec![0x01]].concat();
    assert!(modulus(odd(256)).is_ok() && modulus(odd(512)).is_ok());
    assert!(modulus(odd(255)).is_err() && modulus(odd(513)).is_err());
    assert!(modulus([vec![0xC1; 255], vec![0x02]].concat()).is_err(), "even");
    assert!(modulus([vec![0], odd(256)].concat()).is_err(), "leading zero");
    assert!(modulus(Vec::new()).is_err());
    for e in ["", "AA", "AQ", "Aw", "AQAA", "AAEAAQ", "AwAAAAE", "AQAB=", "AQ AB"] {
        assert!(edit(RSA_7515, "e", e.into()).is_err(), "{e}");
    }
    for private in ["d", "p", "q", "dp", "dq", "qi", "oth", "k"] {
        assert!(matches!(edit(EC_7515, private, "AQAB".into()), Err(KeyError::Invalid(_))), "{private}");
    }
    let point = base64url(&[7; 32]);
    assert!(edit(EC_7515, "y", point.clone().into()).is_err(), "not on the curve");
    assert!(edit(EC_7515, "x", base64url(&[7; 31]).into()).is_err());
    assert!(edit(ED_8037, "x", base64url(&[7; 33]).into()).is_err());
    assert!(edit(EC_7515, "kid", 5.into()).is_err());
    assert!(edit(EC_7515, "kid", "k".repeat(257).into()).is_err());
    assert!(edit(EC_7515, "alg", "RS256".into()).is_err());
    assert!(edit(EC_7515, "key_ops", json!(["verify"])).is_ok());
    for (name, value) in
        [("kty", json!("oct")), ("crv", json!("P-521")), ("alg", json!("HS256")), ("use", json!("enc"))]
    {
        assert!(matches!(edit(EC_7515, name, value), Err(KeyError::Unsupported(_))), "{name}");
    }
    assert!(matches!(edit(EC_7515, "key_ops", json!(["encrypt"])), Err(KeyError::Unsupported(_))));
    assert!(Jwk::parse(&EC_7515.replacen('{', r#"{"kty":"EC","#, 1).into_bytes()).is_err(), "a member named twice");
    assert!(Jwk::parse(&[EC_7515.as_bytes(), &b" ".repeat(9000)].concat()).is_err());
}

#[test]
fn a_key_set_skips_what_is_not_ours_and_refuses_what_is_wrong() {
    let set = |keys: &[&str]| JwkSet::parse(format!(r#"{{"keys":[{}],"other":1}}"#, keys.join(",")).as_bytes());
    let encryption = r#"{"kty":"RSA","use":"enc","n":"AQAB","e":"AQAB"}"#;
    let curve = r#"{"kty":"EC","crv":"P-521","x":"AA","y":"AA"}"#;
    let private = r#"{"kty":"OKP","crv":"X25519","x":"AA","d":"AA"}"#;
    let found = set(&[encryption, RSA_7515, curve, EC_7515, ED_8037]).unwrap();
    let keys = found.verifying_keys(Alg::PS256).ok().unwrap();
    assert_eq!(keys.iter().map(VerifyingKey::alg).collect::<Vec<_>>(), [Alg::PS256, Alg::ES256, Alg::EdDSA]);
    assert_eq!(serde_json::from_str::<JwkSet>(&serde_json::to_string(&found).unwrap()).unwrap(), found);
    assert!(set(&[EC_7515, private]).is_err(), "somebody published a private key");
    assert!(set(&[encryption]).is_err() && set(&[]).is_err() && set(&["5"]).is_err());
    assert!(set(&[ED_8037; 32]).is_ok() && set(&[ED_8037; 33]).is_err());
    assert!(set(&[ED_8037, &" ".repeat(70_000)]).is_err());
    for junk in ["", "[]", "{}", r#"{"keys":{}}"#, r#"{"keys":null}"#] {
        assert!(JwkSet::parse(junk.as_bytes()).is_err(), "{junk}");
    }
}

#[test]
fn a_named_key_is_found_by_its_name() {
    let token = ed().sign(Typ::Jwt, &json!({"exp": EXP})).unwrap();
    let named = |kid: Option<&str>| {
        let mut jwk = serde_json::to_value(ed().public_jwk()).unwrap();
        jwk["kid"] = kid.into();
        jwk.as_object_mut().unwrap().retain(|_, value| !value.is_null());
        serde_json::from_value::<Jwk>(jwk).unwrap().verifying_key(Alg::RS256).ok().unwrap()
    };
    assert!(verify(&token, [&named(Some("k1"))], &expect()).is_ok());
    assert!(verify(&token, [&named(None)], &expect()).is_ok());
    let nul = SigningKey::from_pkcs8(Alg::EdDSA, Kid::from("k1\0"), &generate(Alg::EdDSA).unwrap()).ok().unwrap();
    let (token_of_nul, key_of_nul) =
        (nul.sign(Typ::Jwt, &json!({"exp": EXP})).unwrap(), nul.verifying_key().ok().unwrap());
    assert_eq!(verify(&token_of_nul, [&key_of_nul], &expect()), Err(Refused("kid is not accepted")));
    assert!(verify(&token, [&named(Some("k2"))], &expect()).is_err());
    assert!(verify(&token, [&named(Some("k2")), &named(Some("k1"))], &expect()).is_ok());
}

/// OpenID Connect Core A.3 gives the example of RS256.
#[test]
fn at_hash_is_the_left_half() {
    let token = "jHkWEdUXMU1BwAsC4vtUsZwnNvTIxEl0z9K3vx5KF0Y";
    assert_eq!(at_hash(Alg::RS256, token), "77QmUPtjPfzWtF2AnpK9RQ");
    assert_eq!(at_hash(Alg::ES256, token).len(), 22);
    assert_eq!(at_hash(Alg::EdDSA, token).len(), 43);
}

proptest! {
    #[test]
    fn junk_is_refused_and_never_panics(junk in any::<String>(), parts in proptest::array::uniform3("[A-Za-z0-9_-]{0,40}")) {
        prop_assert!(check(&junk, &expect()).is_err());
        prop_assert!(check(&parts.join("."), &expect()).is_err());
        let _ = (Jwk::parse(junk.as_bytes()), JwkSet::parse(junk.as_bytes()), claimed(&junk, "sub"));
    }

    #[test]
    fn signed_junk_is_judged_and_never_panics(header in "\\{\"alg\":\"EdDSA\"[\\[\\]{}\",:a-z0-9\\\\]{0,24}\\}", claims in "\\PC{0,40}") {
        let _ = check_forged(&header, &claims, &expect());
        let _ = check_forged(HEADER, &claims, &expect());
    }
}
