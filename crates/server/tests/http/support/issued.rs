//! One of everything that can be issued, and how much of it still works.

use super::app::{App, Tokens};
use super::browser::{Browser, Form, Person};
use super::wire::Call;

/// The grant type of RFC 8628 §3.4.
pub const DEVICE: &str = "urn:ietf:params:oauth:grant-type:device_code";

/// One user, one application, and one of everything that can be issued.
pub struct Issued {
    pub app: App,
    pub person: Person,
    pub browser: Browser,
    code: String,
    bound: Tokens,
    offline: Tokens,
    device_code: String,
}

impl Issued {
    #[track_caller]
    pub fn all(app: App) -> Issued {
        let server = app.server;
        let person = Person::add(server);
        let mut browser = Browser::of(server, &person);
        let bound = app.tokens(&mut browser, &person);
        let offline = app.tokens_for(&mut browser, &person, &app.ask().with("scope", "openid offline_access"));
        let asked = app.post("/oauth2/device", &[("scope", "openid")]).must_be(200).json();
        let page = browser.get("/device").must_be(200).text();
        let entry = Form::find(&page, "/device").unwrap().fill("user_code", asked["user_code"].as_str().unwrap());
        let page = browser.submit(&entry).must_be(200).text();
        let confirm = Form::find(&page, "/device/confirm").unwrap().fill("decision", "allow");
        browser.submit(&confirm).must_be(303);
        let device_code = asked["device_code"].as_str().unwrap().to_owned();
        let code = app.code(&mut browser, &person, &app.ask());
        Issued { app, person, browser, code, bound, offline, device_code }
    }

    /// Returns what still works.
    #[track_caller]
    pub fn alive(&mut self) -> Vec<&'static str> {
        let (app, server) = (self.app.clone(), self.app.server);
        let userinfo = |token: &str| server.send(&Call::get("/oauth2/userinfo").bearer(token)).status == 200;
        let silent = self.browser.get(&app.ask().with("prompt", "none").target());
        let silent = silent.location().is_some() && silent.landed().contains_key("code");
        let polled = app.post("/oauth2/token", &[("grant_type", DEVICE), ("device_code", &self.device_code)]);
        let own = app.post("/oauth2/token", &[("grant_type", "client_credentials"), ("scope", "api")]);
        let found = [
            ("silent", silent),
            ("account", self.browser.is_signed_in()),
            ("code", app.redeem(&self.code).status == 200),
            ("access", userinfo(&self.bound.access)),
            ("refresh", app.refresh(&self.bound.refresh).status == 200),
            ("offline access", userinfo(&self.offline.access)),
            ("offline refresh", app.refresh(&self.offline.refresh).status == 200),
            ("device", polled.status == 200),
            ("own", own.status == 200),
        ];
        found.into_iter().filter(|(_, alive)| *alive).map(|(name, _)| name).collect()
    }

    /// Returns what introspection calls active; only while the application may ask.
    #[track_caller]
    pub fn introspected(&self) -> Vec<&'static str> {
        let tokens = [
            ("access", &self.bound.access),
            ("refresh", &self.bound.refresh),
            ("offline access", &self.offline.access),
            ("offline refresh", &self.offline.refresh),
        ];
        tokens.into_iter().filter(|(_, token)| self.app.is_active(token)).map(|(name, _)| name).collect()
    }
}
