//! Looks through a database, before anything is done to it, for values that the target would not keep. It only reads,
//! while the database stays in use.

use futures_util::{StreamExt, TryStreamExt, stream};

use super::catalogue::{self, Kind, Table};
use super::limits::Limits;
use super::page::{self, Walk};
use super::raw::{self, Raw};
use super::{AT_ONCE, Step, Trouble};
use crate::dialect::Dialect;
use crate::engine::{Engine, Row, Value};

/// The maximum number of values that are reported one by one.
pub const TOLD: usize = 20;

/// The size of the first page, before the size of rows is known.
const FIRST: usize = 128;

/// The maximum number of characters of a key that are reported.
const LETTERS: usize = 40;

/// A value that the target would not keep.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Misfit {
    /// The table that it is in.
    pub table: String,
    /// The key of its row, for display: without bytes, which may be part of a secret.
    pub key: String,
    /// The column, or the columns that are too large together.
    pub column: String,
    /// Why it would not be kept, as the rest of a sentence that begins with the column.
    pub why: String,
}

/// The result of a look.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fit {
    /// The number of tables that were looked through.
    pub tables: usize,
    /// The number of rows that they had.
    pub rows: u64,
    /// The values that do not fit, up to [`TOLD`].
    pub misfits: Vec<Misfit>,
    /// The number of further values that do not fit.
    pub more: u64,
}

impl Fit {
    fn add(&mut self, misfit: Misfit) {
        if self.misfits.len() < TOLD { self.misfits.push(misfit) } else { self.more += 1 }
    }

    fn with(mut self, other: Fit) -> Fit {
        (self.tables, self.rows, self.more) =
            (self.tables + other.tables, self.rows + other.rows, self.more + other.more);
        other.misfits.into_iter().for_each(|misfit| self.add(misfit));
        self
    }
}

/// A look through a database.
pub struct Look<'a> {
    /// The database.
    pub from: &'a dyn Engine,
    /// The engine of the target.
    pub to: Dialect,
    /// The longest packet that the target accepts, in bytes, if it has such a limit.
    pub packet: Option<u64>,
    /// The maximum number of rows in a page.
    pub page: usize,
    /// Called at every step.
    pub tell: &'a (dyn Fn(Step) + Sync),
}

impl Look<'_> {
    /// Reads every row.
    pub async fn run(&self) -> Result<Fit, Trouble> {
        let tables = page::counted(self.from, catalogue::ours(self.from).await?).await?;
        (self.tell)(Step::Checking(tables.iter().map(|(_, rows)| rows).sum()));
        let looks = stream::iter(&tables)
            .map(|(table, _)| async move { Ok::<_, Trouble>((&table.name, self.table(table).await?)) });
        let mut found: Vec<(&String, Fit)> = looks.buffer_unordered(AT_ONCE).try_collect().await?;
        found.sort_by_key(|(name, _)| *name);
        Ok(found.into_iter().fold(Fit::default(), |all, (_, one)| all.with(one)))
    }

    async fn table(&self, table: &Table) -> Result<Fit, Trouble> {
        let limits = Limits::new(table, self.to, self.packet);
        let mut way = Way::new(self.from, table);
        let (mut fit, mut asked) = (Fit { tables: 1, ..Fit::default() }, FIRST.min(self.page));
        loop {
            let rows = way.page(asked).await?;
            for row in &rows {
                for (column, why) in limits.against(row) {
                    fit.add(Misfit { table: table.name.clone(), key: key(table, row), column, why });
                }
            }
            fit.rows += rows.len() as u64;
            (self.tell)(Step::Checked(rows.len() as u64));
            if rows.len() < asked {
                return Ok(fit);
            }
            // A server cannot be queried beyond this key. The row is reported, and no copy gets past it.
            if rows.last().is_some_and(|row| !way.goes_past(table, row)) {
                return Ok(fit);
            }
            asked = page::next(&rows, self.page);
        }
    }
}

/// The way in which a table is read.
enum Way<'a> {
    File(Raw<'a>),
    Server(Walk<'a>),
}

impl<'a> Way<'a> {
    fn new(engine: &'a dyn Engine, table: &'a Table) -> Self {
        match engine.dialect() {
            Dialect::Sqlite => Way::File(Raw::new(engine, table)),
            Dialect::Postgres | Dialect::Mysql => Way::Server(Walk::new(engine, table, None)),
        }
    }

    async fn page(&mut self, limit: usize) -> Result<Vec<Row>, Trouble> {
        match self {
            Way::File(raw) => raw.page(limit).await,
            Way::Server(walk) => walk.page(limit).await,
        }
    }

    fn goes_past(&self, table: &Table, row: &Row) -> bool {
        matches!(self, Way::File(_)) || raw::binds(table, row)
    }
}

/// The key of a row, for display.
fn key(table: &Table, row: &Row) -> String {
    let one = |at: &usize| {
        let column = &table.columns[*at];
        let shown = match (column.kind, &row[*at]) {
            (_, Value::Null) => "NULL".to_owned(),
            (_, Value::Int(number)) => number.to_string(),
            (Kind::Text, Value::Text(text)) => clipped(text),
            // A text in a column of bytes is not shown, either.
            (_, Value::Text(text)) => format!("({} bytes)", text.len()),
            (_, Value::Blob(bytes)) => format!("({} bytes)", bytes.len()),
        };
        format!("{} {shown}", column.name)
    };
    table.key.iter().map(one).collect::<Vec<_>>().join(", ")
}

fn clipped(text: &str) -> String {
    let end = text.char_indices().nth(LETTERS).map_or(text.len(), |(at, _)| at);
    format!("{:?}{}", &text[..end], if end < text.len() { "…" } else { "" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn so_many_are_told_and_the_rest_is_counted() {
        let misfit = |number: usize| Misfit {
            table: "users".into(),
            key: number.to_string(),
            column: "id".into(),
            why: "has 256 characters".into(),
        };
        let of = |many: usize| {
            let mut fit = Fit { tables: 1, rows: 100, ..Fit::default() };
            (0..many).for_each(|number| fit.add(misfit(number)));
            fit
        };
        assert_eq!((of(TOLD).misfits.len(), of(TOLD).more), (TOLD, 0));
        let both = of(15).with(of(30));
        assert_eq!((both.misfits.len(), both.more, both.rows, both.tables), (TOLD, 25, 200, 2));
    }

    #[test]
    fn a_key_is_told_in_a_few_letters_and_never_in_bytes() {
        use super::super::catalogue::Column;
        let kinds = [("realm", Kind::Text), ("token", Kind::Blob), ("number", Kind::Int)];
        let columns = kinds.map(|(name, kind)| Column { name: name.to_owned(), kind }).to_vec();
        let table = Table { name: "t".into(), columns, key: vec![0, 1, 2] };
        let row = vec![Value::Text("é".repeat(41)), Value::Blob(b"secret".to_vec()), Value::Int(7)];
        let told = key(&table, &row);
        assert_eq!(told, format!("realm \"{}\"…, token (6 bytes), number 7", "é".repeat(40)));
        let row = vec![Value::Text("a\0\n".into()), Value::Text("secret".into()), Value::Null];
        assert_eq!(key(&table, &row), "realm \"a\\0\\n\", token (6 bytes), number NULL");
    }
}
