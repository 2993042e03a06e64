//! Introspection (RFC 7662).

use super::token::authenticated;
use crate::http::door::Door;
use crate::http::error::Refusal;
use crate::http::reply;
use axum::body::Body;
use axum::response::Response;
use hyper::StatusCode;

/// `POST /oauth2/introspect`: only for clients that authenticate (AU-01).
pub async fn introspect(door: Door, body: Body) -> Result<Response, Refusal> {
    let (params, proof) = authenticated(&door, body).await?;
    let answer = door.site.app.introspect(params.get("token"), proof).await??;
    Ok(reply::json(StatusCode::OK, serde_json::to_vec(&answer).unwrap_or_default()))
}
