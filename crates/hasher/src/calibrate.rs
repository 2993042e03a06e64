//! How many passwords side by side are best on this machine: measured once, kept as text, valid for this machine only.
//!
//! All threads measure the same at the same time, because they share the memory's bandwidth. For each algorithm they go
//! up from one lane until that does not pay, then look again at the best number and its neighbors while time is left.
//! Expensive parameters are measured on a smaller hash: beyond the caches and a second pass, more of either only takes
//! longer. Real jobs go first at every step.

use std::{
    fmt,
    str::FromStr,
    time::{Duration, Instant},
};

use crate::{
    argon2::{Algorithm, Cost, Params},
    cost::{self, Family, MAX_TOGETHER, pays},
    formats::limits,
    job::{Kind, Work},
    took::Took,
};

/// Time for all measurements together, about.
const BUDGET: Duration = Duration::from_millis(300);
/// How long the remaining measurements wait for a moment without work.
const PATIENCE: Duration = Duration::from_secs(30);
/// How often the best number and its neighbors are measured again, at most.
const ROUNDS: u32 = 3;
/// Most lanes that are tried ahead of load. If even more pay, running jobs show it.
const MOST: usize = 6;
/// Most memory of a measured hash, in KiB.
const MEMORY: u32 = 24 << 10;
/// Passes that are measured whatever the memory; more where it is small, and stays in the caches from pass to pass.
const PASSES: u32 = 2;

/// What was found out about this machine: nanoseconds per unit of work with 1, 2, … passwords side by side on each of
/// its threads. As text ([`Calibration::to_text`]) it can be kept in a file beside the data.
///
/// ```
/// use hasher::{Calibration, Hasher, Settings};
/// # let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
/// # runtime.block_on(async {
/// let hasher = Hasher::start(Settings::default())?;
/// let text = hasher.calibrate().await.to_text(); // keep it in a file
///
/// let calibration = Some(Calibration::from_text(&text)?); // at the next start nothing has to be measured
/// let hasher = Hasher::start(Settings { calibration, ..Settings::default() })?;
/// assert_eq!(hasher.calibration().to_text(), text);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # }).unwrap();
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Calibration {
    machine: String,
    families: Vec<(Family, Vec<Option<f64>>)>,
}

const HEAD: &str = "lanes 1";

impl Calibration {
    /// The measurements of the machine that `machine` names.
    pub(crate) fn new(machine: String, mut families: Vec<(Family, Vec<Option<f64>>)>) -> Self {
        families.sort_by_key(|(family, _)| name(*family));
        Calibration { machine, families }
    }
    /// What it is valid for: model and features of the CPU, number of threads, version of this crate. On systems other
    /// than Linux the model is not known, and the architecture stands in its place.
    pub fn machine(&self) -> &str {
        &self.machine
    }
    pub(crate) fn families(&self) -> impl Iterator<Item = (Family, &[Option<f64>])> {
        self.families.iter().map(|(family, paces)| (*family, &paces[..]))
    }

    /// Writes it as text, a line for each algorithm and parameter set.
    pub fn to_text(&self) -> String {
        let mut text = format!("{HEAD}\nmachine {}\n", self.machine);
        for (family, paces) in &self.families {
            text.push_str(&name(*family));
            text.push(':');
            for pace in paces {
                text.push_str(&pace.map_or(" -".to_owned(), |pace| format!(" {pace:.3}")));
            }
            text.push('\n');
        }
        text
    }

    /// Reads what [`Calibration::to_text`] wrote.
    ///
    /// # Errors
    /// [`BadCalibration`] for any other text; then the machine has to be measured again.
    pub fn from_text(text: &str) -> Result<Self, BadCalibration> {
        // A line ends with a line feed and nothing else, so that it is read as it was written.
        let mut lines = text.split_terminator('\n');
        let head = lines.next().filter(|line| *line == HEAD);
        let machine = head.and_then(|_| lines.next()?.strip_prefix("machine ")).ok_or(BadCalibration)?;
        let families = lines.map(|line| read(line).ok_or(BadCalibration)).collect::<Result<_, _>>()?;
        Ok(Calibration::new(machine.to_owned(), families))
    }
}

/// A text that is no calibration, or one of another version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadCalibration;

impl fmt::Display for BadCalibration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not a calibration of password hashing")
    }
}

impl std::error::Error for BadCalibration {}

const ALGORITHMS: [(Algorithm, &str); 3] =
    [(Algorithm::Argon2d, "argon2d"), (Algorithm::Argon2i, "argon2i"), (Algorithm::Argon2id, "argon2id")];

/// The name of a family in texts and metrics.
pub(crate) fn name(family: Family) -> String {
    match family {
        Family::Argon2(algorithm, cost) => {
            let name = ALGORITHMS.iter().find(|(known, _)| *known == algorithm).map_or("argon2", |(_, name)| name);
            format!("{name} m={} t={} p={}", cost.memory(), cost.passes(), cost.lanes())
        }
        Family::Bcrypt => "bcrypt".to_owned(),
        Family::Serial(_) => {
            let text = Work::from(family.kind()).to_string();
            text.strip_suffix(" blocks=1").map_or(text.clone(), ToOwned::to_owned)
        }
    }
}

fn named(text: &str) -> Option<Family> {
    if text == "bcrypt" {
        return Some(Family::Bcrypt);
    }
    let mut words = text.split(' ');
    let algorithm = words.next()?;
    let (algorithm, _) = ALGORITHMS.iter().find(|(_, name)| *name == algorithm)?;
    let mut number = |name: &str| u32::from_str(words.next()?.strip_prefix(name)?).ok();
    let cost = limits::argon2(number("m=")?, number("t=")?, number("p=")?).ok()?;
    words.next().is_none().then_some(Family::Argon2(*algorithm, cost))
}

fn read(line: &str) -> Option<(Family, Vec<Option<f64>>)> {
    let (family, paces) = line.split_once(": ")?;
    let family = named(family)?;
    let pace = |word: &str| match word {
        "-" => Some(None),
        number => f64::from_str(number).ok().filter(|nanos| family.may_take(*nanos)).map(Some),
    };
    let paces: Vec<_> = paces.split(' ').map(pace).collect::<Option<_>>()?;
    (paces.len() <= MAX_TOGETHER).then_some((family, paces))
}

/// One batch to measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Trial {
    pub(crate) kind: Kind,
    pub(crate) size: usize,
}

/// What is left to measure. Every thread makes each trial once; the next trial begins when all have.
pub(crate) struct Plan {
    courses: Vec<Course>,
    /// The course that is being measured.
    course: usize,
    /// Which threads have made its trial.
    made: Vec<bool>,
    /// The longest time of that trial so far.
    longest: Duration,
    spent: Duration,
    /// When the last step was done.
    moved: Instant,
}

/// One kind with 1, 2, … lanes.
struct Course {
    whole: Kind,
    /// The kind that is measured in its place.
    kind: Kind,
    step: Step,
    /// Nanoseconds per unit of work.
    samples: Vec<Vec<f64>>,
}

/// What the threads do now.
#[derive(Clone, Copy)]
enum Step {
    /// One lane, which maps its memory, to see how long it takes; not counted.
    Feel,
    /// One batch of the largest size, which maps the memory and is not counted.
    Warm,
    /// This size for the first time.
    Climb(usize),
    /// This size again, in this round.
    Again(u32, usize),
    Done,
}

impl Plan {
    /// A plan to measure each of `kinds`, given with the most lanes for which it has memory, on so many threads.
    pub(crate) fn new(threads: usize, kinds: impl IntoIterator<Item = (Kind, usize)>, now: Instant) -> Self {
        let courses = kinds.into_iter().map(|(kind, most)| Course::new(kind, most)).collect();
        let (longest, spent) = (Duration::ZERO, Duration::ZERO);
        Plan { courses, course: 0, made: vec![false; threads], longest, spent, moved: now }
    }

    /// The thread's next trial; `None` while others are behind, and when all is done.
    pub(crate) fn trial(&self, thread: usize) -> Option<Trial> {
        if self.made[thread] { None } else { self.courses.get(self.course)?.trial() }
    }

    /// What the thread's trial took; `None` if it failed, which ends its course. Returns true when all threads have
    /// something else to do now.
    pub(crate) fn tried(&mut self, thread: usize, trial: Trial, took: Option<Took>, now: Instant) -> bool {
        // Each course gets the part of what is left that the later ones, which are more expensive, can spare.
        let later = self.courses.len() - self.course;
        let left = BUDGET.saturating_sub(self.spent) / (later * later).max(1) as u32;
        // A trial of a course that has ended meanwhile says nothing about the next one.
        let Some(course) = self.courses.get_mut(self.course).filter(|course| course.trial() == Some(trial)) else {
            return false;
        };
        match took {
            None => course.step = Step::Done,
            Some(took) => {
                course.record(took.ran);
                self.made[thread] = true;
                self.longest = self.longest.max(took.elapsed);
                if self.made.contains(&false) {
                    return false;
                }
                self.spent += self.longest;
                course.go_on(left.saturating_sub(self.longest), self.longest);
            }
        }
        self.go_on(now);
        true
    }

    /// Ends the courses whose kinds are `known` by now, and all if there was no moment for the next step in a while.
    /// Returns true when all threads have something else to do now.
    pub(crate) fn skip(&mut self, now: Instant, known: impl Fn(Kind) -> bool) -> bool {
        let late = now.saturating_duration_since(self.moved) >= PATIENCE;
        let left = self.courses.iter_mut().skip(self.course);
        left.filter(|course| late || known(course.whole)).for_each(|course| course.step = Step::Done);
        let over = self.courses.get(self.course).is_some_and(Course::is_done);
        if over {
            self.go_on(now);
        }
        over
    }

    fn go_on(&mut self, now: Instant) {
        self.course += self.courses.iter().skip(self.course).take_while(|course| course.is_done()).count();
        self.made.fill(false);
        self.longest = Duration::ZERO;
        self.moved = now;
    }

    /// True when every thread has done its part.
    pub(crate) fn is_done(&self) -> bool {
        self.course >= self.courses.len()
    }

    /// What was found: for each kind, the median paces with 1, 2, … lanes.
    pub(crate) fn found(self) -> Vec<(Family, Vec<Option<f64>>)> {
        let paces = |course: &Course| course.samples.iter().map(|samples| median(samples)).collect();
        self.courses.iter().map(|course| (course.whole.into(), paces(course))).collect()
    }
}

impl Course {
    fn new(kind: Kind, most: usize) -> Self {
        let most = most.min(MOST).min(kind.most_together());
        Course { whole: kind, kind: reduced(kind), step: Step::Feel, samples: vec![Vec::new(); most] }
    }

    fn is_done(&self) -> bool {
        matches!(self.step, Step::Done)
    }

    fn trial(&self) -> Option<Trial> {
        let size = match self.step {
            Step::Feel => 1,
            Step::Warm => self.samples.len(),
            Step::Climb(size) | Step::Again(_, size) => size,
            Step::Done => return None,
        };
        Some(Trial { kind: self.kind, size })
    }

    fn record(&mut self, ran: Duration) {
        if let Step::Climb(size) | Step::Again(_, size) = self.step {
            let pace = ran.as_nanos() as f64 / (size as f64 * self.kind.work());
            self.samples[size - 1].push(pace);
        }
    }

    /// Goes to the next step: all threads have made the trial, which took `last`; `left` is the time for others.
    fn go_on(&mut self, left: Duration, last: Duration) {
        let best = self.best();
        self.step = match self.step {
            Step::Feel => self.warm(left, last),
            Step::Warm => Step::Climb(1),
            // Some steps in a row that did not pay are enough, as under load.
            Step::Climb(size) if size < self.samples.len() && size < best + cost::IN_VAIN => match size {
                // Two lanes are measured whatever it takes: without them nothing would be known.
                1 => Step::Climb(2),
                size if last + last / size as u32 <= left => Step::Climb(size + 1),
                _ => Step::Done,
            },
            Step::Climb(_) => self.again(1, best.saturating_sub(1), left),
            Step::Again(round, size) if size < self.top(best) => self.again(round, size + 1, left),
            Step::Again(round, _) if round < ROUNDS => self.again(round + 1, best.saturating_sub(1), left),
            Step::Again(..) | Step::Done => Step::Done,
        };
    }

    /// Maps memory for as many lanes as a third of the time that is `left` suffices for, if one lane takes `one`; for
    /// at least two, which are measured whatever it takes.
    fn warm(&mut self, left: Duration, one: Duration) -> Step {
        let most = (left / 3).as_nanos() / one.as_nanos().max(1);
        self.samples.truncate(usize::try_from(most).unwrap_or(usize::MAX).max(2));
        if self.samples.len() > 1 { Step::Warm } else { Step::Climb(1) }
    }

    /// This size again, if there is time for it.
    fn again(&self, round: u32, size: usize, left: Duration) -> Step {
        let size = size.max(1);
        let nanos = median(&self.samples[size - 1]).unwrap_or(0.0) * size as f64 * self.kind.work();
        if nanos <= left.as_nanos() as f64 { Step::Again(round, size) } else { Step::Done }
    }

    /// The best size so far.
    fn best(&self) -> usize {
        let paces = (1..).zip(self.samples.iter().map(|samples| median(samples).unwrap_or(f64::INFINITY)));
        paces.reduce(|best, next| if pays(next, best) { next } else { best }).map_or(1, |(lanes, _)| lanes)
    }

    /// The next size after the best, if it was measured.
    fn top(&self, best: usize) -> usize {
        if self.samples.get(best).is_some_and(|samples| !samples.is_empty()) { best + 1 } else { best }
    }
}

/// A kind no larger than needed to see how many lanes pay.
fn reduced(kind: Kind) -> Kind {
    match kind {
        Kind::Argon2(params) => {
            let (memory, passes, lanes) = (params.cost.memory(), params.cost.passes(), params.cost.lanes());
            let most = PASSES.max(PASSES * MEMORY / memory);
            let cost = Cost::new(memory.min(MEMORY), passes.min(most), lanes).unwrap_or(params.cost);
            Kind::Argon2(Params { cost, ..params })
        }
        Kind::Bcrypt { cost } => Kind::Bcrypt { cost: cost.min(5) },
        Kind::Serial(_) => kind,
    }
}

fn median(samples: &[f64]) -> Option<f64> {
    let mut samples = samples.to_vec();
    samples.sort_by(f64::total_cmp);
    samples.get(samples.len() / 2).copied()
}

#[cfg(test)]
mod tests;
