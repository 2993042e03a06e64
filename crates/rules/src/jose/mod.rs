//! Signed tokens: JSON Web Signature (RFC 7515, compact), JSON Web Key (RFC 7517) and the JWT rules of RFC 8725.
//!
//! An algorithm belongs to a key, never to a token: a token's header is only compared with the key record and with the
//! algorithms that the caller allows. `none` and the HMAC algorithms are not refused here: they do not exist.
//!
//! Pure except for the signature library's own blinding and ECDSA nonces, and for [`generate`], which draws a new key.

mod alg;
mod claims;
mod json;
mod jwk;
mod sign;
#[cfg(test)]
mod tests;
mod verify;

pub use alg::{Alg, Typ, at_hash};
pub use claims::Claims;
pub use json::object;
pub use jwk::{Jwk, JwkSet, KeyError};
pub use sign::{SignError, SigningKey, generate};
pub use verify::{Expect, Refused, Times, VerifyingKey, claimed, verify};
