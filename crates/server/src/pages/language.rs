//! The language of a page: what the application asks for, then what the browser prefers, then English.

/// A language with a catalogue of messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Language {
    /// English, which is complete.
    English,
    /// Italian.
    Italian,
    /// German.
    German,
}

/// Headers are read only up to this length: nobody has a preference for a hundred languages (attack DS-04).
const LONGEST: usize = 1024;

impl Language {
    /// All languages.
    pub const ALL: [Language; 3] = [Language::English, Language::Italian, Language::German];

    /// Returns the language tag (BCP 47), as in the `lang` attribute and `ui_locales_supported`.
    pub const fn tag(self) -> &'static str {
        match self {
            Language::English => "en",
            Language::Italian => "it",
            Language::German => "de",
        }
    }

    /// Chooses by `ui_locales` (OpenID Connect Core §3.1.2.1: tags separated by spaces, best first), then by the
    /// `Accept-Language` header (RFC 9110 §12.5.4), then English. Takes linear time and reads at most 1 KiB of each.
    pub fn choose(ui_locales: Option<&str>, accept_language: Option<&str>) -> Language {
        ui_locales
            .and_then(|tags| capped(tags).split(' ').find_map(Language::of_tag))
            .or_else(|| accept_language.and_then(|header| preferred(capped(header))))
            .unwrap_or(Language::English)
    }

    /// Returns the language of a tag by its primary subtag (RFC 4647 §3.4): `de-AT` is German.
    fn of_tag(tag: &str) -> Option<Language> {
        let primary = tag.trim().split(['-', '_']).next().unwrap_or_default();
        Language::ALL.into_iter().find(|language| primary.eq_ignore_ascii_case(language.tag()))
    }
}

/// Returns the first of the most preferred languages that have a catalogue.
fn preferred(header: &str) -> Option<Language> {
    let mut best: Option<(Language, f32)> = None;
    for range in header.split(',') {
        let mut parts = range.split(';');
        let tag = parts.next().unwrap_or_default().trim();
        let language = if tag == "*" { Some(Language::English) } else { Language::of_tag(tag) };
        let Some(language) = language else { continue };
        let weight = parts.find_map(weight).unwrap_or(1.0);
        if weight > best.map_or(0.0, |(_, most)| most) {
            best = Some((language, weight));
        }
    }
    best.map(|(language, _)| language)
}

/// Returns the weight in `q=0.5` (RFC 9110 §12.4.2); zero if it is not valid.
fn weight(parameter: &str) -> Option<f32> {
    let (name, value) = parameter.split_once('=')?;
    if !name.trim().eq_ignore_ascii_case("q") {
        return None;
    }
    Some(value.trim().parse().ok().filter(|q| (0.0..=1.0).contains(q)).unwrap_or(0.0))
}

fn capped(text: &str) -> &str {
    &text[..text.floor_char_boundary(LONGEST)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ui_locales_come_before_accept_language() {
        assert_eq!(Language::choose(Some("fr-CA de-AT it"), Some("it")), Language::German);
        assert_eq!(Language::choose(Some("fr"), Some("it")), Language::Italian);
        assert_eq!(Language::choose(Some(""), None), Language::English);
    }

    #[test]
    fn accept_language_goes_by_weight_then_by_order() {
        for (header, expected) in [
            ("it;q=0.5, de;q=0.9", Language::German),
            ("fr, it, de", Language::Italian),
            ("DE-ch , en;q=0.8", Language::German),
            ("de;q=0, it;q=0.1", Language::Italian),
            ("*, de;q=0.5", Language::English),
            ("de;q=nan, it;q=0.001", Language::Italian),
            ("de;q=2", Language::English),
            ("zh", Language::English),
            ("", Language::English),
            (";;;,,,;q=,=", Language::English),
        ] {
            assert_eq!(Language::choose(None, Some(header)), expected, "{header}");
        }
    }

    #[test]
    fn ds_04_only_the_first_kibibyte_is_read() {
        let late = format!("{}it", "x".repeat(LONGEST - 3) + ", ,");
        assert_eq!(Language::choose(None, Some(&late)), Language::English);
        assert_eq!(Language::choose(None, Some(&"è".repeat(32 * 1024))), Language::English);
        assert_eq!(Language::choose(Some(&"a ".repeat(32 * 1024)), None), Language::English);
    }
}
