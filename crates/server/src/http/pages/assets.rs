//! Styles and scripts: their names hold the hash of their content, so they can be kept for ever.

use crate::http::error::Refusal;
use crate::http::oauth::authorize::Door;
use crate::http::reply;
use crate::http::site::Site;
use crate::http::visit::Visit;
use crate::pages::assets;
use axum::Extension;
use axum::extract::State;
use axum::response::Response;
use hyper::header::{self, HeaderValue};
use hyper::{HeaderMap, StatusCode, Uri};

/// `GET /assets/…`.
pub async fn asset(
    State(site): State<Site>,
    Extension(visit): Extension<Visit>,
    uri: Uri,
    headers: HeaderMap,
) -> Response {
    let path = uri.path().strip_prefix(site.url.path()).unwrap_or("");
    match assets().iter().find(|asset| asset.path == path) {
        None => Door { site: &site, visit: &visit, headers: &headers }.refuse(Refusal::NotFound),
        Some(asset) => {
            let mut response = reply::plain(StatusCode::OK, asset.content_type, asset.bytes);
            let forever = HeaderValue::from_static("public, max-age=31536000, immutable");
            response.headers_mut().insert(header::CACHE_CONTROL, forever);
            response
        }
    }
}
