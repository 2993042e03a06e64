//! Where the time of a request goes: one measurement for the histograms, the log of slow requests and the traces.
//!
//! A sheet goes with the task that answers a request, and nobody has to hand it on. What is done outside of a request is
//! not timed.
//!
//! Work that is timed lies in a type of its own, once. An `async` block would keep it twice, as what it was given and as what
//! it waits for, and with each layer around a request the request would double. The sheet is laid out of the way for the same
//! reason: it comes into its thread, and goes, each time that a request is looked at.

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

/// Laps that a sheet has room for. Of more, only the sums are known.
const ROOM: usize = 24;

/// What a request waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// The body has to come.
    Body,
    /// Other requests of the kind go first.
    Door,
    /// The database has to answer.
    Fetch,
    /// Other attempts on the same account go first.
    Turnstile,
    /// Other passwords go first.
    HashQueue,
    /// A password is hashed.
    Hash,
    /// The answer is kept back, so that its time does not tell what is stored.
    Evening,
    /// Other batches go first, or hold the connections.
    CommitQueue,
    /// A batch is run and committed, and where there is a journal it is in it.
    Commit,
    /// A token is signed.
    Sign,
    /// Others who were refused are told first.
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

    /// Whether what it takes is taken by the server: not by who sends the body, nor on purpose.
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

/// One stage, once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lap {
    /// Which.
    pub stage: Stage,
    /// How long after the request came.
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
    /// Of a request that came at that moment.
    pub fn since(began: Instant) -> Self {
        Sheet { began, laps: Vec::new(), sums: [Duration::ZERO; Stage::ALL.len()] }
    }

    /// In the order in which they ended; those that found no room are missing.
    pub fn laps(&self) -> &[Lap] {
        &self.laps
    }

    /// How long all laps of each stage took together.
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

/// Does the work of a request that came at that moment, and gives the laps with what comes of it.
pub fn timing<W: Future>(began: Instant, work: W) -> Timing<W> {
    Timing { began, work: SHEET.scope(RefCell::new(Box::new(Sheet::since(began))), work) }
}

pin_project! {
    /// What [`timing`] does.
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

/// Work that goes on in a task of its own: what it took comes with what it gives, for [`heard`].
pub(crate) fn apart<W: Future>(work: W) -> Timing<W> {
    let began = SHEET.try_with(|sheet| sheet.borrow().began).unwrap_or_else(|_| Instant::now());
    timing(began, work)
}

/// A task of its own has ended that did a part of this request.
pub(crate) fn heard(part: &Sheet) {
    let _ = SHEET.try_with(|sheet| {
        let mut sheet = sheet.borrow_mut();
        let room = ROOM - sheet.laps.len();
        sheet.laps.extend(part.laps().iter().take(room));
        sheet.sums.iter_mut().zip(part.sums).for_each(|(sum, more)| *sum += more);
    });
}

/// Times work that is waited for, from when it is begun.
pub fn timed<W: Future>(stage: Stage, work: W) -> Timed<W> {
    Timed { stage, began: None, work }
}

pin_project! {
    /// What [`timed`] does.
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
        // Nobody asked: nothing happens.
        many();
    }
}
