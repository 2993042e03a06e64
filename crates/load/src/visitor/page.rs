//! A page as a browser reads it: where it leads by itself, and its forms with their fields.
//!
//! What is not understood: scripts. Of a page that sends its form by one it is seen that it does.

use super::fieldset::Fieldsets;
use super::form::{Button, Choosable, Field, Form, Kind};
use super::html::{Attributes, Piece, Pieces, decode};
use super::label::Labels;

/// The longest that a page may wait before it leads on by itself: longer is a session that ends, not a way.
const SOON: f64 = 10.0;

/// What a page holds.
#[derive(Clone, Debug, Default)]
pub struct Page {
    /// Its `<title>`, to name it in a failure.
    pub title: Option<String>,
    /// How its text begins, for the same.
    pub text: String,
    /// What its addresses are relative to, where that is not the page itself.
    pub base: Option<String>,
    /// Every form, in order.
    pub forms: Vec<Form>,
    /// Where `<meta http-equiv="refresh">` leads.
    refresh: Option<String>,
    /// A script sends a form.
    sends: bool,
    /// It has scripts.
    scripts: bool,
}

impl Page {
    /// Reads `text`.
    pub fn of(text: &str) -> Page {
        let mut reader = Reader {
            page: Page { sends: text.contains(".submit()"), scripts: has_scripts(text), ..Page::default() },
            ..Reader::default()
        };
        for piece in Pieces::of(text) {
            match piece {
                Piece::Open(name, tag) => reader.open(&name, &tag),
                Piece::Close(name) => reader.close(&name),
                Piece::Text(text) if reader.element.is_some() => reader.words.push_str(text),
                Piece::Text(text) => {
                    reader.labels.read(text);
                    reader.read(text);
                }
            }
        }
        reader.finish()
    }

    /// The form to sign in with, where there is one that asks a password. Beside one that asks who comes, a form that makes an account
    /// is none: the password is asked on another page, and would be sent to the wrong place.
    pub fn sign_in(&self) -> Option<&Form> {
        let elsewhere = self.introduction().is_some();
        self.passwords().filter(|form| !(elsewhere && form.is_for_newcomers())).min_by_key(|form| fits(form))
    }

    /// The form that asks a password, if only one that is to be made up.
    pub fn asks_password(&self) -> Option<&Form> {
        self.passwords().min_by_key(|form| fits(form))
    }

    fn passwords(&self) -> impl Iterator<Item = &Form> {
        self.forms.iter().filter(|form| form.asks_password())
    }

    /// The form that asks who comes, where the password is asked on another page.
    pub fn introduction(&self) -> Option<&Form> {
        self.forms.iter().rev().filter(|form| form.asks_name()).max_by_key(|form| form.name_rank())
    }

    /// The form that asks for a yes: of those that are posted (a page may have a search or a language form of its own) the one
    /// that looks most like it, the first of several; where none is posted, likewise of the others, but for those with a line to
    /// type something into.
    pub fn question(&self) -> Option<&Form> {
        let of = |get: bool| {
            let forms = self.forms.iter().rev().filter(move |form| form.is_get() == get);
            forms.filter(|form| !get || !form.has_text()).max_by_key(|form| form.consent())
        };
        of(false).or_else(|| of(true))
    }

    /// The address to which the page leads by itself, unless it asks a password.
    pub fn leads_to(&self) -> Option<&str> {
        self.refresh.as_deref().filter(|_| self.sign_in().is_none())
    }

    /// The form that the page sends by itself, by a script: one that asks nothing, on a page that does not ask who comes.
    /// Keycloak has such a form, which a link sends, beside that for the password.
    pub fn posts_itself(&self) -> Option<&Form> {
        let asks = self.sign_in().or_else(|| self.introduction()).is_some();
        self.forms.iter().find(|form| self.sends && !asks && form.asks_nothing())
    }

    /// What a page that nobody expected says: its title, and how its text goes on, up to the first number. That is of this one request,
    /// mostly, and whoever fails alike is to be counted as one.
    pub fn said(&self) -> String {
        let title = self.title.as_deref().unwrap_or_default();
        let text = self.text.strip_prefix(title).unwrap_or(&self.text).trim();
        let numbered = |word: &&str| word.bytes().any(|letter| letter.is_ascii_digit());
        let text: Vec<&str> = text.split(' ').take_while(|word| !numbered(word)).collect();
        let text = text.join(" ");
        match (title, text.trim()) {
            ("", text) => text.to_owned(),
            (title, "") => title.to_owned(),
            (title, text) => format!("{title}: {text}"),
        }
    }

    /// What the page is called.
    pub fn name(&self) -> String {
        self.title.as_deref().unwrap_or("no title").chars().take(60).collect()
    }

    /// Why the form to sign in with is not sent, where it would be by GET: what it asks would stand in the address, which servers and
    /// proxies write into their logs. A form of which a script is to take care has no method, and that is GET (WHATWG HTML §4.10.19.6).
    pub fn sends_by_get(&self) -> String {
        let name = self.name();
        match self.scripts {
            true => format!("a script sends the sign-in form, and none is run here ({name})"),
            false => format!("the sign-in form is sent by GET, and no password is put into an address ({name})"),
        }
    }

    /// Why nobody can sign in on it.
    pub fn asks_nothing(&self) -> String {
        let name = self.name();
        match (self.forms.is_empty(), self.scripts) {
            (true, true) => format!("a script draws the sign-in page, and none is run here ({name})"),
            (true, false) => format!("no form is on the page: does a way to sign in have to be chosen first? ({name})"),
            // A search is sent by GET, too: it does not ask who comes.
            (false, true) if self.forms.iter().any(|form| form.is_get() && form.name_rank() > 1) => self.sends_by_get(),
            (false, _) => format!("no form asks a password ({name})"),
        }
    }
}

/// The less, the more a form looks as if it signed in. Of two that look alike one that is sent by GET is there for a script.
fn fits(form: &Form) -> (bool, bool, bool) {
    (!form.shows_password(), form.is_for_newcomers(), form.enters_by_get())
}

fn has_scripts(text: &str) -> bool {
    text.as_bytes().windows(7).any(|window| window.eq_ignore_ascii_case(b"<script"))
}

/// An element that belongs to a form.
enum Part {
    Field(Field),
    Button(Button),
}

/// Of a `select`: the name, and what is sent unless somebody chooses.
struct Choice {
    owner: Option<String>,
    required: bool,
    name: String,
    chosen: Option<String>,
    options: Vec<Choosable>,
}

/// An element whose text says something, and the form that it names.
enum Open {
    Title,
    Button(Button, Option<String>),
    /// Its name, and whether it has to be filled in.
    Area(String, bool, Option<String>),
    /// With the value where it is written, whether it is selected, and whether it can be.
    Option(Option<String>, bool, bool),
}

#[derive(Default)]
struct Reader {
    page: Page,
    /// The form around what is read.
    form: Option<Form>,
    /// The groups around it.
    groups: Fieldsets,
    /// Parts of forms that they name by `form="…"`.
    strays: Vec<(String, Part)>,
    select: Option<Choice>,
    labels: Labels,
    element: Option<Open>,
    /// The text since `element` began.
    words: String,
}

impl Reader {
    /// Text that belongs to no element of a form: the beginning of what people read.
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
        self.labels.open(name, tag);
        match name {
            "input" | "button" | "textarea" | "select" if self.groups.are_disabled() => {}
            "form" => {
                self.page.forms.extend(self.form.replace(Form::begin(tag)));
            }
            "base" if self.page.base.is_none() => self.page.base = tag.value("href").map(str::to_owned),
            "meta" if tag.value("http-equiv").is_some_and(|kind| kind.trim().eq_ignore_ascii_case("refresh")) => {
                self.page.refresh = self.page.refresh.take().or_else(|| refresh(tag.value("content")?));
            }
            "title" => self.begin(Open::Title),
            "input" => match Form::input(tag) {
                Some(Ok(field)) if field.is_choice() => {
                    let label = self.labels.beside(tag);
                    self.part(owner, Part::Field(field.labelled(label)));
                }
                Some(Ok(field)) if self.groups.are_hidden() => self.part(owner, Part::Field(field.unseen())),
                Some(Ok(field)) => self.part(owner, Part::Field(field)),
                Some(Err(button)) => self.part(owner, Part::Button(button)),
                None => {}
            },
            "button" => {
                if let Some(button) = Form::button(tag) {
                    self.begin(Open::Button(button, owner));
                }
            }
            "textarea" if !tag.has("disabled") => {
                self.begin(Open::Area(text("name"), tag.has("required"), owner));
            }
            "select" if !tag.has("disabled") => {
                let required = tag.has("required");
                self.select = Some(Choice { owner, required, name: text("name"), chosen: None, options: vec![] });
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
        self.labels.close(name);
        match name {
            "form" => {
                self.end();
                self.page.forms.extend(self.form.take());
            }
            "select" => {
                self.end();
                if let Some(Choice { owner, required, name, chosen, options }) = self.select.take()
                    && let Some(value) = chosen.or_else(|| options.first().map(|option| option.value.clone()))
                {
                    let field = Field::of(Kind::Other, name, value).required(required).of_list(options);
                    self.part(owner, Part::Field(field));
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

    /// The element whose text was read is over, whether it was closed or not.
    fn end(&mut self) {
        let words = decode(self.words.trim());
        match self.element.take() {
            Some(Open::Title) if self.page.title.is_none() => {
                self.page.title = Some(words).filter(|words| !words.is_empty())
            }
            Some(Open::Button(button, owner)) => self.part(owner, Part::Button(button.labelled(&words))),
            Some(Open::Area(name, required, owner)) => {
                self.part(owner, Part::Field(Field::of(Kind::Other, name, words).required(required)));
            }
            Some(Open::Option(value, selected, possible)) => {
                if let Some(select) = self.select.as_mut().filter(|_| possible) {
                    let value = value.unwrap_or_else(|| words.clone());
                    if selected {
                        select.chosen = Some(value.clone());
                    }
                    select.options.push(Choosable { value, label: words });
                }
            }
            _ => {}
        }
    }

    fn part(&mut self, owner: Option<String>, part: Part) {
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
        self.page
    }
}

fn add(form: &mut Form, part: Part) {
    match part {
        Part::Field(field) => form.push(field),
        Part::Button(button) => form.push_button(button),
    }
}

/// The address of a refresh such as `0; url='/next'`, if it is soon.
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
