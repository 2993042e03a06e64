//! What a user is told about a move: how far it is, and its result.

use super::ends::{Source, Target};
use crate::cli::outcome::{Outcome, Reply};
use crate::cli::text::facts;
use serde_json::json;
use std::time::Duration;
use store::moving::Sum;
use store::moving::marks::{self, Arrival, Marks};

/// Tells how far a move is.
pub async fn status(source: &Source<'_>, target: Option<&Target>) -> Reply {
    let out = Marks::read(&*source.reading().await?).await?.out;
    let (mut into, mut rows) = (None, None);
    if let Some(target) = target {
        let engine = target.looking().await?;
        into = Marks::read(&*engine).await?.into;
        if into.as_ref().is_some_and(|into| into.state == Arrival::Arriving) {
            rows = Some(marks::progress(&*engine).await?);
        }
    }
    let leaving = match &out {
        None => "is not being moved".to_owned(),
        Some(out) => out.sentence(),
    };
    let arriving = match into.as_ref().map(|into| (into.state, &into.peer)) {
        None => String::new(),
        Some((Arrival::Arriving, peer)) => format!("holds {} rows of {peer} so far", rows.unwrap_or(0)),
        Some((Arrival::Ready, peer)) => format!("holds everything of {peer}; no server has run on it yet"),
        Some((Arrival::Serving, peer)) => format!("came from {peer}, and a server has run on it"),
        Some((Arrival::Abandoned, peer)) => format!("holds a copy of {peer} that was given up"),
    };
    let text = facts(&[(&source.name, leaving), (target.map_or("", |target| &target.name), arriving)]);
    let from = json!({
        "database": source.name,
        "state": out.as_ref().map(|out| out.state),
        "to": out.as_ref().map(|out| &out.peer),
        "id": out.as_ref().map(|out| &out.id),
    });
    let to = target.map(|target| {
        let (state, id) = (into.as_ref().map(|into| into.state), into.as_ref().map(|into| &into.id));
        json!({ "database": target.name, "state": state, "id": id, "rows": rows })
    });
    let json = json!({ "from": from, "to": to });
    Ok(Outcome::new(text, json))
}

/// Tells the result of a move; `sums` is `None` if it was done before.
pub fn moved((from, to): (&str, &str), id: &str, sums: Option<Vec<Sum>>, took: Duration) -> Outcome {
    let rows: Option<u64> = sums.as_ref().map(|sums| sums.iter().map(|sum| sum.rows).sum());
    let first = match (rows, &sums) {
        (Some(rows), Some(sums)) => format!(
            "moved {rows} rows of {} tables from {from} to {to} in {:.1} s; every row was compared",
            sums.len(),
            took.as_secs_f64()
        ),
        _ => format!("{from} was moved to {to} already"),
    };
    let text = format!(
        "{first}\nnow stop the servers that run on the old database, set store.url (PORTIERE_STORE_URL) to the new one, and \
         start them: the data folder stays as it is, with the master key and the peppers\nthe old database takes no writes any \
         more, and no server starts on it; keep it until all is well"
    );
    let table = |sum: &Sum| json!({ "table": sum.table, "rows": sum.rows, "sha256": sum.sha256 });
    let tables = sums.map(|sums| sums.iter().map(table).collect::<Vec<_>>());
    let seconds = (took.as_secs_f64() * 10.0).round() / 10.0;
    Outcome::new(text, json!({ "from": from, "to": to, "id": id, "rows": rows, "seconds": seconds, "tables": tables }))
}
