//! Sessions, and the one gate that starts or raises one.

use crate::decision::{Change, Decision, Never, Standing};
use crate::events::{Event, Kind};
use crate::fresh::Fresh;
use crate::id::{ClientId, SessionId, UserId};
use crate::login::cookie::{Cookie, Seal};
use crate::people::User;
use crate::realm::{SKEW, Settings, is_believable};
use crate::secret::Handle;
use crate::time::{Span, Time};

/// A sign-in at this provider, in one browser.
#[derive(Clone, Debug)]
pub struct Session {
    /// The `sid`: not a secret.
    pub id: SessionId,
    /// The hash of the cookie's secret half.
    pub handle: Handle,
    /// The user to whom it belongs.
    pub user: UserId,
    /// When the user last authenticated.
    pub auth_time: Time,
    /// How the user authenticated (RFC 8176).
    pub amr: Vec<String>,
    /// When it began.
    pub created: Time,
    /// When it was last used, to within the touching interval.
    pub last_seen: Time,
    /// When it ends at the latest.
    pub expires: Time,
    /// The browser's name for itself, shortened.
    pub agent: String,
    /// The address that the sign-in came from.
    pub address: String,
    /// When it was ended.
    pub ended_at: Option<Time>,
}

/// Where a request comes from.
#[derive(Clone, Debug, Default)]
pub struct Origin {
    /// The User-Agent header, as sent.
    pub agent: String,
    /// The client's address.
    pub address: String,
    /// The client that the user is on the way to, or whose screen the user is on: as found, whatever a request says.
    pub client: Option<ClientId>,
}

impl Origin {
    /// Returns the same origin by way of `client`, where there is one.
    pub fn by_way_of(&self, client: Option<&ClientId>) -> Self {
        Origin { client: client.or(self.client.as_ref()).cloned(), ..self.clone() }
    }
    /// Returns an event for something that a user did from there.
    pub fn event(&self, kind: Kind, user: &UserId, at: Time) -> Event {
        let event = Event::new(kind, at).user(user).address(&self.address);
        Event { client: self.client.clone(), ..event }
    }
}

/// The means by which a user authenticated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// A password.
    Password,
    /// The one-time set-up link, with the choice of a password.
    Setup,
}

impl Method {
    /// Its name in RFC 8176.
    pub fn amr(self) -> &'static str {
        match self {
            Method::Password | Method::Setup => "pwd",
        }
    }
}

/// The authentication context class that a session satisfies (OpenID Connect Core §2, `acr`): one factor.
pub const ACR_SINGLE: &str = "1";

/// How recently a user must have authenticated where a session alone is not enough: for a stranger's link to a page
/// that waits for a yes (DV-04), and for what an account is recovered by (OWASP ASVS 5.0, 7.5.1).
pub const FRESH: Span = Span::minutes(10);

impl Session {
    /// Whether its owner authenticated a short time ago.
    pub fn is_fresh(&self, now: Time) -> bool {
        is_believable(self.auth_time, now) && now.since(self.auth_time) < FRESH
    }
    /// Whether it may be used.
    pub fn is_live(&self, settings: &Settings, now: Time) -> bool {
        self.lasts(settings, now) && self.is_believable(now)
    }
    /// Whether none of its dates was set by a clock that was ahead.
    pub fn is_believable(&self, now: Time) -> bool {
        let dated = [self.auth_time, self.created, self.last_seen];
        dated.into_iter().all(|dated| is_believable(dated, now))
    }
    /// Whether there is anything to end: one dated by a clock that was ahead is unusable now, but may not be later, and
    /// one that has just expired may be live at another node.
    pub fn can_end(&self, settings: &Settings, now: Time) -> bool {
        self.lasts(settings, settings.by_the_slowest(now))
    }
    /// Whether it was not ended, and is not over at `at`.
    pub fn lasts(&self, settings: &Settings, at: Time) -> bool {
        self.ended_at.is_none() && !self.ends(settings).has_come(at)
    }
    /// When it is over, if nobody uses it before.
    pub fn ends(&self, settings: &Settings) -> Time {
        self.expires.min(self.last_seen + settings.session_idle)
    }
    /// Returns the change that notes its use, if the last note is old enough: an unused session lasts at least twice
    /// that long.
    pub fn touch(&self, settings: &Settings, now: Time) -> Option<Change> {
        let every = settings.touch_every.min(Span(settings.session_idle.0 / 2));
        (now.since(self.last_seen) >= every).then(|| Change::TouchSession { session: self.id.clone(), at: now })
    }
    /// The context class that it satisfies.
    pub fn acr(&self) -> &'static str {
        ACR_SINGLE
    }
}

impl Session {
    /// Requires that the session lasts, under the secret that was proved, and that its owner may sign in: an ending that
    /// was acknowledged before holds, although a copy of the cookie was in flight.
    pub fn stands(&self) -> Change {
        Change::Stands(Standing {
            user: Some(self.user.clone()),
            session: Some(self.id.clone()),
            handle: Some(self.handle),
            ..Standing::default()
        })
    }
}

/// Returns the session that a cookie proves: the secret is current, the session live, and its user enabled.
pub fn proved<'a>(
    cookie: &Cookie,
    found: Option<&'a (Session, User)>,
    settings: &Settings,
    now: Time,
) -> Option<&'a (Session, User)> {
    named(cookie, found).filter(|(session, _)| session.is_live(settings, now))
}

/// As [`proved`], but for ending the session: one that was dated by a clock that was ahead can end, too.
pub fn proved_to_end<'a>(
    cookie: &Cookie,
    found: Option<&'a (Session, User)>,
    settings: &Settings,
    now: Time,
) -> Option<&'a (Session, User)> {
    named(cookie, found).filter(|(session, _)| session.can_end(settings, now))
}

/// Returns a session that was proved when it was `seen`, as it is now, if the same secret still proves it.
pub fn still_proved(
    seen: &Session,
    found: Option<(Session, User)>,
    settings: &Settings,
    now: Time,
) -> Option<(Session, User)> {
    let still = |(session, user): &(Session, User)| session.id == seen.id && holds((session, user), seen.handle);
    found.filter(|found| still(found) && found.0.is_live(settings, now))
}

fn named<'a>(cookie: &Cookie, found: Option<&'a (Session, User)>) -> Option<&'a (Session, User)> {
    found.filter(|(session, user)| session.id == cookie.id && holds((session, user), cookie.secret.handle()))
}

/// Whether `secret` is the session's current secret, and `user` its owner and enabled.
fn holds((session, user): (&Session, &User), secret: Handle) -> bool {
    session.handle == secret && session.user == user.id && user.is_enabled()
}

/// A session that was started or raised, with the cookie that proves it from now on.
#[derive(Clone, Debug)]
pub struct Started {
    /// The session.
    pub session: Session,
    /// Its cookie.
    pub cookie: Cookie,
}

/// Why no session was started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// The account is disabled.
    Disabled,
}

/// A request for a session: for whom, by what proof, and what this browser held before.
pub struct Entry<'a> {
    /// Whose session is wanted.
    pub user: &'a User,
    /// How the user authenticated.
    pub method: Method,
    /// The live session of this browser, whoever owns it.
    pub before: Option<&'a Session>,
    /// Where the request comes from.
    pub origin: &'a Origin,
}

/// Starts or raises a session; nothing else does. The cookie's secret is new every time. Another user's session in the
/// same browser ends, and so does a session of this user that would be dated later than is believed. The user must
/// still be enabled when the batch commits.
pub fn enter(
    entry: &Entry<'_>,
    settings: &Settings,
    seal: &Seal,
    (now, fresh): (Time, &Fresh),
) -> Decision<Started, Refused> {
    if !entry.user.is_enabled() {
        return Decision::refuse(Refused::Disabled);
    }
    // A password that was changed since it was proved proves nothing.
    let password = entry.user.password.clone().map(|password| (entry.user.id.clone(), password.into()));
    let standing = Change::Stands(Standing { user: Some(entry.user.id.clone()), password, ..Standing::default() });
    // Later than the last time, whatever the nodes' clocks say: `auth_time` orders the secrets of a session.
    let later = |before: &Session| now.max(before.auth_time + Span(1));
    match entry.before {
        Some(before) if before.user == entry.user.id && is_believable(later(before), now) => {
            let cookie = Cookie::make(&before.id, seal, fresh);
            let session = Session {
                handle: cookie.secret.handle(),
                auth_time: later(before),
                last_seen: now,
                amr: vec![entry.method.amr().into()],
                ..before.clone()
            };
            let event = entry.origin.event(Kind::Reauthenticated, &session.user, now).session(&session.id);
            let started = Started { cookie, session: session.clone() };
            Decision::accept(started)
                .and(standing)
                .and(Change::RaiseSession { session: Box::new(session), was: before.handle })
                .and(Change::Record(event))
        }
        other => {
            let cookie = Cookie::make(&SessionId(fresh.ordered("sid", now)), seal, fresh);
            let session = begin(entry, &cookie, settings, now);
            let event = entry.origin.event(Kind::SignedIn, &session.user, now).session(&session.id);
            let replaced = other.map(|before| {
                let event = entry.origin.event(Kind::SignedOut, &before.user, now).session(&before.id);
                Change::Record(event.detail("replaced_by", session.id.as_str()))
            });
            let started = Started { cookie, session: session.clone() };
            Decision::accept(started)
                .with(other.map(|before| Change::EndSession { session: before.id.clone(), at: now }))
                .and(standing)
                .and(Change::StartSession(Box::new(session)))
                .with(replaced)
                .and(Change::Record(event))
        }
    }
}

/// Gives a session a new secret when its owner signs everybody else out, which includes anybody with a copy of its
/// cookie. Nothing was proved, so `auth_time` stays, but for the millisecond that orders the secrets of a session.
pub fn renew(before: &Session, seal: &Seal, now: Time, fresh: &Fresh) -> Decision<Started, Never> {
    let cookie = Cookie::make(&before.id, seal, fresh);
    let (handle, auth_time) = (cookie.secret.handle(), before.auth_time + Span(1));
    let session = Session { handle, auth_time, last_seen: now, ..before.clone() };
    let started = Started { cookie, session: session.clone() };
    Decision::accept(started).and(Change::RaiseSession { session: Box::new(session), was: before.handle })
}

fn begin(entry: &Entry<'_>, cookie: &Cookie, settings: &Settings, now: Time) -> Session {
    Session {
        id: cookie.id.clone(),
        handle: cookie.secret.handle(),
        user: entry.user.id.clone(),
        auth_time: now,
        amr: vec![entry.method.amr().into()],
        created: now,
        last_seen: now,
        expires: now + settings.session_absolute,
        agent: shorten(&entry.origin.agent, 200),
        address: shorten(&entry.origin.address, 64),
        ended_at: None,
    }
}

/// Returns at most `limit` bytes of printable text.
fn shorten(text: &str, limit: usize) -> String {
    let mut short = String::new();
    for c in text.chars().filter(|c| !c.is_control()) {
        if short.len() + c.len_utf8() > limit {
            break;
        }
        short.push(c);
    }
    short
}

/// Ends a session. Whatever depends on it (families without `offline_access`) is dead with it.
pub fn leave(session: &Session, address: &str, now: Time) -> Decision<(), Never> {
    let event = Event::new(Kind::SignedOut, now).user(&session.user).session(&session.id).address(address);
    Decision::accept(()).and(Change::EndSession { session: session.id.clone(), at: now }).and(Change::Record(event))
}

/// Ends all sessions of a user but one, and everything that was issued to the user, codes in flight included.
///
/// The order matters where a statement waits only for rows that it finds, as on PostgreSQL. Sessions end before device
/// approvals are looked for: an approval holds its session's row until it is there, and one that is missed would
/// outlive the session. A code that is missed would not: it is worth nothing without its session. What tokens come from
/// goes first: a client that redeems it meanwhile holds its row, and what it got is there when families end.
pub fn end_all_but(user: &UserId, except: Option<&SessionId>, code_ttl: Span, at: Time) -> Vec<Change> {
    vec![
        // Code ids have the time of the node that issued them, whose clock may be as far behind as ours is ahead.
        Change::BurnCodesOf { user: user.clone(), since: at - code_ttl - SKEW - SKEW, at },
        Change::EndSessionsOf { user: user.clone(), except: except.cloned(), at },
        Change::DropApprovalsOf { user: user.clone(), client: None },
        Change::RevokeFamiliesOf { user: user.clone(), client: None, except: None, at },
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::people::user::tests::person as user;
    use crate::realm::SKEW;

    fn enter_as(user: &User, before: Option<&Session>, now: Time, seed: u8) -> Decision<Started, Refused> {
        let entry = Entry { user, method: Method::Password, before, origin: &Origin::default() };
        enter(&entry, &Settings::default(), &Seal::new([0; 32]), (now, &Fresh::new([seed; 32])))
    }

    #[test]
    fn signing_in_again_changes_the_cookie_and_keeps_the_session() {
        let alice = user("alice");
        let first = enter_as(&alice, None, Time(1), 1).reply.expect("starts");
        let again = enter_as(&alice, Some(&first.session), Time(2), 2).reply.expect("raises");
        assert_eq!(first.session.id, again.session.id);
        assert!(first.session.handle != again.session.handle);
        assert_eq!(again.session.auth_time, Time(2));
    }

    #[test]
    fn another_person_in_the_same_browser_ends_the_first_session() {
        let first = enter_as(&user("alice"), None, Time(1), 1).reply.expect("starts");
        let other = enter_as(&user("bob"), Some(&first.session), Time(2), 2);
        assert!(
            other
                .changes
                .iter()
                .any(|c| matches!(c, Change::EndSession { session, .. } if *session == first.session.id))
        );
        // red without `replaced` in `enter`: nobody could tell when the first session ended.
        let ended = other.changes.iter().find_map(|change| match change {
            Change::Record(event) if event.kind == Kind::SignedOut => Some(event),
            _ => None,
        });
        let (ended, started) = (ended.expect("a line of the end"), other.reply.as_ref().expect("starts"));
        assert_eq!((ended.user.as_ref(), ended.session.as_ref()), (Some(&first.session.user), Some(&first.session.id)));
        assert_eq!(ended.detail["replaced_by"], started.session.id.as_str());
        assert!(started.session.id != first.session.id);
    }

    #[test]
    fn the_way_by_which_somebody_came_is_told_and_the_last_application_counts() {
        // red without the client in `Origin::event`.
        let bare = Origin { address: "192.0.2.1".into(), ..Origin::default() };
        let (shop, alice) = (bare.by_way_of(Some(&"shop".into())), user("alice"));
        for (origin, client) in [
            (bare.clone(), None),
            (bare.by_way_of(None), None),
            (shop.clone(), Some("shop")),
            (shop.by_way_of(None), Some("shop")),
            (shop.by_way_of(Some(&"wiki".into())), Some("wiki")),
        ] {
            let entry = Entry { user: &alice, method: Method::Password, before: None, origin: &origin };
            let at = (Time(1), &Fresh::new([1; 32]));
            let entered = enter(&entry, &Settings::default(), &Seal::new([0; 32]), at);
            let told = entered.changes.iter().find_map(|change| match change {
                Change::Record(event) => Some((event.client.as_ref().map(ClientId::as_str), event.address.as_deref())),
                _ => None,
            });
            assert_eq!(told, Some((client, Some("192.0.2.1"))));
        }
    }

    #[test]
    fn a_disabled_person_gets_no_session_and_no_change() {
        let mut alice = user("alice");
        alice.disabled_at = Some(Time(0));
        let decision = enter_as(&alice, None, Time(1), 1);
        assert!(decision.reply.is_err() && decision.changes.is_empty());
    }

    #[test]
    fn an_old_cookie_proves_nothing() {
        let alice = user("alice");
        let first = enter_as(&alice, None, Time(1), 1).reply.expect("starts");
        let raised = enter_as(&alice, Some(&first.session), Time(2), 2).reply.expect("raises");
        let found = (raised.session, alice);
        let settings = Settings::default();
        assert!(proved(&raised.cookie, Some(&found), &settings, Time(3)).is_some());
        assert!(proved(&first.cookie, Some(&found), &settings, Time(3)).is_none());
        assert!(proved_to_end(&first.cookie, Some(&found), &settings, Time(3)).is_none());
        let still = |seen: &Session| still_proved(seen, Some(found.clone()), &settings, Time(3)).is_some();
        assert!(still(&found.0) && !still(&first.session));
    }

    #[test]
    fn what_a_clock_dated_that_was_ahead_is_not_used_and_can_end() {
        // red without each of the three times in `is_live`; with `is_live` in `proved_to_end`.
        let (settings, alice, now) = (Settings::default(), user("alice"), Time(0));
        let Started { session, cookie } = enter_as(&alice, None, now, 1).reply.expect("starts");
        let believed = now + SKEW + SKEW;
        for (dated, live) in [(believed, true), (believed + Span(1), false), (now + Span::days(365), false)] {
            for session in [
                Session { auth_time: dated, ..session.clone() },
                Session { created: dated, ..session.clone() },
                Session { last_seen: dated, ..session.clone() },
            ] {
                let found = (session, alice.clone());
                assert_eq!(found.0.is_live(&settings, now), live, "{found:?}");
                assert_eq!(proved(&cookie, Some(&found), &settings, now).is_some(), live, "{found:?}");
                assert_eq!(still_proved(&found.0, Some(found.clone()), &settings, now).is_some(), live, "{found:?}");
                assert!(proved_to_end(&cookie, Some(&found), &settings, now).is_some(), "{found:?}");
            }
        }
    }

    #[test]
    fn a_session_that_would_be_dated_too_late_makes_way() {
        // red without `is_believable` in `enter`: a user who signs in again would not be signed in.
        let (settings, alice) = (Settings::default(), user("alice"));
        let first = enter_as(&alice, None, Time(0) + SKEW + SKEW, 1).reply.expect("starts").session;
        let anew = enter_as(&alice, Some(&first), Time(0), 2);
        assert!(anew.changes.iter().any(|c| matches!(c, Change::EndSession { session, .. } if *session == first.id)));
        let anew = anew.reply.expect("starts").session;
        assert!(anew.id != first.id && anew.auth_time == Time(0) && anew.is_live(&settings, Time(0)));
        let raised = enter_as(&alice, Some(&first), Time(1), 2).reply.expect("raises").session;
        assert!(raised.id == first.id && raised.auth_time > first.auth_time && raised.is_live(&settings, Time(1)));
    }

    #[test]
    fn what_has_expired_here_can_end_while_another_clock_may_believe_it() {
        // Red where `can_end` asks this node's clock alone: whoever signed out would be signed in at the next node.
        let (settings, alice) = (Settings::default(), user("alice"));
        let Started { session, cookie } = enter_as(&alice, None, Time(0), 1).reply.expect("starts");
        let over = session.ends(&settings);
        for (at, can) in [(over - Span(1), true), (over, true), (over + SKEW + SKEW, false)] {
            let found = (session.clone(), alice.clone());
            assert_eq!(session.is_live(&settings, at), at < over, "{at:?}");
            assert_eq!(proved_to_end(&cookie, Some(&found), &settings, at).is_some(), can, "{at:?}");
        }
    }

    #[test]
    fn a_session_dies_of_idleness_and_of_age() {
        let settings = Settings::default();
        let session = enter_as(&user("alice"), None, Time(0), 1).reply.expect("starts").session;
        assert!(session.is_live(&settings, Time(settings.session_idle.0 - 1)));
        assert!(!session.is_live(&settings, Time(settings.session_idle.0)));
        let busy = Session { last_seen: Time(settings.session_absolute.0 - 1), ..session };
        assert!(!busy.is_live(&settings, Time(settings.session_absolute.0)));
    }

    #[test]
    fn the_last_use_is_noted_seldom_and_soon_enough_to_stay_alive() {
        let session = enter_as(&user("alice"), None, Time(0), 1).reply.expect("starts").session;
        for (touch, idle, every) in [(5, 60, 5), (5, 4, 2), (0, 60, 0)] {
            let settings = Settings {
                touch_every: Span::minutes(touch),
                session_idle: Span::minutes(idle),
                ..Settings::default()
            };
            let noted = |minutes, more| session.touch(&settings, Time(Span::minutes(minutes).0 + more)).is_some();
            assert!(noted(every, 0) && (every == 0 || !noted(every, -1)), "{touch} {idle}");
            // A user who comes back within the idle time finds the session alive, however seldom its use is noted.
            assert!(session.is_live(&settings, Time(Span::minutes(every).0)));
        }
    }
}
