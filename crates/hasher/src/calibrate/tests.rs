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
        ("40000.0", "70000000"),
        ("15000.5", "1 1 1 1 1 1 1 1"),
        (": ", " "),
        ("15000.5", "15000.5\r"),
    ] {
        assert_eq!(Calibration::from_text(&good.replace(from, to)), Err(BadCalibration), "{from:?} to {to:?}");
    }
    assert_eq!(Calibration::from_text(""), Err(BadCalibration));
}

/// Makes all trials on all threads in turn, each taking what `nanos` says for a unit with so many lanes; returns the
/// sizes that each thread tried, course by course.
fn make(plan: &mut Plan, threads: usize, nanos: impl Fn(usize) -> u64) -> Vec<Vec<usize>> {
    let mut sizes = vec![Vec::new(); plan.courses.len()];
    while !plan.is_done() {
        let course = plan.course;
        for thread in 0..threads {
            let trial = plan.trial(thread).unwrap();
            sizes[course].push(trial.size);
            let units = trial.size as u64 * trial.kind.work() as u64;
            let elapsed = Duration::from_nanos(nanos(trial.size) * units);
            let moved = plan.tried(thread, trial, Some(elapsed.into()), Instant::now());
            assert_eq!(moved, thread == threads - 1, "all go on together");
            assert!(moved || plan.trial(thread).is_none());
        }
    }
    sizes
}

fn plan(threads: usize, kinds: &[(Kind, usize)]) -> Plan {
    Plan::new(threads, kinds.iter().copied(), Instant::now())
}

fn pairs(sizes: &[usize]) -> Vec<usize> {
    sizes.iter().flat_map(|&size| [size, size]).collect()
}

#[test]
fn lanes_go_up_while_that_pays_and_the_best_is_looked_at_again() {
    let mut plan = plan(2, &[(kind(64, 1), 2), (Kind::Bcrypt { cost: 10 }, MOST)]);
    let sizes = make(&mut plan, 2, |size| [400, 300, 200, 250, 260, 270][size - 1]);
    assert_eq!(sizes[0], pairs(&[1, 2, 1, 2, 1, 2, 1, 2, 1, 2]));
    assert_eq!(sizes[1], pairs(&[1, 6, 1, 2, 3, 4, 5, 6, 2, 3, 4, 2, 3, 4, 2, 3, 4]));
    let found = plan.found();
    assert_eq!(found[0], (kind(64, 1).into(), vec![Some(400.0), Some(300.0)]));
    assert_eq!(found[1], (Family::Bcrypt, [400.0, 300.0, 200.0, 250.0, 260.0, 270.0].map(Some).to_vec()));
}

#[test]
fn one_lane_may_be_best_and_so_may_the_most() {
    let sizes = |most, nanos: fn(usize) -> u64| make(&mut plan(1, &[(kind(64, 1), most)]), 1, nanos).remove(0);
    assert_eq!(
        sizes(MOST, |size| 100 + size as u64),
        [1, 4, 1, 2, 3, 4, 1, 2, 1, 2, 1, 2],
        "four of Argon2 at the most"
    );
    assert_eq!(sizes(4, |size| 100 - 10 * size as u64), [1, 4, 1, 2, 3, 4, 3, 4, 3, 4, 3, 4]);
    assert_eq!(sizes(1, |_| 100), [1, 1, 1, 1, 1]);
}

/// Makes all trials on one thread, where a unit of work takes `nanos` per lane (for bcrypt a hundred times that), every
/// lane pays, and mapping one KiB takes `map`; returns the plan, and its longest trial.
fn spend(kinds: &[(Kind, usize)], nanos: f64, map: Duration) -> (Plan, Duration) {
    let (mut plan, mut held, mut longest) = (plan(1, kinds), 0, Duration::ZERO);
    while let Some(trial) = plan.trial(0) {
        let unit = if matches!(trial.kind, Kind::Bcrypt { .. }) { 100.0 * nanos } else { nanos };
        let work = unit * trial.kind.work() * (2 + trial.size) as f64 / 3.0;
        let mut elapsed = Duration::from_nanos(work as u64);
        let holds = trial.kind.holds(trial.size, held);
        if holds > held {
            (held, elapsed) = (holds, elapsed + map * holds as u32);
        }
        longest = longest.max(elapsed);
        plan.tried(0, trial, Some(elapsed.into()), Instant::now());
    }
    (plan, longest)
}

const DEAR: [(u32, u32); 5] = [(19_456, 2), (47_104, 1), (65_536, 3), (7_168, 5), (1 << 20, 64)];

#[test]
fn dear_parameters_are_measured_on_less_and_within_the_budget() {
    // AVX-512, AVX2, and an old machine without either; memory that is there, and memory that is slow to come.
    for (nanos, map) in [(150.0, 300), (150.0, 1500), (300.0, 1000), (600.0, 1000)] {
        for (memory, passes) in DEAR {
            let kinds = [(Kind::Bcrypt { cost: 5 }, MOST), (kind(memory, passes), MOST)];
            let (plan, longest) = spend(&kinds, nanos, Duration::from_nanos(map));
            let spare = if nanos > 300.0 { longest } else { Duration::ZERO };
            assert!(plan.spent <= BUDGET + spare, "{memory}/{passes} at {nanos}, {map}: {:?}", plan.spent);
            assert!(plan.found().iter().all(|(_, paces)| paces[0].is_some() && paces[1].is_some()));
        }
    }
}

#[test]
fn where_there_is_time_many_lanes_are_tried() {
    for (memory, passes) in DEAR {
        let (plan, _) = spend(&[(kind(memory, passes), MOST)], 100.0, Duration::from_nanos(200));
        let found = plan.found().remove(0).1;
        assert!(found.iter().flatten().count() >= 4, "{memory}/{passes}: {found:?}");
    }
}

#[test]
fn a_trial_that_fails_ends_its_course_and_not_the_plan() {
    let now = Instant::now();
    let mut plan = plan(2, &[(kind(64, 1), 3), (kind(128, 1), 2)]);
    let [first, second] = [64, 128].map(|memory| Trial { kind: kind(memory, 1), size: 1 });
    assert_eq!([plan.trial(0), plan.trial(1)], [Some(first); 2]);
    assert!(plan.tried(1, first, None, now));
    assert_eq!([plan.trial(0), plan.trial(1)], [Some(second); 2]);
    assert!(!plan.tried(0, first, Some(Duration::from_millis(1).into()), now), "too late for its course");
    assert_eq!(plan.trial(0), Some(second), "and no part of the next");
    assert!(plan.tried(0, second, None, now));
    assert!(plan.is_done());
    assert_eq!(plan.found()[0].1, [None, None, None]);
}

#[test]
fn what_is_known_or_finds_no_moment_is_not_measured() {
    let start = Instant::now();
    let kinds = [64, 128, 256].map(|memory| (kind(memory, 1), 2));
    let (mut plan, known) = (plan(1, &kinds), |memory| move |of: Kind| of == kind(memory, 1));
    assert!(!plan.skip(start, known(128)), "not its turn");
    assert!(plan.skip(start, known(64)), "and then both are over");
    assert_eq!(plan.trial(0).map(|trial| trial.kind), Some(kind(256, 1)));
    let trial = plan.trial(0).unwrap();
    let later = start + PATIENCE / 2;
    assert!(plan.tried(0, trial, Some(Duration::from_millis(1).into()), later));
    assert!(!plan.skip(later + PATIENCE / 2, |_| false), "it went on meanwhile");
    assert!(plan.skip(later + PATIENCE, |_| false) && plan.is_done());
}
