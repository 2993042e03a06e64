//! Styles and scripts: their names hold the hash of their content, so they can be kept for ever.

use crate::http::door::Door;
use crate::http::error::Refusal;
use crate::http::reply;
use crate::pages::assets;
use axum::body::Body;
use axum::response::Response;
use hyper::StatusCode;
use hyper::header::{self, HeaderValue};

/// `GET /assets/…`.
pub async fn asset(door: Door, _: Body) -> Result<Response, Refusal> {
    // What is before it was taken off where the routes are nested.
    let path = door.uri.path();
    let asset = assets().iter().find(|asset| asset.path == path).ok_or(Refusal::NotFound)?;
    let mut response = reply::plain(StatusCode::OK, asset.content_type, asset.bytes);
    let forever = HeaderValue::from_static("public, max-age=31536000, immutable");
    response.headers_mut().insert(header::CACHE_CONTROL, forever);
    Ok(response)
}
