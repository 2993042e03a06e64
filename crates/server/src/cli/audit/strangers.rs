//! `audit strangers`: what was refused to callers that had not authenticated.

use super::super::outcome::{Failure, Outcome, Reply};
use super::super::text::{Table, harmless};
use super::wanted::instant;
use app::App;
use app::audit::Failures;
use app::clock::Clock;
use clap::Args;
use rules::events::Rejection;
use rules::utc::{iso, when};
use rules::{Span, Time};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The arguments of `audit strangers`.
#[derive(Clone, Debug, Args, Serialize, Deserialize)]
pub struct Strangers {
    /// Only refusals from this time on: 2h, 7d, 2030-01-31 or 2030-01-31T12:00 (UTC)
    #[arg(long, value_name = "WHEN", default_value = "1d")]
    pub since: String,
    /// The most lines to list
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(i64).range(1..))]
    pub limit: i64,
    /// The time that `since` stands for.
    #[arg(skip)]
    pub from: Option<Time>,
    /// The last line of the page before.
    #[arg(skip)]
    #[serde(default)]
    pub after: Option<Last>,
}

/// The last line of a page, and how many lines are left to list.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Last {
    minute: Time,
    of: Option<String>,
    address: String,
    left: i64,
}

/// How many lines one request asks for; a longer list takes several.
const PAGE: i64 = if cfg!(test) { 3 } else { 500 };

impl Strangers {
    /// Parses the time.
    pub fn complete(&mut self) -> Result<(), Failure> {
        self.from = Some(instant("--since", &self.since, Clock::system().now())?);
        Ok(())
    }

    /// Carries out the command.
    pub async fn execute(self, app: &App) -> Reply {
        let since = self.from.unwrap_or(app.clock.now() - Span::days(1));
        let left = self.after.as_ref().map_or(self.limit, |last| last.left);
        // One more, to know whether there are more.
        let wanted = left.min(PAGE);
        let mut found = app.strangers(since, self.after.as_ref().map(Last::line).as_ref(), wanted + 1).await?;
        if found.is_empty() && self.after.is_none() {
            return Ok(Outcome::new(format!("nothing was refused to strangers since {}", self.since), json!([])));
        }
        let more = found.len() as i64 > wanted;
        found.truncate(usize::try_from(wanted).unwrap_or(0));
        let mut table = Table::new(["MINUTE", "WHAT", "CLIENT", "ADDRESS", "TIMES"], self.after.is_none());
        for one in &found {
            let client = one.client().map_or_else(|| "-".to_owned(), harmless);
            table.row([when(one.minute), harmless(one.what()), client, one.address.clone(), one.count.to_string()]);
        }
        let left = left - wanted;
        let next = found.last().filter(|_| more && left > 0).map(|last| Last::of(last, left));
        let next = next.map(|last| serde_json::to_string(&last)).transpose();
        let note = (more && left == 0).then(|| format!("there are more than these {}: see --limit", self.limit));
        let outcome = Outcome::new(table.render(), found.iter().map(item).collect());
        let next = next.map_err(|error| Failure::Failed(error.to_string()))?;
        Ok(outcome.then(next).noting(note.into_iter().collect()))
    }

    /// Goes on where a page ended.
    pub fn go_on(&mut self, next: &str) {
        self.after = serde_json::from_str(next).ok();
    }
}

impl Last {
    fn of(line: &Failures, left: i64) -> Self {
        let of = line.of.as_ref().map(Rejection::text);
        Last { minute: line.minute, of, address: line.address.clone(), left }
    }

    fn line(&self) -> Failures {
        let of = self.of.as_deref().map(Rejection::read);
        Failures { minute: self.minute, of, address: self.address.clone(), count: 0 }
    }
}

fn item(one: &Failures) -> Value {
    json!({
        "minute": iso(one.minute),
        "what": one.what(),
        "client": one.client(),
        "address": one.address,
        "count": one.count,
    })
}
