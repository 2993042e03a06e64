//! Walks through a table of a file in key order. SQLite stores whatever it is given, and none of it stops this walk.

use super::Trouble;
use super::catalogue::{Kind, Table};
use crate::engine::{Engine, Read, Row, Sql, Unavailable, Value};

/// A walk through a table of a file.
pub(super) struct Raw<'a> {
    engine: &'a dyn Engine,
    table: &'a Table,
    /// The last key seen that can be bound to a statement.
    after: Option<Row>,
    /// The number of rows seen after it.
    past: usize,
}

impl<'a> Raw<'a> {
    /// Begins at the first row.
    pub(super) fn new(engine: &'a dyn Engine, table: &'a Table) -> Self {
        Raw { engine, table, after: None, past: 0 }
    }

    /// Returns the next rows: `limit` of them, or what is left. A text that is not UTF-8 is returned as bytes.
    pub(super) async fn page(&mut self, limit: usize) -> Result<Vec<Row>, Trouble> {
        let rows = self.ask(limit).await?;
        match rows.iter().rposition(|row| binds(self.table, row)) {
            Some(at) => (self.after, self.past) = (Some(self.table.key_of(&rows[at])), rows.len() - 1 - at),
            None => self.past += rows.len(),
        }
        Ok(rows)
    }

    async fn ask(&self, limit: usize) -> Result<Vec<Row>, Unavailable> {
        let (name, key) = (&self.table.name, self.table.key_names().join(", "));
        let columns = self.table.names().join(", ");
        let marks = vec!["?"; self.table.key.len()].join(", ");
        let behind = self.after.as_ref().map_or(String::new(), |_| format!(" WHERE ({key}) > ({marks})"));
        let sql = format!("SELECT {columns} FROM {name}{behind} ORDER BY {key} LIMIT ? OFFSET ?");
        let bounds = [limit, self.past].map(|bound| Value::Int(i64::try_from(bound).unwrap_or(i64::MAX)));
        let args = self.after.iter().flatten().cloned().chain(bounds).collect();
        let read = Read { sql: Sql::of_catalogue(sql), args };
        Ok(self.engine.fetch(&[read]).await?.pop().unwrap_or_default())
    }
}

/// Whether the key of a row can be bound to a statement.
pub(super) fn binds(table: &Table, row: &Row) -> bool {
    table.key.iter().all(|at| match (table.columns[*at].kind, &row[*at]) {
        (Kind::Int, Value::Int(_)) | (Kind::Blob, Value::Blob(_)) => true,
        (Kind::Text, Value::Text(text)) => !text.as_bytes().contains(&0),
        _ => false,
    })
}
