//! Group commit: many batches in one transaction, or one each.

use super::bench::Bench;
use super::commits::{Audit, Ledger};
use super::{Experiment, Halt};
use crate::report::{Expect, Group, Row, Sheet, figure};

pub const EXPERIMENT: Experiment = Experiment {
    name: "group-commit",
    title: "Group commit on and off",
    hypothesis: "One writer alone gains nothing. The more wait at the same time, the more commits one sync of the disk confirms, \
        and the shorter is the wait of each.",
    method: "Commits of a sign-in (a session and its line of the audit log) straight to the store, durable, by 1, 8 and 64 \
        writers that each wait for the answer. Off: the store is opened with one batch in a transaction at most; a server has no \
        such setting.",
    published: None,
    run,
};

fn run(bench: &mut Bench<'_>, sheet: &mut Sheet) -> Result<(), Halt> {
    use Expect::{Less, More, Same};
    let folder = bench.folder()?;
    let figures = [figure("sign-ins committed a second", "/s"), figure("p99 of one", " ms")];
    let mut ledgers = [Ledger::open(folder.path(), "off", 1)?, Ledger::open(folder.path(), "on", 256)?];
    for (writers, expected) in [(1, &[Same][..]), (8, &[More, Less]), (64, &[More, Less])] {
        let title = if writers == 1 { "1 writer".to_owned() } else { format!("{writers} writers") };
        let rows = vec![Row::new("a transaction for each batch", &[]), Row::new("group commit (as shipped)", expected)];
        bench.turns(sheet, Group::new(title, &figures, rows), &mut ledgers, |bench, ledger| {
            let written = ledger.write(writers, Audit::Together, bench.part())?;
            Ok(vec![written.rate, written.p99])
        })?;
    }
    Ok(())
}
