//! Between the commit of tokens and their answer nothing is asked, and whatever signs them is believed.

use super::edits::{Two, at_home};
use super::shop::{REDIRECT, code, params, request};
use super::{PASSWORD, application, sign_in};
use crate::App;
use crate::account::PasswordChange;
use crate::admin::clients::ClientSecret;
use crate::api::Opened;
use crate::authorize::Outcome;
use crate::browser::Browser;
use crate::sign_in::{Next, Typed};
use crate::token::Handed;
use rules::oauth::client::Grant;
use rules::secret::Secret;
use std::sync::atomic::Ordering::SeqCst;

/// Every way to tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Code,
    Refresh,
    /// By a refresh token whose answer was lost.
    Predecessor,
    Device,
    Own,
    Enter,
    Renew,
    Password,
}

const WAYS: [Way; 8] =
    [Way::Code, Way::Refresh, Way::Predecessor, Way::Device, Way::Own, Way::Enter, Way::Renew, Way::Password];

/// A request that can be sent.
enum Ready {
    Grant(Vec<(&'static str, String)>),
    Enter,
    Renew(Secret),
    Password(Box<Opened>),
}

impl Two {
    /// Everything that comes before the request goes to the other node.
    async fn ready(&self, way: Way) -> Ready {
        match way {
            Way::Code => Ready::Grant(redemption(self.code().await)),
            Way::Refresh => Ready::Grant(refresh(&self.line().await)),
            Way::Predecessor => {
                let first = refresh(&self.line().await);
                self.at(&self.there, &first).await.unwrap();
                Ready::Grant(first)
            }
            Way::Device => Ready::Grant(vec![
                ("grant_type", Grant::DeviceCode.name().to_owned()),
                ("device_code", self.device().await.reveal().to_owned()),
            ]),
            Way::Own => {
                Ready::Grant(vec![("grant_type", "client_credentials".to_owned()), ("scope", "read".to_owned())])
            }
            Way::Enter => Ready::Enter,
            Way::Renew => Ready::Renew(self.entered().await.refresh_token.expect("a refresh token")),
            Way::Password => {
                let opened = self.there.open_account(&self.entered().await.access_token).await.unwrap();
                Ready::Password(Box::new(opened.expect("it is good")))
            }
        }
    }

    async fn send(&self, ready: Ready) -> Result<Handed, String> {
        let (here, nowhere) = (&self.here, &Browser::default());
        Ok(match ready {
            Ready::Grant(pairs) => return self.at(here, &pairs).await,
            Ready::Enter => {
                let entered = here.enter(&self.caller().await, Typed::new("ada", PASSWORD), nowhere, None).await;
                entered.map_err(|fault| fault.to_string())?.map_err(|why| format!("{why:?}"))?.handed
            }
            Ready::Renew(token) => {
                let renewed = here.renew_account(&self.caller().await, &token).await;
                renewed.map_err(|fault| fault.to_string())?.map_err(|why| format!("{why:?}"))?
            }
            Ready::Password(opened) => {
                let typed = PasswordChange::new(PASSWORD, b"another violet anvil 42");
                let changed = here.change_account_password(*opened, typed, nowhere).await;
                changed.map_err(|fault| fault.to_string())?.map_err(|why| format!("{why:?}"))?.handed
            }
        })
    }

    async fn at(&self, app: &App, pairs: &[(&'static str, String)]) -> Result<Handed, String> {
        let pairs: Vec<_> = pairs.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let handed = app.token(&params(&pairs), self.proof()).await;
        handed.map_err(|fault| fault.to_string())?.map_err(|error| error.why.to_owned())
    }

    async fn code(&self) -> String {
        let mut browser = Browser { flow: Some(Secret::new("the flow of this browser")), ..Browser::default() };
        let Outcome::SignIn(page) = self.there.authorize(request(), &browser).await.unwrap() else { panic!("no page") };
        let flow = self.there.open_flow(&page.flow.text, &browser).unwrap();
        match sign_in(&self.there, flow, &mut browser).await {
            Next::Respond(answer) => code(&answer),
            Next::GoOn(flow) => panic!("no code: {flow:?}"),
        }
    }

    async fn line(&self) -> Secret {
        let handed = self.at(&self.there, &redemption(self.code().await)).await.unwrap();
        handed.refresh_token.expect("a refresh token")
    }

    async fn device(&self) -> Secret {
        let shop = self.there.find_client(&self.shop).await.unwrap().expect("registered");
        let asked = self.there.device_ask(&shop, &params(&[("scope", "openid")]), "192.0.2.1").await.unwrap().unwrap();
        let browser = at_home(self).await;
        let (session, _) = self.there.session(&browser).await.unwrap().expect("signed in");
        let waiting = self.there.device_find(&asked.user_code, &session, &browser).await.unwrap().unwrap();
        self.there.device_answer(&waiting.device, true, &session).await.unwrap().unwrap();
        asked.device_code
    }

    async fn entered(&self) -> Handed {
        let proof = self.proof();
        let caller = self.there.first_party(proof, None).await.unwrap().unwrap();
        let entered = self.there.enter(&caller, Typed::new("ada", PASSWORD), &Browser::default(), None).await;
        entered.unwrap().unwrap().handed
    }
}

fn redemption(code: String) -> Vec<(&'static str, String)> {
    vec![
        ("grant_type", "authorization_code".to_owned()),
        ("code", code),
        ("redirect_uri", REDIRECT.to_owned()),
        ("code_verifier", "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk".to_owned()),
    ]
}

fn refresh(token: &Secret) -> Vec<(&'static str, String)> {
    vec![("grant_type", "refresh_token".to_owned()), ("refresh_token", token.reveal().to_owned())]
}

fn told<T, E: std::fmt::Debug>(done: Result<T, E>) -> Result<(), String> {
    done.map(drop).map_err(|error| format!("{error:?}"))
}

#[tokio::test]
async fn once_tokens_are_committed_nothing_is_asked_before_they_are_handed_out() {
    // Red where the token endpoint asks for the keys after the commit: a code was burnt, a token rotated, for a 503.
    for way in WAYS {
        for conflict in [false, true] {
            let two = Two::start().await;
            let ready = two.ready(way).await;
            let (here, there, shop) = (two.here.clone(), two.there.clone(), two.shop.clone());
            two.interrupted.issuing.after(0, async move {
                // Another request has the keys of another epoch read, which the first try does not have.
                let other = application("other");
                told(there.add_client(other, ClientSecret::Generated).await)?;
                if conflict {
                    let renamed = there.edit_client(&shop, |client| {
                        client.name.push('!');
                        Ok(())
                    });
                    told(renamed.await)?;
                }
                told(here.jwks().await)
            });
            two.interrupted.falls_silent.store(true, SeqCst);
            let sent = two.send(ready).await;
            assert!(two.interrupted.issuing.is_over(), "{way:?}");
            assert!(sent.is_ok(), "{way:?} {conflict}: {sent:?}");
        }
    }
}

#[tokio::test]
async fn what_a_key_signs_that_was_revoked_meanwhile_is_handed_to_nobody() {
    // Red without `keys` of Change::Stands: the answer was a 200 with tokens that nobody accepts.
    for way in WAYS {
        let two = Two::start().await;
        let ready = two.ready(way).await;
        let there = two.there.clone();
        two.interrupted.issuing.after(0, async move {
            for (key, _) in there.signing_keys().await.map_err(|fault| fault.to_string())? {
                told(there.throw_out(&key.kid).await)?;
            }
            Ok(())
        });
        let sent = two.send(ready).await;
        assert!(two.interrupted.issuing.is_over(), "{way:?}");
        if way == Way::Password {
            assert_eq!(sent.map(drop), Err("SignedOut".to_owned()), "what it was asked with is believed no more");
            continue;
        }
        let handed = sent.unwrap_or_else(|why| panic!("{way:?}: {why}"));
        assert!(two.there.live(handed.access_token.reveal()).await.unwrap().is_some(), "{way:?}");
        if let Some(id) = handed.id_token {
            let epoch = two.there.epoch().await.unwrap();
            assert!(two.there.hint(id.reveal(), epoch).await.unwrap().is_some(), "{way:?}: its key is published");
        }
    }
}

#[tokio::test]
async fn rt_07_a_predecessor_yields_no_token_that_was_replaced_meanwhile() {
    // Red without `current` of Change::Stands: what was handed out was the predecessor of the current one.
    let two = Two::start().await;
    let first = refresh(&two.line().await);
    let second = two.at(&two.there, &first).await.unwrap().refresh_token.expect("a refresh token");
    let (there, proof, next) = (two.there.clone(), two.proof(), refresh(&second));
    two.interrupted.issuing.after(0, async move {
        let pairs: Vec<_> = next.iter().map(|(name, value)| (*name, value.as_str())).collect();
        told(there.token(&params(&pairs), proof).await.map_err(|fault| fault.to_string())?)
    });
    let sent = two.send(Ready::Grant(first)).await;
    assert!(two.interrupted.issuing.is_over());
    assert_eq!(sent.map(drop), Err("the refresh token is not valid".to_owned()), "it is an outdated one by then");
}
