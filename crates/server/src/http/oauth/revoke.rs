//! Revocation (RFC 7009).

use super::token::authenticated;
use crate::http::door::{Counts, Door};
use crate::http::error::Refusal;
use crate::http::reply;
use axum::body::Body;
use axum::response::Response;
use hyper::StatusCode;
use rules::oauth::revoke::Outcome;

/// `POST /oauth2/revoke`: answers 200 whether or not anything was revoked, except for another client's signed token.
///
/// A request that revokes nothing, in the name of a public or native client, which anybody can give, counts against its
/// address. So does every request that changes nothing: rate headers must not tell which tokens exist (RT-04).
pub async fn revoke(door: Door, body: Body) -> Result<Response, Refusal> {
    let (params, proof) = authenticated(&door, body).await?;
    let client = door.site.app.authenticate(proof).await??;
    let outcome = door.site.app.revoke(params.need("token", "token is missing")?, &client).await??;
    // RFC 7009 §2.2: clients ignore the body. Some libraries fail on an empty one, and keep the other token.
    let mut response = reply::json(StatusCode::OK, "{}".to_owned());
    if outcome == Outcome::Nothing && !client.proves_itself() {
        response.extensions_mut().insert(Counts);
    }
    Ok(response)
}
