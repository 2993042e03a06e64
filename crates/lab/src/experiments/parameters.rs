//! OWASP's equally strong parameters of Argon2id.

use super::bench::Bench;
use super::{Experiment, Halt};
use crate::private::Setup;
use crate::report::{Expect, Group, Row, Sheet, figure};
use hasher::tune::{CHOICES, Choice};
use load::plan::{Pace, Plan, Workload};
use std::time::Duration;

pub const EXPERIMENT: Experiment = Experiment {
    name: "parameters",
    title: "Hash parameters that OWASP calls equally strong",
    hypothesis: "They do not cost a server the same: with less memory and more passes a machine signs in more people a second.",
    method: "W1 with passwords against a server for each row of OWASP's list, at 20 users in a closed loop and at one. The first \
        row is the product's default.",
    published: None,
    run,
};

fn run(bench: &mut Bench<'_>, sheet: &mut Sheet) -> Result<(), Halt> {
    use Expect::{Less, More, Open};
    let default = (19_456, 2);
    let mut choices: Vec<Choice> = CHOICES.into_iter().filter(|choice| choice.source == "OWASP").collect();
    choices.sort_by_key(|choice| (choice.memory, choice.passes) != default);
    if bench.quick {
        choices.truncate(3);
    }
    let setup = |choice: &Choice| -> Setup {
        let setup = bench.setup().with("hash.argon2.memory_kib", choice.memory.to_string());
        setup.with("hash.argon2.passes", choice.passes.to_string()).with("hash.argon2.lanes", choice.lanes.to_string())
    };
    let setups: Vec<Setup> = choices.iter().map(setup).collect();
    let mut servers = bench.servers(&setups)?;
    let name = |choice: &Choice| format!("{} MiB, t = {}", choice.memory >> 10, choice.passes);
    let rows = |expected: fn(&Choice) -> Expect, figures: usize| -> Vec<Row> {
        let row = |(at, choice): (usize, &Choice)| match at {
            0 => Row::new(name(choice), &[]),
            _ => Row::new(name(choice), &[expected(choice), Open][..figures]),
        };
        choices.iter().enumerate().map(row).collect()
    };
    let by_memory = |choice: &Choice| if choice.memory > 19_456 { Less } else { More };
    let figures = [figure("sign-ins a second", "/s"), figure("p95 of a sign-in", " ms")];
    for (title, visitors, figures, rows) in [
        ("20 users", 20, &figures[..], rows(by_memory, 2)),
        ("1 user", 1, &[figure("median of a sign-in", " ms")], rows(|_| Open, 1)),
    ] {
        bench.turns(sheet, Group::new(title, figures, rows), &mut servers, |bench, server| {
            let plan = bench.plan(server, Workload::Flow)?;
            let duration = if visitors == 1 { plan.duration / 2 } else { plan.duration };
            let pace = Pace::Closed { visitors, pause: Duration::ZERO };
            let report = bench.drive(&[Plan { pace, duration, ..plan }], None)?;
            Ok(match visitors {
                1 => vec![report.latency.p50],
                _ => vec![report.iterations_per_second, report.latency.p95],
            })
        })?;
    }
    Ok(())
}
