//! What the model says of a database server on another machine.

use crate::capacity::{machine, near};
use lab::capacity::advice::{more_cores, postgres};
use lab::capacity::demand::Operation;
use lab::capacity::simulate::{Arrivals, simulate};
use lab::capacity::stations::{Stations, Writer};

/// Returns what a sign-in takes while nothing waits for anything, in milliseconds.
fn alone(stations: &Stations) -> f64 {
    let demand = Operation::SignIn.demand();
    let light = demand.work * stations.request + demand.reads * stations.read;
    let signing = demand.rs256 * stations.sign[0] + demand.es256 * stations.sign[1];
    let commit = stations.writer.commit + stations.writer.mean_sync();
    let far = demand.fetches * stations.round_trip + demand.batches * commit;
    (light + signing + far + stations.pool.batch(1, 1)) * 1e3
}

/// Red where SQLite's pace holds for every store: above a thousand commits a second, the first two batches that wait
/// for a connection are the beginning of a queue that never ends, and a sign-in takes more than twice as long.
#[test]
fn far_below_every_limit_a_sign_in_takes_what_its_parts_take() {
    // Sixty-four cores: the hashes of the highest rate keep five of them busy, its commits seven connections.
    let remote = postgres(&more_cores(&machine(), 32));
    for rate in [10.0, 100.0, 1000.0] {
        let found = simulate(&remote, Operation::SignIn, Arrivals::People(rate), 8000);
        near(found.p95, alone(&remote), 0.02, &format!("milliseconds at {rate} a second"));
        assert_eq!(found.together, 1.0, "each batch is a commit of its own");
    }
}

/// Red where the processor time of a fetch passes without a core: two cores answered three times their limit.
#[test]
fn a_fetch_takes_its_processor_time_from_the_cores() {
    let remote = postgres(&machine());
    for operation in [Operation::Introspect, Operation::Refresh] {
        let bound = remote.needs(operation).bound();
        let found = simulate(&remote, operation, Arrivals::People(bound / 2.0), 8000);
        near(found.cores, 0.5, 0.05, &format!("{}, the share in use", operation.name()));
        let full = simulate(&remote, operation, Arrivals::Users(200), 20_000);
        assert!(full.rate <= bound * 1.05 && full.rate >= bound * 0.85, "{operation:?}: {} of {bound}", full.rate);
    }
}

/// Red where the end of any commit answers the oldest one: with three on their way, a quick one took as long as a slow
/// one.
#[test]
fn a_quick_commit_does_not_wait_for_a_slow_one_beside_it() {
    let mut remote = postgres(&more_cores(&machine(), 32));
    let usual = simulate(&remote, Operation::Refresh, Arrivals::Users(1), 200).p50;
    let sync = [vec![remote.writer.mean_sync(); 3], vec![20e-3]].concat();
    remote.writer = Writer { sync, ..remote.writer };
    let found = simulate(&remote, Operation::Refresh, Arrivals::People(500.0), 8000);
    near(found.p50, usual, 0.02, "milliseconds, the median of which three in four are quick");
    assert!(found.p95 > 20.0, "and one in four is slow: {}", found.p95);
}

/// Red where as many commits run at once as begin: connections are a limit, too.
#[test]
fn commits_wait_where_all_connections_are_taken() {
    let mut remote = postgres(&more_cores(&machine(), 32));
    remote.writer.sync = vec![50e-3];
    let most = remote.writer.at_once as f64 / (50e-3 + remote.writer.commit);
    let found = simulate(&remote, Operation::Refresh, Arrivals::Users(64), 8000);
    near(found.rate, most, 0.02, "a second");
    near(remote.needs(Operation::Refresh).bound(), most, 0.02, "the limit");
}

/// Red with two round trips for a batch: it is sent together with its commit, unlike MariaDB's.
#[test]
fn a_batch_is_one_round_trip() {
    let (here, remote) = (machine(), postgres(&machine()));
    near(remote.writer.mean_sync() - here.writer.mean_sync(), remote.round_trip, 1e-9, "seconds more than the disk");
}
