//! Signing in, choosing an account, consenting: the forms of a login flow.

use super::Posted;
use crate::http::door::Door;
use crate::http::error::Refusal;
use crate::http::extract;
use crate::http::reply;
use crate::pages::{LoginProblem, Setback};
use app::authorize::SignIn;
use app::browser::Browser;
use app::flow::{Flow, Place, Question, To};
use app::sign_in::{Next, SignedIn, Typed};
use axum::body::Body;
use axum::response::Response;
use rules::login::attempt::Refusal as Refused;
use rules::oauth::params::Params;
use rules::oauth::redirect::escape;

/// `GET /login[?flow=…]`: without a flow, on the way to the account home; with `again=1`, as whoever is signed in.
pub async fn get(door: Door, _: Body) -> Result<Response, Refusal> {
    let browser = door.browser();
    door.site.app.has_time_for_newcomer(&browser).await?;
    let flow = match door.flow_text() {
        None => home_flow(&door, &browser).await?,
        Some(text) => door.site.app.open_flow(&text, &browser).ok_or_else(|| door.stale(&text))?,
    };
    let locales = Door::locales(&flow);
    let page = door.site.app.sign_in_page(flow, &browser).await?;
    Ok(door.sign_in(&page, None, locales.as_deref()))
}

/// The way to the account home.
async fn home_flow(door: &Door, browser: &Browser) -> Result<Flow, Refusal> {
    let app = &door.site.app;
    let mut flow = Flow::new(To::Place(Place::Account), app.clock.now());
    if extract::query(&door.uri).is_ok_and(|params| params.get("again").is_some()) {
        flow.expects = app.session_in_use(browser).await?.map(|(_, user)| user.id);
    }
    Ok(flow)
}

/// `POST /login`: `flow`, `login`, `password`.
pub async fn post(door: Door, body: Body) -> Result<Response, Refusal> {
    let (Posted { params, browser }, flow) = door.posted_flow(body).await?;
    let app = &door.site.app;
    let login = params.get("login").unwrap_or("");
    let typed = Typed::new(login, params.get("password").unwrap_or("").as_bytes());
    let locales = Door::locales(&flow);
    let attempt = door.in_place_for_password(|| app.sign_in(flow.clone(), typed, &browser));
    let problem = match attempt.await {
        Ok(Ok(signed_in)) => return signed_in_response(&door, signed_in, &browser, locales.as_deref()),
        Ok(Err(Refused::Wrong)) => LoginProblem::Wrong,
        Ok(Err(Refused::Wait(wait))) => LoginProblem::Throttled { seconds: wait.whole_seconds() },
        Err(fault) => return Err(Refusal::Fault(fault)),
    };
    // The page once more, with everything that was typed but the password. Where somebody is expected, the name is theirs.
    let page = app.sign_in_page(flow, &browser).await?;
    let page = if page.again { page } else { SignIn { login: login.to_owned(), ..page } };
    Ok(door.sign_in(&page, Some(problem), locales.as_deref()))
}

/// The sign-in page once more, with what was typed but the password.
pub fn again(door: &Door, sent: &Params, setback: Setback) -> Option<Response> {
    let (flow, page) = door.page_of(sent)?;
    let problem = match setback {
        Setback::Typed => LoginProblem::Wrong,
        Setback::Throttled { seconds } => LoginProblem::Throttled { seconds },
        Setback::Busy { seconds, away } => LoginProblem::Busy { seconds, away },
    };
    Some(door.sign_in(&page, Some(problem), flow.ui_locales()))
}

/// After signing in: to the application, or on to the next page.
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

fn go_on(door: &Door, flow: &Flow, browser: &Browser) -> Result<Response, Refusal> {
    let base = door.site.url.path();
    Ok(match &flow.to {
        To::Place(Place::Account) | To::Out(_) => reply::see_other(&format!("{base}/account")),
        To::Place(Place::Device(code)) if code.is_empty() => reply::see_other(&format!("{base}/device")),
        To::Place(Place::Device(code)) => reply::see_other(&format!("{base}/device?user_code={}", escape(code))),
        To::Client(_) => {
            let sealed = door.site.app.reseal(flow, browser)?;
            let mut response = reply::see_other(&format!("{base}/continue?flow={}", sealed.text));
            reply::flow_cookie(&mut response, &door.site, sealed.cookie.as_ref());
            response
        }
    })
}

/// `GET /continue?flow=…`: the next page of a flow whose person is known by now.
pub async fn carry_on(door: Door, _: Body) -> Result<Response, Refusal> {
    let browser = door.browser();
    let text = door.flow_text().ok_or(Refusal::Stale(None))?;
    let flow = door.site.app.open_flow(&text, &browser).ok_or_else(|| door.stale(&text))?;
    let locales = Door::locales(&flow);
    let outcome = door.site.app.resume(flow, &browser).await?;
    Ok(door.show(outcome, locales.as_deref()))
}

impl Door {
    /// A page was answered by nobody, who signed out in another window meanwhile: the request goes on from there.
    async fn begin_again(&self, flow: Flow, browser: &Browser) -> Result<Response, Refusal> {
        let flow = Flow { asks: None, ..flow };
        let locales = Door::locales(&flow);
        let outcome = self.site.app.resume(flow, browser).await?;
        Ok(self.show(outcome, locales.as_deref()))
    }
}

/// `POST /login/choose`: `flow`, `choice` of `continue` or `other`.
pub async fn choose(door: Door, body: Body) -> Result<Response, Refusal> {
    let (Posted { params, browser }, flow) = door.posted_flow(body).await?;
    let app = &door.site.app;
    let locales = Door::locales(&flow);
    let go_on = params.get("choice") == Some("continue");
    if go_on {
        // The choice is about the session that the page named.
        let session = app.session(&browser).await?;
        match (session, &flow.asks) {
            (Some((session, _)), Some(Question::Choice(asked))) if *asked == session.id => {}
            (None, Some(Question::Choice(_))) if matches!(flow.to, To::Client(_)) => {
                return door.begin_again(flow, &browser).await;
            }
            _ => return Err(Refusal::Stale(door.anew(&flow.to))),
        }
    }
    if matches!(flow.to, To::Client(_)) {
        let outcome = app.choose(flow, go_on, &browser).await?;
        return Ok(door.show(outcome, locales.as_deref()));
    }
    let page = app.sign_in_page(Flow { expects: None, ..flow }, &browser).await?;
    Ok(door.sign_in(&page, None, locales.as_deref()))
}

/// `POST /consent`: `flow`, `csrf`, `decision` of `allow` or `deny`.
pub async fn consent(door: Door, body: Body) -> Result<Response, Refusal> {
    let (posted, flow) = door.posted_flow(body).await?;
    let app = &door.site.app;
    // The flow of another page cannot stand in for the consent page (MF-02).
    let Some(Question::Consent(asked)) = &flow.asks else { return Err(Refusal::Stale(door.anew(&flow.to))) };
    // A token of another session says that somebody signed in once more meanwhile: the application can ask again.
    let form = door.own(posted.clone()).await.map_err(|why| why.or_anew(|| door.anew(&flow.to)))?;
    let Some(form) = form else {
        return door.begin_again(flow, &posted.browser).await;
    };
    if *asked != form.session.id {
        return Err(Refusal::Stale(door.anew(&flow.to)));
    }
    let allow = match form.params.get("decision") {
        Some("allow") => true,
        Some("deny") => false,
        _ => return Err(rules::oauth::Error::request("decision must be allow or deny").into()),
    };
    let locales = Door::locales(&flow);
    let outcome = app.consent(flow, allow, &form.browser).await?;
    Ok(door.show(outcome, locales.as_deref()))
}
