//! The device grant: asking, and the person's answer. Polling is at the token endpoint.

use crate::browser::Browser;
use crate::pledge::{Pledge, to_the_end};
use crate::settle::Ahead;
use crate::stakes::Stake;
use crate::{App, Fault};
use rules::events::Rejection;
use rules::login::session::{Session, still_proved};
use rules::login::throttle::{Held, Seen, Shared, account_key, all_admit};
use rules::oauth::client::Client;
use rules::oauth::device::{self, Answerer, Asked, Device, user_code_handle};
use rules::oauth::error::{Code as ErrorCode, Error};
use rules::oauth::params::Params;
use rules::oauth::resource;
use rules::secret::{base64url, mac, same};
use rules::{Decision, Span};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use store::tables::realms::Epoch;
use store::tables::sessions::WithUser;
use store::tables::{consents, counters, devices};

/// A device's request, as its approval page shows it.
#[derive(Debug)]
pub struct Waiting {
    /// The request.
    pub device: Device,
    /// The client that asks.
    pub client: Arc<Client>,
}

/// Why a user code was not found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lookup {
    /// Nothing waits under that code.
    Unknown,
    /// Too many codes were tried: wait this long.
    Wait(Span),
}

/// How an answer ended, as a link tells the page that shows it.
#[derive(Clone, Copy, Debug)]
pub struct Ending<'a> {
    /// The ending, in one word.
    pub done: &'a str,
    /// The application that asked; empty where there is none.
    pub client: &'a str,
}

impl App {
    /// Handles a device's request (RFC 8628 §3.1).
    pub async fn device_ask(
        &self,
        client: &Client,
        params: &Params,
        address: &str,
    ) -> Result<Result<Asked, Error>, Fault> {
        // A user code is short. If another device has the same, that is a conflict, and the next try draws another.
        let tries = &AtomicU32::new(0);
        let ahead = &Ahead::of(Some(Arc::new(client.clone())));
        self.settle(|now, fresh| async move {
            let client = ahead.or(|| async { self.client(&client.id, self.epoch().await?).await }).await?;
            let Some(client) = client.filter(|client| client.is_enabled()) else {
                return Ok(Decision::refuse(Error::client("the client may not be used")));
            };
            let resources = match resource::asked(params, &client, &self.realm.issuer) {
                Ok(resources) => resources,
                Err(error) => return Ok(Decision::refuse(error)),
            };
            let fresh = fresh.of_try(tries.fetch_add(1, Ordering::Relaxed));
            let asked = (params.get("scope"), resources, address);
            Ok(device::ask(&client, asked, &self.keyring.lookup, &self.realm, (now, &fresh)))
        })
        .await
    }

    /// Finds what waits under a code that a signed-in user typed. Guesses are counted per person and address, also
    /// those whose answer nobody waits for.
    pub async fn device_find(
        &self,
        typed: &str,
        session: &Session,
        browser: &Browser,
    ) -> Result<Result<Waiting, Lookup>, Fault> {
        let (app, typed, session, browser) = (self.clone(), typed.to_owned(), session.clone(), browser.clone());
        to_the_end(|pledge| async move { app.look_up(&pledge, &typed, &session, &browser).await }).await
    }

    async fn look_up(
        &self,
        _: &Pledge,
        typed: &str,
        session: &Session,
        browser: &Browser,
    ) -> Result<Result<Waiting, Lookup>, Fault> {
        let person = account_key(&self.keyring.lookup, &format!("user code:{}", session.user), None);
        let mut shared = vec![self.realm.settings.throttle.shared_as(person)];
        shared.extend(self.shared_counters("user code", browser));
        // At stake until a miss is counted: parallel guesses are no more than they would be in turn.
        let _stake = match self.may_guess(&shared).await? {
            Ok(stake) => stake,
            Err(wait) => {
                self.reject(Rejection::Throttled(None)).await;
                return Ok(Err(Lookup::Wait(wait)));
            }
        };
        let (now, handle) = (self.clock.now(), user_code_handle(&self.keyring.lookup, typed));
        let found = match handle {
            Some(handle) => self.ask(devices::ByUserCode(handle)).await?.filter(|found| device::is_open(found, now)),
            None => None,
        };
        if let Some(device) = found
            && let Some(client) = self.client(&device.client, self.epoch().await?).await?
            && let Some(device) = device::as_it_may(device, &client)
        {
            return Ok(Ok(Waiting { device, client }));
        }
        let shared = &shared;
        self.settle(|now, _| async move {
            Ok(Decision::<(), ()>::accept(()).with(shared.iter().map(|one| one.failed(now))))
        })
        .await?
        .ok();
        Ok(Err(Lookup::Unknown))
    }

    /// Checks that one more guess may be made beside those in flight; if not, returns how long to wait.
    async fn may_guess(&self, shared: &[Shared]) -> Result<Result<Stake, Span>, Fault> {
        let keys: Vec<_> = shared.iter().map(|one| one.key).collect();
        let mut hopeful = self.stakes.hopeful(keys.clone(), self.patience());
        loop {
            let stake = hopeful.stake().await?;
            let beside = stake.beside();
            let seen = Seen::all(shared, self.ask(counters::Each(&keys)).await?, beside);
            match all_admit(&seen, self.clock.now()) {
                Ok(more) => {
                    stake.let_in(more);
                    return Ok(Ok(stake));
                }
                Err(Held::Wait(wait)) => return Ok(Err(wait)),
                Err(Held::Crowded(key, left)) => hopeful.step_back(stake, key, left),
            }
        }
    }

    /// Handles the answer of a user who was shown the request, and whose `session` was proved. If the session was
    /// raised since, the answer may come from a copy of the cookie that it had before.
    pub async fn device_answer(
        &self,
        device: &Device,
        allow: bool,
        session: &Session,
    ) -> Result<Result<(), Error>, Fault> {
        let user_code = device.user_code;
        self.settle(|now, fresh| async move {
            let consent = consents::Between(&session.user, &device.client);
            let facts = (WithUser(Some(&session.id)), devices::ByUserCode(user_code), consent, Epoch);
            let (proved, found, consent, epoch) = self.ask(facts).await?;
            let Some((session, _)) = still_proved(session, proved, &self.realm.settings, now) else {
                return Ok(Decision::refuse(Error::new(ErrorCode::LoginRequired, "the session is over")));
            };
            let client = self.client(&device.client, self.epoch_of(epoch)?).await?;
            let gone = || Ok(Decision::refuse(Error::grant("the request is gone")));
            let (Some(found), Some(client)) = (found, client) else { return gone() };
            // Between the look at the request and this, the application may have been given more.
            let Some(device) = device::as_it_may(found.within(device), &client) else { return gone() };
            let who = Answerer { session: &session, consent: consent.as_ref(), client: &client };
            Ok(device::answer(&device, allow, &who, (now, &fresh)))
        })
        .await
    }
    /// Seals what the page of a request shows: a yes covers nothing else, whatever the application may have by then (RFC
    /// 8628 §3.3).
    pub fn seal_shown(&self, device: &Device, session: &Session) -> String {
        let (scope, resources) = (device.scope.to_string(), device.resources.join(" "));
        let shown: [&[u8]; 4] =
            [&device.user_code.0, session.id.as_str().as_bytes(), scope.as_bytes(), resources.as_bytes()];
        base64url(&mac(&*self.keyring.flow, &[b"device shown", shown[0], shown[1], shown[2], shown[3]]))
    }
    /// Whether the page of this request showed all of it to the user of this session.
    pub fn has_shown(&self, device: &Device, seal: &str, session: &Session) -> bool {
        same(self.seal_shown(device, session).as_bytes(), seal.as_bytes())
    }
    /// Seals a link to that page, so that nobody else's link shows it to the user.
    pub fn seal_ending(&self, ending: &Ending<'_>, session: &Session) -> String {
        let parts = [ending.done, ending.client, session.id.as_str()].map(str::as_bytes);
        base64url(&mac(&*self.keyring.flow, &[b"device ending", parts[0], parts[1], parts[2]]))
    }

    /// Returns the name of the application that such a link is about, if there is one; `None` if the link is not ours.
    pub async fn open_ending(
        &self,
        ending: &Ending<'_>,
        seal: &str,
        session: &Session,
    ) -> Result<Option<Option<String>>, Fault> {
        if !same(self.seal_ending(ending, session).as_bytes(), seal.as_bytes()) {
            return Ok(None);
        }
        let client = self.client(&ending.client.into(), self.epoch().await?).await?;
        Ok(Some(client.map(|client| client.name.clone())))
    }
}
