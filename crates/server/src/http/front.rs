//! What happens to every request before and after its door: a name, a known host, and headers that no door can forget.

use super::Site;
use super::reply;
use super::visit::Visit;
use crate::net::Peer;
use crate::pages::{ErrorPage, Reason};
use axum::body::Body;
use axum::extract::State;
use axum::middleware::Next;
use axum::response::Response;
use hyper::header::{self, HeaderValue};
use hyper::{Request, StatusCode};
use std::sync::atomic::Ordering;
use std::time::Instant;

/// Paths that answer under any host: probes and scrapers do not know our name.
const ANY_HOST: [&str; 2] = ["/healthz", "/readyz"];

/// The front of every door.
pub async fn front(State(site): State<Site>, mut request: Request<Body>, next: Next) -> Response {
    let began = Instant::now();
    let Some(peer) = request.extensions().get::<Peer>().copied() else {
        return reply::plain(StatusCode::INTERNAL_SERVER_ERROR, "text/plain", "no peer");
    };
    let Some(visit) = Visit::new(&site, &peer, request.headers()) else {
        return reply::plain(StatusCode::SERVICE_UNAVAILABLE, "text/plain", "no randomness");
    };
    if visit.client.untrusted_forwarding {
        site.forgotten_proxy.store(true, Ordering::Relaxed);
    }
    let known = ANY_HOST.contains(&request.uri().path()) || host(&request).is_some_and(|host| site.serves(host));
    let mut response = if known {
        let (method, path) = (request.method().clone(), request.uri().path().to_owned());
        request.extensions_mut().insert(visit.clone());
        let response = app::asked::within(visit.request_id.to_string(), next.run(request)).await;
        let took = began.elapsed();
        if took > site.slow {
            tracing::warn!(request = %visit.request_id, %method, path, ms = took.as_millis(), "slow");
        }
        tracing::debug!(request = %visit.request_id, %method, path, status = response.status().as_u16(), "answered");
        response
    } else {
        misdirected(&site, &visit, &request)
    };
    finish(&site, &visit, &mut response);
    response
}

/// HTTP/2 names the host in the URI, HTTP/1.1 in a header that comes once.
fn host(request: &Request<Body>) -> Option<&str> {
    if let Some(authority) = request.uri().authority() {
        return Some(authority.as_str());
    }
    let mut lines = request.headers().get_all(header::HOST).iter();
    match (lines.next(), lines.next()) {
        (Some(host), None) => host.to_str().ok(),
        _ => None,
    }
}

/// RFC 9110 §15.5.20. Links, issuer and cookies never follow the Host header (PR-02).
fn misdirected(site: &Site, visit: &Visit, request: &Request<Body>) -> Response {
    let page = ErrorPage {
        status: 421,
        reason: Reason::WrongHost,
        code: "",
        detail: None,
        request_id: &visit.request_id,
        back: None,
    };
    let html = page.render(&visit.chrome(site, request.headers(), None));
    reply::page(StatusCode::MISDIRECTED_REQUEST, visit, html, None)
}

fn finish(site: &Site, visit: &Visit, response: &mut Response) {
    let headers = response.headers_mut();
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    if site.url.is_https() {
        headers.insert(header::STRICT_TRANSPORT_SECURITY, HeaderValue::from_static("max-age=31536000"));
    }
    reply::set(headers, header::HeaderName::from_static("x-request-id"), &visit.request_id);
    if !headers.contains_key(header::REFERRER_POLICY) {
        headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    }
    if !headers.contains_key(header::CONTENT_SECURITY_POLICY) {
        let nothing = HeaderValue::from_static("default-src 'none'; frame-ancestors 'none'");
        headers.insert(header::CONTENT_SECURITY_POLICY, nothing);
        headers.insert(header::X_FRAME_OPTIONS, HeaderValue::from_static("DENY"));
    }
}
