//! Parsing tokens, and forging them.

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair, RSA_PKCS1_2048_8192_SHA256,
    RsaPublicKeyComponents, UnparsedPublicKey,
};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};
use std::time::{SystemTime, UNIX_EPOCH};

/// Returns the time in seconds since 1970.
pub fn now() -> i64 {
    i64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()).unwrap()
}

/// Encodes base64url without padding.
pub fn encode(bytes: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

/// The parts of a signed token.
#[derive(Clone, Debug)]
pub struct Jwt {
    pub header: Value,
    pub claims: Value,
    pub signed: String,
    pub signature: Vec<u8>,
}

/// Parses a token, without verifying it.
#[track_caller]
pub fn jwt(token: &str) -> Jwt {
    let parts: Vec<&str> = token.split('.').collect();
    assert_eq!(parts.len(), 3, "{token}");
    let bytes = |part: &str| URL_SAFE_NO_PAD.decode(part).unwrap();
    let json = |part: &str| serde_json::from_slice(&bytes(part)).unwrap();
    Jwt {
        header: json(parts[0]),
        claims: json(parts[1]),
        signed: format!("{}.{}", parts[0], parts[1]),
        signature: bytes(parts[2]),
    }
}

impl Jwt {
    /// Returns whether a key of the set signed it.
    pub fn is_signed_by(&self, jwks: &Value) -> bool {
        let keys = jwks["keys"].as_array().unwrap();
        let Some(key) = keys.iter().find(|key| key["kid"] == self.header["kid"]) else { return false };
        let part = |name: &str| URL_SAFE_NO_PAD.decode(key[name].as_str().unwrap()).unwrap();
        let message = self.signed.as_bytes();
        match self.header["alg"].as_str().unwrap() {
            "RS256" => RsaPublicKeyComponents { n: part("n"), e: part("e") }
                .verify(&RSA_PKCS1_2048_8192_SHA256, message, &self.signature)
                .is_ok(),
            "ES256" => {
                let point = [vec![4], part("x"), part("y")].concat();
                UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point).verify(message, &self.signature).is_ok()
            }
            other => panic!("a test of {other} is missing"),
        }
    }
}

/// A key of a client or of an attacker.
pub struct EcKey(EcdsaKeyPair);

impl EcKey {
    pub fn make() -> EcKey {
        EcKey(EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).unwrap())
    }

    /// Returns the public half.
    pub fn jwk(&self, kid: &str) -> Value {
        let point = self.0.public_key().as_ref();
        let (x, y) = (encode(&point[1..33]), encode(&point[33..65]));
        json!({ "kty": "EC", "crv": "P-256", "kid": kid, "alg": "ES256", "use": "sig", "x": x, "y": y })
    }

    pub fn sign(&self, header: &Value, claims: &Value) -> String {
        self.sign_raw(&header.to_string(), &claims.to_string())
    }

    /// Signs any two texts.
    pub fn sign_raw(&self, header: &str, claims: &str) -> String {
        let signed = format!("{}.{}", encode(header), encode(claims));
        let signature = self.0.sign(&SystemRandom::new(), signed.as_bytes()).unwrap();
        format!("{signed}.{}", encode(signature.as_ref()))
    }
}
