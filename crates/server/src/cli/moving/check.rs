//! Checks, before anything is done, whether a move can begin and finish. The source goes on meanwhile.

use super::bar::Bar;
use super::ends::{Source, Target};
use crate::boot::{FIRST_REALM, Lacking, lacking};
use crate::cli::outcome::{Failure, Outcome, say};
use rules::id::RealmId;
use serde_json::json;
use std::time::{Duration, Instant};
use store::dialect::Dialect;
use store::engine::Engine;
use store::moving::claim::Mover;
use store::moving::fit::{Fit, Look, Misfit};
use store::moving::{PAGE, before};

/// What was looked at, if nothing is in the way.
pub struct Looked {
    fit: Fit,
    took: Duration,
}

/// Looks at both ends, and at every value of the source. Changes nothing.
pub async fn look(
    source: &Source<'_>,
    from: &dyn Engine,
    target: &Target,
    id: Option<&str>,
) -> Result<Looked, Failure> {
    let (from_name, to_name) = (&source.name, &target.name);
    say(&format!("checking whether {to_name} can take everything in {from_name}, which stays in use meanwhile"));
    let began = Instant::now();
    before::of_source(from).await?;
    if target.is_file() {
        nothing_is_lost(source, from).await?;
    }
    let takes = target.inspect(from, Mover { id, from: from_name }).await?;
    let bar = Bar::new();
    let tell = |step| bar.tell(step);
    let fit = Look { from, to: takes.dialect, packet: takes.packet, page: PAGE, tell: &tell }.run().await;
    bar.end();
    let fit = fit?;
    match fit.misfits.is_empty() {
        true => Ok(Looked { fit, took: began.elapsed() }),
        false => Err(Failure::Failed(misfits(&fit, (from_name, to_name)))),
    }
}

/// Checks that a source has what was acknowledged, as far as that can be known: on a file nobody replays the rest.
async fn nothing_is_lost(source: &Source<'_>, from: &dyn Engine) -> Result<(), Failure> {
    before::nobody_is_awaited(from, Dialect::Sqlite).await?;
    if from.dialect() == Dialect::Sqlite {
        return Ok(());
    }
    let lost = lacking(from, &RealmId::from(FIRST_REALM), source.data).await?;
    let why = |Lacking { node, mark, found }| {
        let name = &source.name;
        format!(
            "{name} lacks what its node {node} acknowledged (the node knows its mark {mark}, the database {found}), \
             and nothing is replayed to a file: start the node on {name} first"
        )
    };
    lost.map_or(Ok(()), |lost| Err(Failure::Failed(why(lost))))
}

/// Lists what is in the way, one line each.
fn misfits(fit: &Fit, (from, to): (&str, &str)) -> String {
    let many = fit.misfits.len() as u64 + fit.more;
    let one = |misfit: &Misfit| {
        let Misfit { table, key, column, why } = misfit;
        format!("{table} ({key}): {column} {why}")
    };
    let first = match many {
        1 => format!("a value in {from} does not fit into {to}; nothing was changed:"),
        many => format!("{many} values in {from} do not fit into {to}; nothing was changed:"),
    };
    let more = (fit.more > 0).then(|| format!("and {} more", fit.more));
    [first].into_iter().chain(fit.misfits.iter().map(one)).chain(more).collect::<Vec<_>>().join("\n")
}

impl Looked {
    /// Returns the outcome for a user who wanted only the check.
    pub fn outcome(&self, (from, to): (&str, &str)) -> Outcome {
        let (Fit { tables, rows, .. }, seconds) = (&self.fit, self.took.as_secs_f64());
        let text = format!(
            "{to} can take everything in {from}: {rows} rows of {tables} tables were checked in {seconds:.1} s\n\
             nothing was changed; what is written until the move begins is not checked"
        );
        let seconds = (seconds * 10.0).round() / 10.0;
        Outcome::new(text, json!({ "from": from, "to": to, "rows": rows, "tables": tables, "seconds": seconds }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_value_that_does_not_fit_has_a_line_and_the_rest_is_counted() {
        let misfit = |key: &str| Misfit {
            table: "logins".into(),
            key: format!("realm \"main\", name \"{key}\""),
            column: "name".into(),
            why: "has 300 characters: a key of MySQL or MariaDB holds at most 255".into(),
        };
        let told = |keys: &[&str], more| {
            let misfits_of = keys.iter().map(|key| misfit(key)).collect();
            misfits(&Fit { tables: 1, rows: 9, misfits: misfits_of, more }, ("sqlite:/a.db", "mysql://h/d"))
        };
        assert_eq!(
            told(&["ada"], 0),
            "a value in sqlite:/a.db does not fit into mysql://h/d; nothing was changed:\n\
             logins (realm \"main\", name \"ada\"): name has 300 characters: a key of MySQL or MariaDB holds at most \
             255"
        );
        let many = told(&["ada", "bob"], 17);
        assert!(many.starts_with("19 values in sqlite:/a.db do not fit into mysql://h/d"), "{many}");
        assert!(many.ends_with("\nand 17 more") && many.lines().count() == 4, "{many}");
    }
}
