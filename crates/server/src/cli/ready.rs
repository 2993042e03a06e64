//! `ready`: says whether the running server is ready, as `/readyz` does, and waits until it is.

use super::outcome::{Failure, Outcome, Reply, say};
use super::request::Request;
use super::text::harmless;
use super::{Global, runtime, show, to_ask};
use crate::config::{Raw, Value as _};
use crate::control;
use crate::http::{self, Site};
use clap::Args;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};
use tokio::time::timeout;

/// The pause between two looks.
const PAUSE: Duration = Duration::from_millis(200);
/// How long an answer may take, however little time is left: a server that works has answered by then.
const LEAST: Duration = Duration::from_secs(1);

/// The arguments of `ready`.
#[derive(Clone, Debug, Args, Serialize, Deserialize)]
pub struct Command {
    /// Wait this long at most until the server is ready: 30s, 5m [default: do not wait]
    #[arg(long, value_name = "TIME", value_parser = time)]
    #[serde(skip)]
    pub wait: Option<Duration>,
}

/// Parses a time as the configuration does.
fn time(text: &str) -> Result<Duration, String> {
    Duration::parse(&Raw::Word(text.to_owned()))
}

impl Command {
    /// Looks, in the server.
    pub async fn execute(&self, site: &Site) -> Reply {
        let Some((_, told)) = http::readiness(site).await else {
            return Err(Failure::Later("the server could not look whether it is ready".into()));
        };
        let told: Value = serde_json::from_str(&told).map_err(|error| Failure::Failed(error.to_string()))?;
        Ok(Outcome::new(text(&told), told))
    }

    /// Asks the running server, again and again while there is time; prints what it said last.
    pub fn run(self, global: &Global) -> Result<ExitCode, Failure> {
        let config = to_ask(global)?.0;
        let outcome = runtime()?.block_on(self.answer(&config.server.data))?;
        let code = show(global, &outcome);
        if is_ready(&outcome) || code != ExitCode::SUCCESS {
            return Ok(code);
        }
        let still = if self.wait.is_some() { "still " } else { "" };
        Err(Failure::Failed(format!("the server is {still}not ready")))
    }

    async fn answer(&self, data: &Path) -> Reply {
        let (began, mut said) = (Instant::now(), String::new());
        loop {
            let left = self.wait.map(|wait| wait.saturating_sub(began.elapsed()).max(LEAST));
            let reply = match left {
                Some(left) => timeout(left, ask(data, self)).await.unwrap_or_else(|_| Err(late())),
                None => ask(data, self).await,
            };
            let why = match &reply {
                Ok(outcome) if is_ready(outcome) => return reply,
                Ok(outcome) => first_problem(&outcome.json),
                // Also a server that goes away while it is asked, or an older one that does not know the command: when it
                // is replaced, the next one answers.
                Err(failure) => match failure.passes() {
                    Some(why) => why.to_owned(),
                    None => return reply,
                },
            };
            if self.wait.is_none_or(|wait| began.elapsed() + PAUSE > wait) {
                return reply;
            }
            if said != why {
                say(&format!("{why}; waiting"));
                said = why;
            }
            tokio::time::sleep(PAUSE).await;
        }
    }
}

fn late() -> Failure {
    Failure::Later("the server did not answer in time".to_owned())
}

async fn ask(data: &Path, command: &Command) -> Reply {
    let asked = control::ask(data, &Request::Ready(command.clone())).await?;
    // A server that starts listens there once it has its database, which may take long (a migration).
    asked
        .unwrap_or_else(|| Err(Failure::Later(format!("no server runs on {}, or it is only starting", data.display()))))
}

fn is_ready(outcome: &Outcome) -> bool {
    outcome.json["status"] == "ready"
}

fn listed<'a>(told: &'a Value, what: &str) -> impl Iterator<Item = &'a str> {
    told[what].as_array().into_iter().flatten().filter_map(Value::as_str)
}

fn first_problem(told: &Value) -> String {
    listed(told, "problems").next().unwrap_or("the server is not ready").to_owned()
}

/// Renders the answer for people: the state, what an acknowledged write is worth, and a line for each problem and warning.
fn text(told: &Value) -> String {
    let lines = |what: &str, word: &str| -> String {
        listed(told, what).map(|why| format!("{word}: {}\n", harmless(why))).collect()
    };
    let state = told["status"].as_str().unwrap_or_default();
    let worth = told["durability"].as_str().filter(|worth| *worth != "unknown");
    let worth = worth.map(|worth| format!("{worth}\n")).unwrap_or_default();
    format!("{state}\n{}{worth}{}", lines("problems", "problem"), lines("warnings", "warning"))
}
