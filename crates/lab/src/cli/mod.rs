//! The command line of `portiere lab`. The program around it parses it ([`Command`] is a `clap::Args`), calls [`main`]
//! and ends with the exit code of the [`Refusal`], if any.

mod files;
mod progress;

use crate::experiments::bench::Bench;
use crate::experiments::{ALL, Experiment, make, named};
use crate::private::{Folder, end_all, guard, unless_ending};
use crate::report::{Machine, Outcome, Report, Saved};
use clap::{Args, Subcommand, ValueHint};
use files::Files;
use load::Refusal;
use load::made::Made;
use progress::Progress;
use rules::Secret;
use serde_json::json;
use std::hash::{DefaultHasher, Hasher as _};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// What can be asked of the lab.
#[derive(Args, Clone, Debug)]
pub struct Command {
    /// Which of it.
    #[command(subcommand)]
    pub action: Action,
}

/// The commands.
#[derive(Clone, Debug, Subcommand)]
pub enum Action {
    /// List the experiments
    List,
    /// Run some experiments
    ///
    /// Each takes from a minute to twenty, or from some seconds to a minute and a half with --quick. The result of each
    /// is printed as soon as it is done, and the files are written then, too.
    #[command(after_long_help = "\
Examples:
  portiere lab run lanes
  portiere lab run overload workers --html report.html
  portiere lab run engines --postgres postgres://lab@localhost/lab")]
    Run {
        /// Their names, as portiere lab list shows them
        #[arg(required = true, value_name = "NAME")]
        names: Vec<String>,
        /// How.
        #[command(flatten)]
        options: Options,
    },
    /// Run all experiments
    ///
    /// They take a little over an hour on two cores, or less than ten minutes with --quick, which shows that they work
    /// but leaves most differences undecided. The machine should do nothing else meanwhile.
    #[command(after_long_help = "\
Examples:
  portiere lab all --quick --html report.html
  portiere lab all --save lab.json --markdown performance.md
  portiere lab all --save lab.json --markdown performance.md --resume")]
    All {
        /// How.
        #[command(flatten)]
        options: Options,
        /// Resume the run that --save FILE holds: finished experiments are not run again, failed ones are
        #[arg(long, requires = "save")]
        resume: bool,
    },
    /// Wait for the end of standard input, then end what it named and remove a folder
    #[command(hide = true)]
    Guard {
        /// The folder of a private server
        #[arg(value_hint = ValueHint::DirPath)]
        folder: PathBuf,
    },
}

/// How experiments are made, and where the result goes.
#[derive(Args, Clone, Debug, Default)]
pub struct Options {
    /// Run few and short rounds
    #[arg(long)]
    pub quick: bool,
    /// Folder for the private servers, which decides which disk is measured [default: where temporary files go]
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub within: Option<PathBuf>,
    /// An empty PostgreSQL database for the experiment `engines`, which fills it. Every process of the machine can read
    /// arguments: use a password that is good for nothing else
    #[arg(long, value_name = "URL")]
    pub postgres: Option<String>,
    /// An empty MySQL or MariaDB database, in the same way
    #[arg(long, value_name = "URL")]
    pub mysql: Option<String>,
    /// Write a report with charts into a file: one HTML page that needs nothing else
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub html: Option<PathBuf>,
    /// Write the result as JSON into a file
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub save: Option<PathBuf>,
    /// Write a report in Markdown into a file, with its charts in a folder of the same name beside it
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub markdown: Option<PathBuf>,
}

impl Options {
    /// Returns the databases on servers, each with its product's name.
    fn databases(&self) -> Result<Vec<(&'static str, Secret)>, Refusal> {
        let named = [
            ("PostgreSQL", "--postgres", &["postgres://", "postgresql://"][..], &self.postgres),
            ("MySQL or MariaDB", "--mysql", &["mysql://"], &self.mysql),
        ];
        let given =
            named.into_iter().filter_map(|(name, flag, schemes, url)| Some((name, flag, schemes, url.as_ref()?)));
        let read = |(name, flag, schemes, url): (&'static str, &str, &[&str], &String)| {
            // The URL is not repeated: it may contain a password. What it lacks is reported now, not an hour later.
            let place = schemes.iter().find_map(|scheme| url.strip_prefix(scheme)?.split('?').next());
            match place.and_then(|place| place.split_once('/')).is_some_and(|(_, database)| !database.is_empty()) {
                true => Ok((name, Secret::new(url))),
                false => Err(Refusal::Use(format!("{flag} is not {}USER:PASSWORD@HOST/DATABASE", schemes[0]))),
            }
        };
        given.map(read).collect()
    }
}

/// Does what `command` says. Servers run `program`; the report goes to `out`, as JSON if `as_json`, and progress to
/// standard error if that is a terminal. Blocks, and must be called on a plain thread.
///
/// # Errors
/// [`Refusal`]: one line for the user, and the exit code.
pub fn main(command: &Command, program: &Path, as_json: bool, out: &mut dyn Write) -> Result<(), Refusal> {
    if !matches!(command.action, Action::Guard { .. }) {
        load::interrupt::end_after(end_all);
    }
    match &command.action {
        Action::Guard { folder } => {
            load::interrupt::ignore();
            guard(folder, std::io::stdin().lock())
        }
        Action::List => print(out, &list(as_json)?),
        Action::Run { names, options } => experiment(&named(names)?, options, None, (program, as_json, out)),
        Action::All { options, resume } => {
            let before = options.save.as_deref().filter(|_| *resume).map(files::read).transpose()?.flatten();
            experiment(&ALL, options, before.as_ref(), (program, as_json, out))
        }
    }
}

fn list(as_json: bool) -> Result<String, Refusal> {
    if as_json {
        let one = |one: &Experiment| json!({ "name": one.name, "title": one.title, "hypothesis": one.hypothesis, "method": one.method });
        return to_json(&ALL.iter().map(one).collect::<Vec<_>>());
    }
    let width = ALL.iter().map(|one| one.name.len()).max().unwrap_or(0);
    Ok(ALL.iter().map(|Experiment { name, title, .. }| format!("{name:width$}  {title}\n")).collect())
}

/// Distinguishes this program from one built from other sources: one report must not mix figures of both.
fn build(program: &Path) -> Option<u64> {
    let mut hasher = DefaultHasher::new();
    hasher.write(&std::fs::read(program).ok()?);
    Some(hasher.finish())
}

fn experiment(
    wanted: &[Experiment],
    options: &Options,
    before: Option<&Saved>,
    (program, as_json, out): (&Path, bool, &mut dyn Write),
) -> Result<(), Refusal> {
    let databases = options.databases()?;
    let files = Files::of(options)?;
    let within = options.within.clone().unwrap_or_else(std::env::temp_dir);
    // A mistyped folder is reported before anything is measured.
    drop(Folder::new(program, Some(&within))?);
    let (machine, begun) = (Machine::look(&within), Instant::now());
    let version = env!("CARGO_PKG_VERSION");
    let (build, quick) = (build(program), options.quick);
    let made = Some(Made::here());
    let mut report = Report { machine, version, made, build, quick, seconds: 0.0, experiments: Vec::new() };
    let earlier;
    (report.machine, report.made, earlier) = begin(&report, before)?;
    if !as_json {
        // Every outcome has to be read with this; the outcomes follow one by one.
        print(out, &report.to_string())?;
    }
    // Everything finished in the file, or a run that is cut short again would lose what comes later in it.
    let mut kept: Vec<Option<Outcome>> = wanted.iter().map(|one| before.and_then(|saved| saved.done(*one))).collect();
    let mut written = Ok(());
    for (number, one) in wanted.iter().enumerate() {
        let progress = Progress::of(one.name, (number + 1, wanted.len()));
        let mut watcher = |what: &str| progress.show(what);
        let mut bench = Bench::new(program.to_owned(), options.quick, &mut watcher);
        bench.within.clone_from(&options.within);
        bench.databases.clone_from(&databases);
        let outcome = kept[number].take().unwrap_or_else(|| make(*one, &mut bench));
        progress.clear();
        unless_ending();
        if !as_json {
            print(out, &format!("\n{outcome}"))?;
        }
        report.experiments.push(outcome);
        report.seconds = earlier + begun.elapsed().as_secs_f64();
        // After each experiment, so that a later one cannot lose the results. A disk that is full now may have space by
        // then.
        written = files.write(&with_those_to_come(&report, &kept));
    }
    if as_json {
        print(out, &to_json(&report)?)?;
    }
    written?;
    let failed: Vec<&str> = report.failed().map(|outcome| outcome.experiment.name).collect();
    match failed[..] {
        [] => Ok(()),
        [one] => Err(Refusal::Failure(format!("the experiment {one} failed: see its conclusion"))),
        ref several => {
            Err(Refusal::Failure(format!("the experiments {} failed: see their conclusions", several.join(", "))))
        }
    }
}

/// Returns the report, followed by the outcomes that are kept from an earlier run.
fn with_those_to_come(report: &Report, kept: &[Option<Outcome>]) -> Report {
    let mut whole = report.clone();
    whole.experiments.extend(kept.iter().flatten().cloned());
    whole
}

/// Returns the machine, start and duration of the earlier run; without one, the present machine and start, and zero.
fn begin(report: &Report, before: Option<&Saved>) -> Result<(Machine, Option<Made>, f64), Refusal> {
    let Some(saved) = before else { return Ok((report.machine.clone(), report.made.clone(), 0.0)) };
    match saved.obstacle(report) {
        Some(why) => Err(Refusal::Use(format!("--resume: the report {why}; start a new one with another --save FILE"))),
        None => Ok(saved.beginning()),
    }
}

fn to_json<T: serde::Serialize>(value: &T) -> Result<String, Refusal> {
    let text = serde_json::to_string_pretty(value).map_err(|error| Refusal::Failure(error.to_string()))?;
    Ok(text + "\n")
}

fn print(out: &mut dyn Write, text: &str) -> Result<(), Refusal> {
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        // A reader may stop early.
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(Refusal::Failure(format!("the report cannot be written: {error}")))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{End, Sheet};

    #[test]
    fn what_was_kept_of_a_run_before_is_written_with_what_is_made_before_it() {
        let done = |experiment| Outcome::of(experiment, Sheet::default(), End::Done, 1.0);
        let machine = Machine::look(&std::env::temp_dir());
        let experiments = vec![done(ALL[0])];
        let report = Report { machine, version: "1", made: None, build: None, quick: true, seconds: 1.0, experiments };
        let whole = with_those_to_come(&report, &[None, None, Some(done(ALL[2]))]);
        let names: Vec<&str> = whole.experiments.iter().map(|outcome| outcome.experiment.name).collect();
        assert_eq!(names, [ALL[0].name, ALL[2].name]);
    }
}
