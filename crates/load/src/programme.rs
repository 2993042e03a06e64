//! What takes more than one plan: repeats, streams side by side, a sweep over rates, a search.

use crate::Refusal;
use crate::plan::{Pace, Plan, Shape, Workload};
use crate::report::Report;
use crate::search::{Terms, limit};
use crate::series::{Found, Series, Trial};
use std::time::Duration;

/// The rates of W3 for each read of the account: 5 sign-ups and 3 sign-ins go with 600 reads.
const READS: f64 = 600.0;
const SIGN_UPS: f64 = 5.0 / READS;
const SIGN_INS: f64 = 3.0 / READS;
/// The connections of each stream of W3.
const CONNECTIONS: usize = 4;
/// What W4 offers, beside what the server manages.
const OFFERS: [f64; 5] = [0.5, 1.0, 2.0, 5.0, 10.0];
/// The light requests of W4, and the share of what each manages alone that goes on beside the sign-ins.
const LIGHT: [Workload; 3] = [Workload::Introspect, Workload::Refresh, Workload::Jwks];
const LIGHT_SHARE: f64 = 0.2;
/// The most that are under way at once in W4 and in a search, unless told otherwise.
const MOST: f64 = 4000.0;

/// The same where each has to sign in first.
const MOST_SIGNED_IN: f64 = 200.0;
/// How long a server is given to answer again after what it was offered last; twice the longest that a request may take, where
/// that is longer: so long it may be busy with requests whose senders have given up.
const RECOVERY: Duration = Duration::from_secs(60);

/// Carries out plans side by side; what shows progress, where somebody looks.
pub type Runner<'a> = &'a mut dyn FnMut(&[Plan]) -> Result<Report, Refusal>;

/// What is made of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Programme {
    /// It alone.
    Plain,
    /// W3.
    Constant {
        /// With new accounts.
        sign_ups: bool,
    },
    /// W4.
    Overload,
    /// W6.
    Growth,
}

impl Programme {
    /// Carries out the programme `repeat` times (a sweep once). What was measured before something went wrong is kept:
    /// [`Series::cut_short`] says why it ended there.
    ///
    /// # Errors
    /// [`Refusal`], where nothing was measured.
    pub fn carry_out(self, plan: &Plan, repeat: u32, run: Runner<'_>) -> Result<Series, Refusal> {
        let plans: Vec<Vec<Plan>> = match self {
            Programme::Plain => vec![vec![plan.clone()]],
            Programme::Constant { sign_ups } => vec![constant(plan, sign_ups)],
            Programme::Overload => return overload(plan, run),
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
        // Half a run is better than none, and spoils whole ones.
        let half = plan.interrupt.since().is_some() && runs.last().is_some_and(|last| !is_whole(last, plan));
        if half && runs.len() > 1 {
            runs.pop();
        }
        let cut_short = why_cut_short(ended, runs.is_empty())?;
        Ok(match self {
            // Repeats of different workloads do not vary, they differ.
            Programme::Growth => Series { runs, cut_short, ..Series::default() },
            _ => Series { cut_short, ..Series::of(runs) },
        })
    }
}

/// True when a run went on to the end of its window, and nobody's late answer was cut off after it.
fn is_whole(run: &Report, plan: &Plan) -> bool {
    let mut all = std::iter::once(run).chain(&run.beside);
    run.seconds >= plan.duration.as_secs_f64() && all.all(|one| !one.is_open() || one.unfinished == 0)
}

/// Why a series ended before its time, where there is a series at all.
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

fn overload(plan: &Plan, run: Runner<'_>) -> Result<Series, Refusal> {
    let closed = Pace::Closed { visitors: plan.pace.visitors(), pause: Duration::ZERO };
    let alone = whole(plan, run(&[Plan { pace: closed, shape: Shape::Steady, ..plan.clone() }])?)?;
    let capacity = alone.iterations_per_second;
    let mut trials = Vec::new();
    let cut_short = match capacity > 0.0 {
        true => flood(plan, capacity, run, &mut trials).err().map(|refusal| refusal.to_string()),
        false => Some("not one sign-in came out well, so there is no capacity to go beyond".to_owned()),
    };
    Ok(Series { runs: vec![alone], trials, cut_short, ..Series::default() })
}

/// The plan of what has been tried already: the server is only to answer again.
fn once_more(plan: &Plan) -> Plan {
    Plan { recovery: Some(RECOVERY.max(plan.timeout * 2)), ..plan.clone() }
}

/// A report that was not cut short: a trial that was would say the wrong thing about its rate.
fn whole(plan: &Plan, report: Report) -> Result<Report, Refusal> {
    plan.interrupt.check().map(|()| report)
}

/// Offers shares and multiples of `capacity`, with light requests beside them.
fn flood(plan: &Plan, capacity: f64, run: Runner<'_>, trials: &mut Vec<Trial>) -> Result<(), Refusal> {
    let mut light = Vec::new();
    for workload in LIGHT {
        let pace = Pace::Closed { visitors: 4, pause: Duration::ZERO };
        let duration = plan.duration.min(Duration::from_secs(5));
        let alone = whole(plan, run(&[Plan { workload, pace, duration, shape: Shape::Steady, ..plan.clone() }])?)?;
        let pace = Pace::Open { rate: (alone.iterations_per_second * LIGHT_SHARE).max(1.0), visitors: 50 };
        light.push(Plan { workload, pace, shape: Shape::Steady, ..once_more(plan) });
    }
    for share in OFFERS {
        let rate = capacity * share;
        let visitors = (rate * plan.timeout.as_secs_f64()).clamp(100.0, MOST) as usize;
        let flood = Plan { pace: Pace::Open { rate, visitors }, shape: Shape::Steady, ..once_more(plan) };
        let report = whole(plan, run(&[&[flood], light.as_slice()].concat())?)?;
        trials.push(Trial { offered: rate, holds: None, report });
    }
    Ok(())
}

/// The highest rate at which the server keeps `terms`; [`Series::found_none`] says that no rate does.
///
/// # Errors
/// [`Refusal`], where nothing was measured.
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
    // So many that at this latency nobody has to wait for a free one.
    let enough = |rate: f64| (2.0 * rate * terms.p99.as_secs_f64()).clamp(20.0, most) as usize;
    let users = |rate: f64| visitors.unwrap_or_else(|| enough(rate));
    let (mut trials, mut idle): (Vec<Trial>, Option<String>) = (Vec::new(), None);
    let ended = limit(first, terms.precision, |rate| {
        let pace = Pace::Open { rate, visitors: users(rate) };
        let known = if alone.is_none() && trials.is_empty() { plan.clone() } else { once_more(plan) };
        let report = whole(plan, run(&[Plan { pace, shape: Shape::Steady, ..known }])?)?;
        if report.iterations + report.unanswered() == 0 {
            idle = Some(format!("at {rate:.3}/s nothing is due within {:?} (--duration)", plan.duration));
            return Err(Refusal::Use(idle.clone().unwrap_or_default()));
        }
        let holds = terms.hold(&report);
        trials.push(Trial { offered: rate, holds: Some(holds), report });
        Ok::<_, Refusal>(holds)
    });
    let cut_short = why_cut_short(ended.map(drop), trials.is_empty() && (alone.is_none() || idle.is_some()))?;
    let runs = alone.into_iter().collect();
    if let Some(idle) = idle {
        // That is how far down it goes.
        let series = concluded(Series { runs, trials, ..Series::default() }, (first, terms), &users);
        let found_none = series.found_none.as_ref().map(|line| format!("{line}; {idle}"));
        return Ok(Series { found_none, ..series });
    }
    Ok(concluded(Series { runs, trials, cut_short, ..Series::default() }, (first, terms), &users))
}

/// What trials came to, where they came to anything: one that was cut short before is what it is.
fn concluded(series: Series, (first, terms): (f64, &Terms), users: &dyn Fn(f64) -> usize) -> Series {
    let Series { runs, mut trials, cut_short, .. } = series;
    let by_generator = |trial: &Trial| is_by_generator(&trial.report, trial.offered, users(trial.offered), terms);
    let last = trials.last().is_some_and(by_generator);
    trials.sort_by(|a, b| a.offered.total_cmp(&b.offered));
    let Some(best) = trials.iter().rfind(|trial| trial.holds == Some(true)).cloned() else {
        if cut_short.is_some() {
            return Series { runs, trials, cut_short, ..Series::default() };
        }
        let (p99, errors) = (terms.p99, terms.errors * 100.0);
        let line =
            format!("no rate near {first:.1}/s keeps p99 at or below {p99:?} with {errors} % of errors or fewer");
        let why = trials.first().and_then(|trial| trial.report.failures.first());
        let why = why.map_or_else(String::new, |failure| format!("; most that failed there: {failure}"));
        let found_none = Some(match last {
            true => line + "; the generator was the bottleneck there (--threads, --vus)" + &why,
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
        by_generator: lowest.is_some_and(by_generator),
    };
    Series { runs: vec![best.report], trials, found: Some(found), cut_short, ..Series::default() }
}

/// True when it may be the generator that did not keep the terms. Where all users are busy at once the first of them has been so
/// for as long as that many starts take; when that is longer than the terms allow, the server has broken them by itself.
fn is_by_generator(report: &Report, rate: f64, users: usize, terms: &Terms) -> bool {
    report.is_busy() || report.lacks_means() || report.lacks_users() && (users as f64) < rate * terms.p99.as_secs_f64()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interrupt::Interrupt;
    use crate::plan::tests::plan;
    use crate::report::Failure;
    use crate::visitor::Step;
    use crate::wire::Fault;
    use std::time::Instant;

    /// Holds what is offered up to 100 a second.
    fn server(plans: &[Plan]) -> Report {
        let rate = match plans[0].pace {
            Pace::Open { rate, .. } => rate,
            Pace::Closed { .. } => 120.0,
        };
        let mut report = report(plans[0].workload.name(), 100, rate);
        report.failed = u64::from(rate > 100.0);
        report.beside = plans[1..].iter().map(|plan| self::report(plan.workload.name(), 1, 1.0)).collect();
        report
    }

    fn report(name: &str, count: u64, rate: f64) -> Report {
        crate::report::tests::report(name, count, rate)
    }

    #[test]
    fn a_search_ends_between_what_held_and_what_did_not() {
        let terms = Terms { p99: Duration::from_millis(500), errors: 0.0, precision: 0.05 };
        let series = search(&plan(), None, &terms, &mut |plans| Ok(server(plans))).unwrap();
        let found = series.found.unwrap();
        assert!(
            found.rate <= 100.0 && found.not.is_some_and(|not| not > 100.0 && not <= found.rate * 1.06),
            "{found:?}"
        );
        assert!(series.trials.is_sorted_by_key(|trial| trial.offered));
        assert_eq!(series.runs[0].iterations_per_second, found.rate);
        let strict = Terms { p99: Duration::from_micros(1), ..terms };
        // Red where a search that finds none is an error: its trials say why, and were lost.
        let none = search(&plan(), None, &strict, &mut |plans| Ok(server(plans))).unwrap();
        let why = none.found_none.as_deref().unwrap();
        assert!(why.starts_with("no rate near 60.0/s keeps p99") && none.to_string().contains(why), "{why}");
        assert!(none.found.is_none() && none.runs.len() == 1 && none.trials.len() > 2);
        let fails = |plans: &[Plan]| Ok(Report { iterations_per_second: 0.0, ..server(plans) });
        let none = Programme::Overload.carry_out(&plan(), 1, &mut { fails }).unwrap();
        assert!(none.runs.len() == 1 && none.cut_short.is_some_and(|why| why.starts_with("not one sign-in")));
    }

    /// Red where nobody asks why a rate does not hold: the wait for one of too few users was the server's limit.
    #[test]
    fn a_limit_that_too_few_users_set_is_the_generators() {
        let terms = Terms { p99: Duration::from_millis(500), errors: 0.0, precision: 0.05 };
        let mut crowded = |plans: &[Plan]| {
            let mut report = server(plans);
            report.waited_for_users = report.failed * 50;
            Ok(report)
        };
        let mut found = |users| search(&plan(), users, &terms, &mut crowded).unwrap().found.unwrap();
        // A hundred and some a second, each for half a second at most, take fifty and some users.
        assert!(found(Some(20)).by_generator && found(Some(20)).to_string().contains("--vus"));
        assert!(!found(Some(80)).by_generator && !found(None).by_generator);
    }

    /// Red where every failure is the server's: a server that closes each connection uses up the generator's ports.
    #[test]
    fn failures_of_the_generator_are_not_the_servers() {
        let terms = Terms { p99: Duration::from_millis(500), errors: 0.0, precision: 0.05 };
        let failing = |reason: &str| {
            let reason = reason.to_owned();
            move |plans: &[Plan]| {
                let mut report = server(plans);
                let failure = Failure { step: Step::Jwks, reason: reason.clone(), count: 50 * report.failed };
                report.failures = vec![failure; usize::from(report.failed > 0)];
                Ok(report)
            }
        };
        let found = |reason: &str| search(&plan(), None, &terms, &mut failing(reason)).unwrap().found.unwrap();
        assert!(found(&Fault::NoPorts.to_string()).by_generator && !found("503").by_generator);
        let strict = Terms { p99: Duration::from_micros(1), ..terms };
        let mut always = |plans: &[Plan]| {
            let failure = Failure { step: Step::Token, reason: "400 invalid_client".to_owned(), count: 9 };
            Ok(Report { failures: vec![failure], ..server(plans) })
        };
        let none = search(&plan(), None, &strict, &mut always).unwrap().found_none.unwrap();
        assert!(none.ends_with("; most that failed there: token: 400 invalid_client"), "{none}");
    }

    #[test]
    fn what_is_repeated_without_end_is_not_made_beforehand() {
        let mut left = 3;
        let mut tires = |plans: &[Plan]| {
            left -= 1;
            if left == 0 { Err(Refusal::Failure("tired".to_owned())) } else { Ok(server(plans)) }
        };
        let series = Programme::Plain.carry_out(&plan(), u32::MAX, &mut tires).unwrap();
        assert_eq!((series.runs.len(), series.cut_short.as_deref()), (2, Some("tired")));
    }

    #[test]
    fn errors_up_to_a_share_are_borne() {
        let terms = Terms { p99: Duration::from_millis(500), errors: 0.02, precision: 0.05 };
        let found = search(&plan(), None, &terms, &mut |plans| Ok(server(plans))).unwrap().found.unwrap();
        assert_eq!((found.rate > 10_000.0, found.not), (true, None), "{found:?}");
    }

    #[test]
    fn the_streams_of_w3_keep_their_proportions() {
        let plans = constant(&Plan { workload: Workload::Profile, ..plan() }, true);
        let rates: Vec<_> = plans.iter().map(|plan| (plan.workload.name(), plan.pace)).collect();
        let open = |rate| Pace::Open { rate, visitors: 4 };
        assert_eq!(rates, [("profile", open(600.0)), ("sign_in", open(3.0)), ("sign_up", open(5.0))]);
        assert_eq!(constant(&plan(), false).len(), 2);
    }

    #[test]
    fn overload_offers_up_to_ten_times_what_was_managed() {
        let series = Programme::Overload.carry_out(&plan(), 1, &mut |plans| Ok(server(plans))).unwrap();
        let offered: Vec<_> = series.trials.iter().map(|trial| trial.offered).collect();
        assert_eq!(offered, [60.0, 120.0, 240.0, 600.0, 1200.0]);
        assert!(series.trials.iter().all(|trial| trial.report.beside.len() == 3));
    }

    #[test]
    fn what_was_measured_before_something_went_wrong_is_kept() {
        // Whatever is measured third does not come about.
        let dies_at = |call: u32| {
            let mut calls = 0;
            move |plans: &[Plan]| {
                calls += 1;
                if calls < call { Ok(server(plans)) } else { Err(Refusal::Failure("gone".into())) }
            }
        };
        let gone = Some("gone".to_owned());
        let twice = Programme::Plain.carry_out(&plan(), 5, &mut dies_at(3)).unwrap();
        assert_eq!((twice.runs.len(), &twice.cut_short, twice.spread.is_some()), (2, &gone, true));
        assert!(twice.to_string().contains("Ended before its time: gone\n"));
        // Alone, three times the light ones, and the first two floods.
        let sweep = Programme::Overload.carry_out(&plan(), 1, &mut dies_at(7)).unwrap();
        assert_eq!((sweep.runs.len(), sweep.trials.len(), &sweep.cut_short), (1, 2, &gone));
        let terms = Terms { p99: Duration::from_millis(500), errors: 0.0, precision: 0.05 };
        // A closed loop, 60 (holds), 120 (does not), and then nothing.
        let found = search(&plan(), None, &terms, &mut dies_at(4)).unwrap();
        assert_eq!((found.trials.len(), found.found.unwrap().rate, &found.cut_short), (2, 60.0, &gone));
        // What went on alone is a result, and so are trials of which none held.
        let alone = search(&plan(), None, &terms, &mut dies_at(2)).unwrap();
        assert_eq!((alone.runs.len(), alone.trials.len(), &alone.cut_short), (1, 0, &gone));
        let open = Plan { pace: Pace::Open { rate: 300.0, visitors: 9 }, ..plan() };
        let low = search(&open, None, &terms, &mut dies_at(2)).unwrap();
        assert_eq!((low.found.is_none(), low.trials.len(), &low.cut_short), (true, 1, &gone));
        let sweep = Programme::Overload.carry_out(&plan(), 1, &mut dies_at(5)).unwrap();
        assert_eq!((sweep.runs.len(), sweep.trials.len(), &sweep.cut_short), (1, 0, &gone));
        assert!(search(&plan(), None, &terms, &mut dies_at(1)).is_err());
        assert!(Programme::Plain.carry_out(&plan(), 5, &mut dies_at(1)).is_err());
        assert!(Programme::Overload.carry_out(&plan(), 1, &mut dies_at(1)).is_err());
    }

    /// Red where every trial rehearses as the first: a server that still digests the one before would end a search.
    #[test]
    fn only_what_was_not_tried_before_is_rehearsed_as_if_nothing_were_known() {
        let mut known = Vec::new();
        let mut told = |plans: &[Plan]| {
            known.push(plans.iter().map(|plan| plan.recovery).collect::<Vec<_>>());
            Ok(server(plans))
        };
        let slow = Plan { timeout: Duration::from_secs(50), ..plan() };
        Programme::Plain.carry_out(&slow, 3, &mut told).unwrap();
        Programme::Growth.carry_out(&plan(), 2, &mut told).unwrap();
        Programme::Overload.carry_out(&plan(), 1, &mut told).unwrap();
        let terms = Terms { p99: Duration::from_millis(500), errors: 0.0, precision: 1.0 };
        search(&plan(), None, &terms, &mut told).unwrap();
        let (twice, minute) = (Some(Duration::from_secs(100)), Some(Duration::from_secs(60)));
        assert_eq!(known[..3], [[None], [twice], [twice]]);
        assert_eq!(known[3..7], [[None], [minute], [None], [minute]]);
        assert_eq!(known[7..11], vec![vec![None]; 4]);
        assert_eq!(known[11..16], vec![vec![minute; 4]; 5]);
        assert_eq!(known[16], [None]);
        assert!(known.len() > 17 && known[17..].iter().all(|trial| *trial == [minute]));
        known.clear();
        let mut told = |plans: &[Plan]| {
            known.push(plans.iter().map(|plan| plan.recovery).collect::<Vec<_>>());
            Ok(server(plans))
        };
        let open = Plan { pace: Pace::Open { rate: 60.0, visitors: 9 }, ..plan() };
        search(&open, None, &terms, &mut told).unwrap();
        assert_eq!(known[..2], [[None], [minute]]);
    }

    /// Red where the last run is thrown away whenever somebody wants the end.
    #[test]
    fn only_a_run_that_was_itself_cut_is_thrown_away() {
        let kept = |seconds: f64, unfinished: u64| {
            let (sender, interrupt) = Interrupt::by_hand();
            let mut calls = 0;
            let mut ends_in_the_third = |plans: &[Plan]| {
                calls += 1;
                let whole = server(plans);
                if calls < 3 {
                    return Ok(whole);
                }
                sender.send_replace(Some(Instant::now()));
                Ok(Report { seconds, unfinished, pace: "open loop, 1/s, at most 1 at once".to_owned(), ..whole })
            };
            let plan = Plan { interrupt, ..plan() };
            Programme::Plain.carry_out(&plan, 5, &mut ends_in_the_third).unwrap().runs.len()
        };
        // The window is a second; answers that were waited for after it belong to the run, too.
        assert_eq!([kept(1.0, 0), kept(0.4, 0), kept(1.0, 3)], [3, 2, 2]);
    }

    #[test]
    fn growth_is_w1_and_then_a_day() {
        let plan = Plan { workload: Workload::Flow, ..plan() };
        let series = Programme::Growth.carry_out(&plan, 2, &mut |plans| Ok(server(plans))).unwrap();
        let names: Vec<_> = series.runs.iter().map(|run| run.workload.as_str()).collect();
        assert_eq!(names, ["w1", "w1", "w5", "w5"]);
        assert!(series.spread.is_none());
    }
}
