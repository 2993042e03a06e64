//! A request's body, whole, within its size and its time.

use axum::body::Body;
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
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
    tokio::time::timeout(timeout, whole(body, limit)).await.unwrap_or(Err(BodyError::TooSlow))
}

/// Into one buffer: kept frame by frame, a body in chunks of one byte would hold fifty times its size.
async fn whole(mut body: Body, limit: usize) -> Result<Bytes, BodyError> {
    let announced = usize::try_from(body.size_hint().lower()).unwrap_or(limit);
    let mut read = BytesMut::with_capacity(announced.min(limit));
    while let Some(frame) = body.frame().await {
        // Trailers say nothing to us.
        let Ok(data) = frame.map_err(|_| BodyError::Broken)?.into_data() else { continue };
        if data.len() > limit - read.len() {
            return Err(BodyError::TooLarge);
        }
        read.extend_from_slice(&data);
    }
    Ok(read.freeze())
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
