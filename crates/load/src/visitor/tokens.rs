//! What a visitor has ready before an iteration: connections, and the tokens that it holds between iterations.

use super::grant::{Granted, NOT_ACTIVE};
use super::{AccountApi, Cause, DESPITE, Setback, Step, Visitor};
use crate::plan::Workload;
use crate::wire::{Body, Request};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::time::timeout;

impl Visitor {
    /// Prepares for the first iteration: signs in if iterations need a session or a token, and connects.
    ///
    /// # Errors
    /// [`Setback`]; the caller may retry.
    pub async fn prepare(&mut self) -> Result<(), Setback> {
        let scene = Arc::clone(&self.scene);
        if let Some(api) = scene.account_held().filter(|_| self.account.access.is_empty()) {
            let user = scene.user(&mut self.rng);
            self.account_sign_in(api, user).await?;
        }
        if scene.holds_tokens() && self.held.access.is_empty() {
            self.arrive().await?;
        }
        self.connect().await;
        Ok(())
    }

    /// Opens the connections that an iteration needs, as far as their targets are known: a latency should be that of an
    /// answer, not of a handshake that people do not wait for at each click. The iteration retries a connection that
    /// fails, and reports why.
    ///
    /// A request goes over each connection, and its answer does not matter: many servers soon close a connection that
    /// carried nothing, and what TLS itself sends after the handshake is read with the answer.
    async fn connect(&mut self) {
        /// The longest time for one request: nobody waits for its answer, and the other visitors have yet to connect.
        const MOST: Duration = Duration::from_secs(2);
        let scene = Arc::clone(&self.scene);
        let known = scene.steps().into_iter().filter_map(|step| scene.provider.endpoint(step));
        let mut asked = Vec::new();
        for url in known.chain(scene.account.as_ref().map(AccountApi::base)) {
            // If a server closes the connection after each answer, one request is enough.
            if self.wire.is_connected(url) || asked.contains(&url.origin()) {
                continue;
            }
            asked.push(url.origin());
            let Ok(url) = scene.provider.metadata(url) else { return };
            let request =
                Request { url: &url, body: Body::Nothing, headers: &[("accept", "application/json")], cookies: None };
            if !matches!(timeout(MOST, self.wire.send(&request)).await, Ok(Ok(_))) {
                return;
            }
        }
    }

    /// Tests with a user's password whether the account API lets the client in; returns the setback if it does not.
    pub async fn knock(&mut self, api: &AccountApi) -> Result<(), Setback> {
        let scene = Arc::clone(&self.scene);
        let user = scene.user(&mut self.rng);
        self.account_sign_in(api, user).await
    }

    /// Renews tokens before they expire, or replaces tokens that the provider revoked. This happens between iterations,
    /// so no latency includes it. The next iteration reports what goes wrong.
    pub async fn renew(&mut self) {
        if self.has_lost_tokens() {
            self.unrenewed = self.prepare().await.err();
        } else if self.keeps_tokens() && (self.held.is_stale() || self.account.is_stale()) {
            self.unrenewed = self.renewed().await.err();
        }
    }

    /// Whether the visitor has to sign in again. In W5 a visitor without tokens does so as an errand.
    fn has_lost_tokens(&self) -> bool {
        let own = self.scene.holds_tokens() && self.scene.plan.workload != Workload::Day;
        own && self.held.access.is_empty() || self.scene.account_held().is_some() && self.account.access.is_empty()
    }

    /// Drops tokens that the provider no longer accepts. One lost answer may be enough for that: a refresh token that
    /// is sent a second time revokes the grant it came from (RFC 9700 §4.14.2).
    pub(super) fn lose(&mut self, setback: &Setback) {
        let Setback { step, cause: Cause::Wrong(why) } = setback else { return };
        let (own, says) = (self.scene.plan.workload != Workload::Session, |status: &str| why.whole.starts_with(status));
        match step {
            Step::Refresh if own && says("400 invalid_grant") => self.held = Granted::default(),
            Step::Userinfo if own && says("401") => self.held = Granted::default(),
            Step::Authorize if !own && why.whole.starts_with(DESPITE) => self.held = Granted::default(),
            Step::Introspect if own && why.whole == NOT_ACTIVE => self.held = Granted::default(),
            Step::Account if says("401") => self.account = Granted::default(),
            Step::SignIn if says("400") || says("401") => self.account = Granted::default(),
            _ => {}
        }
    }

    /// Returns when tokens should next be renewed.
    pub fn stale_at(&self) -> Option<Instant> {
        let next = [&self.held, &self.account].into_iter().filter_map(Granted::stale_at).min();
        next.filter(|_| self.keeps_tokens())
    }

    /// Returns true if iterations use tokens from before.
    fn keeps_tokens(&self) -> bool {
        use Workload::{Day, Introspect, Profile, Traffic, Userinfo};
        matches!(self.scene.plan.workload, Introspect | Userinfo | Profile | Traffic | Day)
    }

    async fn renewed(&mut self) -> Result<(), Setback> {
        let scene = Arc::clone(&self.scene);
        if let Some(api) = scene.account.as_ref().filter(|_| self.account.is_stale()) {
            match self.account.refresh {
                Some(_) => self.account_refresh(api).await?,
                None => {
                    let user = scene.user(&mut self.rng);
                    self.account_sign_in(api, user).await?;
                }
            }
        }
        if self.held.is_stale() {
            if self.held.refresh.is_some() { self.refresh().await? } else { self.arrive().await? }
        }
        Ok(())
    }
}
