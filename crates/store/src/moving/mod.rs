//! Moves everything from one database to another, whichever engines they use.
//!
//! What can be known beforehand is checked first: the target ([`before`]), and every value of the source, which stays
//! in use meanwhile ([`fit`]).
//!
//! Both ends record the state of the move in their table `moves` ([`marks`]), the target first ([`claim`]): no server
//! starts there from then on, and whoever comes second is refused before its source is fenced. Then the source is
//! fenced ([`fence`]): from then on triggers refuse every write to it, whichever program sends it. Then each table is
//! copied page by page in key order (`copy`); a page and the progress are one commit, so an interrupted move continues
//! where it was. At the end both ends are read again and compared row by row (`check`); only then is the target marked
//! as ready.

pub mod before;
pub mod catalogue;
mod check;
pub mod claim;
mod copy;
pub mod fence;
pub mod fit;
mod limits;
pub mod marks;
mod named;
mod page;
mod raw;
mod rights;

use std::fmt;

use futures_util::{StreamExt, TryStreamExt, stream};

use crate::dialect::Dialect;
use crate::engine::{CommitError, Engine, Unavailable};
pub use check::Sum;
use marks::{Arrival, Leave, Marks};
pub use named::Named;

/// The number of tables that are copied, or compared, at the same time.
const AT_ONCE: usize = 3;

/// Why a move does not go on, in a sentence for the operator. What was copied stays, and the move can be run again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trouble {
    /// The sentence.
    pub why: String,
    /// Whether a database gave no answer: the same move may get further later.
    pub is_away: bool,
}

impl Trouble {
    /// What does not pass by itself.
    pub fn new(why: impl Into<String>) -> Self {
        Trouble { why: why.into(), is_away: false }
    }

    fn away(why: String) -> Self {
        Trouble { why, is_away: true }
    }

    /// Tells the same in other words, which get the sentence.
    pub fn told(self, words: impl FnOnce(&str) -> String) -> Self {
        Trouble { why: words(&self.why), ..self }
    }
}

impl fmt::Display for Trouble {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.why)
    }
}

impl std::error::Error for Trouble {}

impl From<Unavailable> for Trouble {
    fn from(Unavailable(why): Unavailable) -> Self {
        Trouble::away(why)
    }
}

impl From<CommitError> for Trouble {
    fn from(error: CommitError) -> Self {
        match error {
            CommitError::Unavailable(why) => Trouble::away(why),
            CommitError::Unknown(why) => Trouble::away(format!("{why}; run this again to continue")),
            CommitError::Conflict { .. } => Trouble::new("another process changed the state of this move"),
        }
    }
}

/// The progress of a move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The source has this many rows, each of which is checked before anything is done.
    Checking(u64),
    /// This many more rows were checked.
    Checked(u64),
    /// The source has this many rows in all.
    Counted(u64),
    /// This many rows were copied by an earlier run.
    Found(u64),
    /// This many more rows are in the target.
    Copied(u64),
    /// Every row was copied; the comparison begins.
    Comparing,
    /// This many more rows were compared.
    Compared(u64),
}

/// A move whose source is fenced.
pub struct Move<'a> {
    /// The source.
    pub from: &'a dyn Engine,
    /// The target. Its schema is up to date.
    pub to: &'a dyn Engine,
    /// The id of this move in the source.
    pub id: &'a str,
    /// The source's name, without a password.
    pub from_name: &'a str,
    /// The maximum number of rows in a page.
    pub page: usize,
    /// Called at every step.
    pub tell: &'a (dyn Fn(Step) + Sync),
}

/// The usual maximum number of rows in a page. A page with large rows has fewer.
pub const PAGE: usize = 2048;

impl Move<'_> {
    /// Copies what is not copied yet, compares everything, and marks the target as ready. Returns what was compared, or
    /// `None` if the target was already ready and nothing was left to do.
    pub async fn run(&self) -> Result<Option<Vec<Sum>>, Trouble> {
        let tables = catalogue::common(self.from, self.to).await?;
        if claim::begin(self.to, &tables, self.id, self.from_name).await? != Arrival::Arriving {
            return Ok(None);
        }
        // Once more: a fence may have been raised since the source was checked.
        before::nobody_is_awaited(self.from, self.to.dialect()).await?;
        let tables = page::counted(self.from, tables).await?;
        (self.tell)(Step::Counted(tables.iter().map(|(_, rows)| rows).sum()));
        let copies = stream::iter(&tables).map(|(table, _)| copy::table(self, table));
        copies.buffer_unordered(AT_ONCE).try_collect::<Vec<()>>().await?;
        for (table, _) in &tables {
            self.to.alter(self.to.dialect().filled(&table.name)).await?;
        }
        let compared = self.to.generation();
        (self.tell)(Step::Comparing);
        let checks = stream::iter(&tables).map(|(table, _)| check::table(self, table));
        let mut sums: Vec<Sum> = checks.buffer_unordered(AT_ONCE).try_collect().await?;
        sums.sort_by(|one, other| one.table.cmp(&other.table));
        // The server that was compared, whichever one answered when this began. A file hands on the server that it came
        // from: nodes that last knew that one lost nothing on the way.
        let source = match self.from.answering() {
            Some(answering) => Some(answering.identity),
            None => marks::moved_from(self.from).await?,
        };
        self.still_fenced().await?;
        // Also for the target: another server that took over may lack rows that were compared.
        marks::ready((self.to, compared), self.id, source.as_deref()).await?;
        Ok(Some(sums))
    }

    /// Checks that the source is still fenced. Only then was everything compared: the move may have been given up
    /// meanwhile, or a server may have taken over that never got the fence. The mark alone is not believed: writes are
    /// refused by the triggers.
    async fn still_fenced(&self) -> Result<(), Trouble> {
        let out = Marks::read(self.from).await?.out;
        let marked = out.is_some_and(|out| out.id == self.id && out.state == Leave::Fenced);
        if marked && catalogue::unfenced(self.from).await?.is_none() {
            return Ok(());
        }
        Err(Trouble::new(
            "the source is no longer fenced and may have been written to since it was copied: start over with an empty \
             target"
                .to_owned(),
        ))
    }
}

/// Checks that a database may get a schema: it has no tables, or already has a table of ours. Asked before anything is
/// created in it, so that nothing is created in another program's database.
pub async fn vacant(to: &dyn Engine) -> Result<(), Trouble> {
    judge(&catalogue::names(to).await?, to.dialect())
}

/// The number of table names that an error lists for another program's database.
const TOLD: usize = 3;

/// The same check, for a database with these tables.
pub(crate) fn judge(names: &[String], dialect: Dialect) -> Result<(), Trouble> {
    if names.is_empty() || names.iter().any(|name| name == catalogue::STEPS) {
        return Ok(());
    }
    let (what, told) = (dialect.listed(), names[..names.len().min(TOLD)].join(", "));
    let more = match names.len().saturating_sub(TOLD) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    Err(Trouble::new(format!("the database is not empty: it has {what} that are not Portiere's: {told}{more}")))
}

/// Whether this program can move a source, or go on with a move that was `begun`. Asked before a target is changed.
pub async fn fits(from: &dyn Engine, begun: bool) -> Result<(), Trouble> {
    catalogue::fits(from, begun).await
}
