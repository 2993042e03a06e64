//! The audit log.

use super::outcome::{Outcome, Reply};
use super::text::Table;
use crate::utc::{iso, when};
use app::App;
use clap::{Args, Subcommand};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use store::tables::events::Line;

/// Lines that one request asks for; a longer list comes in several.
const PAGE: i64 = 500;

/// What can be done about the audit log.
#[derive(Clone, Debug, Subcommand, Serialize, Deserialize)]
pub enum Command {
    /// List events, newest first
    ///
    /// Who signed in, failed to, was given tokens or consent, and who changed what. Events are kept for audit.retention.
    #[command(after_long_help = "\
Examples:
  portiere events list --limit 20
  portiere events list --limit 10000 --json")]
    List(List),
}

/// Which events to list.
#[derive(Clone, Debug, Args, Serialize, Deserialize)]
pub struct List {
    /// The most that are listed
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(i64).range(1..))]
    pub limit: i64,
    /// Only events older than the one of this id
    #[arg(long, value_name = "ID")]
    pub before: Option<String>,
    /// Whether the list was begun by a page before.
    #[arg(skip)]
    pub goes_on: bool,
}

impl Command {
    /// Does it.
    pub async fn execute(self, app: &App) -> Reply {
        let Command::List(list) = self;
        let page = list.limit.min(PAGE);
        let lines = app.events(list.before.as_deref().unwrap_or(""), page).await?;
        let more = list.limit > page && lines.len() as i64 == page;
        let next = lines.last().filter(|_| more).map(|last| last.id.clone());
        if lines.is_empty() && !list.goes_on {
            return Ok(Outcome::new("no events", json!([])));
        }
        let mut table = Table::new(["AT", "EVENT", "USER", "CLIENT", "ADDRESS", "DETAIL"], !list.goes_on);
        for line in &lines {
            let (user, client) = (line.user.clone().unwrap_or_default(), line.client.clone().unwrap_or_default());
            let (address, detail) = (line.address.clone().unwrap_or_default(), detail(line));
            table.row([when(line.at), line.kind.clone(), user, client, address, words(&detail)]);
        }
        Ok(Outcome::new(table.render(), lines.iter().map(shown).collect()).then(next))
    }
}

impl List {
    /// Goes on before the event `before`, with what is left to list.
    pub fn go_on(&mut self, before: String) {
        self.limit -= self.limit.min(PAGE);
        (self.before, self.goes_on) = (Some(before), true);
    }
}

fn detail(line: &Line) -> Value {
    serde_json::from_str(&line.detail).unwrap_or(Value::Null)
}

fn words(detail: &Value) -> String {
    let word = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let pairs = detail.as_object().into_iter().flatten().map(|(name, value)| format!("{name}={}", word(value)));
    pairs.collect::<Vec<_>>().join(" ")
}

fn shown(line: &Line) -> Value {
    json!({
        "id": line.id,
        "at": iso(line.at),
        "event": line.kind,
        "user": line.user,
        "client": line.client,
        "session": line.session,
        "address": line.address,
        "detail": detail(line),
    })
}
