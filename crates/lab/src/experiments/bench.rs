//! The conditions of every experiment: how long, how often, where, and in which order variants take turns.

use super::Halt;
use crate::private::{Cores, Folder, Private, Setup, is_full, on};
use crate::report::{Bound, Figure, Group, Row, Sheet, figure};
use load::Refusal;
use load::plan::{Plan, Workload};
use load::report::Report;
use load::run::together;
use rules::Secret;
use std::path::PathBuf;
use std::time::Duration;

/// A callback for progress: what is being done, and in which round of a group.
pub type Watcher<'a> = &'a mut dyn FnMut(&str);

/// The conditions of all experiments.
pub struct Bench<'a> {
    /// The program, `portiere`.
    pub program: PathBuf,
    /// Where folders are created, which determines the disk.
    pub within: Option<PathBuf>,
    /// Empty databases on database servers.
    pub databases: Vec<(&'static str, Secret)>,
    /// Whether rounds are few and short.
    pub quick: bool,
    watcher: Watcher<'a>,
    remarks: Vec<String>,
    bounds: Vec<Option<Bound>>,
}

impl<'a> Bench<'a> {
    /// Creates a bench that tells `watcher` what it does.
    pub fn new(program: PathBuf, quick: bool, watcher: Watcher<'a>) -> Bench<'a> {
        let (databases, remarks, bounds) = (Vec::new(), Vec::new(), Vec::new());
        Bench { program, within: None, databases, quick, watcher, remarks, bounds }
    }

    /// Returns one of two values: `full` for the full set, `quick` for a quick run.
    pub fn either<T>(&self, full: T, quick: T) -> T {
        if self.quick { quick } else { full }
    }

    /// Returns how often each variant is measured.
    pub fn rounds(&self) -> usize {
        self.either(5, 3)
    }

    /// Returns how long one measurement over HTTP takes, after its warm-up.
    pub fn span(&self) -> Duration {
        self.either(Duration::from_secs(10), Duration::from_millis(1500))
    }

    /// Returns how long load runs before that without being counted.
    pub fn warmup(&self) -> Duration {
        self.either(Duration::from_secs(2), Duration::from_millis(500))
    }

    /// Returns how long one measurement of a single part takes, without a server.
    pub fn part(&self) -> Duration {
        self.either(Duration::from_secs(3), Duration::from_millis(500))
    }

    /// Describes a server as shipped.
    pub fn setup(&self) -> Setup {
        Setup { within: self.within.clone(), ..Setup::of(&self.program) }
    }

    /// Starts a server for each setup. All of them run side by side, and are idle unless it is their turn.
    ///
    /// # Errors
    /// The first failure to start.
    pub fn servers(&mut self, setups: &[Setup]) -> Result<Vec<Private>, Halt> {
        let start = |(at, setup): (usize, &Setup)| {
            (self.watcher)(&format!("starts server {} of {}", at + 1, setups.len()));
            Private::start(setup)
        };
        Ok(setups.iter().enumerate().map(start).collect::<Result<_, _>>()?)
    }

    /// Creates a folder for measurements without a server.
    ///
    /// # Errors
    /// If it cannot be created.
    pub fn folder(&self) -> Result<Folder, Refusal> {
        Folder::new(&self.program, self.within.as_deref())
    }

    /// Measures the variants of a group in turn, round by round, each with the subject of the same index, and adds the
    /// group to the sheet. What was measured before something went wrong is kept.
    ///
    /// # Errors
    /// The first error.
    pub fn turns<T>(
        &mut self,
        sheet: &mut Sheet,
        mut group: Group,
        subjects: &mut [T],
        mut measure: impl FnMut(&mut Bench<'a>, &mut T) -> Result<Vec<f64>, Halt>,
    ) -> Result<(), Halt> {
        let (rounds, mut ended) = (self.rounds().min(group.most_rounds), Ok(()));
        'rounds: for round in 1..=rounds {
            let mut values = Vec::with_capacity(subjects.len());
            for (Row { name, .. }, subject) in group.rows.iter().zip(subjects.iter_mut()) {
                let title = if group.title.is_empty() { String::new() } else { format!("{}, ", group.title) };
                (self.watcher)(&format!("{title}{name}, round {round} of {rounds}"));
                match measure(self, subject) {
                    Ok(value) if value.len() == group.figures.len() => {
                        values.push((value, std::mem::take(&mut self.bounds)));
                    }
                    Ok(value) => {
                        let (found, wanted) = (value.len(), group.figures.len());
                        ended = Err(Halt::Failed(format!("{found} figures were measured in place of {wanted}")));
                        break 'rounds;
                    }
                    Err(halt) => {
                        ended = Err(self.explained(halt));
                        break 'rounds;
                    }
                }
            }
            // Whole rounds only: rows are compared round by round.
            group.rows.iter_mut().zip(values).for_each(|(row, (value, bounds))| row.add(value, bounds));
        }
        if group.rows.iter().any(|row| !row.values.is_empty()) {
            sheet.groups.push(group);
        }
        ended
    }

    /// Adds the reason to an error if it is a full disk: a server without disk space only says that it is busy. Called
    /// while the servers exist; their folders are removed with them.
    fn explained(&self, halt: Halt) -> Halt {
        let within = self.within.clone().unwrap_or_else(std::env::temp_dir);
        match halt {
            Halt::Failed(why) if is_full(&within) => {
                Halt::Failed(format!("no room is left on the disk of {}: {why}", within.display()))
            }
            other => other,
        }
    }

    /// Runs plans side by side, with the generator on `cores`. What a reader has to know about it becomes a remark.
    ///
    /// # Errors
    /// [`Halt::Failed`], also if no iteration succeeded.
    pub fn drive(&mut self, plans: &[Plan], cores: Option<&Cores>) -> Result<Report, Halt> {
        let report = Self::crowd(plans, cores)?;
        self.told(Some(report))
    }

    /// Does the same for an existing report. What did not succeed, and its notes, become remarks.
    ///
    /// # Errors
    /// [`Halt::Failed`] if no iteration succeeded.
    pub fn told(&mut self, report: Option<Report>) -> Result<Report, Halt> {
        let report = self.judged(report)?;
        let short: Vec<String> = std::iter::once(&report).chain(&report.beside).filter_map(shortfall).collect();
        short.iter().chain(&report.notes).for_each(|remark| self.remark(remark));
        Ok(report)
    }

    /// Runs plans of which possibly no iteration succeeds, where that is a result.
    ///
    /// # Errors
    /// If the generator cannot run.
    pub fn crowd(plans: &[Plan], cores: Option<&Cores>) -> Result<Report, Halt> {
        // Where the system does not allow it, no process can be held to fewer cores.
        Ok(on(cores, || together(plans, None)).map_err(Halt::Skipped)??)
    }

    /// Returns a report with at least one success; if the generator set the limit, that becomes a remark.
    ///
    /// # Errors
    /// [`Halt::Failed`] if no iteration succeeded.
    pub fn judged(&mut self, report: Option<Report>) -> Result<Report, Halt> {
        let report = report.ok_or_else(|| Halt::Failed("nothing was measured".to_owned()))?;
        if report.iterations == 0 {
            let why =
                report.failures.first().map_or_else(String::new, |one| format!(": {} {}", one.step.name(), one.reason));
            return Err(Halt::Failed(format!("no iteration of {} came out well{why}", report.workload)));
        }
        if report.is_bound_by_generator() {
            self.remark(
                "The load generator was the bottleneck in some of the runs, or had too few users: what they show is not the limit \
                 of the server alone.",
            );
        }
        Ok(report)
    }

    /// Adds a remark to the figures, once.
    pub fn remark(&mut self, text: &str) {
        if !self.remarks.iter().any(|known| known == text) {
            self.remarks.push(text.to_owned());
        }
    }

    /// Marks values of the current measurement that stand for what could not be measured: by figure, on which side the
    /// truth lies.
    pub fn bound(&mut self, bounds: &[Option<Bound>]) {
        self.bounds = bounds.to_vec();
    }

    /// Returns the remarks since the last call.
    pub fn remarks(&mut self) -> Vec<String> {
        std::mem::take(&mut self.remarks)
    }

    /// Returns a plan with the times of this bench.
    ///
    /// # Errors
    /// As [`Private::plan`].
    pub fn plan(&self, server: &Private, workload: load::plan::Workload) -> Result<Plan, Refusal> {
        Ok(Plan { warmup: self.warmup(), duration: self.span(), ..server.plan(workload)? })
    }

    /// Reports what is being done.
    pub fn say(&mut self, what: &str) {
        (self.watcher)(what);
    }
}

/// Describes in one sentence what did not succeed: the figures cover only the rest.
fn shortfall(report: &Report) -> Option<String> {
    let Report { workload, iterations, failed, refused, unfinished, .. } = report;
    let open = if report.is_open() { *unfinished } else { 0 };
    if failed + refused + open == 0 {
        return None;
    }
    let first = report.failures.first().map(|one| format!("; most often {}: {}", one.step.name(), one.reason));
    Some(format!(
        "In a run of {workload} {failed} failed, {refused} were refused and {open} were not answered in time, beside {iterations} that came \
         out well and that the figures are of{}.",
        first.unwrap_or_default()
    ))
}

/// What [`flows`] measures.
pub const FLOWS: [Figure; 3] =
    [figure("flows a second", "/s"), figure("p99 of a flow", " ms"), figure("server CPU of a flow", " ms")];

/// Measures W1 without password: flows per second, their 99th percentile and the server's CPU time per flow, in ms.
pub fn flows(bench: &mut Bench<'_>, server: &mut Private) -> Result<Vec<f64>, Halt> {
    let report = bench.drive(&[bench.plan(server, Workload::Session)?], None)?;
    let cpu = report.server.map_or(f64::NAN, |server| server.cores * 1e3 / report.iterations_per_second);
    Ok(vec![report.iterations_per_second, report.latency.p99, cpu])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Red without `explained`. Nobody can store anything in /proc, which has no space and says so.
    #[test]
    fn what_goes_wrong_on_a_full_disk_says_that_it_is_full() {
        let mut watcher = |_: &str| {};
        let mut ended = |within: &str| {
            let mut bench = Bench::new(PathBuf::new(), true, &mut watcher);
            bench.within = Some(PathBuf::from(within));
            let group = Group::new("", &[figure("reads", "/s")], vec![Row::new("one", &[])]);
            let turn = |_: &mut Bench<'_>, (): &mut ()| Err(Halt::Failed("503".to_owned()));
            match bench.turns(&mut Sheet::default(), group, &mut [()], turn) {
                Err(Halt::Failed(why)) => why,
                _ => String::new(),
            }
        };
        assert_eq!(ended("/proc"), "no room is left on the disk of /proc: 503");
        assert_eq!(ended("."), "503");
    }
}
