//! Taking out what has expired, a little at a time.

use super::{values, write};
use crate::engine::{Must, Write};
use rules::fresh::first_id;
use rules::id::RealmId;
use rules::time::Time;

/// Until when each kind of row is kept.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Rows that expire by themselves, by now.
    pub now: Time,
    /// Requests of devices: what polls is told for a while that its request has expired.
    pub devices: Time,
    /// Sessions and families older than this can be live no more.
    pub sessions: Time,
    /// Families, with the codes that began them.
    pub families: Time,
    /// What was refused by minute and address.
    pub strangers: Time,
}

/// One batch of deletions: at most `limit` rows of each kind. Ids that sort by time are found by range.
pub fn step(realm: &RealmId, bounds: &Bounds, limit: i64) -> Vec<Write> {
    let aged = |sql: &'static str| write(sql, values![realm, bounds.now, realm, limit], Must::Any);
    let ordered =
        |sql: &'static str, before: Time| write(sql, values![realm, first_id(before), realm, limit], Must::Any);
    vec![
        write(
            "DELETE FROM devices WHERE realm = ? AND expires <= ? AND handle IN \
              (SELECT handle FROM devices WHERE realm = ? ORDER BY expires LIMIT ?)",
            values![realm, bounds.devices, realm, limit],
            Must::Any,
        ),
        aged(
            "DELETE FROM opaque_tokens WHERE realm = ? AND expires <= ? AND handle IN \
              (SELECT handle FROM opaque_tokens WHERE realm = ? ORDER BY expires LIMIT ?)",
        ),
        aged(
            "DELETE FROM revoked_tokens WHERE realm = ? AND expires <= ? AND jti IN \
              (SELECT jti FROM revoked_tokens WHERE realm = ? ORDER BY expires LIMIT ?)",
        ),
        aged(
            "DELETE FROM assertions WHERE realm = ? AND expires <= ? AND jti IN \
              (SELECT jti FROM assertions WHERE realm = ? ORDER BY expires LIMIT ?)",
        ),
        aged(
            "DELETE FROM counters WHERE realm = ? AND expires <= ? AND name IN \
              (SELECT name FROM counters WHERE realm = ? ORDER BY expires LIMIT ?)",
        ),
        ordered(
            "DELETE FROM sessions WHERE realm = ? AND id < ? AND id IN \
             (SELECT id FROM sessions WHERE realm = ? ORDER BY id LIMIT ?)",
            bounds.sessions,
        ),
        ordered(
            "DELETE FROM families WHERE realm = ? AND id < ? AND id IN \
             (SELECT id FROM families WHERE realm = ? ORDER BY id LIMIT ?)",
            bounds.families,
        ),
        ordered(
            "DELETE FROM codes WHERE realm = ? AND family < ? AND family IN \
             (SELECT family FROM codes WHERE realm = ? ORDER BY family LIMIT ?)",
            bounds.families,
        ),
        write(
            "DELETE FROM strangers WHERE realm = ? AND minute < ? AND minute IN \
             (SELECT minute FROM strangers WHERE realm = ? ORDER BY minute LIMIT 1)",
            values![realm, bounds.strangers.0.div_euclid(60_000), realm],
            Must::Any,
        ),
        write(
            "DELETE FROM rejections WHERE realm = ? AND minute < ? AND minute IN \
             (SELECT minute FROM rejections WHERE realm = ? ORDER BY minute LIMIT 1)",
            values![realm, bounds.strangers.0.div_euclid(60_000), realm],
            Must::Any,
        ),
    ]
}
