//! A page as a browser reads it: where it leads by itself, and its forms with their fields.
//!
//! Scripts are not run; the reader only detects that a script sends a form.

use super::button::Button;
use super::field::{Choosable, Field, Kind};
use super::fieldset::Fieldsets;
use super::form::Form;
use super::html::{Attributes, Piece, Pieces, decode};
use super::label::Labels;
use super::unseen::Unseen;

/// A page that leads on by itself waits less than this; a longer wait is a session that ends, not a way on.
const SOON: f64 = 10.0;

/// What a page holds.
#[derive(Clone, Debug, Default)]
pub struct Page {
    /// Its `<title>`, to name it in a failure.
    pub title: Option<String>,
    /// The beginning of its text, for the same purpose.
    pub text: String,
    /// The URL that its addresses are relative to, if that is not the page itself.
    pub base: Option<String>,
    /// Every form, in order.
    pub forms: Vec<Form>,
    /// The address that `<meta http-equiv="refresh">` leads to.
    refresh: Option<String>,
    /// Whether a script may send a form without waiting for anybody.
    sends: bool,
    /// Whether it has scripts.
    scripts: bool,
}

impl Page {
    /// Reads a page from `text`.
    pub fn of(text: &str) -> Page {
        let mut reader = Reader { page: Page { scripts: has_scripts(text), ..Page::default() }, ..Reader::default() };
        let mut pieces = Pieces::of(text);
        while let Some(piece) = pieces.next() {
            reader.page.sends |= sends(&piece, pieces.code());
            match piece {
                Piece::Open(name, tag) => reader.open(&name, &tag),
                Piece::Close(name) => reader.close(&name),
                Piece::Text(text) if reader.element.is_some() => reader.words.push_str(text),
                Piece::Text(text) => {
                    reader.labels.read(text);
                    if !reader.unseen.is_here() {
                        reader.read(text);
                    }
                }
            }
        }
        reader.finish()
    }

    /// Returns the form to sign in with, if one asks for a password. Beside a form that asks for the login, one that
    /// creates an account or is not shown does not count: the password is asked on another page, and would go to the
    /// wrong place.
    pub fn sign_in(&self) -> Option<&Form> {
        let name = self.introduction();
        let shows_name = name.is_some_and(|form| form.name_rank() > 0);
        let elsewhere = |form: &&Form| match form.shows_password() {
            true => name.is_some() && form.is_for_newcomers(),
            false => shows_name || name.is_some() && form.is_for_newcomers(),
        };
        self.passwords().filter(|form| !elsewhere(form)).min_by_key(|form| fits(form))
    }

    /// Returns the form that asks for a password, even if only for a new one.
    pub fn asks_password(&self) -> Option<&Form> {
        self.passwords().min_by_key(|form| fits(form))
    }

    fn passwords(&self) -> impl Iterator<Item = &Form> {
        self.forms.iter().filter(|form| form.asks_password())
    }

    /// Returns the form that asks for the login, if the password is asked on another page.
    pub fn introduction(&self) -> Option<&Form> {
        self.forms.iter().rev().filter(|form| form.asks_name()).max_by_key(|form| form.name_rank())
    }

    /// Returns the form that asks for consent: of the forms that are posted (a page may have a search or a language
    /// form of its own) the one that looks most like it, and of several the first. If none is posted, or only a no, it
    /// chooses likewise among the others, except those with a line of text to fill in.
    pub fn question(&self) -> Option<&Form> {
        let of = |get: bool| {
            let forms = self.forms.iter().rev().filter(move |form| form.is_get() == get);
            forms.filter(|form| !get || !form.has_text()).max_by_key(|form| form.asks_consent())
        };
        let is_yes = |form: &&Form| form.consent() > 0;
        of(false).filter(is_yes).or_else(|| of(true).filter(is_yes)).or_else(|| of(false)).or_else(|| of(true))
    }

    /// Returns the address to which the page leads by itself, unless it asks for a password.
    pub fn leads_to(&self) -> Option<&str> {
        self.refresh.as_deref().filter(|_| self.sign_in().is_none())
    }

    /// Returns the form that the page's script sends by itself: one that asks for nothing, on a page that does not ask
    /// for a login. Keycloak has such a form, which a link sends, beside the password form. A form waits for a press if
    /// it matters which button is pressed, and also if other forms have buttons, too.
    pub fn posts_itself(&self) -> Option<&Form> {
        let asks = self.sign_in().or_else(|| self.introduction()).is_some();
        let alone = self.forms.iter().filter(|form| form.shows_button()).count() < 2;
        let goes = |form: &&Form| form.asks_nothing() && !form.waits() && (alone || !form.shows_button());
        self.forms.iter().find(goes).filter(|_| self.sends && !asks)
    }

    /// Summarizes an unexpected page: its title, and its text up to the first number. A number usually belongs to this
    /// one request, and equal failures should be counted together.
    pub fn said(&self) -> String {
        let (title, text) = self.read_out();
        let numbered = |word: &&str| word.bytes().any(|letter| letter.is_ascii_digit());
        let text: Vec<&str> = text.split(' ').take_while(|word| !numbered(word)).collect();
        let text = text.join(" ");
        match (title, text.trim()) {
            ("", text) => text.to_owned(),
            (title, "") => title.to_owned(),
            (title, text) => format!("{title}: {text}"),
        }
    }

    /// Returns the title, with a colon if text follows, and the text.
    pub fn told_apart(&self) -> (String, String) {
        let (title, text) = self.read_out();
        let colon = if title.is_empty() || text.is_empty() { "" } else { ": " };
        (format!("{title}{colon}"), text.to_owned())
    }

    /// Returns the title, and the text without the title at its beginning.
    fn read_out(&self) -> (&str, &str) {
        let title = self.title.as_deref().unwrap_or_default();
        (title, self.text.strip_prefix(title).unwrap_or(&self.text).trim())
    }

    /// Returns the page's name: its title, shortened.
    pub fn name(&self) -> String {
        self.title.as_deref().unwrap_or("no title").chars().take(60).collect()
    }

    /// Returns what the page says, if it says anything.
    pub fn told(&self) -> String {
        Some(self.said()).filter(|said| !said.is_empty()).unwrap_or_else(|| self.name())
    }

    /// Says why a sign-in form that uses GET is not sent: its fields would be in the address, which servers and proxies
    /// log. A form that leaves the sending to a script has no method, which means GET (WHATWG HTML §4.10.19.6).
    pub fn sends_by_get(&self) -> String {
        let name = self.name();
        match self.scripts {
            true => format!("a script sends the sign-in form, and none is run here ({name})"),
            false => format!("the sign-in form is sent by GET, and no password is put into an address ({name})"),
        }
    }

    /// Says why nobody can sign in on this page.
    pub fn asks_nothing(&self) -> String {
        let name = self.name();
        match (self.forms.is_empty(), self.scripts) {
            (true, true) => format!("a script draws the sign-in page, and none is run here ({name})"),
            (true, false) => {
                format!("no form is on the page: does a way to sign in have to be chosen first? ({})", self.told())
            }
            // A search form is sent by GET, too, but does not ask for a login.
            (false, true) if self.forms.iter().any(|form| form.is_get() && form.name_rank() > 1) => self.sends_by_get(),
            (false, _) => format!("no form asks a password ({name})"),
        }
    }
}

/// Ranks forms: the lower, the more it looks like a sign-in. Of two equal forms, the one with GET is meant for a
/// script.
fn fits(form: &Form) -> (bool, bool, bool) {
    (!form.shows_password(), form.is_for_newcomers(), form.enters_by_get())
}

/// Whether a piece of a page is a script, or a handler of the page's own beginning, that sends a form. A handler of
/// something that people use, such as a list of languages, sends it only then.
fn sends(piece: &Piece<'_>, code: &str) -> bool {
    const SENDS: &str = ".submit()";
    let handler = match piece {
        Piece::Open(_, tag) => tag.value("onload"),
        Piece::Close(_) | Piece::Text(_) => None,
    };
    code.contains(SENDS) || handler.is_some_and(|handler| handler.contains(SENDS))
}

fn has_scripts(text: &str) -> bool {
    text.as_bytes().windows(7).any(|window| window.eq_ignore_ascii_case(b"<script"))
}

/// An element that belongs to a form.
enum Part {
    Field(Field),
    Button(Button),
}

/// A `select`: its name, and the values that are sent unless the user chooses.
struct Choice {
    owner: Option<String>,
    required: bool,
    /// It may have several values, or none.
    multiple: bool,
    name: String,
    chosen: Vec<String>,
    options: Vec<Choosable>,
}

/// An open element whose text matters, and the form that it names.
enum Open {
    Title,
    Button(Button, Option<String>),
    /// Its name, whether it is required, and its form.
    Area(String, bool, Option<String>),
    /// Its value if it has one, whether it is selected, and whether it is enabled.
    Option(Option<String>, bool, bool),
}

#[derive(Default)]
struct Reader {
    page: Page,
    /// The form that is being read.
    form: Option<Form>,
    /// The field groups around the current position.
    groups: Fieldsets,
    /// Parts that name their form by `form="…"`.
    strays: Vec<(String, Part)>,
    select: Option<Choice>,
    labels: Labels,
    unseen: Unseen,
    element: Option<Open>,
    /// How many `noscript` elements are open.
    noscripts: usize,
    /// The text since `element` began.
    words: String,
}

impl Reader {
    /// Adds text outside of form elements: the beginning of what people read on the page.
    fn read(&mut self, text: &str) {
        const ENOUGH: usize = 160;
        let known = &mut self.page.text;
        for word in text.split_whitespace().map(decode) {
            if known.len() >= ENOUGH {
                return;
            }
            if !known.is_empty() {
                known.push(' ');
            }
            known.push_str(&word);
        }
    }

    fn open(&mut self, name: &str, tag: &Attributes) {
        let text = |name| tag.value(name).unwrap_or_default().to_owned();
        let owner = tag.value("form").map(str::to_owned);
        self.groups.open(name, tag);
        self.noscripts += usize::from(name == "noscript");
        self.labels.open(name, tag);
        self.unseen.open(name, tag);
        match name {
            "input" | "button" | "textarea" | "select" if self.groups.are_disabled() => {}
            // A form within a form is ignored (WHATWG HTML §13.2.6.4.7).
            "form" if self.form.is_none() => self.form = Some(Form::begin(tag)),
            "base" if self.page.base.is_none() => self.page.base = tag.value("href").map(str::to_owned),
            "meta" if tag.value("http-equiv").is_some_and(|kind| kind.trim().eq_ignore_ascii_case("refresh")) => {
                self.page.refresh = self.page.refresh.take().or_else(|| refresh(tag.value("content")?));
            }
            "title" => self.begin(Open::Title),
            "input" => match Field::read(tag) {
                Some(Ok(field)) if field.is_choice() => {
                    let label = self.labels.beside(tag);
                    self.part(owner, Part::Field(field.labeled(label)));
                }
                Some(Ok(field)) => self.part(owner, Part::Field(field)),
                Some(Err(button)) => {
                    let button = self.placed(button);
                    self.part(owner, Part::Button(button));
                }
                None => {}
            },
            "button" => {
                if let Some(button) = Button::read(tag) {
                    let button = self.placed(button);
                    self.begin(Open::Button(button, owner));
                }
            }
            "textarea" if !tag.has("disabled") => {
                self.begin(Open::Area(text("name"), tag.has("required"), owner));
            }
            "select" if !tag.has("disabled") => {
                let (required, multiple, name) = (tag.has("required"), tag.has("multiple"), text("name"));
                self.select = Some(Choice { owner, required, multiple, name, chosen: vec![], options: vec![] });
            }
            "option" => {
                let value = tag.value("value").map(str::to_owned);
                self.begin(Open::Option(value, tag.has("selected"), !tag.has("disabled")));
            }
            _ => {}
        }
    }

    fn close(&mut self, name: &str) {
        self.groups.close(name);
        self.noscripts = self.noscripts.saturating_sub(usize::from(name == "noscript"));
        self.labels.close(name);
        self.unseen.close(name);
        match name {
            "form" => {
                self.end();
                self.page.forms.extend(self.form.take());
            }
            "select" => {
                self.end();
                if let Some(choice) = self.select.take() {
                    self.chosen(choice);
                }
            }
            "title" | "button" | "textarea" | "option" => self.end(),
            _ => {}
        }
    }

    fn begin(&mut self, element: Open) {
        self.end();
        self.words.clear();
        self.element = Some(element);
    }

    /// Ends the element whose text was read, whether it was closed or not.
    fn end(&mut self) {
        let words = decode(self.words.trim());
        match self.element.take() {
            Some(Open::Title) if self.page.title.is_none() => {
                self.page.title = Some(words).filter(|words| !words.is_empty())
            }
            Some(Open::Button(button, owner)) => self.part(owner, Part::Button(button.labeled(&words))),
            Some(Open::Area(name, required, owner)) => {
                let value = typed(&self.words);
                self.part(owner, Part::Field(Field::of(Kind::Other, name, value).required(required)));
            }
            Some(Open::Option(value, selected, possible)) => {
                if let Some(select) = self.select.as_mut().filter(|_| possible) {
                    let value = value.unwrap_or_else(|| words.clone());
                    if selected {
                        select.chosen.push(value.clone());
                    }
                    select.options.push(Choosable { value, label: words });
                }
            }
            _ => {}
        }
    }

    /// Adds what a list sends: one value, or as many as are selected (WHATWG HTML §4.10.7).
    fn chosen(&mut self, Choice { owner, required, multiple, name, mut chosen, options }: Choice) {
        if multiple {
            for value in chosen {
                self.part(owner.clone(), Part::Field(Field::of(Kind::Other, name.clone(), value)));
            }
        } else if let Some(value) = chosen.pop().or_else(|| Some(options.first()?.value.clone())) {
            let field = Field::of(Kind::Other, name, value).required(required).of_list(options);
            self.part(owner, Part::Field(field));
        }
    }

    /// Returns a button as it is at the current position.
    fn placed(&self, button: Button) -> Button {
        Button { is_for_no_script: self.noscripts > 0, seen: !self.unseen.is_here(), ..button }
    }

    fn part(&mut self, owner: Option<String>, mut part: Part) {
        if let Part::Field(field) = &mut part {
            field.seen = !self.unseen.is_here();
        }
        match (owner, &mut self.form) {
            (Some(owner), _) => self.strays.push((owner, part)),
            (None, Some(form)) => add(form, part),
            (None, None) => {}
        }
    }

    fn finish(mut self) -> Page {
        self.end();
        self.page.forms.extend(self.form.take());
        for (owner, part) in self.strays {
            if let Some(form) = self.page.forms.iter_mut().find(|form| form.is_called(&owner)) {
                add(form, part);
            }
        }
        self.page.forms.iter_mut().for_each(|form| form.read_labels(|key| self.labels.text(key)));
        // A page that shows nothing is one that a script will show.
        if !self.page.forms.iter().any(Form::is_shown) {
            self.page.forms.iter_mut().for_each(Form::show);
        }
        self.page
    }
}

fn add(form: &mut Form, part: Part) {
    match part {
        Part::Field(field) => form.push(field),
        Part::Button(button) => form.push_button(button),
    }
}

/// Returns what is sent of the text in a `textarea`: without a line end at its beginning (WHATWG HTML §13.2.6.4.7), and
/// with CRLF as line ends (§4.10.22.6).
fn typed(text: &str) -> String {
    let text = decode(text).replace("\r\n", "\n").replace('\r', "\n");
    text.strip_prefix('\n').unwrap_or(&text).replace('\n', "\r\n")
}

/// Returns the address of a refresh such as `0; url='/next'`, if it is soon.
fn refresh(content: &str) -> Option<String> {
    let (time, rest) = content.split_once([';', ','])?;
    time.trim().parse::<f64>().ok().filter(|time| (0.0..SOON).contains(time))?;
    let rest = rest.trim();
    let address = match rest.split_once('=') {
        Some((word, address)) if word.trim().eq_ignore_ascii_case("url") => address,
        _ => rest,
    };
    let address = address.trim().trim_matches(['\'', '"']);
    (!address.is_empty()).then(|| address.to_owned())
}

#[cfg(test)]
mod tests;
