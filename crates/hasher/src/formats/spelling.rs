//! What PHP programs make of a password before they hash it.

use zeroize::Zeroizing;

/// Trims as PHP's `trim` does, which WordPress and Drupal apply to a typed password.
pub(super) fn trimmed(password: &[u8]) -> &[u8] {
    let kept = |byte: &u8| !b" \t\n\r\0\x0B".contains(byte);
    let first = password.iter().position(kept).unwrap_or(password.len());
    let end = password.iter().rposition(kept).map_or(first, |last| last + 1);
    &password[first..end]
}

/// Whether the typed text is the password for sure: nothing was trimmed, no backslash may have been put in, and there
/// is no NUL, for which a backslash and a zero may have been put in.
pub(super) fn is_plain(password: &[u8]) -> bool {
    !password.iter().any(|byte| b"\\\0".contains(byte)) && is_trimmed(password)
}

/// Whether trimming changes nothing.
pub(super) fn is_trimmed(password: &[u8]) -> bool {
    trimmed(password).len() == password.len()
}

/// Most other spellings for phpass.
pub(super) const OF_PHPASS: usize = 4;

/// WordPress hashes what PHP's `addslashes` makes of a form, unless it unslashes it again. The format itself trims.
pub(super) fn of_wordpress(password: &[u8]) -> Vec<Zeroizing<Vec<u8>>> {
    others(password, [slashed(password)])
}

/// Drupal hashes what is left of a form's password (`PasswordConfirm`, and Drupal 7 and 6 before it). What a program
/// sets there by itself is not trimmed, so the typed text is right, too.
pub(super) fn of_drupal(password: &[u8]) -> Vec<Zeroizing<Vec<u8>>> {
    others(password, [Zeroizing::new(trimmed(password).to_vec())])
}

/// Nobody knows which program made a `$P$` or `$H$`: WordPress trims and adds slashes, phpBB escapes HTML
/// (`htmlspecialchars` with `ENT_COMPAT`) and trimmed in its early versions, and others hash what is typed.
pub(super) fn of_phpass(password: &[u8]) -> Vec<Zeroizing<Vec<u8>>> {
    let bare = trimmed(password);
    let all: [_; OF_PHPASS] = [slashed(bare), Zeroizing::new(bare.to_vec()), escaped(password), escaped(bare)];
    others(password, all)
}

/// The spellings that differ from the password and from each other.
fn others<const N: usize>(password: &[u8], all: [Zeroizing<Vec<u8>>; N]) -> Vec<Zeroizing<Vec<u8>>> {
    let mut differ: Vec<Zeroizing<Vec<u8>>> = Vec::with_capacity(N);
    for one in all {
        if **one != *password && !differ.contains(&one) {
            differ.push(one);
        }
    }
    differ
}

fn slashed(password: &[u8]) -> Zeroizing<Vec<u8>> {
    replaced(password, |byte| match byte {
        b'\'' => Some(b"\\'"),
        b'"' => Some(b"\\\""),
        b'\\' => Some(b"\\\\"),
        0 => Some(b"\\0"),
        _ => None,
    })
}

fn escaped(password: &[u8]) -> Zeroizing<Vec<u8>> {
    replaced(password, |byte| match byte {
        b'&' => Some(b"&amp;"),
        b'<' => Some(b"&lt;"),
        b'>' => Some(b"&gt;"),
        b'"' => Some(b"&quot;"),
        _ => None,
    })
}

/// Of its final size at once: a buffer that grows leaves copies behind.
fn replaced(password: &[u8], by: impl Fn(u8) -> Option<&'static [u8]>) -> Zeroizing<Vec<u8>> {
    let bytes = password.iter().map(|byte| by(*byte).map_or(1, <[u8]>::len)).sum();
    let mut text = Zeroizing::new(Vec::with_capacity(bytes));
    for byte in password {
        match by(*byte) {
            Some(other) => text.extend_from_slice(other),
            None => text.push(*byte),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(all: &[Zeroizing<Vec<u8>>]) -> Vec<&str> {
        all.iter().map(|one| std::str::from_utf8(one).unwrap()).collect()
    }

    #[test]
    fn only_what_differs_is_tried() {
        assert!(of_wordpress(b"plain").is_empty() && of_phpass(b"plain").is_empty() && of_drupal(b"plain").is_empty());
        assert!(of_drupal(br#"it's "so" \ <b> &c"#).is_empty(), "it only trims");
        assert_eq!(texts(&of_drupal(b" \t\n\r\0\x0Bin the middle \0")), ["in the middle"]);
        assert!(of_drupal("\u{a0}\u{c}form feed and others\u{a0}".as_bytes()).is_empty(), "PHP leaves these");
        assert_eq!(texts(&of_wordpress(br#"it's "so" \"#)), [r#"it\'s \"so\" \\"#]);
        assert_eq!(texts(&of_phpass(b" it's ")), [r"it\'s", "it's"]);
        assert_eq!(texts(&of_phpass(b"a&b<c>")), ["a&amp;b&lt;c&gt;"]);
        assert_eq!(texts(&of_phpass(b"a&b ")), ["a&b", "a&amp;b ", "a&amp;b"]);
        assert_eq!(texts(&of_phpass(br#"say "a""#)), [r#"say \"a\""#, "say &quot;a&quot;"]);
    }
}
