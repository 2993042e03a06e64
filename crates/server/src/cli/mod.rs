//! The command line: one table of commands ([`table`]), from which the parser, the help, the manual pages, the
//! completions and `docs/guide/commands.md` are made.
//!
//! Owns words, flags, standard input and output, and exit codes. Completes a [`Request`] with standard input and
//! files, and has it carried out on an [`App`](app::App): by the running server, which it reaches over the
//! [control socket](crate::control), or in this process if no server runs. What a request does is `app`'s business.

mod absent;
mod audit;
mod backup;
mod change;
mod client;
mod config;
mod docs;
mod fence;
mod group;
#[cfg(test)]
mod guide;
mod hash;
mod input;
mod keys;
mod limit;
mod migrate;
mod moving;
mod node;
mod one_of;
mod outcome;
mod profile;
mod reach;
mod ready;
mod registration;
mod removal;
mod request;
mod restore;
mod serve;
mod table;
#[cfg(test)]
mod tests;
mod text;
mod user;
mod verifier;

pub use outcome::{Failure, Outcome, Reply};
pub use request::{Place, Request};

use crate::config::{Config, LogFormat, Sources};
use crate::hashing;
use crate::logs::Logs;
use crate::loops::run_out;
use input::{Input, Wanted};
use load::interrupt::Interrupt;
use outcome::Printer;
use reach::Reach;
use serde_json::json;
use std::io::{self, Write};
use std::os::fd::AsFd as _;
use std::process::ExitCode;
use table::{Cli, Command, Global};
use tokio::io::Interest;
use tokio::net::unix::pipe::Sender;
use tracing::level_filters::LevelFilter;

/// Does what the command line says.
pub fn main() -> ExitCode {
    // Keys and passwords pass through commands, too.
    let no_core = serve::leave_no_core();
    // Somebody waits for each request, so all threads ask for short turns. The threads of the load generator do so,
    // too: their own waits would be counted as the server's.
    hasher::step_ahead();
    match table::parse(std::env::args_os().collect()) {
        Err(no_command) => no_command.tell(),
        Ok(cli) => {
            let (as_json, _heard) = (cli.global.json, ends_at_signals(&cli.command));
            run(cli, no_core).unwrap_or_else(|failure| failure.tell(as_json))
        }
    }
}

/// Has signals end the first process of a container, which the system lets ignore all that it does not listen for. Some
/// commands listen by themselves.
fn ends_at_signals(command: &Command) -> Option<Interrupt> {
    let listens = match command {
        Command::Serve(_) | Command::Move(_) | Command::Load(_) | Command::Capacity(_) | Command::Lab(_) => true,
        Command::Request(Request::Verifier(command)) => matches!(command, verifier::Command::Serve(_)),
        _ => false,
    };
    (!listens && rustix::process::getpid().is_init()).then(Interrupt::by_signals)
}

fn run(Cli { global, command }: Cli, no_core: io::Result<()>) -> Result<ExitCode, Failure> {
    match command {
        Command::Serve(serve) => Ok(host(&global, &serve, no_core)),
        // Runs on the worker's machine, which has neither a server nor its configuration.
        Command::Request(Request::Verifier(verifier::Command::Enroll(enroll))) => {
            Ok(show(&global, &runtime()?.block_on(enroll.run())?))
        }
        Command::Request(Request::Verifier(verifier::Command::Serve(serve))) => Ok(work(&global, serve, no_core)),
        Command::Request(Request::Profile(command)) => command.run(&global),
        Command::Request(Request::Ready(command)) => command.run(&global),
        Command::Request(request) => carry_out(&global, request),
        Command::Restore(restore) => {
            let config = opening(&global, true)?;
            let _logs = logged(&config)?;
            let outcome = runtime()?.block_on(Box::pin(restore.run(&config)))?;
            Ok(show(&global, &outcome))
        }
        Command::Move(command) => {
            let config = opening(&global, false)?;
            let _logs = logged(&config)?;
            let threads = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
            let outcome = run_out(threads, Box::pin(command.run(&config)));
            Ok(show(&global, &outcome?))
        }
        Command::Config(command) => match command.run(global.sources(Vec::new()))? {
            (outcome, None) => Ok(show(&global, &outcome)),
            (outcome, Some(failure)) => {
                if global.json {
                    show(&global, &outcome);
                }
                Ok(failure.tell(global.json))
            }
        },
        Command::Hash(command) => Ok(show(&global, &command.run()?)),
        Command::Version => Ok(show(&global, &version())),
        Command::Completions { shell } => Ok(print(docs::completions(shell))),
        Command::Man(man) => Ok(print(man.page()?)),
        Command::Load(command) => measure(&global, *command),
        Command::Capacity(mut command) => {
            command.json = global.json;
            let (program, config) = (std::env::current_exe()?, quiet(&global)?);
            hashing::differences(&config).iter().for_each(|line| outcome::say(line));
            lab::capacity::cli::main(&command, (&program, &config.server.data), &mut io::stdout().lock())?;
            Ok(ExitCode::SUCCESS)
        }
        Command::Lab(command) => {
            let program = std::env::current_exe()?;
            lab::cli::main(&command, &program, global.json, &mut io::stdout().lock())?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// Measures a server as a stranger.
fn measure(global: &Global, mut command: load::cli::Command) -> Result<ExitCode, Failure> {
    if global.json {
        command.print_json();
    }
    let interrupt = Interrupt::by_signals();
    if let Some(options) = command.options().filter(|options| options.client_secret_stdin) {
        let wanted = Wanted { what: "client secret", flag: "--client-secret-stdin", given: true };
        let secret = Input::of_process().known_secret(wanted)?;
        options.client_secret = Some(load::cli::Typed(secret.reveal().to_owned()));
    }
    load::cli::main(&command, &interrupt, &mut io::stdout().lock())?;
    Ok(ExitCode::SUCCESS)
}

/// Runs the server until it is told to stop.
fn host(global: &Global, serve: &serve::Serve, no_core: io::Result<()>) -> ExitCode {
    let sources = global.sources(serve.options());
    let format = sources.log_format();
    ended(format, config::load(sources).and_then(|config| serve::run(config, global.json, no_core)))
}

/// Hashes for a server elsewhere until it is told to stop.
fn work(global: &Global, serve: verifier::Serve, no_core: io::Result<()>) -> ExitCode {
    let sources = global.sources(Vec::new());
    let format = sources.log_format();
    let served = config::load(sources).and_then(|config| {
        let _logs = logged(&config)?;
        serve::tell_of_cores(no_core);
        serve.run()
    });
    ended(format, served)
}

/// Returns the exit code of a command that has a log; tells a failure in the log's format, even before the log begins.
fn ended(format: LogFormat, served: Result<(), Failure>) -> ExitCode {
    served.map_or_else(|failure| failure.tell_as(format), |()| ExitCode::SUCCESS)
}

impl Global {
    /// Returns where the configuration comes from, with further `flags`.
    fn sources(&self, mut flags: Vec<(&'static str, String)>) -> Sources {
        let data = self.data.as_ref().map(|data| data.to_str());
        flags.extend(data.flatten().map(|data| ("data", data.to_owned())));
        let mut sources = Sources::of_process(self.config.clone(), flags);
        // Never converted lossily: another folder of nearly that name would be a new one.
        if data == Some(None) {
            sources.unreadable.push("--data".to_owned());
        }
        sources
    }
}

/// Loads the configuration for everything but the server: only what is amiss is logged, as text for people.
fn quiet(global: &Global) -> Result<Config, Failure> {
    config::load(global.sources(Vec::new())).map(hushed)
}

fn hushed(mut config: Config) -> Config {
    config.log.level = config.log.level.min(LevelFilter::WARN);
    config.log.format = LogFormat::Text;
    config
}

/// Loads it for a [`Request`], with what is wrong with it if a server runs.
fn to_ask(global: &Global) -> Result<(Config, Option<Failure>), Failure> {
    config::to_ask(global.sources(Vec::new())).map(|(config, wrong)| (hushed(config), wrong))
}

/// Loads it for a command that opens the database itself, and perhaps begins one.
fn opening(global: &Global, begins: bool) -> Result<Config, Failure> {
    let config = quiet(global)?;
    reach::spelled(&config, begins)?;
    Ok(config)
}

/// Starts the log of a command.
fn logged(config: &Config) -> Result<Logs, Failure> {
    Logs::start(config).map_err(|error| Failure::Failed(error.to_string()))
}

fn runtime() -> Result<tokio::runtime::Runtime, Failure> {
    Ok(tokio::runtime::Builder::new_current_thread().enable_all().build()?)
}

/// Has a request carried out, page by page if it is a list.
fn carry_out(global: &Global, mut request: Request) -> Result<ExitCode, Failure> {
    let (config, wrong) = to_ask(global)?;
    let mut reach = Reach::new(&config).beside(wrong);
    let runtime = runtime()?;
    // The user is not asked for input that would be of no use.
    if let Some(answer) = runtime.block_on(supposed(&mut reach, &request))? {
        return Ok(show(global, &answer));
    }
    request.complete(&mut Input::of_process())?;
    let _logs = logged(&config)?;
    let as_json = !request.prints(global.json) && global.json;
    let mut printer = Printer::new(io::stdout().lock(), as_json);
    let mut progress = Progress::default();
    runtime.block_on(async {
        // A command that follows goes on when the server, or its database, is back.
        let mut follows: Option<(std::time::Duration, String)> = None;
        let shown = loop {
            let outcome = match (reach.ask(&request).await, &mut follows) {
                (Err(ref failure), Some((pause, told))) if let Some(why) = failure.passes() => {
                    if *told != why {
                        outcome::say(&format!("{why}; retrying until that is over"));
                        *told = why.to_owned();
                    }
                    if rests(*pause).await {
                        continue;
                    }
                    break Ok(printer.finish());
                }
                (Ok(outcome), _) => outcome,
                (Err(failure), _) => break printer.finish().map_or_else(|error| Ok(Err(error)), |()| Err(failure)),
            };
            progress.clear();
            match printer.show(&outcome) {
                Ok(()) => {}
                // Whether something is wrong is the answer: the exit code gives it to callers that read no output.
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe && request.ends_with_a_verdict() => {}
                Err(error) => break outcome.lost(&error).map_or(Ok(Err(error)), Err),
            }
            // Told after the outcome: a user who acts on the notes has seen what they are about.
            outcome.notes.iter().for_each(|note| outcome::say(note));
            let Some(next) = outcome.next else { break Ok(printer.finish()) };
            request.go_on(next);
            follows = request.pause().map(|pause| (pause, String::new()));
            progress.show(request.progress());
            let pause = request.pause().filter(|_| outcome.text.is_empty());
            if let Some(pause) = pause
                && !rests(pause).await
            {
                break Ok(printer.finish());
            }
        };
        progress.clear();
        reach.close().await;
        shown.map(|shown| written(shown, global.json))
    })
}

/// Waits, but not longer than somebody reads standard output. Returns whether somebody still does.
async fn rests(pause: std::time::Duration) -> bool {
    let unread = async {
        // Registered as it is: what is made not to block here would not block whoever shares it, either.
        let out = io::stdout().as_fd().try_clone_to_owned();
        match out.and_then(|out| Sender::from_file_unchecked(out.into())) {
            Ok(out) => drop(out.ready(Interest::ERROR).await),
            // A file, which no reader leaves.
            Err(_) => std::future::pending().await,
        }
    };
    tokio::time::timeout(pause, unread).await.is_err()
}

/// Has what `request` supposes carried out, if anything. Returns the outcome if that is the whole answer.
async fn supposed(reach: &mut Reach<'_>, request: &Request) -> Result<Option<Outcome>, Failure> {
    let Some(first) = request.supposes() else { return Ok(None) };
    let found = reach.ask(&first).await;
    reach.close().await;
    Ok(Some(found?).filter(absent::is_there))
}

/// Shows how far a long answer is: on a terminal one line that is written again and again, elsewhere a line now and then.
#[derive(Default)]
struct Progress {
    /// The length of the line on the terminal.
    shown: usize,
    lines: load::cli::Lines,
}

impl Progress {
    fn show(&mut self, how_far: Option<String>) {
        let Some(how_far) = how_far else { return };
        if load::cli::is_seen() {
            outcome::mutter(&format!("\r{how_far}"));
            self.shown = how_far.len();
        } else {
            self.lines.say(&how_far);
        }
    }

    fn clear(&mut self) {
        if self.shown > 0 {
            outcome::mutter(&format!("\r{:1$}\r", "", self.shown));
            self.shown = 0;
        }
    }
}

fn version() -> Outcome {
    let version = env!("CARGO_PKG_VERSION");
    Outcome::new(format!("portiere {version}"), json!({ "version": version, "schema": migrate::newest() }))
}

fn show(global: &Global, outcome: &Outcome) -> ExitCode {
    let mut printer = Printer::new(io::stdout().lock(), global.json);
    let shown = written(printer.show(outcome).and_then(|()| printer.finish()), global.json);
    outcome.notes.iter().for_each(|note| outcome::say(note));
    shown
}

/// Writes a text as it is.
fn print(text: impl AsRef<[u8]>) -> ExitCode {
    let mut out = io::stdout().lock();
    written(out.write_all(text.as_ref()).and_then(|()| out.flush()), false)
}

/// A reader may stop early (`| head`); anything else that keeps the answer from its reader is a failure.
fn written(result: io::Result<()>, as_json: bool) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => Failure::Failed(format!("cannot write to standard output: {error}")).tell(as_json),
    }
}
