//! The device authorization endpoint (RFC 8628 §3.1).

use super::token::authenticated;
use crate::http::door::{Counts, Door};
use crate::http::error::Refusal;
use crate::http::reply;
use axum::body::Body;
use axum::response::Response;
use hyper::StatusCode;
use serde_json::json;

/// `POST /oauth2/device`.
pub async fn device(door: Door, body: Body) -> Result<Response, Refusal> {
    let (params, proof) = authenticated(&door, body).await?;
    let app = &door.site.app;
    let client = app.authenticate(proof).await??;
    let asked = app.device_ask(&client, &params, &door.visit.address()).await??;
    let page = format!("{}/device", door.site.url.as_str());
    let answer = json!({
        "device_code": asked.device_code.reveal(),
        "user_code": asked.user_code,
        "verification_uri": page,
        "verification_uri_complete": format!("{page}?user_code={}", asked.user_code),
        "expires_in": asked.expires_in,
        "interval": asked.interval,
    });
    let mut response = reply::json(StatusCode::OK, answer.to_string());
    // Each request adds a row. A proven client is bounded as such; one that anybody can claim to be, by address.
    if !client.proves_itself() {
        response.extensions_mut().insert(Counts);
    }
    Ok(response)
}
