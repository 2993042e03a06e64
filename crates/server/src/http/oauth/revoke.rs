//! Revocation (RFC 7009).

use super::token::authenticated;
use crate::http::door::{Counts, Door};
use crate::http::error::Refusal;
use crate::http::reply;
use axum::body::Body;
use axum::response::Response;
use hyper::StatusCode;
use rules::oauth::revoke::Outcome;

/// `POST /oauth2/revoke`: 200 whether there was something to revoke or not, but for another client's signed token.
///
/// Whoever asks for nothing in the name of a public client, which anybody can say, is counted by where it is said. That goes
/// for all that changes nothing alike: what is told of a rate must not tell which tokens there are (RT-04).
pub async fn revoke(door: Door, body: Body) -> Result<Response, Refusal> {
    let (params, proof) = authenticated(&door, body).await?;
    let client = door.site.app.authenticate(proof).await??;
    let outcome = door.site.app.revoke(params.need("token", "token is missing")?, &client).await??;
    // RFC 7009 §2.2: clients ignore the body. There are libraries that fail over an empty one, and leave the other token alone.
    let mut response = reply::json(StatusCode::OK, "{}".to_owned());
    if outcome == Outcome::Nothing && client.is_public() {
        response.extensions_mut().insert(Counts);
    }
    Ok(response)
}
