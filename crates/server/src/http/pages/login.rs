//! The forms of a login flow: signing in, choosing an account, consenting.

use super::{Posted, forms};
use crate::http::door::Door;
use crate::http::error::Refusal;
use crate::http::extract;
use crate::http::reply;
use crate::pages::{LoginPage, LoginProblem, Setback};
use app::authorize::SignIn;
use app::browser::Browser;
use app::flow::{Flow, Place, Question, To};
use app::sign_in::{Next, SignedIn, Typed};
use axum::body::Body;
use axum::response::Response;
use rules::login::attempt::Refusal as Refused;
use rules::oauth::params::Params;
use rules::oauth::redirect::escape;

/// `GET /login[?flow=…]`: without a flow, leads to the account home, or with `change=1` to its form for a new password.
/// A user who is signed in is told so, is led to that form at once, and with `again=1` has to sign in again.
pub async fn get(door: Door, _: Body) -> Result<Response, Refusal> {
    let (app, browser) = (&door.site.app, door.browser());
    app.has_time_for_newcomer(&browser).await?;
    let (flow, already) = match door.flow_text() {
        Some(text) => (app.open_flow(&text, &browser).ok_or_else(|| door.stale(&text))?, None),
        None => {
            let place = if door.is_asked_for("change") { Place::Password } else { Place::Account };
            let flow = Flow::new(To::Place(place), app.clock.now());
            match app.session_in_use(&browser).await? {
                Some((_, user)) if door.is_asked_for("again") => (Flow { expects: Some(user.id), ..flow }, None),
                Some(_) if door.is_asked_for("change") => return go_on(&door, &flow, &browser),
                known => (flow, known.map(|(_, user)| user.username)),
            }
        }
    };
    let locales = flow.ui_locales().map(str::to_owned);
    let page = app.sign_in_page(flow, &browser).await?;
    Ok(door.sign_in(&SignIn { already, ..page }, None, locales.as_deref()))
}

/// `POST /login`: `flow`, `login`, `password`.
pub async fn post(door: Door, body: Body) -> Result<Response, Refusal> {
    let (Posted { params, browser }, flow) = door.posted_flow(body).await?;
    let app = &door.site.app;
    let login = params.get("login").unwrap_or("");
    let typed = Typed::new(login, params.get("password").unwrap_or("").as_bytes());
    let locales = flow.ui_locales().map(str::to_owned);
    let attempt = door.in_place_for_password(|| app.sign_in(flow.clone(), typed, &browser));
    let problem = match attempt.await {
        Ok(Ok(signed_in)) => return signed_in_response(&door, signed_in, &browser, locales.as_deref()),
        Ok(Err(Refused::Wrong)) => LoginProblem::Wrong,
        Ok(Err(Refused::Wait(wait))) => LoginProblem::Throttled { seconds: wait.whole_seconds() },
        Err(fault) => return Err(Refusal::Fault(fault)),
    };
    // The page again, with all that was typed except the password. If a certain user is expected, the name is theirs.
    let page = app.sign_in_page(flow, &browser).await?;
    let page = if page.again { page } else { SignIn { login: login.to_owned(), ..page } };
    Ok(door.sign_in(&page, Some(problem), locales.as_deref()))
}

/// Shows the sign-in page again, with what was typed except the password.
pub fn again(door: &Door, sent: &Params, setback: Setback) -> Option<Response> {
    let (flow, page) = door.page_of(sent)?;
    let problem = match setback {
        Setback::Typed => LoginProblem::Wrong,
        Setback::Throttled { seconds } => LoginProblem::Throttled { seconds },
        Setback::Busy { seconds, away } => LoginProblem::Busy { seconds, away },
    };
    Some(door.sign_in(&page, Some(problem), flow.ui_locales()))
}

/// Leads to the application, or to the next page, after signing in.
pub fn signed_in_response(
    door: &Door,
    signed_in: SignedIn,
    browser: &Browser,
    locales: Option<&str>,
) -> Result<Response, Refusal> {
    let mut response = match &signed_in.next {
        Next::Respond(answer) => door.respond(answer, locales),
        Next::GoOn(flow) => go_on(door, flow, browser)?,
    };
    reply::session_cookie(&mut response, &door.site, &signed_in.started);
    reply::device_cookie(&mut response, &door.site, &signed_in.device);
    Ok(response)
}

/// Leads a user who is signed in to where the flow goes on.
pub fn go_on(door: &Door, flow: &Flow, browser: &Browser) -> Result<Response, Refusal> {
    let base = door.site.url.path();
    Ok(match &flow.to {
        To::Place(Place::Account) | To::Out(_) => reply::see_other(&format!("{base}/account")),
        To::Place(Place::Password) => reply::see_other(&format!("{base}/account#change")),
        To::Place(Place::Device(code)) if code.is_empty() => reply::see_other(&format!("{base}/device")),
        To::Place(Place::Device(code)) => reply::see_other(&format!("{base}/device?user_code={}", escape(code))),
        To::Client(_) => door.to_page("/continue", flow, browser)?,
    })
}

/// `GET /continue?flow=…`: shows the next page of a flow whose user is known by now.
pub async fn carry_on(door: Door, _: Body) -> Result<Response, Refusal> {
    let browser = door.browser();
    let text = door.flow_text().ok_or(Refusal::Stale(None))?;
    let flow = door.site.app.open_flow(&text, &browser).ok_or_else(|| door.stale(&text))?;
    let locales = flow.ui_locales().map(str::to_owned);
    let outcome = door.site.app.resume(flow, &browser).await?;
    Ok(door.show(outcome, locales.as_deref()))
}

impl Door {
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
        let html = view.render(&self.chrome(locales));
        let setback = problem.map(LoginProblem::setback);
        let mut response = reply::form(setback, &self.visit, html, forms(page));
        reply::flow_cookie(&mut response, &self.site, page.flow.cookie.as_ref());
        response
    }

    fn is_asked_for(&self, what: &str) -> bool {
        extract::query(&self.uri).is_ok_and(|params| params.get(what).is_some())
    }

    /// Leads to the page at `path` that carries a flow on: its address can be opened again.
    fn to_page(&self, path: &str, flow: &Flow, browser: &Browser) -> Result<Response, Refusal> {
        let sealed = self.site.app.seal(flow, browser)?;
        let mut response = reply::see_other(&format!("{}{path}?flow={}", self.site.url.path(), sealed.text));
        reply::flow_cookie(&mut response, &self.site, sealed.cookie.as_ref());
        Ok(response)
    }

    /// Continues the request of a page whose user signed out in another window before it was answered.
    fn begin_again(&self, flow: Flow, browser: &Browser) -> Result<Response, Refusal> {
        self.to_page("/continue", &Flow { asks: None, ..flow }, browser)
    }
}

/// `POST /login/choose`: `flow`, `choice` of `continue` or `other`.
pub async fn choose(door: Door, body: Body) -> Result<Response, Refusal> {
    let (Posted { params, browser }, flow) = door.posted_flow(body).await?;
    if params.get("choice") != Some("continue") {
        let flow = Flow { asks: None, chose: None, expects: None, ..flow };
        return door.to_page("/login", &flow, &browser);
    }
    // The choice is about the session that the page named.
    let Some(Question::Choice(asked)) = &flow.asks else { return Err(Refusal::Stale(door.anew(&flow.to))) };
    match door.site.app.session(&browser).await? {
        None => door.begin_again(flow, &browser),
        Some((session, _)) if session.id == *asked => {
            let flow = Flow { asks: None, chose: Some(session.id), expects: None, ..flow };
            door.to_page("/continue", &flow, &browser)
        }
        Some(_) => Err(Refusal::Stale(door.anew(&flow.to))),
    }
}

/// `POST /consent`: `flow`, `csrf`, `decision` of `allow` or `deny`.
pub async fn consent(door: Door, body: Body) -> Result<Response, Refusal> {
    let (posted, flow) = door.posted_flow(body).await?;
    let app = &door.site.app;
    // The flow of another page cannot stand in for the consent page (MF-02).
    let Some(Question::Consent(asked)) = &flow.asks else { return Err(Refusal::Stale(door.anew(&flow.to))) };
    // A token of another session means that the user signed in again meanwhile: the application can ask again.
    let form = door.own(posted.clone()).await.map_err(|why| why.or_anew(|| door.anew(&flow.to)))?;
    let Some(form) = form else {
        return door.begin_again(flow, &posted.browser);
    };
    if *asked != form.session.id {
        return Err(Refusal::Stale(door.anew(&flow.to)));
    }
    let allow = match form.params.get("decision") {
        Some("allow") => true,
        Some("deny") => false,
        _ => return Err(rules::oauth::Error::request("decision must be allow or deny").into()),
    };
    let locales = flow.ui_locales().map(str::to_owned);
    let outcome = app.consent(flow, allow, &form.browser).await?;
    Ok(door.show(outcome, locales.as_deref()))
}
