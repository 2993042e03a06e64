//! Public keys as JSON (RFC 7517, RFC 7518 §6, RFC 8037 §2). A private key has no JSON form here.

use super::alg::Alg;
use super::json::{self, Strict};
use super::verify::VerifyingKey;
use crate::id::Kid;
use crate::secret::{base64url, from_base64url};
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED, ED25519, ParsedPublicKey, RSA_PKCS1_2048_8192_SHA256, RSA_PSS_2048_8192_SHA256,
    RsaPublicKeyComponents,
};
use serde::de::Error as _;
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

/// The longest accepted JSON of one key, in bytes.
const MAX_KEY: usize = 8 * 1024;
/// The longest accepted JSON of a set, in bytes, and the most keys in it.
const MAX_SET: usize = 64 * 1024;
const MAX_KEYS: usize = 32;
/// The longest accepted `kid`, in characters.
const MAX_KID: usize = 256;
/// RSA moduli, in bits: shorter is weak (RFC 7518 §3.3), longer makes checking a signature an attack.
const RSA_BITS: std::ops::RangeInclusive<usize> = 2048..=4096;
/// The members that only private and symmetric keys have (RFC 7518 §6).
const PRIVATE: [&str; 9] = ["d", "p", "q", "dp", "dq", "qi", "oth", "k", "priv"];

/// Why a key is not accepted. The text is ours, never the key's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyError {
    /// Well formed, but of a kind or for a use that is not supported. A set skips it (RFC 7517 §5).
    Unsupported(&'static str),
    /// Malformed, weak, or private where a public key belongs.
    Invalid(&'static str),
}

impl KeyError {
    /// The sentence to show or log.
    pub fn why(self) -> &'static str {
        match self {
            KeyError::Unsupported(why) | KeyError::Invalid(why) => why,
        }
    }
}

/// A public signature key. Its existence proves that it is sound: a modulus of 2,048 to 4,096 bits, or a point on the
/// curve that is not of small order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Jwk {
    kid: Option<Kid>,
    alg: Option<Alg>,
    public: Public,
}

/// The numbers of a key, big-endian.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Public {
    Rsa { n: Vec<u8>, e: Vec<u8> },
    P256 { x: [u8; 32], y: [u8; 32] },
    Ed25519 { x: [u8; 32] },
}

impl Jwk {
    /// Reads one key of at most 8 KiB, strictly.
    pub fn parse(json: &[u8]) -> Result<Self, KeyError> {
        if json.len() > MAX_KEY {
            return Err(KeyError::Invalid("the key is longer than 8 KiB"));
        }
        Jwk::from_members(&json::object(json).ok_or(KeyError::Invalid("the key is not a JSON object"))?)
    }

    pub(super) fn new(kid: Option<Kid>, alg: Option<Alg>, public: Public) -> Result<Self, KeyError> {
        match &public {
            Public::Rsa { n, e } => check_rsa(n, e)?,
            Public::Ed25519 { x } => check_ed25519(x)?,
            Public::P256 { .. } => {}
        }
        public.prepare(alg.unwrap_or(public.algs()[0]))?;
        Ok(Jwk { kid, alg, public })
    }

    fn from_members(members: &Map<String, Value>) -> Result<Self, KeyError> {
        if PRIVATE.iter().any(|name| members.contains_key(*name)) {
            return Err(KeyError::Invalid("the key holds private members"));
        }
        check_use(members)?;
        let kid = match text(members, "kid")? {
            Some(kid) if !is_kid(kid) => return Err(KeyError::Invalid("kid is not accepted")),
            kid => kid.map(Kid::from),
        };
        let alg = match text(members, "alg")? {
            Some(name) => Some(Alg::parse(name).ok_or(KeyError::Unsupported("alg is not supported"))?),
            None => None,
        };
        let public = match (text(members, "kty")?, text(members, "crv")?) {
            (Some("RSA"), _) => Public::Rsa { n: number(members, "n")?, e: number(members, "e")? },
            (Some("EC"), Some("P-256")) => Public::P256 { x: coordinate(members, "x")?, y: coordinate(members, "y")? },
            (Some("OKP"), Some("Ed25519")) => Public::Ed25519 { x: coordinate(members, "x")? },
            (Some(_), _) => return Err(KeyError::Unsupported("kty or crv is not supported")),
            (None, _) => return Err(KeyError::Invalid("kty is missing")),
        };
        Jwk::new(kid, alg, public)
    }

    /// Its name among its owner's keys.
    pub fn kid(&self) -> Option<&Kid> {
        self.kid.as_ref()
    }

    /// Returns the one algorithm that it is used with (RFC 8725 §3.1): its own `alg`, or else one that its type allows.
    /// For an RSA key that is `rsa` if `rsa` is an RSA algorithm, and RS256 if not.
    pub fn alg(&self, rsa: Alg) -> Alg {
        let fits = self.public.algs();
        self.alg.unwrap_or(if fits.contains(&rsa) { rsa } else { fits[0] })
    }

    /// Prepares it for [`verify`](super::verify), bound to [`alg(rsa)`](Jwk::alg).
    pub fn verifying_key(&self, rsa: Alg) -> Result<VerifyingKey, KeyError> {
        let alg = self.alg(rsa);
        Ok(VerifyingKey::new(self.kid.clone(), alg, self.public.prepare(alg)?))
    }
}

impl Public {
    fn algs(&self) -> &'static [Alg] {
        match self {
            Public::Rsa { .. } => &[Alg::RS256, Alg::PS256],
            Public::P256 { .. } => &[Alg::ES256],
            Public::Ed25519 { .. } => &[Alg::EdDSA],
        }
    }

    fn prepare(&self, alg: Alg) -> Result<ParsedPublicKey, KeyError> {
        let key = match (self, alg) {
            (Public::Rsa { n, e }, Alg::RS256) => {
                RsaPublicKeyComponents { n, e }.to_parsed_public_key(&RSA_PKCS1_2048_8192_SHA256)
            }
            (Public::Rsa { n, e }, Alg::PS256) => {
                RsaPublicKeyComponents { n, e }.to_parsed_public_key(&RSA_PSS_2048_8192_SHA256)
            }
            (Public::P256 { x, y }, Alg::ES256) => {
                ParsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, [&[4], &x[..], &y[..]].concat())
            }
            (Public::Ed25519 { x }, Alg::EdDSA) => ParsedPublicKey::new(&ED25519, x),
            _ => return Err(KeyError::Invalid("alg does not fit the key's type")),
        };
        key.map_err(|_| KeyError::Invalid("the key's numbers are not a public key"))
    }
}

/// RFC 8725 §3.10: a `kid` is a stranger's text: 256 characters at most, none of them a control character.
pub(super) fn is_kid(text: &str) -> bool {
    text.chars().count() <= MAX_KID && !text.chars().any(char::is_control)
}

/// RFC 7517 §4.2 and §4.3: if the key says what it is for, that must be checking signatures.
fn check_use(members: &Map<String, Value>) -> Result<(), KeyError> {
    if !matches!(text(members, "use")?, None | Some("sig")) {
        return Err(KeyError::Unsupported("the key is not for signatures"));
    }
    match members.get("key_ops") {
        None => Ok(()),
        Some(Value::Array(list)) if list.iter().any(|one| one == "verify") => Ok(()),
        Some(Value::Array(_)) => Err(KeyError::Unsupported("the key is not for checking signatures")),
        Some(_) => Err(KeyError::Invalid("key_ops is not a list")),
    }
}

/// 2,048 to 4,096 bits, both numbers odd, the exponent between 2^16 and 2^33, which is also what the library accepts.
fn check_rsa(n: &[u8], e: &[u8]) -> Result<(), KeyError> {
    if !RSA_BITS.contains(&bits(n)) {
        return Err(KeyError::Invalid("an RSA modulus must have 2048 to 4096 bits"));
    }
    let odd = |number: &[u8]| number.last().is_some_and(|byte| byte & 1 == 1);
    if !odd(n) || !odd(e) || !(17..=33).contains(&bits(e)) {
        return Err(KeyError::Invalid("the RSA modulus or exponent is not sound"));
    }
    Ok(())
}

/// RFC 8725 §3.4: refuses points of small order, under which anybody can sign anything and which the library accepts.
/// RFC 8032 §5.1.3: the number must be below 2^255 - 19, so that each point has one spelling.
fn check_ed25519(x: &[u8; 32]) -> Result<(), KeyError> {
    let mut y = *x;
    y[31] &= 0x7f; // The sign of the other coordinate.
    let high = y[31] == 0x7f && y[1..31].iter().all(|byte| *byte == 0xff);
    let low = y[1..].iter().all(|byte| *byte == 0);
    let beyond = high && y[0] >= 0xed;
    // 0, of order 4; 1, the neutral element; -1, of order 2; and the two of order 8.
    let small = low && y[0] <= 1 || high && y[0] == 0xec || OF_ORDER_8.contains(&y);
    match beyond || small {
        true => Err(KeyError::Invalid("the key's numbers are not a public key")),
        false => Ok(()),
    }
}

/// The points of order 8 on edwards25519, without the sign.
const OF_ORDER_8: [[u8; 32]; 2] = [
    [
        0x26, 0xe8, 0x95, 0x8f, 0xc2, 0xb2, 0x27, 0xb0, 0x45, 0xc3, 0xf4, 0x89, 0xf2, 0xef, 0x98, 0xf0, 0xd5, 0xdf,
        0xac, 0x05, 0xd3, 0xc6, 0x33, 0x39, 0xb1, 0x38, 0x02, 0x88, 0x6d, 0x53, 0xfc, 0x05,
    ],
    [
        0xc7, 0x17, 0x6a, 0x70, 0x3d, 0x4d, 0xd8, 0x4f, 0xba, 0x3c, 0x0b, 0x76, 0x0d, 0x10, 0x67, 0x0f, 0x2a, 0x20,
        0x53, 0xfa, 0x2c, 0x39, 0xcc, 0xc6, 0x4e, 0xc7, 0xfd, 0x77, 0x92, 0xac, 0x03, 0x7a,
    ],
];

/// The length in bits of a number without leading zero bytes.
fn bits(number: &[u8]) -> usize {
    number.first().map_or(0, |first| number.len() * 8 - first.leading_zeros() as usize)
}

fn text<'a>(members: &'a Map<String, Value>, name: &str) -> Result<Option<&'a str>, KeyError> {
    match members.get(name) {
        None => Ok(None),
        Some(Value::String(value)) => Ok(Some(value)),
        Some(_) => Err(KeyError::Invalid("a member of the key has the wrong type")),
    }
}

/// RFC 7518 §2: Base64urlUInt has no leading zero bytes.
fn number(members: &Map<String, Value>, name: &str) -> Result<Vec<u8>, KeyError> {
    text(members, name)?
        .and_then(from_base64url)
        .filter(|bytes| bytes.first().is_some_and(|first| *first != 0))
        .ok_or(KeyError::Invalid("n and e must be base64url numbers"))
}

/// RFC 7518 §6.2.1.2: a coordinate has its full length.
fn coordinate(members: &Map<String, Value>, name: &str) -> Result<[u8; 32], KeyError> {
    text(members, name)?
        .and_then(from_base64url)
        .and_then(|bytes| bytes.try_into().ok())
        .ok_or(KeyError::Invalid("x and y must be 32 bytes in base64url"))
}

impl Serialize for Jwk {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut members = serializer.serialize_map(None)?;
        let numbers: &[(&str, &[u8])] = match &self.public {
            Public::Rsa { n, e } => {
                members.serialize_entry("kty", "RSA")?;
                &[("n", n), ("e", e)]
            }
            Public::P256 { x, y } => {
                members.serialize_entry("kty", "EC")?;
                members.serialize_entry("crv", "P-256")?;
                &[("x", x), ("y", y)]
            }
            Public::Ed25519 { x } => {
                members.serialize_entry("kty", "OKP")?;
                members.serialize_entry("crv", "Ed25519")?;
                &[("x", x)]
            }
        };
        for (name, number) in numbers {
            members.serialize_entry(name, &base64url(number))?;
        }
        members.serialize_entry("use", "sig")?;
        if let Some(alg) = self.alg {
            members.serialize_entry("alg", &alg)?;
        }
        if let Some(kid) = &self.kid {
            members.serialize_entry("kid", kid)?;
        }
        members.end()
    }
}

impl<'de> Deserialize<'de> for Jwk {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Strict(value) = Strict::deserialize(deserializer)?;
        let members = value.as_object().ok_or_else(|| D::Error::custom("the key is not a JSON object"))?;
        Jwk::from_members(members).map_err(|error| D::Error::custom(error.why()))
    }
}

/// Several keys (RFC 7517 §5): what the JWKS endpoint shows, or what a client registered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct JwkSet {
    /// The keys, in the order in which they are tried.
    pub keys: Vec<Jwk>,
}

impl JwkSet {
    /// Reads a set of at most 64 KiB and 32 keys. Keys of other kinds and uses are skipped; one malformed or private
    /// key refuses the whole set, and so does a set in which no key is left.
    pub fn parse(json: &[u8]) -> Result<Self, KeyError> {
        if json.len() > MAX_SET {
            return Err(KeyError::Invalid("the key set is longer than 64 KiB"));
        }
        JwkSet::from_members(&json::object(json).ok_or(KeyError::Invalid("the key set is not a JSON object"))?)
    }

    fn from_members(members: &Map<String, Value>) -> Result<Self, KeyError> {
        let list = match members.get("keys") {
            Some(Value::Array(list)) if list.len() <= MAX_KEYS => list,
            Some(Value::Array(_)) => return Err(KeyError::Invalid("the key set has more than 32 keys")),
            _ => {
                return Err(KeyError::Invalid(
                    "the key set has no list of keys (a key by itself goes into one: {\"keys\": […]})",
                ));
            }
        };
        let mut keys = Vec::with_capacity(list.len());
        for value in list {
            let members = value.as_object().ok_or(KeyError::Invalid("a key is not a JSON object"))?;
            match Jwk::from_members(members) {
                Ok(key) => keys.push(key),
                Err(KeyError::Unsupported(_)) => {}
                Err(invalid) => return Err(invalid),
            }
        }
        if keys.is_empty() {
            return Err(KeyError::Invalid("the key set has no usable signature key"));
        }
        Ok(JwkSet { keys })
    }

    /// All keys prepared for [`verify`](super::verify); an RSA key that names no `alg` is used with `rsa`.
    pub fn verifying_keys(&self, rsa: Alg) -> Result<Vec<VerifyingKey>, KeyError> {
        self.keys.iter().map(|key| key.verifying_key(rsa)).collect()
    }
}

impl<'de> Deserialize<'de> for JwkSet {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Strict(value) = Strict::deserialize(deserializer)?;
        let members = value.as_object().ok_or_else(|| D::Error::custom("the key set is not a JSON object"))?;
        JwkSet::from_members(members).map_err(|error| D::Error::custom(error.why()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every spelling of the eight points of small order on edwards25519, and every number that is no coordinate; with
    /// either sign.
    fn unsound() -> Vec<[u8; 32]> {
        let number = |first: u8, middle: u8, last: u8| {
            let mut y = [middle; 32];
            (y[0], y[31]) = (first, last);
            y
        };
        let low = [0, 1].map(|first| number(first, 0, 0));
        let high = (0xec..=0xff).map(|first| number(first, 0xff, 0x7f));
        let of_order_8 = [
            "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
            "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
        ]
        .map(|text| std::array::from_fn(|at| u8::from_str_radix(&text[2 * at..2 * at + 2], 16).unwrap()));
        let all: Vec<[u8; 32]> = low.into_iter().chain(high).chain(of_order_8).collect();
        let other = |y: &[u8; 32]| std::array::from_fn(|at| if at == 31 { y[at] | 0x80 } else { y[at] });
        all.iter().flat_map(|y| [*y, other(y)]).collect()
    }

    #[test]
    fn no_key_is_a_point_under_which_anybody_signs() {
        // Red without any one of `beyond`, `low`, `high` and OF_ORDER_8 in check_ed25519.
        for x in unsound() {
            let json = format!(r#"{{"kty":"OKP","crv":"Ed25519","x":"{}"}}"#, base64url(&x));
            assert!(matches!(Jwk::parse(json.as_bytes()), Err(KeyError::Invalid(_))), "{x:x?}");
        }
    }
}
