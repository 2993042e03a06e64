//! Responses: the one place where headers are assembled.

use super::Site;
use super::cookies::Name;
use super::visit::Visit;
use crate::metrics::Refused;
use crate::pages::Setback;
use app::rates::Standing;
use axum::body::Body;
use axum::response::Response;
use hyper::header::{self, HeaderName, HeaderValue};
use hyper::{HeaderMap, StatusCode};
use rules::Span;
use rules::login::session::Started;
use rules::secret::Secret;
use std::time::Duration;

/// Makes a response with a body of that type.
pub fn plain(status: StatusCode, content_type: &'static str, body: impl Into<Body>) -> Response {
    let mut response = Response::new(body.into());
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}

/// Makes a JSON response that nobody may cache (RFC 6749 §5.1).
pub fn json(status: StatusCode, body: impl Into<Body>) -> Response {
    let mut response = plain(status, "application/json", body);
    private(response.headers_mut());
    response
}

/// Makes a response of a status alone: an empty body has no type, and is not JSON (RFC 8259 §2).
pub fn nothing(status: StatusCode) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status;
    private(response.headers_mut());
    response
}

/// Forbids everybody to cache the response.
pub fn private(headers: &mut HeaderMap) {
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(header::PRAGMA, HeaderValue::from_static("no-cache"));
}

/// Where the forms of a page lead in the end. Browsers apply `form-action` to every redirect that follows, and what an
/// application does with its response is its own business ([0024](../../../../docs/decisions/0024-form-action.md)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forms<'a> {
    /// To this server.
    Stay,
    /// To an application, and wherever it sends the browser.
    Leave,
    /// To this origin.
    Post(&'a str),
}

/// Makes a page.
pub fn page(status: StatusCode, visit: &Visit, html: String, forms: Forms<'_>) -> Response {
    let mut response = plain(status, "text/html; charset=utf-8", html);
    let nonce = &visit.nonce;
    let form_action = match forms {
        Forms::Stay => "form-action 'self'; ".to_owned(),
        Forms::Leave => String::new(),
        Forms::Post(origin) => format!("form-action 'self' {}; ", source(origin)),
    };
    let policy = format!(
        "default-src 'none'; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; img-src 'self'; connect-src 'self'; \
         {form_action}frame-ancestors 'none'; base-uri 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
    );
    let headers = response.headers_mut();
    private(headers);
    set(headers, header::CONTENT_SECURITY_POLICY, &policy);
    headers.insert(header::X_FRAME_OPTIONS, HeaderValue::from_static("DENY"));
    // The recipient of our form is told our origin, except from https to http: some check it.
    let referrer = if matches!(forms, Forms::Post(_)) { "strict-origin" } else { "same-origin" };
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static(referrer));
    headers.insert(header::VARY, HeaderValue::from_static("Accept-Language, Cookie"));
    response
}

/// Returns an origin as a source of a Content Security Policy (CSP 3 §2.3.1); only its scheme if the grammar cannot
/// name it: for IPv6 addresses, which browsers would ignore (only native clients have them, on the user's machine), and
/// for private schemes, where `;` or `,` may follow, which end a directive and a policy. Empty without a scheme.
fn source(origin: &str) -> &str {
    let Some((scheme, rest)) = origin.split_once(':') else { return "" };
    let of_scheme = |b: u8| b.is_ascii_alphanumeric() || b"+-.".contains(&b);
    if !scheme.starts_with(|c: char| c.is_ascii_alphabetic()) || !scheme.bytes().all(of_scheme) {
        return "";
    }
    let of_host = |b: u8| b.is_ascii_alphanumeric() || b"-.:".contains(&b);
    let host = rest.strip_prefix("//").filter(|_| matches!(scheme, "http" | "https"));
    match host.is_some_and(|host| !host.is_empty() && host.bytes().all(of_host)) {
        true => origin,
        false => &origin[..=scheme.len()],
    }
}

/// Makes a page with a form, for the first time or again: the reason why the form was not accepted decides the status
/// and when to come back (RFC 9110 §15.5.21 and §15.6.4, RFC 6585 §4), at every door alike.
pub fn form(setback: Option<Setback>, visit: &Visit, html: String, forms: Forms<'_>) -> Response {
    let (status, wait) = match setback {
        None => (StatusCode::OK, None),
        Some(Setback::Typed) => (StatusCode::UNPROCESSABLE_ENTITY, None),
        Some(Setback::Throttled { seconds }) => (StatusCode::TOO_MANY_REQUESTS, Some((seconds, Refused::Throttled))),
        Some(Setback::Busy { seconds, .. }) => (StatusCode::SERVICE_UNAVAILABLE, Some((seconds, Refused::Busy))),
    };
    let mut response = page(status, visit, html, forms);
    if let Some((seconds, refused)) = wait {
        let wait = Span::seconds(seconds);
        match refused {
            Refused::Busy => busy(&mut response, wait),
            _ => retry_after(&mut response, wait),
        }
        response.extensions_mut().insert(refused);
    }
    response
}

/// Redirects with 303, never 307: a request with credentials must not be repeated elsewhere (RFC 9700 §4.12).
pub fn see_other(location: &str) -> Response {
    let mut response = nothing(StatusCode::SEE_OTHER);
    set(response.headers_mut(), header::LOCATION, location);
    response.headers_mut().insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    response
}

/// Sets a header; omits it if the value is not valid in a header.
pub fn set(headers: &mut HeaderMap, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        headers.insert(name, value);
    }
}

/// Says what the caller has left of a rate, or when it is whole again (draft-ietf-httpapi-ratelimit-headers-06).
pub fn rate_limit(response: &mut Response, standing: &Standing) {
    let headers = response.headers_mut();
    let reset = standing.reset.as_secs() + u64::from(standing.reset.subsec_nanos() > 0);
    for (name, value) in [
        ("ratelimit-limit", u64::from(standing.limit)),
        ("ratelimit-remaining", u64::from(standing.remaining)),
        ("ratelimit-reset", reset),
    ] {
        headers.entry(HeaderName::from_static(name)).or_insert_with(|| value.into());
    }
}

/// Says when to come back, and that the server had no room.
pub fn busy(response: &mut Response, wait: Span) {
    retry_after(response, wait);
    response.extensions_mut().insert(Refused::Busy);
}

/// Says when to come back.
pub fn retry_after(response: &mut Response, wait: Span) {
    set(response.headers_mut(), header::RETRY_AFTER, &wait.whole_seconds().max(1).to_string());
}

/// Returns how long a response asks its client to stay away.
pub fn absence(response: &Response) -> Duration {
    let seconds = response.headers().get(header::RETRY_AFTER).and_then(|value| value.to_str().ok()?.parse().ok());
    Duration::from_secs(seconds.unwrap_or_default())
}

/// Takes the time for which a refusal waited off the times that it names: they began when it was made.
pub fn told_later(response: &mut Response, waited: Duration) {
    for (name, least) in [(header::RETRY_AFTER, 1), (HeaderName::from_static("ratelimit-reset"), 0)] {
        let Some(value) = response.headers_mut().get_mut(name) else { continue };
        let Some(seconds) = value.to_str().ok().and_then(|text| text.parse::<u64>().ok()) else { continue };
        *value = seconds.saturating_sub(waited.as_secs()).max(least).into();
    }
}

/// Sets a cookie, or removes it.
pub fn cookie(response: &mut Response, site: &Site, name: Name, value: Option<&str>) {
    response.headers_mut().append(header::SET_COOKIE, site.set_cookie(name, value));
}

/// Sets the cookie of a flow, if one was sealed.
pub fn flow_cookie(response: &mut Response, site: &Site, sealed: Option<&Secret>) {
    if let Some(holder) = sealed {
        cookie(response, site, Name::Flow, Some(holder.reveal()));
    }
}

/// Sets the cookie by which the accounts that signed in with a browser know it. It is set at each sign-in, so that its
/// year starts again.
pub fn device_cookie(response: &mut Response, site: &Site, device: &Secret) {
    cookie(response, site, Name::Device, Some(device.reveal()));
}

/// Sets the cookie of a session that was started or raised.
pub fn session_cookie(response: &mut Response, site: &Site, started: &Started) {
    cookie(response, site, Name::Session, Some(&started.cookie.write()));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_hears_later_of_a_refusal_is_told_to_stay_away_for_as_much_less() {
        // Red without it: the time would begin once more with the answer.
        for (named, waited, left) in [("3", 2_700, "1"), ("60", 2_700, "58"), ("1", 900, "1"), ("2", 2_700, "1")] {
            let mut response = nothing(StatusCode::SERVICE_UNAVAILABLE);
            set(response.headers_mut(), header::RETRY_AFTER, named);
            set(response.headers_mut(), HeaderName::from_static("ratelimit-reset"), "2");
            told_later(&mut response, Duration::from_millis(waited));
            assert_eq!(response.headers()[header::RETRY_AFTER], left, "{named} s after {waited} ms");
            assert_eq!(response.headers()["ratelimit-reset"], if waited > 1_000 { "0" } else { "2" });
        }
    }

    #[test]
    fn rfc8252_7_3_what_a_policy_cannot_name_is_named_by_its_scheme() {
        for (origin, named) in [
            ("http://[::1]:51004", "http:"),
            ("https://[::1]", "https:"),
            ("http://127.0.0.1:51004", "http://127.0.0.1:51004"),
            ("https://app.test", "https://app.test"),
            ("com.example.app:", "com.example.app:"),
            // Red if `source` gave back what it was given: these would be directives and policies of their own.
            ("com.example.app://cb;script-src", "com.example.app:"),
            ("com.example.app://cb,default-src", "com.example.app:"),
            ("com.example.app://a b", "com.example.app:"),
            ("com.example.app://cb", "com.example.app:"),
            ("https://app.test;x", "https:"),
            ("https://", "https:"),
            ("a b:", ""),
            (";x:", ""),
            (":", ""),
            ("nothing", ""),
        ] {
            assert_eq!(source(origin), named);
        }
    }
}
