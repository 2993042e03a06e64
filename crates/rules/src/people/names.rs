//! Login names. Usernames and e-mail addresses share one namespace and one folding, so that no spelling of a name is a
//! second account, or a fresh count of wrong guesses.

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;
use unicode_script::{Script, UnicodeScript};

/// The longest login, typed or folded, in bytes: as much as an index of any database holds.
const MAX_LOGIN: usize = 255;
/// The longest username, in characters.
const MAX_USERNAME: usize = 64;
/// RFC 5321 §4.5.3.1: the longest address and local part, in bytes; RFC 1035 §2.3.4: the longest label.
const MAX_EMAIL: usize = 254;
const MAX_LOCAL: usize = 64;
const MAX_LABEL: usize = 63;

/// Scripts that are written together: in Japanese, Chinese and Korean.
const TOGETHER: [&[Script]; 3] = [
    &[Script::Latin, Script::Han, Script::Hiragana, Script::Katakana],
    &[Script::Latin, Script::Han, Script::Bopomofo],
    &[Script::Latin, Script::Han, Script::Hangul],
];

/// A login as it is compared, stored and counted: the same for every spelling of the same name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LoginKey(String);

impl LoginKey {
    /// Folds a typed login. `None` when nobody can have that name: it is empty, over 255 bytes, has white space inside,
    /// or has control, bidirectional, invisible or unassignable characters.
    pub fn of(text: &str) -> Option<Self> {
        let text = text.trim();
        if text.len() > MAX_LOGIN {
            return None;
        }
        let key = fold(text);
        let fits = !key.is_empty() && key.len() <= MAX_LOGIN && key.chars().all(is_visible);
        fits.then_some(LoginKey(key))
    }
    /// The folded text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Why a username or an e-mail address is not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadName {
    /// Nothing but white space.
    Empty,
    /// Over 64 characters for a username, 254 bytes for an address.
    TooLong,
    /// A character that a name may not have.
    Character,
    /// An address that is not `local@domain`; a username that a command line would take for something else.
    Form,
    /// A username that an operator would take for an id.
    Id,
}

/// A username as its owner writes it, and its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Username {
    written: String,
    key: LoginKey,
}

impl Username {
    /// Accepts 1 to 64 visible characters without white space and without `@`, which belongs to addresses.
    ///
    /// Operators give a username or an id in the same place, so no spelling of a username is an id; and none begins
    /// with a hyphen, as flags do. Names that were taken before this rule remain in use.
    pub fn parse(text: &str) -> Result<Self, BadName> {
        let text = text.trim();
        if text.is_empty() {
            return Err(BadName::Empty);
        }
        if text.len() > MAX_LOGIN {
            return Err(BadName::TooLong);
        }
        let written: String = text.nfc().collect();
        if written.chars().count() > MAX_USERNAME {
            return Err(BadName::TooLong);
        }
        // On the folded form: a full-width '＠' is an '@' too.
        let key = LoginKey::of(&written).filter(|key| !key.0.contains('@')).ok_or(BadName::Character)?;
        // RFC 5891 §4.2.3.2: it would be drawn over whatever stands before the name.
        if [&written, &key.0].iter().any(|text| text.starts_with(is_combining_mark)) {
            return Err(BadName::Character);
        }
        if key.0.starts_with('-') {
            return Err(BadName::Form);
        }
        if folds_an_id(&key.0) {
            return Err(BadName::Id);
        }
        Ok(Username { written, key })
    }
    /// As its owner writes it (NFC).
    pub fn as_str(&self) -> &str {
        &self.written
    }
    /// Whether it has letters of several scripts that no language writes together, such as a Greek iota among Latin
    /// letters: the usual way to look like somebody else. By Unicode Technical Standard 39, §5.2, "highly restrictive".
    pub fn mixes_scripts(&self) -> bool {
        let of_all = [Script::Common, Script::Inherited];
        let scripts: Vec<Script> =
            self.written.chars().map(|letter| letter.script()).filter(|script| !of_all.contains(script)).collect();
        let one = scripts.windows(2).all(|pair| pair[0] == pair[1]);
        !one && !TOGETHER.iter().any(|together| scripts.iter().all(|script| together.contains(script)))
    }
    /// Its key, by which it is compared.
    pub fn key(&self) -> &LoginKey {
        &self.key
    }
}

/// An e-mail address as typed, and its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Email {
    typed: String,
    at: usize,
    key: LoginKey,
}

impl Email {
    /// Accepts the addresses that mail systems really carry: RFC 5321's `Dot-string "@" Domain` in ASCII.
    ///
    /// Not accepted: quoted local parts, comments, address literals, a trailing dot, Unicode (internationalised domains
    /// come as `xn--` labels), and `%` and `!` in the local part, by which old relays are given another destination.
    pub fn parse(text: &str) -> Result<Self, BadName> {
        let text = text.trim();
        if text.is_empty() {
            return Err(BadName::Empty);
        }
        if text.len() > MAX_EMAIL {
            return Err(BadName::TooLong);
        }
        if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(BadName::Character);
        }
        let (local, domain) = text.split_once('@').ok_or(BadName::Form)?;
        if !is_dot_string(local) || !is_domain(domain) {
            return Err(BadName::Form);
        }
        let key = LoginKey::of(text).ok_or(BadName::Character)?;
        Ok(Email { typed: text.to_owned(), at: local.len(), key })
    }
    /// As typed.
    pub fn as_str(&self) -> &str {
        &self.typed
    }
    /// The part before the `@`.
    pub fn local(&self) -> &str {
        &self.typed[..self.at]
    }
    /// The part after the `@`.
    pub fn domain(&self) -> &str {
        &self.typed[self.at + 1..]
    }
    /// Its key, by which it is compared, local part included: no mail system of today tells `Bob@` from `bob@`.
    pub fn key(&self) -> &LoginKey {
        &self.key
    }
}

/// Whether `key` is what an account's id ([`Fresh::user`](crate::Fresh::user)) folds to: base64url of 128 bits, whose
/// last character holds two of them.
fn folds_an_id(key: &str) -> bool {
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
    key.len() == 22 && key.bytes().all(is_letter) && key.ends_with(['a', 'q', 'g', 'w'])
}

/// RFC 5322 §3.2.3 `dot-atom-text`, without `%` and `!`.
fn is_dot_string(local: &str) -> bool {
    let is_atext = |byte: u8| byte.is_ascii_alphanumeric() || b"#$&'*+-/=?^_`{|}~".contains(&byte);
    local.len() <= MAX_LOCAL && local.split('.').all(|atom| !atom.is_empty() && atom.bytes().all(is_atext))
}

/// RFC 1123 §2.1: labels of letters, digits and inner hyphens, the last one not a number, as in an IP address.
fn is_domain(domain: &str) -> bool {
    let is_label = |label: &str| {
        (1..=MAX_LABEL).contains(&label.len())
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    let last = domain.rsplit('.').next().unwrap_or(domain);
    domain.split('.').all(is_label) && !last.bytes().all(|byte| byte.is_ascii_digit())
}

/// Makes one text of all spellings: compatibility forms (NFKC), and case both ways, which is full case folding and also
/// takes a dotless `ı` for an `i`. Folding twice changes nothing.
pub(crate) fn fold(text: &str) -> String {
    let mut folded = String::with_capacity(text.len());
    fold_into(text, &mut folded);
    folded
}

/// [`fold`], appended to `out`.
pub(crate) fn fold_into(text: &str, out: &mut String) {
    if text.is_ascii() {
        out.extend(text.chars().map(|c| c.to_ascii_lowercase()));
    } else {
        // Character by character: a string's own lower case would make a final sigma another letter.
        // Down, up and down again: 'ẞ' has no upper case other than itself, but its 'ß' has: 'SS'.
        let lower = text.nfkd().flat_map(char::to_lowercase);
        out.extend(lower.flat_map(char::to_uppercase).flat_map(char::to_lowercase).nfkc());
    }
}

/// Whether a text that others are shown as it stands, such as an application's name, is what it looks like: something
/// in it is visible, and nothing in it breaks the line or turns the direction of what follows (Unicode Standard Annex
/// 9: embeddings, overrides, isolates).
pub fn is_plain(text: &str) -> bool {
    let unruly = |c| matches!(c, '\u{2028}'..='\u{202E}' | '\u{2066}'..='\u{2069}');
    text.chars().any(is_visible) && !text.chars().any(|c| c.is_control() || unruly(c))
}

/// Whether a terminal obeys a character: controls (ECMA-48 5.2 and 5.3: of one byte, or of U+0080 to U+009F), and those
/// that turn the direction of what follows (UAX #9, 2.1 to 2.5).
pub fn drives(c: char) -> bool {
    c.is_control() || matches!(c, '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}')
}

/// Whether a reader sees the character, alone and where it stands.
pub(super) fn is_visible(c: char) -> bool {
    let hidden = match c {
        // Soft hyphen, joiners and fillers, variation selectors, marks and overrides of direction, tags.
        '\u{AD}' | '\u{34F}' | '\u{61C}' | '\u{115F}'..='\u{1160}' | '\u{17B4}'..='\u{17B5}' => true,
        '\u{180B}'..='\u{180F}' | '\u{200B}'..='\u{200F}' | '\u{202A}'..='\u{202E}' => true,
        '\u{2060}'..='\u{206F}' | '\u{2800}' | '\u{3164}' | '\u{FE00}'..='\u{FE0F}' => true,
        '\u{FEFF}' | '\u{FFA0}' | '\u{1BCA0}'..='\u{1BCA3}' | '\u{1D173}'..='\u{1D17A}' => true,
        '\u{E0000}'..='\u{E0FFF}' => true,
        // Signs that fonts draw as nothing: a filler, controls of hieroglyphs, a note without a head.
        '\u{16FE4}' | '\u{13430}'..='\u{1343F}' | '\u{1D159}' => true,
        // Specials, private use and noncharacters: there is no agreement on what they look like.
        '\u{FFF0}'..='\u{FFFF}' | '\u{E000}'..='\u{F8FF}' | '\u{FDD0}'..='\u{FDEF}' | '\u{F0000}'.. => true,
        _ => u32::from(c) & 0xFFFE == 0xFFFE,
    };
    !hidden && !c.is_control() && !c.is_whitespace()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn key(text: &str) -> Option<String> {
        LoginKey::of(text).map(|key| key.0)
    }

    #[test]
    fn a_text_for_others_is_what_it_looks_like() {
        for good in [
            "Ada",
            "Ada Lovelace",
            " \u{200B}x",
            "\u{5D0}\u{5D1}\u{200F}",
            "\u{645}\u{6CC}\u{200C}\u{62E}",
            "<b>",
            "\u{1F600}",
        ] {
            assert!(is_plain(good), "{good:?}");
        }
        for bad in [
            "",
            " ",
            "\u{200B}",
            "\u{FEFF}",
            "\u{3164}",
            "\u{1D159}",
            "a\nb",
            "a\u{1B}[2J",
            "a\u{85}b",
            "a\u{2028}b",
            "\u{202E}ada",
            "a\u{2066}b",
        ] {
            assert!(!is_plain(bad), "{bad:?}");
        }
    }

    /// BF-01: variants of case, space and Unicode are the same account and the same counter.
    #[test]
    fn every_spelling_of_a_login_has_one_key() {
        for spelling in
            ["alice", "ALICE", " Alice\t", "\u{A0}alice\u{3000}", "ａｌｉｃｅ", "ＡＬＩＣＥ", "𝐚lice", "al\u{131}ce"]
        {
            assert_eq!(key(spelling).as_deref(), Some("alice"), "{spelling:?}");
        }
        for (one, other) in [
            ("straße", "STRASSE"),
            ("STRAẞE", "strasse"),
            ("\u{212A}elvin", "kelvin"),
            ("Å", "A\u{30A}"),
            ("\u{212B}", "å"),
            ("ὀδυσσεύς", "ὈΔΥΣΣΕΎΣ"),
            ("ﬁnn", "FINN"),
            ("ſam", "sam"),
            ("İ", "i\u{307}"),
            ("ﾊﾝ", "ハン"),
            ("Alice@Example.ORG", "alice@example.org"),
            ("ａlice＠example.org", "alice@example.org"),
            ("ᾳ", "ΑΙ"),
        ] {
            assert_eq!(key(one), key(other), "{one:?} {other:?}");
            assert!(key(one).is_some(), "{one:?}");
        }
        assert_ne!(key("alice"), key("аlice"), "a Cyrillic а is another letter");
    }

    #[test]
    fn what_nobody_can_see_is_in_nobodys_name() {
        for bad in [
            "",
            "  ",
            "al\0ice",
            "al\nice",
            "al ice",
            "al\u{200B}ice",
            "al\u{200D}ice",
            "\u{202E}alice",
            "al\u{2066}ice",
            "\u{FEFF}alice",
            "al\u{AD}ice",
            "alice\u{FE0F}",
            "al\u{FFA0}ice",
            "al\u{E0041}ice",
            "al\u{E000}ice",
            "al\u{FFFD}ice",
            "al\u{85}ice",
            "al\u{2028}ice",
            "al\u{1FFFE}ice",
            "¨alice",
            "al\u{7F}ice",
        ] {
            assert_eq!(key(bad), None, "{bad:?}");
            assert!(Username::parse(bad).is_err(), "{bad:?}");
        }
        assert_eq!(key(&"a".repeat(256)), None);
        assert_eq!(key(&"\u{FDFA}".repeat(16)), None, "sixteen ligatures fold to more than 255 bytes or hold spaces");
        assert!(key(&"a".repeat(255)).is_some());
    }

    #[test]
    fn folding_every_character_twice_is_folding_it_once() {
        for c in (0..=u32::from(char::MAX)).filter_map(char::from_u32) {
            let once = fold(c.encode_utf8(&mut [0; 4]));
            assert_eq!(fold(&once), once, "U+{:04X}", u32::from(c));
        }
    }

    proptest! {
        #[test]
        fn folding_any_text_twice_is_folding_it_once(text in "\\PC{0,24}") {
            let once = fold(&text);
            prop_assert_eq!(fold(&once), once);
        }

        #[test]
        fn a_key_is_its_own_key(text in any::<String>()) {
            if let Some(key) = LoginKey::of(&text) {
                prop_assert_eq!(LoginKey::of(key.as_str()), Some(key));
            }
        }

        #[test]
        fn an_address_is_its_two_parts(text in "[a-zA-Z0-9.@%!\"\\\\ -]{0,40}") {
            if let Ok(email) = Email::parse(&text) {
                prop_assert_eq!(format!("{}@{}", email.local(), email.domain()), text.trim());
                prop_assert_eq!(text.matches('@').count(), 1);
            }
        }
    }

    #[test]
    fn usernames_are_words() {
        let name = Username::parse("  Rene\u{301}e.O'Neill-3 ").unwrap();
        assert_eq!((name.as_str(), name.key().as_str()), ("Renée.O'Neill-3", "renée.o'neill-3"));
        assert!(Username::parse(&"ß".repeat(64)).is_ok());
        assert_eq!(Username::parse(&"a".repeat(65)), Err(BadName::TooLong));
        assert_eq!(Username::parse(&"a".repeat(1 << 20)), Err(BadName::TooLong));
        assert_eq!(Username::parse("a@b"), Err(BadName::Character));
        assert_eq!(Username::parse("a＠b"), Err(BadName::Character));
        // Marks that combine with the character before them, also after folding (U+FF9E).
        for mark in ['\u{301}', '\u{20E3}', '\u{345}', '\u{903}', '\u{FF9E}'] {
            assert_eq!(Username::parse(&format!("{mark}a")), Err(BadName::Character), "{mark:?}");
            assert!(Username::parse(&format!("a{mark}")).is_ok(), "{mark:?}");
        }
        assert_eq!(Username::parse(" \u{3000}"), Err(BadName::Empty));
    }

    /// A decoy whose name is somebody else's id would be disabled, removed or made an admin in their place.
    #[test]
    fn no_username_is_an_id_or_a_flag() {
        for round in 0..64 {
            let id = crate::Fresh::new([round; 32]).user().0;
            let wide: String = id.chars().map(|c| char::from_u32(u32::from(c) + 0xFEE0).unwrap()).collect();
            for spelling in [id.clone(), id.to_uppercase(), format!(" {id} "), wide] {
                assert_eq!(Username::parse(&spelling), Err(BadName::Id), "{spelling}");
            }
        }
        for flag in ["-", "-rf", "--help", "\u{FF0D}rf"] {
            assert_eq!(Username::parse(flag), Err(BadName::Form), "{flag}");
        }
        for name in ["christopher-montgomery", "a-b", "_-_", "abcdefghijklmnopqrstu", "abcdefghijklmnopqrstuva"] {
            assert!(Username::parse(name).is_ok(), "{name}");
        }
    }

    /// AL-05: the domain that is checked is the domain that mail goes to.
    #[test]
    fn addresses_have_one_reading() {
        for good in
            ["a@b.c", "Alice.Smith+tag@Example.org", "o'neill@xn--bcher-kva.example", "root@localhost", "_-_@a-b.c1"]
        {
            assert_eq!(Email::parse(good).map(|email| email.as_str().to_owned()), Ok(good.to_owned()));
        }
        let email = Email::parse(" Bob@Mail.Example ").unwrap();
        assert_eq!((email.local(), email.domain(), email.key().as_str()), ("Bob", "Mail.Example", "bob@mail.example"));
        for bad in [
            "",
            "alice",
            "a@good@evil",
            "a@b@c@d",
            "@b.c",
            "a@",
            "\"a@good\"@evil.org",
            "\"a\"@b.c",
            "a b@c.d",
            "a@b .c",
            "a@b.c.",
            "a@.b.c",
            "a@b..c",
            ".a@b.c",
            "a.@b.c",
            "a..b@c.d",
            "a@-b.c",
            "a@b-.c",
            "a@[127.0.0.1]",
            "a@127.0.0.1",
            "a\0@b.c",
            "a@b.c\0",
            "a%00@b.c",
            "a%evil.org@good.org",
            "evil!a@good.org",
            "a@bücher.example",
            "ä@b.c",
            "a＠b.c",
            "a@b_c.d",
            "a@b.c\r\nBcc: d@e.f",
            "<a@b.c>",
            "a(b)@c.d",
            "a@good.org,b@evil.org",
            "a@b.c;d",
            "a\u{200B}@b.c",
            "a@b.ｃ",
        ] {
            assert!(Email::parse(bad).is_err(), "{bad:?}");
        }
        assert!(Email::parse(&format!("{}@b.c", "a".repeat(64))).is_ok());
        assert!(Email::parse(&format!("{}@b.c", "a".repeat(65))).is_err());
        assert!(Email::parse(&format!("a@{}.c", "b".repeat(64))).is_err());
        assert_eq!(Email::parse(&format!("a@{}c", "b.".repeat(126))), Err(BadName::TooLong));
    }

    #[test]
    fn scripts_that_no_language_writes_together_are_noticed() {
        let mixes = |name: &str| Username::parse(name).unwrap().mixes_scripts();
        for plain in
            ["victim", "zoë.müller-7", "виктор", "νίκος_1", "山田taro", "ヤマダたろう", "김철수kim", "42", "ada🙂"]
        {
            assert!(!mixes(plain), "{plain}");
        }
        for mixed in ["v\u{456}ctim", "v\u{3b9}ctim", "виkтор", "\u{430}da", "김たろう", "adaאבג"] {
            assert!(mixes(mixed), "{mixed}");
        }
    }
}
