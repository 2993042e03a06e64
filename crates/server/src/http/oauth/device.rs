//! The device authorization endpoint (RFC 8628 §3.1).

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
use serde_json::{Value, json};

/// `POST /oauth2/device`.
pub async fn device(
    State(site): State<Site>,
    Extension(visit): Extension<Visit>,
    uri: Uri,
    headers: HeaderMap,
    body: Body,
) -> Response {
    match answer(&site, &visit, &uri, &headers, body).await {
        Ok(answer) => reply::json(StatusCode::OK, answer.to_string()),
        Err(refusal) => refusal.to_json(&visit),
    }
}

async fn answer(site: &Site, visit: &Visit, uri: &Uri, headers: &HeaderMap, body: Body) -> Result<Value, Refusal> {
    let (params, proof) = authenticated(site, uri, headers, body).await?;
    let client = site.app.authenticate(proof).await??;
    let asked = site.app.device_ask(&client, &params, &visit.address()).await??;
    let page = format!("{}/device", site.url.as_str());
    Ok(json!({
        "device_code": asked.device_code.reveal(),
        "user_code": asked.user_code,
        "verification_uri": page,
        "verification_uri_complete": format!("{page}?user_code={}", asked.user_code),
        "expires_in": asked.expires_in,
        "interval": asked.interval,
    }))
}
