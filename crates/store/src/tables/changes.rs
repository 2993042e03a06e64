//! Every change of the rules as statements, with the guard under which it may happen.

use super::{clients, codes, consents, counters, devices, events, families, keys, realms, sessions, tokens, users};
use super::{values, write};
use crate::engine::{Must, Write};
use rules::decision::{Change, Standing};
use rules::id::RealmId;
use rules::{Fresh, Time};

pub(super) const FORGET_CONSENT: &str = "DELETE FROM consents WHERE realm = ? AND user_id = ? AND client_id = ?";

/// The batch that makes `changes` true in `realm`. `fresh` names the lines of the audit log.
pub fn batch(realm: &RealmId, changes: &[Change], now: Time, fresh: &Fresh) -> Vec<Write> {
    let mut writes = Vec::with_capacity(changes.len() + 4);
    for (at, change) in changes.iter().enumerate() {
        match change {
            Change::Record(event) => {
                let id = fresh.ordered(&format!("event {at}"), now);
                writes.push(events::record(realm, id, event));
            }
            other => writes.extend(
                about_people(realm, other)
                    .or_else(|| about_tokens(realm, other))
                    .unwrap_or_else(|| about_realm(realm, other)),
            ),
        }
    }
    writes
}

const ONE: Must = Must::Touch(1);

fn about_people(realm: &RealmId, change: &Change) -> Option<Vec<Write>> {
    Some(match change {
        Change::Stands(standing) => stands(realm, standing),
        Change::AddUser(user) => users::add(realm, user),
        Change::ClaimOwner(user) => {
            vec![write("INSERT INTO owners (realm, user_id) VALUES (?, ?)", values![realm, user], ONE)]
        }
        Change::SetPassword { user, seen, password, at } => {
            let sql =
                "UPDATE users SET password = ?, updated = ? WHERE realm = ? AND id = ? AND COALESCE(password, '') = ?";
            let seen = seen.as_deref().unwrap_or("");
            vec![write(sql, values![password.as_str(), *at, realm, user, seen], ONE)]
        }
        Change::SetProfile { user, profile, at } => {
            let sql = "UPDATE users SET profile = ?, updated = ? WHERE realm = ? AND id = ?";
            vec![write(sql, values![profile.text(), *at, realm, user], ONE)]
        }
        Change::SetEmail { user, email, verified, at } => {
            users::set_email(realm, user, email.as_deref(), (*verified, *at))
        }
        Change::SetDisabled { user, disabled_at, at } => {
            let sql = "UPDATE users SET disabled_at = ?, updated = ? WHERE realm = ? AND id = ?";
            vec![write(sql, values![*disabled_at, *at, realm, user], ONE)]
        }
        Change::RemoveUser(user) => users::remove(realm, user),
        Change::AddGroup { group, name } => {
            let sql = "INSERT INTO user_groups (realm, id, name) VALUES (?, ?, ?)";
            vec![write(sql, values![realm, group, name.as_str()], ONE)]
        }
        Change::RemoveGroup(group) => vec![
            write("DELETE FROM members WHERE realm = ? AND group_id = ?", values![realm, group], Must::Any),
            write("DELETE FROM user_groups WHERE realm = ? AND id = ?", values![realm, group], ONE),
        ],
        Change::SetMember { group, user, member } => {
            let out = "DELETE FROM members WHERE realm = ? AND user_id = ? AND group_id = ?";
            let mut writes = vec![write(out, values![realm, user, group], Must::Any)];
            if *member {
                let sql = "INSERT INTO members (realm, user_id, group_id) VALUES (?, ?, ?)";
                writes.push(write(sql, values![realm, user, group], ONE));
            }
            writes
        }
        Change::StartSession(session) => vec![sessions::start(realm, session)],
        Change::RaiseSession { session, was } => vec![sessions::raise(realm, session, *was)],
        Change::TouchSession { session, at } => {
            let sql = "UPDATE sessions SET last_seen = ? WHERE realm = ? AND id = ? AND last_seen < ?";
            vec![write(sql, values![*at, realm, session, *at], Must::Any)]
        }
        Change::EndSession { session, at } => {
            let sql = "UPDATE sessions SET ended_at = ? WHERE realm = ? AND id = ? AND ended_at IS NULL";
            vec![write(sql, values![*at, realm, session], Must::Any)]
        }
        Change::EndSessionsOf { user, except, at } => {
            let sql =
                "UPDATE sessions SET ended_at = ? WHERE realm = ? AND user_id = ? AND ended_at IS NULL AND id <> ?";
            let except = except.as_ref().map_or("", |id| id.as_str());
            vec![write(sql, values![*at, realm, user, except], Must::Any)]
        }
        Change::CountAttempt(counted) => vec![counters::count(realm, counted)],
        Change::ForgetAttempts { key } => {
            vec![write("DELETE FROM counters WHERE realm = ? AND name = ?", values![realm, *key], Must::Any)]
        }
        Change::CountFailure { key, until, expires } => counters::failure(realm, *key, *until, *expires),
        Change::CountStranger { address, at } => counters::stranger(realm, address, *at),
        _ => return None,
    })
}

/// Locking reads: whatever was ended by a batch that committed first is not found.
fn stands(realm: &RealmId, standing: &Standing) -> Vec<Write> {
    let found = |sql: &'static str, args| write(sql, args, Must::Find(1));
    let mut writes = Vec::with_capacity(4);
    writes.extend(standing.user.as_ref().map(|user| {
        found("SELECT 1 FROM users WHERE realm = ? AND id = ? AND disabled_at IS NULL", values![realm, user])
    }));
    writes.extend(standing.client.as_ref().map(|client| {
        found("SELECT 1 FROM clients WHERE realm = ? AND id = ? AND disabled_at IS NULL", values![realm, client])
    }));
    writes.extend(standing.session.as_ref().map(|session| {
        found("SELECT 1 FROM sessions WHERE realm = ? AND id = ? AND ended_at IS NULL", values![realm, session])
    }));
    writes.extend(standing.family.as_ref().map(|family| {
        found("SELECT 1 FROM families WHERE realm = ? AND id = ? AND revoked_at IS NULL", values![realm, family])
    }));
    writes.extend(standing.consent.as_ref().map(|(user, client)| {
        let sql = "SELECT 1 FROM consents WHERE realm = ? AND user_id = ? AND client_id = ?";
        found(sql, values![realm, user, client])
    }));
    writes
}

fn about_tokens(realm: &RealmId, change: &Change) -> Option<Vec<Write>> {
    Some(match change {
        Change::IssueCode(code) => vec![codes::issue(realm, code)],
        Change::BurnCode { family, at } => vec![codes::burn(realm, family, *at)],
        Change::DropApprovalsOf { user, client } => {
            let sql = "DELETE FROM devices WHERE realm = ? AND user_id = ? AND stage = 'approved' AND (? IS NULL OR client_id = ?)";
            vec![write(sql, values![realm, user, client.as_ref(), client.as_ref()], Must::Any)]
        }
        Change::StartFamily(family) => vec![families::start(realm, family)],
        Change::RotateFamily { family, rotation } => vec![families::rotate(realm, family, rotation)],
        Change::RevokeFamily { family, at } => {
            let sql = "UPDATE families SET revoked_at = ? WHERE realm = ? AND id = ? AND revoked_at IS NULL";
            vec![write(sql, values![*at, realm, family], Must::Any)]
        }
        Change::RevokeFamiliesOf { user, client, except, at } => {
            vec![families::revoke_all(realm, user, (client.as_ref(), except.as_ref()), *at)]
        }
        Change::IssueOpaque(token) => vec![tokens::issue(realm, token)],
        Change::DropOpaque(handle) => {
            vec![write("DELETE FROM opaque_tokens WHERE realm = ? AND handle = ?", values![realm, *handle], Must::Any)]
        }
        Change::RevokeToken { jti, expires } => {
            let sql = "INSERT INTO revoked_tokens (realm, jti, expires) VALUES (?, ?, ?) ON CONFLICT DO NOTHING";
            vec![write(sql, values![realm, jti.as_str(), *expires], Must::Any)]
        }
        Change::UseAssertion { client, jti, expires } => {
            let sql = "INSERT INTO assertions (realm, client_id, jti, expires) VALUES (?, ?, ?, ?)";
            vec![write(sql, values![realm, client, *jti, *expires], ONE)]
        }
        Change::GrantConsent(consent) => consents::grant(realm, consent),
        Change::RevokeConsent { user, client, at: _ } => {
            vec![write(FORGET_CONSENT, values![realm, user, client], Must::Any)]
        }
        Change::AskDevice(device) => vec![devices::ask(realm, device)],
        Change::PollDevice { device, at, interval_s } => {
            let sql = "UPDATE devices SET polled = ?, interval_s = ? WHERE realm = ? AND handle = ?";
            vec![write(sql, values![*at, *interval_s, realm, *device], Must::Any)]
        }
        Change::AnswerDevice { device, approval, at } => {
            vec![devices::answer(realm, *device, approval.as_deref(), *at)]
        }
        Change::RedeemDevice { device, at } => {
            let sql = "UPDATE devices SET stage = 'redeemed' WHERE realm = ? AND handle = ? AND stage = 'approved' AND expires > ?";
            vec![write(sql, values![realm, *device, *at], ONE)]
        }
        _ => return None,
    })
}

fn about_realm(realm: &RealmId, change: &Change) -> Vec<Write> {
    match change {
        Change::AddClient(client) => vec![clients::add(realm, client)],
        Change::SaveClient(client) => vec![clients::save(realm, client)],
        Change::RemoveClient(client) => clients::remove(realm, client),
        Change::AddKey(key) => vec![keys::add(realm, key)],
        Change::RetireKey { kid, until } => {
            let sql = "UPDATE signing_keys SET publish_until = ? WHERE realm = ? AND kid = ?";
            vec![write(sql, values![*until, realm, kid], ONE)]
        }
        Change::ActivateKey { kid, at } => {
            let sql = "UPDATE signing_keys SET active_from = ? WHERE realm = ? AND kid = ?";
            vec![write(sql, values![*at, realm, kid], ONE)]
        }
        Change::RevokeKey { kid, at } => {
            let sql = "UPDATE signing_keys SET revoked_at = ? WHERE realm = ? AND kid = ? AND revoked_at IS NULL";
            vec![write(sql, values![*at, realm, kid], ONE)]
        }
        Change::BumpEpoch => {
            vec![write("UPDATE realms SET epoch = epoch + 1 WHERE id = ?", values![realm], ONE)]
        }
        Change::OfferSetup { link, expires } => realms::offer_setup(realm, *link, *expires),
        Change::UseSetup { link, now } => {
            let sql = "DELETE FROM setup_links WHERE realm = ? AND link = ? AND expires > ?";
            vec![write(sql, values![realm, *link, *now], ONE)]
        }
        other => unreachable!("{other:?} is about people or tokens"),
    }
}
