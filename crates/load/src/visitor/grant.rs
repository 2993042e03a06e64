//! What a client requests directly, without the browser: tokens, introspection, userinfo, keys.

use super::flow::{Errand, Pass};
use super::id_token::Expected;
use super::jwt;
use super::{Setback, Step, Visitor, ask, describe};
use crate::wire::{Body, Reply, Request, Url};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The tokens that a visitor holds between iterations. RFC 6749 §5.1, limited to what is used.
#[derive(Default, Deserialize)]
pub struct Granted {
    #[serde(rename = "access_token")]
    pub access: String,
    #[serde(rename = "refresh_token", default)]
    pub refresh: Option<String>,
    /// When to renew them: at half of their lifetime, so that a long run never presents an expired token.
    #[serde(rename = "expires_in", default, deserialize_with = "half_way")]
    renew: Option<Instant>,
    /// OpenID Connect Core §3.1.3.3; checked when a code is redeemed.
    #[serde(default)]
    id_token: Option<String>,
}

/// Accepts a lifetime that is not a whole number, or is in quotes, as some providers send it; ignores what it cannot
/// read.
fn half_way<'de, D: Deserializer<'de>>(value: D) -> Result<Option<Instant>, D::Error> {
    let seconds = match Value::deserialize(value)? {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => text.parse::<u32>().ok().map(f64::from),
        _ => None,
    };
    let life = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    Ok(life.and_then(|life| Instant::now().checked_add(life / 2)))
}

impl Granted {
    /// Returns the time at which the tokens should be renewed.
    pub fn stale_at(&self) -> Option<Instant> {
        self.renew
    }

    /// Returns true if that time has come.
    pub fn is_stale(&self) -> bool {
        self.stale_at().is_some_and(|at| at <= Instant::now())
    }
}

/// The failure when a token has expired or was revoked.
pub const NOT_ACTIVE: &str = "200, but the token is not active";

/// The failure when there is no refresh token to use.
pub const NO_REFRESH_TOKEN: &str = "the client got no refresh token";

/// RFC 8628 §3.2, limited to what is used.
#[derive(Deserialize)]
struct DeviceCode {
    device_code: String,
}

/// RFC 6749 §5.2.
#[derive(Deserialize)]
struct Problem {
    error: String,
}

/// RFC 7662 §2.2, limited to what is used.
#[derive(Deserialize)]
struct Introspection {
    active: bool,
}

/// OpenID Connect Core §5.3.2, limited to what is used.
#[derive(Deserialize)]
struct Claims {
    sub: String,
}

/// RFC 7517 §5, limited to what is used: the keys themselves are skipped.
#[derive(Deserialize)]
struct KeySet {
    keys: Vec<serde::de::IgnoredAny>,
}

/// The party that a request comes from.
enum Bearer<'a> {
    Nobody,
    /// The client: its credentials are added to these fields.
    Client(&'a [(&'a str, &'a str)]),
    Token(&'a str),
}

impl Visitor {
    /// Exchanges the code for tokens. Counts as step `token`.
    pub(super) async fn redeem(&mut self, pass: Pass) -> Result<(), Setback> {
        let scene = Arc::clone(&self.scene);
        let fields = [
            ("grant_type", "authorization_code"),
            ("code", &pass.code),
            ("redirect_uri", &scene.plan.client.redirect_uri),
            ("code_verifier", &pass.verifier),
        ];
        let mut granted: Granted = self.call(Step::Token, Bearer::Client(&fields)).await?;
        let id_token = granted.id_token.take();
        let client = &scene.plan.client;
        if client.asks_for_id_token() {
            let expected = Expected { issuer: &scene.provider.issuer, client: &client.id, nonce: &pass.nonce };
            expected.in_token(id_token.as_deref()).map_err(|why| Step::Token.wrong(why))?;
        }
        self.held = granted;
        Ok(())
    }

    /// Exchanges the refresh token for new tokens; a new refresh token replaces the old one.
    pub(super) async fn refresh(&mut self) -> Result<(), Setback> {
        let Some(old) = self.held.refresh.clone() else {
            return Err(Step::Refresh.wrong(format!("{NO_REFRESH_TOKEN} (scope, or grant types of the client)")));
        };
        let fields = [("grant_type", "refresh_token"), ("refresh_token", old.as_str())];
        let granted: Granted = self.call(Step::Refresh, Bearer::Client(&fields)).await?;
        // The old one is kept if there is no new one, and after a refusal, so that the visitor may retry.
        self.held = Granted { refresh: granted.refresh.or(Some(old)), id_token: None, ..granted };
        Ok(())
    }

    pub(super) async fn introspect(&mut self) -> Result<(), Setback> {
        if self.scene.cannot_ask() {
            return Ok(());
        }
        if self.scene.asks_the_user_endpoint() {
            return self.userinfo().await;
        }
        let token = std::mem::take(&mut self.held.access);
        let outcome = self.call::<Introspection>(Step::Introspect, Bearer::Client(&[("token", &token)])).await;
        self.held.access = token;
        if outcome?.active { Ok(()) } else { Err(Step::Introspect.wrong(NOT_ACTIVE)) }
    }

    pub(super) async fn userinfo(&mut self) -> Result<(), Setback> {
        let token = std::mem::take(&mut self.held.access);
        let outcome = self.call::<Claims>(Step::Userinfo, Bearer::Token(&token)).await;
        self.held.access = token;
        if outcome?.sub.is_empty() { Err(Step::Userinfo.wrong("200, but without a subject")) } else { Ok(()) }
    }

    pub(super) async fn client_credentials(&mut self) -> Result<(), Setback> {
        let scene = Arc::clone(&self.scene);
        let mut fields = vec![("grant_type", "client_credentials")];
        fields.extend(scene.plan.client.own_scope.as_deref().map(|scope| ("scope", scope)));
        self.call::<Granted>(Step::ClientCredentials, Bearer::Client(&fields)).await.map(|_| ())
    }

    pub(super) async fn keys(&mut self) -> Result<(), Setback> {
        let set: KeySet = self.call(Step::Jwks, Bearer::Nobody).await?;
        if set.keys.is_empty() { Err(Step::Jwks.wrong("200, but no keys")) } else { Ok(()) }
    }

    pub(super) async fn discovery(&mut self) -> Result<(), Setback> {
        self.call::<serde::de::IgnoredAny>(Step::Discovery, Bearer::Nobody).await.map(|_| ())
    }

    /// Requests a device code and polls once whether a user has entered it (RFC 8628 §3.1, §3.4): no user has. Some
    /// providers want a code challenge there, too; others ignore it (RFC 6749 §3.2).
    pub(super) async fn device(&mut self) -> Result<(), Setback> {
        let scene = Arc::clone(&self.scene);
        let errand = Errand::new(&mut self.rng);
        let challenge = errand.challenge();
        let fields = [
            ("scope", scene.plan.client.scope.as_str()),
            ("code_challenge", &challenge),
            ("code_challenge_method", "S256"),
        ];
        let given: DeviceCode = self.call(Step::Device, Bearer::Client(&fields)).await?;
        let kind = ("grant_type", "urn:ietf:params:oauth:grant-type:device_code");
        let fields = [kind, ("device_code", &given.device_code), ("code_verifier", &errand.verifier)];
        let form = self.form(Step::Poll, &fields);
        let begun = Instant::now();
        let url = endpoint(&scene, Step::Poll)?;
        let mut headers = vec![("accept", "application/json")];
        headers.extend(scene.authorization(Step::Poll).map(|value| ("authorization", value)));
        let request = Request { url, body: Body::Form(&form), headers: &headers, cookies: None };
        let reply = ask(&mut self.wire, Step::Poll, &request).await?;
        let error = serde_json::from_slice::<Problem>(reply.body()).map(|problem| problem.error);
        if !error.is_ok_and(|error| ["authorization_pending", "slow_down"].contains(&error.as_str())) {
            return Err(Step::Poll.because(describe(reply)));
        }
        self.finish(Step::Poll, begun);
        Ok(())
    }

    /// Encodes `fields` together with the client's own.
    fn form(&self, step: Step, fields: &[(&str, &str)]) -> String {
        let client = self.scene.client(step);
        let mut form = form_urlencoded::Serializer::new(String::with_capacity(512));
        form.extend_pairs(fields).extend_pairs(client.fields());
        if step.asks_for_tokens() {
            form.extend_pairs(&client.token_parameters);
        }
        form.finish()
    }

    /// Sends one request to an endpoint that discovery names.
    async fn call<T: serde::de::DeserializeOwned>(&mut self, step: Step, from: Bearer<'_>) -> Result<T, Setback> {
        let scene = Arc::clone(&self.scene);
        let url = endpoint(&scene, step)?;
        let token;
        let (authorization, form) = match from {
            Bearer::Nobody => (None, None),
            Bearer::Token(access) => {
                token = format!("Bearer {access}");
                (Some(token.as_str()), None)
            }
            Bearer::Client(fields) => (scene.authorization(step), Some(self.form(step, fields))),
        };
        let mut headers = vec![("accept", "application/json")];
        headers.extend(authorization.map(|value| ("authorization", value)));
        self.exchange(step, url, &headers, form.as_deref().map_or(Body::Nothing, Body::Form)).await
    }

    /// Sends one request and reads its JSON answer, timed as `step`.
    pub(super) async fn exchange<T: serde::de::DeserializeOwned>(
        &mut self,
        step: Step,
        url: &Url,
        headers: &[(&str, &str)],
        body: Body<'_>,
    ) -> Result<T, Setback> {
        let begun = Instant::now();
        let reply = ask(&mut self.wire, step, &Request { url, body, headers, cookies: None }).await?;
        if !matches!(reply.status(), 200 | 201) {
            return Err(step.because(describe(reply)));
        }
        let value = read(reply).map_err(|why| step.wrong(why))?;
        self.finish(step, begun);
        Ok(value)
    }
}

/// Reads an answer: JSON, or claims that are signed (OpenID Connect Core §5.3.2).
fn read<T: serde::de::DeserializeOwned>(reply: Reply<'_>) -> Result<T, &'static str> {
    let kind = reply.header("content-type").and_then(|kind| kind.split(';').next()).unwrap_or_default();
    if !kind.trim().eq_ignore_ascii_case("application/jwt") {
        return serde_json::from_slice(reply.body()).map_err(|_| "200, but the JSON is not what it should be");
    }
    match jwt::Claims::of(reply.body()) {
        jwt::Claims::Read(claims) => Ok(claims),
        jwt::Claims::Encrypted => Err("200, but the claims are encrypted, and the client has no key to read them"),
        jwt::Claims::Unreadable => Err("200, but the claims in the JWT are not what they should be"),
    }
}

fn endpoint(scene: &super::Scene, step: Step) -> Result<&Url, Setback> {
    let lacks = || match scene.asks_the_user_endpoint() && step == Step::Userinfo {
        true => step.wrong("discovery names neither this endpoint nor one for introspection"),
        false => step.wrong("discovery names no such endpoint"),
    };
    scene.provider.endpoint(step).ok_or_else(lacks)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn granted(more: &str) -> Granted {
        serde_json::from_str(&format!(r#"{{"access_token":"a"{more}}}"#))
            .unwrap_or_else(|wrong| panic!("{more}: {wrong}"))
    }

    #[test]
    fn a_token_answer_is_read_as_providers_write_it() {
        assert_eq!(granted(r#","refresh_token":null"#).refresh, None);
        assert_eq!(granted(r#","refresh_token":"r""#).refresh.as_deref(), Some("r"));
        for life in ["3600", "\"3600\"", "3599.5"] {
            let left = granted(&format!(r#","expires_in":{life}"#)).renew.map(|at| at - Instant::now());
            assert!(left.is_some_and(|left| left.as_secs().abs_diff(1800) < 60), "{life}: {left:?}");
        }
        for life in ["null", "-1", "\"soon\"", "1e300", "[]", "true"] {
            assert_eq!(granted(&format!(r#","expires_in":{life}"#)).renew, None, "{life}");
        }
        assert_eq!(granted("").renew, None);
    }
}
