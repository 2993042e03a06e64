//! Which other origins may read what (RFC 9700 §2.6): everybody the metadata, registered applications the endpoints
//! that they call from a browser, nobody the pages. Never with cookies.

use super::Site;
use super::reply;
use axum::body::Body;
use axum::extract::State;
use axum::middleware::Next;
use axum::response::Response;
use hyper::header::{self, HeaderValue};
use hyper::{HeaderMap, Method, Request, StatusCode};

/// For public metadata.
pub async fn everybody(request: Request<Body>, next: Next) -> Response {
    let preflight = request.method() == Method::OPTIONS;
    let mut response = if preflight { allow("GET", "*") } else { next.run(request).await };
    response.headers_mut().insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
    response
}

/// For endpoints that an application in a browser calls with its own credentials.
pub async fn registered(State(site): State<Site>, request: Request<Body>, next: Next) -> Response {
    let origin = origin(request.headers());
    let allowed = match &origin {
        Some(origin) => site.app.is_registered_origin(origin).await.unwrap_or(false),
        None => false,
    };
    let preflight = request.method() == Method::OPTIONS && origin.is_some();
    let mut response = match (preflight, allowed) {
        (true, true) => allow("GET, POST", "authorization, content-type, dpop"),
        (true, false) => reply::plain(StatusCode::FORBIDDEN, "text/plain", ""),
        _ => next.run(request).await,
    };
    let headers = response.headers_mut();
    headers.append(header::VARY, HeaderValue::from_static("Origin"));
    if let (true, Some(origin)) = (allowed, origin) {
        reply::set(headers, header::ACCESS_CONTROL_ALLOW_ORIGIN, &origin);
        headers.insert(
            header::ACCESS_CONTROL_EXPOSE_HEADERS,
            HeaderValue::from_static("www-authenticate, retry-after, x-request-id"),
        );
    }
    response
}

/// The origin that a browser names; `None` when it is named twice.
pub fn origin(headers: &HeaderMap) -> Option<String> {
    let mut lines = headers.get_all(header::ORIGIN).iter();
    match (lines.next(), lines.next()) {
        (Some(origin), None) => origin.to_str().ok().map(str::to_owned),
        _ => None,
    }
}

/// The answer to a preflight (Fetch §3.2.3).
pub fn allow(methods: &str, names: &str) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    let headers = response.headers_mut();
    reply::set(headers, header::ACCESS_CONTROL_ALLOW_METHODS, methods);
    reply::set(headers, header::ACCESS_CONTROL_ALLOW_HEADERS, names);
    headers.insert(header::ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("600"));
    response
}
