//! The results of experiments: as text, as JSON, as a page, as Markdown with pictures.

mod bars;
pub(crate) mod machine;
mod markdown;
mod page;
mod saved;
mod sheet;
mod verdict;

pub use machine::Machine;
pub use markdown::markdown;
pub use page::page;
pub use saved::Saved;
pub use sheet::{Figure, Group, Row, Sheet, figure};
pub use verdict::{Bound, Expect, Finding, Ratio, SAME, Verdict, findings, summary, times};

use crate::experiments::{Experiment, Published};
use load::made::Made;
use load::page::chart::label;
use serde::{Deserialize, Serialize};
use std::fmt;

/// How to read the report.
const LEGEND: &str = "Each figure is the median of its rounds, with half of their range; each ratio is to the first row, over the \
    rounds. Bars begin at zero, and the line across shows the range. In brackets is the interval of 95 %. A ratio with “=” is \
    1 within 5 %, and one with “?” shows no difference: its interval covers 1.";

/// The results of several experiments on one machine.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// The machine.
    pub machine: Machine,
    /// The version of this program.
    pub version: &'static str,
    /// When it began, and where; `None` if it resumes a report from before this field.
    pub made: Option<Made>,
    /// Distinguishes this build of the program from others; `None` if the program cannot be read.
    pub build: Option<u64>,
    /// True for a quick run, whose figures say little.
    pub quick: bool,
    /// How long all of it took, in seconds.
    pub seconds: f64,
    /// The outcomes, in order.
    pub experiments: Vec<Outcome>,
}

/// The result of one experiment.
#[derive(Clone, Debug, Serialize)]
pub struct Outcome {
    /// The experiment.
    #[serde(flatten)]
    pub experiment: Experiment,
    /// What was measured, possibly before it ended early.
    pub sheet: Sheet,
    /// How it ended.
    pub end: End,
    /// How long it took, in seconds.
    pub seconds: f64,
    /// What the figures show.
    pub findings: Vec<Finding>,
    /// The conclusion from the findings.
    pub conclusion: String,
}

/// How an experiment ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// It completed.
    Done,
    /// It cannot be run here, for this reason.
    Skipped(String),
    /// It went wrong.
    Failed(String),
}

impl Outcome {
    /// Builds the outcome; the conclusion is drawn here, only from the figures.
    pub fn of(experiment: Experiment, sheet: Sheet, end: End, seconds: f64) -> Outcome {
        let findings: Vec<_> = sheet.groups.iter().flat_map(findings).collect();
        let conclusion = match &end {
            End::Done => summary(&findings),
            End::Skipped(why) => format!("Skipped: {why}."),
            End::Failed(why) => format!("Ended before its time: {why}."),
        };
        Outcome { experiment, sheet, end, seconds, findings, conclusion }
    }
}

impl Report {
    /// Returns the outcomes that went wrong.
    pub fn failed(&self) -> impl Iterator<Item = &Outcome> {
        self.experiments.iter().filter(|outcome| matches!(outcome.end, End::Failed(_)))
    }

    /// Says when it began, as an addition to a sentence; empty if that is not known.
    fn begun(&self) -> String {
        self.made.as_ref().map_or_else(String::new, |made| format!(", begun {}", made.date()))
    }

    /// Returns what has to be known before the figures are read.
    fn warnings(&self) -> impl Iterator<Item = &'static str> {
        let quick = self.quick.then_some(
            "A quick run: few and short rounds, so that many differences are not shown, and of some experiments fewer variants than \
             their method names. The full set measures.",
        );
        let memory = self.machine.is_memory.then_some(
            "The private servers had their folders in memory (tmpfs), where a synced write costs nothing: whatever depends on a disk \
             is not that of this machine. --within names a folder on a disk.",
        );
        quick.into_iter().chain(memory)
    }
}

/// Formats a value of a figure as briefly as possible.
pub fn value(value: f64, unit: &str) -> String {
    if !value.is_finite() {
        return "–".to_owned();
    }
    let text = if value >= 1000.0 { grouped(value.round() as i64) } else { label(value) };
    format!("{text}{unit}")
}

/// Formats a number with a comma between thousands.
pub fn grouped(value: i64) -> String {
    let digits = value.abs().to_string();
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    if value < 0 { format!("-{out}") } else { out }
}

/// Returns the head of a group's table, and its rows: a name, then each figure with its range, then its ratio if it is
/// judged.
pub(crate) fn table(group: &Group) -> (Vec<String>, Vec<Vec<String>>) {
    let judged = group.judged();
    let mut head = vec![if group.title.is_empty() { "variant".to_owned() } else { group.title.clone() }];
    for (at, figure) in group.figures.iter().enumerate() {
        head.push(figure.name.clone().into_owned());
        if at < judged {
            head.push("ratio".to_owned());
        }
    }
    let row = |number: usize| {
        let row = &group.rows[number];
        let mut cells = vec![row.name.clone()];
        for (at, figure) in group.figures.iter().enumerate() {
            cells.push(measured(row, at, &figure.unit));
            if at < judged {
                cells.push(if number == 0 { "1".to_owned() } else { ratio(group.verdict(number, at)) });
            }
        }
        cells
    };
    (head, (0..group.rows.len()).map(row).collect())
}

/// Formats the median, and half the distance between the extremes as a share of it.
fn measured(row: &Row, figure: usize, unit: &str) -> String {
    let (median, (low, high)) = (row.median(figure), row.range(figure));
    let told = value(median, unit);
    if row.values.len() < 2 || median <= 0.0 || !median.is_finite() {
        return told;
    }
    format!("{told} ±{:.0} %", (high - low) / 2.0 / median * 100.0)
}

fn ratio(verdict: Verdict) -> String {
    match verdict {
        Verdict::Unknown => "–".to_owned(),
        Verdict::Differs(ratio) => times(ratio.middle),
        Verdict::Beyond(ratio) => verdict::beyond(ratio),
        Verdict::Same(ratio) => format!("{} =", times(ratio.middle)),
        Verdict::Undecided(ratio) => format!("{} ?", times(ratio.middle)),
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}\nPortiere {}{}", self.machine, self.version, self.begun())?;
        self.warnings().try_for_each(|warning| writeln!(f, "{}", wrapped("", warning)))?;
        writeln!(f, "{}", wrapped("", LEGEND))?;
        self.experiments.iter().try_for_each(|outcome| write!(f, "\n{outcome}"))
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Experiment { name, title, hypothesis, method, published, .. } = self.experiment;
        writeln!(f, "{name}: {title} ({:.0} s)\n{}", self.seconds, wrapped("  ", hypothesis))?;
        writeln!(f, "{}", wrapped("  Method: ", method))?;
        for group in &self.sheet.groups {
            let (head, rows) = table(group);
            let lines: Vec<_> = std::iter::once(&head).chain(&rows).collect();
            let width = |at: usize| lines.iter().map(|line| line[at].chars().count()).max().unwrap_or(0);
            for line in &lines {
                let cells = line.iter().enumerate().map(|(at, cell)| match at {
                    0 => format!("{cell:<0$}", width(at)),
                    _ => format!("{cell:>0$}", width(at)),
                });
                writeln!(f, "    {}", cells.collect::<Vec<_>>().join("  ").trim_end())?;
            }
        }
        self.findings
            .iter()
            .try_for_each(|finding| writeln!(f, "{}", wrapped(&format!("  {} ", mark(finding)), &finding.text)))?;
        self.sheet.notes.iter().try_for_each(|note| writeln!(f, "{}", wrapped("  ! ", note)))?;
        published.iter().try_for_each(|published| write!(f, "{published}"))?;
        writeln!(f, "{}", wrapped("  = ", &self.conclusion))
    }
}

impl fmt::Display for Published {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", wrapped("  Published: ", self.source))?;
        self.rows.iter().try_for_each(|(what, value)| writeln!(f, "    {what}: {value}"))
    }
}

/// Wraps a text into lines of at most 100 letters, the first after `head`, the others indented as far.
fn wrapped(head: &str, text: &str) -> String {
    const WIDTH: usize = 100;
    let (mut out, mut column) = (head.to_owned(), head.chars().count());
    let edge = column;
    for word in text.split_whitespace() {
        let length = word.chars().count();
        if column > edge && column + 1 + length > WIDTH {
            out.push('\n');
            out.extend(std::iter::repeat_n(' ', edge));
            column = edge;
        } else if column > edge {
            out.push(' ');
            column += 1;
        }
        out.push_str(word);
        column += length;
    }
    out
}

/// Returns the mark of a finding: as expected, not as expected, or neither.
pub(crate) fn mark(finding: &Finding) -> &'static str {
    match finding.expected {
        Some(true) => "+",
        Some(false) => "-",
        None => "·",
    }
}
