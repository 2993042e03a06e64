//! A page as a browser reads it: where it leads by itself, and its forms with their fields.
//!
//! What is not understood: scripts. Of a page that sends its form by one it is seen that it does.

use super::fieldset::Fieldsets;
use super::form::{Button, Field, Form, Kind};
use super::html::{Attributes, Piece, Pieces, decode};

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
                Piece::Text(text) => reader.read(text),
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

    /// Why nobody can sign in on it.
    pub fn asks_nothing(&self) -> String {
        let name = self.name();
        match (self.forms.is_empty(), self.scripts) {
            (true, true) => format!("a script draws the sign-in page, and none is run here ({name})"),
            (true, false) => format!("no form is on the page: does a way to sign in have to be chosen first? ({name})"),
            (false, _) => format!("no form asks a password ({name})"),
        }
    }
}

/// The less, the more a form looks as if it signed in.
fn fits(form: &Form) -> (bool, bool) {
    (!form.shows_password(), form.is_for_newcomers())
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
    name: String,
    first: Option<String>,
    chosen: Option<String>,
}

/// An element whose text says something, and the form that it names.
enum Open {
    Title,
    Button(Button, Option<String>),
    Area(String, Option<String>),
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
            "textarea" if !tag.has("disabled") => self.begin(Open::Area(text("name"), owner)),
            "select" if !tag.has("disabled") => {
                self.select = Some(Choice { owner, name: text("name"), first: None, chosen: None });
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
        match name {
            "form" => {
                self.end();
                self.page.forms.extend(self.form.take());
            }
            "select" => {
                self.end();
                if let Some(Choice { owner, name, first, chosen }) = self.select.take()
                    && let Some(value) = chosen.or(first)
                {
                    self.part(owner, Part::Field(Field::of(Kind::Other, name, value)));
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
            Some(Open::Area(name, owner)) => self.part(owner, Part::Field(Field::of(Kind::Other, name, words))),
            Some(Open::Option(value, selected, possible)) => {
                if let Some(select) = self.select.as_mut().filter(|_| possible) {
                    let value = value.unwrap_or(words);
                    if selected {
                        select.chosen = Some(value.clone());
                    }
                    select.first.get_or_insert(value);
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
mod tests {
    use super::*;

    fn form(page: &str) -> Form {
        Page::of(page).forms.swap_remove(0)
    }

    #[test]
    fn the_title_names_the_page() {
        let named = |text: &str| Page::of(text).name();
        assert_eq!(named("<html><head><title> Sign in &amp; go </title></head>"), "Sign in & go");
        assert_eq!((named("<p>none"), named("<title></title>")), ("no title".to_owned(), "no title".to_owned()));
    }

    #[test]
    fn forms_do_not_share_fields() {
        let found =
            Page::of("<form action=a><input name=x></form><input name=lost><form action=b><input name=y>").forms;
        let bodies: Vec<_> = found.iter().map(|form| form.approve().body).collect();
        assert_eq!(bodies, ["x=", "y="]);
        assert!(found.iter().all(|form| form.approve().get));
    }

    #[test]
    fn the_question_of_a_page_is_the_form_that_says_yes_to_it() {
        let asked = |text: &str| Page::of(text).question().map(|form| form.approve().action);
        let page = "<form action=/search><input name=q><button>Continue</button></form>\
                    <form method=post action=/other><button name=choice value=other>Not you?</button></form>\
                    <form method=post action=/yes><button name=d value=deny>Deny</button><button>Allow</button></form>\
                    <form method=post action=/language><button>Deutsch</button></form>";
        assert_eq!(asked(page).as_deref(), Some("/yes"));
        let unclear = "<form method=post action=/first><button>Weiter</button></form>\
                       <form method=post action=/second><button>Altro</button></form>";
        assert_eq!(asked(unclear).as_deref(), Some("/first"));
        assert_eq!(asked("<form action=/search><input name=q></form>"), None);
        // Red without the second of `question`: a consent that is no more than a link.
        assert_eq!(
            asked("<form action=/search><input name=q></form><form action=/ok><button>Yes").as_deref(),
            Some("/ok")
        );
    }

    /// Some show what is typed.
    #[test]
    fn a_line_of_text_that_is_called_a_password_is_one() {
        for line in [
            "<input name=password>",
            "<input type=text name=p autocomplete=current-password>",
            "<input id=Passwd name=b>",
        ] {
            let page = Page::of(&format!("<form method=post><input name=user>{line}</form>"));
            let form = page.sign_in().unwrap_or_else(|| panic!("{line}"));
            assert!(form.sign_in("ada", "secret").body.ends_with("=secret"), "{line}");
        }
        let page = Page::of("<form method=post><input name=user><input name=password_hint></form>");
        assert!(page.sign_in().is_none());
    }

    #[test]
    fn a_page_that_nobody_expected_is_told_by_its_title_and_how_its_text_goes_on() {
        for (page, said) in [
            (
                "<title>Sign in</title><script>x</script><h1>We are sorry</h1>\n<p>Client&nbsp;not <b>found</b>.",
                "Sign in: We are sorry Client\u{a0}not found .",
            ),
            ("<title>Oops</title><p>Oops</p>", "Oops"),
            ("unable to retrieve client by id", "unable to retrieve client by id"),
            ("<title>Not found</title><p>Nothing is here.<p>Request 5f0c21aa", "Not found: Nothing is here. Request"),
            ("", ""),
        ] {
            assert_eq!(Page::of(page).said(), said, "{page}");
        }
        assert!(Page::of(&"word ".repeat(10_000)).text.len() < 200);
    }

    /// Red without `is_for_newcomers`: on a page with both the first is not always the right one.
    #[test]
    fn the_form_to_sign_in_with_is_not_the_one_that_makes_an_account() {
        let login =
            "<form method=post action=/in><input name=u><input type=password name=p><button>Log in</button></form>";
        for other in [
            "<input name=u><input type=password name=a><input type=password name=b>",
            "<input name=u><input type=password name=a autocomplete=new-password>",
            "<input name=u><input type=password name=a><button>Create account</button>",
            "<input name=u><input type=password name=a><input type=submit value='Sign up'>",
        ] {
            for page in
                [format!("<form method=post action=/new>{other}</form>{login}"), format!("{login}<form>{other}")]
            {
                assert_eq!(Page::of(&page).sign_in().unwrap().approve().action, "/in", "{page}");
            }
        }
    }

    /// Red without `elsewhere`: of a way in that takes two pages only the second asks a password, and the first may offer an account.
    #[test]
    fn a_password_is_not_sent_to_the_form_for_newcomers_beside_that_for_the_name() {
        let name = "<form method=post action=/name><input name=login><button>Next</button></form>";
        let new = "<form method=post action=/register><input name=u><input type=password name=p><button>Register</button></form>";
        for page in [format!("{name}{new}"), format!("{new}{name}")].map(|page| Page::of(&page)) {
            assert!(page.sign_in().is_none() && page.posts_itself().is_none());
            assert_eq!(page.introduction().unwrap().action(), "/name");
            assert_eq!(page.asks_password().unwrap().action(), "/register");
        }
        let both =
            Page::of(&format!("{new}{name}<form method=post action=/in><input name=u><input type=password name=p>"));
        assert_eq!(both.sign_in().unwrap().action(), "/in", "with all three");
    }

    /// Red without `Choice` and `Open::Area`: what a browser sends as it stands is sent.
    #[test]
    fn lists_and_areas_are_sent_as_they_stand() {
        let page = "<form><select name=a><option value=1>One<option value=2 selected>Two</select>\
                    <select name=b><option disabled value=''>Choose</option><option>First &amp; one</option><option>2</select>\
                    <select name=none></select><select name=off disabled><option>x</select>\
                    <textarea name=t>hi &lt;you&gt;</textarea><textarea name=u disabled>no</textarea></form>";
        assert_eq!(form(page).sign_in("", "").body, "a=2&b=First+%26+one&t=hi+%3Cyou%3E");
    }

    /// Red without `strays`.
    #[test]
    fn parts_outside_of_their_form_belong_to_it_all_the_same() {
        let page = "<input form=f name=u><form id=g><input type=password form=f name=p><input name=x></form>\
                    <form id=f method=post action=/in></form><button form=f name=go value=1>Log in</button>\
                    <input form=nowhere name=y>";
        let page = Page::of(page);
        let filled = page.sign_in().unwrap().sign_in("ann", "pw");
        assert_eq!((filled.action.as_str(), filled.body.as_str()), ("/in", "u=ann&p=pw&go=1"));
        assert_eq!(page.forms[0].approve().body, "x=");
    }

    #[test]
    fn a_page_leads_on_by_itself_only_soon_and_only_where_nobody_is_asked() {
        let leads = |content: &str, rest: &str| {
            let page = Page::of(&format!(r#"<base href="/b/"><meta http-equiv="Refresh" content="{content}">{rest}"#));
            assert_eq!(page.base.as_deref(), Some("/b/"));
            page.leads_to().map(str::to_owned)
        };
        for content in ["0;url=/x?a&amp;b", "0; URL='/x?a&amp;b'", " 3 , url = /x?a&amp;b", "0;/x?a&amp;b"] {
            assert_eq!(leads(content, "").as_deref(), Some("/x?a&b"), "{content}");
        }
        for content in ["5", "0;", "0;url=", "1800;url=/timeout", "-1;url=/x", "soon;url=/x", "NaN;url=/x", ""] {
            assert_eq!(leads(content, ""), None, "{content}");
        }
        assert_eq!(leads("0;url=/x", "<form><input type=password name=p></form>"), None);
    }

    #[test]
    fn a_page_that_asks_nothing_says_why() {
        let why = |text: &str| Page::of(text).asks_nothing();
        assert!(why("<title>flow</title><div></div><SCRIPT src=a.js></SCRIPT>").starts_with("a script draws"));
        assert!(why("<a href=/google>Google</a>").starts_with("no form is on the page"));
        assert_eq!(why("<title>T</title><form><input name=q></form><script></script>"), "no form asks a password (T)");
    }

    #[test]
    fn a_page_posts_itself_where_a_script_does_and_nobody_is_asked() {
        let posts = |text: &str| Page::of(text).posts_itself().is_some();
        // Keycloak's sign-in page, where there is another way: a link sends that form.
        let other = r#"<form id=t method=post action=/t><input type=hidden name=tryAnotherWay value=on>
            <a href="" onclick="document.forms['t'].submit();return false;">Try another way</a></form>"#;
        let password = r#"<form method=post action=/l><input name=username><input type=password name=password></form>"#;
        assert!(posts(other) && !posts(&format!("{other}{password}")) && !posts(&format!("{password}{other}")));
        let form = "<form method=post action=/x><input type=hidden name=a value=1><input type=submit></form>";
        assert!(posts(&format!("<body onload='document.forms[0].submit()'>{form}")));
        assert!(posts(&format!("{form}<script>document.getElementById('f').submit();</script>")));
        assert!(!posts(form));
        assert!(!posts("<form method=post><input name=code><button>Next</button></form><script>f.submit()</script>"));
    }

    #[test]
    fn a_page_that_is_cut_off_is_read_as_far_as_it_goes() {
        for text in
            ["<form><button>", "<form><select name=a><option>x", "<title>", "<form><textarea name=a>", "</form>"]
        {
            assert!(Page::of(text).forms.len() <= 1, "{text}");
        }
        assert_eq!(Page::of("<title>Cut").name(), "Cut");
    }
}
