//! Nodes: the servers that share a database.

use super::input::Input;
use super::outcome::{Failure, Outcome, Reply};
use super::text::Table;
use app::App;
use app::ward::{Shown, clock_told};
use clap::{Args, Subcommand};
use rules::utc::{iso, when};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The subcommands of `node`.
#[derive(Clone, Debug, Subcommand, Serialize, Deserialize)]
pub enum Command {
    /// List the nodes that share the database
    ///
    /// Every five seconds, each node reports that it is there, which version it runs, and how durable it takes a write
    /// to be that the database acknowledged: zero-loss, durable or bounded-loss. Its journal is kept (whatever ends
    /// something is in it before it is acknowledged), idle (nothing acknowledged can be lost at present), failing (it
    /// cannot be written, and the node is not ready), off (store.journal) or closed (the node has stopped, as it was
    /// told to). FENCE is the failover that waits for the node. A node that has missed two reports is silent, and after
    /// half a minute away. A node that was away for 30 days is taken off the list, unless a fence waits for it; a node
    /// without a journal, after an hour.
    List,
    /// Forget a node that is gone for good
    ///
    /// The node is taken off the list, and no failover waits for it. Refused for a node that was there in the last half
    /// minute, unless it has stopped since, and for a node that a fence waits for (portiere fence accept-loss). A
    /// forgotten node that is started again after all is a node like any other. The decision is written to the audit
    /// log.
    #[command(after_long_help = "\
Examples:
  portiere node list
  portiere node forget login2-8f3k2a --yes")]
    Forget(Forget),
}

/// The arguments of `node forget`.
#[derive(Clone, Debug, Args, Serialize, Deserialize)]
pub struct Forget {
    /// The node, as `portiere node list` shows it
    pub node: String,
    /// Do not ask for confirmation
    #[arg(long)]
    pub yes: bool,
}

impl Command {
    /// Asks the user to confirm.
    pub fn complete(&mut self, input: &mut Input) -> Result<(), Failure> {
        let Command::Forget(Forget { node, yes: false }) = self else { return Ok(()) };
        let question = format!(
            "After a failover of the database, the fence will not wait for what node {node} acknowledged.\nType the \
             node's name to go on: "
        );
        match input.line(&question)? {
            Some(typed) if typed == *node => Ok(()),
            Some(_) => Err(Failure::Failed("nothing was done".into())),
            None => Err(Failure::Use("no terminal to ask for confirmation: confirm with --yes".into())),
        }
    }

    /// Carries out the command.
    pub async fn execute(self, app: &App) -> Reply {
        match self {
            Command::List => Ok(list(&app.nodes().await?)),
            Command::Forget(Forget { node, .. }) => {
                app.forget_node(&node).await??;
                let text = format!("node {node} is forgotten: no failover waits for it any more");
                Ok(Outcome::new(text, json!({ "node": node, "forgotten": true })))
            }
        }
    }
}

fn list(nodes: &[Shown]) -> Outcome {
    if nodes.is_empty() {
        let text = "no nodes are registered: the database is a file, which has a single server, or no server runs";
        return Outcome::new(text, json!([]));
    }
    let mut table = Table::new(["NODE", "", "VERSION", "SEEN", "CLASS", "JOURNAL", "FENCE"], true);
    for one @ Shown { node, own, lives, fence, ahead, .. } in nodes {
        let (version, class, journal) = match &node.about {
            Some(about) => (about.version.clone(), about.class_name(), about.journal.name()),
            None => (String::new(), "", ""),
        };
        let state = match (own, lives) {
            (true, _) => "this one",
            (false, true) if one.is_silent() => "silent",
            (false, true) => "lives",
            (false, false) if node.has_stopped() => "stopped",
            (false, false) => "away",
        };
        let state = match ahead {
            None | Some(0) => state.to_owned(),
            Some(ahead) => format!("{state}, clock {}", clock_told(*ahead)),
        };
        let fence = fence.map(|number| format!("{number} waits")).unwrap_or_default();
        table.row([node.node.clone(), state, version, seen(one), class.into(), journal.into(), fence]);
    }
    Outcome::new(table.render(), nodes.iter().map(shown).collect())
}

/// Says when a node was last seen: how long ago, as long as that can be read at a glance.
fn seen(one: &Shown) -> String {
    match one.ago.map(|ago| ago.0 / 1000) {
        Some(seconds @ ..120) => format!("{seconds} s ago"),
        Some(seconds @ 120..7200) => format!("{} min ago", seconds / 60),
        _ => format!("{} UTC", when(one.node.seen)),
    }
}

fn shown(Shown { node, own, lives, fence, ahead, .. }: &Shown) -> Value {
    let about = node.about.as_ref();
    json!({
        "node": node.node,
        "this": own,
        "lives": lives,
        "seen_at": iso(node.seen),
        "version": about.map(|about| about.version.as_str()),
        "class": about.map(|about| about.class_name()),
        "journal": about.map(|about| about.journal.name()),
        "waiting_fence": fence,
        "clock_skew_seconds": ahead.map(|ahead| ahead as f64 / 1e3),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rules::{Span, Time};
    use store::tables::nodes::Node;

    #[test]
    fn a_node_that_was_killed_is_silent_and_the_list_says_since_when() {
        // Red with `when` for all of them: within a minute, a node that was killed looks like one that runs.
        let at = Time::from_seconds(86_400);
        let node = Node { node: "n".into(), seen: at, mark: 1, about: None, gone: None };
        let of = |ago: i64, lives| {
            let one = Shown {
                node: node.clone(),
                own: false,
                lives,
                ago: Some(Span::seconds(ago)),
                fence: None,
                ahead: None,
            };
            let row = list(&[one]).text.lines().nth(1).unwrap_or_default().to_owned();
            row.split("  ")
                .map(str::trim)
                .filter(|cell| !cell.is_empty())
                .skip(1)
                .take(3)
                .collect::<Vec<_>>()
                .join(", ")
        };
        assert_eq!(of(4, true), "lives, -, 4 s ago");
        assert_eq!(of(14, true), "silent, -, 14 s ago");
        assert_eq!(of(119, false), "away, -, 119 s ago");
        assert_eq!(of(7199, false), "away, -, 119 min ago");
        assert_eq!(of(7200, false), "away, -, 1970-01-02 00:00 UTC");
    }
}
