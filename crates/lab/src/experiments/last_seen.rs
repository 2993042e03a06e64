//! How often the last use of a session is written.

use super::bench::{Bench, FLOWS, flows};
use super::{Experiment, Halt};
use crate::private::Private;
use crate::report::{Expect, Group, Row, Sheet, figure};

pub const EXPERIMENT: Experiment = Experiment {
    name: "last-seen",
    title: "Last use of a session: every time, or every 5 minutes",
    hypothesis: "Writing the last use of a session with every commit costs a little of the rate: it is one more row in a \
        transaction that is made anyway, so that there is more to write and no more transactions.",
    method: "W1 without password (a session at the authorization endpoint, code, introspection, refresh) at 20 users in a closed \
        loop, with session.touch_every = 5m and = 0s. Batches are what the server counts, the warm-up's among them, by the requests \
        that it counts; what is written is what the system says of the process.",
    published: None,
    run,
};

fn run(bench: &mut Bench<'_>, sheet: &mut Sheet) -> Result<(), Halt> {
    let mut servers = bench.servers(&[bench.setup(), bench.setup().with("session.touch_every", "0s")])?;
    let writing = [figure("batches a request", ""), figure("written for a request", " KiB")];
    let figures: Vec<_> = FLOWS.into_iter().chain(writing).collect();
    let rows = vec![
        Row::new("every 5 minutes (as shipped)", &[]),
        Row::new("every time", &[Expect::Less, Expect::Open, Expect::More, Expect::Same, Expect::More]),
    ];
    bench.turns(sheet, Group::new("", &figures, rows), &mut servers, |bench, server| {
        let before = writes(server)?;
        let mut values = flows(bench, server)?;
        let after = writes(server)?;
        let each = |at: usize| (after[at] - before[at]) / (after[0] - before[0]).max(1.0);
        values.extend([each(1), each(2) / 1024.0]);
        Ok(values)
    })
}

/// Returns the requests, batches and bytes written so far.
fn writes(server: &Private) -> Result<[f64; 3], Halt> {
    let metrics = server.metrics()?;
    let written =
        server.written().ok_or_else(|| Halt::Skipped("the system does not say what is written".to_owned()))?;
    Ok([metrics.sum("portiere_http_requests_total"), metrics.sum("portiere_store_batches_total"), written as f64])
}
