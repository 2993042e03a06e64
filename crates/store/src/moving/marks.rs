//! What each end of a move knows about it: rows of the table `moves`, which is never fenced.
//!
//! The row `out` says where this database is being moved to, `in` where it came from, `from` which server answered
//! there, and `table …` how far the copy of a table is.

use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};

use super::Trouble;
use super::catalogue::{self, MOVES};
use crate::engine::{CommitError, Engine, Must, Read, Row, Sql, Unavailable, Value, Write};

/// The state of a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Leave {
    /// Some of its tables may not be fenced yet.
    Fencing,
    /// It is fenced, and nothing is written to it.
    Fenced,
    /// Some of its tables may not be fenced any more.
    Lifting,
    /// It was moved, and stays fenced.
    Left,
}

/// The state of a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Arrival {
    /// It holds a part of the data.
    Arriving,
    /// It holds everything, and no server has used it.
    Ready,
    /// A server has started on it.
    Serving,
    /// The move was given up.
    Abandoned,
}

/// One end of a move.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mark<S> {
    /// The id of the move.
    pub id: String,
    /// The state of this end.
    pub state: S,
    /// The name of the other end, without a password.
    pub peer: String,
}

impl Mark<Leave> {
    /// What the state means, for operators.
    pub fn sentence(&self) -> String {
        let peer = &self.peer;
        match self.state {
            Leave::Fencing | Leave::Fenced => format!(
                "this database is being moved to {peer}: it takes no writes until portiere move is done or given up \
                 with --abort"
            ),
            Leave::Lifting => {
                format!("the move of this database to {peer} is being given up: run portiere move --abort again")
            }
            Leave::Left => format!("this database was moved to {peer}: set store.url to that"),
        }
    }

    /// What the state means for a copy of this database, to follow the copy's name in a sentence.
    pub fn of_copies(&self) -> String {
        let peer = &self.peer;
        let there = "later writes are there, and not in this copy";
        match self.state {
            Leave::Fencing | Leave::Fenced => {
                format!("was made while the database was being moved to {peer}: after the move, {there}")
            }
            Leave::Lifting => format!("was made while a move of the database to {peer} was being given up"),
            Leave::Left => format!("was made after the database had been moved to {peer}: {there}"),
        }
    }
}

/// What a database knows about moves.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Marks {
    /// Set if it is being moved, or was moved.
    pub out: Option<Mark<Leave>>,
    /// Set if it came from another database.
    pub into: Option<Mark<Arrival>>,
}

impl Marks {
    /// Reads the marks, also from a database that has no such table yet.
    pub async fn read(engine: &dyn Engine) -> Result<Marks, Trouble> {
        match catalogue::has(engine, MOVES).await? {
            true => Ok(Marks::known(engine).await?),
            false => Ok(Marks::default()),
        }
    }

    /// Reads the marks of a database whose schema is up to date.
    pub async fn known(engine: &dyn Engine) -> Result<Marks, Unavailable> {
        let sql = Sql::fixed("SELECT part, move, state, detail FROM moves WHERE part IN (?, ?)");
        let read = Read { sql, args: vec![text("in"), text("out")] };
        let mut marks = Marks::default();
        for row in engine.fetch(&[read]).await?.into_iter().flatten() {
            let strange = || Unavailable("the table moves has unexpected contents".to_owned());
            match row.first() {
                Some(Value::Text(part)) if part == "out" => marks.out = Some(mark(&row).ok_or_else(strange)?),
                _ => marks.into = Some(mark(&row).ok_or_else(strange)?),
            }
        }
        Ok(marks)
    }

    /// Whether the database is being moved, so that whatever cannot be done here can be done soon, here or there.
    pub fn is_leaving(&self) -> bool {
        self.out.as_ref().is_some_and(|out| matches!(out.state, Leave::Fencing | Leave::Fenced | Leave::Lifting))
    }

    /// Returns why no server may start on this database, if so.
    pub fn obstacle(&self) -> Option<String> {
        if let Some(out) = &self.out {
            return Some(out.sentence());
        }
        let into = self.into.as_ref()?;
        let peer = &into.peer;
        match into.state {
            Arrival::Arriving => Some(format!(
                "this database holds an unfinished copy of {peer}: run the same portiere move again to finish it"
            )),
            Arrival::Abandoned => {
                Some(format!("this database holds a copy of {peer} that was given up: empty it, or use another"))
            }
            Arrival::Ready | Arrival::Serving => None,
        }
    }
}

fn text(text: &str) -> Value {
    Value::Text(text.to_owned())
}

fn mark<S: for<'de> Deserialize<'de>>(row: &Row) -> Option<Mark<S>> {
    let [_, Value::Text(id), Value::Text(state), Value::Text(peer)] = row.as_slice() else { return None };
    let state = serde_json::from_value(Json::String(state.clone())).ok()?;
    Some(Mark { id: id.clone(), state, peer: peer.clone() })
}

/// The stored form of a state.
fn name<S: Serialize>(state: S) -> Value {
    match json!(state) {
        Json::String(name) => Value::Text(name),
        other => Value::Text(other.to_string()),
    }
}

const INSERT: Sql = Sql::fixed("INSERT INTO moves (part, move, state, detail) VALUES (?, ?, ?, ?)");
const TURN: Sql = Sql::fixed("UPDATE moves SET state = ? WHERE part = ? AND move = ? AND state = ?");
const ADVANCE: Sql = Sql::fixed("UPDATE moves SET detail = ? WHERE part = ? AND move = ? AND detail = ?");

async fn insert(engine: &dyn Engine, part: &str, id: &str, state: Value, peer: &str) -> Result<(), CommitError> {
    let args = vec![text(part), text(id), state, text(peer)];
    engine.commit(vec![Write { sql: INSERT, args, must: Must::Touch(1) }]).await.map(drop)
}

async fn turn(engine: &dyn Engine, part: &str, id: &str, from: Value, to: Value) -> Result<(), CommitError> {
    engine.commit(vec![turned(part, id, from, to)]).await.map(drop)
}

fn turned(part: &str, id: &str, from: Value, to: Value) -> Write {
    Write { sql: TURN, args: vec![to, text(part), text(id), from], must: Must::Touch(1) }
}

/// Marks that fencing of a source begins.
pub(super) async fn leave(engine: &dyn Engine, id: &str, peer: &str) -> Result<(), Trouble> {
    Ok(insert(engine, "out", id, name(Leave::Fencing), peer).await?)
}

/// Moves a source from one state to the next.
pub(super) async fn leave_turns(engine: &dyn Engine, id: &str, from: Leave, to: Leave) -> Result<(), Trouble> {
    Ok(turn(engine, "out", id, name(from), name(to)).await?)
}

/// Marks that every table of a source is fenced, on the server of this generation: another one may lack the fences.
pub(super) async fn fenced((engine, generation): (&dyn Engine, u64), id: &str) -> Result<(), Trouble> {
    let args = vec![name(Leave::Fenced), text("out"), text(id), name(Leave::Fencing)];
    engine.commit_within(generation, vec![Write { sql: TURN, args, must: Must::Touch(1) }]).await?;
    Ok(())
}

/// Removes the mark of a source, which is as it was before.
pub(super) async fn stays(engine: &dyn Engine, id: &str) -> Result<(), Trouble> {
    let sql = Sql::fixed("DELETE FROM moves WHERE part = ? AND move = ?");
    let args = vec![text("out"), text(id)];
    engine.commit(vec![Write { sql, args, must: Must::Touch(1) }]).await?;
    Ok(())
}

/// Marks that a target is for a move, in the place of a claim that was `left` there, and, if it `begins`, that filling
/// begins. Of two moves that do this, one fails.
pub(super) async fn arrive(
    engine: &dyn Engine,
    (id, peer): (&str, &str),
    left: Option<&Mark<Arrival>>,
    begins: bool,
) -> Result<(), Trouble> {
    let args = vec![text("in"), text(id), name(Arrival::Arriving), text(peer)];
    let claim = Write { sql: INSERT, args, must: Must::Touch(1) };
    let writes = left.map(unclaim).into_iter().flatten().chain([claim]).chain(begins.then(|| begun(id))).collect();
    engine.commit(writes).await.map_err(|error| match error {
        CommitError::Conflict { .. } => Trouble::new("another move has just claimed the target: name another"),
        error => error.into(),
    })?;
    Ok(())
}

/// Removes a claim from which nothing followed.
pub(super) async fn withdraw(engine: &dyn Engine, claim: &Mark<Arrival>) -> Result<(), Trouble> {
    engine.commit(unclaim(claim).to_vec()).await?;
    Ok(())
}

/// Removes a claim, unless its move began meanwhile.
fn unclaim(claim: &Mark<Arrival>) -> [Write; 2] {
    let begun = Sql::fixed("SELECT 1 FROM moves WHERE part NOT IN (?, ?, ?)");
    let sql = Sql::fixed("DELETE FROM moves WHERE part = ? AND move = ? AND state = ?");
    let args = vec![text("in"), text(&claim.id), name(Arrival::Arriving)];
    [
        Write { sql: begun, args: vec![text("in"), text("out"), text("from")], must: Must::Find(0) },
        Write { sql, args, must: Must::Touch(1) },
    ]
}

/// The part that says that a move has begun to fill a target: its source was fenced.
const BEGUN: &str = "begun";

/// Marks that filling of a target begins. Fails if the target is not claimed for the move any more.
pub(super) async fn begin(engine: &dyn Engine, id: &str) -> Result<(), Trouble> {
    let sql = Sql::fixed("SELECT 1 FROM moves WHERE part = ? AND move = ?");
    let claimed = Write { sql, args: vec![text("in"), text(id)], must: Must::Find(1) };
    engine.commit(vec![claimed, begun(id)]).await?;
    Ok(())
}

fn begun(id: &str) -> Write {
    let args = vec![text(BEGUN), text(id), text("copying"), Copied::default().text()];
    Write { sql: INSERT, args, must: Must::Touch(1) }
}

/// Whether filling of a target has begun, also by an earlier version, which noted that with the first page.
pub(super) async fn has_begun(engine: &dyn Engine) -> Result<bool, Trouble> {
    let sql = Sql::fixed("SELECT part FROM moves WHERE part NOT IN (?, ?, ?)");
    let read = Read { sql, args: vec![text("in"), text("out"), text("from")] };
    Ok(!engine.fetch(&[read]).await?.concat().is_empty())
}

/// Marks that a target holds everything from the source server `source`, while its own server has this generation.
pub(super) async fn ready(
    (engine, generation): (&dyn Engine, u64),
    id: &str,
    source: Option<&str>,
) -> Result<(), Trouble> {
    let args = vec![name(Arrival::Ready), text("in"), text(id), name(Arrival::Arriving)];
    let ready = Write { sql: TURN, args, must: Must::Touch(1) };
    let sql = Sql::fixed("DELETE FROM moves WHERE part <> ? AND part <> ? AND move = ?");
    let clean = Write { sql, args: vec![text("in"), text("out"), text(id)], must: Must::Any };
    let from = source.map(|identity| {
        let args = vec![text("from"), text(id), text(""), text(identity)];
        Write { sql: INSERT, args, must: Must::Touch(1) }
    });
    if engine.generation() != generation {
        return Err(Trouble::new(
            "another server of the target took over during the comparison: run this again to continue".to_owned(),
        ));
    }
    engine.commit_within(generation, [ready, clean].into_iter().chain(from).collect()).await?;
    Ok(())
}

/// The identity of the server from which this database was moved, if it was a server: what it acknowledged is here.
pub async fn moved_from(engine: &dyn Engine) -> Result<Option<String>, Unavailable> {
    let sql = Sql::fixed("SELECT detail FROM moves WHERE part = ?");
    let rows = engine.fetch(&[Read { sql, args: vec![text("from")] }]).await?;
    Ok(rows.into_iter().flatten().flatten().find_map(|value| match value {
        Value::Text(identity) => Some(identity),
        _ => None,
    }))
}

/// Whether two identities are of one server that was copied as a whole. Identities of MySQL and MariaDB begin with the
/// host as spelled in the URL, and the move command may spell it differently than the nodes do.
pub fn is_same_server(one: &str, other: &str) -> bool {
    let behind_host = |identity: &str| identity.split_once(' ').map(|(_, itself)| itself.trim().to_owned());
    one == other || behind_host(one).is_some_and(|itself| !itself.is_empty() && behind_host(other) == Some(itself))
}

/// Marks that a server starts on a target that holds everything: from now on the move cannot be given up. The jobs of
/// the source's nodes came with everything else, and end here: the new nodes would wait for leases that nobody holds.
pub async fn serve(engine: &dyn Engine, into: &Mark<Arrival>) -> Result<(), CommitError> {
    let jobs = Write { sql: Sql::fixed("DELETE FROM leases"), args: vec![], must: Must::Any };
    let serving = turned("in", &into.id, name(Arrival::Ready), name(Arrival::Serving));
    engine.commit(vec![serving, jobs]).await.map(drop)
}

/// Marks a target as abandoned, so that no server starts on it, unless one already has.
pub async fn abandon(engine: &dyn Engine, into: &Mark<Arrival>) -> Result<(), CommitError> {
    turn(engine, "in", &into.id, name(into.state), name(Arrival::Abandoned)).await
}

/// The progress of the copy of a table.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Copied {
    /// Rows in the target.
    pub(super) rows: u64,
    /// The key of the last of these rows.
    pub(super) after: Option<Vec<Json>>,
    /// Whether no rows are left.
    pub(super) done: bool,
}

impl Copied {
    /// Returns the last key, as values.
    pub(super) fn key(&self) -> Result<Option<Row>, Trouble> {
        let strange = || Trouble::new("the table moves has unexpected contents".to_owned());
        let value = |json: &Json| match json {
            Json::Null => Some(Value::Null),
            Json::Number(number) => number.as_i64().map(Value::Int),
            Json::String(text) => Some(Value::Text(text.clone())),
            Json::Array(bytes) => {
                bytes.iter().map(|byte| byte.as_u64()?.try_into().ok()).collect::<Option<_>>().map(Value::Blob)
            }
            _ => None,
        };
        let row = |key: &Vec<Json>| key.iter().map(value).collect::<Option<Row>>().ok_or_else(strange);
        self.after.as_ref().map(row).transpose()
    }

    /// The stored form of a key.
    pub(super) fn kept(key: &Row) -> Vec<Json> {
        let json = |value: &Value| match value {
            Value::Null => Json::Null,
            Value::Int(number) => json!(number),
            Value::Text(text) => json!(text),
            Value::Blob(bytes) => json!(bytes),
        };
        key.iter().map(json).collect()
    }

    fn text(&self) -> Value {
        Value::Text(json!(self).to_string())
    }
}

fn part(table: &str) -> Value {
    Value::Text(format!("table {table}"))
}

/// Reads the progress of the copy of a table; `None` if it was not begun.
pub(super) async fn copied(engine: &dyn Engine, id: &str, table: &str) -> Result<Option<Copied>, Trouble> {
    let sql = Sql::fixed("SELECT detail FROM moves WHERE part = ? AND move = ?");
    let found = engine.fetch(&[Read { sql, args: vec![part(table), text(id)] }]).await?.concat().pop();
    match found.as_deref() {
        None => Ok(None),
        Some([Value::Text(detail)]) => {
            let strange = |error| Trouble::new(format!("the table moves has unexpected contents: {error}"));
            serde_json::from_str(detail).map(Some).map_err(strange)
        }
        Some(_) => Err(Trouble::new("the table moves has unexpected contents".to_owned())),
    }
}

/// Records the progress of the copy of a table, unless another process has recorded some since.
pub(super) fn advance(id: &str, table: &str, was: Option<&Copied>, is: &Copied) -> Write {
    let must = Must::Touch(1);
    match was {
        None => Write { sql: INSERT, args: vec![part(table), text(id), text("copying"), is.text()], must },
        Some(was) => Write { sql: ADVANCE, args: vec![is.text(), part(table), text(id), was.text()], must },
    }
}

/// Returns the number of rows copied so far, over all tables of an unfinished copy.
pub async fn progress(engine: &dyn Engine) -> Result<u64, Trouble> {
    let sql = Sql::fixed("SELECT detail FROM moves WHERE part <> ? AND part <> ?");
    let rows = engine.fetch(&[Read { sql, args: vec![text("in"), text("out")] }]).await?.concat();
    let copied = |row: &Row| match row.as_slice() {
        [Value::Text(detail)] => serde_json::from_str::<Copied>(detail).map_or(0, |copied| copied.rows),
        _ => 0,
    };
    Ok(rows.iter().map(copied).sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_the_same_however_its_host_is_spelled() {
        // Red where the whole is compared: nodes with localhost, for the command's 127.0.0.1, took the move for a loss.
        assert!(is_same_server("db.test 7a-uuid since 5", "10.0.0.5 7a-uuid since 5"));
        assert!(is_same_server("system 1 timeline 2", "system 1 timeline 2"));
        for other in ["db.test 7a-uuid since 6", "db.test 8b-uuid since 5", "db.test", "db.test  ", ""] {
            assert!(!is_same_server("db.test 7a-uuid since 5", other), "{other}");
        }
        assert!(!is_same_server("a  ", "b  "));
    }
}
