//! Signing in, choosing an account, consenting: the forms of a login flow.

use super::Posted;
use crate::http::cookies::Name;
use crate::http::error::Refusal;
use crate::http::extract;
use crate::http::oauth::authorize::Door;
use crate::http::reply;
use crate::http::site::Site;
use crate::http::visit::Visit;
use crate::pages::{LoginPage, LoginProblem};
use app::Fault;
use app::browser::Browser;
use app::flow::{Flow, Place, Question, To};
use app::sign_in::{Next, SignedIn, Typed};
use axum::Extension;
use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use hyper::{HeaderMap, StatusCode, Uri};
use rules::login::attempt::Refusal as Refused;
use rules::oauth::params::Params;
use rules::oauth::redirect::escape;

/// `GET /login[?flow=…]`: without a flow, on the way to the account home.
pub async fn get(
    State(site): State<Site>,
    Extension(visit): Extension<Visit>,
    uri: Uri,
    headers: HeaderMap,
) -> Response {
    let door = Door { site: &site, visit: &visit, headers: &headers };
    let browser = visit.browser(&site, &headers);
    let flow = extract::query(&uri).ok().and_then(|params| params.get("flow").map(str::to_owned));
    let flow = match flow {
        None => Flow::new(To::Place(Place::Account), site.app.clock.now()),
        Some(text) => match site.app.open_flow(&text, &browser) {
            Some(flow) => flow,
            None => return door.refuse(Refusal::Stale),
        },
    };
    match site.app.sign_in_page(flow, &browser).await {
        Ok(page) => door.sign_in(&page, None, None),
        Err(fault) => door.refuse(fault.into()),
    }
}

/// `POST /login`: `flow`, `login`, `password`.
pub async fn post(
    State(site): State<Site>,
    Extension(visit): Extension<Visit>,
    headers: HeaderMap,
    body: Body,
) -> Response {
    let door = Door { site: &site, visit: &visit, headers: &headers };
    match sign_in(&door, body).await {
        Ok(response) => response,
        Err(refusal) => door.refuse(refusal),
    }
}

async fn sign_in(door: &Door<'_>, body: Body) -> Result<Response, Refusal> {
    let (Posted { params, browser }, flow) = door.posted_flow(body).await?;
    let app = &door.site.app;
    let login = params.get("login").unwrap_or("");
    let typed = Typed { login, password: params.get("password").unwrap_or("").as_bytes() };
    let problem = match app.sign_in(flow.clone(), typed, &browser).await {
        Ok(Ok(signed_in)) => return signed_in_response(door, signed_in, &browser),
        Ok(Err(Refused::Wrong)) => (StatusCode::UNPROCESSABLE_ENTITY, LoginProblem::Wrong, None),
        Ok(Err(Refused::Wait(wait))) => {
            let problem = LoginProblem::Throttled { seconds: wait.whole_seconds() };
            (StatusCode::TOO_MANY_REQUESTS, problem, Some(wait))
        }
        Err(Fault::Busy(wait)) => {
            let problem = LoginProblem::Busy { seconds: wait.whole_seconds() };
            (StatusCode::SERVICE_UNAVAILABLE, problem, Some(wait))
        }
        Err(fault) => return Err(fault.into()),
    };
    again(door, &params, &flow, problem, &browser).await
}

/// The sign-in page once more, with everything that was typed but the password.
async fn again(
    door: &Door<'_>,
    params: &Params,
    flow: &Flow,
    (status, problem, wait): (StatusCode, LoginProblem, Option<rules::Span>),
    browser: &Browser,
) -> Result<Response, Refusal> {
    let text = params.get("flow").unwrap_or("");
    let page = door.site.app.sign_in_page(flow.clone(), browser).await?;
    let sign_up =
        (door.site.app.realm.settings.signup && !page.again).then(|| format!("/signup?flow={}", escape(text)));
    let view = LoginPage {
        flow: text,
        client: page.client.as_deref(),
        login: params.get("login").unwrap_or(""),
        again: page.again,
        problem: Some(problem),
        sign_up: sign_up.as_deref(),
    };
    let html = view.render(&door.visit.chrome(door.site, door.headers, Door::locales(flow).as_deref()));
    let mut response = reply::page(status, door.visit, html, page.destination.as_deref());
    if let Some(wait) = wait {
        reply::retry_after(&mut response, wait);
    }
    Ok(response)
}

/// After signing in: to the application, or on to the next page.
pub fn signed_in_response(door: &Door<'_>, signed_in: SignedIn, browser: &Browser) -> Result<Response, Refusal> {
    let mut response = match &signed_in.next {
        Next::Respond(answer) => door.respond(answer, None),
        Next::GoOn(flow) => go_on(door, flow, browser)?,
    };
    reply::session_cookie(&mut response, door.site, &signed_in.started);
    if let Some(device) = &signed_in.device {
        reply::cookie(&mut response, door.site, Name::Device, Some(device.reveal()));
    }
    Ok(response)
}

fn go_on(door: &Door<'_>, flow: &Flow, browser: &Browser) -> Result<Response, Refusal> {
    let base = door.site.url.path();
    Ok(match &flow.to {
        To::Place(Place::Account) | To::Out(_) => reply::see_other(&format!("{base}/account")),
        To::Place(Place::Device(code)) if code.is_empty() => reply::see_other(&format!("{base}/device")),
        To::Place(Place::Device(code)) => reply::see_other(&format!("{base}/device?user_code={}", escape(code))),
        To::Client(_) => {
            let sealed = door.site.app.reseal(flow, browser)?;
            let mut response = reply::see_other(&format!("{base}/continue?flow={}", sealed.text));
            reply::flow_cookie(&mut response, door.site, sealed.cookie.as_ref());
            response
        }
    })
}

/// `GET /continue?flow=…`: the next page of a flow whose person is known by now.
pub async fn carry_on(
    State(site): State<Site>,
    Extension(visit): Extension<Visit>,
    uri: Uri,
    headers: HeaderMap,
) -> Response {
    let door = Door { site: &site, visit: &visit, headers: &headers };
    let browser = visit.browser(&site, &headers);
    let text = extract::query(&uri).ok().and_then(|params| params.get("flow").map(str::to_owned));
    let Some(flow) = text.and_then(|text| site.app.open_flow(&text, &browser)) else {
        return door.refuse(Refusal::Stale);
    };
    let locales = Door::locales(&flow);
    match site.app.resume(flow, &browser).await {
        Ok(outcome) => door.show(outcome, locales.as_deref()).await,
        Err(fault) => door.refuse(fault.into()),
    }
}

/// `POST /login/choose`: `flow`, `choice` of `continue` or `other`.
pub async fn choose(
    State(site): State<Site>,
    Extension(visit): Extension<Visit>,
    headers: HeaderMap,
    body: Body,
) -> Response {
    let door = Door { site: &site, visit: &visit, headers: &headers };
    match chosen(&door, body).await {
        Ok(response) => response,
        Err(refusal) => door.refuse(refusal),
    }
}

async fn chosen(door: &Door<'_>, body: Body) -> Result<Response, Refusal> {
    let (Posted { params, browser }, flow) = door.posted_flow(body).await?;
    let app = &door.site.app;
    let locales = Door::locales(&flow);
    let go_on = params.get("choice") == Some("continue");
    if go_on {
        // The choice is about the session that the page named.
        let session = app.session(&browser).await?;
        if !session.is_some_and(|(session, _)| flow.asks == Some(Question::Choice(session.id))) {
            return Err(Refusal::Stale);
        }
    }
    if matches!(flow.to, To::Client(_)) {
        let outcome = app.choose(flow, go_on, &browser).await?;
        return Ok(door.show(outcome, locales.as_deref()).await);
    }
    let page = app.sign_in_page(Flow { expects: None, ..flow }, &browser).await?;
    Ok(door.sign_in(&page, None, None))
}

/// `POST /consent`: `flow`, `csrf`, `decision` of `allow` or `deny`.
pub async fn consent(
    State(site): State<Site>,
    Extension(visit): Extension<Visit>,
    headers: HeaderMap,
    body: Body,
) -> Response {
    let door = Door { site: &site, visit: &visit, headers: &headers };
    match consented(&door, body).await {
        Ok(response) => response,
        Err(refusal) => door.refuse(refusal),
    }
}

async fn consented(door: &Door<'_>, body: Body) -> Result<Response, Refusal> {
    let form = door.own_form(body).await?.ok_or(Refusal::Stale)?;
    let app = &door.site.app;
    let flow = app.open_flow(form.params.get("flow").unwrap_or(""), &form.browser).ok_or(Refusal::Stale)?;
    // The flow of another page cannot stand in for the consent page (MF-02).
    if flow.asks != Some(Question::Consent(form.session.id.clone())) {
        return Err(Refusal::Stale);
    }
    let allow = match form.params.get("decision") {
        Some("allow") => true,
        Some("deny") => false,
        _ => return Err(rules::oauth::Error::request("decision must be allow or deny").into()),
    };
    let locales = Door::locales(&flow);
    let outcome = app.consent(flow, allow, &form.browser).await?;
    Ok(door.show(outcome, locales.as_deref()).await)
}
