//! What a browser brings along.

use crate::{App, Fault, entropy};
use rules::Time;
use rules::login::session::{Cookie, Origin, Session, proved, proved_to_end};
use rules::login::sign_up;
use rules::login::throttle::{Policy, Shared};
use rules::people::User;
use rules::secret::{Secret, base64url, from_base64url, mac, same};
use std::iter::once;
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
    /// The cookie, or the token of an application without cookies, that says who signed in here before.
    pub device: Option<Secret>,
    /// The user agent and address.
    pub origin: Origin,
    /// Whether its session cookie proved nothing when it was looked at.
    pub unproved: Unproved,
    /// The address that limits count; `None` where it stands for everybody behind it (a listed proxy that names nobody).
    pub counted: Option<IpAddr>,
}

/// Of how many accounts a browser keeps a proof: of those that signed in last. That is also how many are looked at.
const MOST_KNOWN: usize = 4;
/// Stands between proofs, and in none of them: a version of this program that knows of one proof takes none of several.
const BETWEEN: &str = "~";
/// What a proof is as text.
const PROOF_LENGTH: usize = 43;

/// That a browser has signed in to an account: the name that it has there, and the beginning of a MAC of both.
type Proof = [u8; 32];

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

    /// The same for ending it: what may not be used at present ends, too.
    pub async fn session_to_end(&self, browser: &Browser) -> Result<Option<(Session, User)>, Fault> {
        let Some(cookie) = &browser.session else { return Ok(None) };
        let found = self.ask(ForEnding(Some(&cookie.id))).await?;
        let good = proved_to_end(cookie, found.as_ref(), &self.realm.settings, self.clock.now()).is_some();
        if !good {
            browser.unproved.set();
        }
        Ok(found.filter(|_| good))
    }

    /// SE-02: a session that may not be used at present, and whose place in the browser `started` takes, ends. One that
    /// may was raised, or has ended with the beginning of the new one. The new one stands by now, whatever comes of this: whoever
    /// was told of a fault would sign up once more.
    pub(crate) async fn leave_replaced(&self, browser: &Browser, started: &Session) {
        if browser.session.as_ref().is_none_or(|cookie| cookie.id == started.id) {
            return;
        }
        let ended = async {
            match self.session_to_end(browser).await? {
                Some((replaced, _)) => self.leave(&replaced, browser).await,
                None => Ok(()),
            }
        };
        if let Err(fault) = ended.await {
            tracing::warn!(%fault, "the session that a browser had before was not ended");
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
    /// used at present, since the database failed over or this node's clock is behind, is not; nor is one whose secret was
    /// replaced: another answer to the same browser brings the new one.
    ///
    /// # Errors
    /// What keeps it from being read.
    pub async fn is_over(&self, browser: &Browser) -> Result<bool, Fault> {
        let Some(cookie) = &browser.session else { return Ok(false) };
        let found = self.ask(ForEnding(Some(&cookie.id))).await?;
        let now = self.clock.now();
        Ok(found.is_none_or(|(session, _)| !session.can_end(&self.realm.settings, now)))
    }

    /// The token that a form of a session's owner has to carry.
    pub fn csrf(&self, session: &Session) -> String {
        let tag = mac(&*self.keyring.flow, &[b"csrf", session.id.as_str().as_bytes(), &session.handle.0]);
        base64url(&tag)
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

    /// What a browser, or an application on its device, keeps from now on, when `user` has signed in there: strangers' failures
    /// elsewhere do not slow it down. Those who share it keep their proofs, and each account has one.
    pub(crate) fn remember_browser(&self, browser: &Browser, user: &User) -> Result<Secret, Fault> {
        let own = match self.proof_of(browser, user) {
            Some(proof) => proof,
            None => self.proof(user, &self.browser_name(user, entropy::salt()?)),
        };
        let others = proofs(browser).filter(|proof| *proof != own && !self.is_named_for(user, proof));
        let kept: Vec<String> = once(own).chain(others).take(MOST_KNOWN).map(|proof| base64url(&proof)).collect();
        Ok(Secret::new(kept.join(BETWEEN)))
    }

    /// The name of this browser, if it is known to `user`.
    pub(crate) fn known_device(&self, browser: &Browser, user: &User) -> Option<String> {
        self.proof_of(browser, user).map(|proof| base64url(&proof[..16]))
    }

    fn proof_of(&self, browser: &Browser, user: &User) -> Option<Proof> {
        let is_ours = |proof: &Proof| proof.first_chunk().is_some_and(|name| same(&self.proof(user, name), proof));
        proofs(browser).find(is_ours)
    }

    /// It is void once the password is another one. The account's id is drawn: no other realm has one of that id.
    fn proof(&self, user: &User, name: &[u8; 16]) -> Proof {
        let password = user.password.as_deref().unwrap_or("");
        let tag = mac(&*self.keyring.device, &[user.id.as_str().as_bytes(), password.as_bytes(), name]);
        let mut proof = [0; 32];
        proof[..16].copy_from_slice(name);
        proof[16..].copy_from_slice(&tag[..16]);
        proof
    }

    /// The name of a browser for `user`, of whose bytes the first half stays as it was drawn. The second tells us, and nobody
    /// else, whose it is: what a new password made void gives way to the next proof of the same account, and not one of
    /// somebody else.
    fn browser_name(&self, user: &User, mut name: [u8; 16]) -> [u8; 16] {
        let (drawn, whose) = name.split_at_mut(8);
        whose.copy_from_slice(&mac(&*self.keyring.device, &[b"whose", user.id.as_str().as_bytes(), drawn])[..8]);
        name
    }

    fn is_named_for(&self, user: &User, proof: &Proof) -> bool {
        proof.first_chunk().is_some_and(|name| same(&self.browser_name(user, *name), name))
    }
}

/// The proofs that a browser brings, the newest first. What does not have the form of one is left out, and so are more than
/// it was given.
fn proofs(browser: &Browser) -> impl Iterator<Item = Proof> {
    let kept = browser.device.as_ref().map_or("", Secret::reveal);
    let parts = kept.split(BETWEEN).filter(|part| part.len() == PROOF_LENGTH);
    parts.filter_map(|part| from_base64url(part)?.try_into().ok()).take(MOST_KNOWN)
}
