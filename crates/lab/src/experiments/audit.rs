//! The audit log: in the batch of what it records, apart, or not at all.

use super::bench::{Bench, FLOWS, flows};
use super::commits::{Audit, Ledger};
use super::{Experiment, Halt};
use crate::private::{Audited, Setup};
use crate::report::{Expect, Group, Row, Sheet, figure};

pub const EXPERIMENT: Experiment = Experiment {
    name: "audit",
    title: "Audit log in the batch, apart, and off",
    hypothesis: "A line of the audit log in the batch of what it records costs less than a commit of its own, which doubles \
        what reaches the disk. It is not free beside no log at all. Of a flow over HTTP it takes less than a tenth.",
    method: "Commits of a sign-in (a session and its line of the audit log) straight to the store, durable, by 32 writers that \
        each wait for the answer, without HTTP and hashing: so the share of the log is larger here than in a server. Apart: two \
        commits, one after the other. Off: the session alone, the store is asked without the line. Then W1 without password over \
        HTTP at 20 users in a closed loop: a server has no setting that turns the log off, so a trigger in the file of one of \
        the three writes each line once more, into a table with the same index: what that costs is what a line costs. Another \
        takes each line out again in its own transaction, so that nothing is left to be sealed: what the first costs beside it \
        is what sealing costs, and what a line costs less a little more than that.",
    published: None,
    run,
};

const WRITERS: usize = 32;

fn run(bench: &mut Bench<'_>, sheet: &mut Sheet) -> Result<(), Halt> {
    use Expect::{Less, More};
    let folder = bench.folder()?;
    let figures = [figure("sign-ins committed a second", "/s"), figure("p99 of one", " ms")];
    let rows = vec![
        Row::new("in the batch (as shipped)", &[]),
        Row::new("in a commit of its own", &[Less, More]),
        Row::new("no audit log", &[More]),
    ];
    let open = |name: &str| Ledger::open(folder.path(), name, 256);
    let mut variants =
        [(open("together")?, Audit::Together), (open("apart")?, Audit::Apart), (open("off")?, Audit::Off)];
    bench.turns(sheet, Group::new("", &figures, rows), &mut variants, |bench, (ledger, audit)| {
        let written = ledger.write(WRITERS, *audit, bench.part())?;
        Ok(vec![written.rate, written.p99])
    })?;
    over_http(bench, sheet)
}

/// Measures the same with everything else that a flow does.
fn over_http(bench: &mut Bench<'_>, sheet: &mut Sheet) -> Result<(), Halt> {
    let audited = |audited| Setup { audited, ..bench.setup() };
    let mut servers = bench.servers(&[Audited::Once, Audited::Twice, Audited::Never].map(audited))?;
    let rows = vec![
        Row::new("each line once (as shipped)", &[]),
        Row::new("each line twice", &[Expect::Nearly, Expect::Open, Expect::More]),
        Row::new("each line taken out again, none sealed", &[]),
    ];
    bench.turns(sheet, Group::new("over HTTP", &FLOWS, rows), &mut servers, flows)
}
