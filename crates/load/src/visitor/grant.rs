//! What a client does behind the browser's back: token, introspection, userinfo, keys.

use super::flow::Pass;
use super::{Setback, Step, Visitor, ask, describe};
use crate::wire::Request;
use serde::Deserialize;
use std::sync::Arc;
use std::time::Instant;

/// RFC 6749 §5.1, as far as it is used.
#[derive(Deserialize)]
struct Tokens {
    access_token: String,
    refresh_token: Option<String>,
}

/// RFC 7662 §2.2, as far as it is used.
#[derive(Deserialize)]
struct Introspection {
    active: bool,
}

/// OpenID Connect Core §5.3.2, as far as it is used.
#[derive(Deserialize)]
struct Claims {
    sub: String,
}

/// RFC 7517 §5, as far as it is used: the keys themselves are skipped over.
#[derive(Deserialize)]
struct KeySet {
    keys: Vec<serde::de::IgnoredAny>,
}

/// Who a request comes from.
enum Bearer<'a> {
    Nobody,
    /// The client: its credentials are added to these fields.
    Client(&'a [(&'a str, &'a str)]),
    Token(&'a str),
}

impl Visitor {
    /// The code for tokens. Counts as step `token`.
    pub(super) async fn redeem(&mut self, pass: Pass) -> Result<(), Setback> {
        let scene = Arc::clone(&self.scene);
        let fields = [
            ("grant_type", "authorization_code"),
            ("code", &pass.code),
            ("redirect_uri", &scene.plan.client.redirect_uri),
            ("code_verifier", &pass.verifier),
        ];
        let tokens: Tokens = self.call(Step::Token, Bearer::Client(&fields)).await?;
        self.held.access = tokens.access_token;
        self.held.refresh = tokens.refresh_token.unwrap_or_default();
        Ok(())
    }

    /// The refresh token for new tokens; a new refresh token takes the place of the old.
    pub(super) async fn refresh(&mut self) -> Result<(), Setback> {
        let old = std::mem::take(&mut self.held.refresh);
        if old.is_empty() {
            return Err(Step::Refresh.wrong("the client got no refresh token (scope, or grant types of the client)"));
        }
        let fields = [("grant_type", "refresh_token"), ("refresh_token", old.as_str())];
        let outcome = self.call::<Tokens>(Step::Refresh, Bearer::Client(&fields)).await;
        match outcome {
            Ok(tokens) => {
                self.held.access = tokens.access_token;
                self.held.refresh = tokens.refresh_token.unwrap_or(old);
                Ok(())
            }
            Err(setback) => {
                // Kept, so that a refused visitor may try again.
                self.held.refresh = old;
                Err(setback)
            }
        }
    }

    pub(super) async fn introspect(&mut self) -> Result<(), Setback> {
        let token = std::mem::take(&mut self.held.access);
        let outcome = self.call::<Introspection>(Step::Introspect, Bearer::Client(&[("token", &token)])).await;
        self.held.access = token;
        if outcome?.active { Ok(()) } else { Err(Step::Introspect.wrong("200, but the token is not active")) }
    }

    pub(super) async fn userinfo(&mut self) -> Result<(), Setback> {
        let token = std::mem::take(&mut self.held.access);
        let outcome = self.call::<Claims>(Step::Userinfo, Bearer::Token(&token)).await;
        self.held.access = token;
        if outcome?.sub.is_empty() { Err(Step::Userinfo.wrong("200, but without a subject")) } else { Ok(()) }
    }

    pub(super) async fn client_credentials(&mut self) -> Result<(), Setback> {
        let fields = [("grant_type", "client_credentials")];
        self.call::<Tokens>(Step::ClientCredentials, Bearer::Client(&fields)).await.map(|_| ())
    }

    pub(super) async fn keys(&mut self) -> Result<(), Setback> {
        let set: KeySet = self.call(Step::Jwks, Bearer::Nobody).await?;
        if set.keys.is_empty() { Err(Step::Jwks.wrong("200, but no keys")) } else { Ok(()) }
    }

    /// One request and its JSON answer, timed as `step`.
    async fn call<T: serde::de::DeserializeOwned>(&mut self, step: Step, from: Bearer<'_>) -> Result<T, Setback> {
        let begun = Instant::now();
        let scene = Arc::clone(&self.scene);
        let url = scene.provider.endpoint(step).ok_or_else(|| step.wrong("discovery names no such endpoint"))?;
        let (authorization, form) = match from {
            Bearer::Nobody => (None, None),
            Bearer::Token(token) => (Some(format!("Bearer {token}")), None),
            Bearer::Client(fields) => {
                let own = scene.plan.client.fields();
                let mut form = form_urlencoded::Serializer::new(String::with_capacity(512));
                form.extend_pairs(fields).extend_pairs(own);
                (scene.authorization.clone(), Some(form.finish()))
            }
        };
        let mut headers = vec![("accept", "application/json")];
        headers.extend(authorization.as_deref().map(|value| ("authorization", value)));
        let request = Request { url, form: form.as_deref(), headers: &headers, cookies: None };
        let reply = ask(&mut self.wire, step, &request).await?;
        if reply.status() != 200 {
            return Err(step.wrong(describe(reply)));
        }
        let read = serde_json::from_slice(reply.body());
        let value = read.map_err(|_| step.wrong("200, but the JSON is not what it should be"))?;
        self.finish(step, begun);
        Ok(value)
    }
}
