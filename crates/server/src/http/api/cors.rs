//! Which pages may call the account API: those of first-party clients. Pages may send cookies only if tokens are kept
//! in them; refusals, which reveal nothing of an account, can always be read.

use crate::http::cors::{EXPOSED, Readers, answer, origin};
use crate::http::reply;
use crate::http::site::Site;
use axum::body::Body;
use axum::extract::State;
use axum::middleware::Next;
use axum::response::Response;
use hyper::header::{self, HeaderValue};
use hyper::{Method, Request};

/// Marks a response in cookie mode, or a refusal: the page may read it although it sent cookies.
#[derive(Clone, Copy, Debug)]
pub struct Credentialed;

/// Serves the doors of the account API.
pub async fn first_party(State(site): State<Site>, request: Request<Body>, next: Next) -> Response {
    let origin = origin(request.headers());
    let preflight = request.method() == Method::OPTIONS && origin.is_some();
    let (mut response, allowed) = answer((&site, request, next), origin.as_deref(), Readers::FirstParty).await;
    let credentialed = response.extensions_mut().remove::<Credentialed>().is_some();
    let headers = response.headers_mut();
    headers.append(header::VARY, HeaderValue::from_static("Origin"));
    if let (true, Some(origin)) = (allowed, origin) {
        reply::set(headers, header::ACCESS_CONTROL_ALLOW_ORIGIN, &origin);
        headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static(EXPOSED));
        // A preflight does not say whether the request will carry cookies, and carries none itself.
        if preflight || credentialed {
            headers.insert(header::ACCESS_CONTROL_ALLOW_CREDENTIALS, HeaderValue::from_static("true"));
        }
    }
    response
}
