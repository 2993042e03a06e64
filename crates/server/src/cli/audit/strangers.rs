//! `audit strangers`: what was refused to callers that had not authenticated.

use super::super::outcome::{Failure, Outcome, Reply};
use super::super::text::{Table, harmless};
use super::wanted::instant;
use app::App;
use app::audit::Failures;
use app::clock::Clock;
use clap::Args;
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
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(i64).range(1..=1000))]
    pub limit: i64,
    /// The time that `since` stands for.
    #[arg(skip)]
    pub from: Option<Time>,
}

impl Strangers {
    /// Parses the time.
    pub fn complete(&mut self) -> Result<(), Failure> {
        self.from = Some(instant("--since", &self.since, Clock::system().now())?);
        Ok(())
    }

    /// Carries out the command.
    pub async fn execute(self, app: &App) -> Reply {
        let found = app.strangers(self.from.unwrap_or(app.clock.now() - Span::days(1)), self.limit).await?;
        if found.is_empty() {
            return Ok(Outcome::new(format!("nothing was refused to strangers since {}", self.since), json!([])));
        }
        let mut table = Table::new(["MINUTE", "WHAT", "CLIENT", "ADDRESS", "TIMES"], true);
        for one in &found {
            let client = one.client.as_deref().map_or_else(|| "-".to_owned(), harmless);
            table.row([when(one.minute), one.what.to_owned(), client, one.address.clone(), one.count.to_string()]);
        }
        Ok(Outcome::new(table.render(), found.iter().map(item).collect()))
    }
}

fn item(one: &Failures) -> Value {
    json!({
        "minute": iso(one.minute),
        "what": one.what,
        "client": one.client,
        "address": one.address,
        "count": one.count,
    })
}
