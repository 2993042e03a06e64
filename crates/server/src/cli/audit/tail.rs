//! `audit tail`: follows the log as it is sealed.

use super::super::outcome::{Failure, Outcome, Reply};
use super::super::text::harmless_json;
use super::list::table;
use super::wanted::Wanted;
use app::App;
use app::audit::{Filter, wire};
use clap::Args;
use rules::Span;
use rules::audit::Line;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use store::tables::audit::Place;

/// How many lines one request reads.
const PAGE: i64 = 1000;
/// How many of the newest lines are looked at for lines that match: no request is a long scan.
const LOOKED: i64 = if cfg!(test) { 6 } else { 10_000 };
/// The most lines in a block; the first of them may not be wanted.
const BLOCK: i64 = 256;
/// From when on unsealed lines are late: lines are sealed about a second after they were written.
const LATE: Span = Span::seconds(15);

/// The arguments of `audit tail`.
#[derive(Clone, Debug, Args, Serialize, Deserialize)]
pub struct Tail {
    /// Which lines.
    #[command(flatten)]
    pub wanted: Wanted,
    /// Continue with new entries as they come
    #[arg(long, short)]
    pub follow: bool,
    /// How many entries that match to begin with; looks for them among the newest 10,000
    #[arg(long, short = 'n', value_name = "N", default_value_t = 10,
        value_parser = clap::value_parser!(i64).range(0..=1000))]
    pub lines: i64,
    /// Whether each line is JSON.
    #[arg(skip)]
    pub json: bool,
    /// The line after which the next page begins.
    #[arg(skip)]
    pub behind: Option<(i64, String)>,
}

impl Tail {
    /// Carries out the command.
    pub async fn execute(self, app: &App) -> Reply {
        let (filter, mut notes) = self.wanted.filter(app).await?;
        match self.behind {
            Some(_) => notes.clear(),
            None => notes.extend(late(app).await?),
        }
        let (looked, newest) = match (&self.behind, self.lines) {
            (Some(_), _) => (PAGE, i64::MAX),
            (None, lines) if lines == 0 || filter == Filter::default() => (lines, lines),
            (None, lines) => (lines.max(LOOKED), lines),
        };
        let (mut place, limit) = match &self.behind {
            Some((block, line)) => (Place { block: *block, line: line.clone() }, looked),
            None => (app.place_before(looked).await?, looked + BLOCK),
        };
        let read = if newest == 0 { Vec::new() } else { app.sealed_after(&place, limit).await? };
        match read.last() {
            Some(last) => place = Place { block: last.block, line: last.id.clone() },
            None if self.behind.is_some() => reached(app, &place).await?,
            None => {}
        }
        let there = read.len() as i64;
        let mut wanted: Vec<Line> = read.into_iter().filter(|line| filter.wants(line)).collect();
        let matching = wanted.len() as i64;
        if self.behind.is_none() && matching < newest && there >= looked {
            notes.push(format!(
                "of the newest {there} sealed entries, {matching} match: portiere audit list looks further back"
            ));
        }
        wanted.drain(..wanted.len().saturating_sub(usize::try_from(newest).unwrap_or(usize::MAX)));
        let text = match self.json {
            true => {
                wanted.iter().map(|line| harmless_json(wire::json(&app.realm.id, line).to_string()) + "\n").collect()
            }
            // Headings come once, at the beginning.
            false => table(app, &wanted, self.behind.is_none()).await?,
        };
        let next = self.follow.then(|| format!("{} {}", place.block, place.line));
        Ok(Outcome::new(text, Value::Null).then(next).noting(notes))
    }

    /// Goes on after a line.
    pub fn go_on(&mut self, next: &str) {
        let (block, line) = next.split_once(' ').unwrap_or((next, ""));
        self.behind = Some((block.parse().unwrap_or(0), line.to_owned()));
    }
}

/// Tells a user who waits for unsealed lines, which are not shown, if sealing does not go on.
async fn late(app: &App) -> Result<Option<String>, Failure> {
    let lag = app.audit_lag().await?;
    Ok((lag.unsealed_for >= LATE).then(|| {
        let (lines, seconds) = (lag.unsealed, lag.unsealed_for.whole_seconds());
        format!(
            "{lines} lines wait to be sealed, the oldest for {seconds} s, and are shown once sealed: portiere audit \
             status says why"
        )
    }))
}

/// Fails if the log ends before `place`: nothing would come until it is as long again, and then lines are left out.
pub async fn reached(app: &App, place: &Place) -> Result<(), Failure> {
    match app.audit_ends_before(place).await? {
        None => Ok(()),
        Some(end) => Err(Failure::Lasting(format!(
            "the log ends with block {end}, but was read beyond that before: lines were removed, or the database was \
             restored (portiere audit verify); start again to follow new lines"
        ))),
    }
}
