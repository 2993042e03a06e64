//! The generator against a small provider of its own, in the same process.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod commands;
mod interrupt;
mod provider;
mod recovery;
mod renewal;
mod strange;
mod trust;

use load::interrupt::Interrupt;
use load::plan::{Arrivals, Client, Pace, Plan, Proof, Shape, User, Workload};
use load::report::Report;
use load::run::{run, together};
use load::series::Series;
use load::visitor::Step;
use load::wire::{Reach, Url};
use provider::{Manner, Provider};
use std::sync::Arc;
use std::time::Duration;

fn plan(target: &str, workload: Workload) -> Plan {
    let user = |n| User { login: format!("user{n}@example.com"), password: "right".to_owned() };
    Plan {
        target: Url::parse(target).unwrap(),
        reach: Arc::default(),
        shape: Shape::Steady,
        arrivals: Arrivals::Even,
        workload,
        pace: Pace::Closed { visitors: 4, pause: Duration::ZERO },
        warmup: Duration::from_millis(20),
        duration: Duration::from_millis(250),
        timeout: Duration::from_secs(5),
        heeds_retry_after: false,
        threads: 1,
        client: Client {
            id: "app".to_owned(),
            proof: Proof::Basic("secret".to_owned()),
            redirect_uri: strange::URI.to_owned(),
            scope: "openid".to_owned(),
            parameters: vec![],
        },
        users: (0..10).map(user).collect(),
        server_pids: vec![],
        without_refresh: false,
        without_introspection: false,
        recovery: None,
        interrupt: Interrupt::default(),
    }
}

/// Once more in a longer window where the machine stood still in the first: ten iterations are a fraction of what it does otherwise.
fn measured(manner: Manner, workload: Workload) -> (Report, Provider) {
    let measure = |duration| {
        let provider = Provider::start(manner);
        let report = run(&Plan { duration, ..plan(&provider.url, workload) }, None).unwrap();
        (report, provider)
    };
    let (report, provider) = measure(Duration::from_millis(250));
    match report.iterations + report.unfinished {
        ..20 if manner != Manner::Stuck => measure(Duration::from_secs(5)),
        _ => (report, provider),
    }
}

fn refused(plan: &Plan) -> String {
    run(plan, None).unwrap_err().to_string()
}

/// No failure, something done, and every step done as often as the others, but for iterations at the edges.
fn is_clean(report: &Report, visitors: u64) {
    assert!(report.iterations > 0 && report.failed == 0 && report.refused == 0, "{report}");
    for step in &report.steps {
        assert!(step.count.abs_diff(report.iterations) <= visitors, "{report}");
    }
}

#[test]
fn a_whole_flow_goes_through_whatever_the_framing() {
    for manner in [Manner::Good, Manner::Chunked, Manner::Closing] {
        let (report, provider) = measured(manner, Workload::Flow);
        is_clean(&report, 4);
        let names: Vec<_> = report.steps.iter().map(|step| step.step).collect();
        assert_eq!(names, [Step::Authorize, Step::Login, Step::Token, Step::Introspect, Step::Refresh]);
        // The login is answered with a redirect back to the authorization endpoint: six requests.
        assert_eq!(report.requests, report.iterations * 6);
        assert_eq!(provider.logins().len(), 10, "all users take their turn");
        // Discovery, the rehearsal, and one for each visitor.
        assert!(manner == Manner::Closing || provider.connections() == 6, "{}", provider.connections());
    }
}

#[test]
fn a_password_on_a_page_of_its_own_is_typed_there() {
    let (report, provider) = measured(Manner::Apart, Workload::Flow);
    is_clean(&report, 4);
    assert!(provider.seen("/name") > 0 && provider.logins().len() > 1, "and the name came along");
    assert_eq!(provider.seen("/register"), 0);
}

#[test]
fn userinfo_takes_the_place_of_an_introspection_that_is_not_there() {
    let (report, provider) = measured(Manner::Mute, Workload::Flow);
    assert!(report.iterations > 0 && report.failed == 0, "{report}");
    let steps: Vec<_> = report.steps.iter().map(|one| one.step).collect();
    assert_eq!(steps, [Step::Authorize, Step::Login, Step::Token, Step::Userinfo, Step::Refresh]);
    assert!(report.steps.iter().all(|one| one.count >= report.iterations), "{report}");
    assert!(provider.seen("/userinfo") >= report.iterations && provider.seen("/introspect") == 0);
    assert!(report.notes.iter().any(|note| note.starts_with("userinfo in place of introspection")), "{report}");
    // Whoever asks for introspection alone is told that there is none.
    let plan = plan(&provider.url, Workload::Introspect);
    assert!(refused(&plan).contains("introspect"), "{}", refused(&plan));
}

#[test]
fn a_consent_page_is_agreed_to() {
    let (report, provider) = measured(Manner::Consent, Workload::Flow);
    is_clean(&report, 4);
    assert!(provider.seen("/consent") > 0);
}

#[test]
fn without_password_there_is_one_sign_in_for_each_visitor() {
    let (report, provider) = measured(Manner::Good, Workload::Session);
    is_clean(&report, 4);
    assert_eq!(report.requests, report.iterations * 4);
    // One more for the rehearsal.
    assert_eq!(provider.seen("/login"), 5);
}

#[test]
fn every_small_workload_goes_through() {
    for (workload, path) in [
        (Workload::Jwks, "/jwks"),
        (Workload::Introspect, "/introspect"),
        (Workload::Userinfo, "/userinfo"),
        (Workload::ClientCredentials, "/token"),
        (Workload::Refresh, "/token"),
    ] {
        let (report, provider) = measured(Manner::Good, workload);
        is_clean(&report, 4);
        assert_eq!(report.requests, report.iterations);
        assert!(provider.seen(path) >= report.iterations);
    }
}

#[test]
fn a_secret_in_the_body_and_more_threads_work_as_well() {
    let provider = Provider::start(Manner::Good);
    let mut plan = plan(&provider.url, Workload::Flow);
    plan.client.proof = Proof::Post("secret".to_owned());
    plan.threads = 3;
    is_clean(&run(&plan, None).unwrap(), 4);
    assert_eq!(provider.connections(), 6);
}

#[test]
fn a_busy_server_is_refusing_and_not_failing() {
    let (report, _) = measured(Manner::Busy, Workload::Flow);
    assert!(report.failed == 0 && report.iterations > 0, "{report}");
    // Every third sign-in or so.
    assert!(report.refused * 5 > report.iterations, "{report}");
    assert_eq!(report.steps[1].refused, report.refused);
    let refusal = &report.refusals[0];
    assert_eq!((refusal.step, refusal.status, refusal.count), (Step::Login, 503, report.refused), "{report}");
}

#[test]
fn failures_are_counted_by_step_and_reason() {
    let (report, _) = measured(Manner::Flaky, Workload::Flow);
    assert!(report.failed > 0, "{report}");
    assert_eq!(report.failures.len(), 1);
    assert_eq!((report.failures[0].step, report.failures[0].reason.as_str()), (Step::Refresh, "400 invalid_grant"));
    assert_eq!(report.failures[0].count, report.failed);
    // What went well before the failure counts for its own step, and not as an iteration.
    assert_eq!(report.steps[0].count, report.iterations + report.failed);
}

#[test]
fn a_mistake_is_one_clear_line() {
    let provider = Provider::start(Manner::Good);
    let mut wrong_password = plan(&provider.url, Workload::Flow);
    wrong_password.users[0].password = "wrong".to_owned();
    let mut wrong_secret = plan(&provider.url, Workload::Flow);
    wrong_secret.client.proof = Proof::Basic("wrong".to_owned());
    let no_provider = plan(&format!("{}/elsewhere", provider.url), Workload::Flow);
    let nobody = plan("http://127.0.0.1:1", Workload::Jwks);
    let far_away = plan("http://192.0.2.1", Workload::Jwks);
    let members = Provider::start(Manner::Members);
    let no_access = plan(&members.url, Workload::Flow);
    let closed = Provider::start(Manner::Closed);
    let refuses = plan(&closed.url, Workload::Flow);
    let no_sign_up = plan(&provider.url, Workload::SignUp);
    let lenient = Provider::start(Manner::Public);
    let mut public = plan(&lenient.url, Workload::Flow);
    public.client.proof = Proof::Nothing;
    for (plan, expected) in [
        (
            wrong_password,
            "failed: login: the sign-in page came back (Sign in) to user0@example.com: wrong login or password",
        ),
        (wrong_secret, "failed: token: 401 invalid_client; is it this client's secret (--client-secret-file), and"),
        (no_provider, "is no OpenID provider"),
        (nobody, "http://127.0.0.1:1/: no connection (connection refused)"),
        (far_away, "only this machine may be measured"),
        (no_access, "the first iteration failed: login: redirected with error access_denied"),
        (refuses, "the first iteration failed: login: 503, come back after 0 s"),
        (no_sign_up, "sign_up needs Portiere's account API and a client that is --first-party there: it answers 404"),
        (public, "introspect: 401 invalid_client; introspection needs a client with a secret"),
    ] {
        let line = refused(&plan);
        assert!(line.contains(expected) && !line.contains('\n'), "{line}");
    }
}

#[test]
fn a_response_that_is_not_for_us_is_refused() {
    for (manner, expected) in [
        (Manner::Mixup, "login: the response names another issuer"),
        (Manner::Forgetful, "login: the state came back changed"),
        (Manner::Elsewhere, "the endpoint http://example.com/token: only this machine may be measured"),
    ] {
        let provider = Provider::start(manner);
        let line = refused(&plan(&provider.url, Workload::Flow));
        assert!(line.contains(expected), "{line}");
    }
}

#[test]
fn an_open_loop_counts_from_the_scheduled_start() {
    let provider = Provider::start(Manner::Slow);
    let mut plan = plan(&provider.url, Workload::Jwks);
    // One visitor manages 50 a second; 100 are due, so the last waits for about half of the time.
    plan.pace = Pace::Open { rate: 100.0, visitors: 1 };
    plan.warmup = Duration::ZERO;
    plan.duration = Duration::from_millis(400);
    let report = run(&plan, None).unwrap();
    assert!(report.latency.max > 100.0, "{report}");
    assert!(report.unfinished > 0 && report.failed == 0, "{report}");
    assert_eq!(report.iterations + report.unfinished, 40);
    // Red where what ends after the window has a part in the rate.
    assert!(report.iterations_per_second <= 51.0, "{report}");
    assert!(report.waited_for_users > 0 && report.is_bound_by_generator(), "{report}");
}

#[test]
fn an_open_loop_keeps_its_rate_when_there_are_visitors_enough() {
    let provider = Provider::start(Manner::Slow);
    let mut plan = plan(&provider.url, Workload::Jwks);
    plan.pace = Pace::Open { rate: 100.0, visitors: 20 };
    // Where the machine stands still as the window ends, the last start may not come to be.
    let reports = std::iter::repeat_with(|| run(&plan, None).unwrap());
    let report = reports.take(5).find(|report| report.unfinished == 0).expect("all of them in one of five");
    assert_eq!(report.iterations, 25, "{report}");
    assert!(report.latency.p50 >= 20.0, "{report}");
}

#[test]
fn threads_without_a_visitor_take_no_starts() {
    let provider = Provider::start(Manner::Good);
    let mut plan = plan(&provider.url, Workload::Jwks);
    plan.pace = Pace::Open { rate: 100.0, visitors: 3 };
    plan.duration = Duration::from_secs(1);
    plan.threads = 8;
    let report = run(&plan, None).unwrap();
    assert_eq!(report.iterations + report.unfinished, 100, "{report}");
    // Five of eight threads would have nobody, and nearly two thirds of the starts with them.
    assert!(report.iterations > 50, "{report}");
}

#[test]
fn a_server_that_hangs_leaves_iterations_unfinished() {
    let (report, _) = measured(Manner::Stuck, Workload::Jwks);
    assert_eq!((report.unfinished, report.failed), (4, 0), "{report}");
    let provider = Provider::start(Manner::Stuck);
    let mut plan = plan(&provider.url, Workload::Jwks);
    (plan.timeout, plan.duration) = (Duration::from_secs(2), Duration::from_secs(3));
    let report = run(&plan, None).unwrap();
    assert_eq!(report.failures[0].reason, "no response in time", "{report}");
}

#[test]
fn a_report_says_the_same_as_a_table_and_as_json() {
    let provider = Provider::start(Manner::Good);
    let mut plan = plan(&provider.url, Workload::Flow);
    plan.server_pids = vec![std::process::id()];
    let series = Series::of(vec![run(&plan, None).unwrap(), run(&plan, None).unwrap()]);
    let again: Series = serde_json::from_str(&serde_json::to_string(&series).unwrap()).unwrap();
    for (read, written) in again.runs.iter().zip(&series.runs) {
        assert_eq!((read.iterations, read.steps.len()), (written.iterations, written.steps.len()));
        // Reading floating point numbers back may be off by the last bit.
        assert!((read.steps[4].latency.p99 - written.steps[4].latency.p99).abs() < 1e-9);
    }
    assert_eq!(again.runs.len(), 2);
    let table = series.to_string();
    for expected in
        ["w1 at http://127.0.0.1:", "iterations/s", "login", "p99.9", "cores by the generator", "2 runs vary by"]
    {
        assert!(table.contains(expected), "{table}");
    }
    assert!(series.runs[0].server.is_some_and(|server| server.cpu_seconds > 0.0));
    plan.server_pids = vec![u32::MAX];
    assert!(refused(&plan).contains("no such process"));
}

#[test]
fn progress_is_told_twice_a_second() {
    let provider = Provider::start(Manner::Good);
    let mut plan = plan(&provider.url, Workload::Jwks);
    plan.duration = Duration::from_millis(1300);
    let mut told = 0;
    run(&plan, Some(&mut |_, pulse| told += u32::from(pulse.iterations.count() > 0))).unwrap();
    assert!(told >= 1, "{told}");
}

#[test]
fn tls_is_spoken_with_who_has_a_certificate_that_is_trusted() {
    let (provider, certificate) = Provider::secure(Manner::Good);
    let file = std::env::temp_dir().join(format!("load-ca-{}.pem", std::process::id()));
    std::fs::write(&file, certificate).unwrap();
    let mut trusting = Reach::default();
    trusting.speak_tls(Some(&file)).unwrap();
    std::fs::remove_file(&file).unwrap();
    let mut plan = plan(&provider.url, Workload::Flow);
    plan.reach = Arc::new(trusting);
    is_clean(&run(&plan, None).unwrap(), 4);
    // Discovery, the rehearsal, and one for each visitor.
    assert_eq!(provider.connections(), 6);
    let (other, _) = Provider::secure(Manner::Good);
    plan.target = Url::parse(&other.url).unwrap();
    assert!(refused(&plan).ends_with("TLS failed: nobody who is trusted signed the certificate (--ca FILE)"));
}

#[test]
fn nothing_goes_in_plain_text_to_a_host_that_no_certificate_can_name() {
    let provider = Provider::start(Manner::Good);
    let port = provider.url.rsplit(':').next().unwrap();
    let mut speaking = Reach::default();
    let file = std::env::temp_dir().join(format!("load-unnamed-{}.pem", std::process::id()));
    std::fs::write(&file, Provider::secure(Manner::Good).1).unwrap();
    speaking.speak_tls(Some(&file)).unwrap();
    std::fs::remove_file(&file).unwrap();
    let mut plan = plan(&format!("https://a..localhost:{port}"), Workload::Flow);
    plan.reach = Arc::new(speaking);
    assert!(refused(&plan).contains("TLS failed"), "{}", refused(&plan));
    assert_eq!(provider.seen("/.well-known/openid-configuration"), 0);
}

#[test]
fn traffic_has_its_shares() {
    let mut shares = plan("http://localhost", Workload::Traffic);
    shares.duration = Duration::from_millis(800);
    for (manner, account) in [(Manner::Good, "/userinfo"), (Manner::Accounts, "/api/v1/me")] {
        let provider = Provider::start(manner);
        shares.target = Url::parse(&provider.url).unwrap();
        let report = run(&shares, None).unwrap();
        assert!(report.failed == 0 && report.iterations > 300, "{report}");
        let share = |step| {
            let count = report.steps.iter().find(|one| one.step == step).map_or(0, |one| one.count);
            count as f64 / report.iterations as f64
        };
        let reads = share(Step::Userinfo) + share(Step::Account);
        assert!((reads - 0.8).abs() < 0.1 && (share(Step::Device) - 0.2).abs() < 0.1, "{report}");
        assert!((share(Step::Poll) - share(Step::Device)).abs() < 0.02, "{report}");
        let expected = if manner == Manner::Accounts { 0.1 } else { 0.0 };
        assert!((share(Step::Account) - expected).abs() < 0.06, "{report}");
        assert_eq!(share(Step::Account) > 0.0, manner == Manner::Accounts, "{report}");
        assert!(provider.seen(account) > 0);
        assert_eq!(report.notes.is_empty(), manner == Manner::Accounts, "{:?}", report.notes);
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
    let provider = Provider::start(Manner::Accounts);
    let mut day = plan(&provider.url, Workload::Day);
    day.duration = Duration::from_secs(2);
    day.pace = Pace::Open { rate: 500.0, visitors: 30 };
    day.shape = Shape::Day;
    let report = run(&day, None).unwrap();
    // On a busy machine the evening may be missing.
    assert_eq!((report.failed, report.iterations + report.unfinished), (0, 1000), "{report}");
    assert!(report.iterations > 500, "{report}");
    for (step, expected) in [
        (Step::Login, 0.05),
        (Step::Refresh, 0.3),
        (Step::Introspect, 0.4),
        (Step::Userinfo, 0.15),
        (Step::Jwks, 0.045),
    ] {
        let count = report.steps.iter().find(|one| one.step == step).unwrap().count;
        let share = count as f64 / report.iterations as f64;
        // Five standard deviations: the shares themselves are tested where they stand.
        assert!((share - expected).abs() < 5.0 * (expected / report.iterations as f64).sqrt(), "{step:?} {share}");
    }
    // 7:00 to 11:00 is a sixth of the day, and has three eighths of its requests.
    let morning: u64 =
        report.timeline.iter().filter(|s| (7.0..11.0).contains(&(s.from * 12.0 + 1.2))).map(|s| s.done).sum();
    let share = morning as f64 / report.iterations as f64;
    assert!(share > 0.25, "{share}: {:?}", report.timeline.iter().map(|s| s.done).collect::<Vec<_>>());
    let logins = provider.logins();
    assert!(logins["user0@example.com"] > logins.get("user9@example.com").copied().unwrap_or_default(), "{logins:?}");
}

#[test]
fn accounts_are_made_and_read_and_signed_in_to() {
    for (workload, path) in
        [(Workload::SignUp, "/api/v1/signup"), (Workload::SignIn, "/api/v1/signin"), (Workload::Profile, "/api/v1/me")]
    {
        let (report, provider) = measured(Manner::Accounts, workload);
        assert!(report.iterations > 0 && report.failed == 0, "{report}");
        assert!(provider.seen(path) >= report.iterations);
    }
    let provider = Provider::start(Manner::Accounts);
    let mut wrong = plan(&provider.url, Workload::Profile);
    wrong.users[0].password = "wrong".to_owned();
    // red without of_user in visitor/account.rs, and without WRONG_CREDENTIALS in rehearsal.rs it would be a note.
    let line = refused(&wrong);
    assert!(line.ends_with("sign_in: 422 wrong-credentials: wrong login or password of user0@example.com"), "{line}");
}

#[test]
fn streams_run_side_by_side_at_their_own_rates() {
    let provider = Provider::start(Manner::Accounts);
    let stream = |workload, rate| Plan {
        pace: Pace::Open { rate, visitors: 4 },
        duration: Duration::from_millis(500),
        ..plan(&provider.url, workload)
    };
    let plans = [stream(Workload::Profile, 200.0), stream(Workload::SignUp, 20.0), stream(Workload::Jwks, 40.0)];
    let report = together(&plans, None).unwrap();
    let rate = |one: &Report| (one.workload.clone(), one.iterations + one.unfinished);
    let named = |name: &str, count| (name.to_owned(), count);
    assert_eq!(rate(&report), named("profile", 100), "{report}");
    let beside: Vec<_> = report.beside.iter().map(rate).collect();
    assert_eq!(beside, [named("sign_up", 10), named("jwks", 20)], "{report}");
    // How many of them are done in time is up to the machine; that each stream does its own thing is not.
    for (one, path) in std::iter::once(&report).chain(&report.beside).zip(["/api/v1/me", "/api/v1/signup", "/jwks"]) {
        assert!(one.failed == 0 && one.iterations > 0 && provider.seen(path) >= one.iterations, "{one}");
    }
}

#[test]
fn what_the_server_spent_is_shared_by_all_that_ran() {
    let provider = Provider::start(Manner::Good);
    let of = |pace| Plan {
        pace,
        duration: Duration::from_millis(500),
        server_pids: vec![std::process::id()],
        ..plan(&provider.url, Workload::Jwks)
    };
    let plans = [Pace::Open { rate: 20.0, visitors: 1 }, Pace::Closed { visitors: 4, pause: Duration::ZERO }].map(of);
    let report = together(&plans, None).unwrap();
    let beside = &report.beside[0];
    assert!(beside.server.is_none() && beside.generator_cores.is_none(), "{report}");
    let server = report.server.unwrap();
    let answered = server.requests_per_cpu_second.unwrap() * server.cores * report.seconds;
    assert!((answered - (report.requests + beside.requests) as f64).abs() < 1e-3, "{answered}: {report}");
}

#[test]
fn a_ramp_climbs_with_the_time() {
    let provider = Provider::start(Manner::Slow);
    let mut plan = plan(&provider.url, Workload::Jwks);
    plan.duration = Duration::from_secs(1);
    plan.pace = Pace::Closed { visitors: 10, pause: Duration::ZERO };
    plan.shape = Shape::Ramp(Duration::from_millis(800));
    let report = run(&plan, None).unwrap();
    let done = |range: std::ops::Range<usize>| report.timeline[range].iter().map(|slice| slice.done).sum::<u64>();
    assert_eq!(report.timeline.len(), 10);
    assert!(done(5..10) > done(0..5) && done(0..5) > 0, "{:?}", report.timeline);
    let levels: Vec<_> = report.timeline.iter().map(|slice| slice.level).collect();
    assert!(levels.is_sorted() && levels[0] < 3.0 && levels[9] == 10.0, "{levels:?}");
    assert_eq!(report.timeline.iter().map(|slice| slice.done).sum::<u64>(), report.iterations);
}

#[test]
fn more_users_than_the_machine_has_room_for_are_refused() {
    let mut plan = plan("http://127.0.0.1:1", Workload::Jwks);
    plan.pace = Pace::Closed { visitors: usize::MAX / 2, pause: Duration::ZERO };
    let line = refused(&plan);
    assert!(line.contains("users need as many open files") && line.ends_with("(ulimit -n)"), "{line}");
}
