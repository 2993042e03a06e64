//! From the authorization endpoint to the code, through whatever pages the provider shows (RFC 6749 §4.1, RFC 7636).

use super::form::{self, Filled, Form};
use super::{Setback, Step, Visitor, ask, describe};
use crate::wire::{Body, Request, Url};
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use sha2::{Digest, Sha256};
use std::sync::Arc;
use std::time::Instant;

/// The most redirects that are followed at once; browsers allow 20.
const MAX_REDIRECTS: usize = 10;
/// The most pages between password and code.
const MAX_PAGES: usize = 3;

/// A code, and the verifier that goes with it.
pub struct Pass {
    pub code: String,
    pub verifier: String,
}

/// What a client remembers between request and response.
struct Errand {
    verifier: String,
    state: String,
    nonce: String,
}

impl Errand {
    /// The randomness is fast and not secret: nothing here protects anybody.
    fn new(rng: &mut fastrand::Rng) -> Self {
        let mut text = || {
            let mut bytes = [0; 32];
            rng.fill(&mut bytes);
            URL_SAFE_NO_PAD.encode(bytes)
        };
        Errand { verifier: text(), state: text(), nonce: text() }
    }

    /// RFC 7636 §4.2, S256.
    fn challenge(&self) -> String {
        URL_SAFE_NO_PAD.encode(Sha256::digest(self.verifier.as_bytes()))
    }
}

/// Where a chain of redirects ends.
enum Landing {
    /// At the redirect URI, with a code that is for us.
    Code(String),
    /// At a page.
    Page(Url, String),
}

impl Visitor {
    /// Goes through the sign-in page as the next user, up to the code. Counts as steps `authorize` and `login`.
    pub(super) async fn sign_in(&mut self) -> Result<Pass, Setback> {
        let begun = Instant::now();
        let errand = Errand::new(&mut self.rng);
        let Landing::Page(place, page) = self.authorize(&errand).await? else {
            return Err(Step::Authorize.wrong("a code without any sign-in page"));
        };
        let forms = form::forms(&page);
        if !forms.iter().any(|form| form.asks_password() || form.asks_name()) {
            return Err(Step::Authorize.wrong(format!("no form asks a password ({})", titled(&page))));
        }
        self.finish(Step::Authorize, begun);
        let begun = Instant::now();
        let scene = Arc::clone(&self.scene);
        let user = scene.user(&mut self.rng);
        let (place, form) = match form::forms(&page).into_iter().find(Form::asks_password) {
            Some(form) => (place, form),
            None => self.introduce(&place, &forms, &user.login, &errand).await?,
        };
        let mut landing = self.submit(&place, form.sign_in(&user.login, &user.password), &errand).await?;
        for _ in 0..MAX_PAGES {
            let (place, page) = match landing {
                Landing::Code(code) => {
                    self.finish(Step::Login, begun);
                    return Ok(Pass { code, verifier: errand.verifier });
                }
                Landing::Page(place, page) => (place, page),
            };
            landing = self.submit(&place, consent(&page)?, &errand).await?;
        }
        Err(Step::Login.wrong("too many pages after the password"))
    }

    /// Says who comes, where that is asked on a page of its own; then there is a form for the password.
    async fn introduce(
        &mut self,
        place: &Url,
        forms: &[Form],
        login: &str,
        errand: &Errand,
    ) -> Result<(Url, Form), Setback> {
        let Some(form) = forms.iter().find(|form| form.asks_name()) else {
            return Err(Step::Authorize.wrong("no form asks who comes"));
        };
        match self.submit(place, form.sign_in(login, ""), errand).await? {
            Landing::Code(_) => Err(Step::Login.wrong("a code without a password")),
            Landing::Page(place, page) => {
                let form = form::forms(&page).into_iter().find(Form::asks_password);
                form.map(|form| (place, form)).ok_or_else(|| {
                    Step::Login.wrong(format!("no form asks a password after the name ({})", titled(&page)))
                })
            }
        }
    }

    /// Gets a code with the session that is there already. Counts as step `authorize`.
    pub(super) async fn pass_by(&mut self) -> Result<Pass, Setback> {
        let begun = Instant::now();
        let errand = Errand::new(&mut self.rng);
        match self.authorize(&errand).await? {
            Landing::Code(code) => {
                self.finish(Step::Authorize, begun);
                Ok(Pass { code, verifier: errand.verifier })
            }
            Landing::Page(_, page) => {
                Err(Step::Authorize.wrong(format!("a page despite a session ({})", titled(&page))))
            }
        }
    }

    async fn authorize(&mut self, errand: &Errand) -> Result<Landing, Setback> {
        let scene = Arc::clone(&self.scene);
        let client = &scene.plan.client;
        let query = form_urlencoded::Serializer::new(String::new())
            .extend_pairs([
                ("response_type", "code"),
                ("client_id", &client.id),
                ("redirect_uri", &client.redirect_uri),
                ("scope", &client.scope),
                ("state", &errand.state),
                ("nonce", &errand.nonce),
                ("code_challenge", &errand.challenge()),
                ("code_challenge_method", "S256"),
            ])
            .finish();
        let Some(endpoint) = scene.provider.endpoint(Step::Authorize) else {
            return Err(Step::Authorize.wrong("discovery names no such endpoint"));
        };
        self.follow(Step::Authorize, endpoint.with_query(&query), None, errand).await
    }

    async fn submit(&mut self, place: &Url, filled: Filled, errand: &Errand) -> Result<Landing, Setback> {
        let action =
            place.join(&filled.action).map_err(|wrong| Step::Login.wrong(format!("the form's address: {wrong}")))?;
        match filled.get {
            true => self.follow(Step::Login, action.with_query(&filled.body), None, errand).await,
            false => self.follow(Step::Login, action, Some(filled.body), errand).await,
        }
    }

    /// Sends, then goes where the answers point, as a browser does: a POST becomes a GET after 302 and 303 (RFC 9110 §15.4).
    async fn follow(
        &mut self,
        step: Step,
        mut url: Url,
        mut form: Option<String>,
        errand: &Errand,
    ) -> Result<Landing, Setback> {
        for _ in 0..MAX_REDIRECTS {
            let origin = url.origin();
            let headers = [("accept", "text/html"), ("origin", origin.as_str())];
            // Browsers name the origin of a POST only.
            let headers = if form.is_some() { &headers[..] } else { &headers[..1] };
            let request = Request {
                url: &url,
                body: form.as_deref().map_or(Body::Nothing, Body::Form),
                headers,
                cookies: Some(&self.jar),
            };
            let reply = ask(&mut self.wire, step, &request).await?;
            reply.headers("set-cookie").for_each(|cookie| self.jar.keep(cookie));
            match (reply.status(), reply.header("location")) {
                (200, _) => return Ok(Landing::Page(url, reply.text().into_owned())),
                (status @ (301..=303 | 307 | 308), Some(location)) => {
                    if let Some(response) = self.scene.arrives(location) {
                        return self.scene.code(step, response, errand).map(Landing::Code);
                    }
                    url = url
                        .join(location)
                        .map_err(|wrong| step.wrong(format!("redirected to a wrong place: {wrong}")))?;
                    form = form.filter(|_| matches!(status, 307 | 308));
                }
                // The same page once more, with a status of its own: what it means is told where pages are looked at.
                (400 | 401 | 403 | 422, _) if step == Step::Login && asks_password(&reply.text()) => {
                    return Ok(Landing::Page(url, reply.text().into_owned()));
                }
                _ => return Err(step.wrong(describe(reply))),
            }
        }
        Err(step.wrong("too many redirects"))
    }
}

impl super::Scene {
    /// The query of `location`, when that is our redirect URI.
    fn arrives<'a>(&self, location: &'a str) -> Option<&'a str> {
        let rest = location.strip_prefix(self.plan.client.redirect_uri.as_str())?;
        rest.strip_prefix(['?', '&'])
    }

    /// Reads an authorization response: the code, if state (RFC 6749 §10.12) and issuer (RFC 9207 §2.4) are right.
    fn code(&self, step: Step, response: &str, errand: &Errand) -> Result<String, Setback> {
        let response = response.split('#').next().unwrap_or_default();
        let value = |name: &str| {
            let mut pairs = form_urlencoded::parse(response.as_bytes());
            pairs.find(|(key, _)| key == name).map(|(_, value)| value.into_owned())
        };
        if value("state").as_deref() != Some(&errand.state) {
            return Err(step.wrong("the state came back changed"));
        }
        match value("iss") {
            Some(issuer) if issuer != self.provider.issuer => {
                return Err(step.wrong("the response names another issuer"));
            }
            None if self.provider.names_itself => return Err(step.wrong("the response names no issuer")),
            _ => {}
        }
        match (value("code"), value("error")) {
            (Some(code), None) => Ok(code),
            (_, Some(error)) => Err(step.wrong(format!("redirected with error {error}"))),
            (None, None) => Err(step.wrong("redirected without a code")),
        }
    }
}

/// The answer to a page after the password: a form without a password is a question to agree to.
fn consent(page: &str) -> Result<Filled, Setback> {
    let forms = form::forms(page);
    if asks_password(page) {
        return Err(
            Step::Login.wrong(format!("the sign-in page came back ({}): wrong login or password", titled(page)))
        );
    }
    let question = form::question(&forms).map(form::Form::approve);
    question.ok_or_else(|| Step::Login.wrong(format!("a page without a form ({})", titled(page))))
}

fn asks_password(page: &str) -> bool {
    form::forms(page).iter().any(form::Form::asks_password)
}

fn titled(page: &str) -> String {
    form::title(page).unwrap_or_else(|| "no title".to_owned()).chars().take(60).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_challenge_is_the_one_of_rfc_7636_appendix_b() {
        let verifier = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk".to_owned();
        let errand = Errand { verifier, state: String::new(), nonce: String::new() };
        assert_eq!(errand.challenge(), "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM");
    }

    #[test]
    fn errands_differ_and_verifiers_are_long_enough() {
        let rng = &mut fastrand::Rng::new();
        let (one, other) = (Errand::new(rng), Errand::new(rng));
        assert!(one.verifier != other.verifier && one.state != other.state && one.verifier != one.state);
        assert_eq!(one.verifier.len(), 43);
    }

    #[test]
    fn a_sign_in_page_that_comes_back_is_no_consent() {
        let page = "<title>Sign in</title><form method=post><input name=a><input type=password name=b></form>";
        let setback = consent(page).unwrap_err();
        assert_eq!(setback.to_string(), "login: the sign-in page came back (Sign in): wrong login or password");
        assert!(consent("<form action=/search><input name=q></form>").is_err());
        assert!(consent("<form method=post action=/consent><button>Allow</button></form>").is_ok());
    }
}
