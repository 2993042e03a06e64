//! Signing in with a password.

use crate::authorize::{Scene, SignIn};
use crate::browser::Browser;
use crate::flow::{Flow, Sealed, To};
use crate::jobs::to_the_end;
use crate::{App, Fault};
use hasher::{FairKey, Stored, Verified};
use rules::decision::Change;
use rules::events::{Event, Kind};
use rules::login::attempt::{After, Before, Counters, Refusal, begin, judge};
use rules::login::password::Password;
use rules::login::session::Started;
use rules::login::throttle::{account_key, address_key};
use rules::oauth::authorize;
use rules::oauth::redirect::Response;
use rules::people::User;
use rules::people::names::LoginKey;
use rules::secret::{Secret, mac};
use rules::{Decision, Fresh, Time};
use std::net::IpAddr;
use std::time::Duration;
use store::tables::realms::Epoch;
use store::tables::sessions::WithUser;
use store::tables::{counters, users};
use zeroize::Zeroizing;

/// What was typed into the sign-in page.
pub struct Typed<'a> {
    /// A username or an address.
    pub login: &'a str,
    /// The password.
    pub password: &'a [u8],
}

/// Somebody signed in.
#[derive(Debug)]
pub struct SignedIn {
    /// The session and its cookie.
    pub started: Started,
    /// The cookie by which this browser is known from now on.
    pub device: Option<Secret>,
    /// Who it is.
    pub user: User,
    /// What comes next.
    pub next: Next,
}

/// What comes after signing in.
#[derive(Debug)]
pub enum Next {
    /// An authorization response.
    Respond(Response),
    /// The flow goes on with another page.
    GoOn(Flow),
}

/// An attempt to sign in, as far as it is known before anything is hashed.
struct Attempt<'a> {
    key: Option<LoginKey>,
    /// The account that the attempt counts for: its id, or the name of nobody.
    counters: Counters,
    user: Option<User>,
    /// Whether this browser has signed in to the account before.
    known: bool,
    typed: &'a Typed<'a>,
    browser: &'a Browser,
}

impl App {
    /// Signs somebody in who is on the way to `flow`. Unknown, disabled and wrong take the same way, and all go it to
    /// the end.
    pub async fn sign_in(
        &self,
        flow: Flow,
        typed: Typed<'_>,
        browser: &Browser,
    ) -> Result<Result<SignedIn, Refusal>, Fault> {
        let (app, browser, login) = (self.clone(), browser.clone(), typed.login.to_owned());
        let password = Zeroizing::new(typed.password.to_vec());
        to_the_end(async move { app.try_in(flow, Typed { login: &login, password: &password }, &browser).await }).await
    }

    async fn try_in(
        &self,
        flow: Flow,
        typed: Typed<'_>,
        browser: &Browser,
    ) -> Result<Result<SignedIn, Refusal>, Fault> {
        let attempt = self.attempt(&typed, browser).await?;
        let proof = match self.hash(&attempt).await? {
            Ok(proof) => proof,
            Err(refusal) => return Ok(Err(refusal)),
        };
        let expected =
            flow.expects.as_ref().is_none_or(|who| attempt.user.as_ref().is_some_and(|user| user.id == *who));
        let scene = self.scene_of(&flow).await?;
        let sid = browser.session.as_ref().map(|cookie| &cookie.id);
        let (attempt, flow_ref, scene) = (&attempt, &flow, &scene);
        let reply = self
            .settle(|now, fresh| async move {
                let (user, before) = self.ask((users::ByLogin(attempt.key.as_ref()), WithUser(sid))).await?;
                // What was proved was the password of the account as it stood before the hash.
                let same = user.as_ref().map(|user| &user.password) == attempt.user.as_ref().map(|user| &user.password);
                let before = self.prove(attempt.browser, before, now);
                let after = After {
                    user: user.as_ref(),
                    matches: proof.ok && expected && same,
                    counters: attempt.counters,
                    before: before.as_ref().map(|(session, _)| session),
                    origin: &attempt.browser.origin,
                };
                let judged = judge(&after, &self.realm.settings, now, &fresh);
                self.follow((judged, user), scene.as_ref(), flow_ref, (now, &fresh)).await
            })
            .await?;
        Ok(match reply {
            Err(refusal) => Err(refusal),
            Ok((started, user, respond)) => {
                if proof.rehash {
                    self.rehash(&user, typed.password, browser).await;
                }
                let device = self.remember_browser(browser, &user)?;
                let next = respond.map_or_else(|| Next::GoOn(Flow { expects: None, ..flow }), Next::Respond);
                Ok(SignedIn { started, device, user, next })
            }
        })
    }

    /// Finds the account and its counters. The counter is the account's, however its name was written (BF-01).
    async fn attempt<'a>(&self, typed: &'a Typed<'a>, browser: &'a Browser) -> Result<Attempt<'a>, Fault> {
        let key = LoginKey::of(typed.login);
        let user = self.ask(users::ByLogin(key.as_ref())).await?;
        let account = match (&user, &key) {
            (Some(user), _) => user.id.0.clone(),
            (None, Some(key)) => format!("nobody:{}", key.as_str()),
            (None, None) => "nobody".to_owned(),
        };
        let device = user.as_ref().and_then(|user| self.known_device(browser, user));
        let counters = Counters {
            account: account_key(&self.keyring.lookup, &account, device.as_deref()),
            address: address_key(&self.keyring.lookup, &browser.address_key),
        };
        Ok(Attempt { key, counters, user, known: device.is_some(), typed, browser })
    }

    /// Counts the attempt, then hashes. Nothing of the database is held meanwhile.
    async fn hash(&self, attempt: &Attempt<'_>) -> Result<Result<Verified, Refusal>, Fault> {
        let patience = Duration::from_millis(self.realm.settings.hash_wait.0.unsigned_abs());
        let _pass = self.turnstile.pass(attempt.counters.account, patience).await?;
        let counted = self
            .settle(|now, _| async move {
                let counters = attempt.counters;
                let (account, address) =
                    self.ask((counters::Of(counters.account), counters::Of(counters.address))).await?;
                let policy = &self.realm.settings.throttle;
                let address = address.filter(|_| !attempt.known);
                Ok(begin(&Before { counters, account, address, policy }, now))
            })
            .await?;
        let counted = &match counted {
            Ok(counted) => counted,
            Err(refusal) => return Ok(Err(refusal)),
        };
        let key = self.fair_key(attempt.browser);
        // Too long or not text: it is nobody's password, and costs what every wrong one costs.
        let password = Password::read(attempt.typed.password).ok();
        let stored = attempt.user.as_ref().filter(|user| user.is_enabled()).and_then(|user| user.password.as_deref());
        let stored: Option<Stored> = stored.and_then(|text| text.parse().ok());
        let verified = match (&stored, &password) {
            (Some(stored), Some(password)) => self.hasher.verify(&key, stored, password.as_bytes()).await,
            (_, password) => {
                let salt = self.decoy_salt(attempt.key.as_ref());
                self.hasher.decoy(&key, salt, password.as_ref().map_or(b"", |password| password.as_bytes())).await
            }
        };
        match verified {
            Ok(verified) => Ok(Ok(verified)),
            Err(refusal) => {
                // Nothing was tried, so nothing failed.
                self.settle(
                    |_, _| async move { Ok(Decision::<(), ()>::accept(()).and(Change::GiveBack(counted.clone()))) },
                )
                .await?
                .ok();
                Err(refusal.into())
            }
        }
    }

    /// Continues a successful attempt to a code, in the same batch, where nothing more is to be asked.
    async fn follow(
        &self,
        (judged, user): (Decision<Started, Refusal>, Option<User>),
        scene: Option<&Scene>,
        flow: &Flow,
        (now, fresh): (Time, &Fresh),
    ) -> Result<Decision<(Started, User, Option<Response>), Refusal>, Fault> {
        let Decision { mut changes, reply } = judged;
        let (started, user) = match (reply, user) {
            (Ok(started), Some(user)) => (started, user),
            (Ok(_), None) => return Err(Fault::Broken("somebody signed in who does not exist".into())),
            (Err(refusal), _) => return Ok(Decision { changes, reply: Err(refusal) }),
        };
        let Some(scene) = scene else { return Ok(Decision { changes, reply: Ok((started, user, None)) }) };
        let respond = match self.complete(scene, flow.progress(false), (&started, &user), (now, fresh)).await? {
            Err(_step) => None,
            Ok(issued) => {
                changes.extend(issued.changes);
                Some(issued.reply.unwrap_or_else(|error| scene.request.back.error(&self.realm.issuer, error)))
            }
        };
        Ok(Decision { changes, reply: Ok((started, user, respond)) })
    }

    /// The authorization request of a flow, where it has one that is still right.
    pub(crate) async fn scene_of(&self, flow: &Flow) -> Result<Option<Scene>, Fault> {
        let (To::Client(_), Some(params)) = (&flow.to, flow.params()) else { return Ok(None) };
        let Ok(client) = authorize::client_id(&params) else { return Ok(None) };
        let epoch = self.epoch_of(self.ask(Epoch).await?)?;
        let client = self.client(&client, epoch).await?;
        Ok(self.scene(&params, client.as_ref(), epoch, true).await?.ok())
    }

    /// Who a hash is charged to: the realm first, then the address.
    pub(crate) fn fair_key(&self, browser: &Browser) -> FairKey {
        let address: IpAddr = browser.origin.address.parse().unwrap_or(IpAddr::from([0, 0, 0, 0]));
        FairKey::new(self.realm.id.as_str(), address)
    }

    fn decoy_salt(&self, key: Option<&LoginKey>) -> [u8; 16] {
        let name = key.map_or("", LoginKey::as_str);
        let tag = mac(&*self.keyring.decoy, &[name.as_bytes()]);
        let mut salt = [0; 16];
        salt.copy_from_slice(&tag[..16]);
        salt
    }

    /// A cookie for a browser that was not known to this account before.
    pub(crate) fn remember_browser(&self, browser: &Browser, user: &User) -> Result<Option<Secret>, Fault> {
        if self.known_device(browser, user).is_some() {
            return Ok(None);
        }
        let seed = crate::entropy::bytes()?;
        let mut name = [0; 16];
        name.copy_from_slice(&seed[..16]);
        Ok(Some(self.device_cookie(user, &name)))
    }

    /// Whether somebody who is signed in knows their password; counted like an attempt to sign in.
    pub(crate) async fn knows_password(
        &self,
        user: &User,
        password: &[u8],
        browser: &Browser,
    ) -> Result<Result<bool, Refusal>, Fault> {
        let typed = Typed { login: &user.username, password };
        let attempt = self.attempt(&typed, browser).await?;
        let matches = match self.hash(&attempt).await? {
            Ok(proof) => proof.ok && attempt.user.as_ref().is_some_and(|found| found.id == user.id),
            Err(refusal) => return Ok(Err(refusal)),
        };
        let attempt = &attempt;
        self.settle(|now, _| async move {
            let counters = attempt.counters;
            let decision = Decision::<(), ()>::accept(());
            if matches {
                return Ok(decision.and(Change::ForgetAttempts { key: counters.account }));
            }
            let event = Event::new(Kind::SignInFailed, now).user(&user.id).address(&browser.origin.address);
            let leak = self.realm.settings.throttle.leak;
            Ok(decision
                .and(Change::CountFailure { key: counters.address, at: now, leak })
                .and(Change::Record(event.detail("what", "current password"))))
        })
        .await?
        .ok();
        Ok(Ok(matches))
    }

    /// Stores a password that was just proved as today's policy wants it. That it fails never fails a sign-in.
    async fn rehash(&self, user: &User, password: &[u8], browser: &Browser) {
        let (Ok(password), Some(seen)) = (Password::read(password), user.password.clone()) else { return };
        let Ok(stored) = seen.parse::<Stored>() else { return };
        let Ok(seed) = crate::entropy::bytes() else { return };
        let mut salt = [0; 16];
        salt.copy_from_slice(&seed[..16]);
        let key = self.fair_key(browser);
        let Ok(hashed) = self.hasher.rehash(&key, &stored, password.as_bytes(), salt).await else { return };
        let (hashed, seen) = (&hashed, &seen);
        let written = self.settle(|now, _| async move {
            let change = Change::SetPassword {
                user: user.id.clone(),
                seen: Some(seen.clone()),
                password: hashed.clone(),
                at: now,
            };
            Ok(Decision::<(), ()>::accept(()).and(change))
        });
        if let Err(fault) = written.await {
            tracing::debug!(%fault, "a password was not hashed again");
        }
    }
}

impl App {
    /// The sign-in page of a flow, on the way to an application or to a page of ours.
    pub async fn sign_in_page(&self, flow: Flow, browser: &Browser) -> Result<SignIn, Fault> {
        let scene = self.scene_of(&flow).await?;
        let expected = match &flow.expects {
            Some(who) => self.ask(users::ById(who)).await?.map(|user| user.username),
            None => None,
        };
        let again = expected.is_some();
        let hinted = || scene.as_ref().and_then(|scene| scene.request.login_hint.clone());
        let login = expected.or_else(hinted).unwrap_or_default();
        Ok(SignIn {
            flow: self.seal(&flow, browser)?,
            client: scene.as_ref().map(|scene| scene.client.name.clone()),
            login,
            again,
            destination: scene.map(|scene| scene.request.back.to.origin().to_owned()),
        })
    }

    /// Seals a flow again, after its progress was written into it.
    pub fn reseal(&self, flow: &Flow, browser: &Browser) -> Result<Sealed, Fault> {
        self.seal(flow, browser)
    }
}
