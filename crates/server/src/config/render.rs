//! Renders the table for people: the example file, the documentation, the effective values.

use super::declare::{Declared, Section, When};
use super::options::{Config, SECTIONS};
use super::reader::Source;
#[cfg(test)]
use super::reader::variable;
use super::value::{Size, Value};
use std::fmt::Write as _;
use store::sqlite;

/// An option's effective value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shown {
    /// The option.
    pub name: &'static str,
    /// Its value as TOML, `(hidden)` for a secret, `None` when it is unset.
    pub value: Option<String>,
    /// Where the value came from.
    pub source: Source,
}

impl Shown {
    /// Returns the value for programs: a TOML value as the JSON value of the same kind.
    pub fn json(&self) -> serde_json::Value {
        let Some(text) = &self.value else { return serde_json::Value::Null };
        let table = format!("value = {text}").parse::<toml::Table>().ok();
        let value = table.and_then(|mut table| serde_json::to_value(table.remove("value")?).ok());
        value.unwrap_or_else(|| serde_json::Value::String(text.clone()))
    }
}

impl Config {
    /// Returns every option's effective value and source, in the table's order. A computed value is what a server on
    /// this machine would have. Secrets are hidden.
    pub fn show(&self) -> Vec<Shown> {
        let source = |name| self.sources.get(name).copied().unwrap_or(Source::Default);
        let shown = |(name, value): (_, Option<String>)| Shown {
            name,
            value: value.or_else(|| self.computed(name)),
            source: source(name),
        };
        self.values().into_iter().map(shown).collect()
    }

    /// Returns the value of an option that was left unset, if it is computed.
    fn computed(&self, name: &str) -> Option<String> {
        let port = self.server.listen.first().map_or(0, |address| address.port());
        let (threads, memory) = crate::hashing::limits(self).unzip();
        match name {
            "public_url" => self.public_url(port).show(),
            "store.readers" => usize::try_from(sqlite::Options::at("").readers).ok()?.show(),
            "hash.threads" => threads?.show(),
            "hash.memory" => Size(memory?).show(),
            "limits.stop_delay" => self.stop_delay().show(),
            "keys.master" if self.keys.master_key.is_none() => self.master_key_file().show(),
            "audit.key_file" if self.audit.key.is_none() => self.audit_key_file().show(),
            _ => None,
        }
    }
}

/// Returns a configuration file with every option, its documentation and its default, all commented out.
pub fn example() -> String {
    let mut out =
        String::from("# Portiere's configuration. Every option is optional; the commented values are the defaults.\n");
    for section in SECTIONS {
        let header = section.prefix.trim_end_matches('.');
        let _ = write!(out, "\n{}", comment(section.about));
        if !header.is_empty() {
            let _ = writeln!(out, "[{header}]");
        }
        for option in section.options {
            let _ = write!(out, "\n{}# Takes {}.{}\n", comment(option.doc), taken(option), live(option));
            let _ = writeln!(out, "#{}", assignment(section, option));
        }
    }
    out
}

/// Says what an option takes, and within which bounds.
fn taken(option: &Declared) -> String {
    let bounds = (option.bounds)().map_or(String::new(), |bounds| format!(": {bounds}"));
    format!("{}{bounds}", (option.takes)())
}

fn live(option: &Declared) -> &'static str {
    if option.when == When::Live { " Its file is read again when it changes." } else { "" }
}

fn comment(doc: &str) -> String {
    doc.lines().map(|line| format!("# {}\n", line.trim())).collect()
}

fn assignment(section: &Section, option: &Declared) -> String {
    let key = &option.name[section.prefix.len()..];
    match (option.default)() {
        Some(value) => format!("{key} = {value}"),
        None => format!("{key} =    # {}", option.computed.replace('`', "")),
    }
}

/// Returns the page `docs/config.md`.
#[cfg(test)]
pub fn markdown() -> String {
    let mut out = String::from(
        "# Configuration

<!-- Generated from crates/server/src/config/options.rs; `UPDATE_DOCS=1 make test` writes it again. -->

The server starts with no configuration at all. Set an option in the TOML file given with `--config` (or
`PORTIERE_CONFIG`), in its environment variable, which overrides the file, or with a flag (`--listen`, `--public-url`,
`--data`), which overrides both. In a variable, commas separate the items of a list, and an empty variable counts as
unset. `portiere config example` prints a file to start from, `config check` reports every problem at once, and `config
show` prints the effective values and where each came from.

Relative paths start at the working directory. A duration is a number with `ms`, `s`, `m`, `h` or `d`; a size is a
number with `B`, `KiB`, `MiB` or `GiB`. The server reads options when it starts. If an option is marked *live*, the
file that it names is read again when it changes.
",
    );
    for section in SECTIONS {
        let header = section.prefix.trim_end_matches('.');
        let title = if header.is_empty() { "The server".to_owned() } else { format!("`[{header}]`") };
        let _ = writeln!(out, "\n## {title}\n\n{}\n", sentence(section.about));
        out.push_str("| option | takes | default | what it does |\n|---|---|---|---|\n");
        for option in section.options {
            let _ = writeln!(out, "{}", row(option));
        }
    }
    out
}

#[cfg(test)]
fn row(option: &Declared) -> String {
    let default = (option.default)().map_or(option.computed.to_owned(), |value| format!("`{value}`"));
    let live = if option.when == When::Live { " *live*" } else { "" };
    let cells = [
        format!("`{}`{live}<br>`{}`", option.name, variable(option.name)),
        taken(option),
        default,
        sentence(option.doc),
    ];
    format!("| {} |", cells.map(|cell| cell.replace('|', "\\|")).join(" | "))
}

#[cfg(test)]
fn sentence(doc: &str) -> String {
    doc.lines().map(str::trim).collect::<Vec<_>>().join(" ")
}
