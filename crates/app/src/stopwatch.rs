//! Where the time of a request goes: one measurement for the histograms, the log of slow requests and the traces.
//!
//! A sheet goes with the task that answers a request, so no function has to pass it on. Work outside of a request is
//! not timed.
//!
//! Timed work is stored once, in a type of its own. An `async` block would store it twice, as its argument and as the
//! future that it awaits, and the request would double in size with each layer around it. The sheet is boxed for the
//! same reason: it is moved into its thread, and out of it, each time that a request is polled.

use pin_project_lite::pin_project;
use std::cell::RefCell;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};
use tokio::task::futures::TaskLocalFuture;

tokio::task_local! {
    static SHEET: RefCell<Box<Sheet>>;
}

/// Laps that a sheet has room for. Beyond that, only the sums are known.
const ROOM: usize = 24;

/// What a request waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// The body has to arrive.
    Body,
    /// Other requests of the same kind go first.
    Door,
    /// The database has to answer.
    Fetch,
    /// Other attempts on the same account go first.
    Turnstile,
    /// Other passwords go first.
    HashQueue,
    /// A password is hashed.
    Hash,
    /// The answer is held back, so that its time does not tell what is stored.
    Evening,
    /// Other batches go first, or hold the connections.
    CommitQueue,
    /// A batch is run, committed and, where there is a journal, written to it.
    Commit,
    /// A token is signed.
    Sign,
    /// Others who were refused are answered first.
    Pace,
}

impl Stage {
    /// All of them, in the order of a sign-in.
    pub const ALL: [Stage; 11] = [
        Stage::Body,
        Stage::Door,
        Stage::Fetch,
        Stage::Turnstile,
        Stage::HashQueue,
        Stage::Hash,
        Stage::Evening,
        Stage::CommitQueue,
        Stage::Commit,
        Stage::Sign,
        Stage::Pace,
    ];

    /// Whether the server takes this time: not the sender of the body, and not a delay on purpose.
    pub fn is_ours(self) -> bool {
        !matches!(self, Stage::Body | Stage::Pace)
    }

    /// Its name in metrics, logs and traces.
    pub fn name(self) -> &'static str {
        match self {
            Stage::Body => "body",
            Stage::Door => "door",
            Stage::Fetch => "fetch",
            Stage::Turnstile => "turnstile",
            Stage::HashQueue => "hash_queue",
            Stage::Hash => "hash",
            Stage::Evening => "evening",
            Stage::CommitQueue => "commit_queue",
            Stage::Commit => "commit",
            Stage::Sign => "sign",
            Stage::Pace => "pace",
        }
    }
}

/// One run of a stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lap {
    /// The stage.
    pub stage: Stage,
    /// How long after the arrival of the request it began.
    pub after: Duration,
    /// How long it took.
    pub took: Duration,
}

/// The laps of one request.
#[derive(Clone, Debug)]
pub struct Sheet {
    began: Instant,
    /// At most [`ROOM`].
    laps: Vec<Lap>,
    sums: [Duration; Stage::ALL.len()],
}

impl Sheet {
    /// Creates the sheet of a request that arrived at that moment.
    pub fn since(began: Instant) -> Self {
        Sheet { began, laps: Vec::new(), sums: [Duration::ZERO; Stage::ALL.len()] }
    }

    /// Returns the laps in the order in which they ended; those that found no room are missing.
    pub fn laps(&self) -> &[Lap] {
        &self.laps
    }

    /// Returns how long all laps of each stage took together.
    pub fn sums(&self) -> impl Iterator<Item = (Stage, Duration)> {
        Stage::ALL.into_iter().zip(self.sums)
    }

    fn note(&mut self, lap: Lap) {
        self.sums[lap.stage as usize] += lap.took;
        if self.laps.len() < ROOM {
            self.laps.push(lap);
        }
    }
}

/// Does the work of a request that arrived at `began`, and returns its laps with its output.
pub fn timing<W: Future>(began: Instant, work: W) -> Timing<W> {
    Timing { began, work: SHEET.scope(RefCell::new(Box::new(Sheet::since(began))), work) }
}

pin_project! {
    /// The future of [`timing`].
    pub struct Timing<W: Future> {
        began: Instant,
        #[pin]
        work: TaskLocalFuture<RefCell<Box<Sheet>>, W>,
    }
}

impl<W: Future> Future for Timing<W> {
    type Output = (W::Output, Box<Sheet>);

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        let done = ready!(this.work.as_mut().poll(context));
        let sheet = this.work.take_value().map_or_else(|| Box::new(Sheet::since(*this.began)), RefCell::into_inner);
        Poll::Ready((done, sheet))
    }
}

/// Times work in a task of its own: its laps come with its output, for [`heard`].
pub(crate) fn apart<W: Future>(work: W) -> Timing<W> {
    let began = SHEET.try_with(|sheet| sheet.borrow().began).unwrap_or_else(|_| Instant::now());
    timing(began, work)
}

/// Adds the laps of a task of its own that did a part of this request and has ended.
pub(crate) fn heard(part: &Sheet) {
    let _ = SHEET.try_with(|sheet| {
        let mut sheet = sheet.borrow_mut();
        let room = ROOM - sheet.laps.len();
        sheet.laps.extend(part.laps().iter().take(room));
        sheet.sums.iter_mut().zip(part.sums).for_each(|(sum, more)| *sum += more);
    });
}

/// Times work that is awaited, from when it is begun.
pub fn timed<W: Future>(stage: Stage, work: W) -> Timed<W> {
    Timed { stage, began: None, work }
}

pin_project! {
    /// The future of [`timed`].
    pub struct Timed<W> {
        stage: Stage,
        began: Option<Instant>,
        #[pin]
        work: W,
    }
}

impl<W: Future> Future for Timed<W> {
    type Output = W::Output;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let began = *this.began.get_or_insert_with(Instant::now);
        let done = ready!(this.work.poll(context));
        lap(*this.stage, began, Instant::now());
        Poll::Ready(done)
    }
}

/// Notes a stage that was timed, unless it took no time at all.
pub fn lap(stage: Stage, from: Instant, to: Instant) {
    let took = to.saturating_duration_since(from);
    if took > Duration::ZERO {
        let _ = SHEET.try_with(|sheet| {
            let mut sheet = sheet.borrow_mut();
            let after = from.saturating_duration_since(sheet.began);
            sheet.note(Lap { stage, after, took });
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::task::JoinSet;

    fn sum(sheet: &Sheet, wanted: Stage) -> Duration {
        sheet.sums().find(|(stage, _)| *stage == wanted).unwrap().1
    }

    #[tokio::test]
    async fn laps_of_a_task_of_its_own_come_back() {
        let began = Instant::now();
        let ms = Duration::from_millis;
        let work = async {
            lap(Stage::Fetch, began + ms(1), began + ms(3));
            let mut tasks = JoinSet::new();
            tasks.spawn(apart(async move { lap(Stage::Hash, began + ms(5), began + ms(9)) }));
            heard(&tasks.join_next().await.unwrap().unwrap().1);
        };
        let ((), sheet) = timing(began, work).await;
        let laps: Vec<_> = sheet.laps().iter().map(|lap| (lap.stage, lap.after, lap.took)).collect();
        assert_eq!(laps, [(Stage::Fetch, ms(1), ms(2)), (Stage::Hash, ms(5), ms(4))]);
    }

    #[tokio::test]
    async fn sums_are_whole_where_laps_find_no_room() {
        let began = Instant::now();
        let second = Duration::from_secs(1);
        let many = || (0..ROOM).for_each(|_| lap(Stage::Commit, began, began + second));
        let work = async {
            many();
            heard(&timing(began, async { many() }).await.1);
        };
        let ((), sheet) = timing(began, work).await;
        assert_eq!((sheet.laps().len(), sum(&sheet, Stage::Commit)), (ROOM, second * 2 * ROOM as u32));
        // Outside of a request nothing happens.
        many();
    }
}
