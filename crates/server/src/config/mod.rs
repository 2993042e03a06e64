//! The configuration: one table of options ([`SECTIONS`]), from which the TOML parser, the environment overrides, the
//! example file, the checks, the documentation and the typed [`Config`] are made.
//!
//! Owns what an operator may change, and is the only module that reads the environment. Does not own what a change
//! means: the values are passed on as plain types.

mod checks;
mod declare;
mod endpoint;
mod file;
mod options;
mod public_url;
mod reader;
mod render;
mod secret_file;
mod service_links;
mod store_url;
#[cfg(test)]
mod tests;
mod value;

pub use checks::{Check, hashing_memory};
pub use options::*;
pub use public_url::{CHANGE_PASSWORD, PROBES, PublicUrl};
pub use reader::{Problem, Source, declared, variable};
pub use render::example;
#[cfg(test)]
pub use render::markdown;
pub use secret_file::SecretFile;
pub use store_url::StoreUrl;
pub use value::{
    Journal, KeyFile, LogFormat, Loss, ProxyHeader, Raw, Replication, Share, Size, Statements, Synchronous, TryIt,
    Value, all, quoted,
};

use reader::{Given, Reader, find, suggestion};
use std::ffi::OsString;
use std::fmt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The variable that names the configuration file when no flag does.
const CONFIG_VARIABLE: &str = "PORTIERE_CONFIG";

/// The variables of `portiere move` alone: URLs, so that their passwords are not in the arguments.
const OF_COMMANDS: [&str; 2] = ["PORTIERE_MOVE_FROM", "PORTIERE_MOVE_TO"];

/// What the names of our variables begin with.
const PREFIX: &str = "PORTIERE_";

/// Longer than a proxy needs to see that a node is no longer ready: two checks, a second apart (deploy/haproxy.cfg).
const STOP_DELAY: Duration = Duration::from_secs(3);

/// What the configuration is made from.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    /// The TOML file, if there is one.
    pub file: Option<PathBuf>,
    /// The environment, as names and values.
    pub env: Vec<(String, String)>,
    /// Options given by flags: the option's dotted name and the text. A name that is repeated makes a list.
    pub flags: Vec<(&'static str, String)>,
    /// The variables and flags (`--data`) whose values are not UTF-8.
    pub unreadable: Vec<String>,
}

impl Sources {
    /// Returns the process's environment with the flags of the command line. The file is `file`, else the one that
    /// `PORTIERE_CONFIG` names, else none.
    pub fn of_process(file: Option<PathBuf>, flags: Vec<(&'static str, String)>) -> Self {
        let env = environment();
        let named = || env.iter().find(|(name, value)| name == CONFIG_VARIABLE && !value.is_empty());
        let file = file.or_else(|| named().map(|(_, value)| PathBuf::from(value)));
        Sources { file, env, flags, unreadable: unreadable(variables()) }
    }

    /// Returns the format of log lines, even if something else is wrong: that is told in this format, too.
    pub fn log_format(&self) -> LogFormat {
        self.read().0.take("log.format", || LogFormat::Text, |_: &LogFormat| Ok(()))
    }

    /// Reads what the sources give, and finds the variables that are no options.
    fn read(&self) -> (Reader, Strange) {
        let mut reader = Reader::default();
        if let Some(path) = &self.file {
            file::read(path, &mut reader);
        }
        reader.problems.extend(self.unreadable.iter().map(|place| not_utf8(place)));
        let strange = read_env(&self.env, &mut reader);
        read_flags(&self.flags, &mut reader);
        (reader, strange)
    }
}

/// Returns the process's environment, without entries that are not UTF-8.
pub fn environment() -> Vec<(String, String)> {
    variables().filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?))).collect()
}

#[allow(clippy::disallowed_methods, reason = "the one place that reads the environment")]
fn variables() -> impl Iterator<Item = (OsString, OsString)> {
    std::env::vars_os()
}

/// Returns the names of our variables that are not UTF-8. Leaving them out would mean going on with a default, for
/// example with an empty SQLite database.
fn unreadable(all: impl Iterator<Item = (OsString, OsString)>) -> Vec<String> {
    let ours = all.filter(|(name, _)| name.as_encoded_bytes().starts_with(PREFIX.as_bytes()));
    let wrong = ours.filter(|(name, value)| name.to_str().is_none() || value.to_str().is_none());
    wrong.map(|(name, _)| name.to_string_lossy().into_owned()).collect()
}

/// Returns everything that is wrong with the file at `file`, taken alone.
#[cfg(test)]
fn check(file: &Path) -> Vec<Problem> {
    Config::load(Sources { file: Some(file.to_owned()), ..Sources::default() }).err().unwrap_or_default()
}

impl Config {
    /// Reads file, environment and flags, each overriding the one before. The error is every problem at once.
    pub fn load(sources: Sources) -> Result<Config, Vec<Problem>> {
        let (config, problems) = Config::judged(sources);
        if problems.is_empty() { Ok(config) } else { Err(problems) }
    }

    /// Does the same, and returns a configuration in any case: an option that is wrong has its default there.
    pub fn judged(sources: Sources) -> (Config, Vec<Problem>) {
        let (mut reader, (unknown, links)) = sources.read();
        let mut config = options::build(&mut reader);
        // About the default of an option that is wrong by itself there is nothing to say.
        let wrong: Vec<String> = reader.problems.iter().filter_map(|problem| problem.option.clone()).collect();
        let judged = |option: &&str| !wrong.iter().any(|wrong| wrong == option);
        let joint = checks::together(&config).into_iter();
        let joint = joint.filter(|joint| judged(&joint.option) && joint.beside.iter().all(judged));
        reader.problems.extend(joint.map(|joint| Problem {
            place: String::new(),
            option: Some(joint.option.to_owned()),
            message: joint.why,
        }));
        config.sources = reader.sources;
        config.warnings = unknown.iter().map(Unknown::to_string).chain(links).collect();
        config.unknown = unknown;
        config.warnings.extend(sources.file.as_deref().and_then(|file| config.secrets_for_all(file)));
        let outside = config.server.listen.iter().any(|address| !address.ip().is_loopback());
        if outside && config.server.public_url.is_none() {
            config.warnings.push("public_url is not set: the server answers to localhost only".to_owned());
        }
        config.warnings.extend(checks::short_sessions(&config));
        (config, reader.problems)
    }

    /// Returns whether the data folder is the one that is meant, in spite of these problems: it was given and is right by
    /// itself, or its default is right because no name that nobody knows can stand for it.
    pub fn knows_its_data(&self, problems: &[Problem]) -> bool {
        let is_given = self.sources.contains_key("data");
        !problems.iter().any(|problem| match problem.option.as_deref() {
            Some("data") => true,
            Some(name) => !is_given && find(name).is_none(),
            None => !is_given,
        })
    }

    /// Warns if a file that everybody on the machine can read holds secrets.
    fn secrets_for_all(&self, file: &Path) -> Option<String> {
        let in_file = |option: &&str| self.sources.get(*option) == Some(&Source::File);
        let options = ["keys.master_key", "audit.key"].into_iter();
        let options = options.chain(self.store.url.has_password().then_some("store.url"));
        let secrets: Vec<&str> = options.filter(in_file).collect();
        let open = file.metadata().is_ok_and(|found| found.permissions().mode() & 0o007 != 0);
        (open && !secrets.is_empty()).then(|| {
            let (file, secrets) = (file.display(), secrets.join(", "));
            format!("{file} is open to everybody on this machine and holds {secrets}: chmod 640, and give it the group of the server")
        })
    }

    /// Says why the configured database cannot be the one that is meant, one sentence per reason; empty if it can.
    pub fn without_server(&self) -> Vec<String> {
        checks::without_server(self).into_iter().map(|joint| format!("{}: {}", joint.option, joint.why)).collect()
    }

    /// Returns the public URL; if none is configured, localhost with `port`, on which the server really listens.
    pub fn public_url(&self, port: u16) -> PublicUrl {
        let default = || PublicUrl::localhost(self.tls.certificate.is_some(), port);
        self.server.public_url.clone().unwrap_or_else(default)
    }

    /// Returns how long a server that was told to stop still answers. Where no other node can take over, a delay would
    /// only make everybody wait longer for the server's return.
    pub fn stop_delay(&self) -> Duration {
        let alone = matches!(self.store.url, StoreUrl::Sqlite(_));
        self.limits.stop_delay.unwrap_or(if alone { Duration::ZERO } else { STOP_DELAY })
    }

    /// Returns whether `listen` was left at its default, so that a machine without IPv6 may do with the first address.
    pub fn listens_by_default(&self) -> bool {
        !self.sources.contains_key("listen")
    }

    /// Returns the database file, if the database is one.
    pub fn database(&self) -> Option<PathBuf> {
        match &self.store.url {
            StoreUrl::Sqlite(file) => Some(self.server.data.join(file)),
            StoreUrl::Postgres(_) | StoreUrl::Mysql(_) => None,
        }
    }

    /// Returns the file of the key that seals the audit log.
    pub fn audit_key_file(&self) -> SecretFile {
        self.audit.key_file.clone().unwrap_or_else(|| SecretFile::of_ours(self.server.data.join("audit.key")))
    }

    /// Returns the audit key, if the key itself was given instead of a file.
    pub fn audit_key(&self) -> Option<crate::private::Key> {
        self.audit.key.as_ref().and_then(checks::decode_master_key)
    }

    /// Returns the file of the master key.
    pub fn master_key_file(&self) -> SecretFile {
        self.keys.master.clone().unwrap_or_else(|| SecretFile::of_ours(self.server.data.join("master.key")))
    }

    /// Returns the master key, if the key itself was given instead of a file.
    pub fn master_key(&self) -> Option<crate::private::Key> {
        self.keys.master_key.as_ref().and_then(checks::decode_master_key)
    }
}

/// A variable whose name begins as ours do, and that is no option.
#[derive(Clone, Debug)]
pub struct Unknown {
    name: String,
    /// A question whether another one was meant; empty if none is like it.
    nearest: String,
}

impl Unknown {
    /// Returns whether it is nearly the name of an option, which was meant and is not set.
    pub fn is_misspelled(&self) -> bool {
        !self.nearest.is_empty()
    }
}

impl fmt::Display for Unknown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the environment variable {} is not an option{}", self.name, self.nearest)
    }
}

/// The unknown variables, and a warning about those that Kubernetes makes.
type Strange = (Vec<Unknown>, Option<String>);

/// Passes every `PORTIERE_` variable that names an option to `reader`. Returns those that name none.
fn read_env(env: &[(String, String)], reader: &mut Reader) -> Strange {
    let ours = env.iter().filter(|(name, value)| name.starts_with(PREFIX) && !value.is_empty());
    let ours = ours.filter(|(name, _)| name != CONFIG_VARIABLE && !OF_COMMANDS.contains(&name.as_str()));
    let mut unknown = Vec::new();
    for (name, value) in ours {
        match declared().find(|option| variable(option.name) == *name) {
            Some(option) => {
                reader.give(option, Given { raw: Raw::Word(value.clone()), source: Source::Env, place: name.clone() });
            }
            None => unknown.push(name.as_str()),
        }
    }
    let (links, unknown) = service_links::apart(&unknown);
    let known = || declared().map(|option| variable(option.name)).chain(others());
    let no_option = |name: &str| Unknown { name: name.to_owned(), nearest: suggestion(PREFIX, name, known()) };
    (unknown.into_iter().map(no_option).collect(), service_links::warning(&links))
}

/// Returns the variables that belong to no option.
fn others() -> impl Iterator<Item = String> {
    [CONFIG_VARIABLE].into_iter().chain(OF_COMMANDS).map(str::to_owned)
}

fn read_flags(flags: &[(&'static str, String)], reader: &mut Reader) {
    for (at, (name, _)) in flags.iter().enumerate() {
        let repeated = flags[..at].iter().any(|(earlier, _)| earlier == name);
        let Some(option) = find(name).filter(|_| !repeated) else { continue };
        let words: Vec<&str> = flags.iter().filter(|(other, _)| other == name).map(|(_, word)| word.as_str()).collect();
        reader.give(option, Given { raw: Raw::Word(words.join(",")), source: Source::Flag, place: flag(name) });
    }
}

/// Returns the flag of an option.
fn flag(name: &str) -> String {
    format!("--{}", name.replace(['.', '_'], "-"))
}

/// Returns the problem of a variable or a flag, whose value is not told, as it may be a secret.
fn not_utf8(place: &str) -> Problem {
    let option = declared().find(|option| variable(option.name) == place || flag(option.name) == place);
    let message = "is not UTF-8: correct it, and name a path with such bytes by a symbolic link".to_owned();
    Problem { place: place.to_owned(), option: option.map(|option| option.name.to_owned()), message }
}
