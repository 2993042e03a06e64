//! A first-party application with sign-in screens of its own: its requests to the account API, and what it keeps.

use super::app::App;
use super::browser::{Browser, Person};
use super::server::Server;
use super::unique;
use super::wire::{Answer, Call};
use serde_json::{Value, json};

/// The application, and the origin of its pages.
#[derive(Clone)]
pub struct Screens {
    pub app: App,
    pub origin: String,
}

/// A sign-in on those screens: with tokens, or with cookies and a CSRF token.
#[derive(Clone)]
pub struct Line {
    pub screens: Screens,
    pub browser: Browser,
    pub access: String,
    pub refresh: String,
    pub csrf: String,
    /// The token that identifies its device, if it has tokens.
    pub device: String,
}

impl Screens {
    /// Registers a public application.
    #[track_caller]
    pub fn of(server: &'static Server) -> Screens {
        let origin = format!("https://{}.test", unique("shop"));
        Screens { app: App::public(server, &format!("{origin}/cb"), &["--first-party"]), origin }
    }

    /// Makes a request of one of its pages.
    pub fn call(&self, method: &str, operation: &str, body: &Value) -> Call {
        let call = Call::new(method, &format!("/api/v1/{operation}")).header("origin", &self.origin);
        if method == "GET" { call } else { call.body("application/json", body.to_string()) }
    }

    /// Makes the body of a sign-in.
    pub fn credentials(&self, login: &str, password: &str, cookies: bool) -> Value {
        json!({ "client_id": self.app.id, "login": login, "password": password, "cookies": cookies })
    }

    /// Signs in as a browser does.
    #[track_caller]
    pub fn try_in(&self, browser: &mut Browser, (login, password): (&str, &str), cookies: bool) -> Answer {
        browser.send(self.call("POST", "signin", &self.credentials(login, password, cookies)))
    }

    #[track_caller]
    pub fn sign_in(&self, person: &Person, cookies: bool) -> Line {
        let mut browser = Browser::new(self.app.server);
        let told = self.try_in(&mut browser, (&person.name, &person.password), cookies).must_be(200).json();
        let text = |name: &str| told[name].as_str().unwrap_or_default().to_owned();
        let (access, refresh, csrf) = (text("access_token"), text("refresh_token"), text("csrf_token"));
        let device = text("device_token");
        assert_eq!((access.is_empty(), device.is_empty(), csrf.is_empty()), (cookies, cookies, !cookies), "{told}");
        Line { screens: self.clone(), browser, access, refresh, csrf, device }
    }
}

impl Line {
    fn keeps_cookies(&self) -> bool {
        self.access.is_empty()
    }

    /// Makes a request with the credentials of this sign-in.
    pub fn call(&self, method: &str, operation: &str, body: &Value) -> Call {
        let call = self.screens.call(method, operation, body);
        if self.keeps_cookies() { call.header("x-csrf-token", &self.csrf) } else { call.bearer(&self.access) }
    }

    #[track_caller]
    pub fn send(&mut self, method: &str, operation: &str, body: &Value) -> Answer {
        let call = self.call(method, operation, body);
        self.browser.send(call)
    }

    /// Returns whether the account opens.
    #[track_caller]
    pub fn is_open(&mut self) -> bool {
        self.send("GET", "me", &Value::Null).status == 200
    }

    /// Sends the refresh as the application would.
    #[track_caller]
    pub fn renew(&mut self) -> Answer {
        let body = match self.keeps_cookies() {
            true => json!({ "client_id": self.screens.app.id }),
            false => json!({ "client_id": self.screens.app.id, "refresh_token": self.refresh }),
        };
        let call = self.screens.call("POST", "refresh", &body);
        let call = if self.keeps_cookies() { call.header("x-csrf-token", &self.csrf) } else { call };
        self.browser.send(call)
    }

    /// Changes the password through the account API.
    #[track_caller]
    pub fn change_password(&mut self, current: &str, new: &str) -> Answer {
        let mut body = json!({ "current": current, "new": new });
        if !self.keeps_cookies() {
            body["device_token"] = json!(self.device);
        }
        self.send("PATCH", "password", &body)
    }
}
