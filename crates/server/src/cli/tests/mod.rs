//! The command line, on real data folders.

mod absent;
mod chain;
mod codes;
mod doubt;
mod ends;
mod execute;
mod hashes;
mod lines;
mod lost;
mod parse;
mod removals;
mod restore;
mod spelling;

use super::input::Input;
use super::outcome::{Failure, Outcome, Reply};
use super::reach::Reach;
use super::request::Request;
use super::table::{self, Cli, Command, NoCommand};
use crate::boot::Instance;
use crate::config::{Config, Sources};
use std::path::Path;

/// A password that is strong enough.
pub const PASSWORD: &str = "correct horse battery staple\n";

/// Returns the configuration of a data folder.
pub fn config(data: &Path) -> Config {
    let flags = vec![("data", data.display().to_string()), ("hash.threads", "1".to_owned())];
    Config::load(Sources { flags, ..Sources::default() }).unwrap()
}

/// Opens the data folder as the server does.
pub async fn instance(data: &Path) -> Instance {
    let config = config(data);
    Instance::open(&config, Some(&config.public_url(8080))).await.unwrap()
}

/// Reads a line as a shell without quoting would.
pub fn cli(line: &str) -> Result<Cli, NoCommand> {
    table::parse(std::iter::once("portiere").chain(line.split_whitespace()).map(Into::into).collect())
}

/// Returns the request of a line, completed with `stdin`.
pub fn request(line: &str, stdin: &str) -> Result<Request, Failure> {
    match cli(line) {
        Ok(Cli { command: Command::Request(mut request), .. }) => {
            let bytes = std::io::Cursor::new(stdin.as_bytes().to_vec());
            request.complete(&mut Input::Stream(Box::new(bytes)))?;
            Ok(request)
        }
        Ok(_) => panic!("{line} is no request"),
        Err(NoCommand::Wrong { why, .. }) => Err(why),
        Err(NoCommand::Text(text)) => panic!("{text}"),
    }
}

/// A user at a shell.
pub struct Operator<'a>(pub Reach<'a>);

impl<'a> Operator<'a> {
    pub fn new(config: &'a Config) -> Self {
        Operator(Reach::new(config))
    }

    pub async fn types(&mut self, line: &str, stdin: &str) -> Reply {
        self.0.ask(&request(line, stdin)?).await
    }

    pub async fn does(&mut self, line: &str) -> Outcome {
        self.types(line, "").await.unwrap_or_else(|failure| panic!("{line}: {failure:?}"))
    }

    pub async fn cannot(&mut self, line: &str) -> String {
        match self.types(line, PASSWORD).await {
            Err(Failure::Failed(why) | Failure::Refused(why)) => why,
            Err(Failure::NotFound(why) | Failure::Exists(why)) => why,
            other => panic!("{line}: {other:?}"),
        }
    }
}
