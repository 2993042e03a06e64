//! `hash`: what password hashing costs on this machine, and which parameters suit it.

use super::outcome::{Failure, Outcome, Reply, mutter};
use super::text::{Table, facts};
use crate::config::{Check as _, KeyFile, Raw, Size, Value as _, hashing_memory, quoted};
use crate::private;
use clap::{Args, Subcommand};
use hasher::tune::{self, Measured, Recommendation, Row};
use load::cli::Lines;
use serde_json::{Value, json};
use std::io;
use std::path::PathBuf;
use std::time::Duration;

/// The subcommands of `hash`.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Measure this machine, and recommend parameters for new password hashes
    ///
    /// Takes all cores for about a quarter of a minute and touches no data. It recommends the Argon2id parameters that
    /// cost an attacker most, among parameters with which one hash takes no longer than --target here, and all cores
    /// together no more memory than --memory; never below OWASP's list. Then it prints what the parameters that OWASP
    /// and RFC 9106 recommend cost.
    #[command(after_long_help = "\
Examples:
  portiere hash tune
  portiere hash tune --target 100ms --memory 256MiB --json")]
    Tune(Tune),
    /// Create a pepper: a secret of 32 bytes that every password hash then needs beside the database
    ///
    /// Prints the line for the configuration. Keep a copy of the file apart from the database and its backups: without
    /// the file, no password can be verified any more.
    #[command(after_long_help = "\
Examples:
  portiere hash pepper p1 /etc/portiere/pepper-p1")]
    Pepper(NewPepper),
    /// Create a binding key: a secret of 32 bytes that makes a hash worthless for any other account
    ///
    /// Hash workers require a binding key and a pepper. Prints the line for the configuration. Keep a copy of the file
    /// apart from the database and its backups: without the file, no password can be verified any more.
    #[command(after_long_help = "\
Examples:
  portiere hash binding b1 /etc/portiere/binding-b1")]
    Binding(NewPepper),
}

/// The arguments of `hash tune`.
#[derive(Debug, Args)]
pub struct Tune {
    /// The longest time that one hash may take on a machine with nothing else to do
    #[arg(long, value_name = "TIME", default_value = "250ms", value_parser = target)]
    target: Duration,
    /// The most memory that concurrent hashes may take together [default: a quarter of the machine's]
    #[arg(long, value_name = "SIZE", value_parser = memory)]
    memory: Option<Size>,
}

/// What a recommendation without --memory assumes.
const CEILING: &str = "If hash.memory is set to less than a quarter of the machine's memory (the default), fewer run \
                       side by side: name it with --memory.\n\n";

/// Where a new pepper or binding key goes.
#[derive(Debug, Args)]
pub struct NewPepper {
    /// Its name in stored hashes: 1 to 8 letters and digits
    #[arg(value_parser = KeyFile::name)]
    name: String,
    /// The file, which must not exist yet
    #[arg(value_hint = clap::ValueHint::FilePath)]
    file: PathBuf,
}

fn target(text: &str) -> Result<Duration, String> {
    let found = Duration::parse(&Raw::Word(text.to_owned()))?;
    let fits = (Duration::from_millis(1)..=Duration::from_secs(10)).contains(&found);
    if fits { Ok(found) } else { Err("must be between 1ms and 10s".to_owned()) }
}

/// Parses a size as the configuration does, and also with a letter alone, as most tools do.
pub fn size(text: &str) -> Result<Size, String> {
    let whole = if text.ends_with(['K', 'M', 'G']) { format!("{text}iB") } else { text.to_owned() };
    Size::parse(&Raw::Word(whole))
}

/// Parses a size for hashing. What is recommended for it must be one that can be set.
fn memory(text: &str) -> Result<Size, String> {
    let size = size(text)?;
    hashing_memory().check(&size).map(|()| size)
}

impl Command {
    /// Carries out the command.
    pub fn run(self) -> Reply {
        match self {
            Command::Tune(tune) => tune.run(),
            Command::Pepper(pepper) => pepper.run("pepper", "peppers"),
            Command::Binding(binding) => binding.run("binding key", "binding_keys"),
        }
    }
}

impl Tune {
    fn run(&self) -> Reply {
        let memory = self.memory.map_or_else(tune::default_memory, |size| size.0);
        if let Some(most) = tune::most_memory().filter(|most| memory > *most) {
            let most = mib(most);
            return Err(Failure::Use(format!("--memory is more than this machine, or its container, has: {most}")));
        }
        let mut progress = Progress::new();
        let found = tune::recommend(self.target, memory, |kib| progress.say(&format!("measuring {} MiB", kib >> 10)))
            .map_err(|error| Failure::Failed(error.to_string()))?;
        let mut known = 0;
        let rows = tune::table(memory, |_, of| {
            known += 1;
            progress.say(&format!("measuring the choices of OWASP and RFC 9106: {known} of {of}"));
        });
        progress.end();
        Ok(Outcome::new(self.text(memory, &found, &rows), self.json(memory, &found, &rows)))
    }

    fn text(&self, memory: u64, found: &Recommendation, rows: &[Row]) -> String {
        let cost = found.policy.cost();
        let (here, target) = (&found.measured, self.target);
        let verdict = if found.in_time {
            format!("Argon2id m={} t={} p={}", cost.memory(), cost.passes(), cost.lanes())
        } else {
            format!(
                "Argon2id m={} t={} p={}: the fastest of OWASP's list; this machine takes longer than {target:?}",
                cost.memory(),
                cost.passes(),
                cost.lanes()
            )
        };
        let told = facts(&[
            ("Recommended", verdict),
            ("One hash", millis(here.single)),
            (
                "Under load",
                format!("{:.0} a second on {} cores, {} side by side on each", here.rate, here.threads, here.together),
            ),
            ("Memory", format!("{} under load, {} allowed", mib(here.memory), mib(memory))),
        ]);
        // Recommended for this much memory: with less, a server would run fewer hashes side by side.
        let room =
            self.memory.map_or_else(String::new, |_| format!("  [hash]\n  memory = \"{}KiB\"\n\n", memory >> 10));
        format!(
            "{told}\nIn the configuration:\n\n{room}  [hash.argon2]\n  memory_kib = {}\n  passes = {}\n  lanes = {}\n\n{}{}",
            cost.memory(),
            cost.passes(),
            cost.lanes(),
            if self.memory.is_none() { CEILING } else { "" },
            table(rows)
        )
    }

    fn json(&self, memory: u64, found: &Recommendation, rows: &[Row]) -> Value {
        let cost = found.policy.cost();
        let parameters =
            |memory: u32, passes: u32, lanes: u32| json!({ "memory_kib": memory, "passes": passes, "lanes": lanes });
        let row = |row: &Row| {
            json!({
                "source": row.choice.source,
                "parameters": parameters(row.choice.memory, row.choice.passes, row.choice.lanes),
                "measured": row.measured.as_ref().map(measured),
                "obstacle": row.measured.is_none().then_some("one hash needs more memory than there is, or than was allowed"),
            })
        };
        json!({
            "target_ms": self.target.as_secs_f64() * 1e3,
            "memory": memory,
            "recommended": {
                "parameters": parameters(cost.memory(), cost.passes(), cost.lanes()),
                "measured": measured(&found.measured),
                "in_time": found.in_time,
            },
            "choices": rows.iter().map(row).collect::<Vec<_>>(),
        })
    }
}

/// Renders what the parameters that others recommend cost here.
fn table(rows: &[Row]) -> String {
    let mut table = Table::new(["SOURCE", "ARGON2ID", "ONE HASH", "A SECOND, CORE", "A SECOND, ALL", "MEMORY"], true);
    for row in rows {
        let choice = &row.choice;
        let parameters = format!("m={} t={} p={}", choice.memory, choice.passes, choice.lanes);
        let [single, core, all, memory] = match &row.measured {
            Some(found) => [
                millis(found.single),
                format!("{:.1}", found.rate_per_core()),
                format!("{:.1}", found.rate),
                mib(found.memory),
            ],
            None => {
                let needs = format!("needs {}", mib(u64::from(choice.memory) << 10));
                [needs, String::new(), String::new(), String::new()]
            }
        };
        table.row([choice.source.to_owned(), parameters, single, core, all, memory]);
    }
    table.render()
}

fn measured(found: &Measured) -> Value {
    json!({
        "single_ms": found.single.as_secs_f64() * 1e3,
        "rate": found.rate,
        "rate_per_core": found.rate_per_core(),
        "together": found.together,
        "threads": found.threads,
        "memory": found.memory,
    })
}

fn millis(time: Duration) -> String {
    format!("{:.1} ms", time.as_secs_f64() * 1e3)
}

fn mib(bytes: u64) -> String {
    format!("{} MiB", bytes >> 20)
}

/// One line that changes, if somebody watches; elsewhere a line now and then.
struct Progress {
    watched: bool,
    lines: Lines,
}

impl Progress {
    fn new() -> Self {
        Progress { watched: load::cli::is_seen(), lines: Lines::new() }
    }

    fn say(&mut self, text: &str) {
        match self.watched {
            true => mutter(&format!("\r\x1b[K{text} …")),
            false => self.lines.say(text),
        }
    }

    fn end(&mut self) {
        if self.watched {
            mutter("\r\x1b[K");
        }
    }
}

impl NewPepper {
    fn run(&self, what: &str, option: &str) -> Reply {
        load::output::named(&self.file)?;
        let failed = |error: io::Error| match error.kind() {
            io::ErrorKind::AlreadyExists => Failure::Failed(format!(
                "{} exists already, and is not overwritten: name another file",
                self.file.display()
            )),
            _ => Failure::Failed(format!("{}: {error}", self.file.display())),
        };
        private::create(&self.file, &*private::Key::new(app::entropy::bytes()?)).map_err(failed)?;
        let file = std::path::absolute(&self.file).map_err(failed)?;
        let entry = format!("{}:{}", self.name, file.display());
        let line = quoted(&entry);
        let text = format!(
            "In the configuration, before any other {what}:\n\n  [hash]\n  {option} = [{line}]\n\n\
             With several nodes, do not add it like this on one after the other: a node without it takes right \
             passwords for wrong ones. First put it at the end of the list, on every node (if it is the first of all: \
             with all nodes stopped); see the guide's page on passwords, \"Several nodes\".\n\n\
             Keep a copy of the file apart from the database: without it no password can be verified any more."
        );
        Ok(Outcome::new(text, json!({ what.replace(' ', "_"): entry })))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Config, Sources};

    #[test]
    fn the_line_that_is_printed_is_read_as_it_was_meant() {
        // red with {:?} for TOML: od\u{301}d is no escape there.
        let folder = tempfile::tempdir().unwrap();
        let configured = folder.path().join("p.toml");
        let odd = [
            "plain",
            "o\u{301}d",
            "\u{301}",
            "a b",
            "it's",
            "\"",
            "\\",
            "a\\u0041",
            "\u{7f}",
            "\u{200b}",
            "\u{1f511}",
            "#",
            "],",
        ];
        for (name, option) in odd.iter().flat_map(|name| [(name, "peppers"), (name, "import_keys")]) {
            let file = folder.path().join(format!("{option}{name}"));
            let text = NewPepper { name: "p1".to_owned(), file: file.clone() }.run("pepper", option).unwrap().text;
            let (_, rest) = text.split_once("  [hash]\n").unwrap();
            let (line, _) = rest.split_once("\n\n").unwrap();
            std::fs::write(&configured, format!("[hash]\n{line}\n")).unwrap();
            let config = Config::load(Sources { file: Some(configured.clone()), ..Sources::default() });
            let config = config.unwrap_or_else(|problems| panic!("{line}: {problems:?}"));
            let read = [&config.hash.peppers, &config.hash.import_keys].into_iter().flatten().next().unwrap();
            assert_eq!((read.name.as_str(), &*read.file), ("p1", file.as_path()), "{line}");
        }
    }
}
