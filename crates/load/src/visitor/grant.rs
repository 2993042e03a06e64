//! What a client requests directly, without the browser: tokens, introspection, userinfo, keys.

use super::answer::{self, Answer};
use super::flow::{Errand, Pass};
use super::id_token::Expected;
use super::{Setback, Step, Visitor, ask, describe};
use crate::wire::{Body, Request, Url};
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

impl Answer for Granted {
    const NEEDS: &'static str = "access_token";
}

impl Answer for DeviceCode {
    const NEEDS: &'static str = "device_code";
}

impl Answer for Introspection {
    const NEEDS: &'static str = "active";

    fn check(&self) -> Result<(), &'static str> {
        if self.active { Ok(()) } else { Err(NOT_ACTIVE) }
    }
}

impl Answer for Claims {
    const NEEDS: &'static str = "sub";

    fn check(&self) -> Result<(), &'static str> {
        if self.sub.is_empty() { Err("200, but without a subject") } else { Ok(()) }
    }
}

impl Answer for KeySet {
    const NEEDS: &'static str = "keys";

    fn check(&self) -> Result<(), &'static str> {
        if self.keys.is_empty() { Err("200, but no keys") } else { Ok(()) }
    }
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
        let client = &scene.plan.client;
        let expected = Expected { issuer: &scene.provider.issuer, client: &client.id, nonce: &pass.nonce };
        let check = |granted: &Granted| match client.asks_for_id_token() {
            true => expected.in_token(granted.id_token.as_deref()),
            false => Ok(()),
        };
        let granted = self.call_and(check, Step::Token, Bearer::Client(&fields)).await?;
        self.held = Granted { id_token: None, ..granted };
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
        outcome.map(|_| ())
    }

    pub(super) async fn userinfo(&mut self) -> Result<(), Setback> {
        let token = std::mem::take(&mut self.held.access);
        let outcome = self.call::<Claims>(Step::Userinfo, Bearer::Token(&token)).await;
        self.held.access = token;
        outcome.map(|_| ())
    }

    pub(super) async fn client_credentials(&mut self) -> Result<(), Setback> {
        let scene = Arc::clone(&self.scene);
        let mut fields = vec![("grant_type", "client_credentials")];
        fields.extend(scene.plan.client.own_scope.as_deref().map(|scope| ("scope", scope)));
        self.call::<Granted>(Step::ClientCredentials, Bearer::Client(&fields)).await.map(|_| ())
    }

    pub(super) async fn keys(&mut self) -> Result<(), Setback> {
        self.call::<KeySet>(Step::Jwks, Bearer::Nobody).await.map(|_| ())
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
    async fn call<T: Answer>(&mut self, step: Step, from: Bearer<'_>) -> Result<T, Setback> {
        self.call_and(T::check, step, from).await
    }

    /// Does the same with another check of the answer.
    async fn call_and<T: Answer>(
        &mut self,
        check: impl FnOnce(&T) -> Result<(), &'static str>,
        step: Step,
        from: Bearer<'_>,
    ) -> Result<T, Setback> {
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
        let body = form.as_deref().map_or(Body::Nothing, Body::Form);
        self.exchange_and(check, step, &Request { url, body, headers: &headers, cookies: None }).await
    }

    /// Sends one request and reads its JSON answer, timed as `step`.
    pub(super) async fn exchange<T: Answer>(&mut self, step: Step, request: &Request<'_>) -> Result<T, Setback> {
        self.exchange_and(T::check, step, request).await
    }

    /// Does the same with another check of the answer. A step that does not pass it is failed, and not finished.
    async fn exchange_and<T: Answer>(
        &mut self,
        check: impl FnOnce(&T) -> Result<(), &'static str>,
        step: Step,
        request: &Request<'_>,
    ) -> Result<T, Setback> {
        let begun = Instant::now();
        let reply = ask(&mut self.wire, step, request).await?;
        if !matches!(reply.status(), 200 | 201) {
            return Err(step.because(describe(reply)));
        }
        let value = answer::read(reply).map_err(|why| step.because(why))?;
        check(&value).map_err(|why| step.wrong(why))?;
        self.finish(step, begun);
        Ok(value)
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
