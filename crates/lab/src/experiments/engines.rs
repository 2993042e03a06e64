//! The same load on every database engine.

use super::bench::{Bench, FLOWS, flows};
use super::{Experiment, Halt};
use crate::private::{Setup, Store};
use crate::report::{Expect, Group, Row, Sheet};

pub const EXPERIMENT: Experiment = Experiment {
    name: "engines",
    title: "SQLite, PostgreSQL, MySQL or MariaDB",
    hypothesis: "One node is fastest on a file of its own: a database server adds a round trip to every step, and its own CPU \
        time where it shares the machine.",
    method: "W1 without password at 20 users in a closed loop, against a server on a file and one on each of the databases that \
        were named (--postgres, --mysql). Where the database runs on the same machine, it takes its CPU time from there; only \
        that of the server itself is shown.",
    published: None,
    run,
};

fn run(bench: &mut Bench<'_>, sheet: &mut Sheet) -> Result<(), Halt> {
    if bench.databases.is_empty() {
        return Err(Halt::Skipped("it needs an empty database, by --postgres URL or --mysql URL".to_owned()));
    }
    let on_server = bench.databases.iter().map(|(_, url)| Setup { store: Store::Server(url.clone()), ..bench.setup() });
    let setups: Vec<Setup> = std::iter::once(bench.setup()).chain(on_server).collect();
    let named = bench.databases.iter().map(|(name, _)| Row::new(*name, &[Expect::Less, Expect::Open, Expect::Open]));
    let rows = std::iter::once(Row::new("SQLite", &[])).chain(named).collect();
    let mut servers = bench.servers(&setups)?;
    bench.turns(sheet, Group::new("", &FLOWS, rows), &mut servers, flows)
}
