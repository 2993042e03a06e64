//! What a text is that is no hash which can be verified here, as far as it tells: whoever imports a thousand accounts
//! is to see at once what to change.

use super::{ldap, text};

/// What a text begins with, and why it is refused.
const BY_NAME: [(&str, &str); 8] = [
    ("$1$", "md5-crypt ($1$), a fast digest: let its owner choose a new password"),
    ("$apr1$", "Apache's md5-crypt ($apr1$), a fast digest: let its owner choose a new password"),
    ("$md5", "Sun's MD5 ($md5$), which is not known here: let its owner choose a new password"),
    ("$sha1$", "sha1-crypt ($sha1$), which is not known here: let its owner choose a new password"),
    ("$3$", "the NT hash ($3$), a fast digest: let its owner choose a new password"),
    ("$NT$", "the NT hash ($NT$), a fast digest: let its owner choose a new password"),
    ("$y$", "yescrypt ($y$), which is not known here: let its owner choose a new password"),
    ("$gy$", "gost-yescrypt ($gy$), which is not known here: let its owner choose a new password"),
];

/// The reason if the text names an algorithm that is known not to be supported.
pub(super) fn by_name(text: &str) -> Option<&'static str> {
    BY_NAME.iter().find(|(prefix, _)| text.starts_with(prefix)).map(|(_, why)| *why)
}

/// The reason if the text is more than a hash: a whole line of the file in which hashes are kept. It may begin with any
/// letter, as the hashes of some formats do.
pub(super) fn line(text: &str) -> Option<&'static str> {
    let (name, rest) = text.split_once(':')?;
    if name.eq_ignore_ascii_case("userPassword") {
        return Some("a line of LDIF: import its value alone, decoded from base64 if two colons stand before it");
    }
    let is_name = !name.is_empty() && !name.contains(['$', '{', ' ']);
    (is_name && rest.starts_with(['$', '!', '*']))
        .then_some("a whole line of /etc/shadow or .htpasswd: import only what stands between its first two colons")
}

/// The reason for any other text that begins like no hash.
pub(super) fn unknown(text: &str) -> &'static str {
    let is_hex = |text: &str| text.bytes().all(|byte| byte.is_ascii_hexdigit());
    match text.as_bytes() {
        [first, ..] if first.is_ascii_whitespace() => "begins with a blank",
        [b'*', ..] if text.len() == 41 && is_hex(&text[1..]) => {
            "MySQL's hash (mysql_native_password), a fast digest: let its owner choose a new password"
        }
        [b'!' | b'*', ..] if text.trim_start_matches(['!', '*']).starts_with('$') => {
            "the hash of a locked account: remove the ! or * in front of it"
        }
        [b'!' | b'*', ..] | b"x" => "no hash, but the mark of an account without a password",
        bytes if matches!(bytes.len(), 32 | 40 | 64 | 96 | 128) && is_hex(text) => {
            "a bare digest, which does not name its algorithm: import it as an object that does"
        }
        _ if is_encoded_ldap(text) => "base64 of an LDAP value: decode it first",
        _ => "unknown algorithm",
    }
}

/// Whether it is what two colons stand before in LDIF: base64 of a text that begins with a scheme in braces.
fn is_encoded_ldap(text: &str) -> bool {
    text::padded(text).is_ok_and(|bytes| std::str::from_utf8(&bytes).is_ok_and(ldap::is_scheme))
}
