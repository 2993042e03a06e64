//! Revocation (RFC 7009).

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

/// `POST /oauth2/revoke`: 200 whether there was something to revoke or not.
pub async fn revoke(
    State(site): State<Site>,
    Extension(visit): Extension<Visit>,
    uri: Uri,
    headers: HeaderMap,
    body: Body,
) -> Response {
    match answer(&site, &uri, &headers, body).await {
        Ok(()) => reply::json(StatusCode::OK, ""),
        Err(refusal) => refusal.to_json(&visit),
    }
}

async fn answer(site: &Site, uri: &Uri, headers: &HeaderMap, body: Body) -> Result<(), Refusal> {
    let (params, proof) = authenticated(site, uri, headers, body).await?;
    let client = site.app.authenticate(proof).await??;
    Ok(site.app.revoke(params.need("token", "token is missing")?, &client).await?)
}
