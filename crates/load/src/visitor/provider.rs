//! What the provider says about itself (OpenID Connect Discovery 1.0 §4).

use super::Step;
use crate::Refusal;
use crate::wire::{Request, Url, Wire};
use serde::Deserialize;
use std::time::Duration;

/// The endpoints that visitors go to.
#[derive(Clone, Debug)]
pub struct Provider {
    /// The issuer, byte for byte.
    pub issuer: String,
    /// True when every authorization response has to name the issuer (RFC 9207 §3).
    pub names_itself: bool,
    authorization: Url,
    token: Url,
    keys: Url,
    introspection: Option<Url>,
    userinfo: Option<Url>,
}

#[derive(Deserialize)]
struct Metadata {
    issuer: String,
    authorization_endpoint: String,
    token_endpoint: String,
    jwks_uri: String,
    introspection_endpoint: Option<String>,
    userinfo_endpoint: Option<String>,
    #[serde(default)]
    authorization_response_iss_parameter_supported: bool,
}

impl Provider {
    /// Asks `target` who it is.
    ///
    /// # Errors
    /// [`Refusal::Failure`] when nothing answers, when what answers is no provider, or when an endpoint is not on this machine.
    pub async fn discover(target: &Url, timeout: Duration) -> Result<Provider, Refusal> {
        let base = target.to_string();
        let place = format!("{}/.well-known/openid-configuration", base.trim_end_matches('/'));
        let url = Url::parse(&place).map_err(|wrong| Refusal::Use(format!("{place}: {wrong}")))?;
        let request = Request { url: &url, form: None, headers: &[("accept", "application/json")], cookies: None };
        let mut wire = Wire::new(timeout);
        let reply = wire.send(&request).await.map_err(|fault| Refusal::Failure(format!("{target}: {fault}")))?;
        let status = reply.status();
        if status != 200 {
            return Err(Refusal::Failure(format!("{target} is no OpenID provider: {place} answers {status}")));
        }
        let metadata = serde_json::from_slice(reply.body())
            .map_err(|error| Refusal::Failure(format!("{target} is no OpenID provider: its metadata: {error}")))?;
        Provider::read(metadata)
    }

    fn read(metadata: Metadata) -> Result<Provider, Refusal> {
        let endpoint = |text: &str| {
            let url = Url::parse(text).and_then(|url| url.addresses().map(|_| url));
            url.map_err(|wrong| Refusal::Failure(format!("the endpoint {text}: {wrong}")))
        };
        Ok(Provider {
            authorization: endpoint(&metadata.authorization_endpoint)?,
            token: endpoint(&metadata.token_endpoint)?,
            keys: endpoint(&metadata.jwks_uri)?,
            introspection: metadata.introspection_endpoint.as_deref().map(endpoint).transpose()?,
            userinfo: metadata.userinfo_endpoint.as_deref().map(endpoint).transpose()?,
            names_itself: metadata.authorization_response_iss_parameter_supported,
            issuer: metadata.issuer,
        })
    }

    /// Where a step begins; `None` when the provider has no such endpoint.
    pub fn endpoint(&self, step: Step) -> Option<&Url> {
        match step {
            Step::Authorize | Step::Login => Some(&self.authorization),
            Step::Token | Step::Refresh | Step::ClientCredentials => Some(&self.token),
            Step::Jwks => Some(&self.keys),
            Step::Introspect => self.introspection.as_ref(),
            Step::Userinfo => self.userinfo.as_ref(),
        }
    }
}
