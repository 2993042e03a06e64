//! The token endpoint (RFC 6749 §3.2).

use crate::http::error::Refusal;
use crate::http::extract;
use crate::http::reply;
use crate::http::site::Site;
use crate::http::visit::Visit;
use app::token::Handed;
use axum::Extension;
use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use hyper::{HeaderMap, StatusCode, Uri};
use rules::oauth::Error;
use rules::oauth::client_auth::{Proof, proof};
use rules::oauth::params::Params;
use serde::Serialize;

/// RFC 6749 §5.1.
#[derive(Serialize)]
struct Answer<'a> {
    access_token: &'a str,
    token_type: &'static str,
    expires_in: i64,
    scope: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    id_token: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    refresh_token: Option<&'a str>,
}

/// `POST /oauth2/token`.
pub async fn token(
    State(site): State<Site>,
    Extension(visit): Extension<Visit>,
    uri: Uri,
    headers: HeaderMap,
    body: Body,
) -> Response {
    match answer(&site, &uri, &headers, body).await {
        Ok(handed) => show(&handed),
        Err(refusal) => refusal.to_json(&visit),
    }
}

async fn answer(site: &Site, uri: &Uri, headers: &HeaderMap, body: Body) -> Result<Handed, Refusal> {
    let (params, proof) = authenticated(site, uri, headers, body).await?;
    Ok(site.app.token(&params, proof).await??)
}

/// The parameters and the client's proof. Credentials in a query end up in logs (SR-07, CO-08): none is read there.
pub async fn authenticated(
    site: &Site,
    uri: &Uri,
    headers: &HeaderMap,
    body: Body,
) -> Result<(Params, Proof), Refusal> {
    if uri.query().is_some_and(|query| !query.is_empty()) {
        return Err(Error::request("parameters belong into the body").into());
    }
    let params = extract::form(site, headers, body).await?;
    let proof = proof(&params, extract::basic(headers)?)?;
    Ok((params, proof))
}

/// Tokens as JSON.
pub fn show(handed: &Handed) -> Response {
    let answer = Answer {
        access_token: handed.access_token.reveal(),
        token_type: "Bearer",
        expires_in: handed.expires_in,
        scope: &handed.scope,
        id_token: handed.id_token.as_ref().map(|token| token.reveal()),
        refresh_token: handed.refresh_token.as_ref().map(|token| token.reveal()),
    };
    reply::json(StatusCode::OK, serde_json::to_vec(&answer).unwrap_or_default())
}
