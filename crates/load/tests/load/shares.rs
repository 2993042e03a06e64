//! Workloads of which chance picks every iteration: what is picked, how often, and for whom.

use crate::provider::{Manner, Provider};
use crate::{first_that, measured_until, plan};
use load::plan::{Pace, Plan, Shape, Workload};
use load::report::Report;
use load::run::run;
use load::timeline::Slice;
use load::visitor::Step;
use std::time::Duration;

#[test]
fn traffic_has_its_shares() {
    let traffic = |url: &str| Plan { duration: Duration::from_millis(800), ..plan(url, Workload::Traffic) };
    let has_many = |report: &Report| report.iterations > 1_500;
    for (manner, account) in [(Manner::Good, "/userinfo"), (Manner::Accounts, "/api/v1/me")] {
        let (report, provider) = measured_until(manner, traffic, has_many);
        assert!(report.failed == 0 && has_many(&report), "{report}");
        let share = |step| {
            let count = report.steps.iter().find(|one| one.step == step).map_or(0, |one| one.count);
            count as f64 / report.iterations as f64
        };
        let reads = share(Step::Userinfo) + share(Step::Account);
        // More than six standard deviations of so many: one is 0.0103 here, and 0.0077 of the account.
        assert!((reads - 0.8).abs() < 0.07 && (share(Step::Device) - 0.2).abs() < 0.07, "{report}");
        assert!((share(Step::Poll) - share(Step::Device)).abs() < 0.02, "{report}");
        let expected = if manner == Manner::Accounts { 0.1 } else { 0.0 };
        assert!((share(Step::Account) - expected).abs() < 0.05, "{report}");
        assert_eq!(share(Step::Account) > 0.0, manner == Manner::Accounts, "{report}");
        assert!(provider.seen(account) > 0);
        // Where the machine stands still at the end, an iteration outlasts the others.
        let mut notes = report.notes.iter().filter(|note| !note.contains("still under way"));
        assert_eq!(notes.next().is_none(), manner == Manner::Accounts, "{:?}", report.notes);
    }
}

#[test]
fn what_is_rare_is_tried_before_anything_is_counted() {
    // One in a hundred iterations of a day reads the account, one in five of the traffic comes from a device.
    for (workload, path) in [(Workload::Day, "/api/v1/me"), (Workload::Traffic, "/device")] {
        let provider = Provider::start(Manner::Accounts);
        let mut plan = plan(&provider.url, workload);
        // Nobody does anything in the window.
        plan.pace = Pace::Open { rate: 1e-3, visitors: 1 };
        plan.shape = if workload == Workload::Day { Shape::Day } else { Shape::Steady };
        (plan.warmup, plan.duration) = (Duration::ZERO, Duration::from_millis(1));
        run(&plan, None).unwrap();
        assert!(provider.seen(path) > 0, "{workload:?}");
    }
}

#[test]
fn a_day_has_its_shares_and_few_users_who_come_often() {
    // A thousand starts, in a longer day where the machine has no room for so many within two seconds.
    let of = |seconds: u16| {
        let provider = Provider::start(Manner::Accounts);
        let pace = Pace::Open { rate: 1000.0 / f64::from(seconds), visitors: 30 };
        let duration = Duration::from_secs(seconds.into());
        let day = Plan { duration, pace, shape: Shape::Day, ..plan(&provider.url, Workload::Day) };
        (run(&day, None).unwrap(), provider)
    };
    let (report, provider) = first_that([2, 4, 10, 10, 10].into_iter().map(of), |(report, _)| report.iterations >= 900);
    // On a busy machine the late evening may be missing.
    assert_eq!((report.failed, report.iterations + report.unfinished), (0, 1000), "{report}");
    assert!(report.iterations >= 900, "{report}");
    for (step, expected) in [
        (Step::Login, 0.05),
        (Step::Refresh, 0.3),
        (Step::Introspect, 0.4),
        (Step::Userinfo, 0.15),
        (Step::Jwks, 0.045),
    ] {
        let count = report.steps.iter().find(|one| one.step == step).unwrap().count;
        let share = count as f64 / report.iterations as f64;
        // Six standard deviations: the shares themselves are tested where they stand.
        assert!((share - expected).abs() < 6.0 * (expected / report.iterations as f64).sqrt(), "{step:?} {share}");
    }
    // 7:00 to 11:00 is a sixth of the day, and has three eighths of its requests.
    let hour = |slice: &Slice| (slice.from + slice.seconds / 2.0) / report.seconds * 24.0;
    let morning: u64 = report.timeline.iter().filter(|s| (7.0..11.0).contains(&hour(s))).map(|s| s.done).sum();
    let share = morning as f64 / report.iterations as f64;
    assert!(share > 0.25, "{share}: {:?}", report.timeline.iter().map(|s| s.done).collect::<Vec<_>>());
    let logins = provider.logins();
    let of = |users: std::ops::Range<usize>| -> u64 {
        users.filter_map(|user| logins.get(&format!("user{user}@example.com"))).sum()
    };
    // Five times as many: some 75 sign-ins, 30 of them before the day, leave more than six standard deviations between them.
    assert!(of(0..3) > of(7..10), "{logins:?}");
}
