//! Discovery and the key set: the same for everybody, made to be cached.

use crate::http::door::Door;
use crate::http::error::Refusal;
use crate::http::reply;
use crate::http::site::{Jwks, Site};
use app::Fault;
use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use hyper::StatusCode;
use hyper::header::{self, HeaderValue};
use rules::keys::JWKS_CACHE;

/// How long a key set may be sent unchanged at the same epoch: keys also come and go by the clock.
const REFRESH_MS: i64 = 5_000;

/// Answers with the discovery document (OpenID Connect Discovery §4, RFC 8414 §3).
pub async fn discovery(door: Door, _: Body) -> Result<Response, Refusal> {
    Ok(public(door.site.discovery.clone().into()))
}

/// Answers with the key set (RFC 7517 §5).
pub async fn jwks(door: Door, _: Body) -> Result<Response, Refusal> {
    Ok(public(key_set(&door.site).await?))
}

async fn key_set(site: &Site) -> Result<Bytes, Fault> {
    let (now, epoch) = (site.app.clock.now(), site.app.epoch().await?);
    let held = site.jwks.read().ok().and_then(|held| held.clone());
    if let Some(held) = held.filter(|held| site.app.counts(held.at, epoch) && lasts(held.until, now.0)) {
        return Ok(held.body);
    }
    let (at, json) = site.app.jwks().await?;
    let body = Bytes::from(json);
    if let Ok(mut held) = site.jwks.write() {
        *held = Some(Jwks { at, until: now.0 + REFRESH_MS, body: body.clone() });
    }
    Ok(body)
}

/// Returns whether a key set kept `until` then may be sent now. One that a fast clock dated too late would be kept
/// until then, without the keys that came into force since.
fn lasts(until: i64, now: i64) -> bool {
    until > now && until <= now + REFRESH_MS
}

fn public(body: Bytes) -> Response {
    let mut response = reply::plain(StatusCode::OK, "application/json", body);
    let age = format!("public, max-age={}", JWKS_CACHE.whole_seconds());
    reply::set(response.headers_mut(), header::CACHE_CONTROL, &age);
    response.headers_mut().insert(header::VARY, HeaderValue::from_static("Origin"));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_set_of_a_clock_that_was_ahead_is_not_kept() {
        // Red without the second half of lasts.
        let now = 1_000_000;
        assert!(lasts(now + 1, now) && lasts(now + REFRESH_MS, now));
        assert!(!lasts(now, now) && !lasts(now + REFRESH_MS + 1, now) && !lasts(now + 7_200_000, now));
    }
}
