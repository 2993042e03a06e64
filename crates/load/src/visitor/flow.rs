//! The way from the authorization endpoint to the code, through the provider's pages (RFC 6749 §4.1, RFC 7636).

use super::form::{Filled, Form};
use super::page::Page;
use super::{Cause, Reason, Setback, Step, Visitor, ask, describe};
use crate::wire::{Body, Fault, Request, Url};
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use sha2::{Digest, Sha256};
use std::sync::Arc;
use std::time::Instant;

/// The failure when a page appears although a session should make it unnecessary: the session is over.
pub const DESPITE: &str = "a page despite a session";

/// The beginning of the failure when the authorization response is an error.
const SENT_BACK: &str = "redirected with error ";

/// The beginning of the failure when a provider says that this user, or this client, may not.
pub const NO_ACCESS: &str = "redirected with error access_denied";

/// The most redirects that are followed in a row, as in browsers.
const MAX_REDIRECTS: usize = 20;
/// The most pages between password and code.
const MAX_PAGES: usize = 8;

/// A code, and the verifier that goes with it.
pub struct Pass {
    pub code: String,
    pub verifier: String,
    /// The nonce that the ID token has to repeat.
    pub nonce: String,
}

/// What a client remembers between the authorization request and the response.
pub(super) struct Errand {
    pub(super) verifier: String,
    state: String,
    nonce: String,
}

impl Errand {
    /// Draws the values from a fast generator that is not secret: nothing here protects anybody.
    pub(super) fn new(rng: &mut fastrand::Rng) -> Self {
        let mut text = || {
            let mut bytes = [0; 32];
            rng.fill(&mut bytes);
            URL_SAFE_NO_PAD.encode(bytes)
        };
        Errand { verifier: text(), state: text(), nonce: text() }
    }

    /// Returns the code challenge (RFC 7636 §4.2, S256).
    pub(super) fn challenge(&self) -> String {
        URL_SAFE_NO_PAD.encode(Sha256::digest(self.verifier.as_bytes()))
    }
}

/// Where a chain of redirects ends.
enum Landing {
    /// At the redirect URI, with a code for this client.
    Code(String),
    /// At a page.
    Page(Seen),
}

/// A page, and the URL where it was found.
struct Seen {
    url: Url,
    page: Page,
}

/// What comes next.
enum Next {
    /// A request; a POST if there is a form.
    Request(Url, Option<String>),
    /// An authorization response that has arrived at the redirect URI.
    Arrived(String),
}

impl Visitor {
    /// Signs in as the next user through the sign-in page, up to the code. Counts as steps `authorize` and `login`.
    pub(super) async fn sign_in(&mut self) -> Result<Pass, Setback> {
        let begun = Instant::now();
        let errand = Errand::new(&mut self.rng);
        let Landing::Page(seen) = self.authorize(&errand).await? else {
            return Err(Step::Authorize.wrong("a code without any sign-in page"));
        };
        if seen.page.sign_in().or_else(|| seen.page.introduction()).is_none() {
            return Err(Step::Authorize.wrong(seen.page.asks_nothing()));
        }
        self.finish(Step::Authorize, begun);
        let begun = Instant::now();
        let scene = Arc::clone(&self.scene);
        let user = scene.user(&mut self.rng);
        let seen = self.introduce(seen, &user.login, &errand).await?;
        let form = seen.page.sign_in();
        let filled = form.map(|form| form.sign_in(&user.login, &user.password));
        let typed = form.map(Form::typed).unwrap_or_default();
        let (mut last, mut did) = (asked(&seen.page), String::new());
        let who = (&errand, user.login.as_str());
        let mut landing = self.submit(&seen, filled.unwrap_or_default(), who).await?;
        for _ in 0..MAX_PAGES {
            let seen = match landing {
                Landing::Code(code) => {
                    self.finish(Step::Login, begun);
                    return Ok(Pass { code, verifier: errand.verifier, nonce: errand.nonce });
                }
                Landing::Page(seen) => seen,
            };
            last = asked(&seen.page);
            let filled = consent(&seen.page, &user.login, &typed)?;
            did.clone_from(&filled.did);
            landing = self.submit(&seen, filled, who).await.map_err(|setback| after(setback, &did))?;
        }
        let done = if did.is_empty() { did } else { format!("; each time {did}") };
        Err(for_user("of", &user.login, |of| {
            format!("too many pages after the password ({last}){of}: what they ask for is no yes{done}")
        }))
    }

    /// Enters the login name, if a separate page asks for it; returns the page that asks for the password.
    async fn introduce(&mut self, seen: Seen, login: &str, errand: &Errand) -> Result<Seen, Setback> {
        let form = match seen.page.introduction() {
            Some(form) if seen.page.sign_in().is_none() => form.sign_in(login, ""),
            _ => return Ok(seen),
        };
        let typed = seen.page.introduction().map(Form::typed);
        match self.submit(&seen, form, (errand, login)).await? {
            Landing::Code(_) => Err(Step::Login.wrong("a code without a password")),
            Landing::Page(seen) if seen.page.sign_in().is_some() => Ok(seen),
            Landing::Page(seen) => {
                let name = seen.page.name();
                let asked = seen.page.introduction();
                if asked.is_some_and(Form::asks_code) {
                    return Err(second_factor(&name, login));
                }
                if asked.map(Form::typed) != typed {
                    return Err(for_user("of", login, |of| {
                        format!("no form asks a password after the name ({name}){of}")
                    }));
                }
                Err(for_user("to", login, |to| {
                    format!(
                        "the page for the name came back ({name}){to}: unknown login, or the account may not sign in"
                    )
                }))
            }
        }
    }

    /// Gets a code with the existing session. Counts as step `authorize`.
    pub(super) async fn pass_by(&mut self) -> Result<Pass, Setback> {
        let begun = Instant::now();
        let errand = Errand::new(&mut self.rng);
        match self.authorize(&errand).await? {
            Landing::Code(code) => {
                self.finish(Step::Authorize, begun);
                Ok(Pass { code, verifier: errand.verifier, nonce: errand.nonce })
            }
            Landing::Page(seen) => Err(Step::Authorize.wrong(format!("{DESPITE} ({})", seen.page.name()))),
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
            .extend_pairs(&client.parameters)
            .finish();
        let Some(endpoint) = scene.provider.endpoint(Step::Authorize) else {
            return Err(Step::Authorize.wrong("discovery names no such endpoint"));
        };
        self.follow((Step::Authorize, true), Next::Request(endpoint.with_query(&query), None), errand).await
    }

    /// Sends a form of the user's. What goes wrong then names the user: it may be one of many who has no access.
    async fn submit(&mut self, seen: &Seen, filled: Filled, who: (&Errand, &str)) -> Result<Landing, Setback> {
        let step = (Step::Login, filled.is_name);
        let next = self.scene.sent(step.0, seen, filled)?;
        let landing = self.follow(step, next, who.0).await;
        landing.map_err(|setback| match setback.cause {
            Cause::Wrong(why) => setback.step.because(why.with_user(who.1)),
            _ => setback,
        })
    }

    /// Sends a request, then follows the answers as a browser does: a POST becomes a GET after 302 and 303 (RFC 9110
    /// §15.4), and a page may lead on or post itself.
    ///
    /// Before the password, as the flag says, a page that asks for the name is one to be answered, too.
    async fn follow(
        &mut self,
        (step, is_before): (Step, bool),
        mut next: Next,
        errand: &Errand,
    ) -> Result<Landing, Setback> {
        for _ in 0..MAX_REDIRECTS {
            let (url, form) = match next {
                Next::Arrived(response) => return self.scene.code(step, &response, errand).map(Landing::Code),
                Next::Request(url, form) => (url, form),
            };
            let origin = url.origin();
            // In English: a consent page's buttons are distinguished by their words.
            let headers = [("accept", "text/html"), ("accept-language", "en"), ("origin", origin.as_str())];
            // Browsers send `Origin` only with a POST.
            let headers = if form.is_some() { &headers[..] } else { &headers[..2] };
            let request = Request {
                url: &url,
                body: form.as_deref().map_or(Body::Nothing, Body::Form),
                headers,
                cookies: Some(&self.jar),
            };
            let reply = ask(&mut self.wire, step, &request).await.map_err(|setback| astray(setback, &url))?;
            reply.headers("set-cookie").for_each(|cookie| self.jar.keep_from(&url, cookie));
            next = match (reply.status(), reply.header("location")) {
                (status @ (301..=303 | 307 | 308), Some(location)) => {
                    self.scene.led(step, &url, location, form.filter(|_| matches!(status, 307 | 308)))?
                }
                (status, _) => {
                    let seen = Seen { url, page: Page::of(&reply.text()) };
                    // A sign-in form with an error status: the code that looks at pages says what it means.
                    let name =
                        || seen.page.introduction().filter(|form| is_before && (status == 401 || form.name_rank() > 1));
                    let asks = matches!(status, 400 | 401 | 403 | 422) && seen.page.sign_in().or_else(name).is_some();
                    match self.scene.onward(step, &seen)? {
                        Some(next) if status == 200 => next,
                        None if status == 200 || asks => return Ok(Landing::Page(seen)),
                        _ => return Err(step.because(describe(reply))),
                    }
                }
            };
        }
        Err(step.wrong("too many redirects"))
    }
}

impl Seen {
    /// Resolves an address on the page; an empty one is the page's own.
    fn resolve(&self, reference: &str) -> Result<Url, crate::wire::Wrong> {
        match &self.page.base {
            Some(base) if !reference.trim().is_empty() => self.url.join(base)?.join(reference),
            _ => self.url.join(reference),
        }
    }
}

impl super::Scene {
    /// Returns the query of `location`, if that is our redirect URI. Some providers add the implied slash to a bare
    /// origin.
    fn arrives<'a>(&self, location: &'a str) -> Option<&'a str> {
        let ours = self.plan.client.redirect_uri.as_str();
        let rest = location.strip_prefix(ours)?;
        let is_bare = ours.split_once("://").is_some_and(|(_, rest)| !rest.contains(['/', '?']));
        let rest = rest.strip_prefix('/').filter(|_| is_bare).unwrap_or(rest);
        // OAuth 2.0 Multiple Response Type Encoding Practices §2.1: the response is a fragment if one is asked for.
        rest.strip_prefix(['?', '&', '#'])
    }

    /// Returns where a redirect leads.
    fn led(&self, step: Step, from: &Url, location: &str, form: Option<String>) -> Result<Next, Setback> {
        if let Some(response) = self.arrives(location) {
            return Ok(Next::Arrived(response.to_owned()));
        }
        let url = from.join(location);
        let url = url.map_err(|wrong| step.wrong(format!("redirected to a wrong place: {wrong}")))?;
        Ok(Next::Request(url, form))
    }

    /// Returns where a submitted form goes; to our redirect URI, it is the response (OAuth 2.0 Form Post Response Mode
    /// §2).
    fn sent(&self, step: Step, seen: &Seen, filled: Filled) -> Result<Next, Setback> {
        let Filled { action, get, is_secret, body, .. } = filled;
        if self.arrives(&format!("{}?", action.trim())).is_some() {
            return Ok(Next::Arrived(body));
        }
        if get && is_secret {
            return Err(step.wrong(seen.page.sends_by_get()));
        }
        let url = seen.resolve(&action).map_err(|wrong| step.wrong(format!("the form's address: {wrong}")))?;
        Ok(if get { Next::Request(url.replacing_query(&body), None) } else { Next::Request(url, Some(body)) })
    }

    /// Returns where a page goes by itself: it leads on, it posts itself, or it has only the form back to us.
    fn onward(&self, step: Step, seen: &Seen) -> Result<Option<Next>, Setback> {
        if let Some(address) = seen.page.leads_to() {
            if let Some(response) = self.arrives(address) {
                return Ok(Some(Next::Arrived(response.to_owned())));
            }
            let url = seen.resolve(address);
            let url = url.map_err(|wrong| step.wrong(format!("the page leads to a wrong place: {wrong}")))?;
            return Ok(Some(Next::Request(url, None)));
        }
        let back = |form: &&Form| form.asks_nothing() && self.arrives(&format!("{}?", form.action().trim())).is_some();
        let form = seen.page.posts_itself().or_else(|| seen.page.forms.iter().find(back));
        form.map(|form| self.sent(step, seen, form.as_it_stands())).transpose()
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
            (_, Some(error)) => {
                let about = value("error_description").unwrap_or_default();
                let colon = if about.is_empty() { "" } else { ": " };
                Err(step.because(Reason::said(&format!("{SENT_BACK}{error}{colon}"), &about)))
            }
            (None, None) => Err(step.wrong("redirected without a code")),
        }
    }
}

/// Adds what was done before the provider sent the user back: it may have been the wrong thing.
fn after(setback: Setback, did: &str) -> Setback {
    match setback.cause {
        Cause::Wrong(why) if why.whole.starts_with(SENT_BACK) && !did.is_empty() => {
            setback.step.because(why.and(&format!(", after {did}")))
        }
        _ => setback,
    }
}

/// Says where an unreachable link leads, because nobody typed that address.
fn astray(setback: Setback, url: &Url) -> Setback {
    match setback.cause {
        Cause::Lost(Fault::Url(wrong)) => setback.step.wrong(format!("led to {}: {wrong}", url.origin())),
        _ => setback,
    }
}

/// Answers a page after the password: a form without a password asks for consent. A failure names the user, because it
/// may affect one of many.
fn consent(page: &Page, login: &str, typed: &[String]) -> Result<Filled, Setback> {
    if let Some(form) = page.asks_password() {
        let name = page.name();
        // Some sign-in forms look as if they asked for a new password, and are known by having been filled in before.
        if form.is_for_newcomers() && form.typed() != typed {
            return Err(for_user("of", login, |of| format!("a new password is asked for ({name}){of}")));
        }
        let unfilled = form.left_empty();
        let left = match unfilled.is_empty() {
            true => String::new(),
            false => format!("; it also requires {}, which was left empty", quoted(&unfilled)),
        };
        return Err(for_user("to", login, |to| {
            format!(
                "the sign-in page came back ({name}){to}: wrong login or password, or the account may not sign in{left}"
            )
        }));
    }
    match page.question() {
        Some(form) if form.asks_code() => Err(second_factor(&page.name(), login)),
        Some(form) if form.consent() == 0 => {
            let say = |who: &str| format!("a page with nothing to agree to ({}){who}", page.told());
            Err(for_user("for", login, say))
        }
        Some(form) => Ok(form.approve()),
        None => Err(for_user("for", login, |who| format!("a page without a form ({}){who}", page.told()))),
    }
}

/// Explains why a user who is asked for a second factor cannot go on.
fn second_factor(name: &str, login: &str) -> Setback {
    for_user("of", login, |of| {
        format!(
            "a one-time code is asked for ({name}){of}, and there is none to give: use accounts without a second factor"
        )
    })
}

/// Makes a failure of the sign-in that names the user.
fn for_user(preposition: &str, login: &str, say: impl Fn(&str) -> String) -> Setback {
    Step::Login.because(Reason::of_user(preposition, login, say))
}

/// Returns the page's name, and which fields it wants typed.
fn asked(page: &Page) -> String {
    let name = page.name();
    match page.question().map(Form::lines) {
        Some(lines) if !lines.is_empty() => format!("{name}, which asks for {}", quoted(&lines)),
        _ => name,
    }
}

fn quoted(names: &[&str]) -> String {
    names.iter().map(|name| format!("\"{name}\"")).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests;
