//! Private keys, and the tokens made with them.

use super::alg::{Alg, Typ};
use super::jwk::{Jwk, KeyError, Public};
use super::verify::VerifyingKey;
use crate::id::Kid;
use crate::secret::base64url;
use aws_lc_rs::encoding::{AsDer, Pkcs8V1Der};
use aws_lc_rs::error::Unspecified;
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa::{KeyPair as RsaKeyPair, KeySize};
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair, RSA_PKCS1_SHA256, RSA_PSS_SHA256,
};
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use base64::{Engine as _, write::EncoderStringWriter};
use serde::Serialize;
use zeroize::Zeroizing;

/// The longest signature, in bytes: RSA with 4,096 bits.
const MAX_SIGNATURE: usize = 512;
/// Room for the encoded claims of an ordinary token, so that making one allocates once.
const ORDINARY_CLAIMS: usize = 1200;

/// Why a token could not be made: the claims do not serialize, or the library failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SignError(pub &'static str);

/// A private key with its name and its one algorithm. It has no `Debug`; the library wipes the key when dropped.
pub struct SigningKey {
    alg: Alg,
    key: Private,
    public: Jwk,
    /// For each [`Typ`], in the order of [`Typ::ALL`], the encoded header and the dot after it.
    heads: [Box<str>; Typ::ALL.len()],
}

enum Private {
    Rsa(RsaKeyPair),
    P256(EcdsaKeyPair),
    Ed25519(Ed25519KeyPair),
}

/// Draws a new private key and returns it as PKCS#8 (RFC 5208), unencrypted: RSA with 2,048 bits, P-256 or Ed25519.
///
/// The only function here that draws randomness, and the only slow one: RSA takes about a tenth of a second of CPU.
pub fn generate(alg: Alg) -> Result<Zeroizing<Vec<u8>>, KeyError> {
    let der: Result<Pkcs8V1Der<'static>, Unspecified> = match alg {
        Alg::RS256 | Alg::PS256 => RsaKeyPair::generate(KeySize::Rsa2048).and_then(|key| key.as_der()),
        Alg::EdDSA => Ed25519KeyPair::generate().and_then(|key| key.as_der()),
        Alg::ES256 => {
            let key = EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).and_then(|key| key.to_pkcs8v1());
            return key.map(|der| Zeroizing::new(der.as_ref().to_vec())).map_err(|_| UNGENERATED);
        }
    };
    der.map(|der| Zeroizing::new(der.as_ref().to_vec())).map_err(|_| UNGENERATED)
}

const UNGENERATED: KeyError = KeyError::Invalid("the key could not be generated");

impl SigningKey {
    /// Reads a private key from PKCS#8. RSA keys must have 2,048 to 4,096 bits; `alg` must fit the key's type.
    pub fn from_pkcs8(alg: Alg, kid: Kid, pkcs8: &[u8]) -> Result<Self, KeyError> {
        let key = match alg {
            Alg::RS256 | Alg::PS256 => RsaKeyPair::from_pkcs8(pkcs8).map(Private::Rsa),
            Alg::ES256 => EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, pkcs8).map(Private::P256),
            Alg::EdDSA => Ed25519KeyPair::from_pkcs8(pkcs8).map(Private::Ed25519),
        }
        .map_err(|_| KeyError::Invalid("the private key does not fit its algorithm"))?;
        let heads = Typ::ALL.map(|typ| head(alg, typ, &kid));
        let public = key.public().ok_or(KeyError::Invalid("the private key has no public half"))?;
        let public = Jwk::new(Some(kid), Some(alg), public)?;
        Ok(SigningKey { alg, key, public, heads })
    }

    /// The algorithm it signs with.
    pub fn alg(&self) -> Alg {
        self.alg
    }

    /// The public half, with `kid` and `alg`, for the JWKS endpoint.
    pub fn public_jwk(&self) -> Jwk {
        self.public.clone()
    }

    /// The public half, prepared for checking our own tokens.
    pub fn verifying_key(&self) -> Result<VerifyingKey, KeyError> {
        self.public.verifying_key(self.alg)
    }

    /// Signs `claims`, which must serialize as a JSON object, into a compact JWS whose header is `alg`, `typ`, `kid`.
    pub fn sign<C: Serialize + ?Sized>(&self, typ: Typ, claims: &C) -> Result<String, SignError> {
        let head = &self.heads[typ as usize];
        let mut token =
            String::with_capacity(head.len() + ORDINARY_CLAIMS + 1 + self.key.signature_len().div_ceil(3) * 4);
        token.push_str(head);
        let mut body = EncoderStringWriter::from_consumer(&mut token, &URL_SAFE_NO_PAD);
        serde_json::to_writer(&mut body, claims).map_err(|_| SignError("the claims do not serialize"))?;
        body.into_inner();

        let mut room = [0; MAX_SIGNATURE];
        let signature = &mut room[..self.key.signature_len()];
        self.key.sign(self.alg, token.as_bytes(), signature).map_err(|_| SignError("the signature failed"))?;
        token.push('.');
        URL_SAFE_NO_PAD.encode_string(signature, &mut token);
        Ok(token)
    }
}

/// Returns the encoded header and the dot after it.
fn head(alg: Alg, typ: Typ, kid: &Kid) -> Box<str> {
    let kid = serde_json::Value::from(kid.as_str());
    let json = format!(r#"{{"alg":"{}","typ":"{}","kid":{kid}}}"#, alg.name(), typ.name());
    (base64url(json.as_bytes()) + ".").into()
}

impl Private {
    fn signature_len(&self) -> usize {
        match self {
            Private::Rsa(key) => key.public_modulus_len(),
            Private::P256(_) | Private::Ed25519(_) => 64,
        }
    }

    /// Fills `signature`, which must be exactly `signature_len` bytes.
    fn sign(&self, alg: Alg, message: &[u8], signature: &mut [u8]) -> Result<(), Unspecified> {
        // The library asks for a source of randomness, but uses its own.
        let random = SystemRandom::new();
        let fixed = match self {
            Private::Rsa(key) if alg == Alg::PS256 => return key.sign(&RSA_PSS_SHA256, &random, message, signature),
            Private::Rsa(key) => return key.sign(&RSA_PKCS1_SHA256, &random, message, signature),
            Private::P256(key) => key.sign(&random, message)?,
            Private::Ed25519(key) => key.try_sign(message)?,
        };
        if fixed.as_ref().len() != signature.len() {
            return Err(Unspecified);
        }
        signature.copy_from_slice(fixed.as_ref());
        Ok(())
    }

    fn public(&self) -> Option<Public> {
        match self {
            Private::Rsa(key) => rsa_numbers(key.public_key().as_ref()),
            Private::P256(key) => {
                let (x, y) = key.public_key().as_ref().strip_prefix(&[4])?.split_at_checked(32)?;
                Some(Public::P256 { x: x.try_into().ok()?, y: y.try_into().ok()? })
            }
            Private::Ed25519(key) => Some(Public::Ed25519 { x: key.public_key().as_ref().try_into().ok()? }),
        }
    }
}

/// RFC 8017 A.1.1: `SEQUENCE { modulus INTEGER, publicExponent INTEGER }` in DER.
fn rsa_numbers(der: &[u8]) -> Option<Public> {
    let (body, _) = der_value(0x30, der)?;
    let (n, rest) = der_value(0x02, body)?;
    let (e, _) = der_value(0x02, rest)?;
    // A DER integer whose first bit is set is preceded by a zero byte.
    let unsigned = |number: &[u8]| number.strip_prefix(&[0]).unwrap_or(number).to_vec();
    Some(Public::Rsa { n: unsigned(n), e: unsigned(e) })
}

/// Returns the content of the DER value with `tag` at the start of `der`, and what follows it.
fn der_value(tag: u8, der: &[u8]) -> Option<(&[u8], &[u8])> {
    let (first, rest) = der.strip_prefix(&[tag])?.split_first()?;
    let (length, rest) = match first {
        0..=0x7f => (usize::from(*first), rest),
        0x81 | 0x82 => {
            let (digits, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
            (digits.iter().fold(0, |length, digit| length << 8 | usize::from(*digit)), rest)
        }
        _ => return None,
    };
    rest.split_at_checked(length)
}
