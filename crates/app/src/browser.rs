//! What a browser brings along.

use crate::{App, Fault};
use rules::login::session::{Cookie, Origin, Session, proved};
use rules::login::sign_up;
use rules::login::throttle::{Policy, Shared};
use rules::people::User;
use rules::secret::{Secret, from_base64url, mac, same};
use rules::{Decision, Time};
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use store::tables::sessions::{ForEnding, WithUser};

/// The cookies of a browser and where it is.
#[derive(Clone, Debug, Default)]
pub struct Browser {
    /// The session cookie, if it has the right form.
    pub session: Option<Cookie>,
    /// The cookie that login flows are bound to.
    pub flow: Option<Secret>,
    /// The cookie that says who signed in here before.
    pub device: Option<Secret>,
    /// The user agent and address.
    pub origin: Origin,
    /// Whether its session cookie proved nothing when it was looked at.
    pub unproved: Unproved,
    /// The address that limits count; `None` where it stands for everybody behind it (a listed proxy that names nobody).
    pub counted: Option<IpAddr>,
}

/// A mark that a session cookie was looked at and proved nothing. Clones are the same mark.
#[derive(Clone, Debug, Default)]
pub struct Unproved(Arc<AtomicBool>);

impl Unproved {
    /// Whether that is so.
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
    fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl App {
    /// The session that a browser's cookie proves, and whose it is.
    pub async fn session(&self, browser: &Browser) -> Result<Option<(Session, User)>, Fault> {
        let Some(cookie) = &browser.session else { return Ok(None) };
        let found = self.ask(WithUser(Some(&cookie.id))).await?;
        Ok(self.prove(browser, found, self.clock.now()))
    }

    /// The same for using it, which is noted when that is due.
    pub async fn session_in_use(&self, browser: &Browser) -> Result<Option<(Session, User)>, Fault> {
        let found = self.session(browser).await?;
        if let Some((session, _)) = &found {
            self.note_use(session).await;
        }
        Ok(found)
    }

    /// Notes that a session is used, where nothing else is committed that could say so: at most as often as the realm wants.
    /// A note that cannot be written keeps nobody from what they came for; the next use writes it.
    pub async fn note_use(&self, session: &Session) {
        let settings = &self.realm.settings;
        if session.touch(settings, self.clock.now()).is_none() {
            return;
        }
        let noted = self
            .settle(|now, _| async move { Ok(Decision::<(), ()>::accept(()).with(session.touch(settings, now))) })
            .await;
        if let Err(fault) = noted {
            tracing::debug!(%fault, "the use of a session was not noted");
        }
    }

    /// The same for ending it: what may not be used at present ends, too.
    pub async fn session_to_end(&self, browser: &Browser) -> Result<Option<(Session, User)>, Fault> {
        let Some(cookie) = &browser.session else { return Ok(None) };
        let found = self.ask(ForEnding(Some(&cookie.id))).await?;
        Ok(self.prove(browser, found, self.clock.now()))
    }

    /// SE-02: a session that may not be used at present, and whose place in the browser `started` takes, ends. One that
    /// may was raised, or has ended with the beginning of the new one.
    pub(crate) async fn leave_replaced(&self, browser: &Browser, started: &Session) -> Result<(), Fault> {
        if browser.session.as_ref().is_none_or(|cookie| cookie.id == started.id) {
            return Ok(());
        }
        match self.session_to_end(browser).await? {
            Some((replaced, _)) => self.leave(&replaced, browser).await,
            None => Ok(()),
        }
    }

    /// The session among `found` that a browser's cookie proves.
    pub(crate) fn prove(
        &self,
        browser: &Browser,
        found: Option<(Session, User)>,
        now: Time,
    ) -> Option<(Session, User)> {
        let cookie = browser.session.as_ref()?;
        let good = proved(cookie, found.as_ref(), &self.realm.settings, now).is_some();
        if !good {
            browser.unproved.set();
        }
        found.filter(|_| good)
    }

    /// Whether the session that a browser's cookie names is over for good: ended, run out, or not there. One that may not be
    /// used at present, since the database failed over, is not; nor is one whose secret was replaced: another answer to the
    /// same browser brings the new one.
    ///
    /// # Errors
    /// What keeps it from being read.
    pub async fn is_over(&self, browser: &Browser) -> Result<bool, Fault> {
        let Some(cookie) = &browser.session else { return Ok(false) };
        let found = self.ask(ForEnding(Some(&cookie.id))).await?;
        let now = self.clock.now();
        Ok(found.is_none_or(|(session, _)| !session.is_live(&self.realm.settings, now)))
    }

    /// The token that a form of a session's owner has to carry.
    pub fn csrf(&self, session: &Session) -> String {
        let tag = mac(&*self.keyring.flow, &[b"csrf", session.id.as_str().as_bytes(), &session.handle.0]);
        rules::secret::base64url(&tag)
    }

    /// Whether a form carries the token of its session.
    pub fn csrf_holds(&self, session: &Session, token: &str) -> bool {
        same(self.csrf(session).as_bytes(), token.as_bytes())
    }

    /// The counters of a browser's address, its own first, for what it does there.
    pub(crate) fn shared_counters(&self, what: &str, browser: &Browser) -> Vec<Shared> {
        self.counters_by(&self.realm.settings.throttle, what, browser)
    }

    /// The same for accounts that are made there.
    pub(crate) fn sign_up_counters(&self, browser: &Browser) -> Vec<Shared> {
        self.counters_by(&sign_up::policy(&self.realm.settings.throttle), "sign-up", browser)
    }

    /// The one way to them, so that an address which is not counted is counted nowhere (BF-04).
    fn counters_by(&self, policy: &Policy, what: &str, browser: &Browser) -> Vec<Shared> {
        browser.counted.map_or_else(Vec::new, |address| policy.shared_by(&self.keyring.lookup, what, address))
    }

    /// The cookie that remembers, after a sign-in, that this browser is known to `account`: a stranger's failures
    /// elsewhere do not slow it down.
    /// It is void once the password is another one.
    pub(crate) fn device_cookie(&self, user: &User, name: &[u8; 16]) -> Secret {
        let password = user.password.as_deref().unwrap_or("");
        let tag = mac(&*self.keyring.device, &[user.id.as_str().as_bytes(), password.as_bytes(), name]);
        Secret::new(rules::secret::base64url(&[name.as_slice(), &tag[..16]].concat()))
    }

    /// The name of this browser, if it is known to `user`.
    pub(crate) fn known_device(&self, browser: &Browser, user: &User) -> Option<String> {
        let bytes = from_base64url(browser.device.as_ref()?.reveal()).filter(|bytes| bytes.len() == 32)?;
        let name: &[u8; 16] = bytes.first_chunk()?;
        let ours =
            same(self.device_cookie(user, name).reveal().as_bytes(), browser.device.as_ref()?.reveal().as_bytes());
        ours.then(|| rules::secret::base64url(name))
    }
}
