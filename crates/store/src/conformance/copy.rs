//! A copy of a whole database, and its restoration: everything since the copy is lost.

use super::replays::commit;
use super::{Done, Shared};
use crate::dialect::mysql::Created;
use crate::engine::{Must, Read, Row, Sql, Write};
use crate::migrations::MIGRATIONS;

/// Every table with its columns, as the migrations create them.
fn schema() -> Vec<(&'static str, Vec<&'static str>)> {
    let mut tables: Vec<(&str, Vec<&str>)> = Vec::new();
    for step in MIGRATIONS.iter().flat_map(|migration| migration.steps) {
        if let Some(created) = Created::of(step) {
            tables.push((created.table, created.columns().collect()));
        } else if let Some(table) = step.strip_prefix("DROP TABLE ") {
            tables.retain(|(known, _)| *known != table.trim());
        } else if let Some((table, column)) =
            step.strip_prefix("ALTER TABLE ").and_then(|rest| rest.split_once(" ADD COLUMN "))
        {
            let column = column.split(' ').next().unwrap_or_default();
            tables.iter_mut().filter(|(known, _)| *known == table).for_each(|(_, columns)| columns.push(column));
        }
    }
    tables
}

/// A copy of all rows.
pub(super) struct Copy(Vec<(&'static str, Vec<&'static str>, Vec<Row>)>);

impl Copy {
    pub(super) async fn of(engine: &Shared) -> Result<Self, String> {
        let mut tables = Vec::new();
        for (table, columns) in schema() {
            let sql = Sql::joined(&[&["SELECT "][..], &with_commas(&columns), &[" FROM ", table]].concat());
            let rows = engine.fetch(&[Read { sql, args: vec![] }]).await.map_err(|why| why.0)?.concat();
            tables.push((table, columns, rows));
        }
        Ok(Copy(tables))
    }

    /// Restores the database to the copy.
    pub(super) async fn put_back(&self, engine: &Shared) -> Done {
        for (table, columns, rows) in &self.0 {
            let sql = Sql::joined(&["DELETE FROM ", table]);
            commit(engine, vec![Write { sql, args: vec![], must: Must::Any }]).await?;
            let head = [&["INSERT INTO ", *table, " ("][..], &with_commas(columns), &[") VALUES ("]].concat();
            let sql = [head, with_commas(&vec!["?"; columns.len()]), vec![")"]].concat();
            let insert = |row: &Row| Write { sql: Sql::joined(&sql), args: row.clone(), must: Must::Touch(1) };
            for rows in rows.chunks(50) {
                commit(engine, rows.iter().map(insert).collect()).await?;
            }
        }
        Ok(())
    }
}

fn with_commas(words: &[&'static str]) -> Vec<&'static str> {
    words.iter().flat_map(|word| [", ", *word]).skip(1).collect()
}
