//! The device grant: asking, and the person's answer. Polling is at the token endpoint.

use crate::browser::Browser;
use crate::{App, Fault};
use rules::login::session::Session;
use rules::login::throttle::account_key;
use rules::oauth::authorize;
use rules::oauth::client::Client;
use rules::oauth::device::{self, Answerer, Asked, Device, user_code_handle};
use rules::oauth::error::Error;
use rules::oauth::params::Params;
use rules::{Change, Decision, Span};
use std::sync::Arc;
use store::tables::realms::Epoch;
use store::tables::{consents, counters, devices};

/// A device's request, as its approval page shows it.
#[derive(Debug)]
pub struct Waiting {
    /// The request.
    pub device: Device,
    /// Who asks.
    pub client: Arc<Client>,
}

/// Why a user code was not found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lookup {
    /// Nothing waits under that code.
    Unknown,
    /// Too many codes were tried: wait so long.
    Wait(Span),
}

impl App {
    /// RFC 8628 §3.1.
    pub async fn device_ask(
        &self,
        client: &Client,
        params: &Params,
        address: &str,
    ) -> Result<Result<Asked, Error>, Fault> {
        let resources = match authorize::resources(params, client) {
            Ok(resources) => resources,
            Err(error) => return Ok(Err(error)),
        };
        let resources = &resources;
        self.settle(|now, fresh| async move {
            let asked = (params.get("scope"), resources.clone(), address);
            Ok(device::ask(client, asked, &self.keyring.lookup, &self.realm, (now, &fresh)))
        })
        .await
    }

    /// Finds what waits under a code that a signed-in person typed. Guesses are counted per person and address.
    pub async fn device_find(
        &self,
        typed: &str,
        session: &Session,
        browser: &Browser,
    ) -> Result<Result<Waiting, Lookup>, Fault> {
        let person = account_key(&self.keyring.lookup, &format!("user code:{}", session.user), None);
        let address = self.address_counter("user code", browser);
        let (mine, theirs) = self.ask((counters::Of(Some(person)), counters::Of(address))).await?;
        let (policy, now) = (&self.realm.settings.throttle, self.clock.now());
        for (seen, free) in [(mine, policy.free), (theirs, policy.address_free)] {
            if let Err(wait) = policy.leaky_admits(seen, free, now) {
                return Ok(Err(Lookup::Wait(wait)));
            }
        }
        let handle = user_code_handle(&self.keyring.lookup, typed);
        let found = match handle {
            Some(handle) => self.ask(devices::ByUserCode(handle)).await?.filter(|found| device::is_open(found, now)),
            None => None,
        };
        if let Some(device) = found
            && let Some(client) = self.client(&device.client, self.epoch().await?).await?.filter(|c| c.is_enabled())
        {
            return Ok(Ok(Waiting { device, client }));
        }
        self.settle(|now, _| async move {
            let missed = [Some(person), address].into_iter().flatten();
            let miss = missed.map(|key| Change::CountFailure { key, at: now, leak: policy.leak });
            Ok(Decision::<(), ()>::accept(()).with(miss))
        })
        .await?
        .ok();
        Ok(Err(Lookup::Unknown))
    }

    /// The answer of somebody who was shown the request.
    pub async fn device_answer(
        &self,
        device: &Device,
        allow: bool,
        session: &Session,
    ) -> Result<Result<(), Error>, Fault> {
        let user_code = device.user_code;
        self.settle(|now, fresh| async move {
            let consent = consents::Between(&session.user, &device.client);
            let (found, consent, epoch) = self.ask((devices::ByUserCode(user_code), consent, Epoch)).await?;
            let client = self.client(&device.client, self.epoch_of(epoch)?).await?;
            let Some(device) = found.filter(|_| client.is_some_and(|client| client.is_enabled())) else {
                return Ok(Decision::refuse(Error::grant("the request is gone")));
            };
            let who = Answerer { session, consent: consent.as_ref() };
            Ok(device::answer(&device, allow, &who, (now, &fresh)))
        })
        .await
    }
}
