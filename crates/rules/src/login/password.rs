//! Which passwords are accepted: long enough, not guessed first, not the person's own name (NIST SP 800-63B §3.1.1.2).
//! There are no composition rules.

use crate::people::names::{fold, fold_into};
use std::cmp::Ordering;
use unicode_normalization::UnicodeNormalization;
use zeroize::Zeroizing;

/// The longest password, in bytes, as typed and after normalization: long enough for any passphrase, short enough that
/// hashing one costs no more than another.
pub const MAX_BYTES: usize = 1024;
/// The longest name that a password is compared with, in bytes.
const LONGEST_NAME: usize = 320;

/// Parts of names with fewer characters occur in too many words to mean anything.
const SHORTEST_NAME: usize = 3;
/// One folded password per line, sorted by bytes. See COMMON_PASSWORDS.md.
const COMMON: &str = include_str!("common_passwords.txt");

/// A password as it is hashed: UTF-8, in NFC, so that every keyboard spells it alike. It does not print, and is wiped
/// when dropped.
pub struct Password(Zeroizing<String>);

impl Password {
    /// Reads what was typed, to check it against a hash or to judge it as a new one. NUL is a character like any other.
    /// Fails with [`Weak::TooLong`] before anything else looks at it, and with [`Weak::NotText`] when it is not UTF-8.
    pub fn read(typed: &[u8]) -> Result<Self, Weak> {
        if typed.len() > MAX_BYTES {
            return Err(Weak::TooLong);
        }
        let text = std::str::from_utf8(typed).map_err(|_| Weak::NotText)?;
        // NFC makes UTF-8 at most three times as long; with room for that, no copy is left behind unwiped.
        let mut normal = Zeroizing::new(String::with_capacity(text.len() * 3));
        normal.extend(text.nfc());
        if normal.len() > MAX_BYTES { Err(Weak::TooLong) } else { Ok(Password(normal)) }
    }
    /// Returns the bytes to hash.
    pub fn as_bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

/// A new password that passed the rules. Only [`judge`] makes one.
pub struct Acceptable(Password);

impl Acceptable {
    /// Returns the bytes to hash.
    pub fn as_bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

/// Why a password is not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weak {
    /// Fewer characters (Unicode code points) than `min`.
    TooShort {
        /// The least number of characters.
        min: usize,
    },
    /// More than [`MAX_BYTES`].
    TooLong,
    /// Among the passwords that everybody tries first.
    Common,
    /// Made of the user's own names, or of those of the realm or the product.
    Personal,
    /// Not UTF-8.
    NotText,
}

/// The criteria by which a new password is judged.
#[derive(Clone, Copy, Debug)]
pub struct Policy<'a> {
    /// The least number of characters: 8, or 15 where the password is the only factor and the operator follows NIST.
    pub min_length: usize,
    /// The user's names ([`User::names`](crate::people::User::names)), and the names of the realm and the product.
    pub names: &'a [&'a str],
}

/// Judges a new password.
pub fn judge(password: Password, policy: &Policy<'_>) -> Result<Acceptable, Weak> {
    let Policy { min_length: min, names } = *policy;
    if password.0.chars().count() < min {
        return Err(Weak::TooShort { min });
    }
    // Folding makes text at most some eleven times as long; in practice it adds nothing.
    let room = if password.0.is_ascii() { password.0.len() } else { password.0.len() * 12 };
    let mut folded = Zeroizing::new(String::with_capacity(room));
    fold_into(&password.0, &mut folded);
    let bare = folded.trim();
    let white = bare.is_empty() && !folded.is_empty();
    if white || is_common(bare) {
        return Err(Weak::Common);
    }
    // Text that is longer than any name cannot be one, and would take long to compare.
    let names: Vec<&str> = names.iter().copied().filter(|name| name.len() <= LONGEST_NAME).collect();
    if is_personal(&folded, &names) {
        return Err(Weak::Personal);
    }
    Ok(Acceptable(password))
}

/// Binary search among the lines of [`COMMON`]: about sixteen comparisons, and no memory but the pages touched.
fn is_common(folded: &str) -> bool {
    let text = COMMON.as_bytes();
    let is_end = |byte: &u8| *byte == b'\n';
    // `low` and `high` are always at the start of a line, or at the end of the text.
    let (mut low, mut high) = (0, text.len());
    while low < high {
        let middle = low + (high - low) / 2;
        let start = text[low..middle].iter().rposition(is_end).map_or(low, |end| low + end + 1);
        let end = text[start..high].iter().position(is_end).map_or(high, |length| start + length);
        match text[start..end].cmp(folded.as_bytes()) {
            Ordering::Equal => return true,
            Ordering::Less => low = end + 1,
            Ordering::Greater => high = start,
        }
    }
    false
}

/// Whether names make up the whole password, or more than half of it, once digits and signs are set aside.
fn is_personal(folded: &str, names: &[&str]) -> bool {
    // By letters alone, "alice2024!" is "alice"; with digits, a name that is a number is found as well.
    [char::is_alphabetic as fn(char) -> bool, char::is_alphanumeric].into_iter().any(|kept| {
        let mut text = Zeroizing::new(String::with_capacity(folded.len()));
        text.extend(folded.chars().filter(|c| kept(*c)));
        let mut words = name_words(names, kept);
        if words.contains(&*text) {
            return true;
        }
        words.retain(|word| word.chars().count() >= SHORTEST_NAME);
        words.sort_by_key(|word| std::cmp::Reverse(word.len()));
        left_over(&text, &words) * 2 < text.chars().count()
    })
}

/// Returns everything that counts as a name: each name as a whole, an address also without its domain, and their words.
fn name_words(names: &[&str], kept: fn(char) -> bool) -> Vec<String> {
    let mut words = Vec::new();
    for name in names {
        let folded = fold(name);
        let local = folded.rsplit_once('@').map_or(folded.as_str(), |(local, _)| local);
        let parts = local.split(|c: char| !c.is_alphanumeric());
        words.extend(parts.chain([local, &folded]).map(|part| part.chars().filter(|c| kept(*c)).collect::<String>()));
    }
    words.retain(|word| !word.is_empty());
    words
}

/// Returns how many characters of `text` are left when all of `words`, which are sorted longest first, are struck out.
fn left_over(mut text: &str, words: &[String]) -> usize {
    let mut left = 0;
    while let Some(first) = text.chars().next() {
        text = words.iter().find_map(|word| text.strip_prefix(word.as_str())).unwrap_or_else(|| {
            left += 1;
            &text[first.len_utf8()..]
        });
    }
    left
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const NAMES: &[&str] = &["alice", "a.smith@example.org", "Alice", "Smith-Bürger", "Portiere", "Acme Works"];

    fn verdict(typed: &str) -> Result<String, Weak> {
        verdict_with(typed, 8)
    }

    fn verdict_with(typed: &str, min_length: usize) -> Result<String, Weak> {
        judge(Password::read(typed.as_bytes())?, &Policy { min_length, names: NAMES })
            .map(|password| String::from_utf8(password.as_bytes().to_vec()).unwrap())
    }

    #[test]
    fn length_counts_characters_below_and_bytes_above() {
        assert_eq!(verdict("kb7#xq2"), Err(Weak::TooShort { min: 8 }));
        assert!(verdict("kb7#xq2w").is_ok());
        assert_eq!(verdict("日本語の鍵五六"), Err(Weak::TooShort { min: 8 }));
        assert!(verdict("日本語の鍵五六七").is_ok());
        assert_eq!(verdict_with("kb7#xq2wkb7#xq", 15), Err(Weak::TooShort { min: 15 }));
        assert!(verdict(&"a1".repeat(512)).is_ok());
        assert_eq!(verdict(&"x".repeat(1025)), Err(Weak::TooLong));
        assert_eq!(verdict_with("", 0), Ok(String::new()));
    }

    #[test]
    fn too_long_is_said_before_it_is_read() {
        assert!(matches!(Password::read(&[0xFF; 1025]), Err(Weak::TooLong)));
        assert!(matches!(Password::read(&[0xFF; 1024]), Err(Weak::NotText)));
        // U+0958 is excluded from composition: NFC doubles its length.
        assert!(matches!(Password::read("\u{958}".repeat(341).as_bytes()), Err(Weak::TooLong)));
    }

    #[test]
    fn every_keyboard_spells_it_alike() {
        assert_eq!(verdict("cafe\u{301} noir 77"), Ok("café noir 77".to_owned()));
        assert_eq!(verdict("nul\0in the middle"), Ok("nul\0in the middle".to_owned()), "NUL is a character");
        assert_eq!(verdict("  spaces are kept  "), Ok("  spaces are kept  ".to_owned()));
    }

    #[test]
    fn common_passwords_are_refused_in_any_case() {
        for common in
            ["password", "PassWord", "12345678", "ｐａｓｓｗｏｒｄ", " password ", "qwertyuiop", "Friend of Joan"]
        {
            assert_eq!(verdict(common), Err(Weak::Common), "{common}");
        }
        assert_eq!(verdict_with("пароль", 6), Err(Weak::Common));
        // Red without `white` in `judge`.
        for white in [" ".repeat(8), "\u{3000}".repeat(9), " \t\u{a0}\n\r\u{2003}  ".into()] {
            assert_eq!(verdict(&white), Err(Weak::Common), "{white:?}");
        }
        assert!(verdict("password\npassword").is_ok(), "a line break matches no two lines");
    }

    #[test]
    fn the_list_is_sorted_folded_long_and_found_whole() {
        let lines: Vec<&str> = COMMON.lines().collect();
        assert!(lines.len() >= 10_000);
        assert!(lines.is_sorted_by(|a, b| a < b));
        for line in lines {
            assert_eq!(fold(line), line);
            assert!(is_common(line), "{line}");
            assert!(!is_common(&format!("{line}\u{1}")));
        }
        for absent in ["", "\n", "\0", "\u{10FFFF}", "correct horse battery staple"] {
            assert!(!is_common(absent), "{absent:?}");
        }
    }

    #[test]
    fn ones_own_name_is_refused() {
        for own in [
            "Alice1234!",
            "alice-alice",
            "ALICE2024",
            "a.smith1990",
            "AliceSmith1",
            "smithalice!!",
            "a.smith@example.org",
            "Bürger!!1",
            "BU\u{308}RGER99",
            "portiere2026",
            "AcmeWorks#1",
            "works.acme.7",
            "aliceabc12",
            "ａｌｉｃｅ１２３４",
        ] {
            assert_eq!(verdict(own), Err(Weak::Personal), "{own}");
        }
        for other in ["alice in wonderland", "malicious chess 9", "wrought iron works", "correct horse battery staple"]
        {
            assert!(verdict(other).is_ok(), "{other}");
        }
        let number = Policy { min_length: 8, names: &["42424242", "", "李"] };
        let judged = |typed: &str| judge(Password::read(typed.as_bytes()).unwrap(), &number).err();
        assert_eq!(judged("4242-4242"), Some(Weak::Personal));
        assert_eq!(judged("李 1830-77"), Some(Weak::Personal));
        assert_eq!(judged("!?!?!?!?"), None, "no letters are no name");
        assert_eq!(judged("90517-60438"), None);
    }

    proptest! {
        #[test]
        fn reading_and_judging_never_panic(typed in proptest::collection::vec(any::<u8>(), 0..64), name in any::<String>()) {
            if let Ok(password) = Password::read(&typed) {
                let _ = judge(password, &Policy { min_length: 0, names: &[&name] });
            }
        }

        #[test]
        fn reading_twice_is_reading_once(typed in any::<String>()) {
            if let Ok(once) = Password::read(typed.as_bytes()) {
                let twice = Password::read(once.as_bytes()).unwrap_or_else(|_| panic!("longer than before"));
                prop_assert_eq!(once.as_bytes(), twice.as_bytes());
            }
        }
    }
}
