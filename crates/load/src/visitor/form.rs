//! The forms of a page, filled in as a person would, without knowledge of the provider.

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
    kind: Kind,
    name: String,
    value: String,
    ticked: bool,
    /// How much a line looks like a login field, from 0 to 3 (0 is not visible); in a password field, if it is visible.
    rank: u8,
    /// It asks for a new password.
    is_new: bool,
    /// The form cannot be sent without it.
    required: bool,
    /// It asks for a one-time code, such as that of a second factor.
    is_code: bool,
    /// The text that a person reads beside it, if that matters.
    label: String,
    /// In a list: what may be chosen instead.
    options: Vec<Choosable>,
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
            is_new: false,
            required: false,
            is_code: false,
            label: String::new(),
            options: vec![],
        }
    }

    /// Adds the entries of the list that this field's value comes from.
    pub(super) fn of_list(self, options: Vec<Choosable>) -> Field {
        Field { options, ..self }
    }

    /// Returns true for one of several fields with the same name.
    pub(super) fn is_choice(&self) -> bool {
        self.kind == Kind::Radio
    }

    /// Sets the label: for now only the key under which its text will be found.
    pub(super) fn labelled(self, key: String) -> Field {
        Field { label: key, ..self }
    }

    /// Returns the list entry that looks most like a yes; of equal ones the selected one, or the first.
    fn choice(&self) -> Option<&Choosable> {
        self.options.iter().rev().max_by_key(|option| (option.consent(), option.value == self.value))
    }

    /// Rates how much this choice looks like a yes, compared with others of its name.
    fn consent(&self) -> u8 {
        consent(&format!("{} {}", self.label, self.value), &self.label, &self.value)
    }

    /// Sets whether the field is required.
    pub(super) fn required(self, required: bool) -> Field {
        Field { required, ..self }
    }

    /// Marks the field as invisible.
    pub(super) fn unseen(self) -> Field {
        Field { rank: 0, ..self }
    }
}

/// A button that sends the form.
#[derive(Clone, Debug, Default)]
pub(super) struct Button {
    name: String,
    value: String,
    /// Its own address, in place of the form's.
    action: Option<String>,
    /// Its own method, in place of the form's.
    get: Option<bool>,
    /// What a person reads on it.
    label: String,
}

/// One form of a page.
#[derive(Clone, Debug, Default)]
pub struct Form {
    id: Option<String>,
    action: String,
    get: bool,
    fields: Vec<Field>,
    buttons: Vec<Button>,
}

/// A form filled in, ready to be sent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filled {
    /// The address, relative to the page.
    pub action: String,
    /// True if the body goes into the query of a GET.
    pub get: bool,
    /// True if there is a password among the fields.
    pub is_secret: bool,
    /// The fields, `application/x-www-form-urlencoded`.
    pub body: String,
    /// What was done to consent, in words that follow "after".
    pub did: String,
}

impl Form {
    /// Returns true for a form that asks for a password.
    pub fn asks_password(&self) -> bool {
        self.passwords().next().is_some()
    }

    /// Returns true if a password field is visible.
    pub(super) fn shows_password(&self) -> bool {
        self.passwords().any(|field| field.rank > 0)
    }

    /// Returns the visible password fields, or all if none is visible.
    fn passwords(&self) -> impl Iterator<Item = &Field> {
        let all = || self.fields.iter().filter(|field| field.kind == Kind::Password);
        let seen = all().any(|field| field.rank > 0);
        all().filter(move |field| field.rank > 0 || !seen)
    }

    /// Returns true for a form that asks for a password, but creates an account or changes one.
    pub(super) fn is_for_newcomers(&self) -> bool {
        const NEW: [&str; 8] = ["sign up", "signup", "register", "create", "join", "registrier", "registra", "change"];
        let said = self.entering().map(|button| button.said()).unwrap_or_default();
        self.passwords().count() > 1
            || self.passwords().any(|field| field.is_new)
            || NEW.iter().any(|word| said.contains(word))
    }

    /// Fills in a login form: the name in the line of text that looks most like it, the password in the first password
    /// field, and all other fields as they stand.
    pub fn sign_in(&self, login: &str, password: &str) -> Filled {
        let name_at = self.name_at();
        let secret = self.passwords().next();
        let mut body = form_urlencoded::Serializer::new(String::new());
        for (at, field) in self.fields.iter().enumerate() {
            let value = match at {
                _ if Some(at) == name_at => login,
                _ if secret.is_some_and(|secret| std::ptr::eq(secret, field)) => password,
                _ if matches!(field.kind, Kind::Tick | Kind::Radio) && !field.ticked => continue,
                _ => &field.value,
            };
            body.append_pair(&field.name, value);
        }
        Filled { is_secret: secret.is_some(), ..self.send(body, self.entering()) }
    }

    /// Returns the index of the field for the login name.
    fn name_at(&self) -> Option<usize> {
        let lines = self.fields.iter().enumerate().rev().filter(|(_, field)| field.kind == Kind::Text);
        lines.max_by_key(|(_, field)| field.rank).map(|(at, _)| at)
    }

    /// Returns the names of required fields that a sign-in leaves empty or unticked.
    pub(super) fn left_empty(&self) -> Vec<&str> {
        let name_at = self.name_at();
        let is_chosen =
            |name: &str| self.fields.iter().any(|one| one.kind == Kind::Radio && one.name == name && one.ticked);
        let is_empty = |(at, field): &(usize, &Field)| match field.kind {
            Kind::Text => Some(*at) != name_at && field.rank > 0 && field.value.is_empty(),
            Kind::Other => field.value.is_empty(),
            Kind::Tick => !field.ticked,
            Kind::Radio => !is_chosen(&field.name),
            Kind::Hidden | Kind::Password => false,
        };
        let fields = self.fields.iter().enumerate().filter(|(_, field)| field.required);
        let mut names: Vec<_> = fields.filter(is_empty).map(|(_, field)| field.name.as_str()).collect();
        names.dedup();
        names
    }

    /// Returns the names of the lines of text that a question wants typed.
    pub(super) fn lines(&self) -> Vec<&str> {
        let is_line = |field: &&Field| field.kind == Kind::Text && field.rank > 0 && field.value.is_empty();
        self.fields.iter().filter(is_line).map(|field| field.name.as_str()).collect()
    }

    /// Returns true if a second factor's code is asked for.
    pub(super) fn asks_code(&self) -> bool {
        self.fields.iter().any(|field| field.is_code && field.rank > 0 && field.value.is_empty())
    }

    /// Returns true if signing in with this form is a GET.
    pub(super) fn enters_by_get(&self) -> bool {
        self.entering().and_then(|button| button.get).unwrap_or(self.get)
    }

    /// Returns true for a form that asks for a login and no password yet: the password is asked on another page.
    pub fn asks_name(&self) -> bool {
        !self.get && !self.asks_password() && self.has_text()
    }

    /// Rates how much the form looks as if it asked for a login.
    pub(super) fn name_rank(&self) -> u8 {
        self.fields.iter().filter(|field| field.kind == Kind::Text).map(|field| field.rank).max().unwrap_or_default()
    }

    /// Returns true if there is a line of text to fill in.
    pub(super) fn has_text(&self) -> bool {
        self.fields.iter().any(|field| field.kind == Kind::Text)
    }

    /// Returns true if there is nothing to fill in, but something to send.
    pub(super) fn asks_nothing(&self) -> bool {
        !self.fields.is_empty() && self.fields.iter().all(|field| field.kind == Kind::Hidden)
    }

    /// Returns true if the form is sent as the query of a GET.
    pub(super) fn is_get(&self) -> bool {
        self.get
    }

    /// Returns true if this is the form that parts elsewhere on the page refer to as `id`.
    pub(super) fn is_called(&self, id: &str) -> bool {
        self.id.as_deref() == Some(id)
    }

    /// Returns the address it is sent to, relative to the page.
    pub(super) fn action(&self) -> &str {
        &self.action
    }

    /// Returns the form as a script sends it: without any button.
    pub(super) fn as_it_stands(&self) -> Filled {
        let mut body = form_urlencoded::Serializer::new(String::new());
        body.extend_pairs(self.fields.iter().map(|field| (&field.name, &field.value)));
        self.send(body, None)
    }

    /// Consents: ticks every box, chooses the entries that approve, and presses the button that approves.
    pub fn approve(&self) -> Filled {
        let mut body = form_urlencoded::Serializer::new(String::new());
        let mut did = Vec::new();
        for (at, field) in self.fields.iter().enumerate() {
            let choice = field.choice();
            if field.kind != Kind::Radio || self.chosen(&field.name) == Some(at) {
                body.append_pair(&field.name, choice.map_or(&field.value, |choice| &choice.value));
                let label = choice.map_or(&field.label, |choice| &choice.label);
                did.extend((!label.is_empty()).then(|| format!("\"{label}\" was chosen")));
            }
        }
        let button = self.approving();
        let label = button.map(|button| button.label.as_str()).filter(|label| !label.is_empty());
        did.extend(label.map(|label| format!("\"{label}\" was pressed")));
        Filled { did: did.join(" and "), ..self.send(body, button) }
    }

    /// Returns the choice of that name that looks most like a yes; of equal ones the one that is made already, or the
    /// first.
    fn chosen(&self, name: &str) -> Option<usize> {
        let choices = self.fields.iter().enumerate().rev();
        let choices = choices.filter(|(_, field)| field.kind == Kind::Radio && field.name == name);
        choices.max_by_key(|(_, field)| (field.consent(), field.ticked)).map(|(at, _)| at)
    }

    /// Rates how much sending the form looks like a yes: 2 a yes, 1 unclear, 0 a no.
    pub(super) fn consent(&self) -> u8 {
        self.approving().map_or(1, Button::consent)
    }

    /// Returns the button that looks most like a yes; of several the first.
    fn approving(&self) -> Option<&Button> {
        self.buttons.iter().rev().max_by_key(|button| button.consent())
    }

    /// Returns the button that looks most like signing in; of several the first.
    fn entering(&self) -> Option<&Button> {
        self.buttons.iter().rev().max_by_key(|button| button.enters())
    }

    fn send(&self, mut body: form_urlencoded::Serializer<'_, String>, button: Option<&Button>) -> Filled {
        if let Some(button) = button.filter(|button| !button.name.is_empty()) {
            body.append_pair(&button.name, &button.value);
        }
        let action = button.and_then(|button| button.action.as_ref()).unwrap_or(&self.action);
        let get = button.and_then(|button| button.get).unwrap_or(self.get);
        Filled { action: action.clone(), get, is_secret: false, body: body.finish(), did: String::new() }
    }

    /// Starts a form from its tag.
    pub(super) fn begin(tag: &Attributes) -> Form {
        let action = tag.value("action").unwrap_or_default().to_owned();
        let get = tag.value("method").is_none_or(is_get);
        Form { id: tag.value("id").map(str::to_owned), action, get, ..Form::default() }
    }

    /// Adds a field; a field without a name is never sent.
    pub(super) fn push(&mut self, field: Field) {
        if !field.name.is_empty() {
            self.fields.push(field);
        }
    }

    /// Replaces each choice's key by the text that is read beside it.
    pub(super) fn read_labels(&mut self, text: impl Fn(&str) -> String) {
        self.fields.iter_mut().filter(|field| field.is_choice()).for_each(|field| field.label = text(&field.label));
    }

    /// Adds a button.
    pub(super) fn push_button(&mut self, button: Button) {
        self.buttons.push(button);
    }

    /// Reads an `input`: a field, a button, or nothing that matters.
    pub(super) fn input(tag: &Attributes) -> Option<Result<Field, Button>> {
        let kind = match tag.value("type").unwrap_or("text").trim().to_ascii_lowercase().as_str() {
            _ if tag.has("disabled") => return None,
            "submit" | "image" => {
                return Some(Err(Button::of(tag).labelled(tag.value("value").unwrap_or_default())));
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

    /// Reads a `button`, if it submits the form.
    pub(super) fn button(tag: &Attributes) -> Option<Button> {
        let kind = tag.value("type").unwrap_or("submit").trim();
        let idle = kind.eq_ignore_ascii_case("button") || kind.eq_ignore_ascii_case("reset") || tag.has("disabled");
        (!idle).then(|| Button::of(tag))
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

fn is_get(method: &str) -> bool {
    !method.trim().eq_ignore_ascii_case("post")
}

impl Button {
    fn of(tag: &Attributes) -> Button {
        let text = |name| tag.value(name).unwrap_or_default().to_owned();
        Button {
            name: text("name"),
            value: text("value"),
            action: tag.value("formaction").map(str::to_owned),
            get: tag.value("formmethod").map(is_get),
            label: String::new(),
        }
    }

    pub(super) fn labelled(self, label: &str) -> Button {
        Button { label: label.to_owned(), ..self }
    }

    /// Returns all of its words, in lower case.
    fn said(&self) -> String {
        format!("{} {} {}", self.label, self.value, self.name).to_lowercase()
    }

    /// Rates how much pressing it looks like a yes: 2 a yes, 1 unclear, 0 a no.
    fn consent(&self) -> u8 {
        consent(&self.said(), &self.label, &self.value)
    }

    /// Rates how much it looks like a password sign-in: 3 it says so, 2 it does, 1 unclear, 0 another way, or none.
    fn enters(&self) -> u8 {
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

#[cfg(test)]
mod tests;
