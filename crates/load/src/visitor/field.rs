//! The fields of a form, and what each of them asks for.

use super::button::Button;
use super::html::Attributes;
use super::words::consent;

/// What an input is to a person who fills in the form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Hidden,
    /// A line of text: a name or an e-mail address.
    Text,
    Password,
    /// A checkbox: sent only when ticked.
    Tick,
    /// One of several with the same name; the chosen one is sent.
    Radio,
    Other,
}

/// A field: what is sent under a name.
#[derive(Clone, Debug)]
pub(super) struct Field {
    pub(super) kind: Kind,
    pub(super) name: String,
    pub(super) value: String,
    pub(super) ticked: bool,
    /// How much a line looks like a login field, from 0 to 3 (0 is not visible); in a password field, if it is visible.
    rank: u8,
    /// It is not inside of an element that is not shown.
    pub(super) seen: bool,
    /// It asks for a new password.
    pub(super) is_new: bool,
    /// The form cannot be sent without it.
    pub(super) required: bool,
    /// It asks for a one-time code, such as that of a second factor.
    pub(super) is_code: bool,
    /// The text that a person reads beside it, if that matters.
    pub(super) label: String,
    /// In a list: what may be chosen instead.
    pub(super) options: Vec<Choosable>,
}

/// One of the entries that may be chosen.
#[derive(Clone, Debug)]
pub(super) struct Choosable {
    pub value: String,
    pub label: String,
}

impl Choosable {
    fn consent(&self) -> u8 {
        consent(&format!("{} {}", self.label, self.value), &self.label, &self.value)
    }
}

impl Field {
    /// Creates a field that is sent as it stands.
    pub(super) fn of(kind: Kind, name: String, value: String) -> Field {
        Field {
            kind,
            name,
            value,
            ticked: false,
            rank: 0,
            seen: true,
            is_new: false,
            required: false,
            is_code: false,
            label: String::new(),
            options: vec![],
        }
    }

    /// Reads an `input`: a field, a button, or nothing that matters.
    pub(super) fn read(tag: &Attributes) -> Option<Result<Field, Button>> {
        let kind = match tag.value("type").unwrap_or("text").trim().to_ascii_lowercase().as_str() {
            _ if tag.has("disabled") => return None,
            "submit" | "image" => {
                return Some(Err(Button::of(tag).labeled(tag.value("value").unwrap_or_default())));
            }
            "button" | "reset" | "file" => return None,
            "hidden" => Kind::Hidden,
            // Some providers hide the code while it is typed.
            "password" if is_code(tag, Kind::Password) => Kind::Text,
            "password" => Kind::Password,
            "checkbox" => Kind::Tick,
            "radio" => Kind::Radio,
            "number" | "date" | "color" | "range" => Kind::Other,
            // A password that is shown while it is typed.
            "text" if asks_password(tag) => Kind::Password,
            _ => Kind::Text,
        };
        let text = |name, default: &str| tag.value(name).unwrap_or(default).to_owned();
        let default = if matches!(kind, Kind::Tick | Kind::Radio) { "on" } else { "" };
        let is_new = tag.value("autocomplete").is_some_and(|words| words.contains("new-password"));
        let is_code = is_code(tag, kind);
        let rank = match kind {
            Kind::Text | Kind::Password => rank(tag).min(if is_code { 1 } else { 3 }),
            _ => u8::from(is_code),
        };
        let (name, value) = (text("name", ""), text("value", default));
        let (ticked, required) = (tag.has("checked"), tag.has("required"));
        Some(Ok(Field { ticked, rank, is_new, required, is_code, ..Field::of(kind, name, value) }))
    }

    /// Adds the entries of the list that this field's value comes from.
    pub(super) fn of_list(self, options: Vec<Choosable>) -> Field {
        Field { options, ..self }
    }

    /// Returns true for one of several fields with the same name.
    pub(super) fn is_choice(&self) -> bool {
        self.kind == Kind::Radio
    }

    /// Sets the key under which the text of its label is found once the page has been read.
    pub(super) fn labeled(self, key: String) -> Field {
        Field { label: key, ..self }
    }

    /// Returns the list entry that looks most like a yes; of equal ones the selected one, or the first.
    pub(super) fn choice(&self) -> Option<&Choosable> {
        let options = if self.seen { &self.options[..] } else { &[] };
        options.iter().rev().max_by_key(|option| (option.consent(), option.value == self.value))
    }

    /// Rates how much this choice looks like a yes, compared with others of its name.
    pub(super) fn consent(&self) -> u8 {
        consent(&format!("{} {}", self.label, self.value), &self.label, &self.value)
    }

    /// Sets whether the field is required.
    pub(super) fn required(self, required: bool) -> Field {
        Field { required, ..self }
    }

    /// Returns the rank of a field that is seen where it is, and 0 otherwise.
    pub(super) fn rank(&self) -> u8 {
        if self.seen { self.rank } else { 0 }
    }
}

/// Whether a line of text is a password field, judged by its names.
fn asks_password(tag: &Attributes) -> bool {
    ["autocomplete", "name", "id"].iter().filter_map(|name| tag.value(name)).any(|said| {
        ["password", "passwd", "current-password"].iter().any(|word| said.trim().eq_ignore_ascii_case(word))
    })
}

/// Whether the field asks for a second factor's code, judged by its names. A PIN or a token that is hidden while it is
/// typed may as well be the password itself.
fn is_code(tag: &Attributes, kind: Kind) -> bool {
    const HIDDEN: [&str; 4] = ["otp", "totp", "onetimecode", "onetimepassword"];
    const SHOWN: [&str; 13] = [
        "code",
        "pin",
        "token",
        "otpcode",
        "totpcode",
        "emailcode",
        "smscode",
        "mfacode",
        "passcode",
        "authcode",
        "verificationcode",
        "authenticatorcode",
        "twofactorcode",
    ];
    let called = |words: &[&str]| {
        ["name", "id"].iter().filter_map(|name| tag.value(name)).any(|name| {
            let name = name.to_ascii_lowercase().replace(['-', '_', '.'], "");
            words.contains(&name.as_str())
        })
    };
    let autocomplete = tag.value("autocomplete").unwrap_or_default().trim();
    let is_named = autocomplete.eq_ignore_ascii_case("one-time-code");
    match kind {
        Kind::Text | Kind::Other => is_named || called(&HIDDEN) || called(&SHOWN),
        Kind::Password => is_named || called(&HIDDEN),
        Kind::Hidden | Kind::Tick | Kind::Radio => false,
    }
}

/// Rates how much a line of text looks like a login field.
fn rank(tag: &Attributes) -> u8 {
    let says = |name: &str, words: &[&str]| {
        tag.value(name).is_some_and(|value| words.iter().any(|word| value.to_ascii_lowercase().contains(word)))
    };
    let unseen = tag.has("hidden") || says("tabindex", &["-1"]) || says("aria-hidden", &["true"]);
    match () {
        () if unseen || says("style", &["display:none", "display: none"]) => 0,
        () if says("autocomplete", &["username", "email"]) => 3,
        () if says("type", &["email"]) || says("name", &["user", "login", "mail", "ident", "account"]) => 2,
        () => 1,
    }
}
