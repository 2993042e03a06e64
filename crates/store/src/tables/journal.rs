//! Replays what a node acknowledged to a database that may have lost it.
//!
//! Every statement does nothing if the change is already there, and nothing to what came later. Statements of several
//! nodes may be replayed in any order.

use super::events::{about, record_unless_there};
use super::fences::Fence;
use super::row::{every, to_json};
use super::{clients, families, groups, keys, realms, sessions, tokens, users, values, write};
use crate::engine::{Engine, Must, Read, SENT_AT_ONCE, Unavailable, Value, Write};
use rules::ending::{Ending, Record};
use rules::events::{Event, Kind};
use rules::fresh::first_id;
use rules::id::RealmId;
use rules::time::{Span, Time};
use rules::utc::iso_ms;
use std::collections::HashMap;

/// What a database knows about a batch whose witness it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Known {
    /// It has the batch.
    Kept,
    /// It had lost the batch, and what the batch had ended was replayed to it.
    Said,
}

/// Returns which of these audit lines exist, however many are asked for.
pub async fn known(
    engine: &dyn Engine,
    realm: &RealmId,
    ids: Vec<String>,
) -> Result<HashMap<String, Known>, Unavailable> {
    let lines = about("SELECT id, kind FROM events WHERE realm = ?", values![realm], &ids);
    let reads: Vec<Read> = lines.into_iter().map(|(sql, args, _)| Read { sql, args }).collect();
    let answers = engine.fetch(&reads).await?;
    let line = |id: String, kind: String| match kind == Kind::FenceReplayed.name() {
        true => (id, Known::Said),
        false => (id, Known::Kept),
    };
    every(answers.concat(), |row| Some(line(row.text()?, row.text()?)))
        .map(HashMap::from_iter)
        .ok_or_else(|| super::alien("in journal"))
}

/// The point up to which a record applies.
struct Upto {
    /// Sessions, families and codes with a smaller id are affected.
    id: String,
    /// For rows that are told apart by their time.
    time: Time,
    /// The configuration epoch up to which the database certainly has every change.
    has: i64,
}

impl Upto {
    /// If the batch's audit line is gone, the database lost the batch, and all that it has from before the fence is
    /// older than the batch, whatever the nodes' clocks said. What a replaced password, a disabled user or a withdrawn
    /// consent opened ends even if it was opened later: the password, the user or the consent was not valid any more.
    fn of(record: &Record, fence: &Fence) -> Self {
        let (time, has) = match record.witness {
            Some(_) => (fence.at, i64::MIN),
            None => (record.at.min(fence.at), fence.epoch),
        };
        let id = if record.closed_a_door() { "~".to_owned() } else { first_id(time + Span(1)) };
        Upto { id, time, has }
    }
}

/// Replays one record, in one batch, or in several, one after the other, if it ended much: each has what one or more
/// endings take. If the record has a witness, the caller has checked that the database lacks it.
///
/// The last batch restores the witness's line, so that no later fence replays the record again: a user who was enabled
/// since then would be disabled again. A failover that loses this batch also loses everything that came after it. A
/// replay that is interrupted before is repeated as a whole.
pub fn replay(realm: &RealmId, record: &Record, fence: &Fence, now: Time) -> Vec<Vec<Write>> {
    let upto = Upto::of(record, fence);
    let mut batches: Vec<Vec<Write>> = Vec::new();
    for ending in &record.endings {
        let mut writes = again(realm, ending, (&upto, fence), (record.at, now));
        if ending.is_configuration() {
            writes.push(realms::bump_epoch(realm));
        }
        match batches.last_mut() {
            // There is room for the line.
            Some(batch) if batch.len() + writes.len() < SENT_AT_ONCE => batch.extend(writes),
            _ => batches.push(writes),
        }
    }
    // At the time of its id, and not now: who asks for a window of the log by time is answered by both.
    let line = Event::new(Kind::FenceReplayed, record.at).detail("fence", fence.number);
    let line = line.detail("replayed_at", iso_ms(now));
    let line = record.witness.as_ref().map(|witness| record_unless_there(realm, witness, &line));
    match batches.last_mut() {
        Some(batch) => batch.extend(line),
        None => batches.extend(line.map(|line| vec![line])),
    }
    batches.iter_mut().flatten().for_each(|write| write.must = Must::Any);
    batches
}

/// A table: one match arm for each ending.
#[allow(clippy::too_many_lines, reason = "one arm for each ending, so that none is forgotten")]
fn again(r: &RealmId, ending: &Ending, (upto, fence): (&Upto, &Fence), (at, now): (Time, Time)) -> Vec<Write> {
    let any = |sql: &'static str, args: Vec<Value>| vec![write(sql, args, Must::Any)];
    match ending {
        Ending::Session { session, at } => vec![sessions::end(r, session, *at)],
        Ending::SessionsOf { user, except, at } => any(
            "UPDATE sessions SET ended_at = ? WHERE realm = ? AND user_id = ? AND ended_at IS NULL AND id <> ? AND id < ?",
            values![*at, r, user, except.as_ref().map_or("", |id| id.as_str()), upto.id.as_str()],
        ),
        Ending::Secret { session, handle, auth_time, amr, last_seen } => any(
            "UPDATE sessions SET handle = ?, auth_time = ?, amr = ?, last_seen = ? \
             WHERE realm = ? AND id = ? AND auth_time < ?",
            values![*handle, *auth_time, to_json(amr), *last_seen, r, session, *auth_time],
        ),
        Ending::Refresh { family, turn, current, was, until, bridge, idle_until } => vec![
            write(
                "UPDATE families SET current_hash = ?, previous_hash = ?, previous_until = ?, bridge = ?, \
                 idle_until = ?, turn = ? WHERE realm = ? AND id = ? AND turn < ?",
                values![*current, *was, *until, bridge.to_vec(), *idle_until, *turn, r, family, *turn],
                Must::Any,
            ),
            // Two different tokens are both the next one, so one of them was obtained with a stolen token.
            write(
                "UPDATE families SET revoked_at = ? \
                 WHERE realm = ? AND id = ? AND turn = ? AND current_hash <> ? AND revoked_at IS NULL",
                values![at, r, family, *turn, *current],
                Must::Any,
            ),
        ],
        Ending::Family { family, at } => vec![families::revoke(r, family, *at)],
        Ending::FamiliesOf { user, client, except, at } => any(
            "UPDATE families SET revoked_at = ? WHERE realm = ? AND user_id = ? AND revoked_at IS NULL AND id < ? \
             AND (? IS NULL OR client_id = ?) AND (? IS NULL OR COALESCE(session_id, '') <> ?)",
            {
                let (client, except) = (client.as_ref(), except.as_ref());
                values![*at, r, user, upto.id.as_str(), client, client, except, except]
            },
        ),
        Ending::Opaque { token } => vec![tokens::drop_opaque(r, *token)],
        Ending::Token { expires, .. } | Ending::Assertion { expires, .. } if expires.has_come(now) => Vec::new(),
        Ending::Token { jti, expires } => vec![tokens::revoke(r, jti, *expires)],
        Ending::Assertion { client, jti, expires } => any(
            "INSERT INTO assertions (realm, client_id, jti, expires) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING",
            values![r, client, *jti, *expires],
        ),
        Ending::Code { family, at } => any(
            "UPDATE codes SET redeemed_at = ? WHERE realm = ? AND family = ? AND redeemed_at IS NULL",
            values![*at, r, family],
        ),
        Ending::CodesOf { user, since, at } => any(
            "UPDATE codes SET redeemed_at = ? \
             WHERE realm = ? AND family >= ? AND family < ? AND user_id = ? AND redeemed_at IS NULL",
            values![*at, r, first_id(*since), upto.id.as_str(), user],
        ),
        Ending::Device { device } => any("DELETE FROM devices WHERE realm = ? AND handle = ?", values![r, *device]),
        Ending::ApprovalsOf { user, client } => any(
            "DELETE FROM devices WHERE realm = ? AND user_id = ? AND stage = 'approved' AND family < ? \
             AND (? IS NULL OR client_id = ?)",
            values![r, user, upto.id.as_str(), client.as_ref(), client.as_ref()],
        ),
        Ending::Consent { user, client, at: _ } => any(
            "DELETE FROM consents WHERE realm = ? AND user_id = ? AND client_id = ? AND granted <= ?",
            values![r, user, client, upto.time],
        ),
        Ending::Password { user, seen, password, at } => any(
            "UPDATE users SET password = ?, updated = CASE WHEN updated > ? THEN updated ELSE ? END \
             WHERE realm = ? AND id = ? AND (COALESCE(password, '') = ? OR updated < ?)",
            values![&**password, *at, *at, r, user, seen.as_deref().unwrap_or(""), *at],
        ),
        Ending::Email { user, email, verified } => {
            users::take_addresses(r, user, (email.as_deref(), *verified), upto.time)
        }
        Ending::Enabled { user, at } => any(
            "UPDATE users SET disabled_at = ? WHERE realm = ? AND id = ? AND disabled_at IS NULL",
            values![*at, r, user],
        ),
        Ending::User { user } => users::remove(r, user),
        Ending::Member { group, user } => any(
            "DELETE FROM members WHERE realm = ? AND user_id = ? AND group_id = ? AND epoch <= ?",
            values![r, user, group, fence.epoch],
        ),
        Ending::Group { group } => groups::remove(r, group),
        Ending::Client { epoch, .. } | Ending::ClientItself { epoch, .. } if *epoch <= upto.has => Vec::new(),
        Ending::Client { client, secret, disabled_at, life, epoch } => {
            vec![clients::put_back(r, client, (*secret, *disabled_at, life.as_ref()), *epoch)]
        }
        Ending::ClientItself { client, epoch } => clients::remove_again(r, client, *epoch, upto.time),
        Ending::Key { kid, at } => vec![keys::revoke(r, kid, *at)],
        Ending::SetUp { link } => any("DELETE FROM setup_offers WHERE realm = ? AND link = ?", values![r, *link]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_record_ended_is_replayed_in_batches_that_are_sent_at_once_and_its_line_with_the_last() {
        // Red where all of it is one batch, where there is no room for the line, or where the line comes back earlier:
        // a replay that is interrupted then would leave the rest.
        let fence = Fence { number: 1, at: Time(2), identity: String::new(), epoch: 1 };
        let is_line = |write: &Write| write.sql.text().starts_with("INSERT INTO events");
        let member = |_| Ending::Member { group: "staff".into(), user: "ada".into() };
        let user = |_| Ending::User { user: "ada".into() };
        let key = |_| Ending::Key { kid: "k".into(), at: Time(1) };
        let of = |kind: &dyn Fn(usize) -> Ending, many: usize| (0..many).map(kind).collect::<Vec<_>>();
        for many in [1, 2, 4, 5, 19, 20, 38, 39, 40, 41, 100, 500] {
            let mixed = [of(&user, many / 2), of(&member, many), of(&key, 1)].concat();
            for endings in [of(&member, many), of(&user, many), of(&key, many), mixed] {
                let record = |witness| Record { at: Time(1), witness, endings: endings.clone() };
                let batches = replay(&"main".into(), &record(Some("line".to_owned())), &fence, Time(3));
                assert!(batches.iter().all(|batch| (1..=SENT_AT_ONCE).contains(&batch.len())), "{many}");
                let lines: Vec<usize> =
                    batches.iter().map(|batch| batch.iter().filter(|write| is_line(write)).count()).collect();
                let (last, before) = lines.split_last().unwrap();
                assert!(*last == 1 && before.iter().all(|lines| *lines == 0), "{many}: {lines:?}");
                assert!(batches.last().unwrap().last().is_some_and(is_line), "{many}");
                // As many statements as without it, but for the line.
                let without = replay(&"main".into(), &record(None), &fence, Time(3));
                assert_eq!(batches.concat().len(), without.concat().len() + 1, "{many}");
            }
        }
        let nothing = Record { at: Time(1), witness: Some("line".to_owned()), endings: vec![] };
        assert_eq!(replay(&"main".into(), &nothing, &fence, Time(3)).concat().len(), 1);
    }

    #[test]
    fn what_changes_the_configuration_moves_its_epoch_with_it() {
        // Red where the epoch moves with the last batch alone: a replay that is interrupted before would leave caches
        // as they were.
        let fence = Fence { number: 1, at: Time(2), identity: String::new(), epoch: 1 };
        let endings = (0..100).map(|_| Ending::Key { kid: "k".into(), at: Time(1) }).collect();
        let batches = replay(&"main".into(), &Record { at: Time(1), witness: None, endings }, &fence, Time(3));
        assert!(batches.len() > 3 && batches.iter().all(|batch| batch.contains(&bump())));
    }

    fn bump() -> Write {
        Write { must: Must::Any, ..realms::bump_epoch(&"main".into()) }
    }
}
