//! Tokens of strangers (RFC 7515, RFC 7519): without our key none is accepted, and with it the claims are those signed.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use rules::{
    jose::{Alg, Expect, SigningKey, Times, Typ, VerifyingKey, claimed, generate, object, verify},
    time::Time,
};
use serde_json::Value;

static KEY: LazyLock<(SigningKey, VerifyingKey)> = LazyLock::new(|| {
    let pkcs8 = generate(Alg::EdDSA).expect("a key");
    let signing = SigningKey::from_pkcs8(Alg::EdDSA, "k1".into(), &pkcs8).expect("our own key");
    let verifying = signing.verifying_key().expect("its public half");
    (signing, verifying)
});

/// Without fractions: of those with many digits, serde_json's reader may miss the last bit.
fn is_exact(value: &Value) -> bool {
    match value {
        Value::Number(number) => !number.is_f64(),
        Value::Array(list) => list.iter().all(is_exact),
        Value::Object(members) => members.values().all(is_exact),
        Value::Null | Value::Bool(_) | Value::String(_) => true,
    }
}

fuzz_target!(|bytes: &[u8]| {
    let (signing, verifying) = &*KEY;
    let expect = Expect {
        untyped: true,
        required: &[],
        times: Times::AllButExp,
        ..Expect::new(&Alg::ALL, &[Typ::Jwt], Time(0))
    };
    if let Ok(token) = str::from_utf8(bytes) {
        claimed(token, "sub");
        assert!(verify(token, [verifying], &expect).is_err(), "a token that we did not sign");
    }
    // The same bytes as claims, so that what stands behind the signature is reached.
    if let Some(claims) = object(bytes)
        && claims.values().all(is_exact)
        && let Ok(token) = signing.sign(Typ::Jwt, &claims)
        && let Ok(read) = verify(&token, [verifying], &expect)
    {
        assert_eq!(*read.all(), claims);
        assert_eq!(claimed(&token, "sub").as_deref(), read.subject());
        read.audience().for_each(drop);
    }
});
