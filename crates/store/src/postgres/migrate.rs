//! Brings a database to this program's schema, whoever else does so at the same time.
//!
//! Every transaction takes one lock first, writes the step's marker, then runs the step: the marker's key tells the second
//! of two nodes that the step is done before it runs anything.

use std::collections::BTreeSet;

use super::cargo::Cargo;
use super::flight::Fault;
use super::link::{Link, Purpose};
use super::pool::Pool;
use crate::engine::{Broken, Read, Sql, Unavailable, Value};
use crate::schema::{self, Migration, Step};

/// Nothing interrupts who waits for the lock.
const PATIENT: Sql =
    Sql::fixed("SELECT set_config('statement_timeout', '0', true), set_config('lock_timeout', '0', true)");

/// The number of our lock: `portiere` in ASCII.
const LOCK: Sql = Sql::fixed("SELECT pg_advisory_xact_lock(8102098814193724005)");

/// A table that others use is not waited for so long that all of them wait behind.
const BRIEF: Sql = Sql::fixed("SELECT set_config('lock_timeout', '10s', true)");

/// Where the marker comes among the statements of a step.
const MARKER: usize = 3;

/// Runs what remains.
pub(super) async fn run(pool: &Pool, migrations: &'static [Migration]) -> Result<(), Unavailable> {
    let mut link = Link::make(pool, Purpose::Schema).await.map_err(|error| Unavailable(error.to_string()))?;
    let failed = |fault: Fault| Unavailable(format!("schema: {}", fault.sentence()));
    let plain = |sql| Read { sql, args: vec![] };
    let before = [plain(PATIENT), plain(LOCK)];
    let markers = Cargo::schema(&pool.book, &before, Some(schema::MARKERS)).map_err(Unavailable)?;
    link.send(markers).await.map_err(failed)?;
    let done = link.read(pool, plain(Sql::fixed(schema::DONE))).await.map_err(failed)?;
    let done: BTreeSet<(i64, i64)> = done.iter().filter_map(|row| pair(row)).collect();
    for step in schema::remaining(migrations, &done).map_err(|error| Unavailable(error.to_string()))? {
        take(pool, &mut link, &step).await?;
    }
    Ok(())
}

/// Changes the schema, one transaction for each statement: one for all would hold every table while it waits for the next.
pub(super) async fn alter(pool: &Pool, statements: Vec<String>) -> Result<(), Unavailable> {
    let mut link = Link::make(pool, Purpose::Schema).await.map_err(|error| Unavailable(error.to_string()))?;
    for statement in statements {
        let brief = Read { sql: BRIEF, args: vec![] };
        let cargo = Cargo::alteration(&pool.book, &brief, statement).map_err(Unavailable)?;
        link.send(cargo).await.map_err(|fault| Unavailable(fault.sentence()))?;
    }
    Ok(())
}

async fn take(pool: &Pool, link: &mut Link, step: &Step) -> Result<(), Unavailable> {
    tracing::debug!(version = step.version, step = step.step, name = step.name, "schema step");
    let plain = |sql| Read { sql, args: vec![] };
    let mark = Read { sql: Sql::fixed(schema::MARK), args: vec![Value::Int(step.version), Value::Int(step.step)] };
    let before = [plain(PATIENT), plain(LOCK), plain(BRIEF), mark];
    let cargo = Cargo::schema(&pool.book, &before, Some(step.sql)).map_err(Unavailable)?;
    match link.send(cargo).await {
        Ok(_) => Ok(()),
        // Another node was first.
        Err(Fault::Conflict { at: MARKER, why: Broken::Unique }) => Ok(()),
        Err(fault) => {
            let why = fault.sentence();
            Err(Unavailable(format!("schema version {}, step {}: {why}", step.version, step.step)))
        }
    }
}

fn pair(row: &[Value]) -> Option<(i64, i64)> {
    match row {
        [Value::Int(version), Value::Int(step)] => Some((*version, *step)),
        _ => None,
    }
}
