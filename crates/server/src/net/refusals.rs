//! Responses to requests that reach no door.

use super::Full;
use axum::body::Body;
use axum::response::Response;
use hyper::StatusCode;
use hyper::header::{CACHE_CONTROL, CONNECTION, HeaderValue, RETRY_AFTER};

/// Refuses headers that are too large (RFC 6585, section 5).
pub fn too_large() -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE;
    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// Refuses one of too many requests at a time, of one address or of all: it can be sent again, since nothing was done.
pub fn too_many(full: Full) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = match full {
        Full::OfAddress => StatusCode::TOO_MANY_REQUESTS,
        Full::OfAll => StatusCode::SERVICE_UNAVAILABLE,
    };
    response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
