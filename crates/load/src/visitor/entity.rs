//! Named character references (WHATWG HTML §13.5): those that pages are likely to have, of more than two thousand.

/// Those of U+00A0 to U+00FF, in this order.
const LATIN: [&str; 96] = [
    "nbsp", "iexcl", "cent", "pound", "curren", "yen", "brvbar", "sect", "uml", "copy", "ordf", "laquo", "not", "shy",
    "reg", "macr", "deg", "plusmn", "sup2", "sup3", "acute", "micro", "para", "middot", "cedil", "sup1", "ordm",
    "raquo", "frac14", "frac12", "frac34", "iquest", "Agrave", "Aacute", "Acirc", "Atilde", "Auml", "Aring", "AElig",
    "Ccedil", "Egrave", "Eacute", "Ecirc", "Euml", "Igrave", "Iacute", "Icirc", "Iuml", "ETH", "Ntilde", "Ograve",
    "Oacute", "Ocirc", "Otilde", "Ouml", "times", "Oslash", "Ugrave", "Uacute", "Ucirc", "Uuml", "Yacute", "THORN",
    "szlig", "agrave", "aacute", "acirc", "atilde", "auml", "aring", "aelig", "ccedil", "egrave", "eacute", "ecirc",
    "euml", "igrave", "iacute", "icirc", "iuml", "eth", "ntilde", "ograve", "oacute", "ocirc", "otilde", "ouml",
    "divide", "oslash", "ugrave", "uacute", "ucirc", "uuml", "yacute", "thorn", "yuml",
];

/// Those of markup, of punctuation, and of some letters that are not in Latin-1.
const OTHERS: [(&str, char); 32] = [
    ("amp", '&'),
    ("lt", '<'),
    ("gt", '>'),
    ("quot", '"'),
    ("apos", '\''),
    ("hellip", '\u{2026}'),
    ("ndash", '\u{2013}'),
    ("mdash", '\u{2014}'),
    ("lsquo", '\u{2018}'),
    ("rsquo", '\u{2019}'),
    ("sbquo", '\u{201a}'),
    ("ldquo", '\u{201c}'),
    ("rdquo", '\u{201d}'),
    ("bdquo", '\u{201e}'),
    ("bull", '\u{2022}'),
    ("euro", '\u{20ac}'),
    ("trade", '\u{2122}'),
    ("lsaquo", '\u{2039}'),
    ("rsaquo", '\u{203a}'),
    ("thinsp", '\u{2009}'),
    ("ensp", '\u{2002}'),
    ("emsp", '\u{2003}'),
    ("zwnj", '\u{200c}'),
    ("zwj", '\u{200d}'),
    ("OElig", '\u{152}'),
    ("oelig", '\u{153}'),
    ("Scaron", '\u{160}'),
    ("scaron", '\u{161}'),
    ("Yuml", '\u{178}'),
    ("fnof", '\u{192}'),
    ("circ", '\u{2c6}'),
    ("tilde", '\u{2dc}'),
];

/// Returns the character with this name; names are case-sensitive.
pub(super) fn named(name: &str) -> Option<char> {
    let other = OTHERS.iter().find(|(known, _)| *known == name).map(|(_, character)| *character);
    let latin = || ('\u{a0}'..='\u{ff}').zip(LATIN).find(|(_, known)| *known == name);
    other.or_else(|| latin().map(|(character, _)| character))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Red where a name is missing in `LATIN`, or in the wrong place: all that follow would be wrong.
    #[test]
    fn names_stand_for_their_characters() {
        for (name, character) in [
            ("nbsp", '\u{a0}'),
            ("copy", '©'),
            ("laquo", '«'),
            ("reg", '®'),
            ("raquo", '»'),
            ("szlig", 'ß'),
            ("auml", 'ä'),
            ("Auml", 'Ä'),
            ("eacute", 'é'),
            ("times", '×'),
            ("divide", '÷'),
            ("yuml", 'ÿ'),
            ("Yuml", 'Ÿ'),
            ("hellip", '…'),
            ("ndash", '–'),
            ("mdash", '—'),
            ("rsquo", '’'),
            ("bdquo", '„'),
            ("euro", '€'),
            ("OElig", 'Œ'),
            ("scaron", 'š'),
            ("amp", '&'),
        ] {
            assert_eq!(named(name), Some(character), "{name}");
        }
        assert_eq!((named("unknown"), named("EACUTE"), named("")), (None, None, None));
    }
}
