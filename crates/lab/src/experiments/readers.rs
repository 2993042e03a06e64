//! Connections that read the file.

use super::bench::Bench;
use super::{Experiment, Halt, Published};
use crate::report::{Expect, Group, Row, Sheet, figure};
use load::plan::{Pace, Plan, Workload};
use std::time::Duration;

pub const EXPERIMENT: Experiment = Experiment {
    name: "readers",
    title: "Connections that read: 1, 2, 4, 8",
    hypothesis: "Point reads run on the network threads, so more connections than there are cores make no difference. What a single one \
        does is left open.",
    method: "The mix of W2 (70 % userinfo, 20 % device authorization and a poll, 10 % account) without pauses, at 40 users in a \
        closed loop, with store.readers = 2, 1, 4 and 8.",
    published: Some(Published {
        source: "W2 at 2,000 users with pauses of 1 s, by a Rust + SQLite SSO server on 1 virtual CPU and 1 GiB.",
        rows: &[("operations a second", "1,968/s"), ("p99", "154 ms"), ("memory", "196 MiB"), ("knee", "2,700/s")],
    }),
    run,
};

const USERS: usize = 40;

fn run(bench: &mut Bench<'_>, sheet: &mut Sheet) -> Result<(), Halt> {
    use Expect::{Open, Same};
    let setups = ["2", "1", "4", "8"].map(|readers| bench.setup().with("store.readers", readers));
    let mut servers = bench.servers(&setups)?;
    let figures = [figure("operations a second", "/s"), figure("p99 of one", " ms"), figure("memory", " MiB")];
    let rows = vec![
        Row::new("2 readers", &[]),
        Row::new("1 reader", &[Open, Open]),
        Row::new("4 readers", &[Same, Open]),
        Row::new("8 readers", &[Same, Open]),
    ];
    bench.turns(sheet, Group::new("", &figures, rows), &mut servers, |bench, server| {
        let plan = bench.plan(server, Workload::Traffic)?;
        let pace = Pace::Closed { visitors: USERS, pause: Duration::ZERO };
        let report = bench.drive(&[Plan { pace, ..plan }], None)?;
        let mib = server.resident() as f64 / f64::from(1 << 20);
        Ok(vec![report.iterations_per_second, report.latency.p99, mib])
    })
}
