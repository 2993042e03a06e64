//! Who may fill a target: a move claims it before its source is fenced, and begins to copy afterwards.

use super::catalogue::Table;
use super::marks::{self, Arrival, Mark, Marks};
use super::{Trouble, catalogue, page};
use crate::engine::Engine;

/// A move, as a target knows it.
#[derive(Clone, Copy, Debug)]
pub struct Mover<'a> {
    /// The id of the move, if it was begun.
    pub id: Option<&'a str>,
    /// The name of its source.
    pub from: &'a str,
}

/// Whether a move can begin, or go on. Asked before anything is fenced.
pub async fn examine(from: &dyn Engine, to: &dyn Engine, mover: Mover<'_>) -> Result<Option<Arrival>, Trouble> {
    let tables = catalogue::common(from, to).await?;
    Ok(match standing(to, &tables, mover).await? {
        Standing::Ours(arrival) => Some(arrival),
        Standing::Free(_) => None,
    })
}

/// Claims an empty target for a move before its source is fenced: no server starts there from then on, and another move
/// is refused before its source is fenced.
pub async fn claim(from: &dyn Engine, to: &dyn Engine, id: &str, from_name: &str) -> Result<(), Trouble> {
    let tables = catalogue::common(from, to).await?;
    match standing(to, &tables, Mover { id: Some(id), from: from_name }).await? {
        Standing::Ours(_) => Ok(()),
        Standing::Free(left) => marks::arrive(to, (id, from_name), left.as_ref(), false).await,
    }
}

/// Withdraws a claim whose move did not begin. Returns whether there was one; from then on the target is as it was.
pub async fn withdraw(to: &dyn Engine, id: &str) -> Result<bool, Trouble> {
    match Marks::read(to).await?.into.filter(|into| into.id == id) {
        Some(into) if is_left(to, &into).await? => marks::withdraw(to, &into).await.map(|()| true),
        _ => Ok(false),
    }
}

/// Returns the claim of a move from this source that did not begin to copy, if a target has one.
pub async fn unbegun(to: &dyn Engine, from_name: &str) -> Result<Option<Mark<Arrival>>, Trouble> {
    match Marks::read(to).await?.into {
        Some(into) if into.peer == from_name && is_left(to, &into).await? => Ok(Some(into)),
        _ => Ok(None),
    }
}

/// Begins to fill a target, or goes on: the source of the move is fenced.
pub(super) async fn begin(to: &dyn Engine, tables: &[Table], id: &str, from: &str) -> Result<Arrival, Trouble> {
    match standing(to, tables, Mover { id: Some(id), from }).await? {
        Standing::Ours(Arrival::Arriving) => {
            if !marks::has_begun(to).await? {
                marks::begin(to, id).await?;
            }
            Ok(Arrival::Arriving)
        }
        Standing::Ours(arrival) => Ok(arrival),
        Standing::Free(left) => {
            marks::arrive(to, (id, from), left.as_ref(), true).await?;
            Ok(Arrival::Arriving)
        }
    }
}

/// Who has a target.
enum Standing {
    /// The move, which is so far there.
    Ours(Arrival),
    /// Nobody: it is empty, but for the claim of a move that was cut short before it began.
    Free(Option<Mark<Arrival>>),
}

/// Whether a mark is only a claim, from which nothing followed.
async fn is_left(to: &dyn Engine, into: &Mark<Arrival>) -> Result<bool, Trouble> {
    Ok(into.state == Arrival::Arriving && !marks::has_begun(to).await?)
}

/// How far a move is at a target. Fails if the target is not for it.
async fn standing(to: &dyn Engine, tables: &[Table], mover: Mover<'_>) -> Result<Standing, Trouble> {
    let Marks { out, into } = Marks::read(to).await?;
    if let Some(out) = out {
        return Err(Trouble::new(format!("cannot move to the target: {}", out.sentence())));
    }
    let left = match into {
        Some(into) if into.state == Arrival::Abandoned => {
            return Err(Trouble::new("the target holds a copy that was given up: empty it, or name another"));
        }
        Some(into) if Some(into.id.as_str()) == mover.id => return Ok(Standing::Ours(into.state)),
        Some(into) if into.peer == mover.from && is_left(to, &into).await? => Some(into),
        Some(into) => return Err(taken(&into)),
        None => None,
    };
    for table in tables {
        if page::count(to, table).await? > 0 {
            let name = &table.name;
            return Err(Trouble::new(format!("the target is not empty: it has rows in the table {name}")));
        }
    }
    Ok(Standing::Free(left))
}

/// Says that a target belongs to another move. Nobody is told to empty what a server may run on.
fn taken(into: &Mark<Arrival>) -> Trouble {
    let peer = &into.peer;
    Trouble::new(match into.state {
        Arrival::Serving => format!("a server has run on the target, which was moved there from {peer}: name another"),
        _ => format!(
            "the target holds the copy of another move, from {peer}: name another, or empty it once that move is given \
             up"
        ),
    })
}
