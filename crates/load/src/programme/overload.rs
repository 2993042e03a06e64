//! W4: the rate that a server manages, and then more than that.

use super::{MOST, Runner, once_more, whole};
use crate::Refusal;
use crate::plan::{Pace, Plan, Shape, Workload};
use crate::report::Report;
use crate::series::{Series, Trial};
use crate::visitor::Step;
use std::time::Duration;

/// The rates to offer, relative to what the server manages.
const OFFERS: [f64; 5] = [0.5, 1.0, 2.0, 5.0, 10.0];
/// Each light request runs beside the sign-ins at this share of its own capacity.
const LIGHT_SHARE: f64 = 0.2;
/// The number of users with which the capacity of a light request is first tried.
const LIGHT_USERS: usize = 4;
/// How often users are doubled at most: eight times as many, all of them waiting, are more than a server has work for.
const DOUBLINGS: u32 = 3;
/// Doubling the users has to raise the rate by this factor to be worth going on.
const MORE: f64 = 1.05;
/// The length of a run that tests whether more users raise the rate, after a part of the warm-up: the capacity itself
/// is then measured for as long as the plan says.
const LOOK: Duration = Duration::from_secs(4);
/// The same for a light request, of which there are hundreds per second.
const GLANCE: Duration = Duration::from_secs(2);
const WARMUP: Duration = Duration::from_secs(1);

pub(super) fn overload(plan: &Plan, grows: bool, run: Runner<'_>) -> Result<Series, Refusal> {
    let mut notes = Vec::new();
    let (users, known) = match grows {
        true => {
            let reached = reached(plan, (plan.pace.visitors(), LOOK), run)?;
            notes.push(reached.told("W1"));
            (reached.users, once_more(plan))
        }
        false => (plan.pace.visitors(), plan.clone()),
    };
    let closed = Pace::Closed { visitors: users, pause: Duration::ZERO };
    let mut alone = whole(plan, run(&[Plan { pace: closed, shape: Shape::Steady, ..known }])?)?;
    let capacity = alone.iterations_per_second;
    let mut trials = Vec::new();
    let cut_short = match capacity > 0.0 {
        true => flood(plan, (capacity, light(&alone)), run, (&mut trials, &mut notes))
            .err()
            .map(|refusal| refusal.to_string()),
        false => Some("not one sign-in came out well, so there is no capacity to go beyond".to_owned()),
    };
    alone.notes.extend(notes);
    Ok(Series { runs: vec![alone], trials, cut_short, ..Series::default() })
}

/// The rate of a closed loop with as many users as raised it.
struct Reached {
    users: usize,
    rate: f64,
    /// True if twice as many users raised it by next to nothing.
    is_all: bool,
}

impl Reached {
    fn told(&self, what: &str) -> String {
        let Reached { users, rate, is_all } = self;
        let more = match is_all {
            true => "twice as many bring less than 5 % more",
            false => "twice as many were not tried, and may bring more",
        };
        format!("{what} alone: {rate:.1}/s in a short run with {users} users; {more}")
    }
}

/// Doubles the users, in short runs, until that raises the rate by next to nothing.
fn reached(plan: &Plan, (first, long): (usize, Duration), run: Runner<'_>) -> Result<Reached, Refusal> {
    let mut best = Reached { users: first, rate: 0.0, is_all: false };
    for doubling in 0..=DOUBLINGS {
        let visitors = first.saturating_mul(1 << doubling);
        let known = if doubling == 0 { plan.clone() } else { once_more(plan) };
        let short = Plan {
            pace: Pace::Closed { visitors, pause: Duration::ZERO },
            shape: Shape::Steady,
            warmup: plan.warmup.min(WARMUP),
            duration: plan.duration.min(long),
            ..known
        };
        let rate = whole(plan, run(&[short])?)?.iterations_per_second;
        if doubling > 0 && rate <= best.rate * MORE {
            return Ok(Reached { is_all: true, ..best });
        }
        best = Reached { users: visitors, rate, ..best };
    }
    Ok(best)
}

/// Returns the light requests: only those that W1 has shown to work, so that none fails once its capacity is known.
fn light(alone: &Report) -> Vec<Workload> {
    let has_shown = |step| alone.steps.iter().any(|one| one.step == step);
    let about_a_token = [(Step::Userinfo, Workload::Userinfo), (Step::Introspect, Workload::Introspect)];
    let about_a_token = about_a_token.into_iter().find(|(step, _)| has_shown(*step)).map(|(_, workload)| workload);
    about_a_token.into_iter().chain([Workload::Refresh, Workload::Jwks]).collect()
}

/// Offers fractions and multiples of `capacity`, with light requests beside them.
fn flood(
    plan: &Plan,
    (capacity, workloads): (f64, Vec<Workload>),
    run: Runner<'_>,
    (trials, notes): (&mut Vec<Trial>, &mut Vec<String>),
) -> Result<(), Refusal> {
    let mut light = Vec::new();
    for workload in workloads {
        let reached = reached(&Plan { workload, ..plan.clone() }, (LIGHT_USERS, GLANCE), run)?;
        notes.push(reached.told(workload.name()));
        let pace = Pace::Open { rate: (reached.rate * LIGHT_SHARE).max(1.0), visitors: 50 };
        light.push(Plan { workload, pace, shape: Shape::Steady, ..once_more(plan) });
    }
    for share in OFFERS {
        let rate = capacity * share;
        let visitors = (rate * plan.timeout.as_secs_f64()).clamp(100.0, MOST) as usize;
        let flood = Plan { pace: Pace::Open { rate, visitors }, shape: Shape::Steady, ..once_more(plan) };
        let report = whole(plan, run(&[&[flood], light.as_slice()].concat())?)?;
        trials.push(Trial { offered: rate, holds: None, judged: None, report });
    }
    Ok(())
}
