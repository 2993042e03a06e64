//! Whose handshakes are in the latencies.

use crate::provider::{Manner, Provider};
use crate::{measured_until, of_five, plan};
use load::plan::{Pace, Plan, Workload};
use load::report::Report;
use load::run::run;
use load::wire::Reach;
use std::sync::Arc;
use std::time::Duration;

/// An open loop with far more users than it needs, from its first moment on.
fn roomy(url: &str, workload: Workload) -> Plan {
    let pace = Pace::Open { rate: 100.0, visitors: 50 };
    Plan { pace, warmup: Duration::ZERO, ..plan(url, workload) }
}

/// Red without `connect` in `prepare`: whoever holds no tokens came without a connection, and the first latency of each was that of
/// a handshake.
#[test]
fn connections_are_made_before_anything_counts() {
    for (manner, workload) in [
        (Manner::Good, Workload::Jwks),
        (Manner::Good, Workload::Flow),
        (Manner::Good, Workload::ClientCredentials),
        (Manner::Good, Workload::Device),
        (Manner::Good, Workload::Introspect),
        (Manner::Accounts, Workload::SignUp),
    ] {
        let (report, provider) = measured_until(manner, |url| roomy(url, workload), |report| report.iterations > 0);
        assert!(report.iterations > 0 && report.failed == 0, "{report}");
        assert_eq!(report.connections_opened, Some(0), "{workload:?}");
        assert!(!report.to_string().contains("connections made in the window"), "{report}");
        assert!(provider.connections() >= 50, "{workload:?}: {}", provider.connections());
    }
}

/// Red where the handshakes that a server asks for by closing are not told.
#[test]
fn handshakes_in_the_window_are_counted() {
    let closing = |url: &str| Plan { pace: Pace::Open { rate: 100.0, visitors: 1 }, ..roomy(url, Workload::Jwks) };
    let (report, _) = measured_until(Manner::Closing, closing, |report| report.iterations > 2);
    let opened = report.connections_opened.unwrap();
    assert!(opened > 0 && opened == report.requests, "{report}");
    assert!(report.to_string().contains(&format!("{opened:>12} connections made in the window")), "{report}");
    let read: Report = serde_json::from_str(&serde_json::to_string(&report).unwrap()).unwrap();
    assert_eq!(read.connections_opened, Some(opened));
}

/// Red without `asked` in `connect`: a server that closes after each answer was asked once for each step of each user.
#[test]
fn who_is_hung_up_on_makes_ready_with_one_question() {
    let seldom = |url: &str| Plan { pace: Pace::Open { rate: 20.0, visitors: 50 }, ..roomy(url, Workload::Flow) };
    let (report, provider) = measured_until(Manner::Closing, seldom, |report| report.iterations > 0);
    // Discovery, the rehearsal, one for each user, and what iterations need.
    let most = 1 + 8 + 50 + 8 * report.due();
    assert!(most < 50 * 5 && provider.connections() <= most, "{} of {most}", provider.connections());
}

/// Red where a connection is made and nothing is asked over it: what TLS sends after the handshake looked like a server that closes.
#[test]
fn connections_with_tls_are_made_once() {
    let secured = || {
        let (provider, certificate) = Provider::secure(Manner::Good);
        let file = std::env::temp_dir().join(format!("load-once-{}.pem", std::process::id()));
        std::fs::write(&file, certificate).unwrap();
        let mut reach = Reach::default();
        reach.speak_tls(Some(&file)).unwrap();
        std::fs::remove_file(&file).unwrap();
        (run(&Plan { reach: Arc::new(reach), ..roomy(&provider.url, Workload::Jwks) }, None).unwrap(), provider)
    };
    let (report, provider) = of_five(secured, |(report, _)| report.iterations > 0);
    assert!(report.iterations > 0 && report.failed == 0, "{report}");
    // Discovery, the rehearsal, and one for each visitor.
    assert_eq!((report.connections_opened, provider.connections()), (Some(0), 52), "{report}");
}
