//! Sign-ups, sign-ins and reads of the account at constant rates, with tokens signed by RSA and by EdDSA.

use super::bench::Bench;
use super::{Experiment, Halt, Published};
use crate::private::{Private, Setup};
use crate::report::{Expect, Group, Row, Sheet, figure};
use load::plan::{Plan, Workload};
use load::programme::Programme;
use load::run::together;
use std::time::Duration;

pub const EXPERIMENT: Experiment = Experiment {
    name: "tokens",
    title: "Constant rate with RS256 and EdDSA tokens",
    hypothesis: "RSA signatures are slow to make and quick to check. At 3 sign-ins a second they cost a little CPU; reads with a \
        token that was checked before take the same time, whatever signed it.",
    method: "W3: 600 reads of the account, 5 sign-ups and 3 sign-ins a second, in open loops of 4 connections each; Argon2id with \
        m = 64 MiB, t = 3, p = 1. ID tokens and access tokens are signed by RS256 or by EdDSA. The cache of checked tokens has no \
        setting in Portiere, so there is no run without it.",
    published: Some(Published {
        source: "W3 by a Python + PostgreSQL service, before and after its cache of checked tokens and other work, on another machine.",
        rows: &[("sign-in, mean", "857 → 521 ms"), ("profile read, mean", "3.70 → 2.35 ms")],
    }),
    run,
};

fn run(bench: &mut Bench<'_>, sheet: &mut Sheet) -> Result<(), Halt> {
    use Expect::{Open, Same};
    let setup = bench.setup().with("signup.enabled", "true");
    let setup = setup.with("hash.argon2.memory_kib", "65536").with("hash.argon2.passes", "3");
    let mut servers = bench.servers(&[
        Setup { signed: ("RS256", "RS256"), ..setup.clone() },
        Setup { signed: ("EdDSA", "EdDSA"), ..setup },
    ])?;
    let figures = [
        figure("mean of a read", " ms"),
        figure("mean of a sign-in", " ms"),
        figure("mean of a sign-up", " ms"),
        figure("cores used by the server", ""),
    ];
    let rows = vec![Row::new("RS256", &[]), Row::new("EdDSA", &[Same, Open, Open, Open])];
    let group = Group { most_rounds: bench.either(3, 2), ..Group::new("", &figures, rows) };
    bench.turns(sheet, group, &mut servers, measure)
}

fn measure(bench: &mut Bench<'_>, server: &mut Private) -> Result<Vec<f64>, Halt> {
    let plan = bench.plan(server, Workload::Profile)?;
    let plan = Plan { duration: bench.either(Duration::from_secs(30), Duration::from_secs(5)), ..plan };
    let series = Programme::Constant { sign_ups: true }.carry_out(&plan, 1, &mut |plans| together(plans, None))?;
    let read = bench.told(series.runs.into_iter().next())?;
    // Without iterations there is no latency, which is not a latency of zero.
    let of = |name: &str| read.beside.iter().find(|one| one.workload == name && one.iterations > 0);
    let mean = |name: &str| of(name).map_or(f64::NAN, |one| one.latency.mean);
    let cores = read.server.map_or(f64::NAN, |server| server.cores);
    Ok(vec![read.latency.mean, mean("sign_in"), mean("sign_up"), cores])
}
