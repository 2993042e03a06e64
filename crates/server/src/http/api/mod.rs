//! The account API (`/api/v1`): what first-party applications do on screens of their own. One table ([`table`]) lists
//! the operations; request bodies are checked against it, and the OpenAPI document is generated from it.

mod account;
mod caller;
mod cors;
mod input;
mod openapi;
pub mod problem;
mod sign_in;
mod table;
#[cfg(test)]
mod tests;

use crate::admission::Pace;
use crate::http::cors::everybody;
use crate::http::door::{Door, Told, told};
use crate::http::reply;
use crate::http::site::Site;
use axum::body::Body;
use axum::response::Response;
use axum::routing::{MethodRouter, any, get, patch, post};
use axum::{Router, middleware};
use bytes::Bytes;
use caller::{Call, answer, refused};
use hyper::StatusCode;
use hyper::header::ALLOW;
use input::Input;
use problem::{Kind, Problem};
use table::{CHANGE_PASSWORD, ME, Operation, REFRESH, SIGN_IN, SIGN_OUT, SIGN_UP};

/// The path of the API below the issuer.
const BASE: &str = "/api/v1";

/// Returns the routes of all doors of the account API.
pub fn routes(site: &Site) -> Router<Site> {
    let nothing = problem(Pace::Tokens, nothing).of_no_body();
    let doors = Router::new()
        .route(SIGN_UP.path, operation(&SIGN_UP, sign_in::sign_up))
        .route(SIGN_IN.path, operation(&SIGN_IN, sign_in::sign_in))
        .route(REFRESH.path, operation(&REFRESH, sign_in::refresh))
        .route(SIGN_OUT.path, operation(&SIGN_OUT, account::sign_out))
        .route(CHANGE_PASSWORD.path, operation(&CHANGE_PASSWORD, account::change_password))
        .route(ME.path, operation(&ME, account::me))
        .fallback(nothing.clone())
        .layer(middleware::from_fn_with_state(site.clone(), cors::first_party));
    let document = Bytes::from(openapi::document(site.url.as_str()));
    let document = async move |_: Door, _: Body| Ok(as_json(document));
    let described = Router::new()
        .route("/openapi.json", only("GET", get(problem(Pace::Tokens, document))))
        .route("/problems/{slug}", only("GET", get(problem(Pace::Tokens, described))))
        .layer(middleware::from_fn_with_state(site.clone(), everybody));
    // A nested router does not match its own path with a trailing slash.
    let slash = any(nothing).layer(middleware::from_fn_with_state(site.clone(), cors::first_party));
    Router::new().nest(BASE, doors.merge(described)).route(&format!("{BASE}/"), slash)
}

/// Wraps a handler whose refusals are problems (RFC 9457).
fn problem<A>(pace: Pace, act: A) -> Told<A, Problem> {
    told(pace, |door, _, problem| refused(door, problem), act).of_json()
}

/// Makes the door of an operation; its handler cannot be reached in any other way.
fn operation<F>(operation: &'static Operation, act: fn(Call, Input) -> F) -> MethodRouter<Site>
where
    F: Future<Output = Result<Response, Problem>> + Send + 'static,
{
    let door = problem(operation.pace, async move |door: Door, body: Body| answer(operation, act, (door, body)).await);
    let methods = match operation.method {
        "GET" => get(door),
        "PATCH" => patch(door),
        _ => post(door),
    };
    only(operation.method, methods)
}

/// Answers any other method with the allowed one.
fn only(method: &'static str, methods: MethodRouter<Site>) -> MethodRouter<Site> {
    let wrong = problem(Pace::Tokens, async move |door: Door, _: Body| {
        let mut response = refused(&door, Problem::of(Kind::MethodNotAllowed));
        let allowed = if method == "GET" { "GET, HEAD" } else { method };
        reply::set(response.headers_mut(), ALLOW, allowed);
        Ok(response)
    });
    methods.fallback(wrong.of_no_body())
}

async fn nothing(_: Door, _: Body) -> Result<Response, Problem> {
    Err(Problem::of(Kind::NotFound))
}

/// `GET /api/v1/problems/SLUG`: what a `type` means (RFC 9457 §3.1.1).
async fn described(door: Door, _: Body) -> Result<Response, Problem> {
    let slug = door.uri.path().rsplit('/').next();
    let kind = Kind::ALL.iter().find(|kind| Some(kind.slug()) == slug).ok_or(Problem::of(Kind::NotFound))?;
    Ok(as_json(openapi::described(*kind, door.site.url.as_str()).to_string()))
}

/// Makes a public JSON response, without `no-store`.
fn as_json(body: impl Into<Body>) -> Response {
    reply::plain(StatusCode::OK, "application/json", body)
}
