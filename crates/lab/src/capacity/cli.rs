//! The command line of `portiere capacity`. The program around it parses it ([`Command`] is a `clap::Args`), calls
//! [`main`] and ends with the exit code of the [`Refusal`], if any.

use super::outcome::Capacity;
use super::probe::{self, Bench, Probes};
use super::progress::Bar;
use super::verify::{self, Verification};
use super::{page, report};
use crate::private::{end_all, unless_ending};
use clap::{Args, ValueHint};
use load::interrupt::Interrupt;
use load::made::Made;
use load::{Refusal, output};
use std::io::Write;
use std::path::{Path, PathBuf};

/// What can be asked.
#[derive(Args, Clone, Debug)]
pub struct Command {
    /// Then run sign-ins (W1) and a day's mix (W5) against a private server, and print predicted beside measured
    /// figures
    #[arg(long)]
    pub verify: bool,
    /// File to which --verify writes the prediction before it runs anything
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, default_value = "capacity-prediction.json",
          requires = "verify")]
    pub prediction: PathBuf,
    /// Take one short sample of each figure, and none with the parameters that OWASP and RFC 9106 recommend: shows that
    /// it works, not how fast
    #[arg(long)]
    pub quick: bool,
    /// Print JSON
    #[arg(skip)]
    pub json: bool,
    /// Write the result as JSON into a file
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub save: Option<PathBuf>,
    /// Write a report with charts into a file: one HTML page that needs nothing else
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub html: Option<PathBuf>,
    /// Measure nothing: predict from a file that --save wrote, on this machine or another
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with_all = ["verify", "quick"])]
    pub from: Option<PathBuf>,
}

/// Does what `command` says for a server whose data folder is `data` (which is left untouched), writes the report to
/// `out`, and progress to standard error if that is a terminal. Private servers run `program`. Blocks, and must be
/// called on a plain thread.
///
/// # Errors
/// [`Refusal`]: one line for the user, and the exit code.
pub fn main(command: &Command, (program, data): (&Path, &Path), out: &mut dyn Write) -> Result<(), Refusal> {
    let interrupt = load::interrupt::end_after(end_all);
    let named = [&command.save, &command.html].into_iter().flatten();
    let files: Vec<&PathBuf> = named.chain(command.verify.then_some(&command.prediction)).collect();
    all_apart(command.from.as_ref(), &files)?;
    files.into_iter().try_for_each(|file| output::try_out(file))?;
    let (capacity, unproven) = match &command.from {
        Some(file) => (saved(file)?, None),
        None => {
            let measured = measure(command, (program, data), &interrupt);
            unless_ending();
            measured?
        }
    };
    let json = serde_json::to_string_pretty(&capacity).map_err(|error| Refusal::Failure(error.to_string()))? + "\n";
    // The screen comes first: a result that a file cannot take is not lost. Nor does a closed terminal cost the file.
    let text = if command.json { json.clone() } else { report::text(&capacity) };
    let shown = match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        // A reader may stop early.
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(Refusal::Failure(format!("the report cannot be written: {error}")))
        }
        _ => Ok(()),
    };
    let saved = command.save.as_ref().map_or(Ok(()), |file| output::write(file, &json));
    let page = command.html.as_ref().map_or(Ok(()), |file| output::write(file, &page::of(&capacity)));
    // A file that cannot be written does not prevent the other one.
    saved.and(page).and(shown)?;
    unproven.map_or(Ok(()), Err)?;
    let outside = capacity.verification.as_ref().and_then(Verification::shortfall);
    match outside.filter(|_| command.verify && !command.quick) {
        // The user asked for a proof. One short sample is no proof, whatever its result; nor was the proof in a file
        // asked for.
        Some(why) => Err(Refusal::Failure(why)),
        None => Ok(()),
    }
}

/// Measures the machine and, if asked to, verifies the prediction. Returns also why the verification failed, if it did:
/// neither that nor a signal during it loses what was measured before.
fn measure(
    command: &Command,
    (program, data): (&Path, &Path),
    interrupt: &Interrupt,
) -> Result<(Capacity, Option<Refusal>), Refusal> {
    let (within, made) = (beside(data)?, Some(Made::here()));
    let mut bar = Bar::new();
    let bench = Bench { program, within: &within, quick: command.quick };
    let probes = probe::all(&bench, &mut |what, share| bar.say(what, share))?;
    bar.say("predicting", 1.0);
    let mut prove = || {
        // From here on a signal does not end the process.
        interrupt.check()?;
        let trials = verify::predict(&probes);
        verify::write_down(&command.prediction, &trials)?;
        let how = verify::How { file: &command.prediction, quick: command.quick, interrupt };
        verify::verify(&trials, (program, &within), &how, &mut |what, share| bar.say(what, share))
    };
    let (verification, unproven) = match command.verify.then(&mut prove).transpose() {
        Ok(verification) => (verification, None),
        Err(refusal) => (None, Some(refusal)),
    };
    Ok((Capacity { made, verification, ..Capacity::of(probes) }, unproven))
}

/// Makes sure that no result overwrites another, nor the measurement that is read: there may be no other copy of it,
/// and a result is less than that (a page), or another (the prediction of another version).
fn all_apart(from: Option<&PathBuf>, files: &[&PathBuf]) -> Result<(), Refusal> {
    output::apart(files.iter().copied())?;
    let holds = |file: &&&PathBuf| from.is_some_and(|from| output::apart([from, **file]).is_err());
    files.iter().find(holds).map_or(Ok(()), |file| {
        let line = format!("{} holds the measurement that is read: name another file for the result", file.display());
        Err(Refusal::Use(line))
    })
}

/// Predicts from a file that another run saved. Its proof stays: it is of what was predicted by the version that
/// measured.
fn saved(file: &Path) -> Result<Capacity, Refusal> {
    #[derive(serde::Deserialize)]
    struct Saved {
        #[serde(default)]
        made: Option<Made>,
        probes: Probes,
        #[serde(default)]
        verification: Option<Verification>,
    }
    let text = std::fs::read_to_string(file);
    let text = text.map_err(|error| Refusal::Use(format!("{} cannot be read: {error}", file.display())))?;
    let saved: Saved = serde_json::from_str(&text)
        .map_err(|error| Refusal::Use(format!("{} is not a result of this command: {error}", file.display())))?;
    let Saved { made, probes, verification } = saved;
    Ok(Capacity { made, verification, ..Capacity::of(probes) })
}

/// Returns a folder on the disk that a server with this data folder writes to, outside of the data folder if possible:
/// its nearest ancestor that exists and is on the same disk.
fn beside(data: &Path) -> Result<PathBuf, Refusal> {
    use std::os::unix::fs::MetadataExt as _;
    let failed = |error: std::io::Error| Refusal::Failure(format!("{}: {error}", data.display()));
    let whole = std::path::absolute(data).map_err(failed)?;
    let there = |folder: &&Path| folder.metadata().is_ok_and(|found| found.is_dir());
    let nearest = whole
        .ancestors()
        .find(there)
        .ok_or_else(|| Refusal::Failure(format!("there is no folder above {}", data.display())))?;
    if nearest != whole {
        return Ok(nearest.to_owned());
    }
    let disk = |folder: &Path| folder.metadata().map(|found| found.dev()).ok();
    let writable = |folder: &Path| rustix::fs::access(folder, rustix::fs::Access::WRITE_OK).is_ok();
    let above = whole.parent().filter(|above| disk(above) == disk(&whole) && writable(above));
    Ok(above.unwrap_or(&whole).to_owned())
}
