//! The closed lists: signature algorithms and kinds of token.

use crate::secret::base64url;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::{Digest, Sha256, Sha512};

/// A signature algorithm (RFC 7518 §3.1, RFC 8037 §3.1). There is no other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Alg {
    /// RSASSA-PKCS1-v1_5 with SHA-256.
    RS256,
    /// RSASSA-PSS with SHA-256 and a salt of 32 bytes.
    PS256,
    /// ECDSA on P-256 with SHA-256.
    ES256,
    /// Ed25519.
    EdDSA,
}

impl Alg {
    /// All of them, in the order in which metadata lists them.
    pub const ALL: [Alg; 4] = [Alg::RS256, Alg::PS256, Alg::ES256, Alg::EdDSA];

    /// Those that we sign with ourselves.
    pub const OURS: [Alg; 3] = [Alg::RS256, Alg::ES256, Alg::EdDSA];

    /// The name that goes into `alg`.
    pub const fn name(self) -> &'static str {
        match self {
            Alg::RS256 => "RS256",
            Alg::PS256 => "PS256",
            Alg::ES256 => "ES256",
            Alg::EdDSA => "EdDSA",
        }
    }

    /// The algorithm of that exact name; RFC 9864's `Ed25519` is another name of `EdDSA`. `None` for anything else.
    pub fn parse(name: &str) -> Option<Self> {
        match name {
            "Ed25519" => Some(Alg::EdDSA),
            _ => Self::ALL.into_iter().find(|alg| alg.name() == name),
        }
    }
}

impl std::fmt::Display for Alg {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

impl Serialize for Alg {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl<'de> Deserialize<'de> for Alg {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        Alg::parse(&name).ok_or_else(|| serde::de::Error::custom("unknown signature algorithm"))
    }
}

/// What a token is for, as the `typ` of its header says, so that none is taken for another (RFC 8725 §3.11).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Typ {
    /// An ID token, or any token without a kind of its own.
    Jwt,
    /// An access token (RFC 9068 §2.1).
    AccessToken,
    /// A logout token (OpenID Connect Back-Channel Logout §2.4).
    LogoutToken,
    /// A client's proof of its own identity (RFC 7523, as updated).
    ClientAssertion,
}

impl Typ {
    /// All of them.
    pub const ALL: [Typ; 4] = [Typ::Jwt, Typ::AccessToken, Typ::LogoutToken, Typ::ClientAssertion];

    /// The name that goes into `typ`.
    pub const fn name(self) -> &'static str {
        match self {
            Typ::Jwt => "JWT",
            Typ::AccessToken => "at+jwt",
            Typ::LogoutToken => "logout+jwt",
            Typ::ClientAssertion => "client-authentication+jwt",
        }
    }

    /// Whether `header` names this kind: a media type, in any case, with or without `application/` (RFC 7515 §4.1.9).
    pub(super) fn is(self, header: &str) -> bool {
        const PREFIX: &str = "application/";
        let short = match header.get(..PREFIX.len()) {
            Some(start) if start.eq_ignore_ascii_case(PREFIX) => &header[PREFIX.len()..],
            _ => header,
        };
        short.eq_ignore_ascii_case(self.name())
    }
}

/// OpenID Connect Core §3.1.3.6: the left half of the hash of `token`, in base64url, for an ID token signed with `alg`.
///
/// The hash is the signature's own: SHA-256, but SHA-512 for Ed25519, which is what client libraries check.
pub fn at_hash(alg: Alg, token: &str) -> String {
    match alg {
        Alg::RS256 | Alg::PS256 | Alg::ES256 => base64url(&Sha256::digest(token.as_bytes())[..16]),
        Alg::EdDSA => base64url(&Sha512::digest(token.as_bytes())[..32]),
    }
}
