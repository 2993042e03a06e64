//! Signing in and out, and what operators do to people and applications.

use crate::ledger::{Law, Visit};
use crate::world::{Plan, World};
use rules::decision::Change;
use rules::id::{ClientId, SessionId, UserId};
use rules::login::attempt::{After, Counters, judge};
use rules::login::cookie::Seal;
use rules::login::session::{Entry, Method, Origin, Started, enter, leave};
use rules::login::throttle::Shared;
use rules::oauth::client::Client;
use rules::oauth::consent;
use rules::people::User;
use rules::secret::PasswordHash;
use rules::{Fresh, Handle, Span, Time};

/// Somebody types a password, the right one or not.
pub fn sign_in(world: &World, fresh: &Fresh, (browser, user): (usize, &UserId), right: bool) -> Plan {
    let before = world.proved(browser);
    let address = Shared { key: Handle([2; 32]), free: 50, leak: Span::seconds(30) };
    let after = After {
        user: world.tables.users.get(user),
        matches: right,
        counters: &Counters { account: Handle([1; 32]), shared: vec![address] },
        before: before.as_ref().map(|(session, _)| session),
        origin: &Origin::default(),
    };
    let judged = judge(&after, &world.realm.settings, &Seal::new([0; 32]), (world.now, fresh));
    let proved = world.tables.users.get(user).and_then(|user| user.password.clone());
    let (user, other) = (user.clone(), before.filter(|(_, whose)| whose.id != *user).map(|(session, _)| session.id));
    Plan::of(judged.changes, move |world| {
        let Ok(started) = judged.reply else { return };
        let account = &world.tables.users[&user];
        let (enabled, same) = (account.is_enabled(), account.password == proved);
        world.ledger.hold(Law::CookieProves, right && enabled, "a session without proof");
        world.ledger.hold(Law::CookieProves, same, "a session by a password that was changed before");
        if let Some(other) = other {
            world.ledger.end_visit(&other, "somebody else signed in in its browser");
        }
        signed_in(world, browser, &user, started);
    })
}

/// A browser gets a new cookie.
fn signed_in(world: &mut World, browser: usize, user: &UserId, started: Started) {
    let (now, ledger) = (world.now, &mut world.ledger);
    let Started { session, cookie } = started;
    ledger.meet("sign-in");
    let known = ledger.cookies.iter().any(|(old, _)| old.secret.reveal() == cookie.secret.reveal());
    ledger.hold(Law::CookieProves, !known && cookie.id == session.id, "a cookie's secret was given before");
    ledger.cookies.iter_mut().filter(|(old, _)| old.id == cookie.id).for_each(|(_, superseded)| *superseded = true);
    match ledger.visits.get_mut(&session.id) {
        Some(visit) => {
            let same = visit.user == *user && session.user == *user;
            // Of two in one millisecond, the second is told as later.
            (visit.auth_time, visit.used) = (now.max(visit.auth_time + Span(1)), now);
            ledger.hold(Law::CookieProves, same, "a session became somebody else's");
        }
        None => {
            let visit = Visit { user: user.clone(), started: now, auth_time: now, used: now, ended: None, dead: false };
            ledger.visits.insert(session.id.clone(), visit);
        }
    }
    ledger.cookies.push((cookie.clone(), false));
    world.browsers[browser] = Some(cookie);
}

/// Somebody signs out.
pub fn sign_out(world: &World, browser: usize) -> Plan {
    let Some((session, _)) = world.proved(browser) else { return Plan::nothing() };
    let left = leave(&session, "", world.now);
    Plan::of(left.changes, move |world| world.ledger.end_visit(&session.id, "signed out"))
}

/// What the account home ends with "sign out everywhere else", and a change of password too.
fn everything_else(user: &User, except: Option<&SessionId>, at: Time) -> Vec<Change> {
    let except = except.cloned();
    vec![
        Change::EndSessionsOf { user: user.id.clone(), except: except.clone(), at },
        Change::RevokeFamiliesOf { user: user.id.clone(), client: None, except, at },
        Change::DropApprovalsOf { user: user.id.clone(), client: None },
    ]
}

/// Somebody ends all their other sessions.
pub fn end_others(world: &World, browser: usize) -> Plan {
    let Some((session, user)) = world.proved(browser) else { return Plan::nothing() };
    Plan::of(everything_else(&user, Some(&session.id), world.now), move |world| {
        world.ledger.use_visit(&session.id, world.now);
        world.ledger.end_all_of(&user.id, Some(&session.id), "signed out everywhere else");
    })
}

/// Somebody changes their password.
pub fn change_password(world: &World, fresh: &Fresh, browser: usize) -> Plan {
    let Some((session, user)) = world.proved(browser) else { return Plan::nothing() };
    let password = fresh.name("password");
    let changed = User { password: Some(password.clone()), ..user.clone() };
    let entry = Entry { user: &changed, method: Method::Password, before: Some(&session), origin: &Origin::default() };
    let entered = enter(&entry, &world.realm.settings, &Seal::new([0; 32]), (world.now, fresh));
    let (seen, password) = (user.password.clone().map(PasswordHash::from), password.into());
    let changed = Change::SetPassword { user: user.id.clone(), seen, password, at: world.now };
    let ends = everything_else(&user, Some(&session.id), world.now);
    let changes = [changed].into_iter().chain(ends).chain(entered.changes).collect();
    Plan::of(changes, move |world| {
        world.ledger.end_all_of(&user.id, Some(&session.id), "the password changed");
        if let Ok(started) = entered.reply {
            signed_in(world, browser, &user.id, started);
        }
    })
}

/// An operator disables an account, and what it holds has not ended yet when the next thing happens; or enables it
/// again, which ends that first.
pub fn set_user_enabled(world: &World, user: &UserId, enabled: bool) -> Plan {
    let Some(user) = world.tables.users.get(user).cloned() else { return Plan::nothing() };
    if user.is_enabled() == enabled {
        return Plan::nothing();
    }
    let disabled_at = (!enabled).then_some(world.now);
    let mut changes = if enabled { everything_else(&user, None, world.now) } else { Vec::new() };
    changes.push(Change::SetDisabled { user: user.id.clone(), disabled_at, at: world.now });
    Plan::of(changes, move |world| {
        if !enabled {
            world.ledger.meet("user disabled");
            world.ledger.end_all_of(&user.id, None, "the account was disabled");
        }
    })
}

/// An operator removes an account.
pub fn remove_user(world: &World, user: &UserId) -> Plan {
    if !world.tables.users.contains_key(user) {
        return Plan::nothing();
    }
    let user = user.clone();
    Plan::of(vec![Change::RemoveUser(user.clone())], move |world| {
        world.ledger.end_all_of(&user, None, "the account was removed");
        world.ledger.agreed.retain(|(of, _), _| *of != user);
    })
}

/// Somebody takes an application's access back.
pub fn revoke_consent(world: &World, user: &UserId, client: &ClientId) -> Plan {
    // Whoever has never signed in has allowed nothing.
    let Some(session) = world.tables.sessions.values().find(|session| session.user == *user) else {
        return Plan::nothing();
    };
    let revoked = consent::revoke(session, client, world.now);
    let (user, client) = (user.clone(), client.clone());
    Plan::of(revoked.changes, move |world| {
        world.ledger.agreed.remove(&(user.clone(), client.clone()));
        world.ledger.end_lines("access was taken back", |line| {
            let leans = line.by_consent || line.device || line.began.is_some();
            line.user == user && line.client == client && leans
        });
    })
}

/// What operators do to applications.
#[derive(Clone, Copy, Debug)]
pub enum Manage {
    Disable,
    Enable,
    Remove,
    Add,
    Narrow,
    Restore,
}

/// An operator changes an application. What it was given before it was disabled or removed stays dead, also when one
/// of its name comes again.
pub fn manage_client(world: &World, fresh: &Fresh, id: &ClientId, what: Manage) -> Plan {
    let (id, now) = (id.clone(), world.now);
    let whole = crate::world::client(id.as_str());
    let found = world.tables.clients.get(&id).cloned();
    let change = match (what, found) {
        (Manage::Add, None) => Change::AddClient(Box::new(whole.registered(now, fresh))),
        (Manage::Add, Some(_)) | (_, None) => return Plan::nothing(),
        (Manage::Enable, Some(client)) if client.is_enabled() => return Plan::nothing(),
        (Manage::Disable, Some(client)) => save(Client { disabled_at: Some(now), ..client }),
        (Manage::Enable, Some(client)) => save(client.revived(now, fresh)),
        (Manage::Narrow, Some(client)) => save(Client { scope: whole.scope.without("email"), ..client }),
        (Manage::Restore, Some(client)) => save(Client { scope: whole.scope, ..client }),
        (Manage::Remove, Some(client)) => Change::RemoveClient(client.id),
    };
    Plan::of(vec![change, Change::BumpEpoch], move |world| {
        let ledger = &mut world.ledger;
        match what {
            Manage::Disable | Manage::Enable => ledger.end_all_of_client(&id, "its application was disabled"),
            Manage::Remove => {
                ledger.end_all_of_client(&id, "its application was removed");
                ledger.agreed.retain(|(_, to), _| *to != id);
            }
            Manage::Add => ledger.meet("client added again"),
            Manage::Narrow | Manage::Restore => {}
        }
    })
}

fn save(client: Client) -> Change {
    Change::SaveClient(Box::new(client))
}
