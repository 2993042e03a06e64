//! Counters of failures.

use super::row::{Columns, every};
use super::{Question, read, values, write};
use crate::engine::{Must, Read, Row, Write};
use rules::Handle;
use rules::events::Rejection;
use rules::id::RealmId;
use rules::login::throttle::{ASTRAY, Counted, Counter};
use rules::time::{Span, Time};

fn counter(row: &mut Columns) -> Option<Counter> {
    Some(Counter { count: row.int()?, until: row.int()?, expires: row.int()? })
}

/// Several counters at once, in the order of their names.
pub struct Each<'a>(pub &'a [Handle]);

impl Question for Each<'_> {
    type Fact = Vec<Option<Counter>>;
    fn read(&self, realm: &RealmId) -> Read {
        let sql = "SELECT name, count, until, expires FROM counters WHERE realm = ? AND name IN (?, ?, ?, ?)";
        let [first, second, third, fourth] = [0, 1, 2, 3].map(|at| self.0.get(at).copied());
        debug_assert!(self.0.len() <= 4, "as many as there are places");
        read(sql, values![realm, first, second, third, fourth])
    }
    fn fact(&self, rows: Vec<Row>) -> Option<Self::Fact> {
        let found = every(rows, |row| Some((row.handle()?, counter(row)?)))?;
        let of = |name: &Handle| found.iter().find(|(known, _)| known == name).map(|(_, counter)| *counter);
        Some(self.0.iter().map(of).collect())
    }
}

/// Failures with unknown usernames, the newest first: the minute, the address and the count.
pub struct Strangers<'a> {
    /// Only from the minute of this moment on.
    pub since: Time,
    /// Only those after this one: the last that is known, by minute and address.
    pub after: Option<(Time, &'a str)>,
    /// The maximum number of rows.
    pub limit: i64,
}

impl Question for Strangers<'_> {
    type Fact = Vec<(Time, String, i64)>;
    fn read(&self, realm: &RealmId) -> Read {
        let sql = "SELECT minute, address, count FROM strangers WHERE realm = ? AND minute >= ? AND minute <= ? \
                   AND (minute < ? OR address > ?) ORDER BY minute DESC, address LIMIT ?";
        let (last, address) = self.after.map_or((i64::MAX, ""), |(at, address)| (minute(at), address));
        read(sql, values![realm, minute(self.since), last, last, address, self.limit])
    }
    fn fact(&self, rows: Vec<Row>) -> Option<Self::Fact> {
        every(rows, |row| Some((Time(row.int()? * MINUTE), row.text()?, row.int()?)))
    }
}

/// Refused requests of unidentified senders, the newest first: the minute, what was refused, the address and the count.
pub struct Rejections<'a> {
    /// Only from the minute of this moment on.
    pub since: Time,
    /// Only those after this one: the last that is known, by minute, what was refused (as it is kept) and address.
    pub after: Option<(Time, &'a str, &'a str)>,
    /// The maximum number of rows.
    pub limit: i64,
}

impl Question for Rejections<'_> {
    type Fact = Vec<(Time, Rejection, String, i64)>;
    fn read(&self, realm: &RealmId) -> Read {
        let sql = "SELECT minute, what, address, count FROM rejections WHERE realm = ? AND minute >= ? AND minute <= ? \
                   AND (minute < ? OR what > ? OR (what = ? AND address > ?)) \
                   ORDER BY minute DESC, what, address LIMIT ?";
        let (last, what, address) = self.after.map_or((i64::MAX, "", ""), |(at, what, by)| (minute(at), what, by));
        read(sql, values![realm, minute(self.since), last, last, what, what, address, self.limit])
    }
    fn fact(&self, rows: Vec<Row>) -> Option<Self::Fact> {
        let row = |row: &mut Columns| {
            Some((Time(row.int()? * MINUTE), Rejection::read(&row.text()?), row.text()?, row.int()?))
        };
        every(rows, row)
    }
}

/// In milliseconds.
const MINUTE: i64 = 60_000;

fn minute(at: Time) -> i64 {
    at.0.div_euclid(MINUTE)
}

const INSERT: &str = "INSERT INTO counters (realm, name, count, until, expires) VALUES (?, ?, ?, ?, ?)";

/// Counts an attempt, unless others were counted since the counter was read.
pub(super) fn count(realm: &RealmId, counted: &Counted) -> Write {
    let (seen, next) = (counted.seen, counted.next);
    if seen == Counter::default() {
        return write(INSERT, values![realm, counted.key, next.count, next.until, next.expires], Must::Touch(1));
    }
    let sql = "UPDATE counters SET count = ?, until = ?, expires = ? \
               WHERE realm = ? AND name = ? AND count = ? AND until = ? AND expires = ?";
    let row = values![next.count, next.until, next.expires, realm, counted.key, seen.count, seen.until, seen.expires];
    write(sql, row, Must::Touch(1))
}

/// Takes back one attempt that was not made after all.
pub(super) fn give_back(realm: &RealmId, counted: &Counted) -> Vec<Write> {
    let sql = "UPDATE counters SET count = count - 1, until = CASE WHEN until = ? THEN ? ELSE until END \
               WHERE realm = ? AND name = ? AND count > 0";
    let empty = "DELETE FROM counters WHERE realm = ? AND name = ? AND count <= 0";
    vec![
        write(sql, values![counted.next.until, counted.seen.until, realm, counted.key], Must::Any),
        write(empty, values![realm, counted.key], Must::Any),
    ]
}

pub(super) fn forget(realm: &RealmId, key: Handle) -> Write {
    write("DELETE FROM counters WHERE realm = ? AND name = ?", values![realm, key], Must::Any)
}

/// Counts one more failure, whoever else counts at the same time: it drains `leak` after the failures before it, unless
/// those were counted by a wrong clock.
pub(super) fn failure(realm: &RealmId, key: Handle, at: Time, leak: Span) -> Vec<Write> {
    let absent =
        "INSERT INTO counters (realm, name, count, until, expires) VALUES (?, ?, 0, 0, 0) ON CONFLICT DO NOTHING";
    // MySQL sets one column after the other: `until` comes last, because the other expressions need its old value.
    let sql = "UPDATE counters SET count = count + 1, \
               expires = CASE WHEN expires > ? AND until <= ? THEN expires ELSE ? END + ?, until = ? \
               WHERE realm = ? AND name = ?";
    let row = values![at, at + ASTRAY, at, leak.0, at, realm, key];
    vec![write(absent, values![realm, key], Must::Any), write(sql, row, Must::Touch(1))]
}

/// Counts one more failure of an unknown username from this address in this minute.
pub(super) fn stranger(realm: &RealmId, address: &str, at: Time) -> Vec<Write> {
    let minute = minute(at);
    let absent = "INSERT INTO strangers (realm, minute, address, count) VALUES (?, ?, ?, 0) ON CONFLICT DO NOTHING";
    let sql = "UPDATE strangers SET count = count + 1 WHERE realm = ? AND minute = ? AND address = ?";
    vec![
        write(absent, values![realm, minute, address], Must::Any),
        write(sql, values![realm, minute, address], Must::Touch(1)),
    ]
}

/// Counts `many` more of the same kind from this address in this minute, whoever else counts at the same time.
pub(super) fn rejections(realm: &RealmId, (what, address): (&Rejection, &str), at: Time, many: i64) -> Vec<Write> {
    let (minute, what) = (minute(at), what.text());
    let absent =
        "INSERT INTO rejections (realm, minute, what, address, count) VALUES (?, ?, ?, ?, 0) ON CONFLICT DO NOTHING";
    let sql = "UPDATE rejections SET count = count + ? WHERE realm = ? AND minute = ? AND what = ? AND address = ?";
    vec![
        write(absent, values![realm, minute, what.as_str(), address], Must::Any),
        write(sql, values![many, realm, minute, what.as_str(), address], Must::Touch(1)),
    ]
}
