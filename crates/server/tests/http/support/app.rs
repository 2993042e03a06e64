//! Applications: registration, authorization requests, and their requests to the token endpoint.

use super::browser::{Browser, Person};
use super::server::Server;
use super::unique;
use super::wire::{Answer, Call};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

/// RFC 7636 appendix B.
pub const VERIFIER: &str = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
/// RFC 7636 appendix B.
pub const CHALLENGE: &str = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";
/// The secret of every confidential application here.
pub const SECRET: &str = "0123456789abcdefghijklmnopqrstuvwxyzABCDEF";
/// All scopes that an application may request.
const SCOPES: [&str; 6] = ["openid", "profile", "email", "offline_access", "groups", "api"];

/// The grants that an application registers besides code and refresh.
pub enum Grants {
    Usual,
    All,
}

/// A registered application.
#[derive(Clone)]
pub struct App {
    pub server: &'static Server,
    pub id: String,
    pub secret: Option<&'static str>,
    pub redirect: String,
}

impl App {
    /// Registers a web application with a secret and a consent page.
    #[track_caller]
    pub fn web(server: &'static Server) -> App {
        App::add(server, Grants::Usual, &[])
    }

    /// Registers an application whose users are not asked for consent.
    #[track_caller]
    pub fn trusted(server: &'static Server) -> App {
        App::add(server, Grants::All, &["--trusted"])
    }

    /// Registers a confidential application with further options.
    #[track_caller]
    pub fn add(server: &'static Server, grants: Grants, options: &[&str]) -> App {
        let id = unique("app");
        let redirect = format!("https://{id}.test/cb");
        let mut line = vec!["client", "add", "--id", &id, "--redirect-uri", &redirect, "--secret-stdin"];
        if matches!(grants, Grants::All) {
            for grant in ["authorization_code", "refresh_token", "client_credentials", "device_code"] {
                line.extend(["--grant", grant]);
            }
        }
        SCOPES.iter().for_each(|scope| line.extend(["--scope", scope]));
        line.extend(options);
        server.must(&line, SECRET);
        App { server, secret: Some(SECRET), redirect: redirect.clone(), id: id.clone() }
    }

    /// Registers a public application with further options.
    #[track_caller]
    pub fn public(server: &'static Server, redirect: &str, options: &[&str]) -> App {
        App::at(server, redirect, &[&["--public"], options].concat(), None)
    }

    /// Registers a native application with a secret, which each of its copies would have.
    #[track_caller]
    pub fn shipped(server: &'static Server, redirect: &str) -> App {
        App::at(server, redirect, &["--native", "--secret-stdin"], Some(SECRET))
    }

    #[track_caller]
    fn at(server: &'static Server, redirect: &str, options: &[&str], secret: Option<&'static str>) -> App {
        let id = unique("pub");
        let mut line = vec!["client", "add", "--id", &id, "--redirect-uri", redirect];
        SCOPES[..5].iter().for_each(|scope| line.extend(["--scope", scope]));
        line.extend(options);
        server.must(&line, secret.unwrap_or_default());
        App { server, secret, redirect: redirect.to_owned(), id: id.clone() }
    }

    /// Applies `disable`, `enable` or `remove`.
    #[track_caller]
    pub fn change(&self, verb: &str) {
        self.server.must(&["client", verb, &self.id], "");
    }

    /// Returns the credentials as RFC 6749 §2.3.1 writes them.
    pub fn basic(&self) -> String {
        let encoded = |text: &str| form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>();
        let (id, secret) = (encoded(&self.id), encoded(self.secret.unwrap_or_default()));
        format!("Basic {}", STANDARD.encode(format!("{id}:{secret}")))
    }

    /// Sends a POST of this application to one of the endpoints for clients.
    #[track_caller]
    pub fn post(&self, target: &str, fields: &[(&str, &str)]) -> Answer {
        self.server.send(&self.call(target, fields))
    }

    pub fn call(&self, target: &str, fields: &[(&str, &str)]) -> Call {
        match self.secret {
            Some(_) => Call::post(target, fields).header("authorization", &self.basic()),
            None => {
                let mut fields = fields.to_vec();
                fields.push(("client_id", &self.id));
                Call::post(target, &fields)
            }
        }
    }

    /// Makes the request that redeems a code.
    pub fn redemption(&self, code: &str) -> Call {
        self.redemption_with(code, &[])
    }

    /// Makes the request that redeems a code, with more fields.
    pub fn redemption_with(&self, code: &str, more: &[(&str, &str)]) -> Call {
        let fields = [
            ("grant_type", "authorization_code"),
            ("code", code),
            ("redirect_uri", &self.redirect),
            ("code_verifier", VERIFIER),
        ];
        self.call("/oauth2/token", &[&fields, more].concat())
    }

    #[track_caller]
    pub fn redeem(&self, code: &str) -> Answer {
        self.server.send(&self.redemption(code))
    }

    #[track_caller]
    pub fn refresh(&self, token: &str) -> Answer {
        self.post("/oauth2/token", &[("grant_type", "refresh_token"), ("refresh_token", token)])
    }

    #[track_caller]
    pub fn introspect(&self, token: &str) -> Value {
        self.post("/oauth2/introspect", &[("token", token)]).must_be(200).json()
    }

    #[track_caller]
    pub fn is_active(&self, token: &str) -> bool {
        self.introspect(token)["active"] == Value::Bool(true)
    }

    #[track_caller]
    pub fn revoke(&self, token: &str) -> Answer {
        self.post("/oauth2/revoke", &[("token", token)])
    }

    /// Makes the usual authorization request.
    pub fn ask(&self) -> Authorization {
        let pairs = [
            ("client_id", self.id.as_str()),
            ("redirect_uri", &self.redirect),
            ("response_type", "code"),
            ("scope", "openid profile email"),
            ("state", "s-te"),
            ("nonce", "n-0S6"),
            ("code_challenge", CHALLENGE),
            ("code_challenge_method", "S256"),
        ];
        Authorization(pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect())
    }

    /// Gets a code; `person` agrees to every page.
    #[track_caller]
    pub fn code(&self, browser: &mut Browser, person: &Person, ask: &Authorization) -> String {
        let answer = browser.get(&ask.target());
        let landed = browser.go_through(answer, person).landed();
        landed.get("code").cloned().unwrap_or_else(|| panic!("no code: {landed:?}"))
    }

    /// Gets tokens, from the authorization request on.
    #[track_caller]
    pub fn tokens(&self, browser: &mut Browser, person: &Person) -> Tokens {
        self.tokens_for(browser, person, &self.ask())
    }

    #[track_caller]
    pub fn tokens_for(&self, browser: &mut Browser, person: &Person, ask: &Authorization) -> Tokens {
        Tokens::of(&self.redeem(&self.code(browser, person, ask)))
    }
}

/// An authorization request.
#[derive(Clone)]
pub struct Authorization(Vec<(String, String)>);

impl Authorization {
    /// Sets a parameter, in place of any earlier value.
    pub fn with(mut self, name: &str, value: &str) -> Self {
        self.0.retain(|(known, _)| known != name);
        self.0.push((name.into(), value.into()));
        self
    }

    pub fn without(mut self, name: &str) -> Self {
        self.0.retain(|(known, _)| known != name);
        self
    }

    pub fn query(&self) -> String {
        form_urlencoded::Serializer::new(String::new()).extend_pairs(&self.0).finish()
    }

    pub fn target(&self) -> String {
        format!("/oauth2/authorize?{}", self.query())
    }

    pub fn pairs(&self) -> Vec<(&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect()
    }
}

/// A token response.
#[derive(Clone, Debug)]
pub struct Tokens {
    pub access: String,
    pub refresh: String,
    pub id: String,
    pub json: Value,
}

impl Tokens {
    #[track_caller]
    pub fn of(answer: &Answer) -> Tokens {
        assert_eq!(answer.status, 200, "{}", answer.text());
        let json = answer.json();
        let text = |name: &str| json[name].as_str().unwrap_or_default().to_owned();
        Tokens {
            access: text("access_token"),
            refresh: text("refresh_token"),
            id: text("id_token"),
            json: json.clone(),
        }
    }
}
