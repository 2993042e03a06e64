//! Checks the whole file in the background after an unclean stop.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, InterruptHandle};

use super::open;
use super::state::{Check, State};

/// A running check.
pub(super) struct Checker {
    thread: JoinHandle<()>,
    interrupt: InterruptHandle,
}

impl Checker {
    /// Starts the check, which reports its result to `state`. A damaged file is not written to any more.
    pub(super) fn start(path: &Path, state: Arc<State>) -> rusqlite::Result<io::Result<Self>> {
        let conn = open::reader(path)?;
        let interrupt = conn.get_interrupt_handle();
        state.checked(Check::Running);
        let thread = thread::Builder::new().name("sqlite-check".to_owned()).spawn(move || {
            let found = match damage(&conn) {
                Ok(None) => Check::Passed,
                Ok(Some(text)) => Check::Damaged(text),
                Err(error) => match error.sqlite_error_code() {
                    Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => Check::Damaged(error.to_string()),
                    _ => Check::Abandoned(error.to_string()),
                },
            };
            if let Check::Damaged(text) = &found {
                tracing::error!(found = text, "the database is damaged");
                state.end(&format!("the database is damaged: {text}"));
            }
            state.checked(found);
        });
        Ok(thread.map(|thread| Checker { thread, interrupt }))
    }

    /// Stops the check.
    pub(super) fn stop(self) {
        // The interrupt only stops what runs at this moment: between two tables it needs another try.
        while !self.thread.is_finished() {
            self.interrupt.interrupt();
            thread::sleep(Duration::from_millis(1));
        }
    }
}

/// Returns the first damage found. Table by table, so that the log is not blocked for as long as the whole file takes.
fn damage(conn: &Connection) -> rusqlite::Result<Option<String>> {
    let mut tables: Vec<String> = conn
        .prepare("SELECT name FROM sqlite_schema WHERE type = 'table'")?
        .query_map([], |row| row.get(0))?
        .collect::<rusqlite::Result<_>>()?;
    tables.push("sqlite_schema".to_owned());
    for table in tables {
        let mut said = "ok".to_owned();
        conn.pragma(None, "quick_check", table.as_str(), |row| {
            said = row.get(0)?;
            Ok(())
        })?;
        if said != "ok" {
            return Ok(Some(said));
        }
    }
    Ok(None)
}
