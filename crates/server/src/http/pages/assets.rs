//! Styles and scripts: their names hold the hash of their content, so they can be cached for ever. [`successor`] serves
//! pages of another version.

use crate::http::door::Door;
use crate::http::error::Refusal;
use crate::http::reply;
use crate::pages::{assets, successor};
use axum::body::Body;
use axum::response::Response;
use hyper::StatusCode;
use hyper::header::{self, HeaderValue};

const FOR_EVER: &str = "public, max-age=31536000, immutable";
const NEVER: &str = "no-store";

/// `GET /assets/…`.
pub async fn asset(door: Door, _: Body) -> Result<Response, Refusal> {
    let path = door.path();
    let ours = assets().iter().find(|asset| asset.path == path).map(|asset| (asset, FOR_EVER));
    // Not cached: the name is that of other bytes.
    let asset = ours.or_else(|| successor(path).map(|asset| (asset, NEVER)));
    let (asset, kept) = asset.ok_or(Refusal::NotFound)?;
    let mut response = reply::plain(StatusCode::OK, asset.content_type, asset.bytes);
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static(kept));
    Ok(response)
}
