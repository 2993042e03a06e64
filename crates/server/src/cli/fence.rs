//! `fence`: what is refused after a failover of the database, and which nodes are waited for.

use super::input::Input;
use super::outcome::{Failure, Outcome, Reply};
use super::text::{Table, facts};
use crate::fence::shown;
use app::App;
use app::ward::Status;
use clap::{Args, Subcommand};
use rules::utc::when;
use serde::{Deserialize, Serialize};
use store::tables::fences::State;

/// The subcommands of `fence`.
#[derive(Clone, Debug, Subcommand, Serialize, Deserialize)]
pub enum Command {
    /// Show whether a fence is up, and which nodes it waits for
    ///
    /// A database server that fails over may have lost the last acknowledged writes. Each node then replays the endings
    /// that it had acknowledged: sign-outs, revocations, used codes and tokens, changed passwords. Until all nodes that
    /// were there have done so, the fence is up: sessions and tokens from before it are refused, and users who sign in
    /// again are let in.
    Status,
    /// Stop waiting for a node that will not return
    ///
    /// Writes that the node had acknowledged in the last moments before the failover, and that the database lost, stay
    /// lost: a token that was revoked there may be valid again, a session that was ended there may continue, an old
    /// password may be the password again. Everything that was issued before the fence is accepted again from then on.
    /// Start the node instead if you can: it needs its data folder, and no request. The decision is written to the
    /// audit log.
    #[command(after_long_help = "\
Examples:
  portiere fence status
  portiere fence accept-loss login2-8f3k2a --yes")]
    AcceptLoss(AcceptLoss),
}

/// The arguments of `fence accept-loss`.
#[derive(Clone, Debug, Args, Serialize, Deserialize)]
pub struct AcceptLoss {
    /// The node, as `portiere fence status` shows it
    pub node: String,
    /// Do not ask for confirmation
    #[arg(long)]
    pub yes: bool,
}

impl Command {
    /// Asks the user to confirm.
    pub fn complete(&mut self, input: &mut Input) -> Result<(), Failure> {
        let Command::AcceptLoss(AcceptLoss { node, yes: false }) = self else { return Ok(()) };
        let question = format!(
            "What node {node} acknowledged and the database lost stays lost: what was revoked or ended there may \
             become valid again.\n\
             Type the node's name to go on: "
        );
        match input.line(&question)? {
            Some(typed) if typed == *node => Ok(()),
            Some(_) => Err(Failure::Failed("nothing was done".into())),
            None => Err(Failure::Use("no terminal to ask for confirmation: accept the loss with --yes".into())),
        }
    }

    /// Carries out the command.
    pub async fn execute(self, app: &App) -> Reply {
        match self {
            Command::Status => Ok(told(&app.fences().await?, String::new())),
            Command::AcceptLoss(AcceptLoss { node, .. }) => {
                let status = app.accept_loss(&node).await??;
                let rest = if status.up { "the fence still waits for others" } else { "the fence is lifted" };
                Ok(told(&status, format!("node {node} is no longer waited for; {rest}\n")))
            }
        }
    }
}

fn told(status: &Status, before: String) -> Outcome {
    let Some(fence) = &status.fence else {
        let text = "no fence was ever raised: no failover of the database that could have lost writes was seen";
        return Outcome::new(text, shown(status));
    };
    let state = match status.up {
        true => "up: what was issued before it is refused; new sign-ins work",
        false => "lifted",
    };
    // Of earlier fences, only the nodes that are still waited for: as long as there are any, this fence is up.
    let mut nodes = Table::new(["NODE", "STATE", "SINCE", "FENCE"], true);
    for node in status.nodes.iter().filter(|node| node.number == fence.number || node.state == State::Waiting) {
        nodes.row([node.node.clone(), node.state.name().into(), when(node.at), node.number.to_string()]);
    }
    let about = facts(&[
        ("fence", fence.number.to_string()),
        ("state", state.into()),
        ("raised", when(fence.at)),
        ("server", fence.identity.clone()),
        ("this node", status.node.clone()),
    ]);
    Outcome::new(format!("{before}{about}\n{}", nodes.render()), shown(status))
}
