//! Keeping writes off a database that is moved: triggers on every table. They hold for every program that writes to it, of
//! whatever version, from the moment on at which the last of them is there.

use std::collections::BTreeMap;
use std::time::Duration;

use super::Trouble;
use super::catalogue::{self, MOVES};
use super::marks::{self, Leave, Mark, Marks};
use crate::dialect::Dialect;
use crate::engine::{Engine, Unavailable};

/// How often triggers are tried that something keeps off: for others' transactions the engine waits itself.
const TRIES: u32 = 2;
/// Between two tries.
const PAUSE: Duration = Duration::from_secs(1);

/// Lets nothing be written to `engine` any more, because it is being moved to `peer`; what the move is called: `id`, or
/// what it was called when it was begun before. When it answers, no write is under way.
pub async fn raise(engine: &dyn Engine, id: &str, peer: &str) -> Result<String, Trouble> {
    let (id, begun) = match Marks::read(engine).await? {
        marks @ Marks { out: None, .. } if marks.obstacle().is_some() => {
            return Err(Trouble(marks.obstacle().unwrap_or_default()));
        }
        Marks { out: None, .. } => {
            marks::leave(engine, id, peer).await?;
            (id.to_owned(), true)
        }
        Marks { out: Some(out), .. } if out.peer != peer || out.state == Leave::Lifting => {
            return Err(Trouble(out.sentence()));
        }
        Marks { out: Some(Mark { id, state: Leave::Fencing, .. }), .. } => (id, false),
        Marks { out: Some(Mark { id, .. }), .. } => return Ok(id),
    };
    match fence_all(engine, &id).await {
        Ok(()) => Ok(id),
        Err(why) => Err(given_up(engine, &id, begun, why).await),
    }
}

async fn fence_all(engine: &dyn Engine, id: &str) -> Result<(), Trouble> {
    let tables = catalogue::tables(engine).await?;
    let dialect = engine.dialect();
    let fences = tables.keys().filter(|table| *table != MOVES).flat_map(|table| dialect.fence(table));
    alter(engine, dialect.before_fences().into_iter().chain(fences).collect()).await?;
    marks::leave_turns(engine, id, Leave::Fencing, Leave::Fenced).await
}

/// Takes the mark of a move away that begins here and has fenced nothing. Any other is left there, and that is said: no
/// server starts on such a database.
async fn given_up(engine: &dyn Engine, id: &str, begun: bool, Trouble(why): Trouble) -> Trouble {
    let nothing_done = begun && catalogue::is_unfenced(engine).await.unwrap_or(false);
    if nothing_done && marks::stays(engine, id).await.is_ok() {
        return Trouble(why);
    }
    Trouble(format!("{why}; the source is marked as being moved: run it again, or portiere move --abort"))
}

/// Everything is at the other end: this one stays as it is for good.
pub async fn left(engine: &dyn Engine, id: &str) -> Result<(), Trouble> {
    match Marks::read(engine).await?.out {
        Some(out) if out.id == id && out.state == Leave::Left => Ok(()),
        _ => marks::leave_turns(engine, id, Leave::Fenced, Leave::Left).await,
    }
}

/// Lets be written to `engine` again. Interrupted, it is to be run again: until then nothing can go on from what was
/// copied, since something may have been written here meanwhile.
pub async fn lift(engine: &dyn Engine, id: &str) -> Result<(), Trouble> {
    match Marks::read(engine).await?.out {
        None => return Ok(()),
        Some(out) if out.id != id => return Err(Trouble(out.sentence())),
        Some(out) if out.state == Leave::Lifting => {}
        Some(out) => marks::leave_turns(engine, id, out.state, Leave::Lifting).await?,
    }
    let tables = catalogue::tables(engine).await?;
    let dialect = engine.dialect();
    alter(engine, tables.keys().flat_map(|table| dialect.unfence(table)).collect()).await?;
    marks::stays(engine, id).await
}

/// Every trigger that a fence makes on the tables of a file: its name, and its text as SQLite keeps it. No table is opened: the file
/// may be anybody's.
pub async fn triggers(file: &dyn Engine) -> Result<BTreeMap<String, String>, Trouble> {
    let names = catalogue::names(file).await?;
    // Any other name could make another statement of the text.
    let ours = names.iter().filter(|name| catalogue::is_plain(name) && *name != MOVES);
    let kept = |made: String| {
        let text = made.replacen("CREATE TRIGGER IF NOT EXISTS ", "CREATE TRIGGER ", 1);
        let name = text.split(' ').nth(2).unwrap_or_default().to_owned();
        (name, text)
    };
    Ok(ours.flat_map(|table| Dialect::Sqlite.fence(table)).map(kept).collect())
}

/// Lets a copy of a file be written to whose triggers are all [fences](triggers), whatever became of the file; the mark that it
/// had. Refused where there are fences and no mark: no move leaves that.
pub async fn lift_in_copy(copy: &dyn Engine) -> Result<Option<Mark<Leave>>, Trouble> {
    let Some(out) = Marks::read(copy).await?.out else {
        return match catalogue::is_unfenced(copy).await? {
            true => Ok(None),
            false => Err(Trouble("it is fenced as for a move, and does not say where to".to_owned())),
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
            Err(why) => tracing::debug!(why = why.0, "a fence waits for others"),
            Ok(()) => return Ok(()),
        }
        tried += 1;
        tokio::time::sleep(PAUSE).await;
    }
}
