//! Brings a SQLite file to this program's schema, on the writer's thread.

use rusqlite::{Connection, params};

use super::fault::Fault;
use super::group::{commit, execute, undo};
use super::planner;
use crate::schema::{self, Migration, State, Step};

/// Runs the remaining steps, each with its marker in one transaction.
pub(super) fn run(conn: &Connection, migrations: &'static [Migration]) -> Result<(), Fault> {
    conn.execute_batch(schema::MARKERS)?;
    conn.execute_batch(schema::ANNOUNCED)?;
    let pairs = |sql| {
        let mut asked = conn.prepare(sql)?;
        let rows = asked.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
        rows.collect::<rusqlite::Result<Vec<(i64, i64)>>>()
    };
    let (done, announced) = (pairs(schema::DONE)?, pairs(schema::OLDEST)?);
    let state = State { done: done.into_iter().collect(), announced: announced.into_iter().collect() };
    let plan = schema::plan(migrations, &state).map_err(|error| Fault::Group(error.to_string()))?;
    plan.tell(migrations);
    for version in &plan.announce {
        conn.execute(schema::ANNOUNCE, *version)?;
    }
    for step in plan.steps {
        tracing::debug!(version = step.version, step = step.step, name = step.name, "schema step");
        execute(conn, "BEGIN IMMEDIATE")?;
        let ran = take(conn, &step).and_then(|()| commit(conn));
        undo(conn, &ran)?;
        ran?;
    }
    planner::tell(conn)
}

/// Runs statements that change the schema in one transaction.
pub(super) fn alter(conn: &Connection, statements: &[String]) -> Result<(), Fault> {
    execute(conn, "BEGIN IMMEDIATE")?;
    let run = || statements.iter().try_for_each(|sql| conn.execute_batch(sql));
    let ran = run().map_err(Fault::from).and_then(|()| commit(conn));
    undo(conn, &ran)?;
    ran
}

fn take(conn: &Connection, step: &Step) -> Result<(), Fault> {
    let failed = |fault: Fault| match fault {
        Fault::Fatal(text) => Fault::Fatal(text),
        other => Fault::Group(format!("schema version {}, step {}: {}", step.version, step.step, other.text())),
    };
    let run = || {
        conn.execute_batch(step.sql)?;
        conn.execute(schema::MARK, params![step.version, step.step]).map(drop)
    };
    run().map_err(Fault::from).map_err(failed)
}
