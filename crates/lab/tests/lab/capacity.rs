//! Laws that a model of queues has to keep, whatever the machine.

use lab::capacity::advice::{faster_disk, more_cores, staffed};
use lab::capacity::demand::Operation;
use lab::capacity::figure::Figure;
use lab::capacity::predict::{Generator, stations};
use lab::capacity::probe::Probes;
use lab::capacity::simulate::{Arrivals, Outcome, in_steps, simulate};
use lab::capacity::stations::{Cold, Late, PACE, Pool, Station, Stations, Writer, lateness};
use store::sqlite::ENOUGH;

/// Two cores, on which a hash takes 5 ms alone and 3 ms side by side, and a disk that takes a millisecond.
pub fn machine() -> Stations {
    let batches = vec![5e-3, 8e-3, 10e-3, 12e-3];
    Stations {
        cores: 2,
        request: 20e-6,
        rouse: 0.0,
        rouse_generator: 0.0,
        cold: Cold::NEVER,
        toll: 0.0,
        wake: (0.0, 0.0),
        late: Late::NEVER,
        read: 2e-6,
        round_trip: 0.0,
        sign: [300e-6, 30e-6, 20e-6],
        writer: Writer {
            commit: 40e-6,
            batch: 20e-6,
            sync: vec![1e-3],
            at_once: 1,
            group: 256,
            pace: PACE,
            enough: ENOUGH,
        },
        pool: Pool {
            threads: 2,
            lanes: 4,
            alone: batches.clone(),
            crowded: batches,
            crowd: 2,
            rouse: 0.0,
            workers: 0.0,
        },
        generator: None,
        pacing: 0.0,
    }
}

fn bound(stations: &Stations, operation: Operation) -> f64 {
    stations.needs(operation).bound()
}

pub fn near(found: f64, wanted: f64, share: f64, what: &str) {
    assert!((found / wanted - 1.0).abs() <= share, "{what}: {found}, wanted {wanted}");
}

#[test]
fn a_time_so_long_that_moments_are_rounded_comes_to_an_end() {
    // Red where a batch is done only once next to nothing is left of it: the rest takes less than two moments lie apart, for ever.
    for rate in [1e-3, 1e-6, 1e-9] {
        let found = simulate(&machine(), Operation::SignIn, Arrivals::People(rate), 200);
        assert!(found.p50.is_finite(), "{rate}");
    }
}

#[test]
fn twice_the_cores_carry_twice_as_much_where_cores_are_the_limit() {
    let (today, doubled) = (machine(), more_cores(&machine(), 2));
    for operation in [Operation::SignIn, Operation::Introspect, Operation::Refresh, Operation::Day] {
        assert_eq!(today.needs(operation).bottleneck(), Some(Station::Cores), "{operation:?}");
        let share = if operation == Operation::Introspect { 1e-9 } else { 0.03 };
        near(bound(&doubled, operation), 2.0 * bound(&today, operation), share, operation.name());
    }
}

#[test]
fn memory_that_is_shared_takes_from_what_more_cores_bring() {
    let mut today = machine();
    today.pool.crowded.iter_mut().for_each(|time| *time *= 1.2);
    let ratio = bound(&more_cores(&today, 2), Operation::SignIn) / bound(&today, Operation::SignIn);
    assert!((1.3..1.9).contains(&ratio), "{ratio}");
}

#[test]
fn a_hash_on_a_thread_that_rested_takes_longer_and_one_of_many_does_not() {
    let mut tired = machine();
    tired.pool.rouse = 4e-3;
    let sign_ins = |stations: &Stations, arrivals| simulate(stations, Operation::SignIn, arrivals, 4000);
    let seldom = Arrivals::People(5.0);
    let (rested, roused) = (sign_ins(&machine(), seldom).p50, sign_ins(&tired, seldom).p50);
    near(roused - rested, 4.0, 0.01, "milliseconds more, now and then");
    let (busy, still) = (sign_ins(&machine(), Arrivals::Users(32)).rate, sign_ins(&tired, Arrivals::Users(32)).rate);
    near(still, busy, 0.02, "a second, where threads never rest");
}

#[test]
fn what_hashing_loses_to_requests_lowers_limit_and_simulation_alike() {
    let bothered = Stations { toll: 80e-6, ..machine() };
    for operation in [Operation::SignIn, Operation::Day] {
        let at = |stations: &Stations| simulate(stations, operation, Arrivals::Users(32), 20_000).rate;
        let limit = bound(&bothered, operation) / bound(&machine(), operation);
        assert!(limit < 0.97, "{limit}");
        near(at(&bothered) / at(&machine()), limit, 0.08, operation.name());
    }
    assert_eq!(bound(&bothered, Operation::Introspect), bound(&machine(), Operation::Introspect), "nobody hashes");
}

#[test]
fn what_hashing_loses_is_what_neither_server_nor_generator_took() {
    let mut probes: Probes = serde_json::from_str(include_str!("probes.json")).unwrap();
    let toll = |probes: &Probes| stations(probes, Generator::Here).toll;
    assert_eq!(toll(&probes), 0.0, "saved before it was measured");
    let often = &mut probes.http.often;
    let spent = (often.server_us.value + often.generator_us.value) * 1e-6;
    let share = |lost: f64| Some(Figure { value: 1.0 - lost * often.rate.value / 2.0, ..often.rate });
    let (more, less) = (share(spent + 20e-6), share(spent - 20e-6));
    often.hashes_left = more;
    near(toll(&probes), 10e-6, 1e-6, "for each of two threads");
    probes.http.often.hashes_left = less;
    assert_eq!(toll(&probes), 0.0, "noise is not made into a gain");
}

#[test]
fn a_way_to_hash_that_was_fast_in_most_rounds_is_reckoned_as_in_the_slowest() {
    // Red where the median counts: percentiles of a day were half of what was measured when the memory of the probe happened to fit.
    let mut probes: Probes = serde_json::from_str(include_str!("probes.json")).unwrap();
    let threads = probes.hashing.threads();
    let crowded = |probes: &Probes| stations(probes, Generator::Here).pool.crowded;
    let before = crowded(&probes);
    let one = probes.hashing.lanes.iter_mut().find(|lane| (lane.threads, lane.together) == (threads, 1)).unwrap();
    one.slowest = Some(one.rate.value);
    one.rate.value *= 1.5;
    assert_eq!(crowded(&probes), before);
}

#[test]
fn threads_that_wake_up_are_late_beside_hashing_and_nowhere_else() {
    let late = [3e-3; 6];
    let tardy = Stations { late: Late { seldom: (1.0, late), often: (2.0, late) }, ..machine() };
    let keys = |stations: &Stations| simulate(stations, Operation::Keys, Arrivals::People(100.0), 4000);
    assert_eq!(keys(&tardy), keys(&machine()), "nobody hashes");
    let half = Arrivals::People(bound(&machine(), Operation::SignIn) / 2.0);
    let introspection = |stations: &Stations| {
        let (_, steps) = in_steps(stations, Operation::SignIn, half, 8000);
        steps.iter().find(|step| step.name == "introspect").map_or(0.0, |step| step.p95)
    };
    let (usual, found) = (introspection(&machine()), introspection(&tardy));
    assert!(found > usual + 2.9, "{found} in place of {usual} ms");
    // Sixteen cores, of which a few hash at any time: whoever wakes up finds an idle one.
    let [idle, tardy] = [machine(), tardy].map(|stations| more_cores(&stations, 8));
    let few = |stations: &Stations| simulate(stations, Operation::SignIn, Arrivals::People(100.0), 4000);
    assert_eq!(few(&tardy), few(&idle), "most cores are idle");
}

/// Red where every start came to the users for nothing: an open loop has a thread that sleeps until each is due.
#[test]
fn what_the_generator_spends_on_starts_is_in_an_open_loop_and_in_no_other() {
    let here = |pacing| Stations { generator: Some(8e-6), pacing, ..machine() };
    let cores = |stations: &Stations, arrivals| simulate(stations, Operation::Introspect, arrivals, 8000).cores;
    let open = |pacing| cores(&here(pacing), Arrivals::People(1000.0));
    near(open(50e-6) - open(0.0), 1000.0 * 50e-6 / 2.0, 0.05, "of two cores");
    let closed = |pacing| cores(&here(pacing), Arrivals::Users(8));
    assert_eq!(closed(50e-6).to_bits(), closed(0.0).to_bits());
    let mut probes: Probes = serde_json::from_str(include_str!("probes.json")).unwrap();
    let pacing = |probes: &Probes, generator| stations(probes, generator).pacing;
    assert_eq!(pacing(&probes, Generator::Here), 0.0, "saved before it was measured");
    probes.http.pacing_us = Some(Figure::exact(20.0));
    near(pacing(&probes, Generator::Here), 20e-6, 1e-9, "measured");
    assert_eq!(pacing(&probes, Generator::Elsewhere), 0.0);
}

/// Red where a thread that wakes up always found the idle core: beside a hash on one of two, it often does not.
#[test]
fn a_hash_waits_for_others_although_a_core_is_idle_where_the_system_does_not_look_for_it() {
    let of = |stations: &Stations, share: f64| {
        let rate = bound(stations, Operation::Day) * share;
        let (_, steps) = in_steps(stations, Operation::Day, Arrivals::People(rate), 40_000);
        steps.iter().find(|step| step.name == "login").map_or(0.0, |step| step.p95)
    };
    // Few cores are not looked through once most of their time is used, and many are.
    let signing = Stations { sign: [3e-3, 1e-3, 1e-3], ..machine() };
    let [few, many] = [more_cores(&signing, 1), more_cores(&signing, 8)];
    let grows = |stations| of(stations, 0.61) / of(stations, 0.6);
    assert!(grows(&few) > 1.06, "{}", grows(&few));
    near(grows(&many), 1.0, 0.02, "of sixteen cores");
}

#[test]
fn how_late_threads_are_where_many_wake_up_is_what_was_measured_there() {
    let mut probes: Probes = serde_json::from_str(include_str!("probes.json")).unwrap();
    let often = |probes: &Probes| stations(probes, Generator::Here).late.often.1;
    let seldom = stations(&probes, Generator::Here).late.seldom.1;
    assert_eq!(often(&probes), seldom, "saved before it was measured");
    probes.http.often.tail_ms = Some([0.2, 0.3, 0.7, 2.2, 4.2]);
    let expected = [0.0, 0.1e-3, 0.5e-3, 2e-3, 4e-3, 4e-3];
    assert!(often(&probes).iter().zip(expected).all(|(found, wanted)| (found - wanted).abs() < 1e-12));
}

#[test]
fn threads_are_later_the_more_often_they_wake_up() {
    let late = Late { seldom: (100.0, [0.0; 6]), often: (10_000.0, [4.0; 6]) };
    for (rate, expected) in [(1.0, 0.0), (100.0, 0.0), (1000.0, 2.0), (10_000.0, 4.0), (1e6, 4.0)] {
        let found = late.at(rate)[3];
        assert!((found - expected).abs() < 1e-9, "{found} at {rate}");
    }
    // Half of the way from 90 to 95 %.
    near(lateness(&[0.0, 1.0, 2.0, 3.0, 4.0, 5.0], 0.925), 1.5, 1e-9, "between two shares");
}

#[test]
fn a_limit_is_the_rate_at_which_it_is_the_limit() {
    // Red where the limit is looked for by steps of half the way: with some numbers of workers those swing and never settle.
    let own = machine().pool.threads as f64 / machine().pool.each();
    for cold in [Cold::NEVER, Cold { seldom: (500.0, 3.0), often: (2500.0, 1.5) }] {
        for workers in 0..12 {
            let pool = Pool { workers: own * f64::from(workers) / 2.0, ..machine().pool };
            let staffed = Stations { pool, cold, ..machine() };
            for operation in Operation::ALL {
                let limit = bound(&staffed, operation);
                let there = staffed.needs_at(operation, limit).bound();
                near(there, limit, 1e-6, &format!("{} with {workers} halves of a worker", operation.name()));
            }
        }
    }
}

#[test]
fn another_core_takes_nothing_from_all_together() {
    // Red where the line is extended without a bound: noise that makes two threads slower than one in turn would make four
    // of them slower than two.
    let pool = Pool { alone: vec![1.0], crowded: vec![3.0], crowd: 2, lanes: 1, ..machine().pool };
    let together = |threads: usize| threads as f64 / pool.batch(1, threads);
    near(together(2), 2.0 / 3.0, 1e-9, "as measured");
    assert!((3..9).all(|threads| together(threads) > together(2) - 1e-9), "{}", together(4));
}

#[test]
fn workers_raise_the_limit_until_something_else_sets_it() {
    let rows = staffed(&machine());
    assert_eq!((rows[0].workers, rows[0].bound), (0, bound(&machine(), Operation::SignIn)));
    assert!(rows.windows(2).all(|two| two[1].bound >= two[0].bound && two[1].shares.0 <= two[0].shares.0), "{rows:?}");
    let (first, last) = (rows[0], rows[rows.len() - 1]);
    assert!(rows.len() > 2 && last.bound > 2.0 * first.bound, "{rows:?}");
    assert!(first.shares.0 > 0.5 && last.shares.0 < 0.1, "hashing sets it at first, and not in the end: {rows:?}");
    // Where it is the disk from the start, no worker is worth it.
    let slow = Writer { sync: vec![100e-3], group: 4, ..machine().writer };
    let rows = staffed(&Stations { writer: slow, ..machine() });
    assert_eq!((rows.len(), rows[1].bottleneck), (2, Station::Writer), "{rows:?}");
}

#[test]
fn a_faster_disk_changes_nothing_where_the_disk_is_not_the_limit() {
    let (today, faster) = (machine(), faster_disk(&machine(), 10.0));
    assert_eq!(bound(&faster, Operation::Introspect), bound(&today, Operation::Introspect));
    near(bound(&faster, Operation::SignIn), bound(&today, Operation::SignIn), 0.02, "sign-ins");
    let mut slow = machine();
    slow.writer = Writer { sync: vec![10e-3], group: 4, ..slow.writer };
    assert_eq!(slow.needs(Operation::Refresh).bottleneck(), Some(Station::Writer));
    let ratio = bound(&faster_disk(&slow, 10.0), Operation::Refresh) / bound(&slow, Operation::Refresh);
    assert!(ratio > 2.0, "{ratio}");
}

#[test]
fn the_sooner_requests_follow_one_another_the_less_the_hashes_between_them_cost() {
    let cold = Cold { seldom: (500.0, 3.0), often: (2500.0, 1.5) };
    assert_eq!((cold.times(1.0), cold.times(500.0), cold.times(2500.0)), (3.0, 3.0, 1.5));
    assert!((1.5..3.0).contains(&cold.times(1000.0)) && cold.times(1e9) == 1.0);
    // Where the two cannot be told apart, what was measured of few holds for all.
    assert_eq!(Cold { seldom: (500.0, 3.0), often: (400.0, 1.5) }.times(2500.0), 3.0);
    let with = |cold| bound(&Stations { cold, ..machine() }, Operation::Day);
    let (warm, often, seldom) = (with(Cold::NEVER), with(cold), with(Cold { often: (2500.0, 3.0), ..cold }));
    assert!(seldom < often && often < warm, "{seldom} {often} {warm}");
}

/// One core, one kind of work that always takes as long: the formula of Pollaczek and Khinchine for M/D/1.
#[test]
fn one_queue_waits_as_the_formula_says() {
    let one = Stations { cores: 1, ..machine() };
    for load in [0.3, 0.6, 0.8] {
        let found = simulate(&one, Operation::Keys, Arrivals::People(load / one.request), 60_000);
        let wanted = one.request * (1.0 + load / (2.0 * (1.0 - load))) * 1e3;
        near(found.mean, wanted, 0.06, &format!("at {load}"));
        near(found.cores, load, 0.05, "the share in use");
    }
}

/// What is in use is what comes, times what each needs.
#[test]
fn cores_are_in_use_as_the_utilisation_law_says() {
    for operation in [Operation::SignIn, Operation::Refresh, Operation::Introspect, Operation::Day] {
        let (stations, share) = (machine(), 0.5);
        let rate = bound(&stations, operation) * share;
        let found = simulate(&stations, operation, Arrivals::People(rate), 8000);
        near(found.rate, rate, 0.06, operation.name());
        let needs = stations.needs_at(operation, rate).stations;
        let wanted = needs.iter().find(|(station, _)| *station == Station::Cores).map_or(0.0, |(_, need)| need * rate);
        // Below the limit fewer hashes stand side by side and fewer batches share a commit: each costs more.
        assert!(found.cores >= wanted * 0.9 && found.cores <= wanted * 1.7, "{operation:?}: {} {wanted}", found.cores);
    }
}

#[test]
fn many_users_reach_the_limit_and_nobody_passes_it() {
    for operation in [Operation::SignIn, Operation::Refresh, Operation::Introspect, Operation::Day] {
        let stations = machine();
        let found = simulate(&stations, operation, Arrivals::Users(200), 20_000);
        let limit = bound(&stations, operation);
        assert!(found.rate <= limit * 1.05 && found.rate >= limit * 0.85, "{operation:?}: {} of {limit}", found.rate);
        let few = simulate(&stations, operation, Arrivals::Users(1), 2000);
        assert!(few.rate < found.rate, "{operation:?}");
        // Little's law: one user at a time.
        near(few.rate * few.mean / 1e3, 1.0, 0.02, "one user");
    }
}

#[test]
fn percentiles_are_in_order_and_grow_with_the_load() {
    for operation in Operation::ALL {
        let stations = machine();
        let at =
            |share: f64| simulate(&stations, operation, Arrivals::People(bound(&stations, operation) * share), 6000);
        let levels = [0.25, 0.5, 0.75, 0.9].map(at);
        for Outcome { p50, p95, p99, mean, .. } in levels {
            assert!(0.0 < p50 && p50 <= p95 && p95 <= p99 && mean > 0.0, "{operation:?}: {levels:?}");
        }
        assert!(levels.windows(2).all(|pair| pair[0].mean <= pair[1].mean * 1.02), "{operation:?}: {levels:?}");
        assert!(levels[3].p99 > levels[0].p99, "{operation:?}");
    }
}

#[test]
fn a_sign_in_alone_takes_what_its_parts_take() {
    let stations = machine();
    let found = simulate(&stations, Operation::SignIn, Arrivals::Users(1), 200);
    let demand = Operation::SignIn.demand();
    let parts = demand.work * 20e-6
        + demand.reads * 2e-6
        + demand.rs256 * 300e-6
        + demand.es256 * 30e-6
        + demand.batches * (1e-3 + 60e-6)
        + 5e-3;
    near(found.p50, parts * 1e3, 0.01, "milliseconds");
    near(found.p99, found.p50, 0.01, "nothing waits for anything");
}

#[test]
fn a_generator_on_the_same_cores_takes_from_them() {
    let with = Stations { generator: Some(20e-6), ..machine() };
    assert!(bound(&with, Operation::Introspect) < bound(&machine(), Operation::Introspect));
    let with = Stations { generator: Some(200e-6), cores: 8, ..machine() };
    assert_eq!(with.needs(Operation::Introspect).bottleneck(), Some(Station::Generator));
    let found = simulate(&with, Operation::Introspect, Arrivals::Users(50), 5000);
    assert!(found.rate <= bound(&with, Operation::Introspect) * 1.01, "it has one thread");
}

#[test]
fn a_worker_helps_those_who_sign_in_and_nobody_else() {
    let mut with = machine();
    with.pool.workers = 600.0;
    assert!(bound(&with, Operation::SignIn) > 1.5 * bound(&machine(), Operation::SignIn));
    assert_eq!(bound(&with, Operation::Introspect), bound(&machine(), Operation::Introspect));
    let found = simulate(&with, Operation::SignIn, Arrivals::Users(200), 8000);
    assert!(found.rate > simulate(&machine(), Operation::SignIn, Arrivals::Users(200), 8000).rate * 1.3);
}

#[test]
fn the_same_question_has_the_same_answer() {
    let once = || simulate(&machine(), Operation::Day, Arrivals::People(500.0), 3000);
    assert_eq!(once(), once());
}

#[test]
fn a_figure_that_is_no_number_ends_no_worse_than_wrong() {
    // Red without `is_finite` in simulate/mod.rs, after: time stood still, and the prediction never ended.
    for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 0.0] {
        let pool = Pool { alone: vec![bad], crowded: vec![bad], rouse: bad, ..machine().pool };
        for stations in [
            Stations { request: bad, ..machine() },
            Stations { rouse: bad, ..machine() },
            Stations { toll: bad, ..machine() },
            Stations { read: bad, ..machine() },
            Stations { wake: (bad, bad), ..machine() },
            Stations { sign: [bad; 3], ..machine() },
            Stations { cold: Cold { seldom: (1.0, bad), often: (2.0, bad) }, ..machine() },
            Stations { pool, ..machine() },
            Stations { generator: Some(bad), ..machine() },
        ] {
            for arrivals in [Arrivals::Users(20), Arrivals::People(100.0), Arrivals::People(bad)] {
                simulate(&stations, Operation::SignIn, arrivals, 500);
            }
        }
    }
}
