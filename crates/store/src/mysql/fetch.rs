//! Reads: one after the other on one connection, or in parallel on several if the server is far away.

use std::sync::Arc;

use futures_util::future::{join, join_all};
use mysql_async::prelude::Queryable;
use mysql_async::{Error, Params, Row as Found};
use tokio::time::Instant;

use super::Shared;
use super::connect::Link;
use super::fault::Fault;
use super::pool::{Lease, Place};
use super::say::{Phrase, Saying};
use super::value;
use crate::dialect::mysql::Flavor;
use crate::engine::{Read, Row};

/// How many attempts a fetch gets: reading twice changes nothing.
const ATTEMPTS: u32 = 3;

/// The largest number of reads that are combined into one statement.
const TOGETHER: usize = 16;

/// Reads, each with its translation.
type Asked<'a> = [(&'a Read, Arc<Saying>)];

/// Answers every read.
pub(super) async fn run(shared: &Shared, reads: &[Read]) -> Result<Vec<Vec<Row>>, String> {
    let mut asked = Vec::with_capacity(reads.len());
    for read in reads {
        let saying = shared.book.find(&read.sql)?;
        if let Some(why) = value::refused(&read.args, saying.values) {
            return Err(why);
        }
        asked.push((read, saying));
    }
    if asked.is_empty() {
        return Ok(Vec::new());
    }
    let deadline = shared.deadline();
    let mut again = 1;
    loop {
        match attempt(shared, &asked, deadline).await {
            Ok(rows) => return Ok(rows),
            Err(Fault::Rival(_) | Fault::Held(_) | Fault::Lost(_) | Fault::Unfit(_)) if again < ATTEMPTS => again += 1,
            Err(fault) => return Err(fault.why()),
        }
    }
}

async fn attempt(shared: &Shared, asked: &Asked<'_>, deadline: Instant) -> Result<Vec<Vec<Row>>, Fault> {
    let first = shared.pool.lease(deadline).await.map_err(Fault::Other)?;
    if let Some(phrase) = at_once(shared, asked) {
        return kept(shared, first, deadline, async |link| whole(link, &phrase, asked).await).await;
    }
    let wanted = if first.link.is_far() { asked.len() - 1 } else { 0 };
    let spare: Vec<Place> = std::iter::from_fn(|| shared.pool.spare()).take(wanted).collect();
    if spare.is_empty() {
        return part(shared, first, asked, deadline).await;
    }
    let mut parts = asked.chunks(asked.len().div_ceil(spare.len() + 1));
    let here = parts.next().unwrap_or_default();
    let elsewhere = parts.zip(spare).map(|(asked, place)| async move {
        let lease = shared.pool.lease_at(place, deadline).await.map_err(Fault::Other)?;
        part(shared, lease, asked, deadline).await
    });
    let (here, elsewhere) = join(part(shared, first, here, deadline), join_all(elsewhere)).await;
    let mut rows = here?;
    for part in elsewhere {
        rows.extend(part?);
    }
    Ok(rows)
}

/// Combines several reads into one statement, which MariaDB accepts.
fn at_once(shared: &Shared, asked: &Asked<'_>) -> Option<Arc<Phrase>> {
    if shared.flavor != Flavor::MariaDb || !(2..=TOGETHER).contains(&asked.len()) {
        return None;
    }
    shared.book.reads(&asked.iter().map(|(_, saying)| &**saying).collect::<Vec<_>>())
}

/// Asks one read after the other.
async fn part(shared: &Shared, lease: Lease<'_>, asked: &Asked<'_>, at: Instant) -> Result<Vec<Vec<Row>>, Fault> {
    kept(shared, lease, at, async |link| answers(link, asked).await).await
}

/// Asks over a connection, which is kept unless it is lost or its state is unknown.
async fn kept(
    shared: &Shared,
    mut lease: Lease<'_>,
    at: Instant,
    ask: impl AsyncFnOnce(&mut Link) -> Result<Vec<Vec<Row>>, Fault>,
) -> Result<Vec<Vec<Row>>, Fault> {
    let era = lease.link.era;
    let Some(answered) = shared.pool.hear(era, at, ask(&mut lease.link)).await else {
        // The next caller should not wait as long on another connection to a server that is silent.
        shared.pool.suspect(era);
        return Err(Fault::Other("the database did not answer a read in time".to_owned()));
    };
    match answered {
        Err(Fault::Lost(_) | Fault::Unfit(_)) => shared.pool.suspect(era),
        _ => lease.keep(),
    }
    answered
}

async fn whole(link: &mut Link, phrase: &Phrase, asked: &Asked<'_>) -> Result<Vec<Vec<Row>>, Fault> {
    let values = asked.iter().flat_map(|(read, _)| value::sent(&read.args)).collect();
    let ask = async {
        let statement = link.statement(phrase).await?;
        let mut result = link.conn.exec_iter(&statement, Params::Positional(values)).await?;
        let mut found = Vec::with_capacity(asked.len());
        for _ in asked {
            found.push(result.collect::<Found>().await?);
        }
        result.drop_result().await?;
        Ok(found)
    };
    let found: Result<Vec<Vec<Found>>, Error> = ask.await;
    let found = found.map_err(|error| Fault::of(&error))?;
    let rows = |found: Vec<Found>| found.into_iter().map(value::taken).collect::<Result<Vec<Row>, String>>();
    found.into_iter().map(rows).collect::<Result<_, _>>().map_err(Fault::Other)
}

async fn answers(link: &mut Link, asked: &Asked<'_>) -> Result<Vec<Vec<Row>>, Fault> {
    let mut answers = Vec::with_capacity(asked.len());
    for (read, saying) in asked {
        let ask = async {
            let statement = link.statement(&saying.plain).await?;
            link.conn.exec::<Found, _, _>(&statement, Params::Positional(value::sent(&read.args))).await
        };
        let found = ask.await.map_err(|error| Fault::of(&error))?;
        let rows: Result<Vec<Row>, String> = found.into_iter().map(value::taken).collect();
        answers.push(rows.map_err(Fault::Other)?);
    }
    Ok(answers)
}
