//! Turns rows into facts, and changes into statements. The only place where names of tables and columns appear.

pub mod audit;
pub mod changes;
pub mod clients;
pub mod codes;
pub mod consents;
pub mod counters;
pub mod devices;
pub mod events;
pub mod families;
pub mod fences;
pub mod groups;
pub mod hash_kinds;
pub mod journal;
pub mod keys;
pub mod leases;
pub mod living;
pub mod nodes;
pub mod realms;
pub mod restore;
pub mod row;
pub mod secrets;
pub mod sessions;
pub mod sweep;
#[cfg(test)]
mod tests;
pub mod tokens;
pub mod users;
pub mod workers;

use crate::engine::{Engine, Must, Read, Row, Sql, Unavailable, Value, Write};
use rules::id::RealmId;
use std::fmt;

/// A query with a typed answer.
pub trait Question {
    /// The type of the answer.
    type Fact;
    /// Returns the read that asks the question.
    fn read(&self, realm: &RealmId) -> Read;
    /// Builds the answer from the rows; `None` if they cannot be what this program wrote.
    fn fact(&self, rows: Vec<Row>) -> Option<Self::Fact>;
}

/// Several questions that are asked together.
pub trait Questions {
    /// The type of the answers.
    type Facts;
    /// Returns the reads that ask the questions.
    fn reads(&self, realm: &RealmId) -> Vec<Read>;
    /// Builds the answers from the rows.
    fn facts(&self, answers: Vec<Vec<Row>>) -> Option<Self::Facts>;
}

impl<Q: Question> Questions for Q {
    type Facts = Q::Fact;
    fn reads(&self, realm: &RealmId) -> Vec<Read> {
        vec![self.read(realm)]
    }
    fn facts(&self, answers: Vec<Vec<Row>>) -> Option<Self::Facts> {
        self.fact(answers.into_iter().next()?)
    }
}

macro_rules! together {
    ($($name:ident $at:tt),+) => {
        impl<$($name: Question),+> Questions for ($($name,)+) {
            type Facts = ($($name::Fact,)+);
            fn reads(&self, realm: &RealmId) -> Vec<Read> {
                vec![$(self.$at.read(realm)),+]
            }
            fn facts(&self, answers: Vec<Vec<Row>>) -> Option<Self::Facts> {
                let mut answers = answers.into_iter();
                Some(($(self.$at.fact(answers.next()?)?,)+))
            }
        }
    };
}

together!(A 0, B 1);
together!(A 0, B 1, C 2);
together!(A 0, B 1, C 2, D 3);
together!(A 0, B 1, C 2, D 3, E 4);
together!(A 0, B 1, C 2, D 3, E 4, F 5);

/// Asks `engine` these questions, in one round trip where the engine can.
pub async fn ask<Q: Questions + Sync>(
    engine: &dyn Engine,
    realm: &RealmId,
    questions: Q,
) -> Result<Q::Facts, Unavailable> {
    let reads = questions.reads(realm);
    let answers = engine.fetch(&reads).await?;
    questions.facts(answers).ok_or_else(|| {
        let of = |read: &Read| {
            read.sql.text().split(" FROM ").nth(1).and_then(|rest| rest.split([' ', ')']).next().map(str::to_owned))
        };
        let tables: Vec<String> = reads.iter().filter_map(of).collect();
        alien(format_args!("in {}", tables.join(", ")))
    })
}

/// The beginning of what is said of a row that was written by hand.
const ALIEN_ROW: &str = "a row was not written by this program";

/// Returns the error about a row at `place` that this program would not have written.
pub fn alien(place: impl fmt::Display) -> Unavailable {
    Unavailable(format!("{ALIEN_ROW}: {place}"))
}

/// Whether `why`, of an [`Unavailable`], is about such a row: waiting does not help, and somebody has to look at it.
pub fn is_alien(why: &str) -> bool {
    why.starts_with(ALIEN_ROW)
}

pub(crate) fn read(sql: &'static str, args: Vec<Value>) -> Read {
    Read { sql: Sql::fixed(sql), args }
}

pub(crate) fn write(sql: &'static str, args: Vec<Value>, must: Must) -> Write {
    Write { sql: Sql::fixed(sql), args, must }
}

/// A list of values as the engines take them.
macro_rules! values {
    ($($value:expr),* $(,)?) => { vec![$($crate::tables::row::IntoValue::into_value($value)),*] };
}
pub(crate) use values;
