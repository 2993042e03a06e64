//! The forms of a page, filled in as a person would, without knowledge of the provider.

use super::button::{Button, is_get};
use super::field::{Field, Kind};
use super::html::Attributes;

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
    /// True if there is a name among them, and no password: it is asked for next.
    pub is_name: bool,
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
        self.passwords().any(|field| field.rank() > 0)
    }

    /// Returns the visible password fields, or all if none is visible.
    fn passwords(&self) -> impl Iterator<Item = &Field> {
        let all = || self.fields.iter().filter(|field| field.kind == Kind::Password);
        let seen = all().any(|field| field.rank() > 0);
        all().filter(move |field| field.rank() > 0 || !seen)
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
        Filled { is_secret: secret.is_some(), is_name: secret.is_none(), ..self.send(body, self.entering()) }
    }

    /// Returns the index of the field for the login name.
    fn name_at(&self) -> Option<usize> {
        let lines = self.fields.iter().enumerate().rev().filter(|(_, field)| field.kind == Kind::Text);
        lines.max_by_key(|(_, field)| field.rank()).map(|(at, _)| at)
    }

    /// Returns the names of required fields that a sign-in leaves empty or unticked.
    pub(super) fn left_empty(&self) -> Vec<&str> {
        let name_at = self.name_at();
        let is_chosen =
            |name: &str| self.fields.iter().any(|one| one.kind == Kind::Radio && one.name == name && one.ticked);
        let is_empty = |(at, field): &(usize, &Field)| match field.kind {
            Kind::Text => Some(*at) != name_at && field.rank() > 0 && field.value.is_empty(),
            Kind::Other => field.value.is_empty(),
            Kind::Tick => !field.ticked,
            Kind::Radio => !is_chosen(&field.name),
            Kind::Hidden | Kind::Password => false,
        };
        let fields = self.fields.iter().enumerate().filter(|(_, field)| field.required && field.seen);
        let mut names: Vec<_> = fields.filter(is_empty).map(|(_, field)| field.name.as_str()).collect();
        names.dedup();
        names
    }

    /// Returns the names of the lines of text that a question wants typed.
    pub(super) fn lines(&self) -> Vec<&str> {
        let is_line = |field: &&Field| field.kind == Kind::Text && field.rank() > 0 && field.value.is_empty();
        self.fields.iter().filter(is_line).map(|field| field.name.as_str()).collect()
    }

    /// Returns the names of the fields that somebody types in.
    pub(super) fn typed(&self) -> Vec<String> {
        let typed = |field: &&Field| matches!(field.kind, Kind::Text | Kind::Password);
        self.fields.iter().filter(typed).map(|field| field.name.clone()).collect()
    }

    /// Returns true if a second factor's code is asked for.
    pub(super) fn asks_code(&self) -> bool {
        self.fields.iter().any(|field| field.is_code && field.rank() > 0 && field.value.is_empty())
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
        self.fields.iter().filter(|field| field.kind == Kind::Text).map(|field| field.rank()).max().unwrap_or_default()
    }

    /// Returns true if there is a line of text to fill in.
    pub(super) fn has_text(&self) -> bool {
        self.fields.iter().any(|field| field.kind == Kind::Text && field.seen)
    }

    /// Returns true if there is nothing to fill in, but something to send.
    pub(super) fn asks_nothing(&self) -> bool {
        !self.fields.is_empty() && self.fields.iter().all(|field| field.kind == Kind::Hidden || !field.seen)
    }

    /// Returns the buttons that browsers with scripts show.
    fn shown_buttons(&self) -> impl Iterator<Item = &Button> {
        self.buttons.iter().filter(|button| button.seen && !button.is_for_no_script)
    }

    /// Returns true if a browser with scripts shows a button.
    pub(super) fn shows_button(&self) -> bool {
        self.shown_buttons().next().is_some()
    }

    /// Returns true if it matters which button is pressed, so that no script would send the form without one.
    pub(super) fn waits(&self) -> bool {
        self.shown_buttons().count() > 1 || self.shown_buttons().any(|button| !button.name.is_empty())
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
            let is_sent = match field.kind {
                Kind::Radio if field.seen => self.chosen(&field.name) == Some(at),
                // Nobody ticks what is not shown: it may be a trap for bots.
                Kind::Radio | Kind::Tick if !field.seen => field.ticked,
                _ => true,
            };
            if is_sent {
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

    /// Rates how much sending the form looks like a yes, from 4 to 0, a no.
    pub(super) fn consent(&self) -> u8 {
        self.approving().map_or(1, Button::consent)
    }

    /// Rates how much the form looks like the question of its page. Beside it, a page may have a search, a list of
    /// languages, or a banner: a question has nothing to type in or to choose from a list, and remembers more.
    pub(super) fn asks_consent(&self) -> (u8, bool, bool, usize) {
        let has_list = self.fields.iter().any(|field| field.seen && !field.options.is_empty());
        let hidden = self.fields.iter().filter(|field| field.kind == Kind::Hidden).count();
        (self.consent(), !self.has_text(), !has_list, hidden)
    }

    /// Returns the button that looks most like a yes; of several the first. One that is not shown is better than a no.
    fn approving(&self) -> Option<&Button> {
        self.buttons.iter().rev().max_by_key(|button| shown_first(button, button.consent()))
    }

    /// Returns the button that looks most like signing in; of several the first.
    fn entering(&self) -> Option<&Button> {
        self.buttons.iter().rev().max_by_key(|button| shown_first(button, button.enters()))
    }

    fn send(&self, mut body: form_urlencoded::Serializer<'_, String>, button: Option<&Button>) -> Filled {
        if let Some(button) = button.filter(|button| !button.name.is_empty()) {
            body.append_pair(&button.name, &button.value);
        }
        let action = button.and_then(|button| button.action.as_ref()).unwrap_or(&self.action);
        let get = button.and_then(|button| button.get).unwrap_or(self.get);
        Filled { action: action.clone(), get, body: body.finish(), ..Filled::default() }
    }

    /// Returns true if somebody sees a part of it.
    pub(super) fn is_shown(&self) -> bool {
        let fields = self.fields.iter().any(|field| field.kind != Kind::Hidden && field.seen);
        fields || self.buttons.iter().any(|button| button.seen)
    }

    /// Marks all parts as seen.
    pub(super) fn show(&mut self) {
        self.fields.iter_mut().for_each(|field| field.seen = true);
        self.buttons.iter_mut().for_each(|button| button.seen = true);
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
}

/// Rates a button that will do above one that will not, and one that is shown above one that is not.
fn shown_first(button: &Button, rate: u8) -> (bool, bool, u8) {
    (rate > 0, button.seen, rate)
}

#[cfg(test)]
mod tests;
