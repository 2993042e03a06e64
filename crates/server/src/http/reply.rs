//! Responses: the one place where headers are put together.

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

/// A response with a body of that type. Text that is not fit for a header is left out.
pub fn plain(status: StatusCode, content_type: &'static str, body: impl Into<Body>) -> Response {
    let mut response = Response::new(body.into());
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}

/// JSON that nobody may keep (RFC 6749 §5.1).
pub fn json(status: StatusCode, body: impl Into<Body>) -> Response {
    let mut response = plain(status, "application/json", body);
    private(response.headers_mut());
    response
}

/// An answer that is its status alone: an empty body is of no type, and no JSON (RFC 8259 §2).
pub fn nothing(status: StatusCode) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status;
    private(response.headers_mut());
    response
}

/// Not to be kept by anybody.
pub fn private(headers: &mut HeaderMap) {
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(header::PRAGMA, HeaderValue::from_static("no-cache"));
}

/// Where the forms of a page lead in the end. Browsers apply `form-action` to every redirect that follows, and what an
/// application does with its answer is its own business ([0024](../../../../docs/decisions/0024-form-action.md)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forms<'a> {
    /// To ourselves.
    Stay,
    /// To an application, and wherever that sends the browser.
    Leave,
    /// To this origin.
    Post(&'a str),
}

/// A page.
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
    // Who gets our form is told whose it is, as long as that stays as private as it was: some check it.
    let referrer = if matches!(forms, Forms::Post(_)) { "strict-origin" } else { "same-origin" };
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static(referrer));
    headers.insert(header::VARY, HeaderValue::from_static("Accept-Language, Cookie"));
    response
}

/// An origin as a source of a Content Security Policy (CSP 3 §2.3.1). What its grammar cannot name is named by its scheme:
/// IPv6 addresses, which a browser would leave out (only native clients have them, on the person's own machine), and whatever
/// follows a private scheme, where `;` and `,` may stand, which end a directive and a policy. Nothing, where there is no scheme.
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

/// A page with a form, or the same page once more: what kept the form from being accepted decides the status and when to
/// come back (RFC 9110 §15.5.21 and §15.6.4, RFC 6585 §4), at every door alike.
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

/// 303, never 307: a request that carried credentials must not be repeated elsewhere (RFC 9700 §4.12).
pub fn see_other(location: &str) -> Response {
    let mut response = nothing(StatusCode::SEE_OTHER);
    set(response.headers_mut(), header::LOCATION, location);
    response.headers_mut().insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    response
}

/// Sets a header; a value that cannot be one is left out.
pub fn set(headers: &mut HeaderMap, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        headers.insert(name, value);
    }
}

/// How the caller stands under a rate (draft-ietf-httpapi-ratelimit-headers-06); what is left, or when it is whole again.
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

/// Says when to come back, and that it is for want of room.
pub fn busy(response: &mut Response, wait: Span) {
    retry_after(response, wait);
    response.extensions_mut().insert(Refused::Busy);
}

/// Says when to come back.
pub fn retry_after(response: &mut Response, wait: Span) {
    set(response.headers_mut(), header::RETRY_AFTER, &wait.whole_seconds().max(1).to_string());
}

/// Sets a cookie, or takes it away.
pub fn cookie(response: &mut Response, site: &Site, name: Name, value: Option<&str>) {
    response.headers_mut().append(header::SET_COOKIE, site.set_cookie(name, value));
}

/// Sets the cookie of a flow, where one was sealed.
pub fn flow_cookie(response: &mut Response, site: &Site, sealed: Option<&Secret>) {
    if let Some(holder) = sealed {
        cookie(response, site, Name::Flow, Some(holder.reveal()));
    }
}

/// Sets the cookie by which a browser is known to the accounts that signed in there. It is set at each sign-in, so that its
/// year begins anew.
pub fn device_cookie(response: &mut Response, site: &Site, device: &Secret) {
    cookie(response, site, Name::Device, Some(device.reveal()));
}

/// Sets the cookie of a session that was started or raised.
pub fn session_cookie(response: &mut Response, site: &Site, started: &Started) {
    cookie(response, site, Name::Session, Some(&started.cookie.write()));
}

#[cfg(test)]
mod tests {
    use super::source;

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
