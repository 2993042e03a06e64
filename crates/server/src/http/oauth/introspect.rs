//! Introspection (RFC 7662).

use super::token::authenticated;
use crate::http::error::Refusal;
use crate::http::reply;
use crate::http::site::Site;
use crate::http::visit::Visit;
use axum::Extension;
use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use hyper::{HeaderMap, StatusCode, Uri};
use serde_json::{Map, Value};

/// `POST /oauth2/introspect`: only for clients that authenticate (AU-01).
pub async fn introspect(
    State(site): State<Site>,
    Extension(visit): Extension<Visit>,
    uri: Uri,
    headers: HeaderMap,
    body: Body,
) -> Response {
    match answer(&site, &uri, &headers, body).await {
        Ok(answer) => reply::json(StatusCode::OK, serde_json::to_vec(&answer).unwrap_or_default()),
        Err(refusal) => refusal.to_json(&visit),
    }
}

async fn answer(site: &Site, uri: &Uri, headers: &HeaderMap, body: Body) -> Result<Map<String, Value>, Refusal> {
    let (params, proof) = authenticated(site, uri, headers, body).await?;
    let token = params.need("token", "token is missing")?;
    Ok(site.app.introspect(token, proof).await??)
}
