//! Revocation (RFC 7009).

use super::token::authenticated;
use crate::http::door::Door;
use crate::http::error::Refusal;
use crate::http::reply;
use axum::body::Body;
use axum::response::Response;
use hyper::StatusCode;

/// `POST /oauth2/revoke`: 200 whether there was something to revoke or not, but for another client's signed token.
pub async fn revoke(door: Door, body: Body) -> Result<Response, Refusal> {
    let (params, proof) = authenticated(&door, body).await?;
    let client = door.site.app.authenticate(proof).await??;
    door.site.app.revoke(params.need("token", "token is missing")?, &client).await??;
    Ok(reply::nothing(StatusCode::OK))
}
