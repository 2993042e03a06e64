//! The statements of batches, prepared once.

use std::collections::HashMap;

use rusqlite::{Connection, Statement};

use super::value;
use crate::engine::Write;

/// Statements that the writer keeps prepared. Statements known at compile time are found by the address of their text,
/// which is cheaper than comparing texts, and there are only so many. Joined ones go through the connection's cache.
pub(super) struct Ready<'conn> {
    conn: &'conn Connection,
    held: HashMap<(usize, usize), Statement<'conn>>,
}

impl<'conn> Ready<'conn> {
    pub(super) fn new(conn: &'conn Connection) -> Self {
        Ready { conn, held: HashMap::new() }
    }

    pub(super) fn conn(&self) -> &'conn Connection {
        self.conn
    }

    /// Runs a statement, and returns how many rows it touched, or found if it is a SELECT.
    pub(super) fn count(&mut self, write: &Write) -> rusqlite::Result<u64> {
        let Some(text) = write.sql.known() else {
            return count(&mut *self.conn.prepare_cached(write.sql.text())?, write);
        };
        let place = (text.as_ptr().addr(), text.len());
        if let Some(held) = self.held.get_mut(&place) {
            return count(held, write);
        }
        let mut statement = self.conn.prepare(text)?;
        let counted = count(&mut statement, write);
        self.held.insert(place, statement);
        counted
    }
}

fn count(statement: &mut Statement<'_>, write: &Write) -> rusqlite::Result<u64> {
    value::bind(statement, &write.args)?;
    if statement.column_count() == 0 {
        return Ok(statement.raw_execute()? as u64);
    }
    let mut rows = statement.raw_query();
    let mut found = 0;
    while rows.next()?.is_some() {
        found += 1;
    }
    Ok(found)
}
