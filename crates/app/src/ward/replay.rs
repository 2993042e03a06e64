//! Replaying what this node had acknowledged to a database that may have lost it.

use super::{Memory, Ward};
use crate::{App, Fault};
use rules::ending::Record;
use rules::events::Kind;
use rules::{Span, Time};
use std::collections::HashMap;
use store::engine::{SENT_AT_ONCE, Write};
use store::tables::ask;
use store::tables::audit::{Begins, Whole};
use store::tables::fences::{Fence, Unanswered};
use store::tables::journal::{Known, known, replay};

/// Records that are looked up at a time.
const AT_ONCE: usize = 1024;
/// A failover loses the end of what was committed. A database that has all records of so long a time has all before.
const UNBROKEN: Span = Span::minutes(15);

/// The outcome of a replay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Said {
    /// Batches that the database had lost.
    pub(super) lost: u64,
    /// Whether it is known that nothing older is missing, for example because the database has some of the journal.
    pub(super) whole: bool,
}

/// How far the look back through the journal has come.
#[derive(Default)]
struct Back {
    lost: u64,
    /// Whether the database has a record by itself, and whether it has one that was replayed to it before.
    found: bool,
    said: bool,
    /// The time of the youngest record of the present stretch without a gap.
    since: Option<Time>,
    enough: bool,
    /// Since when entries of the audit log are kept, where older ones were removed: nobody can tell whether something
    /// older was lost, and what was decided since must not be undone.
    kept_since: Option<Time>,
    /// Whether the look back has reached such an older record.
    untold: bool,
}

impl Back {
    /// Whether something was missing, now or at an earlier replay.
    fn has_gap(&self) -> bool {
        self.lost > 0 || self.said
    }

    /// Takes one record that is, or is not, in the database; returns whether it has to be replayed.
    fn takes(&mut self, record: &Record, known: &HashMap<String, Known>) -> bool {
        if self.kept_since.is_some_and(|since| record.at < since) {
            self.untold = true;
            return false;
        }
        let Some(witness) = &record.witness else { return true };
        match known.get(witness) {
            Some(Known::Kept) => {
                self.found = true;
                let since = *self.since.get_or_insert(record.at);
                self.enough = since.since(record.at) >= UNBROKEN;
                false
            }
            // It tells nothing about records before it: a replay begins with the newest, and may have been interrupted.
            Some(Known::Said) => {
                self.said = true;
                self.since = None;
                false
            }
            None => {
                self.lost += 1;
                self.since = None;
                true
            }
        }
    }
}

impl App {
    /// Replays what the database does not have, from the newest record back.
    pub(super) async fn say_again(&self, ward: &Ward, fence: &Fence) -> Result<Said, Fault> {
        let mut back = Back { kept_since: self.kept_since(ward).await?, ..Back::default() };
        let Memory { node, fence: known, .. } = ward.journal.memory();
        let known = known.map_or(Time(i64::MIN), |(_, at)| at);
        let mut fences = ask(&**ward.gate.inner(), &self.realm.id, Unanswered { node: &node, known }).await?;
        fences.retain(|older| older.number < fence.number);
        fences.push(fence.clone());
        for part in ward.journal.parts().map_err(unreadable)? {
            let records = read(ward, part).await?;
            for chunk in records.rchunks(AT_ONCE) {
                self.say_chunk(ward, &fences, chunk, &mut back).await?;
                if back.enough {
                    return Ok(Said { lost: back.lost, whole: true });
                }
                if back.untold {
                    return Ok(Said { lost: back.lost, whole: back.found || !back.has_gap() });
                }
            }
        }
        Ok(Said { lost: back.lost, whole: back.found || !back.has_gap() || !ward.journal.is_cut() })
    }

    /// Returns since when audit entries are kept; `None` if none was ever removed.
    async fn kept_since(&self, ward: &Ward) -> Result<Option<Time>, Fault> {
        let oldest = Whole { number: 0, limit: 1 };
        let (begins, oldest) = ask(&**ward.gate.inner(), &self.realm.id, (Begins, oldest)).await?;
        // Not its oldest line: one that a replay brought back is older than others that were removed before it.
        let oldest = oldest.first().map(|block| block.sealed_at);
        Ok(begins.map(|begins| kept_since(begins.removed_at, oldest, self.clock.now())))
    }

    async fn say_chunk(&self, ward: &Ward, fences: &[Fence], chunk: &[Record], back: &mut Back) -> Result<(), Fault> {
        let witnesses = chunk.iter().filter_map(|record| record.witness.clone()).collect();
        let (known, lost) = (known(&**ward.gate.inner(), &self.realm.id, witnesses).await?, back.lost);
        let mut writes: Vec<Write> = Vec::new();
        for record in chunk.iter().rev() {
            if let Some(fence) = lost_at(fences, record)
                && back.takes(record, &known)
            {
                for batch in replay(&self.realm.id, record, fence, self.clock.now()) {
                    if !writes.is_empty() && writes.len() + batch.len() > SENT_AT_ONCE {
                        ward.gate.inner().commit(std::mem::take(&mut writes)).await?;
                    }
                    writes.extend(batch);
                }
            }
        }
        if !writes.is_empty() {
            ward.gate.inner().commit(writes).await?;
        }
        // Each that was lost has an entry in the place of its own.
        (lost..back.lost).for_each(|_| self.tally.events.one(Kind::FenceReplayed));
        Ok(())
    }
}

/// Returns since when entries are kept, by the time at which some were last removed and by when the oldest block was
/// sealed. What is removed is a day old at least (see audit/retire.rs): that tells it where no block is left, and
/// whatever a clock that was ahead wrote into the oldest block.
fn kept_since(removed_at: Time, oldest: Option<Time>, now: Time) -> Time {
    let removed = removed_at.min(now) - super::KEPT;
    oldest.map_or(removed, |oldest| oldest.min(removed))
}

/// Returns the fence of the failover that lost a record: the first younger one that this node has not answered yet. A
/// database that has a fence has what was committed before that, except for what that failover or an earlier one lost.
/// Against a later fence, what was issued between the two would count as older than what had ended before both.
fn lost_at<'a>(fences: &'a [Fence], record: &Record) -> Option<&'a Fence> {
    fences.iter().find(|fence| record.at <= fence.at).or(fences.last())
}

async fn read(ward: &Ward, part: u64) -> Result<Vec<Record>, Fault> {
    let journal = ward.journal.clone();
    let read = tokio::task::spawn_blocking(move || journal.read(part)).await;
    read.unwrap_or_else(|error| Err(error.to_string())).map_err(unreadable)
}

fn unreadable(why: String) -> Fault {
    Fault::Broken(format!("the journal cannot be read: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(at: i64, witness: Option<&str>) -> Record {
        Record { at: Time(at), witness: witness.map(str::to_owned), endings: vec![] }
    }

    #[test]
    fn a_record_is_judged_by_the_first_fence_after_it() {
        let fence = |number, at| Fence { number, at: Time(at), identity: String::new(), epoch: 0 };
        let fences = [fence(1, 1000), fence(2, 2000)];
        let by = |at| lost_at(&fences, &record(at, None)).map(|fence| fence.number);
        assert_eq!([500, 1000, 1001, 2000, 2001].map(by), [1, 1, 2, 2, 2].map(Some));
    }

    #[test]
    fn the_look_back_ends_where_nothing_is_missing_for_long_enough() {
        let known = ["a", "b", "c"].map(|witness| (witness.to_owned(), Known::Kept)).into();
        let mut back = Back::default();
        assert!(back.takes(&record(9_000_000, Some("lost")), &known));
        assert!(!back.takes(&record(8_000_000, Some("a")), &known));
        // A gap starts the stretch anew.
        assert!(back.takes(&record(7_999_000, Some("lost too")), &known));
        assert!(!back.takes(&record(7_998_000, Some("b")), &known));
        assert!(back.takes(&record(7_997_000, None), &known), "what has no witness is said again");
        assert!(!back.enough);
        assert!(!back.takes(&record(7_998_000 - UNBROKEN.0, Some("c")), &known));
        assert!(back.enough && back.found && back.lost == 2);
    }

    #[test]
    fn what_is_older_than_the_lines_that_are_kept_is_not_said() {
        // Red without `kept_since`: a user disabled long ago, and enabled again since, would be disabled once more.
        let mut back = Back { kept_since: Some(Time(5_000)), ..Back::default() };
        assert!(back.takes(&record(5_000, Some("lost")), &HashMap::new()));
        assert!(!back.takes(&record(4_999, Some("retired")), &HashMap::new()));
        assert!(!back.takes(&record(4_998, None), &HashMap::new()));
        assert!(back.untold && !back.enough && back.lost == 1 && back.has_gap());
    }

    #[test]
    fn what_a_node_did_in_the_last_day_is_said_whatever_clock_wrote_the_oldest_line() {
        // Red without `min`: an entry that is dated years ahead would silence every journal.
        let (day, now) = (super::super::KEPT, Time(0) + Span::days(100));
        assert_eq!(kept_since(now, Some(now + Span::days(3_650)), now), now - day);
        assert_eq!(kept_since(now + Span::days(3_650), None, now), now - day, "a removal by such a clock");
        assert_eq!(kept_since(now, Some(Time(0) + Span::days(10)), now), Time(0) + Span::days(10));
    }

    #[test]
    fn where_no_block_is_left_it_is_told_by_what_was_removed_last() {
        // Red where no block counts as none removed, or where a lost record since then counts as one that was removed.
        let (day, now) = (super::super::KEPT, Time(0) + Span::days(100));
        assert_eq!(kept_since(now - Span::hours(1), None, now), now - Span::hours(1) - day);
        assert_eq!(kept_since(Time(0) + Span::days(40), None, now), Time(0) + Span::days(39));
        assert_eq!(kept_since(Time(0) + Span::days(40), Some(now - day), now), Time(0) + Span::days(39));
    }

    #[test]
    fn what_was_said_before_is_not_said_and_does_not_end_the_look_back() {
        // Red where `Said` counts as `Kept`: a replay interrupted after a quarter of an hour's records would end it.
        let known = [("said", Known::Said), ("also", Known::Said)].map(|(witness, known)| (witness.to_owned(), known));
        let (known, mut back) = (known.into(), Back::default());
        assert!(!back.takes(&record(9_000_000, Some("said")), &known));
        assert!(!back.takes(&record(9_000_000 - UNBROKEN.0, Some("also")), &known));
        assert!(!back.enough && !back.found && back.said);
        assert!(back.takes(&record(1_000_000, Some("lost")), &known));
    }
}
