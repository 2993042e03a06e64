//! What the provider says about itself (OpenID Connect Discovery 1.0 §4).

use super::{Step, plain};
use crate::Refusal;
use crate::plan::Plan;
use crate::wire::{Body, Reach, Request, Url, Wire};
use serde::Deserialize;
use std::sync::Arc;

/// The endpoints that visitors go to.
#[derive(Clone, Debug)]
pub struct Provider {
    /// The issuer, byte for byte.
    pub issuer: String,
    /// True when every authorization response has to name the issuer (RFC 9207 §3).
    pub names_itself: bool,
    discovery: Url,
    authorization: Url,
    token: Url,
    keys: Url,
    introspection: Option<Url>,
    userinfo: Option<Url>,
    device: Option<Url>,
}

#[derive(Deserialize)]
struct Metadata {
    issuer: String,
    authorization_endpoint: String,
    token_endpoint: String,
    jwks_uri: String,
    introspection_endpoint: Option<String>,
    userinfo_endpoint: Option<String>,
    device_authorization_endpoint: Option<String>,
    #[serde(default)]
    authorization_response_iss_parameter_supported: bool,
}

impl Provider {
    /// Asks the target of `plan` who it is.
    ///
    /// # Errors
    /// [`Refusal::Failure`] when nothing answers, when what answers is no provider, or when an endpoint is out of reach.
    pub async fn discover(plan: &Plan) -> Result<Provider, Refusal> {
        let target = &plan.target;
        let base = target.to_string();
        let place = format!("{}/.well-known/openid-configuration", base.trim_end_matches('/'));
        let url = Url::parse(&place).map_err(|wrong| Refusal::Use(format!("{place}: {wrong}")))?;
        let headers = &[("accept", "application/json")];
        let request = Request { url: &url, body: Body::Nothing, headers, cookies: None };
        let mut wire = Wire::new(plan.timeout, Arc::clone(&plan.reach));
        let reply = wire.send(&request).await.map_err(|fault| Refusal::Failure(format!("{target}: {fault}")))?;
        let status = reply.status();
        if status != 200 {
            // It is not followed: the issuer is where its metadata is (OpenID Connect Discovery 1.0 §4.3).
            let led = reply.header("location").map(|to| format!(" and leads to {}", plain(to))).unwrap_or_default();
            let what = match status {
                429 | 500..=599 => "does not answer as a provider yet, or refuses",
                _ => "is no OpenID provider",
            };
            return Err(Refusal::Failure(format!("{target} {what}: {place} answers {status}{led}")));
        }
        let metadata = serde_json::from_slice(reply.body())
            .map_err(|error| Refusal::Failure(format!("{target} is no OpenID provider: its metadata: {error}")))?;
        Provider::read(metadata, url, &plan.reach)
    }

    fn read(metadata: Metadata, discovery: Url, reach: &Reach) -> Result<Provider, Refusal> {
        let endpoint = |text: &str| {
            let url = Url::parse(text).and_then(|url| reach.addresses(&url).map(|_| url));
            url.map_err(|wrong| Refusal::Failure(format!("the endpoint {}: {wrong}", plain(text))))
        };
        let optional = |text: &Option<String>| text.as_deref().map(endpoint).transpose();
        Ok(Provider {
            discovery,
            authorization: endpoint(&metadata.authorization_endpoint)?,
            token: endpoint(&metadata.token_endpoint)?,
            keys: endpoint(&metadata.jwks_uri)?,
            introspection: optional(&metadata.introspection_endpoint)?,
            userinfo: optional(&metadata.userinfo_endpoint)?,
            device: optional(&metadata.device_authorization_endpoint)?,
            names_itself: metadata.authorization_response_iss_parameter_supported,
            issuer: metadata.issuer,
        })
    }

    /// Where a step begins; `None` when the provider has no such endpoint.
    pub fn endpoint(&self, step: Step) -> Option<&Url> {
        match step {
            Step::Authorize | Step::Login => Some(&self.authorization),
            Step::Token | Step::Refresh | Step::ClientCredentials | Step::Poll => Some(&self.token),
            Step::Jwks => Some(&self.keys),
            Step::Discovery => Some(&self.discovery),
            Step::Introspect => self.introspection.as_ref(),
            Step::Userinfo => self.userinfo.as_ref(),
            Step::Device => self.device.as_ref(),
            Step::SignUp | Step::SignIn | Step::Account => None,
        }
    }
}
