//! Turns every change of the rules into statements, with the guard under which the change may happen.

use super::{
    clients, codes, consents, counters, devices, events, families, groups, keys, realms, sessions, tokens, users,
    workers,
};
use super::{values, write};
use crate::engine::{Must, Write};
use rules::decision::{Change, Single, Standing};
use rules::id::RealmId;
use rules::{Fresh, Time};

/// The batch that carries out `changes` in `realm`. `fresh` gives the ids of the audit lines.
pub fn batch(realm: &RealmId, changes: &[Change], now: Time, fresh: &Fresh) -> Vec<Write> {
    let mut writes = Vec::with_capacity(changes.len() + 4);
    for (at, change) in changes.iter().enumerate() {
        match change {
            Change::Record(event) => {
                writes.push(events::record(realm, line(fresh, at, now), event));
            }
            other => writes.extend(statements(realm, other)),
        }
    }
    writes
}

/// The id of the first audit line that [`batch`] writes, if it writes one: a database that has the line has the batch.
pub fn witness(changes: &[Change], now: Time, fresh: &Fresh) -> Option<String> {
    let at = changes.iter().position(|change| matches!(change, Change::Record(_)))?;
    Some(line(fresh, at, now))
}

fn line(fresh: &Fresh, at: usize, now: Time) -> String {
    fresh.ordered(&format!("event {at}"), now)
}

/// A table: one line for each change.
#[rustfmt::skip]
#[allow(clippy::too_many_lines, reason = "one line for each change, so that none is forgotten")]
fn statements(r: &RealmId, change: &Change) -> Vec<Write> {
    match change {
        Change::Stands(standing) => stands(r, standing),
        Change::Record(_) => Vec::new(),

        Change::AddUser(user) => users::add(r, user),
        Change::ClaimOwner(user) => vec![users::claim_owner(r, user)],
        Change::SetPassword { user, seen, password, at } => vec![users::set_password(r, user, (seen.as_deref(), password), *at)],
        Change::SetProfile { user, seen, profile, at } => vec![users::set_profile(r, user, (seen, profile), *at)],
        Change::SetEmail { user, seen, email, verified, at } => {
            users::set_email(r, (user, seen.as_ref()), email.as_deref(), (*verified, *at))
        }
        Change::SetDisabled { user, disabled_at, at } => vec![users::set_disabled(r, user, *disabled_at, *at)],
        Change::RemoveUser(user) => users::remove(r, user),
        Change::AddGroup { group, name } => vec![groups::add(r, group, name)],
        Change::RemoveGroup(group) => groups::remove(r, group),
        Change::SetMember { group, user, member } => groups::set_member(r, group, user, *member),

        Change::StartSession(session) => vec![sessions::start(r, session)],
        Change::RaiseSession { session, was } => vec![sessions::raise(r, session, *was)],
        Change::TouchSession { session, at } => vec![sessions::touch(r, session, *at)],
        Change::EndSession { session, at } => vec![sessions::end(r, session, *at)],
        Change::EndSessionsOf { user, except, at } => vec![sessions::end_all(r, user, except.as_ref(), *at)],

        Change::IssueCode(code) => vec![codes::issue(r, code)],
        Change::BurnCode { family, at } => vec![codes::burn(r, family, *at)],
        Change::BurnCodesOf { user, since, at } => vec![codes::burn_all(r, user, *since, *at)],
        Change::DropApprovalsOf { user, client } => vec![devices::drop_approvals(r, user, client.as_ref())],
        Change::StartFamily(family) => vec![families::start(r, family)],
        Change::RotateFamily { family, rotation } => vec![families::rotate(r, family, rotation)],
        Change::RevokeFamily { family, at } => vec![families::revoke(r, family, *at)],
        Change::RevokeFamiliesOf { user, client, except, at } => vec![families::revoke_all(r, user, (client.as_ref(), except.as_ref()), *at)],
        Change::IssueOpaque(token) => vec![tokens::issue(r, token)],
        Change::DropOpaque(token) => vec![tokens::drop_opaque(r, *token)],
        Change::RevokeToken { jti, expires } => vec![tokens::revoke(r, jti, *expires)],
        Change::UseAssertion { client, jti, issued, expires } => tokens::use_assertion(r, (client, *jti), *issued, *expires).into(),
        Change::GrantConsent { consent, seen } => vec![consents::grant(r, consent, seen.as_ref())],
        Change::RevokeConsent { user, client, at: _ } => vec![consents::revoke(r, user, client)],
        Change::DropConsents { client, upto } => vec![consents::drop_some(r, client, upto)],

        Change::AskDevice(device) => vec![devices::ask(r, device)],
        Change::PollDevice { device, at, seen } => vec![devices::polled(r, *device, *at, *seen)],
        Change::SlowDevice { device, at, interval_s } => vec![devices::slowed(r, *device, *at, *interval_s)],
        Change::AnswerDevice { device, approval, at } => vec![devices::answer(r, *device, approval.as_deref(), *at)],
        Change::RedeemDevice { device, at } => vec![devices::redeem(r, *device, *at)],

        Change::CountAttempt(counted) => vec![counters::count(r, counted)],
        Change::ForgetAttempts { key } => vec![counters::forget(r, *key)],
        Change::GiveBack(counted) => counters::give_back(r, counted),
        Change::CountFailure { key, at, leak } => counters::failure(r, *key, *at, *leak),
        Change::CountStranger { address, at } => counters::stranger(r, address, *at),
        Change::CountRejections { what, address, at, many } => counters::rejections(r, (what, address.as_str()), *at, *many),

        Change::AddClient(client) => vec![clients::add(r, client)],
        Change::SaveClient(client) => vec![clients::save(r, client)],
        Change::RemoveClient(client) => clients::remove(r, client),
        Change::AddKey(key) => vec![keys::add(r, key)],
        Change::RetireKey { kid, until } => vec![keys::retire(r, kid, *until)],
        Change::ActivateKey { kid, at } => vec![keys::activate(r, kid, *at)],
        Change::RevokeKey { kid, at } => vec![keys::revoke(r, kid, *at)],
        Change::BumpEpoch => vec![realms::bump_epoch(r)],
        Change::OfferSetup { link, keep, expires } => realms::offer_setup(r, *link, (*keep, *expires)),
        Change::UseSetup { link, now } => vec![realms::use_setup(r, *link, *now)],

        Change::OfferWorkerToken { token, now, expires } => workers::offer(r, *token, (*now, *expires)),
        Change::EnrollWorker { worker, token, now } => workers::enroll(r, worker, (*token, *now)),
        Change::RenameWorker { worker, name } => vec![workers::rename(r, *worker, name)],
        Change::RemoveWorker(worker) => vec![workers::remove(r, *worker)],
        Change::QuarantineWorker { worker, at, why } => vec![workers::quarantine(r, *worker, (*at, why))],
        Change::TrustWorker(worker) => vec![workers::trust(r, *worker)],
    }
}

/// Locking reads: something that was ended by a batch that committed earlier is not found.
fn stands(realm: &RealmId, standing: &Standing) -> Vec<Write> {
    let found = |sql: &'static str, args| write(sql, args, Must::Find(1));
    let mut writes = Vec::with_capacity(4);
    writes.extend(standing.user.as_ref().map(|user| {
        found("SELECT 1 FROM users WHERE realm = ? AND id = ? AND disabled_at IS NULL", values![realm, user])
    }));
    writes.extend(standing.client.as_ref().map(|client| match standing.registered {
        None => {
            found("SELECT 1 FROM clients WHERE realm = ? AND id = ? AND disabled_at IS NULL", values![realm, client])
        }
        Some(epoch) => {
            let sql = "SELECT 1 FROM clients WHERE realm = ? AND id = ? AND disabled_at IS NULL AND epoch = ?";
            found(sql, values![realm, client, epoch])
        }
    }));
    writes.extend(standing.session.as_ref().map(|session| match standing.handle {
        None => {
            found("SELECT 1 FROM sessions WHERE realm = ? AND id = ? AND ended_at IS NULL", values![realm, session])
        }
        Some(handle) => {
            let sql = "SELECT 1 FROM sessions WHERE realm = ? AND id = ? AND ended_at IS NULL AND handle = ?";
            found(sql, values![realm, session, handle])
        }
    }));
    writes.extend(standing.family.as_ref().map(|family| match standing.current {
        None => {
            found("SELECT 1 FROM families WHERE realm = ? AND id = ? AND revoked_at IS NULL", values![realm, family])
        }
        Some(current) => {
            let sql = "SELECT 1 FROM families WHERE realm = ? AND id = ? AND revoked_at IS NULL AND current_hash = ?";
            found(sql, values![realm, family, current])
        }
    }));
    writes.extend(standing.token.as_ref().map(|token| match token {
        Single::Signed(jti) => {
            let sql = "SELECT 1 FROM revoked_tokens WHERE realm = ? AND jti = ?";
            write(sql, values![realm, jti.as_str()], Must::Find(0))
        }
        Single::Opaque(handle) => {
            found("SELECT 1 FROM opaque_tokens WHERE realm = ? AND handle = ?", values![realm, *handle])
        }
    }));
    writes.extend(standing.consent.as_ref().map(|(user, client, granted)| {
        let sql = "SELECT 1 FROM consents WHERE realm = ? AND user_id = ? AND client_id = ? AND granted = ?";
        found(sql, values![realm, user, client, *granted])
    }));
    // One key is written twice, so that there is one statement for both numbers.
    for pair in standing.keys.chunks(2) {
        let (first, last) = (&pair[0], &pair[pair.len() - 1]);
        let sql = "SELECT 1 FROM signing_keys WHERE realm = ? AND kid IN (?, ?) AND revoked_at IS NOT NULL";
        writes.push(write(sql, values![realm, first, last], Must::Find(0)));
    }
    writes.extend(
        standing.epoch.map(|epoch| found("SELECT 1 FROM realms WHERE id = ? AND epoch = ?", values![realm, epoch])),
    );
    writes.extend(standing.password.as_ref().map(|(user, password)| {
        let sql = "SELECT 1 FROM users WHERE realm = ? AND id = ? AND password = ?";
        found(sql, values![realm, user, &**password])
    }));
    writes
}
