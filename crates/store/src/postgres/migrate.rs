//! Brings a database to this program's schema, also while other nodes do so at the same time.
//!
//! Every transaction first takes one lock, then writes the step's marker, then runs the step: if two nodes run the same
//! step, the marker's key tells the second one that it is done before it runs anything.

use super::cargo::Cargo;
use super::flight::Fault;
use super::link::{Link, Purpose};
use super::path::Found;
use super::pool::Pool;
use crate::engine::{Broken, Read, Row, Sql, Unavailable, Value};
use crate::remote::{self, Patience};
use crate::schema::{self, Migration, State, Step};

/// No timeout interrupts a wait for the lock.
const PATIENT: Sql =
    Sql::fixed("SELECT set_config('statement_timeout', '0', true), set_config('lock_timeout', '0', true)");

/// Takes our advisory lock, whose number no other program is likely to use.
const LOCK: Sql = Sql::fixed("SELECT pg_advisory_xact_lock(8102098814193724005)");

/// Counts the holders of the lock in this database; the server shows its number in two halves.
const HELD: Sql = Sql::fixed(
    "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND granted AND objsubid = 1 \
     AND classid = CAST(1886416881 AS oid) AND objid = CAST(3676400229 AS oid) \
     AND database = (SELECT oid FROM pg_database WHERE datname = current_database())",
);

/// Limits the wait for a table in use, so that not all its users queue behind the change. It is retried instead.
fn brief() -> Read {
    let sql = Sql::fixed("SELECT set_config('lock_timeout', ?, true)");
    Read { sql, args: vec![Value::Text(format!("{}ms", remote::BRIEF.as_millis()))] }
}

/// The index of the marker among the statements of a step.
const MARKER: usize = 3;

/// Runs the remaining steps.
pub(super) async fn run(pool: &Pool, migrations: &'static [Migration]) -> Result<(), Unavailable> {
    let mut link = Link::make(pool, Purpose::Schema).await.map_err(|error| Unavailable(error.to_string()))?;
    let failed = |fault: Fault| Unavailable(format!("schema: {}", fault.sentence()));
    let plain = |sql| Read { sql, args: vec![] };
    let before = [plain(PATIENT), plain(LOCK)];
    let found = link.found(pool).await.map_err(|error| Unavailable(error.to_string()))?;
    found.fit().map_err(Unavailable)?;
    let mut told = false;
    for (at, (_, table)) in schema::OURS.iter().enumerate() {
        if found.has(at) {
            continue;
        }
        tell_of_another(pool, &mut link, &mut told).await;
        let made = Cargo::schema(&pool.book, &before, Some(table)).map_err(Unavailable)?;
        let denied = |fault: Fault| Unavailable(format!("schema: {}", found.lacks(table, fault.sentence())));
        link.send(made).await.map_err(denied)?;
    }
    let done = link.read(pool, plain(Sql::fixed(schema::DONE))).await.map_err(failed)?;
    let announced = link.read(pool, plain(Sql::fixed(schema::OLDEST))).await.map_err(failed)?;
    let state = State { done: pairs(&done).collect(), announced: pairs(&announced).collect() };
    let plan = schema::plan(migrations, &state).map_err(|error| Unavailable(error.to_string()))?;
    plan.tell(migrations);
    for version in &plan.announce {
        tell_of_another(pool, &mut link, &mut told).await;
        announce(pool, &mut link, *version).await?;
    }
    for step in &plan.steps {
        tell_of_another(pool, &mut link, &mut told).await;
        take(pool, &mut link, step, &found).await?;
    }
    Ok(())
}

/// Logs once, before it waits, why the start does not go on: otherwise it would look like a hang.
async fn tell_of_another(pool: &Pool, link: &mut Link, told: &mut bool) {
    if *told {
        return;
    }
    let held = link.read(pool, Read { sql: HELD, args: vec![] }).await;
    if held.is_ok_and(|rows| matches!(rows.first().and_then(|row| row.first()), Some(Value::Int(1..)))) {
        *told = true;
        tracing::info!("another program is migrating this database: waiting for it");
    }
}

/// Changes the schema, one transaction per statement: a single one would hold every table while it waits for the next.
pub(super) async fn alter(pool: &Pool, statements: Vec<String>) -> Result<(), Unavailable> {
    let mut link = Link::make(pool, Purpose::Schema).await.map_err(|error| Unavailable(error.to_string()))?;
    for statement in statements {
        let cargo = || Cargo::alteration(&pool.book, &brief(), statement.clone()).map_err(Unavailable);
        let mut patience = Patience::default();
        let mut done = link.send(cargo()?).await;
        while matches!(done, Err(Fault::Held(_))) && patience.lasts().await {
            done = link.send(cargo()?).await;
        }
        done.map_err(|fault| Unavailable(fault.sentence()))?;
    }
    Ok(())
}

/// Announces which programs can work on a version, before any of its steps.
async fn announce(pool: &Pool, link: &mut Link, (version, oldest): (i64, i64)) -> Result<(), Unavailable> {
    let plain = |sql| Read { sql, args: vec![] };
    let said = Read { sql: Sql::fixed(schema::ANNOUNCE), args: vec![Value::Int(version), Value::Int(oldest)] };
    let cargo = Cargo::schema(&pool.book, &[plain(PATIENT), plain(LOCK), brief(), said], None);
    match link.send(cargo.map_err(Unavailable)?).await {
        // Another node was first.
        Ok(_) | Err(Fault::Conflict { at: MARKER, why: Broken::Unique }) => Ok(()),
        Err(fault) => Err(Unavailable(format!("schema version {version}: {}", fault.sentence()))),
    }
}

async fn take(pool: &Pool, link: &mut Link, step: &Step, found: &Found) -> Result<(), Unavailable> {
    tracing::debug!(version = step.version, step = step.step, name = step.name, "schema step");
    let plain = |sql| Read { sql, args: vec![] };
    let mark = Read { sql: Sql::fixed(schema::MARK), args: vec![Value::Int(step.version), Value::Int(step.step)] };
    let before = [plain(PATIENT), plain(LOCK), brief(), mark];
    let cargo = || Cargo::schema(&pool.book, &before, Some(step.sql)).map_err(Unavailable);
    let mut patience = Patience::default();
    let mut done = link.send(cargo()?).await;
    while matches!(done, Err(Fault::Held(_))) && patience.lasts().await {
        done = link.send(cargo()?).await;
    }
    match done {
        Ok(_) => Ok(()),
        // Another node was first.
        Err(Fault::Conflict { at: MARKER, why: Broken::Unique }) => Ok(()),
        Err(fault) => {
            let why = found.lacks(step.sql, fault.sentence());
            Err(Unavailable(format!("schema version {}, step {}: {why}", step.version, step.step)))
        }
    }
}

fn pairs(rows: &[Row]) -> impl Iterator<Item = (i64, i64)> {
    rows.iter().filter_map(|row| match row.as_slice() {
        [Value::Int(one), Value::Int(other)] => Some((*one, *other)),
        _ => None,
    })
}
