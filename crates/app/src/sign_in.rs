//! Signing in with a password.

use crate::authorize::Scene;
use crate::browser::Browser;
use crate::flow::Flow;
use crate::passwords::{hashed_at, read, tell_of_unverifiable};
use crate::pledge::{Pledge, to_the_end};
use crate::settle::Ahead;
use crate::stakes::Stake;
use crate::stopwatch::{self, timed};
use crate::tally::Entry;
use crate::turnstile::Pass;
use crate::{App, Fault};
use hasher::{Coming, FairKey, Verified};
use rules::decision::Change;
use rules::events::Rejection;
use rules::login::attempt::{After, Before, Counters, Refusal, begin, confirm, judge, leave_open};
use rules::login::password::Password;
use rules::login::session::{Origin, Session, Started};
use rules::login::throttle::{Counted, Held, Seen, Shared, account_key, all_admit, crowd};
use rules::oauth::redirect::{Mode, Response};
use rules::people::User;
use rules::people::names::LoginKey;
use rules::secret::Secret;
use rules::{Decision, Fresh, Time};
use std::borrow::Cow;
use std::time::{Duration, Instant};
use store::tables::realms::Epoch;
use store::tables::sessions::WithUser;
use store::tables::{counters, users};
use zeroize::Zeroizing;

/// What was typed into the sign-in page.
pub struct Typed {
    login: String,
    password: Zeroizing<Vec<u8>>,
}

impl Typed {
    /// Takes a username or an address, and a password.
    pub fn new(login: &str, password: &[u8]) -> Self {
        Typed { login: login.to_owned(), password: Zeroizing::new(password.to_vec()) }
    }
}

/// A user who signed in.
#[derive(Debug)]
pub struct SignedIn {
    /// The session and its cookie.
    pub started: Started,
    /// By which this browser, or an application on its device, is known from now on.
    pub device: Secret,
    /// The user.
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
    /// Where it counts: for the account (its id, or a name that nobody has), and for the address.
    counters: Counters,
    user: Option<User>,
    /// Whether this browser has signed in to the account before.
    known: bool,
    password: &'a [u8],
    browser: &'a Browser,
    /// The flow that it belongs to, if it is a sign-in.
    flow: Option<&'a Flow>,
}

/// An attempt that was counted, and may be made.
struct Admitted {
    counted: Counted,
    /// Whether it goes behind others, because so many failed before.
    slowed: bool,
    /// The epoch at that moment.
    epoch: i64,
    /// How many more may be admitted beside it.
    more: i64,
}

/// What an attempt holds until it is judged and its count taken back, so that the next attempt finds it so: what it may
/// cost its address, and the place behind its account's turnstile.
struct Hold {
    stake: Option<Stake>,
    _pass: Pass,
}

/// An attempt whose password was compared.
struct Tried {
    proof: Verified,
    counted: Counted,
    _hold: Hold,
}

/// The longest that an answer waits because its attempt is given back first.
const GIVEN_BACK_WITHIN: Duration = Duration::from_secs(1);

impl App {
    /// Signs in a user who is on the way to `flow`. Unknown, disabled and wrong all take the same path, to its end.
    pub async fn sign_in(
        &self,
        flow: Flow,
        typed: Typed,
        browser: &Browser,
    ) -> Result<Result<SignedIn, Refusal>, Fault> {
        let (app, browser) = (self.clone(), browser.clone());
        to_the_end(|pledge| async move { app.try_in(&pledge, flow, &typed, &browser).await }).await
    }

    pub(crate) async fn try_in(
        &self,
        pledge: &Pledge,
        flow: Flow,
        typed: &Typed,
        browser: &Browser,
    ) -> Result<Result<SignedIn, Refusal>, Fault> {
        let tried = self.tried(pledge, flow, typed, browser).await;
        self.tally.sign_ins.one(match &tried {
            Ok(Ok(_)) => Entry::Success,
            Ok(Err(Refusal::Wrong)) => Entry::Refused,
            Ok(Err(Refusal::Wait(_))) => Entry::Throttled,
            Err(fault) => Entry::of(fault),
        });
        tried
    }

    /// Tries once more if another hash is stored by the end: another sign-in of the same user may have replaced it.
    /// What was proved must be proved of what is stored.
    async fn tried(
        &self,
        pledge: &Pledge,
        flow: Flow,
        typed: &Typed,
        browser: &Browser,
    ) -> Result<Result<SignedIn, Refusal>, Fault> {
        for last in [false, true] {
            if let Some(tried) = self.tried_once((pledge, last), &flow, typed, browser).await? {
                return Ok(tried);
            }
        }
        Ok(Err(Refusal::Wrong))
    }

    /// Returns `None` if the hash was replaced meanwhile and this is not the last try: nothing was decided.
    async fn tried_once(
        &self,
        (pledge, last): (&Pledge, bool),
        flow: &Flow,
        typed: &Typed,
        browser: &Browser,
    ) -> Result<Option<Result<SignedIn, Refusal>>, Fault> {
        let (flow, login) = self.asked_of(flow, typed).await?;
        let flow = &*flow;
        let attempt = &Attempt { flow: Some(flow), ..self.attempt(&login, &typed.password, browser).await? };
        let tried = match self.hash(pledge, attempt).await? {
            Ok(tried) => tried,
            Err(refusal) => return Ok(Some(Err(refusal))),
        };
        let judged = self.judged(attempt, &tried, flow, last).await;
        let reply = self.unless_right(&tried, judged).await?;
        Ok(match reply {
            Err(refusal) => refusal.map(Err),
            Ok((started, user, respond)) => {
                self.leave_replaced(browser, &started.session).await;
                let user = if tried.proof.rehash && self.realm.settings.hash_upgrade {
                    self.rehashed(user, &typed.password, browser).await
                } else {
                    user
                };
                let device = self.remember_browser(browser, &user)?;
                let proved = Some(started.session.id.clone());
                let go_on = || Next::GoOn(Flow { expects: None, proved, ..flow.clone() });
                let next = respond.map_or_else(go_on, Next::Respond);
                Some(Ok(SignedIn { started, device, user, next }))
            }
        })
    }

    /// Decides whether the user is let in, and what comes next if that is known at once. `None` as above.
    async fn judged(
        &self,
        attempt: &Attempt<'_>,
        Tried { proof, counted, .. }: &Tried,
        flow: &Flow,
        last: bool,
    ) -> Result<Result<(Started, User, Option<Response>), Option<Refusal>>, Fault> {
        let expected =
            flow.expects.as_ref().is_none_or(|who| attempt.user.as_ref().is_some_and(|user| user.id == *who));
        // A fact like the others: an application that is changed meanwhile gets what it may have by then.
        let scene = &Ahead::of(self.scene_of(flow).await?);
        let sid = attempt.browser.session.as_ref().map(|cookie| &cookie.id);
        self.settle(|now, fresh| async move {
            let (user, before) = self.ask((users::ByLogin(attempt.key.as_ref()), WithUser(sid))).await?;
            // What was proved is the password of the account as it stood before the hash.
            let same = user.as_ref().map(|user| &user.password) == attempt.user.as_ref().map(|user| &user.password);
            if proof.ok && !same && !last {
                // It is tried once more, and counted then.
                return Ok(Decision::refuse(None).and(Change::GiveBack(counted.clone())));
            }
            let before = self.prove(attempt.browser, before, now);
            let scene = scene.or(|| self.scene_of(flow)).await?;
            let origin = attempt.browser.origin.by_way_of(scene.as_ref().map(|scene| &scene.client.id));
            let after = After {
                user: user.as_ref(),
                matches: proof.ok && expected && same,
                counters: &attempt.counters,
                before: before.as_ref().map(|(session, _)| session),
                origin: &origin,
            };
            let judged = judge(&after, &self.realm.settings, &self.keyring.session, (now, &fresh));
            let followed = self.follow((judged, user), scene.as_ref(), flow, (now, &fresh)).await?;
            Ok(Decision { changes: followed.changes, reply: followed.reply.map_err(Some) })
        })
        .await
    }

    /// Gives back an attempt that ends in a fault although its password was right: its maker did not fail, and success
    /// would have forgotten earlier failures, too; also if nobody knows whether that was committed. A wrong attempt
    /// stays counted whatever became of its answer. The two write different rows: an attacker who can make only the
    /// rows of a wrong one unwritable (a counter of their address that many wait for, say) would guess for free,
    /// because a fault would tell as much.
    async fn unless_right<T>(&self, tried: &Tried, done: Result<T, Fault>) -> Result<T, Fault> {
        if done.is_err() && tried.proof.ok {
            let giving = self.settle(|_, _| async {
                Ok(Decision::<(), ()>::accept(()).and(Change::GiveBack(tried.counted.clone())))
            });
            // If this cannot be written either, the attempt stays counted.
            if !matches!(tokio::time::timeout(GIVEN_BACK_WITHIN, giving).await, Ok(Ok(_))) {
                tracing::debug!("an attempt with the right password could not be given back");
            }
        }
        done
    }

    /// Returns whose password is asked for. A page that expects a user asks for theirs, whatever name comes with it,
    /// such as one that a password manager filled in: a failure counts for that user, and not for an account that
    /// nobody was asked about. A user who wants to be another says so first (`/login/choose`): then nobody is expected,
    /// as after a removal.
    async fn asked_of<'a>(&self, flow: &'a Flow, typed: &'a Typed) -> Result<(Cow<'a, Flow>, Cow<'a, str>), Fault> {
        let (flow, expected) = self.who_is_expected(flow).await?;
        let login = expected.map_or(Cow::Borrowed(&*typed.login), |user| Cow::Owned(user.username));
        Ok((flow, login))
    }

    /// Finds the account and its counters. The counter is the account's, however its name was written (BF-01).
    async fn attempt<'a>(&self, login: &str, password: &'a [u8], browser: &'a Browser) -> Result<Attempt<'a>, Fault> {
        let key = LoginKey::of(login);
        let user = self.ask(users::ByLogin(key.as_ref())).await?;
        let account = match (&user, &key) {
            (Some(user), _) => user.id.0.clone(),
            (None, Some(key)) => format!("nobody:{}", key.as_str()),
            // What cannot be a name belongs to nobody either, but two such texts are not the same nobody.
            (None, None) => format!("no name:{login}"),
        };
        let device = user.as_ref().and_then(|user| self.known_device(browser, user));
        let counters = Counters {
            account: account_key(&self.keyring.lookup, &account, device.as_deref()),
            shared: self.shared_counters("sign-in", browser),
        };
        Ok(Attempt { key, counters, user, known: device.is_some(), password, browser, flow: None })
    }

    /// Counts the attempt as failed, once it may be made beside those in flight. While it waits for others of its
    /// address it has no place behind the turnstile: that would be taken from the account's owner.
    async fn admit(&self, attempt: &Attempt<'_>) -> Result<Result<(Admitted, Coming, Hold), Refusal>, Fault> {
        // For a browser that is known to the account, its address does not count.
        let shared: &[Shared] = if attempt.known { &[] } else { &attempt.counters.shared };
        let keys = shared.iter().map(|one| one.key).collect();
        let mut hopeful = self.stakes.hopeful(keys, self.patience());
        loop {
            let stake = timed(stopwatch::Stage::Turnstile, hopeful.stake()).await?;
            let pass = self.turnstile.pass(attempt.counters.account, self.patience());
            let pass = timed(stopwatch::Stage::Turnstile, pass).await?;
            // A commit away from its hash: if the disk stands still, requests that come to a door are told at once.
            let coming = self.hasher.coming();
            match self.count(attempt, shared, &stake).await? {
                Ok(admitted) => {
                    stake.let_in(admitted.more);
                    return Ok(Ok((admitted, coming, Hold { stake: Some(stake), _pass: pass })));
                }
                Err(Held::Wait(wait)) => return Ok(Err(Refusal::Wait(wait))),
                Err(Held::Crowded(key, left)) => hopeful.step_back(stake, key, left),
            }
        }
    }

    async fn count(
        &self,
        attempt: &Attempt<'_>,
        shared: &[Shared],
        stake: &Stake,
    ) -> Result<Result<Admitted, Held>, Fault> {
        let (key, policy) = (attempt.counters.account, &self.realm.settings.throttle);
        let keys: Vec<_> = [key].into_iter().chain(shared.iter().map(|one| one.key)).collect();
        let keys = &keys[..];
        self.settle(|now, _| async move {
            let beside = stake.beside();
            let (counters, found) = self.ask((counters::Each(keys), Epoch)).await?;
            let account = counters.first().copied().flatten();
            let seen = crowd(Seen::all(shared, counters.into_iter().skip(1), beside), now);
            let (slowed, epoch) = (policy.slows(account, &seen, now), self.epoch_of(found)?);
            let more = all_admit(&seen, now).unwrap_or(0);
            let begun = begin(&Before { key, account, shared: &seen, policy }, now);
            Ok(begun.map(|counted| Admitted { counted, slowed, epoch, more }))
        })
        .await
    }

    /// Counts the attempt, then hashes. Holds nothing of the database meanwhile.
    async fn hash(&self, _: &Pledge, attempt: &Attempt<'_>) -> Result<Result<Tried, Refusal>, Fault> {
        let (Admitted { counted, slowed, epoch, .. }, coming, mut hold) = match self.admit(attempt).await? {
            Ok(admitted) => admitted,
            Err(refusal) => {
                let Origin { client, .. } = self.origin_of(attempt.flow, attempt.browser).await;
                self.reject(Rejection::Throttled(client)).await;
                return Ok(Err(refusal));
            }
        };
        let key = self.fair_key(attempt.browser);
        let key = if slowed { key.throttled() } else { key };
        // Too long or not text: it is nobody's password, and costs what every wrong one does.
        let password = Password::read(attempt.password).ok();
        let user = attempt.user.as_ref().filter(|user| user.is_enabled());
        let stored = user.and_then(|user| Some((self.subject(&user.id), read(user.password.as_deref()?)?)));
        if stored.is_none() && user.is_some_and(|user| user.password.is_some()) {
            self.hashes.met();
        }
        drop(coming);
        // With workers there are two queues, and two turns.
        let (asked, two_turns) = (Instant::now(), self.hasher.has_workers());
        let (verified, begun) = match (&stored, &password) {
            (Some((subject, stored)), Some(password)) => {
                match hashed_at(self.hasher.verify_of(&key, *subject, stored, password.as_bytes())).await {
                    // It is nobody's password here, and takes as long as for a name that does not exist.
                    (Err(why @ (hasher::Refusal::Unsupported(_) | hasher::Refusal::Limit(_))), _) => {
                        tell_of_unverifiable(user.map(|user| user.id.as_str()), &why);
                        self.hashes.met();
                        self.decoy(&key, attempt, Some(password)).await
                    }
                    done => done,
                }
            }
            (_, password) => self.decoy(&key, attempt, password.as_ref()).await,
        };
        match verified {
            Ok(proof) => {
                let turn = begun.filter(|_| !two_turns).unwrap_or(asked);
                if proof.ok {
                    // It costs its address nothing: attempts behind it there need not wait until its answer is even
                    // with others.
                    hold.stake = None;
                }
                let tried = Tried { proof, counted, _hold: hold };
                let evened = self.even_out((asked, turn), epoch).await;
                self.unless_right(&tried, evened).await?;
                Ok(Ok(tried))
            }
            Err(refusal) => {
                self.not_hashed(attempt, &counted, matches!(refusal, hasher::Refusal::Unconfirmed { .. })).await?;
                Err(refusal.into())
            }
        }
    }

    /// Costs what a wrong password does, where there is no hash to compare it with; also returns when its turn came.
    async fn decoy(
        &self,
        key: &FairKey,
        attempt: &Attempt<'_>,
        password: Option<&Password>,
    ) -> (Result<Verified, hasher::Refusal>, Option<Instant>) {
        let salt = self.decoy_salt(attempt.key.as_ref());
        let password = password.map_or(&b""[..], |password| password.as_bytes());
        hashed_at(self.hasher.decoy(key, salt, password)).await
    }

    /// Settles an attempt without an outcome: it counts if it was made, and is given back if nothing was tried.
    async fn not_hashed(&self, attempt: &Attempt<'_>, counted: &Counted, made: bool) -> Result<(), Fault> {
        let origin = &self.origin_of(attempt.flow.filter(|_| made), attempt.browser).await;
        let settled = self.settle(|now, _| async move {
            let (user, counters) = (attempt.user.as_ref(), &attempt.counters);
            let after = After { user, matches: false, counters, before: None, origin };
            Ok(match made {
                true => leave_open(&after, now),
                false => Decision::accept(()).and(Change::GiveBack(counted.clone())),
            })
        });
        settled.await.map(|_| ())
    }

    /// Continues a successful attempt to a code, in the same batch, if nothing more has to be asked.
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
        // A page that posts by itself comes one redirect later: loading it again must not send the password again.
        let at_once = scene.filter(|scene| scene.request.back.mode != Mode::FormPost);
        let Some(scene) = at_once else { return Ok(Decision { changes, reply: Ok((started, user, None)) }) };
        let flow = Flow { proved: Some(started.session.id.clone()), ..flow.clone() };
        let progress = flow.progress(flow.proved.as_ref(), false);
        let respond = match self.complete(scene, progress, (&started, &user), (now, fresh)).await? {
            Err(_step) => None,
            Ok(issued) => {
                changes.extend(issued.changes);
                Some(issued.reply.unwrap_or_else(|error| scene.request.back.error(&self.realm.issuer, error)))
            }
        };
        Ok(Decision { changes, reply: Ok((started, user, respond)) })
    }

    /// Checks that a signed-in user knows their password; counted like an attempt to sign in. Returns the user as they
    /// were when it was verified.
    pub(crate) async fn knows_password(
        &self,
        pledge: &Pledge,
        (user, session): (&User, &Session),
        password: &[u8],
        browser: &Browser,
    ) -> Result<Result<User, Refusal>, Fault> {
        let mut attempt = self.attempt(&user.username, password, browser).await?;
        attempt.user = attempt.user.filter(|found| found.id == user.id);
        let tried = match self.hash(pledge, &attempt).await? {
            Ok(tried) => tried,
            Err(refusal) => return Ok(Err(refusal)),
        };
        let (counters, matches) = (&attempt.counters, tried.proof.ok);
        let known = self
            .settle(|now, _| async move {
                let before = Some(session);
                let after = After { user: Some(user), matches, counters, before, origin: &browser.origin };
                Ok(confirm(&after, now))
            })
            .await;
        // Without an account nothing matches.
        Ok(self.unless_right(&tried, known).await?.map(|()| attempt.user.unwrap_or_else(|| user.clone())))
    }
}
