//! Userinfo (OpenID Connect Core §5.3).

use crate::http::error::Refusal;
use crate::http::extract;
use crate::http::reply;
use crate::http::site::Site;
use crate::http::visit::Visit;
use axum::Extension;
use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use hyper::header::{self, CONTENT_TYPE};
use hyper::{HeaderMap, Method, Request, StatusCode};
use rules::oauth::Error;
use rules::secret::Secret;
use serde_json::{Map, Value};

/// `GET` and `POST /oauth2/userinfo`.
pub async fn userinfo(
    State(site): State<Site>,
    Extension(visit): Extension<Visit>,
    request: Request<Body>,
) -> Response {
    match answer(&site, request).await {
        Ok(Some(claims)) => reply::json(StatusCode::OK, serde_json::to_vec(&claims).unwrap_or_default()),
        Ok(None) => unauthenticated(),
        Err(refusal) => refusal.to_bearer(&visit),
    }
}

async fn answer(site: &Site, request: Request<Body>) -> Result<Option<Map<String, Value>>, Refusal> {
    let (parts, body) = request.into_parts();
    if extract::query(&parts.uri)?.get("access_token").is_some() {
        return Err(Error::request("an access token does not belong into the query").into());
    }
    let Some(token) = token(site, &parts.method, &parts.headers, body).await? else { return Ok(None) };
    Ok(Some(site.app.userinfo(token.reveal()).await??))
}

/// RFC 6750 §2.1 and §2.2: in the header, or in the form of a POST; not in both.
async fn token(site: &Site, method: &Method, headers: &HeaderMap, body: Body) -> Result<Option<Secret>, Refusal> {
    let header = extract::bearer(headers)?;
    if method != Method::POST || !headers.contains_key(CONTENT_TYPE) {
        return Ok(header);
    }
    let form = extract::form(site, headers, body).await?.get("access_token").map(Secret::new);
    match (header, form) {
        (Some(_), Some(_)) => Err(Error::request("the access token was sent twice").into()),
        (header, form) => Ok(header.or(form)),
    }
}

/// RFC 6750 §3.1: without a token there is no error to speak of.
fn unauthenticated() -> Response {
    let mut response = reply::json(StatusCode::UNAUTHORIZED, "{\"error\":\"invalid_token\"}");
    reply::set(response.headers_mut(), header::WWW_AUTHENTICATE, "Bearer");
    response
}
