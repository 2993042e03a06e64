//! The mark: the end of the chain as this node last saw it, kept in its data folder. A chain that ends before it, or
//! has another block there, is not sealed any further: whatever was done to the database, it does not look like new
//! entries.

use super::alarm::About;
use super::lag::{goes_on_at, is_beyond};
use super::read::head;
use super::seal::end;
use super::trouble::is_cut;
use super::{Books, Terms};
use crate::{App, Fault};
use rules::audit::{Block, Checkpoint, Head, Mark, Verifier};
use rules::events::{Event, Kind};
use rules::secret::hexadecimal;
use rules::utc::iso_ms;
use std::fmt::Debug;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use store::engine::CommitError;
use store::tables::audit::{After, Begins, Newest, Place, Stream, Streams, Topmost, Whole, advance};
use tokio::sync::OwnedMutexGuard;

/// The shortest time between two writes of the mark, however fast the chain grows.
const KEEP_EVERY: Duration = Duration::from_secs(5);

/// Where a node keeps its mark. Not in the database.
pub trait Shelf: Send + Sync + Debug {
    /// Returns what is there.
    fn read(&self) -> io::Result<Option<Vec<u8>>>;
    /// Replaces what is there, durably.
    fn write(&self, bytes: &[u8]) -> io::Result<()>;
    /// Removes what is there.
    fn clear(&self) -> io::Result<()>;
}

/// What this node knows of the end of the chain.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Known {
    /// It has seen no end yet.
    #[default]
    Nothing,
    /// It saw this end.
    End(Head),
    /// The mark that it kept proves nothing: why, what to do about it, and whether only the key is missing.
    Untold { why: String, how: &'static str, keyless: bool },
}

/// What this node knows of the end, and what of that is on the shelf.
#[derive(Default)]
pub(super) struct Marked {
    state: Mutex<State>,
    /// Held to the end by a task that changes what is on the shelf: an older mark never comes after a newer one.
    keeping: Arc<tokio::sync::Mutex<()>>,
}

#[derive(Default)]
struct State {
    known: Known,
    kept: Option<Head>,
    /// When the mark was written last, or could not be.
    tried_at: Option<Instant>,
}

impl Marked {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn known(&self) -> Known {
        self.state().known.clone()
    }

    /// Reads what is on the shelf, at the start.
    pub(super) fn recall(&self, terms: &Terms) {
        let known = recalled(terms);
        let kept = if let Known::End(head) = &known { Some(head.clone()) } else { None };
        *self.state() = State { known, kept, tried_at: None };
    }

    /// Notes that the chain ends here now. A later end that was seen stands, unless `anew`.
    pub(super) fn saw(&self, head: Head, anew: bool) {
        let mut state = self.state();
        let further = match &state.known {
            Known::Nothing => true,
            Known::End(seen) => seen.block <= head.block,
            Known::Untold { .. } => false,
        };
        if further || anew {
            state.known = if head.block > 0 { Known::End(head) } else { Known::Nothing };
        }
    }
}

fn recalled(terms: &Terms) -> Known {
    let untold = |why: String, how| {
        let why = format!("the mark that this node keeps of the end of the log (audit.mark in its data folder) {why}");
        Known::Untold { why, how, keyless: how == KEYLESS }
    };
    let bytes = match terms.shelf.as_ref().map_or(Ok(None), |shelf| shelf.read()) {
        Ok(None) => return Known::Nothing,
        Ok(Some(bytes)) => bytes,
        Err(error) => return untold(format!("cannot be read: {error}"), UNREADABLE),
    };
    let Ok(mark) = serde_json::from_slice::<Mark>(&bytes) else { return untold("is not valid".into(), HOW) };
    match mark.is_sealed(&terms.keys) {
        Some(true) => Known::End(mark.head),
        Some(false) => untold("was altered".into(), HOW),
        None => untold(
            format!("was written under key {}, which this node does not have (audit.old_keys)", mark.key),
            KEYLESS,
        ),
    }
}

impl Books {
    pub(super) fn marked(&self) -> &Marked {
        &self.marked
    }
}

/// What an operator accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Accepted {
    /// The end of the log from which it goes on.
    pub block: i64,
    /// The streams that had delivered more, and go on as well.
    pub streams: Vec<String>,
}

impl App {
    /// Checks where the chain ends; the inner error says why this node does not go on with it.
    pub(super) async fn look_at_end(&self) -> Result<Result<(), String>, Fault> {
        // The mark is read first: what is read after it cannot be older.
        let known = self.books.marked().known();
        let (newest, begins, topmost) = self.ask((Newest, Begins, Topmost)).await?;
        self.look_at_records(begins.as_ref(), topmost);
        let goes_on = self.goes_on(&known, newest.as_ref(), begins.as_ref()).await?;
        // Without any key the mark proves nothing, and that this node has no key is reported already.
        let keyless = matches!(known, Known::Untold { keyless: true, .. }) && self.books.terms().keys.current.is_none();
        match &goes_on {
            Err(why) if !keyless => self.books.alarms().raise(About::End, why),
            _ => self.books.alarms().over(About::End),
        }
        Ok(goes_on)
    }

    /// Tells of records that are none of ours. Whether the chain goes on does not depend on them: they are left out.
    fn look_at_records(&self, begins: Option<&Checkpoint>, topmost: Option<String>) {
        let edited =
            begins.is_some_and(|begins| begins.is_sealed(&self.realm.id, &self.books.terms().keys) == Some(false));
        let why = match (topmost, edited) {
            (Some(number), _) => format!("the record of a block has the number {number:.64}, which is none"),
            (None, true) => "the record of what retention removed is not what was sealed".to_owned(),
            (None, false) => return self.books.alarms().over(About::Records),
        };
        self.books.alarms().raise(About::Records, &format!("{why}: see portiere audit verify"));
    }

    /// Returns what is wrong with the log as it is now, in sentences: checks on demand, where no server does.
    pub async fn audit_wrong(&self) -> Result<Vec<String>, Fault> {
        drop(self.look_at_end().await?);
        Ok(self.audit_alarms())
    }

    /// Checks that a chain with this end goes on from what was `known` before it was read; if so, remembers the end.
    pub(super) async fn goes_on(
        &self,
        known: &Known,
        newest: Option<&Block>,
        begins: Option<&Checkpoint>,
    ) -> Result<Result<(), String>, Fault> {
        let head = head(&self.realm.id, newest, begins);
        match known {
            Known::Untold { why, how, .. } => return Ok(Err(format!("{why}; {how}"))),
            Known::Nothing => {}
            Known::End(mark) if head.block < mark.block => {
                let (seen, ends, at) = (mark.block, head.block, iso_ms(mark.sealed_at));
                let why = format!("it ends with block {ends}, but this node has seen block {seen}, sealed at {at}");
                return Ok(Err(format!("{why}; {HOW}")));
            }
            Known::End(mark) if head.block == mark.block => {
                let taken_out = begins.filter(|_| newest.is_none());
                let vouched = taken_out.map_or(Ok(()), |begins| self.vouches(begins, mark));
                return Ok(same(mark, &head.mac, head.lines).and(vouched));
            }
            Known::End(mark) => {
                if let Err(why) = self.continues(mark).await? {
                    return Ok(Err(why));
                }
            }
        }
        if newest.is_some() || begins.is_some() {
            match self.proved(newest, begins).await? {
                Ok(true) => self.books.marked().saw(head, false),
                Ok(false) => {}
                Err(why) => return Ok(Err(format!("{why}; {HOW}"))),
            }
        }
        Ok(Ok(()))
    }

    /// Checks that a longer chain has the block of the mark, unless retention removed that.
    async fn continues(&self, mark: &Head) -> Result<Result<(), String>, Fault> {
        let blocks = self.ask(After { number: mark.block - 1, limit: 1 }).await?;
        if let Some(block) = blocks.first().filter(|block| block.number == mark.block) {
            return Ok(same(mark, &hexadecimal(&block.mac), block.last));
        }
        let Some(begins) = self.ask(Begins).await?.filter(|begins| begins.number >= mark.block) else {
            return Ok(Err(format!("block {}, which this node has seen, is missing; {HOW}", mark.block)));
        };
        let vouched = self.vouches(&begins, mark);
        if begins.number == mark.block {
            return Ok(same(mark, &hexadecimal(&begins.mac), begins.last).and(vouched));
        }
        Ok(vouched)
    }

    /// Checks that the record of what retention removed stands for the block of the mark, which is gone. If its key is
    /// not here, anybody may have written it, unless it is the end that an operator accepted.
    fn vouches(&self, begins: &Checkpoint, mark: &Head) -> Result<(), String> {
        let at_mark = begins.number == mark.block;
        match begins.is_sealed(&self.realm.id, &self.books.terms().keys) {
            Some(false) if !at_mark => {
                Err(format!("the record of what retention removed is not what was sealed; {HOW}"))
            }
            None if !at_mark || begins.key != mark.key => Err(format!(
                "block {}, which this node has seen, is gone, and the record of what retention removed is under key \
                 {}, which this node does not have: if another node has that key, name its file in audit.old_keys; \
                 otherwise {HOW}",
                mark.block, begins.key
            )),
            _ => Ok(()),
        }
    }

    /// Whether the end of the chain was sealed, as far as the keys tell.
    async fn proved(&self, newest: Option<&Block>, begins: Option<&Checkpoint>) -> Result<Result<bool, String>, Fault> {
        let (realm, keys) = (&self.realm.id, &self.books.terms().keys);
        let Some(newest) = newest else {
            let sealed = begins.map(|begins| begins.is_sealed(realm, keys));
            let why = "the record of what retention removed is not what was sealed";
            return Ok(if sealed == Some(Some(false)) { Err(why.to_owned()) } else { Ok(sealed == Some(Some(true))) });
        };
        let blocks = self.ask(Whole { number: newest.number - 1, limit: 1 }).await?;
        let Some(block) = blocks.first().filter(|block| block.mac == newest.mac) else { return Ok(Ok(false)) };
        match (Verifier { realm, keys, head: None, mark: None }).record(block) {
            None => Ok(Ok(true)),
            Some(_) if keys.find(&block.key).is_none() => Ok(Ok(false)),
            Some(finding) => Ok(Err(finding.why)),
        }
    }

    /// Writes the mark to the shelf, if another one is kept there; not often, unless `at_once`. If that fails, it is an
    /// alarm until it succeeds.
    pub(crate) async fn keep_mark(&self, at_once: bool) -> Result<(), Fault> {
        let terms = self.books.terms();
        let Some(shelf) = terms.shelf.clone() else { return Ok(()) };
        // Taken before the state is read: a task that waited here writes what is known by then.
        let keeping = Arc::clone(&self.books.marked().keeping).lock_owned().await;
        let (known, rests) = {
            let state = self.books.marked().state();
            let rests = !at_once && state.tried_at.is_some_and(|at| at.elapsed() < KEEP_EVERY);
            let is_kept = matches!(&state.known, Known::End(head) if state.kept.as_ref() == Some(head));
            (state.known.clone(), rests || is_kept)
        };
        let (Known::End(head), Some(key), false) = (known, &terms.keys.current, rests) else { return Ok(()) };
        let bytes = serde_json::to_vec(&Mark::seal(head.clone(), key)).map_err(|why| Fault::Broken(why.to_string()))?;
        let written = on_shelf(keeping, move || shelf.write(&bytes)).await;
        match &written {
            Ok(()) => self.books.alarms().over(About::Mark),
            Err(why) => self.books.alarms().raise(About::Mark, why),
        }
        let mut state = self.books.marked().state();
        state.tried_at = Some(Instant::now());
        if written.is_ok() {
            state.kept = Some(head);
        }
        written.map_err(Fault::Broken)
    }

    /// Goes on with the log as it is in the database, although this node saw a longer one, or another, and leaves an
    /// audit entry; streams that were beyond its end go on from there. `None` if there is nothing to accept.
    pub async fn accept_audit(&self) -> Result<Option<Accepted>, Fault> {
        let known = self.books.marked().known();
        let (newest, begins, streams) = self.ask((Newest, Begins, Streams)).await?;
        let goes_on = self.goes_on(&known, newest.as_ref(), begins.as_ref()).await?;
        let (end, _) = end(newest.as_ref(), begins.as_ref());
        let was_beyond = |stream: &&Stream| is_beyond(&stream.place, &end) || is_cut(&stream.trouble);
        let beyond: Vec<&Stream> = streams.iter().filter(was_beyond).collect();
        if goes_on.is_ok() && beyond.is_empty() {
            return Ok(None);
        }
        let event = Event::new(Kind::AuditAccepted, self.clock.now()).detail("block", end.number);
        let event = event.detail("why", goes_on.as_ref().err().map_or("a stream was beyond the end", String::as_str));
        let back = |stream: &&Stream| {
            let place = Some(goes_on_at(stream)).filter(|place| !is_beyond(place, &end));
            Stream { place: place.unwrap_or_else(|| Place::from(&end)), trouble: String::new(), ..(*stream).clone() }
        };
        let writes = beyond.iter().map(|stream| advance(&self.realm.id, &stream.place, &back(stream))).collect();
        match self.commit_telling(&*self.engine, writes, [event]).await? {
            Ok(()) => {}
            Err(CommitError::Conflict { .. }) => return Err(Fault::Contended("a stream moved on meanwhile".into())),
            Err(error) => return Err(error.into()),
        }
        tracing::warn!(block = end.number, "the audit log goes on as it is: an operator accepted it");
        self.books.marked().saw(head(&self.realm.id, newest.as_ref(), begins.as_ref()), true);
        self.books.alarms().over(About::End);
        if let Some(shelf) = self.books.terms().shelf.clone().filter(|_| end.number == 0) {
            let keeping = Arc::clone(&self.books.marked().keeping).lock_owned().await;
            on_shelf(keeping, move || shelf.clear()).await.map_err(Fault::Broken)?;
            self.books.marked().state().kept = None;
        }
        self.keep_mark(true).await?;
        let streams = beyond.iter().map(|stream| stream.name.clone()).collect();
        Ok(Some(Accepted { block: end.number, streams }))
    }
}

/// What to do about a chain that does not go on from the mark.
const HOW: &str = "lines were removed from the database or rewritten, or it was restored or lost writes at a failover: \
                   see portiere audit verify; to go on with the log as it is: portiere audit accept";

/// What to do about a mark that is there and that we may not read: nothing was done to the log.
const UNREADABLE: &str = "it has to belong to the user that the server runs as, like all of the data folder";

/// What to do about a mark whose key is missing.
const KEYLESS: &str = "put that key back, or name its file in audit.old_keys; if it is lost: portiere audit rekey";

fn same(mark: &Head, mac: &str, lines: i64) -> Result<(), String> {
    if mark.mac == mac && mark.lines == lines {
        return Ok(());
    }
    Err(format!("its block {} is not the one that this node has seen; {HOW}", mark.block))
}

/// Does something on the shelf. Goes on if the caller stops waiting, and is `keeping` others off until its end.
async fn on_shelf(
    keeping: OwnedMutexGuard<()>,
    act: impl FnOnce() -> io::Result<()> + Send + 'static,
) -> Result<(), String> {
    let done = tokio::task::spawn_blocking(move || (act(), keeping).0).await;
    let done = done.map_err(io::Error::other).and_then(|done| done);
    done.map_err(|error| {
        format!("the mark of the end of the audit log (audit.mark in the data folder) could not be kept: {error}")
    })
}

/// A node's [`Shelf`].
pub type Kept = Arc<dyn Shelf>;
