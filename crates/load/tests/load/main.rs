//! The generator against a small provider of its own, in the same process.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod provider;

use load::plan::{Client, Pace, Plan, Proof, User, Workload};
use load::report::{Report, Series};
use load::run::run;
use load::visitor::Step;
use load::wire::Url;
use provider::{Manner, Provider};
use std::time::Duration;

fn plan(target: &str, workload: Workload) -> Plan {
    let user = |n| User { login: format!("user{n}@example.com"), password: "right".to_owned() };
    Plan {
        target: Url::parse(target).unwrap(),
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
            redirect_uri: "http://localhost:9/callback".to_owned(),
            scope: "openid".to_owned(),
        },
        users: (0..10).map(user).collect(),
        server_pids: vec![],
    }
}

fn measured(manner: Manner, workload: Workload) -> (Report, Provider) {
    let provider = Provider::start(manner);
    let report = run(&plan(&provider.url, workload), None).unwrap();
    (report, provider)
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
    for (plan, expected) in [
        (
            wrong_password,
            "the first iteration failed: login: the sign-in page came back (Sign in): wrong login or password",
        ),
        (wrong_secret, "the first iteration failed: token: 401 invalid_client"),
        (no_provider, "is no OpenID provider"),
        (nobody, "http://127.0.0.1:1/: no connection (connection refused)"),
        (far_away, "only this machine may be measured"),
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
}

#[test]
fn an_open_loop_keeps_its_rate_when_there_are_visitors_enough() {
    let provider = Provider::start(Manner::Slow);
    let mut plan = plan(&provider.url, Workload::Jwks);
    plan.pace = Pace::Open { rate: 100.0, visitors: 20 };
    let report = run(&plan, None).unwrap();
    assert_eq!((report.iterations, report.unfinished), (25, 0), "{report}");
    assert!(report.latency.p50 >= 20.0, "{report}");
}

#[test]
fn a_server_that_hangs_leaves_iterations_unfinished() {
    let (report, _) = measured(Manner::Stuck, Workload::Jwks);
    assert_eq!((report.unfinished, report.failed), (4, 0), "{report}");
    let provider = Provider::start(Manner::Stuck);
    let mut plan = plan(&provider.url, Workload::Jwks);
    plan.timeout = Duration::from_millis(50);
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
