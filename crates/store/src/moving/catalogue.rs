//! The tables and columns of a database, read from its own catalogue.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use super::Trouble;
use crate::dialect::mysql::Created;
use crate::engine::{Engine, Read, Row, Sql, Value};
use crate::migrations::MIGRATIONS;
use crate::schema;

/// The table that records which steps brought the schema there; each database has its own.
pub const STEPS: &str = "schema_steps";

/// The table in which versions of the schema are announced; each database has its own.
const VERSIONS: &str = "schema_versions";

/// The table that records moves; each database has its own.
pub const MOVES: &str = "moves";

/// The type of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A 64-bit integer.
    Int,
    /// Text.
    Text,
    /// Bytes.
    Blob,
}

/// A column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// Its type.
    pub kind: Kind,
}

/// A table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    /// Its name.
    pub name: String,
    /// Its columns, in the table's own order.
    pub columns: Vec<Column>,
    /// The indexes of the columns that make the primary key, in the key's order.
    pub key: Vec<usize>,
}

impl Table {
    /// The names of all columns.
    pub(crate) fn names(&self) -> Vec<&str> {
        self.columns.iter().map(|column| column.name.as_str()).collect()
    }

    /// The names of the key's columns.
    pub(crate) fn key_names(&self) -> Vec<&str> {
        self.key.iter().map(|at| self.columns[*at].name.as_str()).collect()
    }

    /// Returns the key of a row.
    pub(super) fn key_of(&self, row: &Row) -> Row {
        self.key.iter().map(|at| row[*at].clone()).collect()
    }

    /// Whether both have the same columns, types and key, in whatever order.
    fn is_like(&self, other: &Table) -> bool {
        let sorted = |table: &Table| {
            let mut columns = table.columns.clone();
            columns.sort_by(|one, other| one.name.cmp(&other.name));
            columns
        };
        sorted(self) == sorted(other) && self.key_names() == other.key_names()
    }
}

/// Reads every table, by name.
pub async fn tables(engine: &dyn Engine) -> Result<BTreeMap<String, Table>, Trouble> {
    let read = Read { sql: Sql::fixed(engine.dialect().columns()), args: vec![] };
    let rows = engine.fetch(&[read]).await?.pop().unwrap_or_default();
    let mut tables: BTreeMap<String, (Table, BTreeMap<i64, usize>)> = BTreeMap::new();
    for row in rows {
        let [Value::Text(table), Value::Text(column), Value::Text(kind), Value::Int(place)] = row.as_slice() else {
            return Err(Trouble::new("the database did not list its tables".to_owned()));
        };
        let kind = match kind.as_str() {
            "bigint" => Kind::Int,
            "text" => Kind::Text,
            "blob" => Kind::Blob,
            other => {
                return Err(Trouble::new(format!(
                    "{table}.{column} has the type {other}: it is not a column of Portiere's"
                )));
            }
        };
        if let Some(name) = [table, column].into_iter().find(|name| !is_plain(name)) {
            return Err(Trouble::new(format!("{name:?} is not a name that Portiere uses")));
        }
        let empty = || (Table { name: table.clone(), columns: Vec::new(), key: Vec::new() }, BTreeMap::new());
        let (found, key) = tables.entry(table.clone()).or_insert_with(empty);
        if *place > 0 {
            key.insert(*place, found.columns.len());
        }
        found.columns.push(Column { name: column.clone(), kind });
    }
    let finish = |(name, (mut table, key)): (String, (Table, BTreeMap<i64, usize>))| {
        table.key = key.into_values().collect();
        (name, table)
    };
    Ok(tables.into_iter().map(finish).collect())
}

/// Whether a name is safe: names become part of statements.
pub(super) fn is_plain(name: &str) -> bool {
    name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
}

/// Returns the tables that both databases have, except those that each has for itself, with the source's column order.
/// Refuses two databases whose schemas differ.
pub(super) async fn common(from: &dyn Engine, to: &dyn Engine) -> Result<Vec<Table>, Trouble> {
    let of = |end: &'static str| move |trouble: Trouble| trouble.told(|why| format!("{end}: {why}"));
    let (source, target) = (tables(from).await.map_err(of("the source"))?, tables(to).await.map_err(of("the target"))?);
    if !source.contains_key(STEPS) {
        return Err(not_ours());
    }
    let (theirs, ours) = (steps(from).await?, steps(to).await?);
    if theirs != ours {
        return Err(Trouble::new(format!(
            "the source has schema {} and the target {}: another version of this program has used the target",
            newest(&theirs),
            newest(&ours)
        )));
    }
    let mut names = source.keys().chain(target.keys()).filter(|name| !is_own(name));
    if let Some(name) = names.find(|name| source.contains_key(*name) != target.contains_key(*name)) {
        return Err(Trouble::new(format!("only one of the two databases has a table {name}, which is not Portiere's")));
    }
    let shared: Vec<Table> = source.into_values().filter(|table| !is_own(&table.name)).collect();
    for table in &shared {
        if table.key.is_empty() || !target.get(&table.name).is_some_and(|other| table.is_like(other)) {
            return Err(Trouble::new(format!("the table {} is not the same in both databases", table.name)));
        }
    }
    Ok(shared)
}

/// Returns the tables of a source that are copied. Refuses a source with a table that is not this program's.
pub(super) async fn ours(from: &dyn Engine) -> Result<Vec<Table>, Trouble> {
    let known: BTreeSet<&str> = MIGRATIONS.iter().flat_map(|one| one.steps).filter_map(made).collect();
    let found: Vec<Table> = tables(from).await?.into_values().filter(|table| !is_own(&table.name)).collect();
    match found.iter().find(|table| !known.contains(table.name.as_str()) || table.key.is_empty()) {
        Some(table) => Err(Trouble::new(format!("the source has a table {}, which is not Portiere's", table.name))),
        None => Ok(found),
    }
}

/// The table that a step of the schema creates.
fn made(step: &&'static str) -> Option<&'static str> {
    Created::of(step).map(|created| created.table)
}

/// Whether each database has its own version of a table, which is not copied.
pub fn is_own(table: &str) -> bool {
    [STEPS, VERSIONS, MOVES].contains(&table)
}

/// Checks that a source has this program's schema, as both ends must. Asked before the target is migrated to it. A move
/// that is `begun` continues with the program that began it.
pub(super) async fn fits(from: &dyn Engine, begun: bool) -> Result<(), Trouble> {
    if !has(from, STEPS).await? {
        return Err(not_ours());
    }
    let (theirs, ours) = (newest(&steps(from).await?), schema::newest(MIGRATIONS));
    let what = match (theirs.cmp(&ours), begun) {
        (Ordering::Equal, _) => return Ok(()),
        (_, true) => {
            "this move was begun by another version: continue with that version, or give the move up (portiere move \
             --abort, with any version) and start over"
        }
        (Ordering::Less, false) => "run portiere migrate on the source with this version first",
        (Ordering::Greater, false) => "a newer version has used it: move with that version",
    };
    Err(Trouble::new(format!("the source has schema {theirs} and this program {ours}: {what}")))
}

/// The version of a database's schema; 0 if it has none.
pub async fn version(engine: &dyn Engine) -> Result<i64, Trouble> {
    match has(engine, STEPS).await? {
        true => Ok(newest(&steps(engine).await?)),
        false => Ok(0),
    }
}

fn not_ours() -> Trouble {
    Trouble::new("the source is not a database of Portiere".to_owned())
}

/// The version of the last of these steps.
fn newest(steps: &[Row]) -> i64 {
    match steps.last().map(Vec::as_slice) {
        Some([Value::Int(version), _]) => *version,
        _ => 0,
    }
}

/// Reads which steps of the schema were done.
async fn steps(engine: &dyn Engine) -> Result<Vec<Row>, Trouble> {
    let sql = Sql::joined(&[schema::DONE, " ORDER BY version, step"]);
    Ok(engine.fetch(&[Read { sql, args: vec![] }]).await?.pop().unwrap_or_default())
}

/// Lists the names of all tables, whichever program created them.
pub(super) async fn names(engine: &dyn Engine) -> Result<Vec<String>, Trouble> {
    listed(engine, engine.dialect().tables()).await
}

/// Reads a list of names.
pub(super) async fn listed(engine: &dyn Engine, sql: &'static str) -> Result<Vec<String>, Trouble> {
    let rows = engine.fetch(&[Read { sql: Sql::fixed(sql), args: vec![] }]).await?.concat();
    let name = |row: Row| match row.into_iter().next() {
        Some(Value::Text(name)) => Some(name),
        _ => None,
    };
    Ok(rows.into_iter().filter_map(name).collect())
}

/// Whether no table is fenced.
pub(super) async fn is_unfenced(engine: &dyn Engine) -> Result<bool, Trouble> {
    Ok(listed(engine, engine.dialect().fences()).await?.is_empty())
}

/// Returns the first table, if there is one, that a move has to fence and that somebody may write to.
pub(super) async fn unfenced(engine: &dyn Engine) -> Result<Option<String>, Trouble> {
    let dialect = engine.dialect();
    let fences: BTreeSet<String> = listed(engine, dialect.fences()).await?.into_iter().collect();
    let is_open =
        |table: &String| table != MOVES && !dialect.fence_names(table).iter().all(|name| fences.contains(name));
    Ok(tables(engine).await?.into_keys().find(is_open))
}

/// Whether a table of this name exists.
pub async fn has(engine: &dyn Engine, table: &str) -> Result<bool, Trouble> {
    Ok(names(engine).await?.iter().any(|name| name == table))
}
