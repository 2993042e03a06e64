//! What has to be said differently for MySQL and MariaDB.
//!
//! | written | sent |
//! |---|---|
//! | `text` of a key | `VARCHAR(255)`, in a collation that compares bytes and does not pad |
//! | any other `text` | `LONGTEXT` |
//! | `blob` | `VARBINARY(255)` in a key, else `LONGBLOB` |
//! | `REFERENCES` beside a column | a foreign key of the table: MySQL parses the other form and ignores it |
//! | `WITHOUT ROWID` | `ENGINE=InnoDB` (rows in primary key order) `ROW_FORMAT=DYNAMIC` (other formats index 767 bytes) |
//! | `ON CONFLICT DO NOTHING` | `ON DUPLICATE KEY UPDATE` of a column to itself, which reports the conflict (`TOUCHED_NOTHING`) |
//! | `DELETE … IN (SELECT … LIMIT ?)` | a derived table around the inner select, in the DELETE form that is optimized as a join |

pub(crate) mod block;
pub(crate) mod lookup;

use std::collections::BTreeSet;

use super::NotPortable;
use lookup::Lookup;

/// The longest text in a key, in characters, and the longest blob in one, in bytes. An InnoDB index holds three such
/// texts (3072 bytes); the rules allow at most 255 bytes for a name, 200 for a group's name, 128 for a client id.
pub(crate) const LONGEST_KEY: usize = 255;

/// The last insert id that an insert reports if the row already exists.
///
/// A plain INSERT that fails with a duplicate key would work too, but it leaves a shared lock on the row, so that all
/// batches that count in the same row wait for each other (a deadlock for nearly every batch, with 16 at the same
/// time). This form locks the row as an update does. The number of rows cannot tell the two cases apart, since a row
/// that was found counts too (`CLIENT_FOUND_ROWS`).
pub(crate) const TOUCHED_NOTHING: u64 = 1;

/// Whether the server is MariaDB or MySQL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flavor {
    /// MariaDB.
    MariaDb,
    /// MySQL.
    MySql,
}

impl Flavor {
    /// The UTF-8 collation that orders by bytes and in which trailing spaces count.
    pub(crate) fn collation(self) -> &'static str {
        match self {
            Flavor::MariaDb => "utf8mb4_nopad_bin",
            Flavor::MySql => "utf8mb4_0900_bin",
        }
    }
}

/// What a statement does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// It reads.
    Select,
    /// It inserts a row.
    Insert {
        /// An existing row is not an error and is not touched.
        if_absent: bool,
    },
    /// It updates or deletes rows.
    Change,
}

/// A statement as it is sent to these servers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Said {
    /// What it does.
    pub(crate) kind: Kind,
    /// The table that it writes to, or the first one that it reads.
    pub(crate) table: String,
    /// The number of its values.
    pub(crate) values: usize,
    /// The text.
    pub(crate) text: String,
    /// For a read that returns one row for each row that exists: the text after the columns, from FROM on.
    pub(crate) rows: Option<String>,
    /// For a read that only asks whether a row exists: what it asks.
    pub(crate) lookup: Option<Lookup>,
}

/// Translates a statement of the common subset.
pub(crate) fn say(sql: &str) -> Result<Said, NotPortable> {
    let words = words(sql);
    let first = words.first().map_or("", |word| word.text);
    let values = placeholders(sql);
    let named = |keyword: &str| {
        let at = words.iter().position(|word| word.depth == 0 && word.is(keyword));
        let name = at.and_then(|at| words.get(at + 1)).map(|word| word.text.to_owned());
        name.ok_or(NotPortable("a statement names its table"))
    };
    let said = |kind, table, text| Ok(Said { kind, table, values, text, rows: None, lookup: None });
    match first.to_ascii_uppercase().as_str() {
        "SELECT" => {
            let said = said(Kind::Select, named("FROM")?, sql.to_owned())?;
            Ok(Said { rows: row_by_row(sql, &words), lookup: Lookup::of(sql), ..said })
        }
        "INSERT" => {
            let (text, if_absent) = unless_there(sql, &words)?;
            said(Kind::Insert { if_absent }, named("INTO")?, text)
        }
        "UPDATE" => {
            in_any_order(sql, &words)?;
            said(Kind::Change, named("UPDATE")?, bounded(sql, &words))
        }
        "DELETE" => {
            let table = named("FROM")?;
            let text = bounded(sql, &words);
            // The multi-table form goes through the join optimizer; the plain form would look at every row.
            let joined =
                if text == sql { text } else { text.replacen("DELETE FROM", &format!("DELETE {table} FROM"), 1) };
            said(Kind::Change, table, joined)
        }
        _ => Err(NotPortable("a statement is a SELECT, INSERT, UPDATE or DELETE")),
    }
}

/// Returns the text after the columns if the read returns one row for each row that exists.
fn row_by_row(sql: &str, words: &[Word<'_>]) -> Option<String> {
    const OTHERS: [&str; 7] = ["DISTINCT", "GROUP", "HAVING", "LIMIT", "ORDER", "UNION", "WINDOW"];
    let from = words.iter().find(|word| word.depth == 0 && word.is("FROM"))?.at;
    let other = words.iter().any(|word| OTHERS.iter().any(|other| word.is(other)));
    // An aggregate function has a bracket.
    (!other && !sql[..from].contains('(')).then(|| sql[from..].to_owned())
}

/// Combines several reads into one, if each [returns a row for each row](Said::rows) that exists. Each row says which
/// read it belongs to, from 0. Reads marked `exclusive` also keep others from reading for an update.
pub(crate) fn counted_together<'a>(reads: impl Iterator<Item = (&'a str, bool)>) -> String {
    let one = |(at, (rows, exclusive))| format!("(SELECT {at} {rows}{})", lock(exclusive));
    reads.enumerate().map(one).collect::<Vec<_>>().join(" UNION ALL ")
}

/// The clause that keeps others from changing the rows that a read found until the batch ends.
pub(crate) fn lock(exclusive: bool) -> &'static str {
    if exclusive { " FOR UPDATE" } else { " LOCK IN SHARE MODE" }
}

/// Translates `ON CONFLICT DO NOTHING`, if it is there, so that the answer tells whether there was a conflict.
fn unless_there(sql: &str, words: &[Word<'_>]) -> Result<(String, bool), NotPortable> {
    let Some(text) = sql.strip_suffix(" ON CONFLICT DO NOTHING") else { return Ok((sql.to_owned(), false)) };
    // Uses the last column, which is usually in no key: setting a key column to itself takes twice as long.
    let values = words.iter().position(|word| word.depth == 0 && word.is("VALUES"));
    let column = values.and_then(|at| words[..at].last()).filter(|word| word.depth == 1);
    let column = column.ok_or(NotPortable("an INSERT names its columns"))?.text;
    let same = format!("{column} = IF(LAST_INSERT_ID({TOUCHED_NOTHING}), {column}, {column})");
    Ok((format!("{text} ON DUPLICATE KEY UPDATE {same}"), true))
}

/// Wraps every `IN (SELECT …)` in a derived table: these servers refuse a LIMIT there, and the table that is changed.
fn bounded(sql: &str, words: &[Word<'_>]) -> String {
    let mut text = sql.to_owned();
    let inner = words.iter().zip(words.iter().skip(1)).zip(words.iter().skip(2));
    let selects: Vec<_> = inner
        .filter(|((before, select), _)| before.is("IN") && select.is("SELECT") && select.depth == before.depth + 1)
        .collect();
    // From the last to the first, so that the positions found stay valid.
    for ((_, select), column) in selects.into_iter().rev() {
        let end = closing(&text, select.at);
        text.insert_str(end, ") AS bounded");
        text.insert_str(select.at, &format!("SELECT {} FROM (", column.text));
    }
    text
}

/// Returns where the bracket closes that is open at `from`.
fn closing(sql: &str, from: usize) -> usize {
    let mut depth = 0usize;
    for (at, letter) in sql.char_indices().skip_while(|(at, _)| *at < from) {
        match letter {
            '(' => depth += 1,
            ')' if depth == 0 => return at,
            ')' => depth -= 1,
            _ => {}
        }
    }
    sql.len()
}

/// These servers run `SET a = …, b = …` from left to right: an assignment must not read what an earlier one changed.
fn in_any_order(sql: &str, words: &[Word<'_>]) -> Result<(), NotPortable> {
    let place = |keyword: &str| words.iter().find(|word| word.depth == 0 && word.is(keyword)).map(|word| word.at);
    let (Some(set), end) = (place("SET"), place("WHERE").unwrap_or(sql.len())) else {
        return Err(NotPortable("an UPDATE has a SET"));
    };
    let mut changed: Vec<&str> = Vec::new();
    for assignment in items(&sql[set + 3..end]) {
        let Some((column, expression)) = assignment.split_once('=') else {
            return Err(NotPortable("an assignment has a `=`"));
        };
        if self::words(expression).iter().any(|word| changed.contains(&word.text)) {
            return Err(NotPortable("an assignment reads what one before it changed: elsewhere it has the old value"));
        }
        changed.push(column.trim());
    }
    Ok(())
}

/// Translates one step of a schema; `keyed` are the columns that are in a key.
pub(crate) fn step(sql: &str, keyed: &Keyed, flavor: Flavor) -> Result<String, NotPortable> {
    let words = words(sql);
    let Some(created) = Created::of(sql) else {
        return match words.first() {
            Some(word) if word.is("CREATE") || word.is("DROP") => Ok(sql.to_owned()),
            Some(word) if word.is("ALTER") => altered(sql, &words, keyed, flavor),
            _ => say(sql).map(|said| said.text),
        };
    };
    let mut lines = Vec::new();
    let mut foreign = Vec::new();
    for item in created.items() {
        if is_constraint(item) {
            lines.push(item.to_owned());
            continue;
        }
        let (column, rest) = item.split_once(' ').ok_or(NotPortable("a column has a type"))?;
        let (rest, parent) =
            rest.split_once(" REFERENCES ").map_or((rest, None), |(rest, parent)| (rest, Some(parent)));
        foreign.extend(parent.map(|parent| format!("FOREIGN KEY ({column}) REFERENCES {parent}")));
        lines.push(format!("{column} {}", typed(rest, keyed.has(created.table, column))));
    }
    lines.extend(foreign);
    let (head, lines, collation) = (created.head, lines.join(", "), flavor.collation());
    Ok(format!("{head}({lines}) ENGINE=InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE {collation} ROW_FORMAT=DYNAMIC"))
}

/// Translates the addition of a column to an existing table.
fn altered(sql: &str, words: &[Word<'_>], keyed: &Keyed, flavor: Flavor) -> Result<String, NotPortable> {
    let [_, _, table, add, column, name, rest, ..] = words else {
        return Ok(sql.to_owned());
    };
    if !add.is("ADD") || !column.is("COLUMN") {
        return Ok(sql.to_owned());
    }
    let (head, rest) = sql.split_at(rest.at);
    // A new column takes the table's character set, except where the server's is configured to win.
    let text = rest.starts_with("text ") || rest == "text";
    let typed = typed(rest, keyed.has(table.text, name.text));
    if !text {
        return Ok(format!("{head}{typed}"));
    }
    let (kind, tail) = typed.split_once(' ').unwrap_or((&typed, ""));
    Ok(format!("{head}{kind} CHARACTER SET utf8mb4 COLLATE {} {tail}", flavor.collation()).trim_end().to_owned())
}

/// Translates a column's type and the text after it.
fn typed(rest: &str, keyed: bool) -> String {
    let (name, tail) = rest.split_at(rest.find(' ').unwrap_or(rest.len()));
    let name = match (name, keyed) {
        ("text", true) => format!("VARCHAR({LONGEST_KEY})"),
        ("text", false) => "LONGTEXT".to_owned(),
        ("blob", true) => format!("VARBINARY({LONGEST_KEY})"),
        ("blob", false) => "LONGBLOB".to_owned(),
        (other, _) => other.to_owned(),
    };
    format!("{name}{tail}")
}

fn is_constraint(item: &str) -> bool {
    ["PRIMARY KEY", "UNIQUE", "FOREIGN KEY"].iter().any(|word| item.starts_with(word))
}

/// The keys and indexes that steps create: each with its table and its columns.
pub(crate) fn keys<'a>(steps: impl IntoIterator<Item = &'a &'a str>) -> Vec<(&'a str, Vec<&'a str>)> {
    let named = |columns: &'a str| columns.split(',').map(str::trim).collect();
    let of = |step: &&'a str| match Created::of(step) {
        Some(created) => created
            .items()
            .filter_map(|item| {
                let bracket = item.split_once('(').and_then(|(_, rest)| rest.split_once(')'));
                let keyed = [" PRIMARY KEY", " UNIQUE", " REFERENCES "].iter().any(|word| item.contains(word));
                match is_constraint(item) {
                    true => Some((created.table, named(bracket.map_or("", |(columns, _)| columns)))),
                    false => keyed.then(|| (created.table, vec![item.split(' ').next().unwrap_or("")])),
                }
            })
            .collect::<Vec<_>>(),
        // `CREATE [UNIQUE] INDEX name ON table (columns)`
        None => {
            let index = step.split_once(" ON ").filter(|(head, _)| head.contains("INDEX"));
            let key = index.and_then(|(_, rest)| rest.split_once('('));
            key.map(|(table, columns)| (table.trim(), named(columns.trim_end().trim_end_matches(')'))))
                .into_iter()
                .collect()
        }
    };
    steps.into_iter().flat_map(of).collect()
}

/// The columns that are in a key, as (table, column).
///
/// It is made from the steps of one version: a released step means the same for ever, whatever a later version adds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Keyed(BTreeSet<(String, String)>);

impl Keyed {
    /// Collects the key columns of the steps of one version.
    pub(crate) fn of(steps: &[&str]) -> Self {
        let pairs = |(table, columns): (&str, Vec<&str>)| {
            columns.into_iter().map(|column| (table.to_owned(), column.to_owned())).collect::<Vec<_>>()
        };
        Keyed(keys(steps).into_iter().flat_map(pairs).collect())
    }
    fn has(&self, table: &str, column: &str) -> bool {
        self.0.contains(&(table.to_owned(), column.to_owned()))
    }
}

/// A parsed `CREATE TABLE`.
pub(crate) struct Created<'a> {
    /// The name of the table.
    pub(crate) table: &'a str,
    head: &'a str,
    body: &'a str,
}

impl<'a> Created<'a> {
    /// Returns `None` for any other statement.
    pub(crate) fn of(sql: &'a str) -> Option<Self> {
        let words = words(sql);
        let open = sql.find('(').filter(|_| sql.starts_with("CREATE TABLE "))?;
        let table = words.iter().rfind(|word| word.at < open)?.text;
        Some(Created { table, head: &sql[..open], body: &sql[open + 1..closing(sql, open + 1)] })
    }
    /// The names of its columns, in order.
    pub(crate) fn columns(&self) -> impl Iterator<Item = &'a str> {
        self.items().filter(|item| !is_constraint(item)).filter_map(|item| item.split(' ').next())
    }
    fn items(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        items(self.body).into_iter().map(str::trim)
    }
}

/// The parts between commas that are not inside brackets.
fn items(list: &str) -> Vec<&str> {
    let (mut depth, mut from, mut items) = (0usize, 0, Vec::new());
    for (at, letter) in list.char_indices() {
        match letter {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                items.push(&list[from..at]);
                from = at + 1;
            }
            _ => {}
        }
    }
    items.push(&list[from..]);
    items
}

/// A word of a statement, outside literals.
#[derive(Clone, Copy)]
struct Word<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
}

impl Word<'_> {
    fn is(&self, keyword: &str) -> bool {
        self.text.eq_ignore_ascii_case(keyword)
    }
}

fn words(sql: &str) -> Vec<Word<'_>> {
    let is_letter = |letter: char| letter.is_ascii_alphanumeric() || letter == '_' || letter == '.';
    let (mut depth, mut from, mut quoted, mut words) = (0usize, None, false, Vec::new());
    for (at, letter) in sql.char_indices().chain([(sql.len(), ' ')]) {
        if letter == '\'' {
            quoted = !quoted;
        }
        let inside = !quoted && is_letter(letter);
        match (from, inside) {
            (None, true) => from = Some(at),
            (Some(start), false) => {
                words.push(Word { text: &sql[start..at], at: start, depth });
                from = None;
            }
            _ => {}
        }
        match letter {
            '(' if !quoted => depth += 1,
            ')' if !quoted => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    words
}

fn placeholders(sql: &str) -> usize {
    sql.split('\'').step_by(2).map(|outside| outside.matches('?').count()).sum()
}

#[cfg(test)]
mod tests;
