//! Rows in every table, whichever tables there are, with values at the limits of what a column can hold: for
//! requirements on all tables.

use std::collections::BTreeMap;

use crate::engine::{CommitError, Engine, Must, Read, Row, Sql, Value, Write};
use crate::moving::Trouble;
use crate::moving::catalogue::{self, Column, Kind, MOVES, Table};

/// The number of rows in each table.
pub const EACH: usize = 11;

/// Columns that hold long texts: others may be in a key, and keys have a limit.
const LONG: [&str; 5] = ["claims", "data", "detail", "granted", "profile"];

/// Fills every table. Rows that the schema refuses are inserted with other values.
pub async fn fill(engine: &dyn Engine) -> Result<(), String> {
    for table in tables(engine).await.map_err(|why| why.why)? {
        for number in 0..EACH {
            if engine.commit(vec![insert(&table, number, true)]).await.is_err() {
                let plain = engine.commit(vec![insert(&table, number, false)]).await;
                plain.map_err(|error| format!("{} {number}: {error:?}", table.name))?;
            }
        }
    }
    Ok(())
}

/// The tables that hold data, without those that each database has for itself.
pub async fn tables(engine: &dyn Engine) -> Result<Vec<Table>, Trouble> {
    Ok(catalogue::tables(engine).await?.into_values().filter(|table| !catalogue::is_own(&table.name)).collect())
}

/// Every row of every table, by table, in key order.
pub async fn rows(engine: &dyn Engine) -> Result<BTreeMap<String, Vec<Row>>, Trouble> {
    let mut found = BTreeMap::new();
    for table in tables(engine).await? {
        let (names, key) = (table.names().join(", "), table.key_names().join(", "));
        let sql = Sql::of_catalogue(format!("SELECT {names} FROM {} ORDER BY {key}", table.name));
        found.insert(table.name, engine.fetch(&[Read { sql, args: vec![] }]).await?.concat());
    }
    Ok(found)
}

/// Tries to insert, change and delete rows in every table, and returns the results. None of it is committed.
pub async fn writes(engine: &dyn Engine) -> Result<Vec<(String, Result<Vec<u64>, CommitError>)>, Trouble> {
    let mut tried = Vec::new();
    for table in catalogue::tables(engine).await?.into_values().filter(|table| table.name != MOVES) {
        let (name, column) = (&table.name, &table.columns[table.key[0]].name);
        let update = Sql::of_catalogue(format!("UPDATE {name} SET {column} = {column}"));
        let delete = Sql::of_catalogue(format!("DELETE FROM {name}"));
        // If the write is accepted, this undoes it.
        let undo =
            Write { sql: Sql::fixed("DELETE FROM moves WHERE part = ?"), args: vec![text("no")], must: Must::Touch(1) };
        for write in [
            insert(&table, EACH + 1, false),
            Write { sql: update, args: vec![], must: Must::Any },
            Write { sql: delete, args: vec![], must: Must::Any },
        ] {
            let what = write.sql.text().to_owned();
            tried.push((what, engine.commit(vec![write, undo.clone()]).await));
        }
    }
    Ok(tried)
}

/// A row that can be inserted into any table that has none with this number.
pub fn insert(table: &Table, number: usize, edges: bool) -> Write {
    let columns = table.columns.iter().enumerate();
    let args: Vec<Value> =
        columns.map(|(at, column)| value(column, number, table.key.contains(&at) || !edges)).collect();
    let (names, marks) = (table.names().join(", "), vec!["?"; args.len()].join(", "));
    let sql = Sql::of_catalogue(format!("INSERT INTO {} ({names}) VALUES ({marks})", table.name));
    Write { sql, args, must: Must::Touch(1) }
}

fn text(text: &str) -> Value {
    Value::Text(text.to_owned())
}

fn value(column: &Column, number: usize, own: bool) -> Value {
    if own { own_value(column.kind, number) } else { edge(column, number) }
}

/// Distinct values that differ where engines could compare differently: capitals, spaces at the end, characters beyond
/// the first 65536 (which sort before some others in UTF-16), bytes of several lengths.
fn own_value(kind: Kind, number: usize) -> Value {
    let texts = ["Key", "key", "key ", "kéy", "\u{ffee}", "😀", "key-"];
    let far = i64::try_from(number).unwrap_or(0) * 1_000_000_007 - 5_000_000_000;
    match kind {
        Kind::Int => Value::Int(far),
        Kind::Text => Value::Text(format!("{}{}", texts[number % texts.len()], number / texts.len())),
        Kind::Blob => Value::Blob([vec![0; number % 4], far.to_be_bytes().to_vec(), vec![255]].concat()),
    }
}

fn edge(column: &Column, number: usize) -> Value {
    let long = LONG.contains(&column.name.as_str());
    match (column.kind, number % 5) {
        (_, 0) => Value::Null,
        (Kind::Int, 1) => Value::Int(i64::MIN),
        (Kind::Int, 2) => Value::Int(i64::MAX),
        (Kind::Int, 3) => Value::Int(-1),
        (Kind::Int, _) => Value::Int(0),
        (Kind::Text, 1) => text(""),
        (Kind::Text, 2) if long => Value::Text("a long text, ünï😀. ".repeat(20_000)),
        (Kind::Text, 2) => Value::Text("x".repeat(200)),
        (Kind::Text, 3) => text("😀 \\ ' \" % \u{10ffff}\n\t"),
        (Kind::Text, _) => text("ends in spaces  "),
        (Kind::Blob, 1) => Value::Blob(Vec::new()),
        (Kind::Blob, many) => Value::Blob((0..=255).cycle().take(many * 50).collect()),
    }
}
