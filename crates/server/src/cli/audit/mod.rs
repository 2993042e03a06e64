//! The audit log: reading it, following it, proving that it is what was written.

#[cfg(test)]
mod guide;
mod list;
mod tail;
mod verify;
mod wanted;

use super::input::Input;
use super::outcome::{Failure, Outcome, Reply};
use super::text::{Table, facts};
use crate::utc::{iso, when};
use app::App;
use clap::{Args, Subcommand};
use rules::Span;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::time::Duration;

/// What can be done about the audit log.
#[derive(Clone, Debug, Subcommand, Serialize, Deserialize)]
pub enum Command {
    /// List lines, newest first
    ///
    /// Who signed in, failed to, was given tokens or consent, and who changed what. Lines are kept for audit.retention.
    #[command(after_long_help = "\
Examples:
  portiere audit list --limit 20
  portiere audit list --since 2h --outcome refused
  portiere audit list --user ada --since 2030-01-31 --until 2030-02-28 --json")]
    List(list::List),
    /// Write all lines, oldest first, as JSON lines or as CSV
    ///
    /// Takes the memory of one page, however long the log is. In CSV, what a spreadsheet would take for a formula begins with
    /// an apostrophe. What is not sealed yet has no block.
    #[command(after_long_help = "\
Examples:
  portiere audit export --since 30d > audit.jsonl
  portiere audit export --format csv --kind signin.failed > failures.csv")]
    Export(list::Export),
    /// Show the newest sealed lines, and with -f those that come
    ///
    /// Lines come in the order in which they were sealed, about a second after they were written: none is left out and none
    /// comes twice, however late it was committed. With --json each line is an object on a line of its own.
    #[command(after_long_help = "\
Examples:
  portiere audit tail -n 50
  portiere audit tail -f --kind signin.failed --json")]
    Tail(tail::Tail),
    /// Prove that the log is what was sealed
    ///
    /// Names every line that was edited, removed, put in or given to another block, and every block that was edited or is
    /// missing. That the newest blocks were cut off can only be told with a head that was exported before: --head. Needs the
    /// audit key, which is not in the database. Ends with exit code 1 if anything is wrong.
    #[command(after_long_help = "\
Examples:
  portiere audit verify
  portiere audit verify --head /mnt/elsewhere/audit-head.json --json")]
    Verify(verify::Verify),
    /// Print the end of the chain, to be kept in another place
    ///
    /// Whoever has it can prove later that nothing was cut off. Where a stream delivers the log to another machine, that
    /// machine has the same knowledge.
    #[command(after_long_help = "\
Examples:
  portiere audit head > /mnt/elsewhere/audit-head-$(date +%F).json")]
    Head,
    /// Show how far sealing and streams are
    Status,
    /// Go on under this node's audit key although the one from before is lost
    ///
    /// Blocks that were sealed under the lost key stay, and can no longer be proved. It is written into the audit log. If the
    /// key is not lost, name its file in audit.old_keys instead, and nothing else is needed.
    Rekey(Rekey),
    /// Give a stream up, so that what it has not delivered is no longer kept for it
    ///
    /// For a stream that is not in the configuration any more. One that still is begins again where the log begins.
    Forget(Forget),
}

/// Whether it is meant.
#[derive(Clone, Debug, Args, Serialize, Deserialize)]
pub struct Rekey {
    /// Do not ask
    #[arg(long)]
    pub yes: bool,
}

/// Which stream.
#[derive(Clone, Debug, Args, Serialize, Deserialize)]
pub struct Forget {
    /// The stream, as `portiere audit status` calls it
    pub stream: String,
}

impl Command {
    /// Completes it with the time, with files, and with what whoever typed it says.
    pub fn complete(&mut self, input: &mut Input) -> Result<(), Failure> {
        match self {
            Command::List(list) => list.wanted.complete(),
            Command::Export(export) => export.wanted.complete(),
            Command::Tail(tail) => tail.wanted.complete(),
            Command::Verify(verify) => verify.complete(),
            Command::Rekey(Rekey { yes: false }) => {
                let question = "What was sealed before can then only be proved with the key from before.\n\
                                Type rekey to go on: ";
                match input.line(question)? {
                    Some(typed) if typed == "rekey" => Ok(()),
                    Some(_) => Err(Failure::Failed("nothing was done".into())),
                    None => Err(Failure::Use("nobody can be asked here: --yes says that it is meant".into())),
                }
            }
            _ => Ok(()),
        }
    }

    /// Whether it prints what it prints, JSON or not; otherwise what it answers is shown as any other answer.
    pub fn prints(&mut self, as_json: bool) -> bool {
        match self {
            Command::Export(_) => true,
            Command::Tail(tail) => {
                tail.json = as_json;
                true
            }
            Command::Verify(verify) => {
                verify.json = as_json;
                true
            }
            _ => false,
        }
    }

    /// Whether it waits for what a server writes.
    pub fn needs_server(&self) -> bool {
        matches!(self, Command::Tail(tail) if tail.follow)
    }

    /// How long to wait before the next page, after one that was empty.
    pub fn pause(&self) -> Option<Duration> {
        self.needs_server().then_some(Duration::from_millis(500))
    }

    /// How far a long answer is, for a terminal.
    pub fn progress(&self) -> Option<String> {
        match self {
            Command::Verify(verify) => verify.progress(),
            _ => None,
        }
    }

    /// Goes on with the next page.
    pub fn go_on(&mut self, next: String) {
        match self {
            Command::List(list) => list.go_on(next),
            Command::Export(export) => (export.after, export.goes_on) = (Some(next), true),
            Command::Tail(tail) => tail.go_on(&next),
            Command::Verify(verify) => verify.go_on(&next),
            _ => {}
        }
    }

    /// Does it.
    pub async fn execute(self, app: &App) -> Reply {
        match self {
            Command::List(list) => list.execute(app).await,
            Command::Export(export) => export.execute(app).await,
            Command::Tail(tail) => tail.execute(app).await,
            Command::Verify(verify) => verify.execute(app).await,
            Command::Head => head(app).await,
            Command::Status => status(app).await,
            Command::Rekey(_) => match app.rekey().await? {
                Ok(key) => Ok(Outcome::new(format!("the audit log is sealed under key {key}"), json!({ "key": key }))),
                Err(why) => Err(Failure::Failed(why)),
            },
            Command::Forget(Forget { stream }) => match app.forget_stream(&stream).await? {
                true => Ok(Outcome::new(format!("stream {stream} is given up"), json!({ "stream": stream }))),
                false => Err(Failure::Failed(format!("no stream is called {stream}; see: portiere audit status"))),
            },
        }
    }
}

async fn head(app: &App) -> Reply {
    let head = app.audit_head().await?;
    let mut shown = json!(head);
    shown["sealed"] = json!(iso(head.sealed_at));
    let text = serde_json::to_string_pretty(&shown).map_err(|error| Failure::Failed(error.to_string()))?;
    Ok(Outcome::new(text, shown))
}

async fn status(app: &App) -> Reply {
    let lag = app.audit_lag().await?;
    let seconds = |span: Span| if span == Span::ZERO { String::new() } else { format!("{} s", span.whole_seconds()) };
    let about = facts(&[
        ("blocks up to", lag.end.number.to_string()),
        ("lines kept", lag.kept.to_string()),
        ("sealed under", lag.key.clone().unwrap_or_default()),
        ("this node's key", app.audit_key().unwrap_or_else(|| "none".to_owned())),
        ("not sealed yet", lag.unsealed.to_string()),
        ("for", seconds(lag.unsealed_for)),
    ]);
    let mut table = Table::new(["STREAM", "BEHIND", "FOR", "DELIVERED", "TROUBLE"], true);
    for stream in &lag.streams {
        let (behind, moved) = (stream.lines.to_string(), when(stream.moved_at));
        table.row([stream.name.clone(), behind, seconds(stream.waits), moved, stream.trouble.clone()]);
    }
    let streams = if lag.streams.is_empty() { "no streams\n".to_owned() } else { table.render() };
    let shown: Vec<Value> = lag
        .streams
        .iter()
        .map(|stream| {
            json!({
                "name": stream.name,
                "behind": stream.lines,
                "oldest_age_seconds": stream.waits.whole_seconds(),
                "delivered_at": iso(stream.moved_at),
                "trouble": (!stream.trouble.is_empty()).then_some(&stream.trouble),
            })
        })
        .collect();
    let shown = json!({
        "block": lag.end.number,
        "lines_kept": lag.kept,
        "key": lag.key,
        "key_of_this_node": app.audit_key(),
        "unsealed": lag.unsealed,
        "unsealed_age_seconds": lag.unsealed_for.whole_seconds(),
        "streams": shown,
    });
    Ok(Outcome::new(format!("{about}\n{streams}"), shown))
}
