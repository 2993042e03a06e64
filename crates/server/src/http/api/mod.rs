//! The account API (`/api/v1`): what first-party applications do on screens of their own. One table ([`table`]) says
//! what there is; the bodies are judged by it, and the OpenAPI document is made from it.

mod account;
mod caller;
mod cors;
mod input;
mod openapi;
mod problem;
mod sign_in;
mod table;
#[cfg(test)]
mod tests;

use crate::admission::Pace;
use crate::http::door::{place, place_for_password, settled, whole};
use crate::http::site::Site;
use crate::http::visit::Visit;
use app::jobs::holding;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::handler::Handler;
use axum::middleware::Next;
use axum::response::Response;
use axum::routing::{MethodRouter, any, get, patch, post};
use axum::{Extension, Router, middleware};
use bytes::Bytes;
use caller::Door;
use hyper::{HeaderMap, Request, StatusCode};
use problem::{Kind, Problem};
use table::{CHANGE_PASSWORD, ME, Operation, REFRESH, SIGN_IN, SIGN_OUT, SIGN_UP};

/// Where the API lies below the issuer.
const BASE: &str = "/api/v1";

/// Every door of the account API.
pub fn routes(site: &Site) -> Router<Site> {
    let doors = Router::new()
        .route(SIGN_UP.path, only(site, &SIGN_UP, post(sign_in::sign_up)))
        .route(SIGN_IN.path, only(site, &SIGN_IN, post(sign_in::sign_in)))
        .route(REFRESH.path, only(site, &REFRESH, post(sign_in::refresh)))
        .route(SIGN_OUT.path, only(site, &SIGN_OUT, post(account::sign_out)))
        .route(CHANGE_PASSWORD.path, only(site, &CHANGE_PASSWORD, patch(account::change_password)))
        .route(ME.path, only(site, &ME, get(account::me)))
        .fallback(nothing.layer(middleware::from_fn_with_state((site.clone(), Pace::Tokens), in_turn)))
        .layer(middleware::from_fn_with_state(site.clone(), cors::first_party));
    let document = Bytes::from(openapi::document(site.url.as_str()));
    let described = Router::new()
        .route("/openapi.json", by(site, ("GET", Pace::Tokens), get(async move || as_json(document.clone()))))
        .route("/problems/{slug}", by(site, ("GET", Pace::Tokens), get(described)))
        .layer(middleware::from_fn_with_state(site.clone(), crate::http::cors::everybody));
    // What is nested below a path is not asked for that path with a slash.
    let slash = nothing.layer(middleware::from_fn_with_state((site.clone(), Pace::Tokens), in_turn));
    let slash = any(slash).layer(middleware::from_fn_with_state(site.clone(), cors::first_party));
    Router::new().nest(BASE, doors.merge(described)).route(&format!("{BASE}/"), slash)
}

fn only(site: &Site, operation: &'static Operation, methods: MethodRouter<Site>) -> MethodRouter<Site> {
    by(site, (operation.method, operation.pace), methods)
}

/// In its turn; any other method is answered with the one that would do.
fn by(site: &Site, (method, pace): (&'static str, Pace), methods: MethodRouter<Site>) -> MethodRouter<Site> {
    let methods = methods.fallback(async move |State(site): State<Site>, Extension(visit): Extension<Visit>| {
        let mut response = Problem::of(Kind::MethodNotAllowed).to_response(&site, &visit);
        let allowed = if method == "GET" { "GET, HEAD" } else { method };
        crate::http::reply::set(response.headers_mut(), hyper::header::ALLOW, allowed);
        response
    });
    methods.layer(middleware::from_fn_with_state((site.clone(), pace), in_turn))
}

/// Lets a request in when there is a place for it, as the doors of pages and of the protocol do.
async fn in_turn(
    State((site, pace)): State<(Site, Pace)>,
    Extension(visit): Extension<Visit>,
    request: Request<Body>,
    next: Next,
) -> Response {
    let debt = match site.admission.owe(pace, &visit.client) {
        Ok(debt) => debt,
        Err(fault) => return Problem::from(fault).to_response(&site, &visit),
    };
    let (parts, body) = request.into_parts();
    let came_in = async {
        let body = whole(&site, body).await?;
        let place = match pace {
            Pace::Passwords => place_for_password(&site, &visit.browser(&site, &parts.headers)).await?,
            pace => place(&site, pace).await?,
        };
        Ok::<_, Problem>((Body::from(body), place))
    };
    let response = match came_in.await {
        Ok((body, place)) => holding(place, next.run(Request::from_parts(parts, body))).await,
        Err(problem) => problem.to_response(&site, &visit),
    };
    settled(&site, debt, response)
}

async fn nothing(State(site): State<Site>, Extension(visit): Extension<Visit>) -> Response {
    Problem::of(Kind::NotFound).to_response(&site, &visit)
}

/// `GET /api/v1/problems/SLUG`: what a `type` means (RFC 9457 §3.1.1).
async fn described(
    State(site): State<Site>,
    Extension(visit): Extension<Visit>,
    Path(slug): Path<String>,
    headers: HeaderMap,
) -> Response {
    let door = Door { site: &site, visit: &visit, headers: &headers };
    match Kind::ALL.iter().find(|kind| kind.slug() == slug) {
        Some(kind) => as_json(openapi::described(*kind, site.url.as_str()).to_string()),
        None => door.refuse(Problem::of(Kind::NotFound)),
    }
}

/// Public: not `no-store`.
fn as_json(body: impl Into<Body>) -> Response {
    crate::http::reply::plain(StatusCode::OK, "application/json", body)
}
