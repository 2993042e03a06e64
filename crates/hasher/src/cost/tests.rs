use std::time::Duration;

use super::*;
use crate::formats::serial::Digest;

fn kind(memory: u32, passes: u32) -> Kind {
    let cost = Cost::new(memory, passes, 1).unwrap();
    Kind::Argon2(Params { algorithm: Algorithm::Argon2id, version: Version::V19, cost, tag_bytes: 32 })
}

/// Feeds batches of the size that `costs` asks for, in which a job takes `share` milliseconds.
fn learn(costs: &mut Costs, batches: usize, share: impl Fn(usize) -> u64) {
    for _ in 0..batches {
        let size = costs.next(kind(1000, 1), MAX_TOGETHER);
        costs.record(kind(1000, 1), size, Duration::from_millis(share(size) * size as u64), true);
    }
}

#[test]
fn an_unmeasured_kind_is_scaled_from_what_was_measured() {
    let mut costs = Costs::new();
    costs.record(kind(1000, 1), 1, Duration::from_millis(1), false);
    assert_eq!(costs.batch(kind(1000, 1), 1), 1_000_000);
    assert_eq!(costs.batch(kind(2000, 3), 1), 6_000_000);
    assert_eq!(costs.batch(kind(2000, 3), 2), 12_000_000);
    assert_eq!(costs.batch(Kind::Bcrypt { cost: 10 }, 1), 61_440_000, "which the speed of Argon2 does not tell");
    costs.record(Kind::Bcrypt { cost: 4 }, 1, Duration::from_millis(1), false);
    assert_eq!(costs.batch(Kind::Bcrypt { cost: 10 }, 1), 64_000_000);
}

#[test]
fn the_mean_follows_a_machine_that_slows_down() {
    let mut costs = Costs::new();
    costs.record(kind(1000, 1), 1, Duration::from_millis(1), true);
    for _ in 0..40 {
        costs.record(kind(1000, 1), 1, Duration::from_millis(5), true);
    }
    assert!((4_900_000..=5_000_000).contains(&costs.batch(kind(1000, 1), 1)));
}

#[test]
fn a_moment_in_which_the_machine_stood_still_is_not_what_a_hash_costs() {
    // Red where a batch counts in full, or where measurements beside idle threads lower nothing: a server with
    // little to do believed for good that a hash takes seconds.
    let mut costs = Costs::new();
    let mut took = |millis, loaded| {
        costs.record(kind(1000, 1), 1, Duration::from_millis(millis), loaded);
        costs.batch(kind(1000, 1), 1)
    };
    for _ in 0..20 {
        took(1, true);
    }
    assert!(took(120_000, true) < 1_200_000);
    let mut slow = took(120_000, true);
    while slow < 8_000_000 {
        slow = took(120_000, true);
    }
    (0..40).for_each(|_| slow = took(1, false));
    assert!((2_000_000..5_000_000).contains(&slow), "{slow}");
    assert_eq!(took(3, false), slow, "others beside it may make it slower by that");
}

#[test]
fn measurements_under_load_take_the_place_of_others() {
    let mut costs = Costs::new();
    costs.record(kind(1000, 1), 1, Duration::from_millis(1), false);
    costs.record(kind(1000, 1), 1, Duration::from_millis(3), true);
    costs.record(kind(1000, 1), 1, Duration::from_millis(1), false);
    assert_eq!(costs.batch(kind(1000, 1), 1), 3_000_000);
}

#[test]
fn the_number_of_families_is_bounded() {
    let mut costs = Costs::new();
    for memory in 8..1000 {
        costs.record(kind(memory, 1), 1, Duration::from_millis(1), true);
        costs.settle(kind(memory, 2).into(), &[Some(1.0)]);
    }
    assert_eq!(costs.families.len(), MAX_FAMILIES - MAX_SERIAL);
}

#[test]
fn imports_take_no_lanes_from_what_is_new() {
    // Red without `rounded_up` in Family::from, and where a new family stays unknown because there are many.
    let family = |rounds| Family::from(Kind::Serial(Serial::sha_crypt(Digest::Sha512, rounds, 20)));
    assert_eq!(family(656_001), family(700_000));
    let mut costs = Costs::new();
    let sha_crypt = |rounds| Kind::Serial(Serial::sha_crypt(Digest::Sha512, rounds, 20));
    for rounds in 1000..3000 {
        costs.record(sha_crypt(rounds), 1, Duration::from_millis(1), true);
    }
    assert!(costs.families.len() <= MAX_SERIAL, "{}", costs.families.len());
    for memory in 8..200 {
        costs.record(kind(memory, 1), 1, Duration::from_millis(1), true);
    }
    learn(&mut costs, 60, |size| 20 + 2 * (size as u64).abs_diff(3));
    for memory in 200..400 {
        costs.record(kind(memory, 1), 1, Duration::from_millis(1), true);
    }
    assert_eq!(costs.best(kind(1000, 1), MAX_TOGETHER), 3);
}

#[test]
fn lanes_are_added_as_long_as_they_pay() {
    for best in 1..=MAX_TOGETHER {
        let mut costs = Costs::new();
        assert_eq!(costs.next(kind(1000, 1), MAX_TOGETHER), 1, "one lane before anything is known");
        learn(&mut costs, 60, |size| 20 + 2 * (size as u64).abs_diff(best as u64));
        assert_eq!(costs.best(kind(1000, 1), MAX_TOGETHER), best);
        assert_eq!(costs.best(kind(1000, 1), 2), best.min(2));
    }
}

#[test]
fn lanes_that_pay_next_to_nothing_are_left() {
    // Red where what several lanes gain together is enough: it would take eight, for the gain of four.
    let mut costs = Costs::new();
    learn(&mut costs, 200, |size| [180, 250, 262, 282, 286, 290, 294, 298].map(|rate| 1_000_000 / rate)[size - 1]);
    assert_eq!(costs.best(kind(1000, 1), MAX_TOGETHER), 4);
}

#[test]
fn steps_that_do_not_pay_are_stepped_over() {
    let mut costs = Costs::new();
    learn(&mut costs, 60, |size| [30, 31, 20, 25, 25, 25, 25, 25][size - 1]);
    assert_eq!(costs.best(kind(1000, 1), MAX_TOGETHER), 3);
    // Two cores of a Zen 5: red where two steps are enough, as soon as two lanes happen to pay a little less.
    let mut costs = Costs::new();
    learn(&mut costs, 60, |size| [456, 445, 440, 385, 400, 400, 400, 400][size - 1]);
    assert_eq!(costs.best(kind(1000, 1), MAX_TOGETHER), 4);
}

#[test]
fn a_best_that_is_no_longer_is_left() {
    let mut costs = Costs::new();
    learn(&mut costs, 60, |size| 20 + 2 * (size as u64).abs_diff(4));
    learn(&mut costs, 1500, |size| 20 + 2 * (size as u64).abs_diff(2));
    assert_eq!(costs.best(kind(1000, 1), MAX_TOGETHER), 2);
}

#[test]
fn a_calibration_adds_to_what_work_has_taught() {
    let mut costs = Costs::new();
    let family = Family::from(kind(1000, 1));
    for _ in 0..SETTLED {
        costs.record(kind(1000, 1), 1, Duration::from_millis(4), true);
    }
    costs.record(kind(1000, 1), 2, Duration::from_millis(6), true);
    let before = costs.settled();
    costs.settle(family, &[None; 6]);
    assert_eq!(costs.settled(), before, "a calibration that failed");
    costs.settle(kind(2000, 1).into(), &[None; 6]);
    assert_eq!(costs.families.len(), 1, "nor is a family known by one");
    costs.settle(family, &[Some(9000.0), Some(2500.0), None]);
    assert_eq!([1, 2, 3].map(|size| costs.batch(kind(1000, 1), size) / 1_000_000), [4, 5, 7]);
    assert_eq!(costs.best(kind(1000, 1), MAX_TOGETHER), 2);
    costs.record(kind(1000, 1), 3, Duration::from_millis(6), true);
    costs.settle(family, &[None, None, None, Some(1500.0)]);
    assert_eq!(costs.batch(kind(1000, 1), 3), 6_000_000, "what is not measured stays");
}

#[test]
fn an_idle_pool_learns_no_lanes() {
    let mut costs = Costs::new();
    for _ in 0..100 {
        costs.record(kind(1000, 1), 1, Duration::from_millis(1), false);
    }
    assert_eq!(costs.next(kind(1000, 1), MAX_TOGETHER), 1);
    assert!(!costs.knows(kind(1000, 1), 1));
}

#[test]
fn what_waits_is_counted_in_batches() {
    let mut costs = Costs::new();
    let nanos = |share: f64| Some(share * 1000.0);
    costs.settle(kind(1000, 1).into(), &[nanos(4.0), nanos(3.0), nanos(2.0), nanos(5.0), nanos(5.0)]);
    let queue = |count| costs.queue(kind(1000, 1), count, MAX_TOGETHER) / 1_000_000;
    assert_eq!([0, 1, 2, 3, 4, 7].map(queue), [0, 4, 6, 6, 10, 16]);
    assert_eq!(costs.queue(kind(1000, 1), 3, 1) / 1_000_000, 12, "where memory is for one lane");
    assert_eq!(costs.share(kind(1000, 1), MAX_TOGETHER), 2_000_000);
}

/// What a batch of `size` takes whose jobs take a thread `share` milliseconds each, on a core that it may use for a
/// quarter of each 20 ms, if 5 ms less `used` of the first are left.
fn on_a_quarter(share: u64, size: usize, used: u64) -> Took {
    let ran = Duration::from_millis(share * size as u64);
    let still = Duration::from_millis(15) * ((ran.as_millis() as u64 + used) / 5) as u32;
    Took { elapsed: ran + still, ran }
}

#[test]
fn where_threads_stand_still_now_and_then_the_lanes_are_those_that_compute_best() {
    // Red where lanes are compared by the time that passed: whichever were tried while the thread stood still lost.
    let share = |size: usize| 4 - [0, 0, 1, 2, 1, 0, 0, 0][size - 1];
    for first in 0..5 {
        let (mut costs, mut used) = (Costs::new(), first);
        for _ in 0..60 {
            let size = costs.next(kind(1000, 1), MAX_TOGETHER);
            let took = on_a_quarter(share(size), size, used);
            used = (used + took.ran.as_millis() as u64) % 5;
            costs.record(kind(1000, 1), size, took, true);
        }
        assert_eq!(costs.best(kind(1000, 1), MAX_TOGETHER), 4, "{first} ms used at first");
        // Eight milliseconds of a thread are 32 of the caller's.
        let batch = costs.batch(kind(1000, 1), 4) / 1_000_000;
        assert!((27..=37).contains(&batch), "{batch} ms");
    }
}

#[test]
fn a_measurement_ahead_of_load_tells_how_much_of_the_core_there_is() {
    // Red where a server in a container would promise at its first sign-in what a whole core can do.
    let mut costs = Costs::new();
    costs.settle(kind(1000, 1).into(), &[Some(4000.0)]);
    assert_eq!(costs.batch(kind(1000, 1), 1), 4_000_000);
    let took = |elapsed| Took { elapsed: Duration::from_millis(elapsed), ran: Duration::from_millis(4) };
    costs.tried(took(16));
    assert_eq!(costs.batch(kind(1000, 1), 1), 16_000_000);
    costs.record(kind(1000, 1), 1, took(8), true);
    assert_eq!(costs.batch(kind(1000, 1), 1), 8_000_000, "work tells better");
}
