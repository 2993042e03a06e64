//! The generator against a small provider of its own, in the same process.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod asked;
mod commands;
mod connections;
mod interrupt;
mod introspection;
mod mistakes;
mod provider;
mod recovery;
mod renewal;
mod shares;
mod strange;
mod trust;
mod window;

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
        timeout: Duration::from_secs(30),
        heeds_retry_after: false,
        threads: 1,
        client: Client {
            id: "app".to_owned(),
            proof: Proof::Basic("secret".to_owned()),
            redirect_uri: strange::URI.to_owned(),
            scope: "openid".to_owned(),
            own_scope: None,
            parameters: vec![],
            token_parameters: vec![],
        },
        introspector: None,
        users: (0..10).map(user).collect(),
        server_pids: vec![],
        without_refresh: false,
        without_introspection: false,
        without_account_api: false,
        recovery: None,
        interrupt: Interrupt::default(),
    }
}

/// How much longer windows are where the machine stood still in the one before, or was slow.
const LONGER: [u32; 3] = [1, 5, 20];

/// The first of several tries that will do; where none does it is the last, and the test says what is wrong with it.
fn first_that<T>(mut tries: impl Iterator<Item = T>, will_do: impl Fn(&T) -> bool) -> T {
    let mut tried = tries.next().unwrap();
    while !will_do(&tried) {
        let Some(next) = tries.next() else { break };
        tried = next;
    }
    tried
}

/// The same of five tries, where a machine that stands still spoils one.
fn of_five<T>(once: impl FnMut() -> T, will_do: impl Fn(&T) -> bool) -> T {
    first_that(std::iter::repeat_with(once).take(5), will_do)
}

/// What a plan comes to, each time with a provider of its own, in a longer window where the report will not do.
fn measured_until(
    manner: Manner,
    make: impl Fn(&str) -> Plan,
    will_do: impl Fn(&Report) -> bool,
) -> (Report, Provider) {
    let measure = |longer| {
        let provider = Provider::start(manner);
        let plan = make(&provider.url);
        let report = run(&Plan { duration: plan.duration * longer, ..plan }, None);
        (report.unwrap_or_else(|refusal| panic!("{manner:?}: {refusal}")), provider)
    };
    first_that(LONGER.into_iter().map(measure), |(report, _)| will_do(report))
}

/// Twenty iterations are a fraction of what it does otherwise.
fn is_lively(report: &Report) -> bool {
    report.iterations + report.unfinished >= 20
}

fn measured(manner: Manner, workload: Workload) -> (Report, Provider) {
    measured_until(manner, |url| plan(url, workload), is_lively)
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
    let posting = |url: &str| {
        let plan = plan(url, Workload::Flow);
        let client = Client { proof: Proof::Post("secret".to_owned()), ..plan.client };
        Plan { client, threads: 3, ..plan }
    };
    let (report, provider) = measured_until(Manner::Good, posting, is_lively);
    is_clean(&report, 4);
    assert_eq!(provider.connections(), 6);
}

#[test]
fn a_busy_server_is_refusing_and_not_failing() {
    let (report, _) = measured_until(Manner::Busy, |url| plan(url, Workload::Flow), |report| report.iterations > 300);
    assert!(report.failed == 0 && report.iterations > 0, "{report}");
    // Every third sign-in or so, of which few iterations may have fewer by chance.
    assert!(report.refused * 5 > report.iterations, "{report}");
    assert_eq!(report.steps[1].refused, report.refused);
    let refusal = &report.refusals[0];
    assert_eq!((refusal.step, refusal.status, refusal.count), (Step::Login, 503, report.refused), "{report}");
}

#[test]
fn failures_are_counted_by_step_and_reason() {
    let (report, _) = measured_until(Manner::Flaky, |url| plan(url, Workload::Flow), |report| report.failed > 0);
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
    let mut no_secret = plan(&provider.url, Workload::Flow);
    no_secret.client.proof = Proof::Nothing;
    let no_sign_up = plan(&provider.url, Workload::SignUp);
    let lenient = Provider::start(Manner::Public);
    let mut public = plan(&lenient.url, Workload::Flow);
    public.client.proof = Proof::Nothing;
    for (plan, expected) in [
        (
            wrong_password,
            "failed: login: the sign-in page came back (Sign in) to user0@example.com: wrong login or password",
        ),
        (no_secret, "failed: token: 401 invalid_client; does this client have a secret (--client-secret-file)?"),
        (wrong_secret, "failed: token: 401 invalid_client; is it this client's secret (--client-secret-file), and"),
        (no_provider, "is not an OpenID provider"),
        (nobody, "http://127.0.0.1:1/: no connection (connection refused)"),
        (far_away, "only this machine may be measured"),
        (
            no_access,
            "login: redirected with error access_denied (as user0@example.com); may this user use this client?",
        ),
        (refuses, "the first iteration failed: login: still refused after 5 tries (503)"),
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
        (Manner::Elsewhere, "the token_endpoint http://example.com/token: only this machine may be measured"),
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
    // Where the machine stands still for all of the window, nothing is done.
    let report = of_five(|| run(&plan, None).unwrap(), |report| report.iterations > 0);
    assert!(report.latency.max > 100.0, "{report}");
    assert!(report.unfinished > 0 && report.failed == 0, "{report}");
    assert_eq!(report.iterations + report.unfinished, 40);
    // Red where what ends after the window has a part in the rate.
    assert!(report.iterations_per_second <= 51.0, "{report}");
    assert!(report.waited_for_users > 0 && report.is_bound_by_generator(), "{report}");
    // Whoever waits for a free user is not begun late.
    assert!(report.lateness.is_none_or(|late| late.p99 < report.latency.max), "{report}");
}

#[test]
fn an_open_loop_keeps_its_rate_when_there_are_visitors_enough() {
    let provider = Provider::start(Manner::Slow);
    let mut plan = plan(&provider.url, Workload::Jwks);
    plan.pace = Pace::Open { rate: 100.0, visitors: 20 };
    // Where the machine stands still as the window ends, the last start may not come to be.
    let report = of_five(|| run(&plan, None).unwrap(), |report| report.unfinished == 0);
    assert_eq!((report.iterations, report.unfinished), (25, 0), "{report}");
    let late = report.lateness.unwrap();
    assert!(late.p50 <= late.p99 && late.p99 <= report.latency.max, "{report}");
    assert!(report.latency.p50 >= 20.0, "{report}");
}

#[test]
fn threads_without_a_visitor_take_no_starts() {
    let provider = Provider::start(Manner::Good);
    let mut plan = plan(&provider.url, Workload::Jwks);
    plan.pace = Pace::Open { rate: 100.0, visitors: 3 };
    plan.duration = Duration::from_secs(1);
    plan.threads = 8;
    let report = of_five(|| run(&plan, None).unwrap(), |report| report.iterations > 50);
    assert_eq!(report.iterations + report.unfinished, 100, "{report}");
    // Five of eight threads would have nobody, and nearly two thirds of the starts with them.
    assert!(report.iterations > 50, "{report}");
}

#[test]
fn a_server_that_hangs_leaves_iterations_unfinished() {
    // Where the machine stands still until the window is over, nobody begins.
    let keys = |url: &str| plan(url, Workload::Jwks);
    let (report, _) = measured_until(Manner::Stuck, keys, |report| report.unfinished == 4);
    assert_eq!((report.unfinished, report.failed), (4, 0), "{report}");
    // Red without `under_way`: what ended before is perfect, and nothing says that it ended.
    let said = "4 iterations were still under way, the longest for ";
    assert!(report.notes.iter().any(|note| note.starts_with(said)), "{report}");
    let impatient = |url: &str| Plan { timeout: Duration::from_secs(4), duration: Duration::from_secs(5), ..keys(url) };
    let (report, _) = measured_until(Manner::Stuck, impatient, |report| report.failed > 0);
    assert_eq!(report.failures[0].reason, "no response in time", "{report}");
}

#[test]
fn a_report_says_the_same_as_a_table_and_as_json() {
    let provider = Provider::start(Manner::Good);
    let mut plan = plan(&provider.url, Workload::Flow);
    plan.server_pids = vec![std::process::id()];
    let has_worked =
        |report: &Report| report.iterations > 0 && report.server.is_some_and(|server| server.cpu_seconds > 0.0);
    let series = Series::of((0..2).map(|_| of_five(|| run(&plan, None).unwrap(), has_worked)).collect());
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
    let told = || {
        let mut told = 0;
        run(&plan, Some(&mut |_, pulse| told += u32::from(pulse.iterations.count() > 0))).unwrap();
        told
    };
    assert!(of_five(told, |told| *told > 0) > 0);
}

#[test]
fn tls_is_spoken_with_who_has_a_certificate_that_is_trusted() {
    let trusted = |longer| {
        let (provider, certificate) = Provider::secure(Manner::Good);
        let file = std::env::temp_dir().join(format!("load-ca-{}.pem", std::process::id()));
        std::fs::write(&file, certificate).unwrap();
        let mut trusting = Reach::default();
        trusting.speak_tls(Some(&file)).unwrap();
        std::fs::remove_file(&file).unwrap();
        let plan = plan(&provider.url, Workload::Flow);
        let plan = Plan { reach: Arc::new(trusting), duration: plan.duration * longer, ..plan };
        (run(&plan, None).unwrap(), provider, plan)
    };
    let (report, provider, mut plan) = first_that(LONGER.into_iter().map(trusted), |(report, ..)| is_lively(report));
    is_clean(&report, 4);
    // Discovery, the rehearsal, and one for each visitor.
    assert_eq!(provider.connections(), 6);
    let (other, _) = Provider::secure(Manner::Good);
    plan.target = Url::parse(&other.url).unwrap();
    assert!(refused(&plan).ends_with("TLS failed: the certificate's issuer is not trusted (--ca FILE)"));
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
    // How many of them are done in time is up to the machine; that each stream does its own thing is not.
    let all = |report: &Report| std::iter::once(report).chain(&report.beside).all(|one| one.iterations > 0);
    let report = of_five(|| together(&plans, None).unwrap(), all);
    let rate = |one: &Report| (one.workload.clone(), one.iterations + one.unfinished);
    let named = |name: &str, count| (name.to_owned(), count);
    assert_eq!(rate(&report), named("profile", 100), "{report}");
    let beside: Vec<_> = report.beside.iter().map(rate).collect();
    assert_eq!(beside, [named("sign_up", 10), named("jwks", 20)], "{report}");
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
    // Processor time is counted in ticks of 10 ms, of which a machine that stands still has none.
    let is_told = |report: &Report| {
        report.beside[0].requests > 0 && report.server.is_some_and(|server| server.requests_per_cpu_second.is_some())
    };
    let report = of_five(|| together(&plans, None).unwrap(), is_told);
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
    let halves = |report: &Report| {
        [&report.timeline[..5], &report.timeline[5..]].map(|half| half.iter().map(|slice| slice.done).sum::<u64>())
    };
    // Two and a half times as much in the second half; without a ramp it is the same.
    let climbs = |report: &Report| {
        let [first, second] = halves(report);
        first > 0 && second as f64 > 1.5 * first as f64
    };
    let report = of_five(|| run(&plan, None).unwrap(), climbs);
    assert_eq!(report.timeline.len(), 10);
    assert!(climbs(&report), "{:?}", halves(&report));
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
