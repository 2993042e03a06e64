//! The provider's metadata (OpenID Connect Discovery 1.0 §4).

use super::Step;
use super::setback::plain;
use crate::Refusal;
use crate::plan::Plan;
use crate::wire::{Body, Reach, Request, Url, Wire};
use serde::Deserialize;
use std::sync::Arc;

/// The endpoints that visitors use.
#[derive(Clone, Debug)]
pub struct Provider {
    /// The issuer, byte for byte.
    pub issuer: String,
    /// True if every authorization response has to name the issuer (RFC 9207 §3).
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
    /// Fetches the metadata of the plan's target.
    ///
    /// # Errors
    /// [`Refusal::Failure`] if nothing answers, if the target is not a provider, or if an endpoint is out of reach.
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
            // A redirect is not followed: the issuer is where its metadata is (OpenID Connect Discovery 1.0 §4.3).
            let led = reply.header("location").map(|to| format!(" and leads to {}", plain(to))).unwrap_or_default();
            let what = match status {
                429 | 500..=599 => "does not answer as a provider yet, or refuses",
                _ => "is not an OpenID provider",
            };
            return Err(Refusal::Failure(format!("{target} {what}: {place} answers {status}{led}")));
        }
        let metadata = serde_json::from_slice(reply.body())
            .map_err(|error| Refusal::Failure(format!("{target} is not an OpenID provider: its metadata: {error}")))?;
        Provider::read(metadata, (target, url), &plan.reach)
    }

    /// Checks that the issuer is the target that was asked, and that its endpoints are within reach.
    fn read(metadata: Metadata, (target, discovery): (&Url, Url), reach: &Reach) -> Result<Provider, Refusal> {
        if !is_issuer(&metadata.issuer, target) {
            let (asked, issuer) = (target.to_string(), plain(&metadata.issuer));
            let why = "which has to be the URL that was asked (OpenID Connect Discovery 1.0 §4.3)";
            let line = format!("{} names the issuer \"{issuer}\", {why}: give the issuer as --target", bare(&asked));
            return Err(Refusal::Failure(line));
        }
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

    /// Returns where metadata is, or would be, at the origin of `url`: an answer that costs a server next to nothing.
    pub fn metadata(&self, url: &Url) -> Result<Url, crate::wire::Wrong> {
        if url.origin() == self.discovery.origin() {
            return Ok(self.discovery.clone());
        }
        url.join("/.well-known/openid-configuration")
    }

    /// Returns the URL where a step begins; `None` if the provider has no such endpoint.
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

/// OpenID Connect Discovery 1.0 §4.3: the issuer has to be the URL that its metadata was fetched from; otherwise one
/// issuer could speak for another. A slash at the end is tolerated, and so are capitals where they make no difference
/// (RFC 3986 §6.2.2.1), which the target no longer has.
fn is_issuer(issuer: &str, target: &Url) -> bool {
    let named = Url::parse(issuer).ok().filter(|_| !issuer.contains('#'));
    named.is_some_and(|named| bare(&named.to_string()) == bare(&target.to_string()))
}

/// Removes one slash at the end.
fn bare(url: &str) -> &str {
    url.strip_suffix('/').unwrap_or(url)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Reads metadata in which one value is replaced.
    fn read(target: &str, name: &str, value: &str) -> Result<Provider, Refusal> {
        let at = "http://localhost:1";
        let mut metadata = json!({
            "issuer": at, "authorization_endpoint": at, "token_endpoint": at, "jwks_uri": at, "introspection_endpoint": at,
            "userinfo_endpoint": at, "device_authorization_endpoint": at,
        });
        metadata[name] = value.into();
        let target = Url::parse(target).unwrap();
        Provider::read(serde_json::from_value(metadata).unwrap(), (&target, target.clone()), &Reach::default())
    }

    /// Red without `is_issuer`: the account API, which gets passwords and the client's secret, is at the issuer.
    #[test]
    fn an_issuer_is_the_url_that_was_asked() {
        let of = |target: &str, issuer: &str| read(target, "issuer", issuer).map(|provider| provider.issuer);
        for (target, issuer) in [
            ("http://localhost:1", "http://localhost:1"),
            ("http://localhost:1/", "http://localhost:1"),
            ("http://localhost:1/a", "http://localhost:1/a/"),
            ("http://LocalHost:1/a/", "http://LocalHost:1/a"),
        ] {
            assert_eq!(of(target, issuer).unwrap(), issuer, "byte for byte");
        }
        for issuer in [
            "http://127.0.0.1:1",
            "http://localhost:2",
            "https://localhost:1",
            "http://localhost:1//",
            "http://localhost:1/a",
            "http://localhost:1/A",
            "http://localhost:1/#a",
            "http://localhost:1?a",
            "localhost:1",
            "",
        ] {
            let line = of("http://localhost:1/", issuer).unwrap_err().to_string();
            let expected =
                format!("http://localhost:1 names the issuer \"{issuer}\", which has to be the URL that was asked");
            assert!(line.starts_with(&expected) && !line.contains('\n'), "{line}");
        }
        assert!(of("http://localhost:1/a", "http://localhost:1/A").is_err(), "a path has capitals");
    }

    /// Red where `read` takes an endpoint without `endpoint`.
    #[test]
    fn every_endpoint_is_within_reach() {
        for name in [
            "authorization_endpoint",
            "token_endpoint",
            "jwks_uri",
            "introspection_endpoint",
            "userinfo_endpoint",
            "device_authorization_endpoint",
        ] {
            let line = read("http://localhost:1", name, "http://192.0.2.1/x").unwrap_err().to_string();
            assert!(line.starts_with("the endpoint http://192.0.2.1/x: only this machine may be measured"), "{line}");
            assert!(read("http://localhost:1", name, "http://[::1]:2/x").is_ok());
        }
    }
}
