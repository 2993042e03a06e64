//! Measurements that take more than one plan: repeats, streams side by side, a sweep over rates, a search.

mod overload;

use crate::Refusal;
use crate::plan::{Pace, Plan, Shape, Workload};
use crate::report::Report;
use crate::search::{Terms, in_percent, limit};
use crate::series::{Found, Series, Trial, rate};
use overload::overload;
use std::time::Duration;

/// The rates of W3 per read of the account: 5 sign-ups and 3 sign-ins go with 600 reads.
const READS: f64 = 600.0;
const SIGN_UPS: f64 = 5.0 / READS;
const SIGN_INS: f64 = 3.0 / READS;
/// The connections of each stream of W3.
const CONNECTIONS: usize = 4;
/// The most iterations in flight at once in W4 and in a search, unless told otherwise.
const MOST: f64 = 4000.0;
/// The same if each visitor has to sign in first.
const MOST_SIGNED_IN: f64 = 200.0;
/// How long a server may take to answer again after the load that it was offered last; twice the request timeout if
/// that is longer: for that long it may be busy with requests whose senders have given up.
const RECOVERY: Duration = Duration::from_secs(60);

/// Carries out plans side by side, and shows progress if somebody watches.
pub type Runner<'a> = &'a mut dyn FnMut(&[Plan]) -> Result<Report, Refusal>;

/// What to do with a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Programme {
    /// Carry it out alone.
    Plain,
    /// W3.
    Constant {
        /// Whether new accounts are created.
        sign_ups: bool,
    },
    /// W4.
    Overload {
        /// Whether to measure the capacity with as many users as raise it, instead of the plan's number.
        grows: bool,
    },
    /// W6.
    Growth,
}

impl Programme {
    /// Returns its name, if it is more than one workload.
    pub const fn name(self) -> Option<&'static str> {
        match self {
            Programme::Plain => None,
            Programme::Constant { .. } => Some("w3"),
            Programme::Overload { .. } => Some("w4"),
            Programme::Growth => Some("w6"),
        }
    }

    /// Carries out the programme `repeat` times (a sweep once). Keeps what was measured before something went wrong:
    /// [`Series::cut_short`] then says why it ended there.
    ///
    /// # Errors
    /// [`Refusal`] if nothing was measured.
    pub fn carry_out(self, plan: &Plan, repeat: u32, run: Runner<'_>) -> Result<Series, Refusal> {
        let series = self.measured(plan, repeat, run)?;
        Ok(Series { programme: self.name().map(str::to_owned), ..series })
    }

    fn measured(self, plan: &Plan, repeat: u32, run: Runner<'_>) -> Result<Series, Refusal> {
        let plans: Vec<Vec<Plan>> = match self {
            Programme::Plain => vec![vec![plan.clone()]],
            Programme::Constant { sign_ups } => vec![constant(plan, sign_ups)],
            Programme::Overload { grows } => return overload(plan, grows, run),
            Programme::Growth => vec![vec![plan.clone()], vec![a_day(plan)]],
        };
        let mut runs: Vec<Report> = Vec::new();
        let again = |plans: &[Plan]| plans.iter().map(once_more).collect::<Vec<_>>();
        let mut turns = plans.iter().flat_map(|plans| {
            std::iter::once(plans.clone()).chain(std::iter::repeat_n(again(plans), repeat.saturating_sub(1) as usize))
        });
        let ended = turns.try_for_each(|plans| {
            runs.push(run(&plans)?);
            plan.interrupt.check()
        });
        // Half a run is better than none, but would spoil whole ones.
        let half = plan.interrupt.since().is_some() && runs.last().is_some_and(|last| !is_whole(last, plan));
        if half && runs.len() > 1 {
            runs.pop();
        }
        let cut_short = why_cut_short(ended, runs.is_empty())?;
        Ok(match self {
            // Different workloads are not repeats: they have no spread.
            Programme::Growth => Series { runs, cut_short, ..Series::default() },
            _ => Series { cut_short, ..Series::of(runs) },
        })
    }
}

/// Returns true if a run reached the end of its window and no late answer was cut off after it.
fn is_whole(run: &Report, plan: &Plan) -> bool {
    let mut all = std::iter::once(run).chain(&run.beside);
    run.seconds >= plan.duration.as_secs_f64() && all.all(|one| !one.is_open() || one.unfinished == 0)
}

/// Returns why a series ended early, if anything was measured at all.
fn why_cut_short(ended: Result<(), Refusal>, nothing: bool) -> Result<Option<String>, Refusal> {
    match ended {
        Err(refusal) if nothing => Err(refusal),
        ended => Ok(ended.err().map(|refusal| refusal.to_string())),
    }
}

fn constant(plan: &Plan, sign_ups: bool) -> Vec<Plan> {
    let reads = match plan.pace {
        Pace::Open { rate, .. } => rate,
        Pace::Closed { .. } => READS,
    };
    let stream = |workload, rate| Plan { workload, pace: Pace::Open { rate, visitors: CONNECTIONS }, ..plan.clone() };
    let mut streams = vec![stream(Workload::Profile, reads), stream(Workload::SignIn, reads * SIGN_INS)];
    if sign_ups {
        streams.push(stream(Workload::SignUp, reads * SIGN_UPS));
    }
    streams
}

fn a_day(plan: &Plan) -> Plan {
    let rate = match plan.pace {
        Pace::Open { rate, .. } => rate,
        Pace::Closed { .. } => 100.0,
    };
    let pace = Pace::Open { rate, visitors: plan.pace.visitors().max(100) };
    Plan { workload: Workload::Day, pace, shape: Shape::Day, ..plan.clone() }
}

/// Returns a plan for a repetition: the server only has to answer again.
fn once_more(plan: &Plan) -> Plan {
    Plan { recovery: Some(RECOVERY.max(plan.timeout * 2)), ..plan.clone() }
}

/// Returns the report unless the run was cut short: such a trial would say the wrong thing about its rate.
fn whole(plan: &Plan, report: Report) -> Result<Report, Refusal> {
    plan.interrupt.check().map(|()| report)
}

/// Finds the highest rate at which the server keeps `terms`; [`Series::found_none`] says if no rate does.
///
/// # Errors
/// [`Refusal`] if nothing was measured.
pub fn search(plan: &Plan, visitors: Option<usize>, terms: &Terms, run: Runner<'_>) -> Result<Series, Refusal> {
    let alone = match plan.pace {
        Pace::Open { .. } => None,
        Pace::Closed { .. } => Some(whole(plan, run(&[Plan { shape: Shape::Steady, ..plan.clone() }])?)?),
    };
    let first = match plan.pace {
        Pace::Open { rate, .. } => rate,
        Pace::Closed { .. } => alone.as_ref().map_or(1.0, |alone| (alone.iterations_per_second / 2.0).max(1.0)),
    };
    let most = if plan.workload.holds_tokens() { MOST_SIGNED_IN } else { MOST };
    // Enough users that at this latency no start has to wait for a free one.
    let enough = |rate: f64| (2.0 * rate * terms.p99.as_secs_f64()).clamp(20.0, most) as usize;
    let users = |rate: f64| visitors.unwrap_or_else(|| enough(rate));
    let (mut trials, mut idle): (Vec<Trial>, Option<String>) = (Vec::new(), None);
    let ended = limit(first, terms.precision, |rate| {
        let pace = Pace::Open { rate, visitors: users(rate) };
        let known = if alone.is_none() && trials.is_empty() { plan.clone() } else { once_more(plan) };
        let report = whole(plan, run(&[Plan { pace, shape: Shape::Steady, ..known }])?)?;
        if report.due() == 0 {
            idle = Some(format!("at {rate:.3}/s nothing is due within {:?} (--duration)", plan.duration));
            return Err(Refusal::Use(idle.clone().unwrap_or_default()));
        }
        let holds = terms.hold(&report);
        trials.push(Trial { offered: rate, holds: Some(holds), judged: terms.judged(&report), report });
        Ok::<_, Refusal>(holds)
    });
    let cut_short = why_cut_short(ended.map(drop), trials.is_empty() && (alone.is_none() || idle.is_some()))?;
    let runs = alone.into_iter().collect();
    if let Some(idle) = idle {
        // The search cannot go lower than this.
        let series = concluded(Series { runs, trials, ..Series::default() }, (first, terms), &users);
        let found_none = series.found_none.as_ref().map(|line| format!("{line}; {idle}"));
        return Ok(Series { found_none, ..series });
    }
    Ok(concluded(Series { runs, trials, cut_short, ..Series::default() }, (first, terms), &users))
}

/// Draws the conclusion from the trials, if they allow one: a search that was cut short before that stays as it is.
fn concluded(series: Series, (first, terms): (f64, &Terms), users: &dyn Fn(f64) -> usize) -> Series {
    let Series { runs, mut trials, cut_short, .. } = series;
    let by_generator = |trial: &Trial| is_by_generator(&trial.report, trial.offered, users(trial.offered), terms);
    let last = trials.last().is_some_and(by_generator);
    trials.sort_by(|a, b| a.offered.total_cmp(&b.offered));
    let Some(best) = trials.iter().rfind(|trial| trial.holds == Some(true)).cloned() else {
        if cut_short.is_some() {
            return Series { runs, trials, cut_short, ..Series::default() };
        }
        let (p99, errors) = (terms.p99, in_percent(terms.errors));
        let line =
            format!("no rate near {}/s keeps p99 at or below {p99:?} with {errors} % of errors or fewer", rate(first));
        let why = trials.first().and_then(|trial| trial.report.failures.first());
        let why = why.map_or_else(String::new, |failure| format!("; most that failed there: {failure}"));
        let found_none = Some(match last {
            true => line + "; the generator was the bottleneck there (--threads, --vus, or a core of its own)" + &why,
            false => line + &why,
        });
        return Series { runs, trials, found_none, ..Series::default() };
    };
    let lowest = trials.iter().find(|trial| trial.holds == Some(false) && trial.offered > best.offered);
    let found = Found {
        rate: best.offered,
        not: lowest.map(|trial| trial.offered),
        p99_ms: terms.p99.as_secs_f64() * 1000.0,
        errors: terms.errors,
        judged: best.judged,
        due: std::iter::once(&best).chain(lowest).map(|trial| trial.report.due()).min(),
        by_generator: lowest.is_some_and(by_generator),
    };
    Series { runs: vec![best.report], trials, found: Some(found), cut_short, ..Series::default() }
}

/// Returns true if the generator may be what broke the terms. If all users are busy, the first of them has been busy
/// for as long as that many starts take; if that is longer than the terms allow, the server has broken them by itself.
fn is_by_generator(report: &Report, rate: f64, users: usize, terms: &Terms) -> bool {
    let short_of_users = report.lacks_users() && (users as f64) < rate * terms.p99.as_secs_f64();
    report.is_busy() || report.is_starved() || report.lacks_means() || short_of_users || is_by_lateness(report, terms)
}

/// Returns true if the server alone would have kept the terms: without the generator's own lateness. How long the
/// generator waited for a core is another matter: a share of the time is not a share of a latency.
fn is_by_lateness(report: &Report, terms: &Terms) -> bool {
    report.is_late() && terms.hold_without(report.late_by(), report)
}

#[cfg(test)]
mod tests;
