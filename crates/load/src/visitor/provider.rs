//! The provider's metadata (OpenID Connect Discovery 1.0 §4).

use super::Step;
use super::page::Page;
use super::setback::plain;
use crate::Refusal;
use crate::plan::Plan;
use crate::wire::{Body, Fault, NO_HTTP, Reach, Request, Url, Wire};
use serde_json::Value;
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

/// Metadata, limited to what is used.
struct Metadata {
    issuer: String,
    authorization_endpoint: String,
    token_endpoint: String,
    jwks_uri: String,
    introspection_endpoint: Option<String>,
    userinfo_endpoint: Option<String>,
    device_authorization_endpoint: Option<String>,
    authorization_response_iss_parameter_supported: bool,
}

impl Metadata {
    /// Reads metadata; says what is wrong with it in words that follow "its metadata". What a provider leaves out or
    /// leaves empty, although it is optional, it does not have.
    fn of(body: &[u8]) -> Result<Metadata, String> {
        let Ok(value) = serde_json::from_slice::<Value>(body) else {
            let said = Page::of(&String::from_utf8_lossy(body)).said();
            let said = if said.is_empty() { said } else { format!(" ({})", plain(&said)) };
            return Err(format!("is no JSON{said}"));
        };
        let members = value.as_object().ok_or("is no JSON object")?;
        let optional = |name: &str| match members.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.clone()).filter(|text| !text.is_empty())),
            Some(_) => Err(format!("has a \"{name}\" that is no text")),
        };
        let needed = |name: &str| optional(name)?.ok_or_else(|| format!("has no \"{name}\""));
        let named = members.get("authorization_response_iss_parameter_supported").and_then(Value::as_bool);
        Ok(Metadata {
            issuer: needed("issuer")?,
            authorization_endpoint: needed("authorization_endpoint")?,
            token_endpoint: needed("token_endpoint")?,
            jwks_uri: needed("jwks_uri")?,
            introspection_endpoint: optional("introspection_endpoint")?,
            userinfo_endpoint: optional("userinfo_endpoint")?,
            device_authorization_endpoint: optional("device_authorization_endpoint")?,
            authorization_response_iss_parameter_supported: named.unwrap_or_default(),
        })
    }
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
        let unanswered = |fault: Fault| {
            // What a server says in TLS to a request in plain text is nothing, or no HTTP.
            let is_odd = matches!(fault, Fault::Closed | Fault::Malformed(NO_HTTP)) && !target.is_secure();
            let hint = if is_odd { " (does it speak https?)" } else { "" };
            Refusal::Failure(format!("{target}: {fault}{hint}"))
        };
        let reply = wire.send(&request).await.map_err(unanswered)?;
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
        let metadata = Metadata::of(reply.body())
            .map_err(|wrong| Refusal::Failure(format!("{target} is not an OpenID provider: its metadata {wrong}")))?;
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
        let endpoint = |name: &str, text: &str| {
            let url = Url::parse(text).and_then(|url| reach.addresses(&url).map(|_| url));
            url.map_err(|wrong| Refusal::Failure(format!("the {name} {}: {wrong}", plain(text))))
        };
        let optional = |name, text: &Option<String>| text.as_deref().map(|text| endpoint(name, text)).transpose();
        Ok(Provider {
            discovery,
            authorization: endpoint("authorization_endpoint", &metadata.authorization_endpoint)?,
            token: endpoint("token_endpoint", &metadata.token_endpoint)?,
            keys: endpoint("jwks_uri", &metadata.jwks_uri)?,
            introspection: optional("introspection_endpoint", &metadata.introspection_endpoint)?,
            userinfo: optional("userinfo_endpoint", &metadata.userinfo_endpoint)?,
            device: optional("device_authorization_endpoint", &metadata.device_authorization_endpoint)?,
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
            "issuer": at, "authorization_endpoint": at, "token_endpoint": at, "jwks_uri": at,
            "introspection_endpoint": at, "userinfo_endpoint": at, "device_authorization_endpoint": at,
        });
        metadata[name] = value.into();
        let target = Url::parse(target).unwrap();
        let metadata = Metadata::of(metadata.to_string().as_bytes()).map_err(Refusal::Failure)?;
        Provider::read(metadata, (&target, target.clone()), &Reach::default())
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
        ] {
            let line = of("http://localhost:1/", issuer).unwrap_err().to_string();
            let expected =
                format!("http://localhost:1 names the issuer \"{issuer}\", which has to be the URL that was asked");
            assert!(line.starts_with(&expected) && !line.contains('\n'), "{line}");
        }
        assert!(of("http://localhost:1/a", "http://localhost:1/A").is_err(), "a path has capitals");
    }

    /// Red where the reader of JSON speaks: nobody knew which member it meant.
    #[test]
    fn what_is_no_metadata_says_what_is_wrong_with_it() {
        let of = |text: &str| Metadata::of(text.as_bytes()).map(|_| ()).unwrap_err();
        assert_eq!(of("<title>It works!</title>"), "is no JSON (It works!)");
        assert_eq!((of(""), of("[]")), ("is no JSON".to_owned(), "is no JSON object".to_owned()));
        assert_eq!(of("{}"), "has no \"issuer\"");
        let whole = r#"{"issuer":"a","authorization_endpoint":"a","token_endpoint":"a","jwks_uri":null}"#;
        assert_eq!(of(whole), "has no \"jwks_uri\"");
        assert_eq!(of(&whole.replace("null", "\"\"")), "has no \"jwks_uri\"");
        assert_eq!(of(&whole.replace("null", "7")), "has a \"jwks_uri\" that is no text");
        for empty in ["\"\"", "null"] {
            let text = whole.replace("null", &format!("\"a\",\"userinfo_endpoint\":{empty}"));
            assert!(Metadata::of(text.as_bytes()).unwrap().userinfo_endpoint.is_none(), "{empty}");
        }
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
            let expected = format!("the {name} http://192.0.2.1/x: only this machine may be measured");
            assert!(line.starts_with(&expected), "{line}");
            assert!(read("http://localhost:1", name, "http://[::1]:2/x").is_ok());
        }
    }
}
