//! Userinfo.

use crate::{App, Fault};
use rules::oauth::error::Error;
use rules::oauth::userinfo;
use serde_json::{Map, Value};

impl App {
    /// Returns the claims that an access token may read.
    pub async fn userinfo(&self, token: &str) -> Result<Result<Map<String, Value>, Error>, Fault> {
        let refused = Error::token("the token is not valid");
        let Some(live) = self.live(token).await? else { return Ok(Err(refused)) };
        Ok(match &live.family {
            Some(found) => userinfo::read(&live.claims, (found, &live.client), &self.realm),
            None => Err(Error::token("the token does not speak of a person")),
        })
    }
}
