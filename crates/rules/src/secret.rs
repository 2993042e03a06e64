//! Secrets that do not print, and the hashes under which they are stored.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

/// A secret in clear, on its way in or out. `Debug` hides it, it has no `PartialEq`, and it is wiped when dropped.
#[derive(Clone)]
pub struct Secret(Zeroizing<String>);

impl Secret {
    /// Takes `text` as a secret.
    pub fn new(text: impl Into<String>) -> Self {
        Secret(Zeroizing::new(text.into()))
    }
    /// Returns the text itself, for the one place that must send or hash it.
    pub fn reveal(&self) -> &str {
        &self.0
    }
    /// Returns the hash under which it is stored.
    pub fn handle(&self) -> Handle {
        Handle::of(&self.0)
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// A password as it is stored, from which it can be guessed: `Debug` hides it.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PasswordHash(String);

impl<T: Into<String>> From<T> for PasswordHash {
    fn from(text: T) -> Self {
        PasswordHash(text.into())
    }
}

impl std::ops::Deref for PasswordHash {
    type Target = str;
    fn deref(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Debug for PasswordHash {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("PasswordHash(…)")
    }
}

/// SHA-256 of a 256-bit random secret: the only form in which codes, tokens, cookies and client secrets are stored.
#[derive(Clone, Copy, Eq)]
pub struct Handle(pub [u8; 32]);

impl Handle {
    /// The handle of a secret's exact bytes.
    pub fn of(secret: &str) -> Self {
        Handle(Sha256::digest(secret.as_bytes()).into())
    }
    /// Reads stored bytes; `None` when they are not 32.
    pub fn from_slice(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Handle)
    }
}

impl PartialEq for Handle {
    /// Compares in constant time.
    fn eq(&self, other: &Self) -> bool {
        self.0.ct_eq(&other.0).into()
    }
}

impl std::hash::Hash for Handle {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

impl std::fmt::Debug for Handle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Handle(…)")
    }
}

impl Serialize for Handle {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&base64url(&self.0))
    }
}

impl<'de> Deserialize<'de> for Handle {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        let bytes = from_base64url(&text).and_then(|bytes| Handle::from_slice(&bytes));
        bytes.ok_or_else(|| serde::de::Error::custom("a handle is 32 bytes in base64url"))
    }
}

/// Compares two byte strings in constant time (for equal lengths).
pub fn same(a: &[u8], b: &[u8]) -> bool {
    a.ct_eq(b).into()
}

/// Base64url without padding (RFC 4648 §5).
pub fn base64url(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

/// Decodes canonical base64url without padding; non-zero trailing bits, padding and white space are refused.
pub fn from_base64url(text: &str) -> Option<Vec<u8>> {
    URL_SAFE_NO_PAD.decode(text).ok()
}

/// Writes two lower-case digits for each byte, as people compare bytes.
pub fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Reads what [`hexadecimal`] wrote, in upper case too; `None` for anything else.
pub(crate) fn from_hexadecimal(text: &str) -> Option<Vec<u8>> {
    let pairs = text.as_bytes().chunks(2);
    let pair = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    if !text.len().is_multiple_of(2) || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    pairs.map(pair).collect()
}

/// HMAC-SHA-256 of `parts`, each preceded by its length, so that no two lists give the same input.
pub fn mac(key: &[u8], parts: &[&[u8]]) -> [u8; 32] {
    use hmac::{Hmac, KeyInit, Mac};
    let mut mac = <Hmac<Sha256> as KeyInit>::new_from_slice(key).unwrap_or_else(|_| unreachable!("HMAC takes any key"));
    for part in parts {
        mac.update(&(part.len() as u64).to_be_bytes());
        mac.update(part);
    }
    mac.finalize().into_bytes().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compiles as long as the memory of these is cleared when they are dropped.
    #[test]
    fn what_opens_something_is_wiped() {
        use zeroize::ZeroizeOnDrop;
        fn wiped<T: ZeroizeOnDrop>(_: &T) {}
        wiped(&Secret::new("").0);
        wiped(&crate::oauth::family::Sealing { tag: [0; 32], grace: [0; 32] });
        wiped(&crate::oauth::params::Params::default());
    }

    #[test]
    fn a_log_shows_no_password_and_no_hash_of_one() {
        // Red where one of these derives Debug over a text that passwords can be guessed from.
        use crate::decision::{Change, Standing};
        use crate::ending::Ending;
        use crate::oauth::params::Params;
        use crate::time::Time;
        const MARK: &str = "gorse-violet-anvil";
        let seen = || Some(PasswordHash::from(MARK));
        let (user, at) = (|| "ada".into(), Time(0));
        let pairs =
            ["password", "client_secret", "code", "refresh_token"].map(|name| (name.to_owned(), MARK.to_owned()));
        let params = Params::parse(pairs.to_vec()).unwrap();
        let standing = Standing { password: seen().map(|hash| (user(), hash)), ..Standing::default() };
        let printed = [
            format!("{:?} {:#?}", Secret::new(MARK), seen()),
            format!("{standing:?} {:?}", Change::Stands(standing.clone())),
            format!("{:?}", Change::SetPassword { user: user(), seen: seen(), password: MARK.into(), at }),
            format!("{:?}", Ending::Password { user: user(), seen: seen(), password: MARK.into(), at }),
            format!("{params:?} {:?}", params.clone().without_passwords()),
        ];
        assert!(printed.iter().all(|text| !text.contains(MARK)), "{printed:?}");
        assert_eq!(format!("{params:?}"), r#"Params["password", "client_secret", "code", "refresh_token"]"#);
        assert_eq!(params.without_passwords().pairs().len(), 3);
    }

    #[test]
    fn hexadecimal_reads_back() {
        assert_eq!(from_hexadecimal(&hexadecimal(&[0, 255, 16])), Some(vec![0, 255, 16]));
        for bad in ["0", "0g", "+1", "é"] {
            assert_eq!(from_hexadecimal(bad), None);
        }
    }

    /// Compiles as long as only one of the two impls applies: for a type with `==`, both would.
    #[test]
    fn sr_04_a_secret_has_no_equality_of_its_own() {
        trait Apart<Why> {
            fn apart() {}
        }
        struct Compared;
        impl<T: ?Sized> Apart<()> for T {}
        impl<T: ?Sized + PartialEq> Apart<Compared> for T {}
        <Secret as Apart<_>>::apart();
    }
}
