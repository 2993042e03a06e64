//! Walks through a table in the order of its key.

use super::Trouble;
use super::catalogue::{Kind, Table};
use crate::engine::{Engine, Read, Row, Sql, Value};

/// The approximate target size of a page, in bytes.
const WEIGHT: usize = 1 << 19;

/// The smallest number of rows in a page.
const FEWEST: usize = 16;

/// Returns the number of rows in a table.
pub(super) async fn count(engine: &dyn Engine, table: &Table) -> Result<u64, Trouble> {
    let sql = Sql::of_catalogue(format!("SELECT COUNT(*) FROM {}", table.name));
    match engine.fetch(&[Read { sql, args: vec![] }]).await?.concat().concat().as_slice() {
        [Value::Int(rows)] => Ok(rows.unsigned_abs()),
        _ => Err(Trouble::new(format!("the rows of {} cannot be counted", table.name))),
    }
}

/// Counts the rows of each table, and sorts the largest first, so that the longest copy does not begin last.
pub(super) async fn counted(engine: &dyn Engine, tables: Vec<Table>) -> Result<Vec<(Table, u64)>, Trouble> {
    let mut counted = Vec::with_capacity(tables.len());
    for table in tables {
        let rows = count(engine, &table).await?;
        counted.push((table, rows));
    }
    counted.sort_by(|(one, fewer), (other, more)| more.cmp(fewer).then_with(|| one.name.cmp(&other.name)));
    Ok(counted)
}

/// A walk through a table.
pub(super) struct Walk<'a> {
    engine: &'a dyn Engine,
    table: &'a Table,
    first: Sql,
    next: Vec<(Sql, usize)>,
    after: Option<Row>,
}

impl<'a> Walk<'a> {
    /// Begins at the first row, or after the row with the key `after`.
    pub(super) fn new(engine: &'a dyn Engine, table: &'a Table, after: Option<Row>) -> Self {
        let select = format!("SELECT {}", table.names().join(", "));
        let (name, key) = (&table.name, table.key_names());
        let first = format!("{select} FROM {name} ORDER BY {} LIMIT ?", key.join(", "));
        let next = engine.dialect().after(&select, name, &key);
        let next = next.into_iter().map(|(sql, taken)| (Sql::of_catalogue(sql), taken)).collect();
        Walk { engine, table, first: Sql::of_catalogue(first), next, after }
    }

    /// Returns the next rows: `limit` of them, or what is left.
    pub(super) async fn page(&mut self, limit: usize) -> Result<Vec<Row>, Trouble> {
        let bound = |taken: usize| Value::Int(i64::try_from(limit - taken).unwrap_or(i64::MAX));
        let mut page = Vec::new();
        match &self.after {
            None => page = self.ask(self.first.clone(), vec![bound(0)]).await?,
            Some(after) => {
                for (sql, taken) in &self.next {
                    let args = after[..*taken].iter().cloned().chain([bound(page.len())]).collect();
                    page.append(&mut self.ask(sql.clone(), args).await?);
                    if page.len() >= limit {
                        break;
                    }
                }
            }
        }
        if let Some(last) = page.last() {
            self.after = Some(self.table.key_of(last));
        }
        Ok(page)
    }

    async fn ask(&self, sql: Sql, args: Vec<Value>) -> Result<Vec<Row>, Trouble> {
        let rows = self.engine.fetch(&[Read { sql, args }]).await?.pop().unwrap_or_default();
        match rows.iter().find_map(|row| self.strange(row)) {
            None => Ok(rows),
            Some(column) => {
                let table = &self.table.name;
                Err(Trouble::new(format!("the column {column} of {table} holds a value of the wrong type")))
            }
        }
    }

    /// Returns the first column with a value of a wrong type. SQLite stores whatever it is given.
    fn strange(&self, row: &Row) -> Option<&'a str> {
        let fits = |kind: Kind, value: &Value| match value {
            Value::Null => true,
            Value::Int(_) => kind == Kind::Int,
            Value::Text(_) => kind == Kind::Text,
            Value::Blob(_) => kind == Kind::Blob,
        };
        let mut columns = self.table.columns.iter().zip(row);
        columns.find(|(column, value)| !fits(column.kind, value)).map(|(column, _)| column.name.as_str())
    }
}

/// The number of rows that the next page should have, judging by these rows.
pub(super) fn next(rows: &[Row], most: usize) -> usize {
    let weight: usize = rows.iter().map(weight).sum();
    let Some(each) = weight.checked_div(rows.len()) else { return most };
    (WEIGHT / each.max(1)).clamp(FEWEST.min(most), most)
}

/// The approximate size of a row, in bytes.
pub(super) fn weight(row: &Row) -> usize {
    row.iter().map(weight_of).sum()
}

/// The approximate size of one value.
pub(super) fn weight_of(value: &Value) -> usize {
    match value {
        Value::Null => 1,
        Value::Int(_) => 8,
        Value::Text(text) => text.len(),
        Value::Blob(bytes) => bytes.len(),
    }
}
