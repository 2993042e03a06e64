//! The table of commands.

use super::config;
use super::docs::Man;
use super::hash;
use super::moving::Moving;
use super::outcome::Failure;
use super::request::Request;
use super::restore::Restore;
use super::serve::Serve;
use clap::error::ErrorKind;
use clap::{Args, CommandFactory, Parser, Subcommand, ValueHint};
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

/// An OpenID provider in one binary with one data folder
///
/// Commands for users, applications, groups and keys work whether or not the server runs. While it runs, they go
/// through the control socket in the data folder.
#[derive(Debug, Parser)]
#[command(
    name = "portiere",
    version,
    max_term_width = 100,
    subcommand_required = true,
    after_help = "\
Exit codes: 0 done, 1 failed, 2 wrong use, 75 failed but may succeed later.",
    after_long_help = "\
Examples:
  portiere serve
  portiere user add ada --email ada@example.com
  portiere client add --id shop --name Shop \\
    --redirect-uri https://shop.example.com/callback
  portiere client list --json

Exit codes: 0 done; 1 failed, 2 wrong use, 75 failed but may succeed later (each with a line on
standard error)."
)]
pub struct Cli {
    /// The options that every command takes.
    #[command(flatten)]
    pub global: Global,
    /// The command.
    #[command(subcommand)]
    pub command: Command,
}

/// The options that every command takes.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Global options")]
pub struct Global {
    /// The data folder [default: ./data]
    #[arg(long, global = true, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub data: Option<PathBuf>,
    /// The configuration file [default: what PORTIERE_CONFIG names, else none]
    #[arg(long, global = true, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub config: Option<PathBuf>,
    /// Print JSON
    #[arg(long, global = true)]
    pub json: bool,
}

/// Every command.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run the server
    ///
    /// Without any configuration, the server listens on 127.0.0.1:8080 and [::1]:8080 and keeps its data in ./data. It
    /// prints its address and, while there is no owner, a one-time link that creates the owner's account. With --json,
    /// or if standard output is not a terminal, the link is written to the file setup-link in the data folder instead.
    /// With --json, the server prints an object on one line, which names that file. SIGTERM and Ctrl-C stop the server
    /// after requests in flight are finished; a second signal stops it at once.
    #[command(after_long_help = "\
Examples:
  portiere serve
  portiere serve --listen 0.0.0.0:443 --public-url https://login.example.com \\
    --config portiere.toml")]
    Serve(Serve),
    /// A command that is carried out on a realm.
    #[command(flatten)]
    Request(Request),
    /// Restore the database from a backup, while no server runs
    ///
    /// Needs the master key that belongs to the backup. A restored copy revives nothing: every session, code, token and
    /// consent in it is ended, since the copy cannot know what was signed out or revoked after it was made. Hash
    /// workers are asked nothing until each is trusted again (portiere verifier trust). Accounts, applications, groups
    /// and keys are as they were.
    ///
    /// Restore a database server with its own tools, while no node runs. Then run this command with --in-place on one
    /// node, which ends the same in the database. Do the same for a database file that was put back by other means,
    /// such as a snapshot of the machine.
    #[command(after_long_help = "\
Examples:
  portiere restore /var/backups/portiere-2030-01-31.db
  portiere restore --force --data /var/lib/portiere \\
    /var/backups/portiere-2030-01-31.db
  portiere restore --in-place --config /etc/portiere.toml")]
    Restore(Restore),
    /// Move everything to another database, on any engine
    ///
    /// First, the command checks that the target can be reached, is empty, and takes every value. Nothing changes, and
    /// the source continues to work. From then on, the source is read-only: every write, of every node, is answered
    /// with 503 and Retry-After. Then the command copies each table and compares every row. After an interruption at
    /// any point, the same command continues where it was. At the end, the source stays as it is, and no server starts
    /// on it any more. A server that is started on the target continues where the others stopped: users who were signed
    /// in stay signed in. The data folder stays: the master key and the peppers are not in the database.
    ///
    /// Give a URL with a password in a file (--from-file, --to-file) or in PORTIERE_MOVE_FROM and PORTIERE_MOVE_TO:
    /// every process of the machine can read arguments. The target must be empty.
    #[command(after_long_help = "\
Examples:
  portiere move --check --to-file /etc/portiere/new-url
  portiere move --to-file /etc/portiere/new-url
  portiere move --status --to-file /etc/portiere/new-url
  portiere move --abort --to-file /etc/portiere/new-url
  portiere move --from sqlite:portiere.db --to sqlite:/mnt/new/portiere.db \\
    --yes")]
    Move(Moving),
    /// Inspect the configuration
    #[command(subcommand)]
    Config(config::Command),
    /// Choose the cost of password hashes
    #[command(subcommand)]
    Hash(hash::Command),
    /// Print the version
    Version,
    /// Print completions for a shell
    #[command(after_long_help = "\
Examples:
  portiere completions bash > /etc/bash_completion.d/portiere
  portiere completions zsh > /usr/local/share/zsh/site-functions/_portiere
  portiere completions fish > ~/.config/fish/completions/portiere.fish")]
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Print the manual page of the program or of one command
    #[command(after_long_help = "\
Examples:
  portiere man | man -l -
  portiere man client add | man -l -
  portiere man --dir /usr/local/share/man/man1")]
    Man(Man),
    /// Put load on an OpenID provider, and measure it
    ///
    /// Works with any provider: its endpoints come from its discovery document, and its sign-in pages are read as a
    /// browser reads them. A target that is not this machine is refused unless --i-own-this-host says that it may be
    /// put under load.
    #[command(after_long_help = "\
Examples:
  portiere load jwks
  portiere load w1 --client shop --client-secret-file secret \\
    --redirect-uri http://localhost:3000/callback --users people
  portiere load w1 --vus 200 --ramp 60s --duration 90s --html report.html \\
    --client shop --client-secret-file secret \\
    --redirect-uri http://localhost:3000/callback --users people
  portiere load userinfo --rate 500 --duration 10m --i-own-this-host \\
    --target https://id.example.com --client shop \\
    --client-secret-file secret \\
    --redirect-uri https://shop.example.com/callback --users people")]
    Load(Box<load::cli::Command>),
    /// Measure this machine, and predict the load that it can carry
    ///
    /// Takes about a minute and all cores, and touches no data. It measures hashes, signatures, commits, reads,
    /// requests and memory, on the disk of the data folder and with private servers of its own. From these it says how
    /// many sign-ins, refreshes and introspections per second the machine carries, how long they take, what sets the
    /// limit, what would help, and which settings suit the machine. With --verify, it then proves the prediction, which
    /// takes about two minutes more.
    #[command(after_long_help = "\
Examples:
  portiere capacity
  portiere capacity --verify --html capacity.html
  portiere capacity --data /var/lib/portiere --save capacity.json
  portiere capacity --from capacity.json")]
    Capacity(Box<lab::capacity::cli::Command>),
    /// Run experiments on private servers, to find out how this program performs on this machine
    ///
    /// Each experiment changes one thing, measures in turns, and says what the difference is and whether it is more
    /// than noise. A running server is not touched.
    #[command(after_long_help = "\
Examples:
  portiere lab list
  portiere lab run lanes parameters
  portiere lab all --quick --html report.html")]
    Lab(lab::cli::Command),
}

/// Why there is no command to carry out.
pub enum NoCommand {
    /// Help or a version was asked for.
    Text(String),
    /// The command line makes no sense. Whether it asks for JSON can be seen all the same.
    Wrong { why: Failure, as_json: bool },
}

/// Reads the command line.
pub fn parse(words: Vec<OsString>) -> Result<Cli, NoCommand> {
    let as_json = words.iter().take_while(|word| *word != "--").any(|word| word == "--json");
    let wrong = |why| NoCommand::Wrong { why, as_json };
    let parsed = Cli::try_parse_from(&words).map_err(|error| match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => NoCommand::Text(error.render().to_string()),
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand | ErrorKind::MissingSubcommand => {
            wrong(Failure::Use(missing(&words)))
        }
        _ => wrong(Failure::Use(one_line(&error.render().to_string(), &words))),
    });
    parsed.and_then(|cli| match contradiction(&cli) {
        Some(why) => Err(wrong(Failure::Use(why.to_owned()))),
        None => Ok(cli),
    })
}

/// Returns what is wrong with an option that every command takes, beside one of this command: the parser cannot say so.
fn contradiction(cli: &Cli) -> Option<&'static str> {
    let Command::Request(Request::Audit(audit)) = &cli.command else { return None };
    (cli.global.json && audit.prints_csv())
        .then_some("--json and --format csv contradict each other; try: portiere audit export --help")
}

/// Says what may follow where the command line ends too early.
fn missing(words: &[OsString]) -> String {
    let (path, command) = named(words);
    let shown = command.get_subcommands().filter(|below| !below.is_hide_set());
    let names: Vec<_> = shown.map(|below| below.get_name().to_owned()).collect();
    format!("no command given ({}); try: {path} --help", names.join(", "))
}

/// Puts the parser's report on one line, without the usage that follows it, and says where to read more.
fn one_line(report: &str, words: &[OsString]) -> String {
    let paragraphs = report.split("\n\n").take_while(|paragraph| !paragraph.starts_with("Usage:"));
    let told = paragraphs.filter(|paragraph| !paragraph.starts_with("For more information"));
    let text: Vec<String> = told.map(|told| told.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    let text = in_words(&text.join("; "));
    let text = text.strip_prefix("error: ").unwrap_or(&text);
    let (name, command) = named(words);
    format!("{text}{}; try: {name} --help", equals(words, &command))
}

/// Says how a value is given to the last option, if a word after it was taken for something else.
fn equals(words: &[OsString], command: &clap::Command) -> String {
    let word = |at: &OsString| at.to_str().map(str::to_owned).unwrap_or_default();
    let wrong = words.windows(2).map(|pair| (word(&pair[0]), word(&pair[1]))).find(|(flag, value)| {
        let mut options = command.get_arguments().filter(|arg| arg.is_require_equals_set());
        ["yes", "no"].contains(&value.as_str()) && options.any(|arg| arg.get_long() == flag.strip_prefix("--"))
    });
    wrong.map(|(flag, value)| format!("; write {flag}={value}")).unwrap_or_default()
}

/// Puts what the parser says about numbers into plain words.
fn in_words(text: &str) -> String {
    const WORDS: [(&str, &str); 6] = [
        ("invalid digit found in string", "it is not a whole number"),
        ("cannot parse integer from empty string", "it is not a whole number"),
        ("number would be zero for non-zero type", "must be at least 1"),
        ("invalid float literal", "it is not a number"),
        ("number too large to fit in target type", "it is too large"),
        ("number too small to fit in target type", "it is too small"),
    ];
    let text = WORDS.iter().fold(text.to_owned(), |text, (theirs, ours)| text.replace(theirs, ours));
    let Some((told, range)) = text.split_once(" is not in ") else { return text };
    let Some((low, high)) = range.split_once("..") else { return text };
    let told = told.rsplit_once(": ").map_or(told, |(told, _)| told);
    let high = high.trim_start_matches('=');
    let open = [i64::MAX.to_string(), u64::MAX.to_string()].contains(&high.to_owned()) || high.is_empty();
    match open {
        true => format!("{told}: must be at least {low}"),
        false => format!("{told}: must be from {low} to {high}"),
    }
}

/// Returns the command that `words` name, without regard to flags and their values, and its full name.
fn named(words: &[OsString]) -> (String, clap::Command) {
    let mut command = Cli::command();
    command.build();
    let mut name = "portiere".to_owned();
    let mut words = words.iter().skip(1).filter_map(|word| word.to_str());
    while let Some(word) = words.next() {
        let takes = |arg: &clap::Arg| arg.get_action().takes_values() && !arg.is_require_equals_set();
        let is_it = |arg: &&clap::Arg| arg.get_long().is_some_and(|long| word.strip_prefix("--") == Some(long));
        if command.get_arguments().find(is_it).is_some_and(takes) {
            words.next();
            continue;
        }
        let Some(next) = command.find_subcommand(word) else { continue };
        name = format!("{name} {word}");
        command = next.clone();
    }
    (name, command)
}

impl NoCommand {
    /// Prints the text or the failure.
    pub fn tell(self) -> ExitCode {
        match self {
            NoCommand::Text(text) => super::print(&text),
            NoCommand::Wrong { why, as_json } => why.tell(as_json),
        }
    }
}
