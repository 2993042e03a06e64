//! Sealing: entries that were committed, whatever their ids, become the next block of the chain.

use super::Terms;
use super::alarm::About;
use super::mark::Known;
use super::read::head;
use crate::{App, Fault};
use rules::audit::{Block, Checkpoint, Key, Link, Sealing};
use rules::events::{Event, Kind};
use store::engine::CommitError;
use store::tables::audit::{Begins, Newest, Unsealed, is_nameable, seal};

/// The most entries of a block.
pub(super) const AT_ONCE: i64 = 256;

/// How many entries were sealed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sealed {
    /// This many, and none is left.
    All(u64),
    /// This many, and there may be more.
    Some(u64),
}

/// What an operator who wanted another key is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rekeyed {
    /// The key under which the log goes on.
    pub key: String,
    /// Whether that needed anything to be done.
    pub changed: bool,
}

/// Returns where the chain ends, and under which key.
pub(super) fn end(newest: Option<&Block>, begins: Option<&Checkpoint>) -> (Link, Option<String>) {
    match (newest, begins) {
        (Some(block), _) => (Link::from(block), Some(block.key.clone())),
        (None, Some(checkpoint)) => (Link::from(checkpoint), Some(checkpoint.key.clone())),
        (None, None) => (Link::beginning(), None),
    }
}

/// Whether a mark proves nothing only because its key is missing.
fn is_lost(known: &Known) -> bool {
    matches!(known, Known::Untold { keyless: true, .. })
}

/// Returns the key that goes on with a chain whose end is sealed under `last`, or says why there is none.
pub(super) fn key<'a>(terms: &'a Terms, last: Option<&str>) -> Result<&'a Key, String> {
    let current = terms.keys.current.as_ref();
    match (current, last) {
        (Some(key), None) => Ok(key),
        (Some(key), Some(last)) if terms.keys.find(last).is_some() => Ok(key),
        (Some(key), Some(last)) => Err(format!(
            "its audit key is {}, and the log is sealed under {last}: copy audit.key from a node that has it (or name it in \
             audit.old_keys); if that key is lost: portiere audit rekey",
            key.id()
        )),
        (None, Some(last)) => Err(format!(
            "it has no audit key, and the log is sealed under {last}: copy audit.key from a node that has it, and start \
             this one again"
        )),
        (None, None) => Err("it has no audit key".to_owned()),
    }
}

/// Says that another node sealed under `last` while this one was about to go on under `current`.
fn overtaken(current: &str, last: &str) -> String {
    format!(
        "nothing was sealed under {current}: another node still has key {last}, and sealed first. Copy audit.key from \
         that node, or name the copy in audit.old_keys; to go on without it, give that node the new key, and repeat \
         this command. An entry audit.rekeyed is in the log although this was not done"
    )
}

impl App {
    /// Returns why this node may not seal; `None` when it may.
    pub async fn cannot_seal(&self) -> Result<Option<String>, Fault> {
        let (newest, begins) = self.ask((Newest, Begins)).await?;
        let (_, last) = end(newest.as_ref(), begins.as_ref());
        Ok(key(self.books.terms(), last.as_deref()).err())
    }

    /// Seals the oldest entries that wait, in one block.
    pub async fn seal_once(&self) -> Result<Sealed, Fault> {
        self.seal_with(false).await
    }

    /// Goes on with the chain under this node's key, although the key before it is not here, and leaves an audit entry.
    /// What was sealed before can be proved only with the earlier key.
    /// If the node can seal under the keys that it has, nothing is done. The inner error says why it does not go on.
    pub async fn rekey(&self) -> Result<Result<Rekeyed, String>, Fault> {
        let terms = self.books.terms();
        let Some(current) = terms.keys.current.as_ref() else {
            return Ok(Err("this node has no audit key: put the previous one back (audit.key in the data folder, or \
                           audit.key_file). If it is lost, make another one (head -c 32 /dev/urandom > audit.key; \
                           chmod 600 audit.key; owned by the user that the server runs as), start the server again, \
                           and repeat this command"
                .to_owned()));
        };
        let known = self.books.marked().known();
        let (newest, begins) = self.ask((Newest, Begins)).await?;
        let (_, last) = end(newest.as_ref(), begins.as_ref());
        if last.as_deref().is_none_or(|last| terms.keys.find(last).is_some()) {
            // A node that does not go on with the log for another reason is not helped by this.
            let goes_on = self.goes_on(&known, newest.as_ref(), begins.as_ref()).await?;
            let key = current.id().to_owned();
            let unhelped = |why: String| format!("the log can be sealed under {key} as it is: nothing was done; {why}");
            return Ok(goes_on.map_err(unhelped).map(|()| Rekeyed { key, changed: false }));
        }
        // Checked before the entry is written: it must not tell of what is not done.
        if !is_lost(&known)
            && let Err(why) = self.goes_on(&known, newest.as_ref(), begins.as_ref()).await?
        {
            return Ok(Err(why));
        }
        let event = Event::new(Kind::AuditRekeyed, self.clock.now());
        let event = event.detail("from", last.unwrap_or_default()).detail("to", current.id());
        self.note(event).await?;
        self.seal_with(true).await?;
        // If another node was faster, its block is the one that was sealed, under the key that it has.
        let last = self.ask(Newest).await?.map(|newest| newest.key).unwrap_or_default();
        if last != current.id() {
            return Ok(Err(overtaken(current.id(), &last)));
        }
        self.keep_mark(true).await?;
        Ok(Ok(Rekeyed { key: current.id().to_owned(), changed: true }))
    }

    /// Writes one entry.
    pub(super) async fn note(&self, event: Event) -> Result<(), Fault> {
        Ok(self.commit_telling(&*self.engine, Vec::new(), [event]).await??)
    }

    async fn seal_with(&self, anew: bool) -> Result<Sealed, Fault> {
        // Read before the chain is, so that it cannot be ahead of the chain.
        let known = self.books.marked().known();
        let (newest, begins, mut lines) = self.ask((Newest, Begins, Unsealed { limit: AT_ONCE })).await?;
        // An entry that no statement can name stays as it is, and keeps no other from being sealed.
        let all = lines.len();
        lines.retain(is_nameable);
        match lines.len() < all {
            true => {
                self.books.alarms().raise(About::Lines, "an unsealed line has an id that this program does not write")
            }
            false => self.books.alarms().over(About::Lines),
        }
        if lines.is_empty() {
            return Ok(Sealed::All(0));
        }
        let lost = anew && is_lost(&known);
        if !lost {
            self.goes_on(&known, newest.as_ref(), begins.as_ref()).await?.map_err(Fault::Broken)?;
        }
        let (end, last) = end(newest.as_ref(), begins.as_ref());
        let key = key(self.books.terms(), last.as_deref().filter(|_| !anew)).map_err(Fault::Broken)?;
        let now = self.clock.now();
        let block = Sealing { realm: &self.realm.id, key, now }.block(&end, &mut lines);
        let many = lines.len() as u64;
        match self.engine.commit(seal(&self.realm.id, &block, &lines)).await {
            Ok(_) => {
                self.books.marked().saw(head(&self.realm.id, Some(&block), None), lost);
                Ok(if many < AT_ONCE.unsigned_abs() { Sealed::All(many) } else { Sealed::Some(many) })
            }
            // Another node was faster.
            Err(CommitError::Conflict { .. }) => Ok(Sealed::Some(0)),
            Err(error) => Err(error.into()),
        }
    }
}
