//! Which other origins may read what (RFC 9700 §2.6): all origins the metadata, registered applications the endpoints
//! that they call from a browser, none the pages. Never with cookies.

use super::Site;
use super::door::{Door, Told, json};
use super::error::Refusal;
use super::reply;
use crate::admission::Pace;
use crate::metrics::Refused;
use app::Fault;
use axum::body::Body;
use axum::extract::State;
use axum::handler::Handler;
use axum::middleware::Next;
use axum::response::Response;
use hyper::header::{self, HeaderValue};
use hyper::{HeaderMap, Method, Request, StatusCode};

#[cfg(test)]
mod tests;

/// Lets every origin read public metadata.
pub async fn everybody(State(site): State<Site>, request: Request<Body>, next: Next) -> Response {
    let asks = request.method() == Method::OPTIONS;
    let is_known = |origin: String| Readers::Registered.included(&site, &origin);
    let mut response = match asks && origin(request.headers()).is_some_and(is_known) {
        true => allow("GET", "*"),
        false if asks => preflight(async |_: Door, _: Body| Ok(allow("GET", "*"))).call(request, site).await,
        false => next.run(request).await,
    };
    opened(&mut response);
    response
}

/// Lets everybody read a response, and when to come back.
pub fn opened(response: &mut Response) {
    let headers = response.headers_mut();
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
    headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static(EXPOSED));
}

/// Serves endpoints that an application in a browser calls with its own credentials.
pub async fn registered(State(site): State<Site>, request: Request<Body>, next: Next) -> Response {
    let origin = origin(request.headers());
    let (mut response, allowed) = answer((&site, request, next), origin.as_deref(), Readers::Registered).await;
    let headers = response.headers_mut();
    headers.append(header::VARY, HeaderValue::from_static("Origin"));
    if let (true, Some(origin)) = (allowed, origin) {
        reply::set(headers, header::ACCESS_CONTROL_ALLOW_ORIGIN, &origin);
        headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static(EXPOSED));
    }
    response
}

/// Whose pages may call certain doors.
#[derive(Clone, Copy, Debug)]
pub enum Readers {
    /// Pages of registered applications.
    Registered,
    /// Pages of first-party applications.
    FirstParty,
}

impl Readers {
    /// Asks the database; if it cannot answer, goes by what this node remembers.
    async fn include(self, site: &Site, origin: &str) -> Result<bool, Fault> {
        let asked = match self {
            Readers::Registered => site.app.is_registered_origin(origin).await,
            Readers::FirstParty => site.app.is_first_party_origin(origin).await,
        };
        asked.or_else(|fault| if self.included(site, origin) { Ok(true) } else { Err(fault) })
    }

    /// Goes by what this node remembers.
    fn included(self, site: &Site, origin: &str) -> bool {
        match self {
            Readers::Registered => site.app.was_registered_origin(origin),
            Readers::FirstParty => site.app.was_first_party_origin(origin),
        }
    }

    fn allowance(self) -> Response {
        match self {
            // Swagger UI sends the last with each token request, some libraries with every request.
            Readers::Registered => allow("GET, POST", "authorization, content-type, dpop, x-requested-with"),
            Readers::FirstParty => {
                allow("GET, POST, PATCH", "authorization, content-type, x-csrf-token, x-requested-with")
            }
        }
    }
}

/// The headers of a response that another origin may read.
pub const EXPOSED: &str =
    "www-authenticate, retry-after, ratelimit-limit, ratelimit-remaining, ratelimit-reset, x-request-id";

/// Returns the response, to a preflight or of the door behind, and whether the origin may read it. The database is not
/// asked about requests that no door admits: whether their origin may read the refusal is answered from memory.
///
/// So is the preflight of a known origin, which then costs nothing and is not counted: if it were refused (429, 503),
/// the browser would tell its page of a failed fetch, and not when to come back. The memory may be out of date: a
/// browser may then send the request of an application that was removed since, but the request is judged anew, and so
/// is whether its response may be read. Any other preflight takes a place like every request, and counts as a failure
/// if it is refused; while its origin cannot be looked up, nothing is held against anybody.
pub async fn answer(
    (site, request, next): (&Site, Request<Body>, Next),
    origin: Option<&str>,
    readers: Readers,
) -> (Response, bool) {
    let Some(origin) = origin else { return (next.run(request).await, false) };
    if request.method() != Method::OPTIONS {
        let response = next.run(request).await;
        let refused = response.extensions().get::<Refused>();
        let put_off = matches!(refused, Some(Refused::Busy | Refused::Rate | Refused::Database));
        let allowed = match put_off {
            true => readers.included(site, origin),
            false => readers.include(site, origin).await.unwrap_or(false),
        };
        return (response, allowed);
    }
    if readers.included(site, origin) {
        return (readers.allowance(), true);
    }
    let origin = origin.to_owned();
    let judged = async move |door: Door, _: Body| match readers.include(&door.site, &origin).await {
        Ok(true) => Ok(readers.allowance()),
        Ok(false) => Ok(reply::plain(StatusCode::FORBIDDEN, "text/plain", "")),
        Err(fault) => Err(Refusal::Fault(fault)),
    };
    let response = preflight(judged).call(request, site.clone()).await;
    let allowed = response.status() == StatusCode::NO_CONTENT;
    (response, allowed)
}

/// Wraps the preflight of an unknown origin, which is a request: it is counted, and takes a place.
fn preflight<A>(judge: A) -> Told<A, Refusal> {
    json(Pace::Tokens, judge)
}

/// Returns the origin that a browser names; `None` if it names two.
pub fn origin(headers: &HeaderMap) -> Option<String> {
    let mut lines = headers.get_all(header::ORIGIN).iter();
    match (lines.next(), lines.next()) {
        (Some(origin), None) => origin.to_str().ok().map(str::to_owned),
        _ => None,
    }
}

/// Answers a preflight (Fetch §3.2.3).
fn allow(methods: &str, names: &str) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    let headers = response.headers_mut();
    reply::set(headers, header::ACCESS_CONTROL_ALLOW_METHODS, methods);
    reply::set(headers, header::ACCESS_CONTROL_ALLOW_HEADERS, names);
    headers.insert(header::ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("600"));
    response
}
