//! The forms of a page, read and filled in as a person would, without knowing whose page it is.
//!
//! What is not understood: scripts, `select`, `textarea`, and fields outside of their form (`form="id"`).

use super::html::{Attributes, Piece, Pieces, decode};

/// What an input is to somebody who fills in the form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Hidden,
    /// A line of text: a name or an e-mail address.
    Text,
    Password,
    /// Sent only when ticked.
    Tick,
    /// One of those of its name is sent.
    Radio,
    Other,
}

#[derive(Clone, Debug)]
struct Field {
    kind: Kind,
    name: String,
    value: String,
    ticked: bool,
}

/// A button that sends the form.
#[derive(Clone, Debug, Default)]
struct Button {
    name: String,
    value: String,
    /// Its own address, in place of the form's.
    action: Option<String>,
    /// What a person reads on it, in lower case.
    label: String,
}

/// One form of a page.
#[derive(Clone, Debug, Default)]
pub struct Form {
    action: String,
    get: bool,
    fields: Vec<Field>,
    buttons: Vec<Button>,
}

/// A form filled in, ready to be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Filled {
    /// The address, relative to the page.
    pub action: String,
    /// True when it goes into the query of a GET.
    pub get: bool,
    /// The fields, `application/x-www-form-urlencoded`.
    pub body: String,
}

/// Every form of `page`, in order.
pub fn forms(page: &str) -> Vec<Form> {
    let mut found = Vec::new();
    let mut open: Option<Form> = None;
    let mut in_button = false;
    for piece in Pieces::of(page) {
        match (piece, &mut open) {
            (Piece::Open(name, tag), form) if name == "form" => found.extend(form.replace(Form::begin(&tag))),
            (Piece::Close(name), form) if name == "form" => found.extend(form.take()),
            (Piece::Open(name, tag), Some(form)) if name == "input" => form.input(&tag),
            (Piece::Open(name, tag), Some(form)) if name == "button" => in_button = form.button(&tag),
            (Piece::Close(name), _) if name == "button" => in_button = false,
            (Piece::Text(text), Some(form)) if in_button => form.label(text),
            _ => {}
        }
    }
    found.extend(open);
    found
}

/// The `<title>` of a page, to name it in a failure.
pub fn title(page: &str) -> Option<String> {
    let mut pieces = Pieces::of(page).skip_while(|piece| !matches!(piece, Piece::Open(name, _) if name == "title"));
    pieces.next()?;
    match pieces.next()? {
        Piece::Text(text) => Some(decode(text.trim())).filter(|text| !text.is_empty()),
        _ => None,
    }
}

/// The form of a page that asks for a yes: of those that are posted (a page may have a search or a language form of its own)
/// the one that looks most like it, the first of several.
pub fn question(forms: &[Form]) -> Option<&Form> {
    forms.iter().rev().filter(|form| !form.get).max_by_key(|form| form.consent())
}

impl Form {
    /// True for a form that signs somebody in.
    pub fn asks_password(&self) -> bool {
        self.fields.iter().any(|field| field.kind == Kind::Password)
    }

    /// Fills in a login form: name in the first line of text, password in the first password, the rest as it stands.
    pub fn sign_in(&self, login: &str, password: &str) -> Filled {
        let typed = |kind| self.fields.iter().position(|field| field.kind == kind);
        let (name_at, password_at) = (typed(Kind::Text), typed(Kind::Password));
        let mut body = form_urlencoded::Serializer::new(String::new());
        for (at, field) in self.fields.iter().enumerate() {
            let value = match at {
                _ if Some(at) == name_at => login,
                _ if Some(at) == password_at => password,
                _ if matches!(field.kind, Kind::Tick | Kind::Radio) && !field.ticked => continue,
                _ => &field.value,
            };
            body.append_pair(&field.name, value);
        }
        self.send(body, self.buttons.first())
    }

    /// True for a form that asks who comes, and nothing else yet: the password is asked on another page.
    pub fn asks_name(&self) -> bool {
        !self.get && !self.asks_password() && self.fields.iter().any(|field| field.kind == Kind::Text)
    }

    /// Says yes: ticks every box, chooses what approves, and presses the button that does.
    pub fn approve(&self) -> Filled {
        let mut body = form_urlencoded::Serializer::new(String::new());
        for (at, field) in self.fields.iter().enumerate() {
            if field.kind != Kind::Radio || self.chosen(&field.name) == Some(at) {
                body.append_pair(&field.name, &field.value);
            }
        }
        self.send(body, self.approving())
    }

    /// Of the choices of that name the one that looks most like a yes; of several alike the one that is made already, or the
    /// first.
    fn chosen(&self, name: &str) -> Option<usize> {
        let choices = self.fields.iter().enumerate().rev();
        let choices = choices.filter(|(_, field)| field.kind == Kind::Radio && field.name == name);
        choices
            .max_by_key(|(_, field)| (consent(&field.value.to_lowercase(), &field.value), field.ticked))
            .map(|(at, _)| at)
    }

    /// How much sending it looks like a yes: 2 a yes, 1 unclear, 0 a no.
    fn consent(&self) -> u8 {
        self.approving().map_or(1, Button::consent)
    }

    /// The button that looks most like a yes, the first of several.
    fn approving(&self) -> Option<&Button> {
        self.buttons.iter().rev().max_by_key(|button| button.consent())
    }

    fn send(&self, mut body: form_urlencoded::Serializer<'_, String>, button: Option<&Button>) -> Filled {
        if let Some(button) = button.filter(|button| !button.name.is_empty()) {
            body.append_pair(&button.name, &button.value);
        }
        let action = button.and_then(|button| button.action.as_ref()).unwrap_or(&self.action);
        Filled { action: action.clone(), get: self.get, body: body.finish() }
    }

    fn begin(tag: &Attributes) -> Form {
        let get = !tag.value("method").is_some_and(|method| method.trim().eq_ignore_ascii_case("post"));
        Form { action: tag.value("action").unwrap_or_default().to_owned(), get, ..Form::default() }
    }

    fn input(&mut self, tag: &Attributes) {
        let kind = match tag.value("type").unwrap_or("text").trim().to_ascii_lowercase().as_str() {
            "submit" | "image" => return self.push_button(tag, tag.value("value").unwrap_or_default()),
            "button" | "reset" | "file" => return,
            "hidden" => Kind::Hidden,
            "password" => Kind::Password,
            "checkbox" => Kind::Tick,
            "radio" => Kind::Radio,
            "number" | "date" | "color" | "range" => Kind::Other,
            _ => Kind::Text,
        };
        let name = tag.value("name").unwrap_or_default();
        if name.is_empty() || tag.has("disabled") {
            return;
        }
        let default = if matches!(kind, Kind::Tick | Kind::Radio) { "on" } else { "" };
        let value = tag.value("value").unwrap_or(default).to_owned();
        self.fields.push(Field { kind, name: name.to_owned(), value, ticked: tag.has("checked") });
    }

    /// True when it is a button that sends, and the text up to its end is its label.
    fn button(&mut self, tag: &Attributes) -> bool {
        let kind = tag.value("type").unwrap_or("submit").trim();
        if kind.eq_ignore_ascii_case("button") || kind.eq_ignore_ascii_case("reset") || tag.has("disabled") {
            return false;
        }
        self.push_button(tag, "");
        true
    }

    fn push_button(&mut self, tag: &Attributes, label: &str) {
        let text = |name| tag.value(name).unwrap_or_default().to_owned();
        let action = tag.value("formaction").map(str::to_owned);
        self.buttons.push(Button { name: text("name"), value: text("value"), action, label: label.to_lowercase() });
    }

    fn label(&mut self, text: &str) {
        if let Some(button) = self.buttons.last_mut() {
            button.label.push_str(&decode(text).to_lowercase());
        }
    }
}

impl Button {
    /// How much pressing it looks like a yes: 2 a yes, 1 unclear, 0 a no.
    fn consent(&self) -> u8 {
        let said = format!("{} {} {}", self.label, self.value.to_lowercase(), self.name.to_lowercase());
        if self.label.trim() == "no" { 0 } else { consent(&said, &self.value) }
    }
}

/// How much what is said, in lower case, and sent looks like a yes: 2 a yes, 1 unclear, 0 a no.
fn consent(said: &str, sent: &str) -> u8 {
    const NO: [&str; 9] = ["deny", "cancel", "reject", "decline", "refuse", "disallow", "don't", "not ", "sign out"];
    const YES: [&str; 8] = ["allow", "accept", "approve", "agree", "grant", "authori", "continue", "yes"];
    if sent == "no" || NO.iter().any(|word| said.contains(word)) {
        return 0;
    }
    if YES.iter().any(|word| said.contains(word)) { 2 } else { 1 }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOGIN: &str = r#"<html><head><title> Sign in &amp; go </title></head><body>
        <form action="/search"><input name=q></form>
        <form method='POST' action="/login?flow=a&amp;b=c">
          <input value="t&quot;k" name="csrf" type="hidden">
          <label>Name <input autocomplete=username name='who' type="email"></label>
          <input NAME=secret TYPE=PASSWORD><input type=checkbox name=stay checked><input type=checkbox name=spam>
          <input type=text name=company><button type=button name=show>Show</button>
          <button name=do value=login>Sign in</button></form>"#;

    fn login_form() -> Form {
        forms(LOGIN).into_iter().find(Form::asks_password).unwrap()
    }

    #[test]
    fn the_login_form_is_the_one_that_asks_a_password() {
        let filled = login_form().sign_in("ann@example.com", "p&ss wörd");
        assert_eq!(filled.action, "/login?flow=a&b=c");
        assert!(!filled.get);
        let expected = "csrf=t%22k&who=ann%40example.com&secret=p%26ss+w%C3%B6rd&stay=on&company=&do=login";
        assert_eq!(filled.body, expected);
    }

    #[test]
    fn the_title_names_the_page() {
        assert_eq!(title(LOGIN).as_deref(), Some("Sign in & go"));
        assert_eq!(title("<p>none"), None);
        assert_eq!(title("<title></title>"), None);
    }

    #[test]
    fn forms_do_not_share_fields() {
        let found = forms("<form action=a><input name=x></form><input name=lost><form action=b><input name=y>");
        let bodies: Vec<_> = found.iter().map(|form| form.approve().body).collect();
        assert_eq!(bodies, ["x=", "y="]);
        assert!(found.iter().all(|form| form.approve().get));
    }

    fn pressed(buttons: &str) -> String {
        forms(&format!("<form method=post>{buttons}</form>"))[0].approve().body
    }

    #[test]
    fn the_approving_button_is_pressed_wherever_it_stands() {
        for buttons in [
            "<button name=d value=0>Cancel</button><button name=d value=1>Allow</button>",
            "<button name=d value=1>Allow</button><button name=d value=0>Don&#39;t allow</button>",
            "<input type=submit name=d value=deny><button name=d value=1><b>Yes</b>, go on</button>",
            "<button name=d value=1>Weiter</button><button name=d value=no>Nein</button>",
            "<button name=d value=1>Va bene</button><button name=d value=2>Altro</button>",
        ] {
            assert_eq!(pressed(buttons), "d=1", "{buttons}");
        }
    }

    #[test]
    fn the_question_of_a_page_is_the_form_that_says_yes_to_it() {
        let page = "<form action=/search><input name=q><button>Continue</button></form>\
                    <form method=post action=/other><button name=choice value=other>Not you?</button></form>\
                    <form method=post action=/yes><button name=d value=deny>Deny</button><button>Allow</button></form>\
                    <form method=post action=/language><button>Deutsch</button></form>";
        assert_eq!(question(&forms(page)).map(|form| form.action.as_str()), Some("/yes"));
        let unclear = "<form method=post action=/first><button>Weiter</button></form>\
                       <form method=post action=/second><button>Altro</button></form>";
        assert_eq!(question(&forms(unclear)).map(|form| form.action.as_str()), Some("/first"));
        assert!(question(&forms("<form action=/search><input name=q></form>")).is_none());
    }

    #[test]
    fn consent_ticks_every_box_and_follows_the_buttons_own_address() {
        let page = "<form method=post action=/no><input type=hidden name=h value=1><input type=checkbox name=scope \
                    value=openid><input type=checkbox name=scope value=email><button formaction=/yes>Accept</button></form>";
        let filled = forms(page)[0].approve();
        assert_eq!((filled.action.as_str(), filled.body.as_str()), ("/yes", "h=1&scope=openid&scope=email"));
    }

    #[test]
    fn of_choices_with_one_name_the_one_that_approves_is_sent() {
        let page = "<form method=post><input type=radio name=d value=deny checked><input type=radio name=d value=allow>\
                    <input type=radio name=days value=30><input type=radio name=days value=1 checked><button>Go</button></form>";
        assert_eq!(forms(page)[0].approve().body, "d=allow&days=1");
        assert_eq!(forms(page)[0].sign_in("", "").body, "d=deny&days=1");
    }

    #[test]
    fn a_form_that_asks_who_comes_is_posted_and_asks_no_password() {
        let asks = |page: &str| forms(page)[0].asks_name();
        assert!(asks("<form method=post><input name=login><button>Next</button></form>"));
        assert!(!asks("<form action=/search><input name=q></form>"));
        assert!(!asks(LOGIN) && !login_form().asks_name());
        let next = "<form method=post><input type=hidden name=s value=1><input name=login><button>Next</button></form>";
        assert_eq!(forms(next)[0].sign_in("ann", "secret").body, "s=1&login=ann");
    }
}
