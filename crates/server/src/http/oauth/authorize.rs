//! The authorization endpoint (RFC 6749 §3.1), and the pages that it alone shows.

use crate::http::door::Door;
use crate::http::error::Refusal;
use crate::http::extract;
use crate::http::pages::signup::Before;
use crate::http::reply::{self, Forms};
use crate::pages::{AccountChoicePage, ConsentPage, FormPostPage};
use app::authorize::{Asked, Outcome};
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
        let html = page.render(&self.chrome(locales));
        reply::page(StatusCode::OK, &self.visit, html, Forms::Post(answer.to.origin()))
    }

    fn choose(&self, asked: &Asked, locales: Option<&str>) -> Response {
        let view = AccountChoicePage {
            flow: &asked.flow.text,
            client: Some(&asked.client),
            username: &asked.user.username,
            email: asked.user.email.as_deref(),
        };
        let html = view.render(&self.chrome(locales));
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
        let html = view.render(&self.chrome(locales));
        let mut response = reply::page(StatusCode::OK, &self.visit, html, Forms::Leave);
        reply::flow_cookie(&mut response, &self.site, asked.flow.cookie.as_ref());
        response
    }
}
