//! What a browser sends along with a request.

use crate::{App, Fault, entropy};
use rules::Time;
use rules::login::cookie::Cookie;
use rules::login::session::{Origin, Session, proved, proved_to_end};
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
    /// Whether its session cookie proved nothing when it was checked.
    pub unproved: Unproved,
    /// The address that limits count; `None` where it stands for everybody behind it (a listed proxy that names
    /// nobody).
    pub counted: Option<IpAddr>,
}

/// For how many accounts a browser keeps a proof: those that signed in last. No more proofs than that are checked.
const MOST_KNOWN: usize = 4;
/// Separates proofs, and occurs in none: a version of this program that knows a single proof accepts none of several.
const BETWEEN: &str = "~";
/// The length of a proof as text.
const PROOF_LENGTH: usize = 43;

/// Proves that a browser has signed in to an account: the browser's name there, and the beginning of a MAC of both.
type Proof = [u8; 32];

/// A mark that a session cookie was checked and proved nothing. Clones are the same mark.
#[derive(Clone, Debug, Default)]
pub struct Unproved(Arc<AtomicBool>);

impl Unproved {
    /// Whether the mark is set.
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
    fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl App {
    /// Returns the session that a browser's cookie proves, and its user.
    pub async fn session(&self, browser: &Browser) -> Result<Option<(Session, User)>, Fault> {
        let Some(cookie) = &browser.session else { return Ok(None) };
        let found = self.ask(WithUser(Some(&cookie.id))).await?;
        Ok(self.prove(browser, found, self.clock.now()))
    }

    /// The same for ending the session: one that may not be used at present can end, too.
    pub async fn session_to_end(&self, browser: &Browser) -> Result<Option<(Session, User)>, Fault> {
        let Some(cookie) = &browser.session else { return Ok(None) };
        let found = self.ask(ForEnding(Some(&cookie.id))).await?;
        let good = proved_to_end(cookie, found.as_ref(), &self.realm.settings, self.clock.now()).is_some();
        if !good {
            browser.unproved.set();
        }
        Ok(found.filter(|_| good))
    }

    /// SE-02: ends a session that may not be used at present, and whose place in the browser `started` takes. One that
    /// may be used was raised, or ended when the new one began. The new session stands by now, whatever comes of this:
    /// a user who was told of a fault would sign up once more.
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
            tracing::warn!(%fault, "the previous session of a browser was not ended");
        }
    }

    /// Returns `found` if a browser's cookie proves that session.
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

    /// Whether the session that a browser's cookie names is over for good: ended, expired, or not there. One that may
    /// not be used at present, because the database failed over or this node's clock is behind, is not over; nor is one
    /// whose secret was replaced: another answer to the same browser brings the new secret. Of a cookie that was not
    /// made here nothing is said: who knows a `sid`, as from an ID token, would be told whether that session lives.
    ///
    /// # Errors
    /// Says what keeps the session from being read.
    pub async fn is_over(&self, browser: &Browser) -> Result<bool, Fault> {
        let ours = browser.session.as_ref().filter(|cookie| cookie.is_sealed(&self.keyring.session));
        let Some(cookie) = ours else { return Ok(false) };
        let found = self.ask(ForEnding(Some(&cookie.id))).await?;
        let now = self.clock.now();
        Ok(found.is_none_or(|(session, _)| !session.can_end(&self.realm.settings, now)))
    }

    /// Returns the CSRF token that a form of a session's owner has to carry.
    pub fn csrf(&self, session: &Session) -> String {
        let tag = mac(&*self.keyring.flow, &[b"csrf", session.id.as_str().as_bytes(), &session.handle.0]);
        base64url(&tag)
    }

    /// Whether a form carries the CSRF token of its session.
    pub fn csrf_holds(&self, session: &Session, token: &str) -> bool {
        same(self.csrf(session).as_bytes(), token.as_bytes())
    }

    /// Returns the counters of a browser's address for the action `what`, the address's own counter first.
    pub(crate) fn shared_counters(&self, what: &str, browser: &Browser) -> Vec<Shared> {
        self.counters_by(&self.realm.settings.throttle, what, browser)
    }

    /// The same for accounts that are made from there.
    pub(crate) fn sign_up_counters(&self, browser: &Browser) -> Vec<Shared> {
        self.counters_by(&sign_up::policy(&self.realm.settings.throttle), "sign-up", browser)
    }

    /// The only way to the counters, so that an address which is not counted is counted nowhere (BF-04).
    fn counters_by(&self, policy: &Policy, what: &str, browser: &Browser) -> Vec<Shared> {
        browser.counted.map_or_else(Vec::new, |address| policy.shared_by(&self.keyring.lookup, what, address))
    }

    /// Returns what a browser, or an application on its device, keeps once `user` has signed in there: strangers'
    /// failures elsewhere do not slow it down. Others who use the browser keep their proofs, and each account has one.
    pub(crate) fn remember_browser(&self, browser: &Browser, user: &User) -> Result<Secret, Fault> {
        let own = match self.proof_of(browser, user) {
            Some(proof) => proof,
            None => self.proof(user, &self.browser_name(user, entropy::salt()?)),
        };
        let others = proofs(browser).filter(|proof| *proof != own && !self.is_named_for(user, proof));
        let kept: Vec<String> = once(own).chain(others).take(MOST_KNOWN).map(|proof| base64url(&proof)).collect();
        Ok(Secret::new(kept.join(BETWEEN)))
    }

    /// Returns the name of this browser, if it is known to `user`.
    pub(crate) fn known_device(&self, browser: &Browser, user: &User) -> Option<String> {
        self.proof_of(browser, user).map(|proof| base64url(&proof[..16]))
    }

    fn proof_of(&self, browser: &Browser, user: &User) -> Option<Proof> {
        let is_ours = |proof: &Proof| proof.first_chunk().is_some_and(|name| same(&self.proof(user, name), proof));
        proofs(browser).find(is_ours)
    }

    /// Makes a proof, void once the password changes. The account's id is random: no other realm has one of that id.
    fn proof(&self, user: &User, name: &[u8; 16]) -> Proof {
        let password = user.password.as_deref().unwrap_or("");
        let tag = mac(&*self.keyring.device, &[user.id.as_str().as_bytes(), password.as_bytes(), name]);
        let mut proof = [0; 32];
        proof[..16].copy_from_slice(name);
        proof[16..].copy_from_slice(&tag[..16]);
        proof
    }

    /// Returns the name of a browser for `user`. The first half of its bytes stays as it was drawn; the second half
    /// tells us, and nobody else, whose it is: a proof that a new password made void is replaced by the next proof of
    /// the same account, and not a proof of another account.
    fn browser_name(&self, user: &User, mut name: [u8; 16]) -> [u8; 16] {
        let (drawn, whose) = name.split_at_mut(8);
        whose.copy_from_slice(&mac(&*self.keyring.device, &[b"whose", user.id.as_str().as_bytes(), drawn])[..8]);
        name
    }

    fn is_named_for(&self, user: &User, proof: &Proof) -> bool {
        proof.first_chunk().is_some_and(|name| same(&self.browser_name(user, *name), name))
    }
}

/// Returns the proofs that a browser sends, newest first. Leaves out parts that do not have the form of a proof, and
/// any beyond the number that a browser is given.
fn proofs(browser: &Browser) -> impl Iterator<Item = Proof> {
    let kept = browser.device.as_ref().map_or("", Secret::reveal);
    let parts = kept.split(BETWEEN).filter(|part| part.len() == PROOF_LENGTH);
    parts.filter_map(|part| from_base64url(part)?.try_into().ok()).take(MOST_KNOWN)
}
