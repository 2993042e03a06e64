//! Userinfo (OpenID Connect Core §5.3).

use crate::http::door::Door;
use crate::http::error::Refusal;
use crate::http::extract;
use crate::http::reply;
use axum::body::Body;
use axum::response::Response;
use hyper::header;
use hyper::{Method, StatusCode};
use rules::oauth::Error;
use rules::secret::Secret;

/// `GET` and `POST /oauth2/userinfo`.
pub async fn userinfo(door: Door, body: Body) -> Result<Response, Refusal> {
    if extract::query(&door.uri)?.get("access_token").is_some() {
        return Err(Error::request("an access token must not be sent in the query").into());
    }
    let Some(token) = token(&door, body).await? else { return Ok(unauthenticated()) };
    let claims = door.site.app.userinfo(token.reveal()).await??;
    Ok(reply::json(StatusCode::OK, serde_json::to_vec(&claims).unwrap_or_default()))
}

/// RFC 6750 §2.1 and §2.2: returns the token of the header, or of the form of a POST; not of both. A body that is no
/// form is not looked at: a request without a token first of all lacks credentials (§3).
async fn token(door: &Door, body: Body) -> Result<Option<Secret>, Refusal> {
    let header = extract::bearer(&door.headers)?;
    if door.method != Method::POST || !extract::is_form(&door.headers) {
        return Ok(header);
    }
    let form = extract::form(&door.site, &door.headers, body).await?.get("access_token").map(Secret::new);
    match (header, form) {
        (Some(_), Some(_)) => Err(Error::request("the access token was sent twice").into()),
        (header, form) => Ok(header.or(form)),
    }
}

/// RFC 6750 §3.1: without a token, the challenge names no error. §3: but it has at least one parameter.
fn unauthenticated() -> Response {
    let mut response = reply::nothing(StatusCode::UNAUTHORIZED);
    reply::set(response.headers_mut(), header::WWW_AUTHENTICATE, "Bearer realm=\"userinfo\"");
    response
}
