//! Deletes what has expired, a little at a time.

use super::{values, write};
use crate::engine::{Must, Write};
use rules::fresh::first_id;
use rules::id::RealmId;
use rules::time::Time;

/// Up to which time each kind of row has expired.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// The current time, for rows that expire by themselves.
    pub now: Time,
    /// Device requests: a device that polls is told for a while that its request has expired.
    pub devices: Time,
    /// Sessions and families that are older cannot be live any more.
    pub sessions: Time,
    /// Families, and the codes that began them.
    pub families: Time,
    /// Refused attempts, counted by minute and address.
    pub strangers: Time,
}

/// Deletes the first rows of a table in a column's order: those before a bound, or all. The range ends at the last row
/// of the step: without that, PostgreSQL looks at all rows that there are (300,000 rows: 126 to 246 ms instead of 1).
/// Without the keys, a step would delete all rows that expire in the same millisecond.
macro_rules! first {
    ($table:literal, $column:literal $bound:literal, $key:literal) => {
        first!($table by $column, $key, " AND ", $column, " ", $bound, " ?")
    };
    ($table:literal by $column:literal, $key:literal $(, $before:literal)*) => {
        concat!(
            "DELETE FROM ",
            $table,
            " WHERE realm = ?",
            $($before,)*
            " AND ",
            $column,
            " <= ",
            "(SELECT MAX(",
            $column,
            ") FROM (SELECT ",
            $column,
            " FROM ",
            $table,
            " WHERE realm = ? ORDER BY ",
            $column,
            " LIMIT ?) AS step) AND ",
            $key,
            " IN ",
            "(SELECT ",
            $key,
            " FROM ",
            $table,
            " WHERE realm = ? ORDER BY ",
            $column,
            " LIMIT ?)"
        )
    };
}
pub(super) use first;

/// One batch of deletions: at most `limit` rows of each kind, and of counts all of the minutes in which the first so
/// many are. Whatever touches as many rows may have left some. Time-sorted ids go by range.
pub fn step(realm: &RealmId, bounds: &Bounds, limit: i64) -> Vec<Write> {
    let aged =
        |sql: &'static str, until: Time| write(sql, values![realm, until, realm, limit, realm, limit], Must::Any);
    let ordered = |sql: &'static str, before: Time| {
        write(sql, values![realm, first_id(before), realm, limit, realm, limit], Must::Any)
    };
    let minute = Time(bounds.strangers.0.div_euclid(60_000));
    vec![
        aged(first!("devices", "expires" "<=", "handle"), bounds.devices),
        aged(first!("opaque_tokens", "expires" "<=", "handle"), bounds.now),
        aged(first!("revoked_tokens", "expires" "<=", "jti"), bounds.now),
        aged(first!("assertions", "expires" "<=", "jti"), bounds.now),
        aged(first!("counters", "expires" "<=", "name"), bounds.now),
        ordered(first!("sessions", "id" "<", "id"), bounds.sessions),
        ordered(first!("families", "id" "<", "id"), bounds.families),
        ordered(first!("codes", "family" "<", "family"), bounds.families),
        aged(first!("strangers", "minute" "<", "minute"), minute),
        aged(first!("rejections", "minute" "<", "minute"), minute),
    ]
}
