//! LDAP's userPassword (RFC 2307, OpenLDAP's schemes): `{SCHEME}` in any case, then the fields of the scheme.
//!
//! ```text
//! {PBKDF2-SHA256}10000$SALT$KEY             adapted base64; {PBKDF2} is SHA-1
//! {PBKDF2_SHA256}BASE64                     389 Directory Server: iterations(4, big-endian), salt(64), key(256)
//! {CRYPT}$6$…                               SHA-crypt ($5$ too), bcrypt and scrypt ($7$) of crypt(3)
//! {SHA512-CRYPT}$6$…                        Dovecot; {SHA256-CRYPT} too
//! {BCRYPT}$2y$10$…                          {BLF-CRYPT} too
//! {ARGON2}$argon2id$…                       {ARGON2I} and {ARGON2ID} too
//! {SSHA}, {SHA}, {SMD5}, {MD5}, {SSHA256} … fast: stored only wrapped
//! ```
//!
//! Spring Security's `DelegatingPasswordEncoder` writes a name in braces, too. Its bcrypt and Argon2 are those above;
//! its other schemes are refused by name.

use zeroize::Zeroizing;

use super::{
    Digest, FAST, ParseError, Recipe, argon2, bcrypt, import::Fast, pbkdf2, refused, scrypt, sha_crypt, text,
    wrapped::Salted,
};

const SCHEME: ParseError = ParseError::Unsupported("an unknown scheme of LDAP");
const SPRING: ParseError = ParseError::Unsupported(
    "an unknown scheme of Spring Security or LDAP: of Spring's, only bcrypt and argon2 are known",
);
const CLEAR: ParseError =
    ParseError::Unsupported("a password in the clear, not a hash ({noop} of Spring Security, {CLEARTEXT} of LDAP)");

/// Schemes that Spring Security has and LDAP does not.
const OF_SPRING: [&str; 7] =
    ["LDAP", "MD4", "SHA-1", "SHA-256", "SCRYPT", "SCRYPT@SPRINGSECURITY_V5_8", "PBKDF2@SPRINGSECURITY_V5_8"];

/// The schemes that are fast digests, with and without a salt after the password.
const DIGESTS: [(&str, Digest, bool); 10] = [
    ("MD5", Digest::Md5, false),
    ("SMD5", Digest::Md5, true),
    ("SHA", Digest::Sha1, false),
    ("SSHA", Digest::Sha1, true),
    ("SHA256", Digest::Sha256, false),
    ("SSHA256", Digest::Sha256, true),
    ("SHA384", Digest::Sha384, false),
    ("SSHA384", Digest::Sha384, true),
    ("SHA512", Digest::Sha512, false),
    ("SSHA512", Digest::Sha512, true),
];

pub(super) fn read(text: &str) -> Result<Recipe, ParseError> {
    let (scheme, rest) = split(text)?;
    match scheme.as_str() {
        "PBKDF2" | "PBKDF2-SHA1" => pbkdf2(Digest::Sha1, rest),
        "PBKDF2-SHA256" => pbkdf2(Digest::Sha256, rest),
        "PBKDF2-SHA512" => pbkdf2(Digest::Sha512, rest),
        "PBKDF2_SHA256" => directory_server(rest),
        "CRYPT" | "SHA256-CRYPT" | "SHA512-CRYPT" | "MD5-CRYPT" => crypt(rest),
        "BCRYPT" | "BLF-CRYPT" => bcrypt::read(rest),
        "ARGON2" | "ARGON2I" | "ARGON2ID" | "ARGON2@SPRINGSECURITY_V5_8" => argon2::read(rest),
        "NOOP" | "CLEARTEXT" | "CLEAR" | "PLAIN" | "PLAINTEXT" => Err(CLEAR),
        _ if digest(&scheme).is_some() => Err(FAST),
        _ => Err(SCHEME),
    }
}

/// Reads what crypt(3) stores.
fn crypt(text: &str) -> Result<Recipe, ParseError> {
    match text.split('$').nth(1) {
        Some("5" | "6") => sha_crypt::read(text),
        Some("7") => scrypt::read_crypt(text),
        Some(name) if name.starts_with('2') => bcrypt::read(text),
        _ => {
            let why = refused::by_name(text).unwrap_or("{CRYPT} of anything but SHA-crypt, bcrypt and scrypt");
            Err(ParseError::Unsupported(why))
        }
    }
}

/// Reads one padded base64 blob of fixed lengths.
fn directory_server(text: &str) -> Result<Recipe, ParseError> {
    const MALFORMED: ParseError = ParseError::Malformed("{PBKDF2_SHA256} needs 4, 64 and 256 bytes in padded base64");
    let blob = text::padded(text)?;
    let (iterations, rest) = blob.split_first_chunk().ok_or(MALFORMED)?;
    match rest.split_at_checked(64) {
        Some((salt, key)) if key.len() == 256 => {
            pbkdf2::recipe(Digest::Sha256, u32::from_be_bytes(*iterations), salt.to_vec(), key.to_vec())
        }
        _ => Err(MALFORMED),
    }
}

/// Reads a fast digest. `None` when the text is something else.
pub(super) fn fast(text: &str) -> Option<Result<Fast, ParseError>> {
    let (scheme, rest) = split(text).ok()?;
    let (digest, salted) = digest(&scheme)?;
    Some(text::padded(rest).map(Zeroizing::new).and_then(|both| {
        match (both.split_at_checked(digest.bytes()), salted) {
            (Some((value, salt @ [_, ..])), true) => Fast::new(digest, Salted::After(salt.to_vec()), value),
            (Some((value, [])), false) => Fast::new(digest, Salted::Not, value),
            _ => Err(ParseError::Malformed("the digest has the wrong length")),
        }
    }))
}

fn digest(scheme: &str) -> Option<(Digest, bool)> {
    DIGESTS.iter().find(|(name, ..)| *name == scheme).map(|&(_, digest, salted)| (digest, salted))
}

fn split(text: &str) -> Result<(String, &str), ParseError> {
    let (scheme, rest) = text.strip_prefix('{').and_then(|text| text.split_once('}')).ok_or(SCHEME)?;
    let scheme = scheme.to_ascii_uppercase();
    match OF_SPRING.contains(&scheme.as_str()) || is_springs_own(&scheme, rest) {
        true => Err(SPRING),
        false => Ok((scheme, rest)),
    }
}

/// For names that both have: Spring Security writes hexadecimal, or a salt in braces first, LDAP base64 or fields.
fn is_springs_own(scheme: &str, rest: &str) -> bool {
    let hexadecimal = !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_hexdigit());
    matches!(scheme, "MD5" | "SHA256" | "PBKDF2") && (hexadecimal || rest.starts_with('{'))
}

/// Whether a name follows the brace at once. In JSON a quote does, or, in near-JSON, a name before a colon or blank.
pub(super) fn is_scheme(text: &str) -> bool {
    let named = |letter: char| letter.is_ascii_alphanumeric() || "-_.@+/".contains(letter);
    let Some(text) = text.strip_prefix('{') else { return false };
    let rest = text.trim_start_matches(named);
    rest.len() < text.len() && !rest.starts_with([':', ' ', '\t', '\r', '\n'])
}

fn pbkdf2(digest: Digest, text: &str) -> Result<Recipe, ParseError> {
    let [iterations, salt, key] = text::fields(text, '$')?;
    // OpenLDAP and passlib write adapted base64, 389 Directory Server writes the standard one with padding.
    let bytes = |field: &str| text::any_base64(&field.replace('.', "+"));
    pbkdf2::recipe(digest, text::number(iterations)?, bytes(salt)?, bytes(key)?)
}
