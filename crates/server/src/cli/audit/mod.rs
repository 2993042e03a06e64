//! `audit`: reads and follows the audit log, and proves that it is what was written.

#[cfg(test)]
mod guide;
mod list;
mod strangers;
mod stream;
mod tail;
mod verify;
mod wanted;

use super::input::Input;
use super::outcome::{Failure, Outcome, Reply};
use super::removal::confirm;
use super::text::{Table, facts, harmless};
use app::App;
use app::audit::Rekeyed;
use clap::{Args, Subcommand};
use rules::Span;
use rules::utc::{iso, when};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::time::Duration;

/// The subcommands of `audit`.
#[derive(Clone, Debug, Subcommand, Serialize, Deserialize)]
pub enum Command {
    /// List entries, newest first
    ///
    /// Shows who signed in or failed to, who was given tokens or consent, and who changed what. Entries are kept for
    /// audit.retention.
    #[command(after_long_help = "\
Examples:
  portiere audit list --limit 20
  portiere audit list --since 2h --outcome refused
  portiere audit list --user ada --since 2030-01-31 --until 2030-02-28 --json")]
    List(list::List),
    /// Write all entries, oldest first, as JSON lines or as CSV
    ///
    /// Takes the memory of one page, however long the log is. In CSV, a value that a spreadsheet would take for a
    /// formula begins with an apostrophe. An entry that is not sealed yet has no block.
    #[command(after_long_help = "\
Examples:
  portiere audit export --since 30d > audit.jsonl
  portiere audit export --format csv --kind signin.failed > failures.csv")]
    Export(list::Export),
    /// Show the newest sealed entries, and with -f new entries as they come
    ///
    /// Entries come in the order in which they were sealed, about a second after they were written. No entry is left
    /// out or comes twice, however late it was committed. With --json, each entry is an object on a line of its own.
    #[command(after_long_help = "\
Examples:
  portiere audit tail -n 50
  portiere audit tail -f --kind signin.failed --json")]
    Tail(tail::Tail),
    /// List what was refused to unauthenticated callers, newest first
    ///
    /// Lists sign-ins with names that nobody has (name), applications that failed to authenticate (client), and callers
    /// that were told to wait because too much had failed before (throttled). They have no entries in the log, so that
    /// nobody can fill the disk with them. They are counted by minute, address and application, and kept as long as
    /// entries are.
    #[command(after_long_help = "\
Examples:
  portiere audit strangers
  portiere audit strangers --since 7d --limit 500 --json")]
    Strangers(strangers::Strangers),
    /// Prove that the log is what was sealed
    ///
    /// Names every entry that was edited, removed, inserted or moved to another block, and every block that was edited
    /// or is missing. To find out whether the newest blocks were cut off or rewritten, it compares the log with what
    /// this node saw last (audit.mark in its data folder). Only a head that was exported before and kept elsewhere
    /// (--head) shows this for certain. Needs the audit key, which is not in the database. Exits with 1 if anything is
    /// wrong.
    #[command(after_long_help = "\
Examples:
  portiere audit verify
  portiere audit verify --head /mnt/elsewhere/audit-head.json --json")]
    Verify(verify::Verify),
    /// Print the end of the chain, to keep in another place
    ///
    /// With the head, you can prove later that nothing was cut off (portiere audit verify --head). A machine to which a
    /// stream delivers the log has the entries themselves, and the block of each, but no proof that it was sent all of
    /// them: keep a head as well.
    #[command(after_long_help = "\
Examples:
  portiere audit head > /mnt/elsewhere/audit-head-$(date +%F).json")]
    Head,
    /// Show how far sealing and streams are
    Status,
    /// Continue under this node's audit key although the previous key is lost
    ///
    /// Blocks that were sealed under the lost key stay, and can no longer be proved. The change is written to the audit
    /// log. If the key is not lost, name its file in audit.old_keys instead; nothing else is needed.
    Rekey(Meant),
    /// Continue with the log as it is, although this node saw a longer or a different log
    ///
    /// A node records in its data folder (audit.mark) where the log ended when it looked last. If the log in the
    /// database ends before that, or has another block there, the node does not seal it any further, and says so in its
    /// log, in audit status and on /readyz. Either somebody removed or rewrote entries, or the database was restored
    /// from a backup or failed over with a loss. Find out which, and then confirm with this command that it is
    /// intended, at each node that reports it. The confirmation is written to the audit log. portiere restore does this
    /// by itself.
    Accept(Meant),
    /// Remove blocks that retention keeps because they are not what was sealed
    ///
    /// Retention removes a block only if it is proved to be what was sealed, since the note that retention leaves would
    /// hide what was done to the block. Before you remove the block, save what portiere audit verify finds in it
    /// elsewhere. Blocks whose time has not come stay. The removal is written to the audit log.
    #[command(after_long_help = "\
Examples:
  portiere audit verify > findings.txt
  portiere audit discard 117")]
    Discard(Discard),
    /// Skip an entry that the receiver of a stream refuses for good
    ///
    /// An HTTP receiver that answers 400, 413 or another status of that kind to a single entry would refuse it forever:
    /// the stream stops there, and portiere audit status names the entry. The entry stays in the log. That it was not
    /// delivered is written to the audit log, and delivered. If portiere audit status says that the receiver refuses
    /// every line, first check its URL and the form in which it wants entries.
    #[command(after_long_help = "\
Examples:
  portiere audit status
  portiere audit skip http 01jh2c6k3v8xq4w9t5b7n0m1pa")]
    Skip(Skip),
    /// Set a stream to another place in the log
    ///
    /// A stream begins with the oldest entry that is kept. With now, it begins or continues with what is sealed from
    /// then on. With an earlier block, it delivers again what comes after that block. A stream that is not in the
    /// configuration yet also keeps entries from being removed from then on. Entries before the place that it is set to
    /// are not delivered, and stay in the log. The change is written to the audit log.
    #[command(after_long_help = "\
Examples:
  portiere audit stream http --after-block now
  portiere audit export --after-block 0 > all.jsonl
  portiere audit stream http --after-block 1042:5f0c21aa93d7")]
    Stream(stream::Set),
    /// Give up a stream, so that entries that it has not delivered are no longer kept for it
    ///
    /// For a stream that is no longer in the configuration. A stream that still is begins again where the log begins.
    Forget(Forget),
}

/// The argument of a command that asks for confirmation.
#[derive(Clone, Debug, Args, Serialize, Deserialize)]
pub struct Meant {
    /// Do not ask for confirmation
    #[arg(long)]
    pub yes: bool,
}

/// An entry of a stream.
#[derive(Clone, Debug, Args, Serialize, Deserialize)]
pub struct Skip {
    /// The stream, as `portiere audit status` shows it: syslog or http
    #[arg(value_parser = stream::streams(), hide_possible_values = true)]
    pub stream: String,
    /// The entry's id, as it is named there
    pub line: String,
}

/// The arguments of `audit discard`.
#[derive(Clone, Debug, Args, Serialize, Deserialize)]
pub struct Discard {
    /// The last block to remove, with all blocks before it
    #[arg(value_parser = clap::value_parser!(i64).range(1..))]
    pub block: i64,
    /// Do not ask for confirmation
    #[arg(long)]
    pub yes: bool,
}

/// A stream.
#[derive(Clone, Debug, Args, Serialize, Deserialize)]
pub struct Forget {
    /// The stream, as `portiere audit status` shows it: syslog or http
    #[arg(value_parser = stream::streams(), hide_possible_values = true)]
    pub stream: String,
    /// Do not ask for confirmation at a terminal
    #[arg(long)]
    #[serde(default)]
    pub yes: bool,
}

impl Command {
    /// Completes the command with the time, with files, and with the user's confirmation.
    pub fn complete(&mut self, input: &mut Input) -> Result<(), Failure> {
        match self {
            Command::List(list) => list.wanted.complete(),
            Command::Export(export) => export.wanted.complete(),
            Command::Tail(tail) => tail.wanted.complete(),
            Command::Strangers(strangers) => strangers.complete(),
            Command::Verify(verify) => verify.complete(),
            Command::Rekey(Meant { yes: false }) => {
                meant(input, "What was sealed before can then be proved only with the old key.", "rekey")
            }
            Command::Accept(Meant { yes: false }) => {
                meant(input, "What was removed from the log, or rewritten, is then no longer reported.", "accept")
            }
            Command::Discard(Discard { yes: false, .. }) => {
                meant(input, "What is wrong with these blocks can then no longer be seen.", "discard")
            }
            Command::Forget(Forget { stream, yes }) => {
                let what = "Entries that it has not delivered are then no longer kept for it.";
                confirm(input, *yes, (what, stream))
            }
            _ => Ok(()),
        }
    }

    /// Returns whether the output is printed as it is, JSON or not; if not, it is shown like any other answer.
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

    /// Returns whether the output is CSV.
    pub fn prints_csv(&self) -> bool {
        matches!(self, Command::Export(export) if export.format == list::Format::Csv)
    }

    /// Returns whether the command waits for what a server writes.
    pub fn needs_server(&self) -> bool {
        matches!(self, Command::Tail(tail) if tail.follow)
    }

    /// Returns whether a step may take as long as it takes to read the whole log.
    pub fn checks_all(&self) -> bool {
        matches!(self, Command::Verify(_))
    }

    /// Returns how long to wait before the next page, after an empty one.
    pub fn pause(&self) -> Option<Duration> {
        self.needs_server().then_some(Duration::from_millis(500))
    }

    /// Returns how far a long answer is, for a terminal.
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
            Command::Strangers(strangers) => strangers.go_on(&next),
            _ => {}
        }
    }

    /// Returns the command's name if it begins to read lines, which is recorded once, however many pages follow.
    fn begins_to_read(&self) -> Option<&'static str> {
        match self {
            Command::List(list) if !list.goes_on => Some("list"),
            Command::Export(export) if !export.goes_on => Some("export"),
            Command::Tail(tail) if tail.behind.is_none() => Some("tail"),
            _ => None,
        }
    }

    /// Carries out the command. Records that lines were read before the caller has them.
    pub async fn execute(self, app: &App) -> Reply {
        let reads = self.begins_to_read();
        let mut reply = self.carry_out(app).await;
        if let (Some(command), Ok(outcome)) = (reads, &mut reply)
            && let Err(why) = app.tell_of_reading(command).await
        {
            outcome.notes.push(format!("the audit log may have no entry of this reading: {why}"));
        }
        reply
    }

    async fn carry_out(self, app: &App) -> Reply {
        match self {
            Command::List(list) => list.execute(app).await,
            Command::Export(export) => export.execute(app).await,
            Command::Tail(tail) => tail.execute(app).await,
            Command::Strangers(strangers) => strangers.execute(app).await,
            Command::Verify(verify) => verify.execute(app).await,
            Command::Head => head(app).await,
            Command::Status => status(app).await,
            Command::Rekey(_) => rekey(app).await,
            Command::Accept(_) => accept(app).await,
            Command::Discard(Discard { block, .. }) => match app.discard_audit(block).await? {
                Ok(0) => Err(Failure::Refused(format!("no block up to {block} is due for removal"))),
                Ok(blocks) => {
                    let what = if blocks == 1 { "1 block is".to_owned() } else { format!("{blocks} blocks are") };
                    Ok(Outcome::new(format!("{what} gone"), json!({ "blocks": blocks })))
                }
                Err(why) => Err(Failure::Failed(why)),
            },
            Command::Skip(Skip { stream, line }) => match app.skip_line(&stream, &line).await? {
                Ok(()) => {
                    let text = format!("line {line} will be skipped for stream {stream}");
                    Ok(Outcome::new(text, json!({ "stream": stream, "line": line })))
                }
                Err(why) => Err(Failure::Refused(why)),
            },
            Command::Stream(set) => set.execute(app).await,
            Command::Forget(Forget { stream, .. }) => match app.forget_stream(&stream).await? {
                true => Ok(Outcome::new(format!("stream {stream} is given up"), json!({ "stream": stream }))),
                false => Err(Failure::NotFound(format!("no stream is called {stream}; see: portiere audit status"))),
            },
        }
    }
}

/// Asks the user to confirm.
fn meant(input: &mut Input, what: &str, word: &str) -> Result<(), Failure> {
    match input.line(&format!("{what}\nType {word} to go on: "))? {
        Some(typed) if typed == word => Ok(()),
        Some(_) => Err(Failure::Failed("nothing was done".into())),
        None => Err(Failure::Use("no terminal to ask for confirmation: confirm with --yes".into())),
    }
}

async fn rekey(app: &App) -> Reply {
    let Rekeyed { key, changed } = app.rekey().await?.map_err(Failure::Failed)?;
    let text = match changed {
        true => format!("the audit log is sealed under key {key}"),
        false => format!("the audit log can be sealed under key {key} as it is: nothing was changed"),
    };
    Ok(Outcome::new(text, json!({ "key": key, "changed": changed })))
}

async fn accept(app: &App) -> Reply {
    let Some(accepted) = app.accept_audit().await? else {
        let text = "the log continues from what this node saw: there is nothing to accept, and nothing was changed";
        return Ok(Outcome::new(text, json!({ "block": null, "streams": [], "changed": false })));
    };
    let mut text = format!("the audit log goes on after block {}", accepted.block);
    for stream in &accepted.streams {
        text.push_str(&format!("\nstream {stream} goes on as well"));
    }
    Ok(Outcome::new(text, json!({ "block": accepted.block, "streams": accepted.streams, "changed": true })))
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
        let (behind, moved) = (stream.lines.to_string(), stream.moved_at.map(when).unwrap_or_default());
        table.row([stream.name.clone(), behind, seconds(stream.waits), moved, stream.trouble.clone()]);
    }
    let idle = app.cannot_seal().await?;
    let about =
        idle.iter().map(|why| format!("this node does not seal: {}\n", harmless(why))).collect::<String>() + &about;
    let alarms = app.audit_wrong().await?;
    let wrong: String = alarms.iter().map(|why| format!("WRONG: {}\n", harmless(why))).collect();
    let streams = if lag.streams.is_empty() { "no streams\n".to_owned() } else { table.render() };
    let shown: Vec<Value> = lag
        .streams
        .iter()
        .map(|stream| {
            json!({
                "name": stream.name,
                "behind": stream.lines,
                "oldest_age_seconds": stream.waits.whole_seconds(),
                "delivered_at": stream.moved_at.map(iso),
                "stuck": stream.stuck,
                "trouble": (!stream.trouble.is_empty()).then_some(&stream.trouble),
            })
        })
        .collect();
    let shown = json!({
        "block": lag.end.number,
        "lines_kept": lag.kept,
        "key": lag.key,
        "key_of_this_node": app.audit_key(),
        "does_not_seal": idle,
        "unsealed": lag.unsealed,
        "unsealed_age_seconds": lag.unsealed_for.whole_seconds(),
        "streams": shown,
        "wrong": alarms,
    });
    Ok(Outcome::new(format!("{wrong}{about}\n{streams}"), shown))
}
