//! Copies a table.

use futures_util::future::try_join;

use super::catalogue::Table;
use super::marks::{self, Copied};
use super::page::{self, Walk};
use super::{Move, Step, Trouble};
use crate::dialect::Dialect;
use crate::engine::{CommitError, Must, Row, Sql, Write};

/// The maximum number of values in one statement.
const VALUES: usize = 8192;

/// The maximum size of the values of one statement, in bytes: a server may refuse packets of more than one MiB.
const WEIGHT: usize = 1 << 19;

/// The size of the first page, before the size of rows is known.
const FIRST: usize = 128;

/// Copies what is not copied yet. Reads the next page while one is being written.
pub(super) async fn table(of: &Move<'_>, table: &Table) -> Result<(), Trouble> {
    let mut was = marks::copied(of.to, of.id, &table.name).await?;
    let after = was.as_ref().map_or(Ok(None), Copied::key)?;
    if let Some(copied) = &was {
        (of.tell)(Step::Found(copied.rows));
        if copied.done {
            return Ok(());
        }
    }
    let mut walk = Walk::new(of.from, table, after);
    let mut asked = FIRST.min(of.page);
    let mut rows = walk.page(asked).await?;
    loop {
        let done = rows.len() < asked;
        let key = rows.last().map(|row| Copied::kept(&table.key_of(row)));
        let before = was.as_ref();
        let is = Copied {
            rows: before.map_or(0, |was| was.rows) + rows.len() as u64,
            after: key.or_else(|| before.and_then(|was| was.after.clone())),
            done,
        };
        let step = Step::Copied(rows.len() as u64);
        asked = page::next(&rows, of.page);
        let read = async { if done { Ok(Vec::new()) } else { walk.page(asked).await } };
        let ((), next) = try_join(write(of, table, rows, (before, &is)), read).await?;
        (of.tell)(step);
        if done {
            return Ok(());
        }
        (was, rows) = (Some(is), next);
    }
}

/// Writes a page and the progress of the copy, in one commit.
async fn write(
    of: &Move<'_>,
    table: &Table,
    rows: Vec<Row>,
    copied: (Option<&Copied>, &Copied),
) -> Result<(), Trouble> {
    let many = rows.len() as u64;
    let mut writes = vec![marks::advance(of.id, &table.name, copied.0, copied.1)];
    writes.extend(inserts(of.to.dialect(), table, rows));
    match of.to.commit(writes).await {
        Ok(counts) if counts.iter().skip(1).sum::<u64>() == many => Ok(()),
        Ok(_) => Err(Trouble::new(format!("not every row of {} was written", table.name))),
        Err(CommitError::Conflict { at: 0, .. }) => {
            Err(Trouble::new("another process is moving the same databases: this one stops".to_owned()))
        }
        Err(CommitError::Conflict { .. }) => {
            Err(Trouble::new(format!("the target has rows in {} that this move did not write", table.name)))
        }
        Err(error) => Err(error.into()),
    }
}

/// The statements that insert these rows: many rows each if a statement costs a round trip, and of few lengths, so that
/// few have to be prepared.
fn inserts(dialect: Dialect, table: &Table, rows: Vec<Row>) -> Vec<Write> {
    let (columns, names) = (table.columns.len().max(1), table.names().join(", "));
    let longest = match dialect {
        Dialect::Sqlite => 1,
        Dialect::Postgres | Dialect::Mysql => 1 << (VALUES / columns).max(1).ilog2(),
    };
    let row = format!("({})", vec!["?"; columns].join(", "));
    let insert = |rows: usize| {
        Sql::of_catalogue(format!(
            "INSERT INTO {} ({names}) VALUES {}",
            table.name,
            vec![row.as_str(); rows].join(", ")
        ))
    };
    let mut writes = Vec::new();
    let mut rows = rows.into_iter();
    while !rows.as_slice().is_empty() {
        let together = together(rows.as_slice(), longest);
        let args = rows.by_ref().take(together).flatten().collect();
        writes.push(Write { sql: insert(together), args, must: Must::Any });
    }
    writes
}

/// How many of the first rows go into one statement: a power of two.
fn together(rows: &[Row], longest: usize) -> usize {
    let mut many = longest.min(1 << rows.len().max(1).ilog2());
    while many > 1 && rows[..many].iter().map(page::weight).sum::<usize>() > WEIGHT {
        many /= 2;
    }
    many
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::Value;

    #[test]
    fn a_statement_fits_into_a_packet_of_a_mib() {
        // Red with a WEIGHT of a MiB: a move to such a server stops half-way, while the source refuses writes.
        let rows = |each: usize| vec![vec![Value::Text("a".repeat(each))]; 8];
        assert_eq!([300 << 10, 200 << 10, 60 << 10].map(|each| together(&rows(each), 8)), [1, 2, 8]);
    }
}
