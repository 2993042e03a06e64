//! `audit stream`: sets a stream to another place in the log.

use super::super::one_of::OneOf;
use super::super::outcome::{Failure, Outcome, Reply};
use super::list::Behind;
use app::App;
use app::audit::sink::NAMES;
use clap::Args;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::str::FromStr;

/// The arguments of `audit stream`.
#[derive(Clone, Debug, Args, Serialize, Deserialize)]
pub struct Set {
    /// The stream, as `portiere audit status` shows it: syslog or http
    #[arg(value_parser = streams(), hide_possible_values = true)]
    pub stream: String,
    /// Continue after this block (0: from the beginning of the log), or after everything sealed by now
    #[arg(long, value_name = "BLOCK[:CODE]|now")]
    pub after_block: After,
}

/// Accepts any text: a stream that does not exist is refused in our own words.
pub fn streams() -> OneOf<String> {
    OneOf::new(NAMES, |name| Ok(name.to_owned()))
}

/// The place after which a stream continues.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum After {
    /// This block.
    Block(Behind),
    /// The last block that exists.
    Now,
}

impl FromStr for After {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "now" => Ok(After::Now),
            block => block.parse().map(After::Block).map_err(|why| format!("now, or {why}")),
        }
    }
}

impl Set {
    /// Carries out the command.
    pub async fn execute(self, app: &App) -> Reply {
        let after = match &self.after_block {
            After::Block(behind) => {
                behind.is_there(app).await?;
                Some(behind.block)
            }
            After::Now => None,
        };
        match app.set_stream(&self.stream, after).await? {
            Ok(block) => {
                let text = format!("stream {} goes on after block {block}", self.stream);
                Ok(Outcome::new(text, json!({ "stream": self.stream, "after_block": block })))
            }
            Err(why) => Err(Failure::Refused(why)),
        }
    }
}
