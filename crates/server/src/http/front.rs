//! What happens to every request before and after its door: an id, a check of its host, headers that no door can omit.

use super::Site;
use super::api::problem::{Kind, Problem};
use super::cors;
use super::door::{Door, page};
use super::error::{Refusal, for_programs};
use super::extract;
use super::reply::{self, Forms};
use super::visit::Visit;
use crate::admission::Pace;
use crate::config::{CHANGE_PASSWORD, PROBES};
use crate::metrics::Refused;
use crate::net::Peer;
use crate::pages::{ErrorPage, Reason};
use crate::trace::{Traced, Went};
use app::complaint::Sparing;
use app::stopwatch::{self, Sheet, Stage};
use axum::body::Body;
use axum::extract::{MatchedPath, State};
use axum::handler::Handler;
use axum::middleware::Next;
use axum::response::Response;
use hyper::header::{self, HeaderName, HeaderValue};
use hyper::{HeaderMap, Method, Request, StatusCode, Version};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use store::tally::nanos;

/// HTML Standard §7.1.3: no page of another origin that opened this page, or was opened by it, has a handle to it.
const COOP: HeaderName = HeaderName::from_static("cross-origin-opener-policy");

const ACCEPT_PATCH: HeaderName = HeaderName::from_static("accept-patch");

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// The room reserved for the headers of a response, so that the map is allocated only once.
const HEADERS: usize = 16;

/// Where metadata is looked for: before any path (RFC 8615 §3), or after it, as one name (OpenID Connect Discovery §4).
/// A client with a wrong address for this server gets an error that pages may read: a page that could not read it would
/// take it for a CORS fault.
const WELL_KNOWN: &str = "/.well-known/";

/// Pages of people, and endpoints that say themselves who may read them: nothing below these is metadata.
const NO_METADATA: [&str; 10] =
    ["/account", "/api", "/assets", "/consent", "/continue", "/device", "/login", "/setup", "/signup", "/try"];

/// Pages that lead to the account home, unless they belong to a flow of an application.
const TO_ACCOUNT: [&str; 2] = ["/login", "/signup"];

const NO_HOST: &str = "the request must name exactly one host";

const PADDED: &str = "a header's value begins or ends with white space";

const CODED: &str = "the only transfer coding accepted is chunked";

/// Wraps every door.
pub async fn front(State(site): State<Site>, mut request: Request<Body>, next: Next) -> Response {
    let began = Instant::now();
    let running = site.requests.begin(request.extensions().get::<MatchedPath>(), request.method());
    let Some(peer) = request.extensions().get::<Peer>().copied() else {
        return reply::plain(StatusCode::INTERNAL_SERVER_ERROR, "text/plain", "no peer");
    };
    let Some(visit) = Visit::new(&site, &peer, request.headers()) else {
        let mut response = reply::plain(StatusCode::SERVICE_UNAVAILABLE, "text/plain", "no randomness");
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
        return response;
    };
    if visit.client.untrusted_forwarding {
        site.forgotten_proxy.store(true, Ordering::Relaxed);
    }
    if visit.client.unnamed {
        site.silent_proxy.store(true, Ordering::Relaxed);
    }
    let (is_coded, is_padded) = (is_coded(request.headers()), is_padded(&request));
    let known = is_ours(&site, peer.tls || visit.client.via_proxy, &request);
    let shape = Shape::of(&site, &request);
    let traced = site.tracer.begin(&request, &visit.client);
    request.extensions_mut().insert(visit.clone());
    let answered = async {
        let mut response = match known {
            _ if is_coded => page(Pace::Pages, coded).of_no_body().call(request, site.clone()).await,
            _ if is_padded => page(Pace::Pages, padded).of_no_body().call(request, site.clone()).await,
            Some(true) => next.run(request).await,
            // A request that reaches none of our doors is counted and takes a place like any other.
            Some(false) => page(Pace::Pages, misdirected).of_no_body().call(request, site.clone()).await,
            None => page(Pace::Pages, nameless).of_no_body().call(request, site.clone()).await,
        };
        if let Some(standing) = app::asked::standing() {
            reply::rate_limit(&mut response, &standing);
        }
        response
    };
    let asked = site.app.within(Arc::clone(&visit.request_id), visit.client.address, answered);
    let (mut response, sheet) = stopwatch::timing(began, asked).await;
    finish(&site, &visit, &mut response);
    shape.add_headers(&mut response);
    let (took, status) = (began.elapsed(), response.status().as_u16());
    let (id, method, route) = (&*visit.request_id, running.method(), running.route());
    if !site.slow.is_zero() && ours(took, &sheet) > site.slow {
        site.requests.slow.one();
        if let Some(left_out) = SLOW.room() {
            let trace = traced.as_ref().map(Traced::id);
            tell_slow((id, trace.as_deref()), (method, route, status), (took, left_out), &sheet);
        }
    }
    tracing::debug!(request = id, method, route, status, ms = nanos(took) / 1_000_000, "answered");
    if let Some(traced) = traced {
        let refused = response.extensions().get::<Refused>().copied();
        site.tracer.end(traced, Went { method, route, request: id, status, refused, began, took }, &sheet);
    }
    running.end(&response, ours(took, &sheet), &sheet);
    response
}

/// What decides on headers of the response, whichever door it comes from.
struct Shape {
    of_metadata: bool,
    is_apart: bool,
    is_patch: bool,
    has_coding: bool,
}

impl Shape {
    fn of(site: &Site, request: &Request<Body>) -> Shape {
        let path = request.uri().path();
        Shape {
            of_metadata: is_of_metadata(site, path),
            is_apart: is_apart(site, request),
            is_patch: request.method() == Method::PATCH,
            has_coding: request.headers().contains_key(header::CONTENT_ENCODING),
        }
    }

    fn add_headers(&self, response: &mut Response) {
        if self.is_apart {
            reply::set(response.headers_mut(), COOP, "same-origin");
        }
        let status = response.status();
        let names_readers = response.headers().contains_key(header::ACCESS_CONTROL_ALLOW_ORIGIN);
        let is_wrong_address = matches!(status, StatusCode::NOT_FOUND | StatusCode::MISDIRECTED_REQUEST);
        if self.of_metadata && is_wrong_address && !names_readers {
            cors::opened(response);
        }
        // What would have been accepted: of codings (RFC 9110 §12.5.3), of patches (RFC 5789 §3.1).
        if self.has_coding && status == StatusCode::UNSUPPORTED_MEDIA_TYPE {
            reply::set(response.headers_mut(), header::ACCEPT_ENCODING, "identity");
        }
        if self.is_patch && status == StatusCode::UNSUPPORTED_MEDIA_TYPE {
            reply::set(response.headers_mut(), ACCEPT_PATCH, "application/json");
        }
    }
}

/// Returns whether no page that opened this one keeps a handle to its window. For every response under the account: an
/// error page, too, has the account's origin and window. Also for what leads there, but only those who are signed in:
/// else whoever opened it would see by the handle whether they are. The pages of an application's sign-in do not get
/// it: applications open them in windows that they keep a handle to.
fn is_apart(site: &Site, request: &Request<Body>) -> bool {
    let path = request.uri().path();
    let is_read = matches!(*request.method(), Method::GET | Method::HEAD);
    let leads_there = || site.below(path).is_some_and(|path| TO_ACCOUNT.contains(&path));
    is_of(site, "/account", path)
        || path == CHANGE_PASSWORD
        || (is_read && leads_there() && extract::flow(request.uri()).is_none())
}

fn is_of_metadata(site: &Site, path: &str) -> bool {
    let is_well_known = |(_, name): (&str, &str)| path.starts_with(WELL_KNOWN) || !name.contains('/');
    path.split_once(WELL_KNOWN).is_some_and(is_well_known) && !NO_METADATA.iter().any(|part| is_of(site, part, path))
}

/// Returns the time a request took, without its body, which a client may send as slowly as it likes, and without the
/// time for which its refusal was held back on purpose.
fn ours(took: Duration, sheet: &Sheet) -> Duration {
    let theirs = sheet.sums().filter(|(stage, _)| !stage.is_ours()).map(|(_, sum)| sum);
    took.saturating_sub(theirs.sum())
}

/// The lines on slow requests.
static SLOW: Sparing = Sparing::unused();

/// Logs where the time of a slow request went: the stages that took a millisecond or more. The line holds nothing of
/// the request itself.
fn tell_slow(
    (request, trace): (&str, Option<&str>),
    (method, route, status): (&str, &str, u16),
    (took, left_out): (Duration, u64),
    sheet: &Sheet,
) {
    let in_stages: Duration = sheet.sums().map(|(_, sum)| sum).sum();
    let ms = |time: Duration| Some(nanos(time) / 1_000_000).filter(|ms| *ms > 0);
    let of = |wanted: Stage| sheet.sums().find(|(stage, _)| *stage == wanted).and_then(|(_, sum)| ms(sum));
    tracing::warn!(
        request,
        trace,
        method,
        route,
        status,
        ms = nanos(took) / 1_000_000,
        body_ms = of(Stage::Body),
        door_ms = of(Stage::Door),
        fetch_ms = of(Stage::Fetch),
        turnstile_ms = of(Stage::Turnstile),
        hash_queue_ms = of(Stage::HashQueue),
        hash_ms = of(Stage::Hash),
        evening_ms = of(Stage::Evening),
        commit_queue_ms = of(Stage::CommitQueue),
        commit_ms = of(Stage::Commit),
        sign_ms = of(Stage::Sign),
        pace_ms = of(Stage::Pace),
        other_ms = ms(took.saturating_sub(in_stages)),
        left_out = Some(left_out).filter(|many| *many > 0),
        "slow"
    );
}

/// Returns whether a request is for this server, by its host and its scheme; `None` if it names no host, or two.
fn is_ours(site: &Site, secured: bool, request: &Request<Body>) -> Option<bool> {
    let path = request.uri().path();
    let named = host(request).map(|host| site.serves(host) && !is_of_another_scheme(site, secured, request));
    match named {
        // Probes do not know our name.
        named if PROBES.contains(&path) && (named.is_some() || may_name_nobody(request)) => Some(true),
        // The page that tells it has to look like ours.
        Some(false) if is_of(site, "/assets", path) => Some(true),
        named => named,
    }
}

/// Returns the host, which HTTP/2 names in the URI and HTTP/1.1 in a header. `None` if none is named, or two are (RFC
/// 9112 §3.2, RFC 9113 §8.3.1).
fn host(request: &Request<Body>) -> Option<&str> {
    let mut lines = request.headers().get_all(header::HOST).iter();
    let (line, further) = (lines.next(), lines.next());
    let authority = request.uri().authority().map(|authority| authority.as_str());
    match (authority, line) {
        _ if further.is_some() => None,
        (Some(authority), Some(line)) if request.version() == Version::HTTP_2 && line != authority => None,
        // An intermediary may go by the header that is missing here.
        (Some(_), None) if request.version() == Version::HTTP_11 => None,
        (Some(authority), _) => Some(authority),
        (None, line) => line?.to_str().ok(),
    }
}

/// Returns whether a request names no host and need not (RFC 9112 §3.2, RFC 9113 §8.3.1). The health checks of HAProxy
/// and of the container image name none.
fn may_name_nobody(request: &Request<Body>) -> bool {
    let names = request.uri().authority().is_some() || request.headers().contains_key(header::HOST);
    !names && request.version() != Version::HTTP_11
}

/// Returns whether the scheme rules out that the target is ours (RFC 9110 §7.4). `https` does so only if nothing before
/// us can have had TLS: an unlisted proxy passes on the target. HTTP/2 is exempt: HAProxy says `https` for all requests
/// that came by HTTP/1.1. `http` is always accepted: proxies that got a request by plain HTTP say it over TLS.
fn is_of_another_scheme(site: &Site, secured: bool, request: &Request<Body>) -> bool {
    let Some(scheme) = request.uri().scheme_str() else { return false };
    let is = |known: &str| scheme.eq_ignore_ascii_case(known);
    let may_be = secured || site.url.is_https() || request.version() == Version::HTTP_2;
    let ours = is("http") || (is("https") && may_be);
    !ours
}

/// Returns whether a body has another transfer coding than `chunked`, or several. Even if the last is `chunked`, an
/// intermediary may find another end of the body, and nothing here would undo the other codings (RFC 9112 §6.1).
fn is_coded(headers: &HeaderMap) -> bool {
    let mut lines = headers.get_all(header::TRANSFER_ENCODING).iter();
    let first = lines.next();
    lines.next().is_some() || first.is_some_and(|coding| !coding.as_bytes().eq_ignore_ascii_case(b"chunked"))
}

/// Returns whether a header value has white space around it. HTTP/1 strips it; in HTTP/2 such a request is malformed
/// (RFC 9113 §8.2.1), and an intermediary may read it differently.
fn is_padded(request: &Request<Body>) -> bool {
    let is_white = |byte: Option<&u8>| byte.is_some_and(|byte| matches!(byte, b' ' | b'\t'));
    let around = |value: &HeaderValue| is_white(value.as_bytes().first()) || is_white(value.as_bytes().last());
    request.version() == Version::HTTP_2 && request.headers().values().any(around)
}

async fn padded(_: Door, _: Body) -> Result<Response, Refusal> {
    Ok(reply::plain(StatusCode::BAD_REQUEST, "text/plain", PADDED))
}

async fn coded(_: Door, _: Body) -> Result<Response, Refusal> {
    let mut response = reply::plain(StatusCode::NOT_IMPLEMENTED, "text/plain", CODED);
    response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    Ok(response)
}

/// RFC 9110 §15.5.20. Links, issuer and cookies never follow the Host header (PR-02).
async fn misdirected(door: Door, _: Body) -> Result<Response, Refusal> {
    let visit = &door.visit;
    let page = ErrorPage {
        status: 421,
        reason: Reason::WrongHost,
        code: "",
        detail: None,
        request_id: &visit.request_id,
        back: None,
        anew: Some(door.site.url.as_str()),
        repeats: false,
    };
    let why = format!("this server answers as {}", door.site.url.as_str());
    let told = match is_of(&door.site, "/api", door.uri.path()) {
        true => Some(Problem::of(Kind::Misdirected).to_response(&door.site, visit)),
        false => for_programs(&door, StatusCode::MISDIRECTED_REQUEST, &why),
    };
    let mut response = told.unwrap_or_else(|| {
        let html = page.render(&door.chrome(None));
        reply::page(StatusCode::MISDIRECTED_REQUEST, visit, html, Forms::Stay)
    });
    response.extensions_mut().insert(Refused::WrongHost);
    Ok(response)
}

async fn nameless(_: Door, _: Body) -> Result<Response, Refusal> {
    Ok(reply::plain(StatusCode::BAD_REQUEST, "text/plain", NO_HOST))
}

/// Returns whether `path` is `part` below our base, or lies below it.
fn is_of(site: &Site, part: &str, path: &str) -> bool {
    let below = site.below(path).and_then(|path| path.strip_prefix(part));
    below.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

fn finish(site: &Site, visit: &Visit, response: &mut Response) {
    let is_error = response.status().is_client_error() || response.status().is_server_error();
    let headers = response.headers_mut();
    headers.reserve(HEADERS.saturating_sub(headers.len()));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    if site.url.is_https() {
        headers.insert(header::STRICT_TRANSPORT_SECURITY, HeaderValue::from_static("max-age=31536000"));
    }
    // A cache in front of us would keep it for everybody who asks for the same address correctly.
    if is_error && !headers.contains_key(header::CACHE_CONTROL) {
        reply::private(headers);
    }
    reply::set(headers, REQUEST_ID, &visit.request_id);
    if !headers.contains_key(header::REFERRER_POLICY) {
        headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    }
    if !headers.contains_key(header::CONTENT_SECURITY_POLICY) {
        let nothing = HeaderValue::from_static("default-src 'none'; frame-ancestors 'none'");
        headers.insert(header::CONTENT_SECURITY_POLICY, nothing);
        headers.insert(header::X_FRAME_OPTIONS, HeaderValue::from_static("DENY"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_time_that_a_body_takes_makes_no_request_slow() {
        let (began, second) = (Instant::now(), Duration::from_secs(1));
        let work = async {
            stopwatch::lap(Stage::Body, began, began + 9 * second);
            stopwatch::lap(Stage::Commit, began + 9 * second, began + 10 * second);
        };
        let ((), sheet) = stopwatch::timing(began, work).await;
        assert_eq!(ours(10 * second, &sheet), second);
    }
}
