//! Which pages may call the account API: those of first-party clients. Cookies travel only where tokens are kept in
//! them.

use crate::http::cors::{allow, origin};
use crate::http::reply;
use crate::http::site::Site;
use axum::body::Body;
use axum::extract::State;
use axum::middleware::Next;
use axum::response::Response;
use hyper::header::{self, HeaderValue};
use hyper::{Method, Request, StatusCode};

/// Marks a response to a request whose tokens are in cookies: the page may read it although cookies were sent.
#[derive(Clone, Copy, Debug)]
pub struct Credentialed;

/// For the doors of the account API.
pub async fn first_party(State(site): State<Site>, request: Request<Body>, next: Next) -> Response {
    let origin = origin(request.headers());
    let allowed = match &origin {
        Some(origin) => site.app.is_first_party_origin(origin).await.unwrap_or(false),
        None => false,
    };
    let preflight = request.method() == Method::OPTIONS && origin.is_some();
    let mut response = match (preflight, allowed) {
        (true, true) => allow("GET, POST, PATCH", "authorization, content-type, x-csrf-token"),
        (true, false) => reply::plain(StatusCode::FORBIDDEN, "text/plain", ""),
        _ => next.run(request).await,
    };
    let credentialed = response.extensions_mut().remove::<Credentialed>().is_some();
    let headers = response.headers_mut();
    headers.append(header::VARY, HeaderValue::from_static("Origin"));
    if let (true, Some(origin)) = (allowed, origin) {
        reply::set(headers, header::ACCESS_CONTROL_ALLOW_ORIGIN, &origin);
        let told = HeaderValue::from_static("www-authenticate, retry-after, x-request-id");
        headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, told);
        // A preflight does not say whether cookies will come, and carries none itself.
        if preflight || credentialed {
            headers.insert(header::ACCESS_CONTROL_ALLOW_CREDENTIALS, HeaderValue::from_static("true"));
        }
    }
    response
}
