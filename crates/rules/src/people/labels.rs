//! Names of groups and applications: text that people and programs tell apart by what they see of it.

use super::names::{is_plain, is_visible};
use unicode_normalization::UnicodeNormalization;
use unicode_script::{Script, UnicodeScript};

/// The longest name of a group, in bytes.
const LONGEST: usize = 200;

/// Scripts whose letters are drawn differently beside a joiner or a non-joiner (RFC 5892, Appendix A.1 and A.2: cursive
/// scripts and those with a virama).
const JOINING: [Script; 20] = [
    Script::Arabic,
    Script::Syriac,
    Script::Nko,
    Script::Mandaic,
    Script::Mongolian,
    Script::Adlam,
    Script::Hanifi_Rohingya,
    Script::Devanagari,
    Script::Bengali,
    Script::Gurmukhi,
    Script::Gujarati,
    Script::Oriya,
    Script::Tamil,
    Script::Telugu,
    Script::Kannada,
    Script::Malayalam,
    Script::Sinhala,
    Script::Khmer,
    Script::Myanmar,
    Script::Tibetan,
];

/// Reads the name of a new group, in the one form (NFC) in which it is stored and compared. Refuses what may look like
/// another name: white space at the ends, and [unseen characters](unseen). A leading hyphen is a mistyped option.
pub fn group_name(typed: &str) -> Result<String, String> {
    let name = composed(typed);
    if name.len() > LONGEST || !is_plain(&name) || name.starts_with('-') {
        return Err("a group's name must be 1 to 200 bytes of printable text, and must not begin with a hyphen".into());
    }
    if name.trim() != name {
        return Err("a group's name must not begin or end with white space".into());
    }
    match name.chars().find(|c| c.is_whitespace() && *c != ' ').or_else(|| unseen(&name, false)) {
        Some(c) => Err(format!(
            "a group's name must not have U+{:04X}: readers may not see it, or not see what it is",
            u32::from(c)
        )),
        None => Ok(name),
    }
}

/// Returns what is wrong with the name of a new client: the same as for groups, except that marks of direction are
/// allowed, since people read the name in a sentence.
pub fn client_name_problem(name: &str) -> Option<String> {
    let c = unseen(name, true)?;
    Some(format!("the name holds U+{:04X}: readers may not see it, or not see what it is", u32::from(c)))
}

/// Returns how the name of an existing group may have been written: as typed first, composed, and decomposed.
pub fn spellings(typed: &str) -> [String; 3] {
    [typed.to_owned(), composed(typed), typed.nfd().collect()]
}

fn composed(text: &str) -> String {
    text.nfc().collect()
}

/// Returns a character that is not seen and does not affect its neighbors.
fn unseen(text: &str, with_direction: bool) -> Option<char> {
    let marks = |c| with_direction && matches!(c, '\u{200E}' | '\u{200F}' | '\u{61C}');
    let all: Vec<char> = text.chars().collect();
    let at = |index: Option<usize>| index.and_then(|index| all.get(index)).copied();
    let is_idle = |(index, c): &(usize, char)| {
        !c.is_whitespace()
            && !is_visible(*c)
            && !marks(*c)
            && !shapes(at(index.checked_sub(1)), *c, at(Some(index + 1)))
    };
    all.iter().copied().enumerate().find(is_idle).map(|(_, c)| c)
}

/// Whether a character that is not seen changes how its neighbors are drawn.
fn shapes(before: Option<char>, c: char, after: Option<char>) -> bool {
    let Some(before) = before else { return false };
    let script = before.script();
    match c {
        '\u{200C}' | '\u{200D}'
            if JOINING.contains(&script) || (script == Script::Inherited && !is_selector(before)) =>
        {
            after.is_some_and(|after| JOINING.contains(&after.script()))
        }
        '\u{200D}' => (is_picture(before) || is_selector(before)) && after.is_some_and(is_picture),
        '\u{FE0E}'..='\u{FE0F}' => is_picture(before),
        '\u{180B}'..='\u{180D}' => script == Script::Mongolian,
        // Unicode Technical Standard 37: which form of an ideograph is drawn, as in names of people.
        '\u{FE00}'..='\u{FE02}' | '\u{E0100}'..='\u{E01EF}' => script == Script::Han,
        _ => false,
    }
}

/// Whether the character selects how the picture before it is drawn.
fn is_selector(c: char) -> bool {
    matches!(c, '\u{FE0E}'..='\u{FE0F}')
}

/// Whether the character is in a block of characters that are drawn as pictures, or is a tone of skin.
fn is_picture(c: char) -> bool {
    matches!(c, '\u{2190}'..='\u{2BFF}' | '\u{3030}' | '\u{303D}' | '\u{1F000}'..='\u{1FAFF}') && c != '\u{2800}'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_has_one_name_however_it_is_typed() {
        // red without `composed` in group_name.
        assert_eq!(group_name("Re\u{301}daction").as_deref(), Ok("R\u{e9}daction"));
        assert_eq!(group_name("\u{212B}").as_deref(), Ok("\u{c5}"), "the sign for \u{e5}ngstr\u{f6}m is that letter");
        assert_eq!(spellings("R\u{e9}"), ["R\u{e9}", "R\u{e9}", "Re\u{301}"]);
    }

    #[test]
    fn a_group_is_not_called_what_another_one_looks_like() {
        // red without `unseen` or `trim` in group_name.
        for bad in [
            "",
            " ",
            " staff",
            "staff ",
            "staff\u{A0}",
            "\u{3000}staff",
            "night\u{A0}shift",
            "night\u{2003}shift",
            "sta\u{200B}ff",
            "sta\u{AD}ff",
            "staff\u{E0041}",
            "sta\u{200D}ff",
            "sta\u{200C}ff",
            "staff\u{FE0F}",
            "staff\u{200F}",
            "\u{5D0}\u{200F}",
            "\u{645}\u{200C}",
            "\u{200C}\u{645}",
            "\u{1F468}\u{200D}",
            "sta\u{2060}ff",
            "staff\u{3164}",
            "staff\u{2800}",
            "sta\u{FFF9}ff",
            "-staff",
        ] {
            assert!(group_name(bad).is_err(), "{bad:?}");
        }
        let said = group_name("sta\u{200B}ff").unwrap_err();
        assert!(said.contains("U+200B"), "{said}");
    }

    #[test]
    fn what_scripts_need_may_stand_in_a_name() {
        // red without `shapes`.
        for good in [
            "staff",
            "night shift",
            "\u{645}\u{6CC}\u{200C}\u{62E}\u{648}\u{627}\u{647}\u{645}",
            "\u{915}\u{94D}\u{200D}\u{937}",
            "\u{DC1}\u{DCA}\u{200D}\u{DBB}\u{DD3}",
            "\u{845B}\u{E0100}\u{57CE}",
            "\u{2764}\u{FE0F}",
            "\u{1F3F3}\u{FE0F}\u{200D}\u{1F308}",
            "\u{1F469}\u{1F3FD}\u{200D}\u{1F4BB}",
            "\u{1820}\u{180B}",
        ] {
            assert_eq!(group_name(good).as_deref(), Ok(good), "{good:?}");
            assert_eq!(client_name_problem(good), None, "{good:?}");
        }
    }

    #[test]
    fn an_application_may_turn_what_is_read_and_hides_nothing() {
        for good in ["Shop", "\u{5D7}\u{5E0}\u{5D5}\u{5EA} (Shop)\u{200F}", "\u{200E}Shop"] {
            assert_eq!(client_name_problem(good), None, "{good:?}");
        }
        for bad in ["Sh\u{200B}op", "Sh\u{AD}op", "Shop\u{E0041}", "Sh\u{200D}op", "Shop\u{2060}"] {
            assert!(client_name_problem(bad).is_some(), "{bad:?}");
        }
    }
}
