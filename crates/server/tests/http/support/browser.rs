//! Users and their browsers.

use super::server::Server;
use super::unique;
use super::wire::{Answer, Call};
use load::visitor::html::{Piece, Pieces};
use load::wire::Jar;

/// A user with an account.
#[derive(Clone, Debug)]
pub struct Person {
    pub name: String,
    pub email: String,
    pub password: String,
}

impl Person {
    /// Makes an account through the command line.
    #[track_caller]
    pub fn add(server: &Server) -> Person {
        Person::stranger().added(server)
    }

    /// Makes an account for this user.
    #[track_caller]
    pub fn added(self, server: &Server) -> Person {
        server.must(&["user", "add", &self.name, "--email", &self.email, "--password-stdin"], &self.password);
        self
    }

    /// Makes a user who has no account yet.
    pub fn stranger() -> Person {
        let name = unique("person");
        Person { email: format!("{name}@example.test"), password: "gorse violet anvil 41".into(), name }
    }

    /// Applies `disable`, `enable` or `remove`.
    #[track_caller]
    pub fn change(&self, server: &Server, verb: &str) {
        server.must(&["user", verb, &self.name], "");
    }
}

/// A form of a page: its current fields, and its buttons.
#[derive(Clone, Debug, Default)]
pub struct Form {
    pub action: String,
    pub fields: Vec<(String, String)>,
    pub buttons: Vec<(String, String)>,
}

impl Form {
    /// Returns every form of a page.
    pub fn all(page: &str) -> Vec<Form> {
        let mut forms: Vec<Form> = Vec::new();
        let mut open = false;
        for piece in Pieces::of(page) {
            let (name, tag) = match piece {
                Piece::Close(name) if name == "form" => {
                    open = false;
                    continue;
                }
                Piece::Open(name, tag) => (name, tag),
                _ => continue,
            };
            let text = |attribute| tag.value(attribute).unwrap_or_default().to_owned();
            match (name.as_str(), forms.last_mut()) {
                ("form", _) => {
                    open = true;
                    forms.push(Form { action: text("action"), ..Form::default() });
                }
                ("input", Some(form)) if open && tag.has("name") => form.fields.push((text("name"), text("value"))),
                ("button", Some(form)) if open && tag.has("name") => form.buttons.push((text("name"), text("value"))),
                _ => {}
            }
        }
        forms
    }

    /// Returns the form that is sent to `action`.
    pub fn find(page: &str, action: &str) -> Option<Form> {
        Form::all(page).into_iter().find(|form| form.action == action)
    }

    /// Types a value, in place of the current one.
    pub fn fill(mut self, name: &str, value: &str) -> Form {
        self.fields.retain(|(known, _)| known != name);
        self.fields.push((name.into(), value.into()));
        self
    }

    pub fn value(&self, name: &str) -> &str {
        self.fields.iter().find(|(known, _)| known == name).map_or("", |(_, value)| value.as_str())
    }

    pub fn call(&self) -> Call {
        let fields: Vec<(&str, &str)> =
            self.fields.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        Call::post(&self.action, &fields)
    }
}

/// A user's browser: cookies, and methods to fill in forms.
#[derive(Clone)]
pub struct Browser {
    pub server: &'static Server,
    pub jar: Jar,
}

impl Browser {
    pub fn new(server: &'static Server) -> Browser {
        Browser { server, jar: Jar::default() }
    }

    /// Makes a browser in which `person` is signed in.
    #[track_caller]
    pub fn of(server: &'static Server, person: &Person) -> Browser {
        let mut browser = Browser::new(server);
        browser.sign_in(person);
        browser
    }

    #[track_caller]
    pub fn send(&mut self, call: Call) -> Answer {
        let answer = self.server.send(&call.cookies(&self.jar));
        answer.all("set-cookie").into_iter().for_each(|line| self.jar.keep(line));
        answer
    }

    #[track_caller]
    pub fn get(&mut self, target: &str) -> Answer {
        self.send(Call::get(target))
    }

    /// Sends a form as a browser does, with its origin.
    #[track_caller]
    pub fn submit(&mut self, form: &Form) -> Answer {
        let origin = self.server.issuer.clone();
        self.send(form.call().header("origin", &origin))
    }

    /// Follows redirects as long as they stay on this server.
    #[track_caller]
    pub fn follow(&mut self, mut answer: Answer) -> Answer {
        for _ in 0..10 {
            let here = answer.location().and_then(|to| {
                to.strip_prefix(&self.server.issuer).or_else(|| Some(to).filter(|to| to.starts_with('/')))
            });
            let Some(target) = here.map(str::to_owned) else { return answer };
            answer = self.get(&target);
        }
        panic!("redirects without end")
    }

    /// Signs in on the way to the account home.
    #[track_caller]
    pub fn sign_in(&mut self, person: &Person) -> Answer {
        let page = self.sign_in_page();
        self.log_in_on(&page, &person.name, &person.password).must_be(303)
    }

    /// Gets the sign-in page on the way to the account home.
    #[track_caller]
    pub fn sign_in_page(&mut self) -> Answer {
        self.get("/login").must_be(200)
    }

    /// Makes the first account through the link that the server left in its folder, and signs its owner in.
    #[track_caller]
    pub fn set_up(&mut self, owner: &Person) -> Answer {
        let link = std::fs::read_to_string(self.server.data().join("setup-link")).unwrap();
        let token = link.trim().rsplit('#').next().unwrap();
        let page = self.get("/setup").must_be(200).text();
        let form = Form::find(&page, "/setup").unwrap_or_else(|| panic!("no set-up form: {page}"));
        let form = form.fill("token", token).fill("username", &owner.name).fill("email", &owner.email);
        self.submit(&form.fill("password", &owner.password))
    }

    /// Fills in the sign-in form of a page.
    #[track_caller]
    pub fn log_in_on(&mut self, page: &Answer, login: &str, password: &str) -> Answer {
        let form = Form::find(&page.text(), "/login").unwrap_or_else(|| panic!("no sign-in form: {}", page.text()));
        self.submit(&form.fill("login", login).fill("password", password))
    }

    /// Answers all pages, agreeing to each, until the browser is sent away or a page has no question.
    #[track_caller]
    pub fn go_through(&mut self, answer: Answer, person: &Person) -> Answer {
        let mut answer = self.follow(answer);
        for _ in 0..4 {
            if answer.location().is_some() {
                return answer;
            }
            let page = answer.text();
            let next = if Form::find(&page, "/login").is_some() {
                self.log_in_on(&answer, &person.name, &person.password)
            } else if let Some(consent) = Form::find(&page, "/consent") {
                self.submit(&consent.fill("decision", "allow"))
            } else {
                return answer;
            };
            answer = self.follow(next);
        }
        answer
    }

    /// Returns whether a user is signed in.
    #[track_caller]
    pub fn is_signed_in(&mut self) -> bool {
        self.get("/account").status == 200
    }

    /// Returns the form of the account home that is sent to `action`.
    #[track_caller]
    pub fn account_form(&mut self, action: &str) -> Form {
        let page = self.get("/account").must_be(200).text();
        Form::find(&page, action).unwrap_or_else(|| panic!("the account home has no form for {action}: {page}"))
    }

    /// Returns the value of the cookie whose name begins with `prefix`.
    pub fn cookie(&self, prefix: &str) -> Option<String> {
        self.jar.iter().find(|(name, _)| name.starts_with(prefix)).map(|(_, value)| value.to_owned())
    }
}
