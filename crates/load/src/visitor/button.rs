//! The buttons of a form, and what pressing each of them means.

use super::html::Attributes;
use super::words::consent;

/// A button that sends the form.
#[derive(Clone, Debug, Default)]
pub(super) struct Button {
    pub(super) name: String,
    pub(super) value: String,
    /// Its own address, in place of the form's.
    pub(super) action: Option<String>,
    /// Its own method, in place of the form's.
    pub(super) get: Option<bool>,
    /// What a person reads on it.
    pub(super) label: String,
    /// It is for browsers without scripts: in others, a script does what it does.
    pub(super) is_for_no_script: bool,
    /// It is not inside of an element that is not shown.
    pub(super) seen: bool,
}

impl Button {
    /// Reads a `button`, if it submits the form.
    pub(super) fn read(tag: &Attributes) -> Option<Button> {
        let kind = tag.value("type").unwrap_or("submit").trim();
        let idle = kind.eq_ignore_ascii_case("button") || kind.eq_ignore_ascii_case("reset") || tag.has("disabled");
        (!idle).then(|| Button::of(tag))
    }

    pub(super) fn of(tag: &Attributes) -> Button {
        let text = |name| tag.value(name).unwrap_or_default().to_owned();
        Button {
            name: text("name"),
            value: text("value"),
            action: tag.value("formaction").map(str::to_owned),
            get: tag.value("formmethod").map(is_get),
            label: text("aria-label"),
            is_for_no_script: false,
            seen: true,
        }
    }

    pub(super) fn labeled(self, label: &str) -> Button {
        // A button may show a picture alone, and say what it is elsewhere.
        if label.is_empty() { self } else { Button { label: label.to_owned(), ..self } }
    }

    /// Returns all of its words, in lower case.
    pub(super) fn said(&self) -> String {
        format!("{} {} {}", self.label, self.value, self.name).to_lowercase()
    }

    /// Rates how much pressing it looks like a yes, as [`consent`].
    pub(super) fn consent(&self) -> u8 {
        consent(&self.said(), &self.label, &self.value)
    }

    /// Rates how much it looks like a password sign-in: 3 it says so, 2 it does, 1 unclear, 0 another way, or none.
    pub(super) fn enters(&self) -> u8 {
        const NONE: [&str; 10] = [
            "forgot",
            "reset",
            "change",
            "register",
            "sign up",
            "create",
            "passkey",
            "passwordless",
            "without",
            "back",
        ];
        const IN: [&str; 10] =
            ["sign in", "signin", "log in", "login", "continue", "next", "submit", "anmelden", "accedi", "entra"];
        let said = self.said();
        let names_it = self.label.to_lowercase().contains("password") || self.value.to_lowercase().contains("password");
        match () {
            () if self.consent() == 0 || NONE.iter().any(|word| said.contains(word)) => 0,
            () if names_it => 3,
            () if said.contains(" with ") => 0,
            () if IN.iter().any(|word| said.contains(word)) => 2,
            () => 1,
        }
    }
}

/// Whether a form with this method is sent as the query of a GET.
pub(super) fn is_get(method: &str) -> bool {
    !method.trim().eq_ignore_ascii_case("post")
}
