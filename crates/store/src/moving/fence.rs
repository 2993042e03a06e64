//! Refuses writes to a database that is being moved, by triggers on every table. They apply to every program that
//! writes to it, of whatever version, from the moment when the last of them exists.

use std::collections::BTreeMap;
use std::time::Duration;

use super::Trouble;
use super::catalogue::{self, MOVES};
use super::marks::{self, Leave, Mark, Marks};
use crate::dialect::Dialect;
use crate::engine::{Engine, Unavailable};

/// How often blocked triggers are tried; for other transactions the engine itself waits.
const TRIES: u32 = 2;
/// The pause between two tries.
const PAUSE: Duration = Duration::from_secs(1);

/// Refuses all writes to `engine` from now on, because it is being moved to `peer`. Returns the id of the move: `id`,
/// or the id with which it was begun earlier. When it returns, no write is in flight.
pub async fn raise(engine: &dyn Engine, id: &str, peer: &str) -> Result<String, Trouble> {
    let (id, begun) = match Marks::read(engine).await? {
        marks @ Marks { out: None, .. } if marks.obstacle().is_some() => {
            return Err(Trouble::new(marks.obstacle().unwrap_or_default()));
        }
        Marks { out: None, .. } => {
            marks::leave(engine, id, peer).await?;
            (id.to_owned(), true)
        }
        Marks { out: Some(out), .. } if out.peer != peer || out.state == Leave::Lifting => {
            return Err(Trouble::new(out.sentence()));
        }
        Marks { out: Some(Mark { id, state: Leave::Fencing, .. }), .. } => (id, false),
        Marks { out: Some(Mark { id, state: Leave::Fenced, peer }), .. } => {
            return catalogue::unfenced(engine).await?.map_or(Ok(id), |table| Err(open(&peer, &table)));
        }
        Marks { out: Some(Mark { id, .. }), .. } => return Ok(id),
    };
    match fence_all(engine, &id).await {
        Ok(()) => Ok(id),
        Err(why) => Err(given_up(engine, &id, begun, why).await),
    }
}

/// Says that the mark of a fenced source does not hold: only the triggers refuse writes.
fn open(peer: &str, table: &str) -> Trouble {
    Trouble::new(format!(
        "this database is marked as fenced for its move to {peer}, but the table {table} is not fenced and may have \
         been written to: give the move up (portiere move --abort), and start over with an empty target"
    ))
}

async fn fence_all(engine: &dyn Engine, id: &str) -> Result<(), Trouble> {
    // Before the first fence: if another server takes over from here on, the mark does not say that it has them all.
    let generation = engine.generation();
    let tables = catalogue::tables(engine).await?;
    let dialect = engine.dialect();
    let fences = tables.keys().filter(|table| *table != MOVES).flat_map(|table| dialect.fence(table));
    alter(engine, dialect.before_fences().into_iter().chain(fences).collect()).await?;
    marks::fenced((engine, generation), id).await
}

/// Removes the mark of a move that began here and has fenced nothing. Any other mark is left, and the error says so: no
/// server starts on such a database.
async fn given_up(engine: &dyn Engine, id: &str, begun: bool, trouble: Trouble) -> Trouble {
    let nothing_done = begun && catalogue::is_unfenced(engine).await.unwrap_or(false);
    if nothing_done && marks::stays(engine, id).await.is_ok() {
        return trouble;
    }
    trouble.told(|why| format!("{why}; the source is marked as being moved: run it again, or portiere move --abort"))
}

/// Marks that everything is at the other end: this database stays fenced for good.
pub async fn left(engine: &dyn Engine, id: &str) -> Result<(), Trouble> {
    match Marks::read(engine).await?.out {
        Some(out) if out.id == id && out.state == Leave::Left => Ok(()),
        _ => marks::leave_turns(engine, id, Leave::Fenced, Leave::Left).await,
    }
}

/// Allows writes to `engine` again. If interrupted, it has to be run again: the move cannot go on from what was copied,
/// since something may have been written here meanwhile.
pub async fn lift(engine: &dyn Engine, id: &str) -> Result<(), Trouble> {
    match Marks::read(engine).await?.out {
        None => return Ok(()),
        Some(out) if out.id != id => return Err(Trouble::new(out.sentence())),
        Some(out) if out.state == Leave::Lifting => {}
        Some(out) => marks::leave_turns(engine, id, out.state, Leave::Lifting).await?,
    }
    let tables = catalogue::tables(engine).await?;
    let dialect = engine.dialect();
    alter(engine, tables.keys().flat_map(|table| dialect.unfence(table)).collect()).await?;
    marks::stays(engine, id).await
}

/// Returns every trigger that a fence creates on the tables of a file: its name, and its text as SQLite stores it.
/// Opens no table: the file may be anybody's.
pub async fn triggers(file: &dyn Engine) -> Result<BTreeMap<String, String>, Trouble> {
    let names = catalogue::names(file).await?;
    // Any other name could turn the text into a different statement.
    let ours = names.iter().filter(|name| catalogue::is_plain(name) && *name != MOVES);
    let kept = |made: String| {
        let text = made.replacen("CREATE TRIGGER IF NOT EXISTS ", "CREATE TRIGGER ", 1);
        let name = text.split(' ').nth(2).unwrap_or_default().to_owned();
        (name, text)
    };
    Ok(ours.flat_map(|table| Dialect::Sqlite.fence(table)).map(kept).collect())
}

/// Allows writes to a copy of a file whose triggers are all [fences](triggers), whatever became of the file. Returns
/// the mark that the copy had. Refuses a copy with fences but no mark: no move leaves that.
pub async fn lift_in_copy(copy: &dyn Engine) -> Result<Option<Mark<Leave>>, Trouble> {
    let Some(out) = Marks::read(copy).await?.out else {
        return match catalogue::is_unfenced(copy).await? {
            true => Ok(None),
            false => Err(Trouble::new("it is fenced for a move, but does not say where to".to_owned())),
        };
    };
    lift(copy, &out.id).await?;
    Ok(Some(out))
}

async fn alter(engine: &dyn Engine, statements: Vec<String>) -> Result<(), Unavailable> {
    let mut tried = 1;
    loop {
        match engine.alter(statements.clone()).await {
            Err(why) if tried == TRIES => return Err(why),
            Err(why) => tracing::debug!(why = why.0, "changing the write fence failed: trying again"),
            Ok(()) => return Ok(()),
        }
        tried += 1;
        tokio::time::sleep(PAUSE).await;
    }
}
