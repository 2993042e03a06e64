//! A request's body, whole, within its size and its time.

use axum::body::Body;
use bytes::Bytes;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::Body as _;
use std::fmt;
use std::time::Duration;

/// Why a body could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyError {
    /// More bytes than allowed, or announced so (RFC 9110 §15.5.14: 413).
    TooLarge,
    /// It did not come in time (RFC 9110 §15.5.9: 408).
    TooSlow,
    /// The connection broke, or its framing is wrong.
    Broken,
}

/// The whole of `body`: at most `limit` bytes, all within `timeout`. An announced length beyond the limit is refused
/// before a byte is read.
pub async fn read_body(body: Body, limit: usize, timeout: Duration) -> Result<Bytes, BodyError> {
    if body.size_hint().lower() > limit as u64 {
        return Err(BodyError::TooLarge);
    }
    match tokio::time::timeout(timeout, Limited::new(body, limit).collect()).await {
        Ok(Ok(whole)) => Ok(whole.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(BodyError::TooLarge),
        Ok(Err(_)) => Err(BodyError::Broken),
        Err(_) => Err(BodyError::TooSlow),
    }
}

impl fmt::Display for BodyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            BodyError::TooLarge => "the body is too large",
            BodyError::TooSlow => "the body came too slowly",
            BodyError::Broken => "the body broke off",
        })
    }
}

impl std::error::Error for BodyError {}
