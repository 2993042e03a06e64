//! The token endpoint (RFC 6749 §3.2).

use crate::http::door::Door;
use crate::http::error::Refusal;
use crate::http::extract;
use crate::http::reply;
use app::token::Handed;
use axum::body::Body;
use axum::response::Response;
use hyper::StatusCode;
use rules::oauth::client_auth::{Proof, proof};
use rules::oauth::params::Params;
use serde::Serialize;

/// The response of RFC 6749 §5.1.
#[derive(Serialize)]
struct Answer<'a> {
    access_token: &'a str,
    token_type: &'static str,
    expires_in: i64,
    /// Omitted if empty: a scope has at least one token (§3.3).
    #[serde(skip_serializing_if = "str::is_empty")]
    scope: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    id_token: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    refresh_token: Option<&'a str>,
}

/// `POST /oauth2/token`.
pub async fn token(door: Door, body: Body) -> Result<Response, Refusal> {
    let (params, proof) = authenticated(&door, body).await?;
    Ok(show(&door.site.app.token(&params, proof).await??))
}

/// Reads the parameters and the client's proof.
pub async fn authenticated(door: &Door, body: Body) -> Result<(Params, Proof), Refusal> {
    let params = extract::posted(door, body).await?;
    let sent = extract::basic(&door.headers).and_then(|basic| proof(&params, basic));
    let proof = door.site.app.proof_in(sent).await?;
    Ok((params, proof))
}

/// Shows tokens as JSON.
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
