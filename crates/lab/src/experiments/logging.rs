//! Logging: off, as shipped, and a line per request.

use super::bench::Bench;
use super::{Experiment, Halt, Published};
use crate::private::Private;
use crate::report::{Expect, Group, Row, Sheet, figure};
use load::plan::{Pace, Plan, Workload};

pub const EXPERIMENT: Experiment = Experiment {
    name: "logging",
    title: "What logging costs",
    hypothesis: "At the level that is shipped nothing is written for a request that goes well, so it costs nothing. A line for \
        each request (debug) costs CPU and a little time.",
    method: "Reads of the account at 600 a second in an open loop of 4 connections, against servers that differ in log.level and \
        log.format; lines go to a file. Points are per cent of one core.",
    published: Some(Published {
        source: "A Python + PostgreSQL service, at the same rate on another machine: what its logging added.",
        rows: &[("time of a read", "+0.57 ms"), ("CPU", "+15 points")],
    }),
    run,
};

const RATE: f64 = 600.0;
const CONNECTIONS: usize = 4;

fn run(bench: &mut Bench<'_>, sheet: &mut Sheet) -> Result<(), Halt> {
    use Expect::{More, Open, Same};
    let setup = |level: &str, format: &str| bench.setup().with("log.level", level).with("log.format", format);
    let setups = [
        setup("off", "text"),
        setup("info", "text"),
        setup("info", "json"),
        setup("debug", "text"),
        setup("debug", "json"),
    ];
    let mut servers = bench.servers(&setups)?;
    let figures = [figure("CPU points", " %"), figure("mean of a read", " ms"), figure("p99 of a read", " ms")];
    let rows = vec![
        Row::new("off", &[]),
        Row::new("info, text (as shipped)", &[Same, Same]),
        Row::new("info, JSON", &[Same, Same]),
        Row::new("debug, text", &[More, Open]),
        Row::new("debug, JSON", &[More, Open]),
    ];
    bench.turns(sheet, Group::new("", &figures, rows), &mut servers, measure)
}

fn measure(bench: &mut Bench<'_>, server: &mut Private) -> Result<Vec<f64>, Halt> {
    let pace = Pace::Open { rate: RATE, visitors: CONNECTIONS };
    let plan = bench.plan(server, Workload::Profile)?;
    let report = bench.drive(&[Plan { pace, ..plan }], None)?;
    let points = report.server.map_or(f64::NAN, |server| server.cores * 100.0);
    Ok(vec![points, report.latency.mean, report.latency.p99])
}
