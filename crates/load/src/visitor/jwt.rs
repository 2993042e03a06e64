//! What a JWT holds (RFC 7519), in its compact form. Signatures are not verified: that would measure the client's work,
//! not the provider's, and each token comes straight from the provider.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use serde::de::DeserializeOwned;

/// What is known of a token's claims.
pub(super) enum Claims<T> {
    Read(T),
    /// Only the client can read an encrypted token (RFC 7516 §3.1: five parts).
    Encrypted,
    Unreadable,
}

impl<T: DeserializeOwned> Claims<T> {
    /// Reads the claims of a token.
    pub(super) fn of(token: &[u8]) -> Claims<T> {
        let mut parts = token.trim_ascii().split(|byte| *byte == b'.').skip(1);
        let (payload, more) = (parts.next(), parts.count());
        if more == 3 {
            return Claims::Encrypted;
        }
        let payload = payload.and_then(|payload| URL_SAFE_NO_PAD.decode(payload).ok());
        payload.and_then(|payload| serde_json::from_slice(&payload).ok()).map_or(Claims::Unreadable, Claims::Read)
    }
}
