//! Removals: `--if-present`, `--yes`, and the question at a terminal.

use super::input::Input;
use super::outcome::{Failure, Outcome, Reply};
use super::text::harmless;
use clap::Args;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// How something is removed.
#[derive(Clone, Debug, Default, Args, Serialize, Deserialize)]
pub struct Removal {
    /// If it does not exist, change nothing and exit with 0
    #[arg(long)]
    #[serde(default)]
    pub if_present: bool,
    /// Do not ask for confirmation at a terminal
    #[arg(long)]
    #[serde(default)]
    pub yes: bool,
}

/// What is removed, by its name as all commands about it take that, and how.
#[derive(Clone, Debug, Args, Serialize, Deserialize)]
pub struct Removed<Named: Args> {
    /// What.
    #[command(flatten)]
    #[serde(flatten)]
    pub named: Named,
    /// How.
    #[command(flatten)]
    #[serde(flatten)]
    pub removal: Removal,
}

impl Removal {
    /// Asks a user at a terminal to confirm; `what` says what it comes to.
    pub fn complete(&self, input: &mut Input, (what, name): (&str, &str)) -> Result<(), Failure> {
        confirm(input, self.yes, (what, name))
    }

    /// Returns what came of a removal: if it was to be removed only if present, that it is not there is no failure.
    pub fn ended(&self, reply: Reply, what: &str, (field, name): (&str, &str)) -> Reply {
        match reply {
            Err(Failure::NotFound(_)) if self.if_present => {
                let text = format!("there is no {what} \"{}\"; nothing was changed", harmless(name));
                Ok(Outcome::new(text, json!({ field: name, "removed": false })))
            }
            reply => reply,
        }
    }
}

/// Asks a user at a terminal to confirm, unless that was done with --yes. A script is not asked.
pub fn confirm(input: &mut Input, yes: bool, (what, name): (&str, &str)) -> Result<(), Failure> {
    if yes {
        return Ok(());
    }
    match input.line(&format!("{what}\nType {} to go on: ", harmless(name)))? {
        Some(typed) if typed != name => Err(Failure::Failed("nothing was done".into())),
        _ => Ok(()),
    }
}
