//! `config`: what can be set, what is set, and what is wrong with it.

use super::outcome::{Failure, Outcome, Reply};
use super::text::Table;
use crate::config::{Config, Problem, Sources, example};
use clap::Subcommand;
use serde_json::{Value, json};
use std::path::Path;

/// What can be done about the configuration.
#[derive(Clone, Debug, Subcommand)]
pub enum Command {
    /// Print a configuration file with every option, its documentation and its default
    #[command(after_long_help = "\
Examples:
  portiere config example > portiere.toml")]
    Example,
    /// Name everything that is wrong with the configuration, at once
    ///
    /// Reads what the server would read: the file, PORTIERE_ variables and --data. Ends with 2 when something is wrong.
    #[command(after_long_help = "\
Examples:
  portiere config check --config portiere.toml")]
    Check,
    /// Print every option with the value in force and where that came from; secrets are hidden
    Show,
}

impl Command {
    /// Does it.
    pub fn run(&self, sources: Sources) -> Reply {
        match self {
            Command::Example => Ok(Outcome::new(example(), json!({ "example": example() }))),
            Command::Check => {
                let file = sources.file.clone();
                Ok(checked(file.as_deref(), &load(sources)?))
            }
            Command::Show => Ok(shown(&load(sources)?)),
        }
    }
}

/// Loads the configuration. Everything that is wrong with it is told at once, a line each.
pub fn load(sources: Sources) -> Result<Config, Failure> {
    Config::load(sources).map_err(|problems| {
        let lines: Vec<String> = problems.iter().map(Problem::to_string).collect();
        Failure::Use(lines.join("\n"))
    })
}

fn checked(file: Option<&Path>, config: &Config) -> Outcome {
    let what = file.map_or("no configuration file; the defaults".into(), |file| file.display().to_string());
    let warnings: String = config.warnings.iter().map(|warning| format!("warning: {warning}\n")).collect();
    let json = json!({ "file": file, "problems": [], "warnings": config.warnings });
    Outcome::new(format!("{warnings}{what}: nothing is wrong"), json)
}

fn shown(config: &Config) -> Outcome {
    let mut table = Table::new(["OPTION", "VALUE", "FROM"], true);
    let mut json = Vec::new();
    for option in config.show() {
        let value = option.value.clone().unwrap_or_default();
        table.row([option.name.into(), value, option.source.as_str().into()]);
        json.push(json!({ "name": option.name, "value": option.value, "source": option.source.as_str() }));
    }
    Outcome::new(table.render(), Value::Array(json))
}
