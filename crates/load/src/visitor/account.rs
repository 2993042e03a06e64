//! The account API, if the provider has one: sign-up, sign-in and the account for applications with their own screens.
//! It is Portiere's; other providers are asked for userinfo instead.

use super::answer::Answer;
use super::grant::Granted;
use super::{Cause, Reason, Setback, Step, Visitor};
use crate::plan::{Client, Proof, User};
use crate::wire::{Body, Request, Url};
use serde::Deserialize;
use serde_json::json;

/// The API's answer to a wrong login or password.
pub const WRONG_CREDENTIALS: &str = "422 wrong-credentials";

/// The API's addresses, and the client's origin.
#[derive(Clone, Debug)]
pub struct AccountApi {
    sign_up: Url,
    sign_in: Url,
    refresh: Url,
    me: Url,
    /// The `Origin` that a browser would send for a page of the client; it lets public clients in.
    origin: Option<String>,
}

/// The account, limited to what is used.
#[derive(Deserialize)]
struct Account {
    sub: String,
}

impl Answer for Account {
    const NEEDS: &'static str = "sub";

    fn check(&self) -> Result<(), &'static str> {
        if self.sub.is_empty() { Err("200, but without a subject") } else { Ok(()) }
    }
}

impl AccountApi {
    /// Returns the API of the provider at `issuer`, if any; the first sign-in shows whether the client may use it.
    pub fn of(issuer: &str, client: &Client) -> Option<AccountApi> {
        let base = issuer.trim_end_matches('/');
        let at = |path: &str| Url::parse(&format!("{base}/api/v1/{path}")).ok();
        Some(AccountApi {
            sign_up: at("signup")?,
            sign_in: at("signin")?,
            refresh: at("refresh")?,
            me: at("me")?,
            origin: origin(&client.redirect_uri),
        })
    }

    /// Returns one of its addresses; all of them have one origin.
    pub(super) fn base(&self) -> &Url {
        &self.me
    }
}

/// Returns the origin of a redirect URI of http or https (RFC 6454 §4).
fn origin(redirect_uri: &str) -> Option<String> {
    let (scheme, rest) = redirect_uri.split_once("://")?;
    let authority = rest.split(['/', '?', '#']).next()?;
    ["http", "https"].contains(&scheme).then(|| format!("{scheme}://{authority}"))
}

impl Visitor {
    /// Signs the next user in, and keeps the tokens. Counts as step `sign_in`.
    pub(super) async fn account_sign_in(&mut self, api: &AccountApi, user: &User) -> Result<(), Setback> {
        let body = json!({ "login": user.login, "password": user.password });
        let granted = self.account_tokens(Step::SignIn, (api, &api.sign_in), body).await;
        self.account = granted.map_err(|setback| of_user(setback, &user.login))?;
        Ok(())
    }

    /// Creates a new account, and forgets it. Counts as step `sign_up`.
    pub(super) async fn sign_up(&mut self) -> Result<(), Setback> {
        let scene = std::sync::Arc::clone(&self.scene);
        let Some(api) = &scene.account else {
            return Err(Step::SignUp.wrong("this provider has no account API that lets the client in"));
        };
        let mut word = |length| std::iter::repeat_with(|| self.rng.lowercase()).take(length).collect::<String>();
        let (name, password) = (format!("load-{}", word(12)), word(20));
        let body = json!({ "username": name, "password": password });
        self.account_tokens(Step::SignUp, (api, &api.sign_up), body).await.map(|_| ())
    }

    /// Exchanges the refresh token for new tokens.
    pub(super) async fn account_refresh(&mut self, api: &AccountApi) -> Result<(), Setback> {
        let body = json!({ "refresh_token": self.account.refresh });
        self.account = self.account_tokens(Step::SignIn, (api, &api.refresh), body).await?;
        Ok(())
    }

    /// Reads the account. Counts as step `account`.
    pub(super) async fn account_read(&mut self, api: &AccountApi) -> Result<(), Setback> {
        let bearer = format!("Bearer {}", self.account.access);
        let headers = [("accept", "application/json"), ("authorization", bearer.as_str())];
        let request = Request { url: &api.me, body: Body::Nothing, headers: &headers, cookies: None };
        self.exchange::<Account>(Step::Account, &request).await.map(|_| ())
    }

    async fn account_tokens(
        &mut self,
        step: Step,
        (api, url): (&AccountApi, &Url),
        mut body: serde_json::Value,
    ) -> Result<Granted, Setback> {
        let scene = std::sync::Arc::clone(&self.scene);
        let client = &scene.plan.client;
        body["client_id"] = client.id.as_str().into();
        if let Proof::Post(secret) = &client.proof {
            body["client_secret"] = secret.as_str().into();
        }
        let mut headers = vec![("accept", "application/json")];
        headers.extend(scene.authorization(step).map(|value| ("authorization", value)));
        let is_public = client.proof == Proof::Nothing;
        headers.extend(api.origin.as_deref().filter(|_| is_public).map(|origin| ("origin", origin)));
        let body = body.to_string();
        let request = Request { url, body: Body::Json(&body), headers: &headers, cookies: None };
        self.exchange(step, &request).await
    }
}

/// Names the user whose password is wrong: it may be one of many.
fn of_user(setback: Setback, login: &str) -> Setback {
    match &setback.cause {
        Cause::Wrong(why) if why.whole == WRONG_CREDENTIALS => {
            let say = |of: &str| format!("{WRONG_CREDENTIALS}: wrong login or password{of}");
            setback.step.because(Reason::of_user("of", login, say))
        }
        _ => setback,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whose_password_is_wrong_is_named_and_nothing_else_is() {
        // Red without `of_user` in `account_sign_in`.
        let said = |why: &str| of_user(Step::SignIn.wrong(why), "ann").to_string();
        assert_eq!(said(WRONG_CREDENTIALS), "sign_in: 422 wrong-credentials: wrong login or password of ann");
        assert_eq!(said("401 client-refused"), "sign_in: 401 client-refused");
    }

    #[test]
    fn only_web_addresses_have_an_origin() {
        assert_eq!(origin("https://shop.example.com:8443/cb?x").as_deref(), Some("https://shop.example.com:8443"));
        assert_eq!(origin("com.example.app:/cb"), None);
        assert_eq!(origin("com.example.app://cb"), None);
    }
}
