//! The messages of each language: one file of `key = text` lines, compiled in and parsed once.
//!
//! The caller fills `{name}` in a text; a count selects between `.one` and `.other` forms of a text. A key that a
//! language lacks is shown in English.

use super::language::Language;
use std::collections::HashMap;
use std::sync::LazyLock;

/// One language's catalogue.
pub(super) struct Messages {
    texts: HashMap<&'static str, &'static str>,
}

static ENGLISH: LazyLock<Messages> = LazyLock::new(|| Messages::parse(include_str!("messages/en.txt")));
static ITALIAN: LazyLock<Messages> = LazyLock::new(|| Messages::parse(include_str!("messages/it.txt")));
static GERMAN: LazyLock<Messages> = LazyLock::new(|| Messages::parse(include_str!("messages/de.txt")));

impl Messages {
    /// Returns the catalogue of `language`.
    pub fn of(language: Language) -> &'static Messages {
        match language {
            Language::English => &ENGLISH,
            Language::Italian => &ITALIAN,
            Language::German => &GERMAN,
        }
    }

    /// Returns the text of `key`.
    pub fn say(&self, key: &str) -> &'static str {
        self.find(key).unwrap_or("…")
    }

    /// Returns the text of `key`, if there is one.
    pub fn find(&self, key: &str) -> Option<&'static str> {
        self.texts.get(key).or_else(|| ENGLISH.texts.get(key)).copied()
    }

    /// Returns the longer text that goes with `key`.
    pub fn more(&self, key: &str) -> &'static str {
        self.say(&format!("{key}.text"))
    }

    /// Returns the text of `key` with `{name}` replaced by `value`.
    pub fn with(&self, key: &str, name: &str, value: &str) -> String {
        let (before, after) = self.around(key, name);
        format!("{before}{value}{after}")
    }

    /// Likewise, where no markup can isolate the text direction of `value`, as in a title (UAX #9 §2.4).
    pub fn isolated(&self, key: &str, name: &str, value: &str) -> String {
        self.with(key, name, &format!("\u{2068}{value}\u{2069}"))
    }

    /// Returns the text of `key` on either side of `{name}`, for a value that has markup of its own.
    pub fn around(&self, key: &str, name: &str) -> (&'static str, &'static str) {
        let text = self.say(key);
        let cut = text.find('{').filter(|at| text[at + 1..].starts_with(name));
        cut.map_or((text, ""), |at| (&text[..at], &text[at + name.len() + 2..]))
    }

    /// Returns the form of `key` for a count, with `{n}` replaced by the count.
    pub fn count(&self, key: &str, n: i64) -> String {
        let form = if n == 1 { "one" } else { "other" };
        self.with(&format!("{key}.{form}"), "n", &n.to_string())
    }

    /// Returns the text of `key` with `{wait}` replaced by a waiting time in words.
    pub fn with_wait(&self, key: &str, seconds: i64) -> String {
        self.with(key, "wait", &self.wait(seconds))
    }

    /// Returns a waiting time in words: seconds up to two minutes, minutes up to two hours, then hours; rounded up.
    pub fn wait(&self, seconds: i64) -> String {
        match seconds {
            ..=120 => self.count("wait.seconds", seconds.max(1)),
            121..=7200 => self.count("wait.minutes", seconds.saturating_add(59) / 60),
            _ => self.count("wait.hours", seconds.saturating_add(3599) / 3600),
        }
    }

    fn parse(file: &'static str) -> Messages {
        let lines = file.lines().filter(|line| !line.starts_with('#'));
        let texts =
            lines.filter_map(|line| line.split_once('=')).map(|(key, text)| (key.trim(), text.trim())).collect();
        Messages { texts }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn keys(language: Language) -> BTreeSet<&'static str> {
        Messages::of(language).texts.keys().copied().collect()
    }

    fn placeholders(text: &str) -> BTreeSet<&str> {
        text.split('{').skip(1).filter_map(|rest| rest.split('}').next()).collect()
    }

    #[test]
    fn every_language_has_every_key_and_no_other() {
        let english = keys(Language::English);
        for language in Language::ALL {
            let theirs = keys(language);
            let missing: Vec<_> = english.difference(&theirs).collect();
            let unknown: Vec<_> = theirs.difference(&english).collect();
            assert!(
                missing.is_empty() && unknown.is_empty(),
                "{language:?} lacks {missing:?}, has unknown {unknown:?}"
            );
        }
    }

    #[test]
    fn every_translation_has_the_same_placeholders_and_no_empty_text() {
        for language in Language::ALL {
            for (key, text) in &Messages::of(language).texts {
                assert!(!text.is_empty(), "{language:?}: {key} is empty");
                assert_eq!(placeholders(text), placeholders(ENGLISH.say(key)), "{language:?}: {key}");
            }
        }
    }

    /// Red with "disconnetti": whoever looks for one word does not find what another one does.
    #[test]
    fn italian_has_one_word_for_signing_out() {
        for (key, text) in &Messages::of(Language::Italian).texts {
            assert!(!text.contains("isconne"), "{key}: {text}");
        }
    }

    #[test]
    fn no_key_is_given_twice() {
        for file in [include_str!("messages/en.txt"), include_str!("messages/it.txt"), include_str!("messages/de.txt")]
        {
            let lines = file.lines().filter(|line| !line.starts_with('#') && !line.trim().is_empty());
            let mut seen = BTreeSet::new();
            for line in lines {
                let (key, _) = line.split_once('=').unwrap_or_else(|| panic!("not `key = text`: {line}"));
                assert!(seen.insert(key.trim()), "{key} is given twice");
            }
        }
    }

    #[test]
    fn a_value_is_put_in_its_place_once() {
        let messages = Messages::parse("a = x {name} y\nb = plain\nn.one = {n} thing\nn.other = {n} things");
        assert_eq!(messages.with("a", "name", "{name}"), "x {name} y");
        assert_eq!(messages.with("b", "name", "v"), "plainv");
        assert_eq!(messages.count("n", 1), "1 thing");
        assert_eq!(messages.count("n", 0), "0 things");
    }

    #[test]
    fn waiting_is_said_in_words() {
        let english = Messages::of(Language::English);
        assert_eq!(english.wait(0), "1 second");
        assert_eq!(english.wait(120), "120 seconds");
        assert_eq!(english.wait(121), "3 minutes");
        assert_eq!(english.wait(7200), "120 minutes");
        assert_eq!(english.wait(7201), "3 hours");
        assert_eq!(Messages::of(Language::German).wait(1), "1 Sekunde");
    }
}
