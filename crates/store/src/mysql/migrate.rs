//! Brings a database to this program's schema.
//!
//! These servers commit at every DDL statement, so a step and its marker are two commits. If a step finds its work
//! already done, it was interrupted between the two, and only its marker is written.

use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Error};

use super::fault::{Fault, sentence};
use crate::dialect::mysql::{self, Created, Flavor, Keyed};
use crate::remote::{BRIEF, Patience};
use crate::schema::{self, Migration, State, Step};

/// Lets one program at a time migrate, of those that use this server. A second program waits for as long as the first
/// takes, and logs that each minute. The lock's name contains the database's name, cut to the permitted length.
const LOCK: &str = "SELECT GET_LOCK(CONCAT('portiere:', LEFT(DATABASE(), 50)), 60)";
const UNLOCK: &str = "SELECT RELEASE_LOCK(CONCAT('portiere:', LEFT(DATABASE(), 50)))";

/// Error numbers of cluster members that refuse such a lock, since it would hold on that member only: Galera in MariaDB
/// 10.6.13 and 10.11.3, and Percona XtraDB Cluster in its strict mode.
const NO_LOCKS: [u16; 2] = [1235, 1105];

/// Session limits: rebuilding a large table may take long, but waiting for other users of a table is kept short, so
/// that not all of them queue behind the change. It is retried instead.
fn limits(flavor: Flavor) -> String {
    let longest = match flavor {
        Flavor::MariaDb => "max_statement_time",
        Flavor::MySql => "max_execution_time",
    };
    format!("SET SESSION {longest} = 0, lock_wait_timeout = {}", BRIEF.as_secs())
}

/// Error numbers: a table, column or index that exists; a column or index that does not; a table that does not.
const TABLE_EXISTS: u16 = 1050;
const DONE: [u16; 4] = [1060, 1061, 1091, 1051];
const DUPLICATE: u16 = 1062;
/// Error numbers: a trigger that exists; one that may not be created with a binary log, or not by this user.
const TRIGGER_EXISTS: u16 = 1359;
const NO_TRIGGERS: [u16; 2] = [1419, 1142];

/// Runs the remaining steps.
pub(super) async fn run(conn: &mut Conn, flavor: Flavor, migrations: &'static [Migration]) -> Result<(), String> {
    conn.query_drop(limits(flavor)).await.map_err(|error| sentence(&error))?;
    lock(conn).await?;
    let ran = steps(conn, flavor, migrations).await;
    // Closing the connection releases the lock as well.
    drop(conn.query_drop(UNLOCK).await);
    ran
}

/// Waits until no other program migrates this database, if the server has such a lock: otherwise the second program
/// finds at each step that its work is done, as it does on another member of a cluster.
async fn lock(conn: &mut Conn) -> Result<(), String> {
    loop {
        let locked: Option<Option<i64>> = match conn.query_first(LOCK).await {
            Err(Error::Server(server)) if NO_LOCKS.contains(&server.code) => {
                tracing::debug!(why = server.message, "the server did not grant the lock for schema changes");
                return Ok(());
            }
            locked => locked.map_err(|error| sentence(&error))?,
        };
        match locked.flatten() {
            Some(1) => return Ok(()),
            Some(_) => tracing::info!("another program is migrating this database: waiting for it"),
            // Out of memory, or the statement was killed.
            None => return Err("the server did not grant the lock for schema changes".to_owned()),
        }
    }
}

/// Changes the schema. Each statement is a commit of its own on these servers.
pub(super) async fn alter(conn: &mut Conn, flavor: Flavor, statements: &[String]) -> Result<(), String> {
    conn.query_drop(limits(flavor)).await.map_err(|error| sentence(&error))?;
    for statement in statements {
        match change(conn, statement).await {
            Err(Error::Server(server)) if server.code == TRIGGER_EXISTS => {}
            Err(Error::Server(server)) if NO_TRIGGERS.contains(&server.code) => {
                return Err(format!(
                    "error {}: {}: the user needs the privilege TRIGGER on the database; where the server writes a binary \
                     log or belongs to a Galera cluster, an administrator has to run SET GLOBAL log_bin_trust_function_creators = 1 before",
                    server.code, server.message
                ));
            }
            done => done.map_err(|error| sentence(&error))?,
        }
    }
    Ok(())
}

/// Runs one statement, and retries it while others are in its way.
async fn change(conn: &mut Conn, sql: &str) -> Result<(), Error> {
    let mut patience = Patience::default();
    loop {
        match conn.query_drop(sql).await {
            Err(error) if is_rival(&error) && patience.lasts().await => {}
            done => return done,
        }
    }
}

/// Whether others were in the way: on this server, or on another member of its cluster.
fn is_rival(error: &Error) -> bool {
    matches!(Fault::of(error), Fault::Rival(_) | Fault::Held(_))
}

/// Whether a table with this name exists.
async fn is_there(conn: &mut Conn, table: &str) -> Result<bool, Error> {
    let sql = "SELECT 1 FROM information_schema.tables WHERE table_schema = DATABASE() AND table_name = ?";
    let found: Option<i64> = conn.exec_first(sql, (table,)).await?;
    Ok(found.is_some())
}

async fn steps(conn: &mut Conn, flavor: Flavor, migrations: &'static [Migration]) -> Result<(), String> {
    let plain = Keyed::default();
    for (name, table) in schema::OURS {
        if is_there(conn, name).await.map_err(|error| sentence(&error))? {
            continue;
        }
        let made = mysql::step(table, &plain, flavor).map_err(|why| why.0.to_owned())?;
        change(conn, &made).await.map_err(|error| sentence(&error))?;
    }
    let done: Vec<(i64, i64)> = conn.query(schema::DONE).await.map_err(|error| sentence(&error))?;
    let announced: Vec<(i64, i64)> = conn.query(schema::OLDEST).await.map_err(|error| sentence(&error))?;
    let state = State { done: done.into_iter().collect(), announced: announced.into_iter().collect() };
    let plan = schema::plan(migrations, &state).map_err(|error| error.to_string())?;
    plan.tell(migrations);
    for version in plan.announce {
        announce(conn, version).await.map_err(|error| sentence(&error))?;
    }
    for step in plan.steps {
        tracing::debug!(version = step.version, step = step.step, name = step.name, "schema step");
        let of_version = migrations.iter().find(|migration| migration.version == step.version);
        let keyed = Keyed::of(of_version.map_or(&[], |migration| migration.steps));
        take(conn, &step, (&keyed, flavor))
            .await
            .map_err(|why| format!("schema version {}, step {}: {why}", step.version, step.step))?;
    }
    Ok(())
}

/// Announces which programs can work on a version, before any of its steps. The lock holds on one cluster member only:
/// a program that uses another member may have announced it first.
async fn announce(conn: &mut Conn, version: (i64, i64)) -> Result<(), Error> {
    let mut patience = Patience::default();
    loop {
        match conn.exec_drop(schema::ANNOUNCE, version).await {
            Err(Error::Server(server)) if server.code == DUPLICATE => return Ok(()),
            Err(error) if is_rival(&error) && patience.lasts().await => {}
            done => return done,
        }
    }
}

/// Runs one step, and retries it while others are in its way.
async fn take(conn: &mut Conn, step: &Step, (keyed, flavor): (&Keyed, Flavor)) -> Result<(), String> {
    let sql = mysql::step(step.sql, keyed, flavor).map_err(|why| why.0.to_owned())?;
    let mut patience = Patience::default();
    loop {
        match attempt(conn, step, &sql).await {
            Err(error) if is_rival(&error) && patience.lasts().await => {
                // Rows that the step changed must not be committed without its marker.
                conn.query_drop("ROLLBACK").await.map_err(|error| sentence(&error))?;
            }
            done => return done.map_err(|error| sentence(&error)),
        }
    }
}

/// Runs a step and its marker: in one transaction if the step changes rows, one after the other if it changes a table.
async fn attempt(conn: &mut Conn, step: &Step, sql: &str) -> Result<(), Error> {
    conn.query_drop("START TRANSACTION").await?;
    if let Err(error) = conn.query_drop(sql).await
        && !was_done(conn, step, &error).await?
    {
        return Err(error);
    }
    match conn.exec_drop(schema::MARK, (step.version, step.step)).await {
        // Another program was first: the rows are not changed a second time.
        Err(Error::Server(server)) if server.code == DUPLICATE => conn.query_drop("ROLLBACK").await,
        marked => {
            marked?;
            conn.query_drop("COMMIT").await
        }
    }
}

/// Whether a step failed because its work was done before, only without its marker.
async fn was_done(conn: &mut Conn, step: &Step, error: &Error) -> Result<bool, Error> {
    let Error::Server(server) = error else { return Ok(false) };
    match Created::of(step.sql) {
        Some(created) if server.code == TABLE_EXISTS => {
            // The table may belong to somebody else.
            let sql = "SELECT column_name FROM information_schema.columns \
                       WHERE table_schema = DATABASE() AND table_name = ? ORDER BY ordinal_position";
            let found: Vec<String> = conn.exec(sql, (created.table,)).await?;
            // Another program may have created the table and already changed it, but only after it wrote the marker.
            Ok(created.columns().eq(found.iter().map(String::as_str)) || is_marked(conn, step).await?)
        }
        Some(_) => Ok(false),
        None => Ok(DONE.contains(&server.code)),
    }
}

/// Whether a step is marked as done.
async fn is_marked(conn: &mut Conn, step: &Step) -> Result<bool, Error> {
    let sql = "SELECT 1 FROM schema_steps WHERE version = ? AND step = ?";
    let found: Option<i64> = conn.exec_first(sql, (step.version, step.step)).await?;
    Ok(found.is_some())
}

#[cfg(test)]
mod tests {
    use super::*;
    use mysql_async::ServerError;

    #[test]
    fn who_is_in_the_way_is_told_from_what_is_wrong() {
        // Red without `is_rival`: of two programs on two members of a cluster, one does not start.
        let error = |code| Error::Server(ServerError { code, message: String::new(), state: String::new() });
        for (code, rival) in [(1205, true), (1213, true), (DUPLICATE, false), (TABLE_EXISTS, false), (1142, false)] {
            assert_eq!(is_rival(&error(code)), rival, "{code}");
        }
        assert!(limits(Flavor::MariaDb).ends_with("max_statement_time = 0, lock_wait_timeout = 2"));
    }
}
