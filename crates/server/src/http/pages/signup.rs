//! Self sign-up, if the realm allows it.

use super::login::signed_in_response;
use super::{Posted, forms, problem};
use crate::http::door::Door;
use crate::http::error::Refusal;
use crate::http::reply;
use crate::pages::{Problem, Setback, SignUpPage};
use app::authorize::SignIn;
use app::flow::{Flow, Place, To};
use app::sign_up::{NewPerson, NotMade};
use axum::body::Body;
use axum::response::Response;
use rules::oauth::params::Params;

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

/// `GET /signup[?flow=…]`.
pub async fn get(door: Door, _: Body) -> Result<Response, Refusal> {
    let app = &door.site.app;
    if !app.realm.settings.signup {
        return Err(Refusal::NotFound);
    }
    let browser = door.browser();
    app.has_time_for_newcomer(&browser).await?;
    let (flow, already) = match door.flow_text() {
        None => {
            let flow = Flow::new(To::Place(Place::Account), app.clock.now());
            (flow, app.session_in_use(&browser).await?.map(|(_, user)| user.username))
        }
        // A user whom a flow expects has an account.
        Some(text) => {
            let flow = app.open_flow(&text, &browser).filter(|flow| flow.expects.is_none());
            (flow.ok_or_else(|| door.stale(&text))?, None)
        }
    };
    let locales = flow.ui_locales().map(str::to_owned);
    let page = SignIn { already, ..app.sign_in_page(flow, &browser).await? };
    Ok(door.sign_up(&page, &Before::default(), locales.as_deref()))
}

/// `POST /signup`: `flow`, `username`, `email`, `password`.
pub async fn post(door: Door, body: Body) -> Result<Response, Refusal> {
    let app = &door.site.app;
    if !app.realm.settings.signup {
        return Err(Refusal::NotFound);
    }
    let (Posted { params, browser }, flow) = door.posted_flow(body).await?;
    if flow.expects.is_some() {
        return Err(Refusal::Stale(door.anew(&flow.to)));
    }
    let text = |name| params.get(name).unwrap_or("");
    let (username, email) = (text("username"), text("email"));
    let typed = NewPerson::new(username, email, text("password").as_bytes());
    let locales = flow.ui_locales().map(str::to_owned);
    let attempt = door.in_place_for_password(|| app.sign_up(flow.clone(), typed, &browser));
    let problems: Vec<Problem> = match attempt.await {
        Ok(Ok(signed_in)) => return signed_in_response(&door, signed_in, &browser, locales.as_deref()),
        Ok(Err(NotMade::Wait(wait))) => vec![Problem::Throttled { seconds: wait.whole_seconds() }],
        Ok(Err(NotMade::Problems(problems))) => problems.into_iter().map(problem).collect(),
        Err(fault) => return Err(Refusal::Fault(fault)),
    };
    let page = app.sign_in_page(flow, &browser).await?;
    Ok(door.sign_up(&page, &Before { username, email, problems: &problems }, locales.as_deref()))
}

/// Shows the sign-up page again, with what was typed except the password.
pub fn again(door: &Door, sent: &Params, setback: Setback) -> Option<Response> {
    let (flow, page) = door.page_of(sent)?;
    let text = |name| sent.get(name).unwrap_or("");
    let before = Before { username: text("username"), email: text("email"), problems: &[Problem::later(setback)?] };
    Some(door.sign_up(&page, &before, flow.ui_locales()))
}

impl Door {
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
        let html = view.render(&self.chrome(locales));
        let setback = Setback::of(before.problems);
        let mut response = reply::form(setback, &self.visit, html, forms(page));
        reply::flow_cookie(&mut response, &self.site, page.flow.cookie.as_ref());
        response
    }
}
