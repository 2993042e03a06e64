//! The authorization endpoint (RFC 6749 §3.1), and the pages that it shows.

use crate::http::cookies::Name;
use crate::http::door::Door;
use crate::http::error::Refusal;
use crate::http::extract;
use crate::http::reply::{self, Forms};
use crate::pages::{
    AccountChoicePage, ConsentPage, FormPostPage, LoginPage, LoginProblem, Problem, Setback, SignUpPage,
};
use app::authorize::{Asked, Outcome, SignIn};
use app::flow::Flow;
use app::posted::Posted;
use axum::body::Body;
use axum::response::Response;
use hyper::StatusCode;
use rules::oauth::redirect::{Mode, Response as Answer};
use rules::oauth::scope::Scope;

/// `GET /oauth2/authorize`.
pub async fn get(door: Door, _: Body) -> Result<Response, Refusal> {
    let params = extract::query(&door.uri)?;
    let locales = params.get("ui_locales").map(str::to_owned);
    let outcome = door.site.app.authorize(params, &door.browser()).await?;
    Ok(door.show(outcome, locales.as_deref()))
}

/// `POST /oauth2/authorize`: any site may send the browser here, and it then sends no cookies of ours (SameSite=Lax).
/// So the request is repeated as GET after a 303 (OpenID Connect Core §3.1.2.1).
pub async fn post(door: Door, body: Body) -> Result<Response, Refusal> {
    let params = extract::posted(&door, body).await?;
    Ok(match door.site.app.posted_authorize(&params, &door.browser()).await? {
        Posted::Again(again) => reply::see_other(&door.site.link("/oauth2/authorize", again.pairs())),
        Posted::Told(outcome) => door.show(*outcome, params.get("ui_locales")),
    })
}

/// What the user typed into the sign-up page before, except the password, and what was wrong with it.
#[derive(Clone, Copy, Default)]
pub struct Before<'a> {
    /// The username.
    pub username: &'a str,
    /// The address.
    pub email: &'a str,
    /// What was wrong.
    pub problems: &'a [Problem],
}

/// Without an application, the forms of a page lead to the account.
fn forms(page: &SignIn) -> Forms<'static> {
    if page.client.is_some() { Forms::Leave } else { Forms::Stay }
}

impl Door {
    /// Shows the next step on the way to a code.
    pub fn show(&self, outcome: Outcome, locales: Option<&str>) -> Response {
        match outcome {
            Outcome::Respond(answer) => self.respond(&answer, locales),
            Outcome::SignIn(page) => self.sign_in(&page, None, locales),
            Outcome::SignUp(page) => self.sign_up(&page, &Before::default(), locales),
            Outcome::Choose(asked) => self.choose(&asked, locales),
            Outcome::Consent(asked, scope) => self.consent(&asked, &scope, locales),
            Outcome::Refused(error, back) => {
                let back = back.as_ref().map(|back| (back.client.as_str(), &back.response));
                self.refuse(&Refusal::from(error), back, locales)
            }
        }
    }

    /// Sends an authorization response: a redirect, or a form that the browser posts.
    pub fn respond(&self, answer: &Answer, locales: Option<&str>) -> Response {
        if answer.mode != Mode::FormPost {
            return reply::see_other(&answer.to.with(answer.mode, &answer.fields));
        }
        let fields: Vec<(&str, &str)> = answer.fields.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let page = FormPostPage { action: answer.to.as_str(), client: answer.to.origin(), fields: &fields };
        let html = page.render(&self.visit.chrome(&self.site, &self.headers, locales));
        reply::page(StatusCode::OK, &self.visit, html, Forms::Post(answer.to.origin()))
    }

    /// Shows the sign-in page.
    pub fn sign_in(&self, page: &SignIn, problem: Option<LoginProblem>, locales: Option<&str>) -> Response {
        let sign_up =
            (self.site.app.realm.settings.signup && !page.again).then(|| format!("/signup?flow={}", page.flow.text));
        let view = LoginPage {
            flow: &page.flow.text,
            client: page.client.as_deref(),
            device: page.device,
            login: &page.login,
            again: page.again,
            already: page.already.as_deref(),
            problem,
            sign_up: sign_up.as_deref(),
        };
        let html = view.render(&self.visit.chrome(&self.site, &self.headers, locales));
        let setback = problem.map(LoginProblem::setback);
        let mut response = reply::form(setback, &self.visit, html, forms(page));
        reply::flow_cookie(&mut response, &self.site, page.flow.cookie.as_ref());
        response
    }

    /// Shows the sign-up page, with what was typed before.
    pub fn sign_up(&self, page: &SignIn, before: &Before<'_>, locales: Option<&str>) -> Response {
        let sign_in = format!("/login?flow={}", page.flow.text);
        let view = SignUpPage {
            flow: &page.flow.text,
            client: page.client.as_deref(),
            username: before.username,
            email: before.email,
            already: page.already.as_deref(),
            minimum_password: self.site.app.realm.settings.password_min,
            problems: before.problems,
            sign_in: Some(&sign_in),
        };
        let html = view.render(&self.visit.chrome(&self.site, &self.headers, locales));
        let setback = Setback::of(before.problems);
        let mut response = reply::form(setback, &self.visit, html, forms(page));
        reply::flow_cookie(&mut response, &self.site, page.flow.cookie.as_ref());
        response
    }

    fn choose(&self, asked: &Asked, locales: Option<&str>) -> Response {
        let view = AccountChoicePage {
            flow: &asked.flow.text,
            client: Some(&asked.client),
            username: &asked.user.username,
            email: asked.user.email.as_deref(),
        };
        let html = view.render(&self.visit.chrome(&self.site, &self.headers, locales));
        let mut response = reply::page(StatusCode::OK, &self.visit, html, Forms::Leave);
        reply::flow_cookie(&mut response, &self.site, asked.flow.cookie.as_ref());
        response
    }

    fn consent(&self, asked: &Asked, scope: &Scope, locales: Option<&str>) -> Response {
        let scopes: Vec<&str> = scope.tokens().iter().map(String::as_str).collect();
        let csrf = self.site.app.csrf(&asked.session);
        let view = ConsentPage {
            flow: &asked.flow.text,
            csrf: &csrf,
            client: &asked.client,
            destination: &asked.destination,
            account: &asked.user.username,
            scopes: &scopes,
        };
        let html = view.render(&self.visit.chrome(&self.site, &self.headers, locales));
        let mut response = reply::page(StatusCode::OK, &self.visit, html, Forms::Leave);
        reply::flow_cookie(&mut response, &self.site, asked.flow.cookie.as_ref());
        response
    }

    /// Returns the languages that a flow's request asked for.
    pub fn locales(flow: &Flow) -> Option<String> {
        flow.ui_locales().map(str::to_owned)
    }

    /// Removes the session cookie.
    pub fn forget_session(&self, response: &mut Response) {
        reply::cookie(response, &self.site, Name::Session, None);
    }
}
