//! Books of what was handed out, what it leaned on and what has ended it, kept without asking the rules.

use rules::id::{ClientId, FamilyId, SessionId, UserId};
use rules::login::cookie::Cookie;
use rules::oauth::code::Granted;
use rules::oauth::scope::Scope;
use rules::oauth::token::AccessClaims;
use rules::{Secret, Time};
use std::collections::BTreeMap;

/// What must hold whatever happens; each has a test of its name in `sequences`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Law {
    CodeYieldsOnce,
    EndedIsDead,
    DisabledIsDead,
    NothingRevives,
    NothingWidens,
    OneSuccessor,
    CookieProves,
    ConsentIsNeeded,
    SignInIsAsAsked,
    ExpectedPerson,
    PromptNoneIsSilent,
    DeviceYieldsOnce,
    AttemptsSettle,
}

/// Everything that descends, or may come to descend, from one approval.
pub struct Line {
    pub client: ClientId,
    pub user: UserId,
    pub session: SessionId,
    pub granted: Granted,
    /// Whether it leans on a consent.
    pub by_consent: bool,
    /// Whether it came from a device's request.
    pub device: bool,
    /// When its first tokens were handed out.
    pub began: Option<Time>,
    /// Its refresh tokens, oldest first, with the time of each.
    pub chain: Vec<(Secret, Time)>,
    /// What ended it.
    pub ended: Option<&'static str>,
    /// It was seen dead.
    pub dead: bool,
}

impl Line {
    /// Whether it outlives its session.
    pub fn is_offline(&self) -> bool {
        self.granted.scope.has("offline_access")
    }
    /// The rung whose turn it is, at `now`, to yield the last one: itself, or its immediate predecessor within `grace`.
    pub fn is_outdated(&self, rung: usize, length: usize, deadline: Time, now: Time) -> bool {
        let graced = rung + 2 == length && !deadline.has_come(now);
        rung + 1 != length && !graced
    }
}

/// A code, with what its client needs to redeem it.
pub struct IssuedCode {
    pub text: Secret,
    pub family: FamilyId,
    pub redirect: String,
    pub verifier: String,
    pub expires: Time,
    pub used: bool,
    pub yielded: bool,
    pub dead: bool,
}

/// An access token.
pub struct IssuedAccess {
    pub claims: AccessClaims,
    pub opaque: Option<Secret>,
    pub family: Option<FamilyId>,
    /// What ended it, where it was not its line that ended.
    pub ended: Option<&'static str>,
    pub dead: bool,
}

/// A sign-in.
pub struct Visit {
    pub user: UserId,
    pub started: Time,
    pub auth_time: Time,
    pub used: Time,
    pub ended: Option<&'static str>,
    pub dead: bool,
}

/// A device's request.
pub struct AskedDevice {
    pub code: Secret,
    pub client: ClientId,
    pub expires: Time,
    pub interval_s: i64,
    /// What ended it before it was redeemed.
    pub ended: Option<&'static str>,
    pub polled: Option<Time>,
    pub line: Option<FamilyId>,
    pub answered: bool,
    pub yielded: bool,
}

/// The books.
#[derive(Default)]
pub struct Ledger {
    pub lines: BTreeMap<FamilyId, Line>,
    pub codes: Vec<IssuedCode>,
    pub access: Vec<IssuedAccess>,
    /// Every refresh token: its line and its place in the chain.
    pub rungs: Vec<(FamilyId, usize)>,
    pub visits: BTreeMap<SessionId, Visit>,
    /// Every cookie, and whether a newer one took over.
    pub cookies: Vec<(Cookie, bool)>,
    pub devices: Vec<AskedDevice>,
    /// What people agreed to and did not take back.
    pub agreed: BTreeMap<(UserId, ClientId), Scope>,
    /// Laws that were broken, and how.
    pub breaches: Vec<(Law, String)>,
    /// How often each thing happened.
    pub met: BTreeMap<&'static str, usize>,
}

impl Ledger {
    /// Notes that `law` was broken.
    pub fn breach(&mut self, law: Law, how: impl Into<String>) {
        self.breaches.push((law, how.into()));
    }
    /// Notes that `law` was broken unless `holds`.
    pub fn hold(&mut self, law: Law, holds: bool, how: &str) {
        if !holds {
            self.breach(law, how);
        }
    }
    /// Counts what happened.
    pub fn meet(&mut self, what: &'static str) {
        *self.met.entry(what).or_default() += 1;
    }
    /// Ends every line that `which` names.
    pub fn end_lines(&mut self, why: &'static str, which: impl Fn(&Line) -> bool) {
        for line in self.lines.values_mut().filter(|line| which(line)) {
            line.ended.get_or_insert(why);
        }
    }
    /// Ends a session: what it carries ends too, but for offline lines that have begun, or that a device may begin: it asks
    /// later than whoever allowed it has signed out.
    pub fn end_visit(&mut self, id: &SessionId, why: &'static str) {
        if let Some(visit) = self.visits.get_mut(id) {
            visit.ended.get_or_insert(why);
        }
        let outlives = |line: &Line| line.is_offline() && (line.device || line.began.is_some());
        self.end_lines(why, |line| line.session == *id && !outlives(line));
    }
    /// Ends all that somebody holds, but for one session and what lives and dies with it.
    pub fn end_all_of(&mut self, user: &UserId, except: Option<&SessionId>, why: &'static str) {
        let theirs =
            |(id, visit): (&SessionId, &Visit)| (visit.user == *user && Some(id) != except).then(|| id.clone());
        let others: Vec<SessionId> = self.visits.iter().filter_map(theirs).collect();
        others.iter().for_each(|id| self.end_visit(id, why));
        self.end_lines(why, |line| {
            let spared =
                except == Some(&line.session) && if line.began.is_some() { !line.is_offline() } else { !line.device };
            line.user == *user && !spared
        });
    }
    /// Ends all that an application holds. How old its own tokens are is known to the second.
    pub fn end_all_of_client(&mut self, client: &ClientId, why: &'static str) {
        self.end_lines(why, |line| line.client == *client);
        for device in self.devices.iter_mut().filter(|device| device.client == *client) {
            device.ended.get_or_insert(why);
        }
        let theirs = |token: &&mut IssuedAccess| token.claims.client_id == client.0;
        for token in self.access.iter_mut().filter(theirs) {
            token.ended.get_or_insert(why);
        }
    }
    /// A session was used.
    pub fn use_visit(&mut self, id: &SessionId, now: Time) {
        if let Some(visit) = self.visits.get_mut(id) {
            visit.used = now;
        }
    }
}
