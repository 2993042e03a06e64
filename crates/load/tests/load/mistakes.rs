//! What is said of users who cannot sign in, and of answers that are not what they should be.

use crate::provider::{Manner, Provider};
use crate::{measured_until, plan, refused};
use load::plan::Workload;
use load::visitor::Step;

/// Red where each user's failure is another one: 64 of them left no room for what else failed.
#[test]
fn the_failure_of_many_users_is_one_and_names_the_first() {
    let wrong = |url: &str| {
        let mut plan = plan(url, Workload::Flow);
        // The first user signs in before anything is measured.
        plan.users.iter_mut().skip(1).for_each(|user| user.password = "wrong".to_owned());
        plan
    };
    let (report, _) = measured_until(Manner::Good, wrong, |report| report.failed > 5);
    assert_eq!(report.failures.len(), 1, "{report}");
    let failure = &report.failures[0];
    let reason = "the sign-in page came back (Sign in): wrong login or password, or the account may not sign in";
    assert_eq!((failure.step, failure.reason.as_str(), failure.count), (Step::Login, reason, report.failed));
    let first = failure.first.as_deref().unwrap();
    assert!(first.starts_with("user") && first != "user0@example.com", "{first}");
    assert!(report.to_string().contains(&format!(" x login: {reason}, first {first}\n")), "{report}");
}

/// Red where the page for the name is not recognized: it was said to ask for no password, and nobody was named.
#[test]
fn a_page_for_the_name_that_comes_back_names_the_user() {
    for manner in [Manner::Apart, Manner::ApartUnauthorized] {
        let provider = Provider::start(manner);
        let mut plan = plan(&provider.url, Workload::Flow);
        plan.users[0].login = "nobody".to_owned();
        let expected = "login: the page for the name came back (Who comes?) to nobody: unknown login, or the account \
                        may not sign in";
        assert!(refused(&plan).ends_with(expected), "{}", refused(&plan));
    }
}

/// Red where a step is finished before its answer is checked: it was counted as finished and as failed.
#[test]
fn a_step_whose_answer_is_no_good_is_only_failed() {
    let (report, _) = measured_until(Manner::Fading, |url| plan(url, Workload::Flow), |report| report.failed > 0);
    assert!(report.failed > 0, "{report}");
    let introspect = &report.steps[3];
    assert_eq!((introspect.step, introspect.failed), (Step::Introspect, report.failed), "{report}");
    assert_eq!((introspect.count, report.steps[2].count), (report.iterations, report.iterations + report.failed));
}

/// Red without the hint: that the scheme is wrong was left to be guessed.
#[test]
fn a_server_that_speaks_tls_to_plain_text_may_be_one_of_https() {
    let (provider, _) = Provider::secure(Manner::Good);
    let line = refused(&plan(&provider.url.replace("https:", "http:"), Workload::Jwks));
    assert!(line.starts_with("http://localhost:") && line.ends_with(" (does it speak https?)"), "{line}");
}
