//! Turns measured values into sentences, by rule.
//!
//! Variants take turns, so that other work on the machine affects all alike. Within a round they are compared as a
//! ratio; over the rounds these ratios vary, and the 95 % interval of their geometric mean (by Student's t) says how
//! certain it is. An interval that covers 1 shows no difference, however far its middle is from 1.

use super::sheet::{Figure, Group};
use load::compare::student;
use load::page::chart::label;
use serde::{Deserialize, Serialize};

/// How a figure should compare with that of the first row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Expect {
    /// Higher.
    More,
    /// Lower.
    Less,
    /// Within [`SAME`] of it.
    Same,
    /// Lower by less than a tenth, or higher.
    Nearly,
    /// Nothing is expected: the outcome is only stated.
    Open,
}

/// How much two values may differ to be called the same.
pub const SAME: f64 = 0.05;

/// Above this share, a lower value is nearly as high.
const NEARLY: f64 = 0.9;

/// An interval whose ends differ by more than this factor says nothing.
const WIDE: f64 = 100.0;

/// What the rounds show about a ratio.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// It differs from 1.
    Differs(Ratio),
    /// It differs from 1 by this factor or more: there is no interval, because values of a side are bounds.
    Beyond(f64),
    /// Both ends of the interval are within [`SAME`] of 1.
    Same(Ratio),
    /// The interval covers 1, and is too wide to call the values the same.
    Undecided(Ratio),
    /// There are not enough rounds, or a value is zero.
    Unknown,
}

/// On which side of a value the truth lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Bound {
    /// The truth is at least the value.
    AtLeast,
    /// The truth is at most the value.
    AtMost,
}

impl Bound {
    /// Returns the bound of a ratio that has the value as its divisor.
    const fn of_divisor(self) -> Bound {
        match self {
            Bound::AtLeast => Bound::AtMost,
            Bound::AtMost => Bound::AtLeast,
        }
    }
}

/// A ratio, and its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Ratio {
    /// The geometric mean over the rounds.
    pub middle: f64,
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

impl Verdict {
    /// Compares values `b` with `a`, round by round.
    pub fn of(a: &[f64], b: &[f64]) -> Verdict {
        let sound = |value: &f64| value.is_finite() && *value > 0.0;
        if a.len() != b.len() || a.len() < 2 || !a.iter().chain(b).all(sound) {
            return Verdict::Unknown;
        }
        let logs: Vec<f64> = a.iter().zip(b).map(|(a, b)| (b / a).ln()).collect();
        let count = logs.len() as f64;
        let mean = logs.iter().sum::<f64>() / count;
        let variance = logs.iter().map(|log| (log - mean).powi(2)).sum::<f64>() / (count - 1.0);
        let half = student(count - 1.0) * (variance / count).sqrt();
        let ratio = Ratio { middle: mean.exp(), low: (mean - half).exp(), high: (mean + half).exp() };
        if ratio.low > 1.0 - SAME && ratio.high < 1.0 + SAME {
            Verdict::Same(ratio)
        } else if (ratio.low..=ratio.high).contains(&1.0) {
            Verdict::Undecided(ratio)
        } else {
            Verdict::Differs(ratio)
        }
    }

    /// Applies bounds on values of `a` or of `b`. A difference that the truth can only widen remains a difference;
    /// everything else becomes unknown.
    pub fn bounded(self, a: Option<Bound>, b: Option<Bound>) -> Verdict {
        let bound = match (a.map(Bound::of_divisor), b) {
            (None, None) => return self,
            (Some(one), Some(other)) if one != other => return Verdict::Unknown,
            (one, other) => one.or(other),
        };
        match self {
            Verdict::Differs(ratio) if (ratio.middle > 1.0) == (bound == Some(Bound::AtLeast)) => {
                Verdict::Beyond(ratio.middle)
            }
            _ => Verdict::Unknown,
        }
    }

    /// Returns the ratio with its interval, if there is one.
    pub fn ratio(self) -> Option<Ratio> {
        match self {
            Verdict::Differs(ratio) | Verdict::Same(ratio) | Verdict::Undecided(ratio) => Some(ratio),
            Verdict::Beyond(_) | Verdict::Unknown => None,
        }
    }

    /// Returns whether it is as expected; `None` if that cannot be said.
    pub fn meets(self, expected: Expect) -> Option<bool> {
        match (expected, self) {
            (Expect::Open, _) | (_, Verdict::Unknown) => None,
            (Expect::Nearly, Verdict::Beyond(ratio)) => (!(NEARLY..=1.0).contains(&ratio)).then_some(ratio > 1.0),
            (Expect::Nearly, Verdict::Differs(ratio) | Verdict::Same(ratio) | Verdict::Undecided(ratio)) => {
                (ratio.low > NEARLY || ratio.high <= NEARLY).then_some(ratio.low > NEARLY)
            }
            (_, Verdict::Undecided(_)) => None,
            (Expect::More, Verdict::Differs(Ratio { middle, .. }) | Verdict::Beyond(middle)) => Some(middle > 1.0),
            (Expect::Less, Verdict::Differs(Ratio { middle, .. }) | Verdict::Beyond(middle)) => Some(middle < 1.0),
            (Expect::Same, Verdict::Same(_)) => Some(true),
            // While the interval overlaps what is called the same, the truth may lie there.
            (Expect::Same, Verdict::Differs(Ratio { low, high, .. })) => is_apart(low, high).then_some(false),
            (Expect::Same, Verdict::Beyond(ratio)) => is_apart(ratio, ratio).then_some(false),
            (Expect::More | Expect::Less, Verdict::Same(_)) => Some(false),
        }
    }
}

/// Returns true if nothing between the ends is called the same.
fn is_apart(low: f64, high: f64) -> bool {
    low >= 1.0 + SAME || high <= 1.0 - SAME
}

impl Ratio {
    /// Formats the interval, in brackets.
    fn interval(self) -> String {
        if self.high > WIDE * self.low {
            return "(the rounds differ too much)".to_owned();
        }
        format!("({} to {})", times(self.low), times(self.high))
    }
}

/// Formats a factor with as many digits as it deserves.
pub fn times(factor: f64) -> String {
    match factor {
        factor if factor >= 10.0 => label(factor),
        factor if factor >= 0.1 || factor <= 0.0 => format!("{factor:.2}"),
        // Two significant digits: 0.00 would say nothing.
        factor => format!("{factor:.*}", (1.0 - factor.log10().floor().max(-9.0)) as usize),
    }
}

/// Formats a bound in the same way, on whichever side of 1 it is.
pub fn beyond(factor: f64) -> String {
    format!("{} {}", if factor > 1.0 { "at least" } else { "at most" }, times(factor))
}

/// Describes how far a ratio is from 1, as people say it.
fn distance(ratio: f64) -> String {
    let percent = |share: f64| label((share * 1000.0).round() / 10.0);
    match ratio {
        ratio if ratio >= 2.0 => format!("{} times as high", times(ratio)),
        ratio if ratio > 1.0 => format!("{} % higher", percent(ratio - 1.0)),
        ratio if ratio > 0.5 => format!("{} % lower", percent(1.0 - ratio)),
        ratio => format!("1/{} as high", times(1.0 / ratio)),
    }
}

/// One sentence, and whether it is as expected.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The sentence.
    pub text: String,
    /// `None`: nothing was expected, or nothing is shown.
    pub expected: Option<bool>,
    /// True if nothing was expected.
    pub open: bool,
    /// Whether the figures show anything: a difference, or that there is none worth mentioning.
    pub is_shown: bool,
}

/// Returns everything that a group shows, sentence by sentence.
pub fn findings(group: &Group) -> Vec<Finding> {
    let rows = 1..group.rows.len();
    let judged = rows
        .flat_map(|row| (0..group.rows[row].expected.len().min(group.figures.len())).map(move |figure| (row, figure)));
    judged.map(|(row, figure)| finding(group, row, figure)).collect()
}

fn finding(group: &Group, row: usize, figure: usize) -> Finding {
    let (verdict, expected) = (group.verdict(row, figure), group.rows[row].expected[figure]);
    let (name, base) = (&group.rows[row].name, &group.rows[0].name);
    let Figure { name: of, .. } = &group.figures[figure];
    let said = match verdict {
        Verdict::Differs(ratio) => format!("{of} {} {}", distance(ratio.middle), ratio.interval()),
        // A fraction of the first row is an upper bound; everything else is a distance, and a lower bound.
        Verdict::Beyond(ratio) => {
            format!("{of} at {} {}", if ratio > 0.5 { "least" } else { "most" }, distance(ratio))
        }
        Verdict::Same(ratio) => format!("{of} the same within 5 % {}", ratio.interval()),
        Verdict::Undecided(ratio) => format!("no difference in {of} is shown {}", ratio.interval()),
        Verdict::Unknown => format!("too little was measured to compare {of}"),
    };
    let title = if group.title.is_empty() { String::new() } else { format!("{}: ", group.title) };
    Finding {
        text: format!("{title}{name}, beside {base}: {said}."),
        expected: verdict.meets(expected),
        is_shown: matches!(verdict, Verdict::Differs(_) | Verdict::Beyond(_) | Verdict::Same(_)),
        open: expected == Expect::Open,
    }
}

/// Summarizes all findings.
pub fn summary(findings: &[Finding]) -> String {
    let asked: Vec<_> = findings.iter().filter(|finding| !finding.open).collect();
    let count = |wanted: Option<bool>| asked.iter().filter(|finding| finding.expected == wanted).count();
    let (met, unmet, not_shown) = (count(Some(true)), count(Some(false)), count(None));
    match (asked.len(), met, unmet) {
        (0, ..) => "Nothing was expected beforehand: see the figures.".to_owned(),
        (all, met, _) if met == all => format!("The hypothesis holds on this machine, in {}.", comparisons(all, all)),
        (all, 0, 0) => {
            format!("Neither the hypothesis nor its opposite is shown on this machine, in {}.", comparisons(all, all))
        }
        (all, met, 0) => {
            format!("The hypothesis holds in {} on this machine; the rest is not decided.", comparisons(met, all))
        }
        (all, met, unmet) => {
            let rest = match not_shown {
                0 => String::new(),
                1 => "; one is not decided".to_owned(),
                more => format!("; {more} are not decided"),
            };
            format!("On this machine the hypothesis holds in {}, and does not in {unmet}{rest}.", comparisons(met, all))
        }
    }
}

fn comparisons(some: usize, all: usize) -> String {
    match (some, all) {
        (1, 1) => "the one comparison".to_owned(),
        (some, all) if some == all => format!("all {all} comparisons"),
        (some, all) => format!("{some} of {all} comparisons"),
    }
}
