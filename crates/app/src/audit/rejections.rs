//! Refusals to callers that were not authenticated. There is no audit entry for each, or anybody could fill the disk,
//! but a row with a count for each minute, address (a /64 for IPv6) and application.
//!
//! The first refusal of a row is committed before it is answered. Those that follow are counted in memory, and written
//! with the next row that begins, or by the upkeep: a flood of wrong secrets costs as many commits as it has rows, and
//! a node that is killed loses how many more there were in its last seconds, not that there were any.

use crate::pledge::to_the_end;
use crate::{App, Fault, asked, entropy};
use rules::decision::Change;
use rules::events::Rejection;
use rules::oauth::client::Client;
use rules::oauth::client_auth::Proof;
use rules::oauth::error::{Code, Error};
use rules::{Span, Time};
use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, PoisonError};
use store::engine::{CommitError, SENT_AT_ONCE};

/// Rows that a node begins in a minute, at most: all other sources then share a row, without address or application.
const ROWS: usize = 256;
/// Rows of earlier minutes that are kept by address, at most, while they cannot be written.
const LATE: usize = 16 * ROWS;
/// Rows that one batch writes: each is two statements of it.
const AT_ONCE: usize = SENT_AT_ONCE / 2;
const MINUTE: Span = Span::minutes(1);

/// What is counted together.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Row {
    minute: i64,
    what: Rejection,
    address: String,
}

/// Counts that were taken to be written.
type Counts = Vec<(Row, i64)>;

/// What was refused lately, and how much of it is not written yet.
#[derive(Default)]
pub(crate) struct Rejections(Mutex<Rows>);

#[derive(Default)]
struct Rows {
    minute: i64,
    /// The rows of this minute, each with the count that is not written yet.
    begun: HashMap<Row, i64>,
    /// Counts of earlier minutes that are not written yet.
    late: HashMap<Row, i64>,
}

impl Rejections {
    /// Counts one; returns what has to be written before it is answered, if it is the first of its row.
    fn count(&self, what: Rejection, address: String, now: Time) -> Option<Counts> {
        let minute = now.0.div_euclid(MINUTE.0);
        let mut rows = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if rows.minute != minute {
            rows.turn(minute);
        }
        let mut row = Row { minute, what, address };
        if rows.begun.len() >= ROWS && !rows.begun.contains_key(&row) {
            row = row.of_anybody();
        }
        if let Some(many) = rows.begun.get_mut(&row) {
            *many += 1;
            return None;
        }
        rows.begun.insert(row.clone(), 0);
        Some(rows.take(vec![(row, 1)]))
    }

    fn take(&self) -> Counts {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take(Vec::new())
    }

    /// Puts counts back that were not written after all: they wait once more.
    fn put_back(&self, counts: Counts) {
        let mut rows = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for (row, many) in counts {
            match row.minute == rows.minute {
                true => *rows.begun.entry(row).or_default() += many,
                false => rows.keep(row, many),
            }
        }
    }
}

impl Row {
    /// Returns the row that says neither from where, nor of which application.
    fn of_anybody(self) -> Row {
        Row { minute: self.minute, what: self.what.of_anybody(), address: String::new() }
    }
}

impl Rows {
    /// Begins a new minute, which has rows of its own: earlier rows take no places.
    fn turn(&mut self, minute: i64) {
        self.minute = minute;
        let begun = std::mem::take(&mut self.begun);
        begun.into_iter().filter(|(_, many)| *many > 0).for_each(|(row, many)| self.keep(row, many));
    }

    fn keep(&mut self, row: Row, many: i64) {
        let full = self.late.len() >= LATE && !self.late.contains_key(&row);
        let row = if full { row.of_anybody() } else { row };
        *self.late.entry(row).or_default() += many;
    }

    /// Returns `first`, and what else one batch writes with it.
    fn take(&mut self, first: Counts) -> Counts {
        let mut counts = first;
        counts.extend(self.late.extract_if(|_, _| true).take(AT_ONCE - counts.len()));
        let waiting = self.begun.iter_mut().filter(|(_, many)| **many > 0).take(AT_ONCE - counts.len());
        counts.extend(waiting.map(|(row, many)| (row.clone(), std::mem::take(many))));
        counts
    }
}

/// The addresses of this minute from which somebody failed with a name that nobody has. Each failure is committed, but
/// not with an address of its own once this node has begun as many rows as it may.
#[derive(Default)]
pub(crate) struct Strangers(Mutex<(i64, HashSet<String>)>);

impl Strangers {
    /// Returns the address of the row in which a failure counts: that of nobody, beyond so many.
    pub(crate) fn row_of(&self, address: &str, at: Time) -> String {
        let minute = at.0.div_euclid(MINUTE.0);
        let mut begun = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if begun.0 != minute {
            *begun = (minute, HashSet::new());
        }
        if begun.1.len() >= ROWS && !begun.1.contains(address) {
            return String::new();
        }
        begun.1.insert(address.to_owned());
        address.to_owned()
    }
}

impl App {
    /// Notes that a caller was refused. What cannot be written now is kept, and does not hold up the answer: a refusal
    /// lets nobody in.
    pub(crate) async fn reject(&self, what: Rejection) {
        let counts = self.rejections.count(what, asked::address(), self.clock.now());
        let Some(counts) = counts else { return };
        let app = self.clone();
        if let Err(fault) = to_the_end(|_| async move { app.write_down(counts).await }).await {
            tracing::debug!(%fault, "counts of refused requests were not saved yet");
        }
    }

    /// Writes what has waited so far.
    ///
    /// # Errors
    /// What keeps counts from being written; they go on waiting.
    pub(crate) async fn write_rejections(&self) -> Result<(), Fault> {
        loop {
            let counts = self.rejections.take();
            if counts.is_empty() {
                return Ok(());
            }
            self.write_down(counts).await?;
        }
    }

    async fn write_down(&self, counts: Counts) -> Result<(), Fault> {
        let change = |(row, many): &(Row, i64)| Change::CountRejections {
            what: row.what.clone(),
            address: row.address.clone(),
            at: Time(row.minute * MINUTE.0),
            many: *many,
        };
        let changes = counts.iter().map(change).collect();
        let written = self.commit(changes, self.clock.now(), &entropy::fresh()?).await;
        // With an unknown outcome they may stand: counted twice, there would be refusals that never were.
        if written.as_ref().is_err_and(|error| !matches!(error, CommitError::Unknown(_))) {
            self.rejections.put_back(counts);
        }
        Ok(written?)
    }

    /// Notes that a client was not authenticated, and returns the error; `claimed` is the client that it claims to be.
    pub(crate) async fn not_proved(&self, claimed: Option<&Client>, why: &'static str) -> Error {
        self.reject(Rejection::Client(claimed.map(|client| client.id.clone()))).await;
        Error::client(why)
    }

    /// Returns the proof in a request. A proof that cannot be read is noted like a wrong one.
    ///
    /// # Errors
    /// Those of the proof.
    pub async fn proof_in(&self, request: Result<Proof, Error>) -> Result<Proof, Error> {
        if request.as_ref().is_err_and(|error| error.code == Code::InvalidClient) {
            self.reject(Rejection::Client(None)).await;
        }
        request
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Time = Time(1_700_000_000_000);

    fn wrong(client: &str) -> Rejection {
        Rejection::Client(Some(client.into()))
    }

    fn sum(counts: &Counts) -> i64 {
        counts.iter().map(|(_, many)| many).sum()
    }

    #[test]
    fn a_flood_is_few_rows_each_of_which_is_written_when_it_begins_and_nothing_is_lost() {
        // Red without `of_anybody` in `count`: there would be a row for each address; without `return None` there, each
        // refusal would be a commit.
        let rejections = Rejections::default();
        let (mut commits, mut written) = (0, 0);
        for round in 0..10 {
            for number in 0..2_000 {
                if let Some(counts) = rejections.count(wrong("app"), format!("192.0.2.{number}"), NOW) {
                    assert!(counts.len() <= AT_ONCE, "round {round}");
                    (commits, written) = (commits + 1, written + sum(&counts));
                }
            }
        }
        assert_eq!(commits, ROWS + 1);
        loop {
            let counts = rejections.take();
            if counts.is_empty() {
                break;
            }
            written += sum(&counts);
        }
        assert_eq!(written, 20_000);
    }

    #[test]
    fn a_new_minute_has_rows_of_its_own_and_what_waits_is_not_forgotten_by_it() {
        // Red without `turn` (earlier rows would take the places), or if it dropped what waits.
        let rejections = Rejections::default();
        for _ in 0..2 {
            for number in 0..ROWS {
                rejections.count(wrong("app"), number.to_string(), NOW);
            }
        }
        let mut addresses = HashMap::new();
        for number in 0..ROWS {
            let row = rejections.count(wrong("app"), format!("later {number}"), NOW + MINUTE).unwrap();
            row.into_iter().for_each(|(row, many)| *addresses.entry(row.address).or_default() += many);
        }
        let all = (0..ROWS).flat_map(|number| [number.to_string(), format!("later {number}")]);
        assert_eq!(addresses, all.map(|address| (address, 1)).collect());
    }

    #[test]
    fn the_first_of_a_row_is_among_what_is_written_however_much_waits() {
        // Red where a batch takes any rows that wait: the refusal that is answered would be in memory alone.
        let rejections = Rejections::default();
        for number in 0..200 {
            rejections.count(wrong("app"), number.to_string(), NOW);
            rejections.count(wrong("app"), number.to_string(), NOW);
        }
        let counts = rejections.count(wrong("app"), "new".to_owned(), NOW).unwrap();
        assert!(counts.len() <= AT_ONCE && counts.iter().any(|(row, many)| row.address == "new" && *many == 1));
    }

    #[test]
    fn what_cannot_be_written_for_long_is_counted_without_addresses_in_the_end() {
        // Red without `LATE`: a database that is away for a day would leave 370,000 rows in memory.
        let rejections = Rejections::default();
        for minute in 0..40 {
            for number in 0..ROWS {
                let at = Time(NOW.0 + minute * MINUTE.0);
                rejections
                    .count(wrong("app"), number.to_string(), at)
                    .into_iter()
                    .for_each(|counts| rejections.put_back(counts));
            }
        }
        let rows = rejections.0.lock().unwrap();
        assert!(rows.late.len() <= LATE + 40, "{}", rows.late.len());
        assert_eq!(rows.late.values().chain(rows.begun.values()).sum::<i64>(), 40 * i64::try_from(ROWS).unwrap());
    }
}
