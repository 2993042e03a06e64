//! Self sign-up, where the realm allows it.

use super::login::signed_in_response;
use super::{Posted, problem};
use crate::http::error::Refusal;
use crate::http::extract;
use crate::http::oauth::authorize::Door;
use crate::http::reply;
use crate::http::site::Site;
use crate::http::visit::Visit;
use crate::pages::{Problem, SignUpPage};
use app::flow::{Flow, Place, To};
use app::sign_up::NewPerson;
use axum::Extension;
use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use hyper::{HeaderMap, StatusCode, Uri};

/// `GET /signup[?flow=…]`.
pub async fn get(
    State(site): State<Site>,
    Extension(visit): Extension<Visit>,
    uri: Uri,
    headers: HeaderMap,
) -> Response {
    let door = Door { site: &site, visit: &visit, headers: &headers };
    if !site.app.realm.settings.signup {
        return door.refuse(Refusal::NotFound);
    }
    let browser = visit.browser(&site, &headers);
    let text = extract::query(&uri).ok().and_then(|params| params.get("flow").map(str::to_owned));
    let flow = match text {
        None => Flow::new(To::Place(Place::Account), site.app.clock.now()),
        Some(text) => match site.app.open_flow(&text, &browser) {
            // Who is expected has an account.
            Some(flow) if flow.expects.is_none() => flow,
            _ => return door.refuse(Refusal::Stale),
        },
    };
    match site.app.sign_in_page(flow, &browser).await {
        Ok(page) => door.sign_up(&page, None),
        Err(fault) => door.refuse(fault.into()),
    }
}

/// `POST /signup`: `flow`, `username`, `email`, `password`.
pub async fn post(
    State(site): State<Site>,
    Extension(visit): Extension<Visit>,
    headers: HeaderMap,
    body: Body,
) -> Response {
    let door = Door { site: &site, visit: &visit, headers: &headers };
    match sign_up(&door, body).await {
        Ok(response) => response,
        Err(refusal) => door.refuse(refusal),
    }
}

async fn sign_up(door: &Door<'_>, body: Body) -> Result<Response, Refusal> {
    let app = &door.site.app;
    if !app.realm.settings.signup {
        return Err(Refusal::NotFound);
    }
    let (Posted { params, browser }, flow) = door.posted_flow(body).await?;
    if flow.expects.is_some() {
        return Err(Refusal::Stale);
    }
    let typed = NewPerson {
        username: params.get("username").unwrap_or(""),
        email: params.get("email").unwrap_or(""),
        password: params.get("password").unwrap_or("").as_bytes(),
    };
    let problems: Vec<Problem> = match app.sign_up(flow.clone(), typed, &browser).await? {
        Ok(signed_in) => return signed_in_response(door, signed_in, &browser),
        Err(problems) => problems.into_iter().map(problem).collect(),
    };
    let page = app.sign_in_page(flow.clone(), &browser).await?;
    let sign_in = format!("/login?flow={}", page.flow.text);
    let view = SignUpPage {
        flow: &page.flow.text,
        client: page.client.as_deref(),
        username: params.get("username").unwrap_or(""),
        email: params.get("email").unwrap_or(""),
        minimum_password: app.realm.settings.password_min,
        problems: &problems,
        sign_in: Some(&sign_in),
    };
    let html = view.render(&door.visit.chrome(door.site, door.headers, Door::locales(&flow).as_deref()));
    Ok(reply::page(StatusCode::UNPROCESSABLE_ENTITY, door.visit, html, page.destination.as_deref()))
}
