//! The command line: options, and how they become a plan. The program around it parses them ([`Command`] is a
//! `clap::Args`), calls [`main`] and ends with the exit code of the [`Refusal`], if any.

mod options;
mod progress;
mod values;

pub use options::{Auth, Choice, Options, Typed};
pub use progress::{Lines, columns, is_seen};

use crate::Refusal;
use crate::compare::compare;
use crate::interrupt::Interrupt;
use crate::made::Made;
use crate::plan::Plan;
use crate::programme::{self, Programme};
use crate::search::Terms;
use crate::series::Series;
use crate::{output, page};
use clap::{Args, Subcommand, ValueHint};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;
use values::{duration, percent, read, some_percent};

/// Everything that can be asked.
#[derive(Args, Clone, Debug)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
#[group(id = "load")]
pub struct Command {
    /// Anything but measuring once.
    #[command(subcommand)]
    pub action: Option<Action>,
    /// What to measure.
    #[command(flatten)]
    pub options: Options,
}

/// What else there is.
#[derive(Clone, Debug, Subcommand)]
pub enum Action {
    /// Find the highest rate at which a server stays within limits
    ///
    /// Offers a rate, doubles or halves it, then bisects. A rate holds if p99 and the share of errors stay at or below
    /// --p99 and --errors; refused and unfinished iterations are errors here. The p99 covers all iterations that were
    /// due, and an error counts as later than any answer. If more than 1 % are errors and --errors allows them, the p99
    /// covers the answered iterations, and the result says which. --rate is the first rate tried; without it, the first
    /// is half of what a closed loop reaches. Each trial takes --warmup and --duration.
    #[command(after_long_help = "\
Examples:
  portiere load search w1 --p99 500ms --client shop \\
    --client-secret-file secret --redirect-uri http://localhost:3000/cb \\
    --users people
  portiere load search jwks --p99 5ms --errors 0.1 --html search.html")]
    Search(Box<Search>),
    /// Compare two results, with confidence intervals
    ///
    /// Prints the ratios of B to A with intervals of 95 %: from how far apart the runs are if there are five or more of
    /// each, otherwise from a bootstrap over slices of time. For a fair comparison, measure in turn on one machine,
    /// with --repeat 5 or more.
    #[command(after_long_help = "\
Examples:
  portiere load jwks --repeat 5 --save a.json
  portiere load compare a.json b.json")]
    Compare(Compare),
}

/// A search for the limit.
#[derive(Args, Clone, Debug)]
pub struct Search {
    /// What to offer.
    #[command(flatten)]
    pub options: Options,
    /// The limit of the 99th percentile
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "500ms")]
    pub p99: Duration,
    /// The share of errors allowed, in percent
    #[arg(long, value_name = "PERCENT", value_parser = percent, default_value = "0")]
    pub errors: f64,
    /// How near to the limit to come, in percent
    #[arg(long, value_name = "PERCENT", value_parser = some_percent, default_value = "5")]
    pub precision: f64,
}

/// Two results.
#[derive(Args, Clone, Debug)]
pub struct Compare {
    /// The result to compare with, a file that --save wrote
    #[arg(value_name = "A.json", value_hint = ValueHint::FilePath)]
    pub a: PathBuf,
    /// The result to compare
    #[arg(value_name = "B.json", value_hint = ValueHint::FilePath)]
    pub b: PathBuf,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

impl Command {
    /// Returns the options; a comparison has none.
    pub fn options(&mut self) -> Option<&mut Options> {
        match &mut self.action {
            None => Some(&mut self.options),
            Some(Action::Search(search)) => Some(&mut search.options),
            Some(Action::Compare(_)) => None,
        }
    }

    /// Selects JSON output for whatever action was given.
    pub fn print_json(&mut self) {
        match &mut self.action {
            None => self.options.json = true,
            Some(Action::Search(search)) => search.options.json = true,
            Some(Action::Compare(compare)) => compare.json = true,
        }
    }
}

/// Does what `command` says, writes the report to `out`, and progress to standard error. After an
/// `interrupt` it still writes what was measured. Blocks, and must be called on a plain thread, as [`crate::run::run`].
///
/// # Errors
/// [`Refusal`]: one line for the user, and the exit code.
pub fn main(command: &Command, interrupt: &Interrupt, out: &mut dyn Write) -> Result<(), Refusal> {
    let plan = |options: &Options| options.plan().map(|plan| Plan { interrupt: interrupt.clone(), ..plan });
    match &command.action {
        None => measure(&command.options, plan, out),
        Some(Action::Search(search)) => {
            let Search { options, p99, errors, precision } = search.as_ref();
            options.check(true)?;
            if p99.is_zero() {
                return Err(Refusal::Use("--p99 must be above zero".to_owned()));
            }
            let terms = Terms { p99: *p99, errors: errors / 100.0, precision: precision / 100.0 };
            let series = prepared(options, || {
                programme::search(&plan(options)?, options.vus, &terms, &mut progress::watched())
            })?;
            deliver(options, &series, out)
        }
        Some(Action::Compare(Compare { a, b, json })) => {
            let mut comparison = compare(&series(a)?, &series(b)?)?;
            for (side, file) in [(&mut comparison.a, a), (&mut comparison.b, b)] {
                side.file = Some(file.display().to_string());
            }
            write_out(out, &if *json { to_json(&comparison)? } else { comparison.to_string() })
        }
    }
}

fn measure(
    options: &Options,
    plan: impl Fn(&Options) -> Result<Plan, Refusal>,
    out: &mut dyn Write,
) -> Result<(), Refusal> {
    options.check(false)?;
    let programme = programme(options)?;
    let series = prepared(options, || programme.carry_out(&plan(options)?, options.repeat, &mut progress::watched()))?;
    deliver(options, &series, out)?;
    // A stream beside the first may be rare, and have nothing due in a short window.
    let beside = series.runs.iter().flat_map(|run| &run.beside).filter(|run| run.failed + run.refused > 0);
    match series.runs.iter().chain(beside).find(|run| run.iterations == 0) {
        Some(run) if run.unanswered() == 0 => Err(Refusal::Failure(format!(
            "no iteration of {} was due in the window: raise --duration, or --rate",
            run.workload
        ))),
        Some(run) if run.failed + run.refused == 0 && !run.is_open() => Err(Refusal::Failure(format!(
            "no iteration of {} ended in the window: raise --duration, or lower --vus",
            run.workload
        ))),
        Some(run) => Err(Refusal::Failure(format!("no iteration of {} came out well", run.workload))),
        None => Ok(()),
    }
}

fn programme(options: &Options) -> Result<Programme, Refusal> {
    Ok(match options.choice()? {
        Choice::W3 => Programme::Constant { sign_ups: !options.no_sign_ups },
        Choice::W4 => Programme::Overload { grows: options.vus.is_none() },
        Choice::W6 => Programme::Growth,
        _ => Programme::Plain,
    })
}

/// Measures after making sure that the result can be written.
fn prepared(options: &Options, measure: impl FnOnce() -> Result<Series, Refusal>) -> Result<Series, Refusal> {
    let files = [&options.save, &options.html];
    output::apart(files.into_iter().flatten())?;
    files.into_iter().flatten().try_for_each(|file| output::try_out(file))?;
    let made = Some(Made::here());
    Ok(Series { made, ..measure()? })
}

fn deliver(options: &Options, series: &Series, out: &mut dyn Write) -> Result<(), Refusal> {
    let json = to_json(series)?;
    // The screen comes first: a result that a file cannot take is not lost. Nor does a closed terminal cost the file.
    let shown = write_out(out, &if options.json { json.clone() } else { series.to_string() });
    let saved = options.save.as_ref().map_or(Ok(()), |file| output::write(file, &json));
    let page = options.html.as_ref().map_or(Ok(()), |file| output::write(file, &page::of(series)));
    // A file that cannot be written does not prevent the other one.
    saved.and(page).and(shown)?;
    // A partial result is kept, but is not a success; nor is a search that found nothing.
    series.cut_short.as_ref().or(series.found_none.as_ref()).map_or(Ok(()), |why| Err(Refusal::Failure(why.clone())))
}

fn series(file: &Path) -> Result<Series, Refusal> {
    let text = read(file)?;
    serde_json::from_str(&text).map_err(|error| Refusal::Use(format!("{} is not a result: {error}", file.display())))
}

fn to_json<T: serde::Serialize>(value: &T) -> Result<String, Refusal> {
    let text = serde_json::to_string_pretty(value).map_err(|error| Refusal::Failure(error.to_string()))?;
    Ok(text + "\n")
}

fn write_out(out: &mut dyn Write, text: &str) -> Result<(), Refusal> {
    let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    match written {
        // A reader may stop early.
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(Refusal::Failure(format!("the report cannot be written: {error}")))
        }
        _ => Ok(()),
    }
}
