//! How many passwords side by side are best on this machine: measured once, kept as text, valid for this machine only.
//!
//! All threads measure the same at the same time, because they share the memory's bandwidth. Algorithm by algorithm they
//! go up from one lane until that does not pay, then look again at the best and its neighbours while time is left. Dear
//! parameters are measured on a smaller hash: beyond the caches and a second pass, more of both only takes longer.
//! Real jobs go first at every step.

use std::{fmt, str::FromStr, time::Duration};

use crate::{
    argon2::{Algorithm, Cost, Params},
    cost::{Family, GAIN, MAX_TOGETHER},
    job::Kind,
};

/// Time for all that is to be measured, about.
const BUDGET: Duration = Duration::from_millis(300);
/// How often the best and its neighbours are looked at again, at most.
const ROUNDS: u32 = 3;
/// Most lanes that are tried ahead of load. Where even more pay, running jobs will show it.
const MOST: usize = 6;
/// Most memory of a hash that is measured, in KiB.
const MEMORY: u32 = 24 << 10;
/// Passes that are measured whatever the memory; more where it is little, and stays in the caches from pass to pass.
const PASSES: u32 = 2;

/// What was found out about this machine: nanoseconds a unit of work with 1, 2, … passwords side by side on each of
/// its threads. Text outside ([`Calibration::to_text`]), for a file beside the data.
#[derive(Clone, Debug, PartialEq)]
pub struct Calibration {
    machine: String,
    families: Vec<(Family, Vec<Option<f64>>)>,
}

const HEAD: &str = "lanes 1";

impl Calibration {
    /// The measurements of the machine that this names.
    pub(crate) fn new(machine: String, mut families: Vec<(Family, Vec<Option<f64>>)>) -> Self {
        families.sort_by_key(|(family, _)| name(*family));
        Calibration { machine, families }
    }
    /// What it is valid for: model and features of the CPU, number of threads, version of this crate.
    pub fn machine(&self) -> &str {
        &self.machine
    }
    pub(crate) fn families(&self) -> impl Iterator<Item = (Family, &[Option<f64>])> {
        self.families.iter().map(|(family, paces)| (*family, &paces[..]))
    }

    /// As text, a line for each algorithm and parameter set.
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
    /// [`BadCalibration`] for any other text; then there is nothing to do but to measure again.
    pub fn from_text(text: &str) -> Result<Self, BadCalibration> {
        // A line ends with a line feed and nothing else: what is written is read as the same.
        let mut lines = text.split_terminator('\n');
        let head = lines.next().filter(|line| *line == HEAD);
        let machine = head.and_then(|_| lines.next()?.strip_prefix("machine ")).ok_or(BadCalibration)?;
        let families = lines.map(|line| read(line).ok_or(BadCalibration)).collect::<Result<_, _>>()?;
        Ok(Calibration::new(machine.to_owned(), families))
    }
}

/// The text is no calibration, or one of another version.
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

/// How a family is called in texts and metrics.
pub(crate) fn name(family: Family) -> String {
    match family {
        Family::Argon2(algorithm, cost) => {
            let name = ALGORITHMS.iter().find(|(known, _)| *known == algorithm).map_or("argon2", |(_, name)| name);
            format!("{name} m={} t={} p={}", cost.memory(), cost.passes(), cost.lanes())
        }
        Family::Bcrypt => "bcrypt".to_owned(),
        Family::Serial(serial) => format!("{serial:?}"),
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
    let cost = Cost::new(number("m=")?, number("t=")?, number("p=")?).ok()?;
    words.next().is_none().then_some(Family::Argon2(*algorithm, cost))
}

fn read(line: &str) -> Option<(Family, Vec<Option<f64>>)> {
    let (family, paces) = line.split_once(": ")?;
    let pace = |word: &str| match word {
        "-" => Some(None),
        // Bounds that no machine leaves; they keep sums of expected times far from any overflow.
        number => f64::from_str(number).ok().filter(|nanos| (1e-3..=1e9).contains(nanos)).map(Some),
    };
    let paces: Vec<_> = paces.split(' ').map(pace).collect::<Option<_>>()?;
    (paces.len() <= MAX_TOGETHER).then_some((named(family)?, paces))
}

/// One batch to measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Trial {
    pub(crate) kind: Kind,
    pub(crate) size: usize,
}

/// What is left to measure. Every thread makes each trial once; the next is for when all have.
pub(crate) struct Plan {
    courses: Vec<Course>,
    /// The course that is measured.
    course: usize,
    /// Which threads have made its trial.
    made: Vec<bool>,
    /// The longest time of it so far.
    longest: Duration,
    spent: Duration,
}

/// One kind with 1, 2, … lanes.
struct Course {
    family: Family,
    /// What is measured in its place.
    kind: Kind,
    step: Step,
    /// Nanoseconds a unit of work.
    samples: Vec<Vec<f64>>,
}

/// What the threads do now.
#[derive(Clone, Copy)]
enum Step {
    /// One batch of the largest size, which maps the memory and is not counted.
    Warm,
    /// This size for the first time.
    Climb(usize),
    /// This size again, in this round.
    Again(u32, usize),
    Done,
}

impl Plan {
    /// To measure each of `kinds`, given with the most lanes for which it has memory, on so many threads.
    pub(crate) fn new(threads: usize, kinds: impl IntoIterator<Item = (Kind, usize)>) -> Self {
        let courses = kinds.into_iter().map(|(kind, most)| Course::new(kind, most)).collect();
        Plan { courses, course: 0, made: vec![false; threads], longest: Duration::ZERO, spent: Duration::ZERO }
    }

    /// What the thread measures next; nothing while others are behind, and when all is done.
    pub(crate) fn trial(&self, thread: usize) -> Option<Trial> {
        let course = self.courses.get(self.course)?;
        if self.made[thread] { None } else { course.trial() }
    }

    /// The thread's trial took this long; `None` if it failed, and the course with it. True when all threads have
    /// something else to do now.
    pub(crate) fn tried(&mut self, thread: usize, elapsed: Option<Duration>) -> bool {
        let left = BUDGET.saturating_sub(self.spent) / (self.courses.len() - self.course).max(1) as u32;
        let Some(course) = self.courses.get_mut(self.course) else { return false };
        match elapsed {
            None => course.step = Step::Done,
            Some(elapsed) => {
                course.record(elapsed);
                self.made[thread] = true;
                self.longest = self.longest.max(elapsed);
                if self.made.contains(&false) {
                    return false;
                }
                self.spent += self.longest;
                course.go_on(left.saturating_sub(self.longest), self.longest);
            }
        }
        self.course += usize::from(matches!(course.step, Step::Done));
        self.made.fill(false);
        self.longest = Duration::ZERO;
        true
    }

    /// True when every thread has done its part.
    pub(crate) fn is_done(&self) -> bool {
        self.course >= self.courses.len()
    }

    /// What was found: for each kind, the median paces with 1, 2, … lanes.
    pub(crate) fn found(self) -> Vec<(Family, Vec<Option<f64>>)> {
        let paces = |course: &Course| course.samples.iter().map(|samples| median(samples)).collect();
        self.courses.iter().map(|course| (course.family, paces(course))).collect()
    }
}

impl Course {
    fn new(kind: Kind, most: usize) -> Self {
        let most = most.min(MOST).min(kind.most_together());
        Course { family: kind.into(), kind: reduced(kind), step: Step::Warm, samples: vec![Vec::new(); most] }
    }

    fn trial(&self) -> Option<Trial> {
        let size = match self.step {
            Step::Warm => self.samples.len(),
            Step::Climb(size) | Step::Again(_, size) => size,
            Step::Done => return None,
        };
        Some(Trial { kind: self.kind, size })
    }

    fn record(&mut self, elapsed: Duration) {
        if let Step::Climb(size) | Step::Again(_, size) = self.step {
            let pace = elapsed.as_nanos() as f64 / (size as f64 * self.kind.work());
            self.samples[size - 1].push(pace);
        }
    }

    /// All threads have made the trial, which took `last`; `left` is the time for others.
    fn go_on(&mut self, left: Duration, last: Duration) {
        let best = self.best();
        self.step = match self.step {
            Step::Warm => Step::Climb(1),
            // Two steps in a row that did not pay are enough, as under load.
            Step::Climb(size) if size < self.samples.len() && size < best + 2 => match size {
                // Two lanes are looked at whatever it takes: without them nothing would be known.
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

    /// That size again, if there is time for it.
    fn again(&self, round: u32, size: usize, left: Duration) -> Step {
        let size = size.max(1);
        let nanos = median(&self.samples[size - 1]).unwrap_or(0.0) * size as f64 * self.kind.work();
        if nanos <= left.as_nanos() as f64 { Step::Again(round, size) } else { Step::Done }
    }

    /// The best size so far.
    fn best(&self) -> usize {
        let paces = self.samples.iter().map(|samples| median(samples).unwrap_or(f64::INFINITY)).enumerate();
        paces.fold((0, f64::INFINITY), |best, (place, pace)| if pace * GAIN < best.1 { (place, pace) } else { best }).0
            + 1
    }

    /// The next size after the best, if it was measured.
    fn top(&self, best: usize) -> usize {
        if self.samples.get(best).is_some_and(|samples| !samples.is_empty()) { best + 1 } else { best }
    }
}

/// A kind that takes no longer than needed to see how many lanes pay.
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
mod tests {
    use super::*;
    use crate::argon2::{Params, Version};

    fn kind(memory: u32, passes: u32) -> Kind {
        let cost = Cost::new(memory, passes, 1).unwrap();
        Kind::Argon2(Params { algorithm: Algorithm::Argon2id, version: Version::V19, cost, tag_bytes: 32 })
    }

    #[test]
    fn a_text_comes_back_as_it_was() {
        let families =
            vec![(Family::Bcrypt, vec![Some(40_000.0), None, Some(15_000.5)]), (kind(64, 2).into(), vec![Some(101.5)])];
        let calibration = Calibration::new("A CPU, 2 threads".to_owned(), families);
        let text = calibration.to_text();
        assert_eq!(
            text,
            "lanes 1\nmachine A CPU, 2 threads\nargon2id m=64 t=2 p=1: 101.500\nbcrypt: 40000.000 - 15000.500\n"
        );
        assert_eq!(Calibration::from_text(&text), Ok(calibration));
    }

    #[test]
    fn any_other_text_is_refused() {
        let good = "lanes 1\nmachine A\nbcrypt: 40000.0 15000.5\n";
        assert!(Calibration::from_text(good).is_ok());
        for (from, to) in [
            ("lanes 1", "lanes 2"),
            ("machine ", ""),
            ("bcrypt", "bcrypt m=1"),
            ("bcrypt", "argon2id m=64 t=2"),
            ("bcrypt", "argon2id m=64 t=0 p=1"),
            ("bcrypt", "argon2id m=64 t=1 p=1 x=1"),
            ("40000.0", "NaN"),
            ("40000.0", "-1"),
            ("40000.0", "0"),
            ("40000.0", "inf"),
            ("40000.0", ""),
            ("15000.5", "1 1 1 1 1 1 1 1"),
            (": ", " "),
            ("15000.5", "15000.5\r"),
        ] {
            assert_eq!(Calibration::from_text(&good.replace(from, to)), Err(BadCalibration), "{from:?} to {to:?}");
        }
        assert_eq!(Calibration::from_text(""), Err(BadCalibration));
    }

    /// Makes all trials on all threads in turn, each taking what `nanos` says of a unit with so many lanes: the sizes
    /// that each thread tried, course by course.
    fn make(plan: &mut Plan, threads: usize, nanos: impl Fn(usize) -> u64) -> Vec<Vec<usize>> {
        let mut sizes = vec![Vec::new(); plan.courses.len()];
        while !plan.is_done() {
            let course = plan.course;
            for thread in 0..threads {
                let trial = plan.trial(thread).unwrap();
                sizes[course].push(trial.size);
                let units = trial.size as u64 * trial.kind.work() as u64;
                let moved = plan.tried(thread, Some(Duration::from_nanos(nanos(trial.size) * units)));
                assert_eq!(moved, thread == threads - 1, "all go on together");
                assert!(moved || plan.trial(thread).is_none());
            }
        }
        sizes
    }

    fn pairs(sizes: &[usize]) -> Vec<usize> {
        sizes.iter().flat_map(|&size| [size, size]).collect()
    }

    #[test]
    fn lanes_go_up_while_that_pays_and_the_best_is_looked_at_again() {
        let mut plan = Plan::new(2, [(kind(64, 1), MOST), (Kind::Bcrypt { cost: 10 }, 2)]);
        let sizes = make(&mut plan, 2, |size| [400, 300, 200, 250, 260, 270][size - 1]);
        assert_eq!(sizes[0], pairs(&[6, 1, 2, 3, 4, 5, 2, 3, 4, 2, 3, 4, 2, 3, 4]));
        assert_eq!(sizes[1], pairs(&[2, 1, 2, 1, 2, 1, 2, 1, 2]));
        let found = plan.found();
        assert_eq!(
            found[0],
            (kind(64, 1).into(), vec![Some(400.0), Some(300.0), Some(200.0), Some(250.0), Some(260.0), None])
        );
        assert_eq!(found[1], (Family::Bcrypt, vec![Some(400.0), Some(300.0)]));
    }

    #[test]
    fn one_lane_may_be_best_and_so_may_the_most() {
        let mut plan = Plan::new(1, [(kind(64, 1), MOST)]);
        assert_eq!(make(&mut plan, 1, |size| 100 + size as u64)[0], [6, 1, 2, 3, 1, 2, 1, 2, 1, 2]);
        let mut plan = Plan::new(1, [(kind(64, 1), 4)]);
        assert_eq!(make(&mut plan, 1, |size| 100 - 10 * size as u64)[0], [4, 1, 2, 3, 4, 3, 4, 3, 4, 3, 4]);
        let mut plan = Plan::new(1, [(kind(64, 1), 1)]);
        assert_eq!(make(&mut plan, 1, |_| 100)[0], [1, 1, 1, 1, 1]);
    }

    #[test]
    fn dear_parameters_are_measured_on_less_and_within_the_budget() {
        for (memory, passes) in [(19_456, 2), (47_104, 1), (65_536, 3), (7_168, 5), (1 << 20, 64)] {
            let mut plan = Plan::new(1, [(Kind::Bcrypt { cost: 5 }, MOST), (kind(memory, passes), MOST)]);
            // A slow machine, on which every lane pays.
            let mut longest = Duration::ZERO;
            while let Some(trial) = plan.trial(0) {
                let nanos =
                    if matches!(trial.kind, Kind::Bcrypt { .. }) { 50_000.0 } else { 300.0 } * trial.kind.work();
                let elapsed = Duration::from_nanos((nanos * (2 + trial.size) as f64) as u64);
                longest = longest.max(elapsed);
                plan.tried(0, Some(elapsed));
            }
            assert!(plan.spent <= BUDGET + longest, "{memory}/{passes}: {:?}", plan.spent);
            assert!(plan.found().iter().all(|(_, paces)| paces[0].is_some() && paces[1].is_some()));
        }
    }

    #[test]
    fn a_trial_that_fails_ends_its_course_and_not_the_plan() {
        let mut plan = Plan::new(2, [(kind(64, 1), 3), (kind(128, 1), 2)]);
        assert!(!plan.tried(0, Some(Duration::from_millis(1))));
        assert!(plan.tried(1, None));
        assert_eq!(plan.trial(0).map(|trial| trial.kind), Some(kind(128, 1)));
        assert_eq!(plan.trial(1), plan.trial(0));
        assert!(plan.tried(0, None));
        assert!(plan.is_done());
        assert_eq!(plan.found()[0].1, [None, None, None]);
    }
}
