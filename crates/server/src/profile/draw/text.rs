//! Text and numbers in a picture.

use std::borrow::Cow;

/// How many letters of a line fit on a phone.
const WIDTH: usize = 52;

/// Escapes text or an attribute's value for XML: names of functions have brackets. Leaves out what XML cannot say.
pub fn escaped(text: &str) -> Cow<'_, str> {
    let special = |letter: char| matches!(letter, '<' | '>' | '&' | '"' | '\'') || letter.is_control();
    if !text.contains(special) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for letter in text.chars() {
        match letter {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\n' => out.push('\n'),
            letter if letter.is_control() => {}
            letter => out.push(letter),
        }
    }
    Cow::Owned(out)
}

/// Formats a number with as many digits as matter in a picture.
pub fn number(value: f64) -> String {
    let text = format!("{value:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Formats a share as per cent.
pub fn percent(share: f64) -> String {
    let percent = 100.0 * share;
    if percent < 9.95 { format!("{percent:.1} %") } else { format!("{percent:.0} %") }
}

/// Breaks a text into lines between words.
pub fn wrapped(text: &str) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let last = lines.len() - 1;
        let line = &mut lines[last];
        if line.is_empty() {
            line.push_str(word);
        } else if line.chars().count() + 1 + word.chars().count() > WIDTH {
            lines.push(word.to_owned());
        } else {
            line.push(' ');
            line.push_str(word);
        }
    }
    lines
}
