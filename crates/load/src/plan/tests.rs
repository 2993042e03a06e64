//! Plans that work and plans that cannot.

use super::*;

/// Fetches the key set for one second, with one visitor.
pub fn plan() -> Plan {
    Plan {
        target: Url::parse("http://localhost:1").unwrap(),
        reach: Arc::default(),
        workload: Workload::Jwks,
        pace: Pace::Closed { visitors: 1, pause: Duration::ZERO },
        shape: Shape::Steady,
        arrivals: Arrivals::Even,
        warmup: Duration::ZERO,
        duration: Duration::from_secs(1),
        timeout: Duration::from_secs(1),
        heeds_retry_after: false,
        threads: 1,
        client: client(Proof::Nothing),
        introspector: None,
        users: vec![],
        server_pids: vec![],
        without_refresh: false,
        without_introspection: false,
        without_account_api: false,
        recovery: None,
        interrupt: Interrupt::default(),
    }
}

fn client(proof: Proof) -> Client {
    let (redirect_uri, scope) = (String::new(), String::new());
    let (parameters, token_parameters) = (vec![], vec![]);
    Client { id: "a:b".to_owned(), proof, redirect_uri, scope, own_scope: None, parameters, token_parameters }
}

#[test]
fn a_basic_client_is_encoded_before_base64() {
    let basic = client(Proof::Basic("s/ü".to_owned()));
    assert_eq!(basic.authorization().unwrap(), format!("Basic {}", STANDARD.encode("a%3Ab:s%2F%C3%BC")));
    assert_eq!(basic.fields(), []);
}

#[test]
fn other_clients_stand_in_the_body() {
    let post = client(Proof::Post("s".to_owned()));
    assert_eq!(post.authorization(), None);
    assert_eq!(post.fields(), [("client_id", "a:b"), ("client_secret", "s")]);
    assert_eq!(client(Proof::Nothing).fields(), [("client_id", "a:b")]);
}

/// Red where lines are counted, or where nothing is said: four attempts at a time per account are a limit of their
/// own.
#[test]
fn too_few_accounts_are_told() {
    let with = |workload, visitors: usize, logins: usize| {
        let user = |n| User { login: format!("user{}", n % logins.max(1)), password: String::new() };
        let users = (0..2 * logins).map(user).collect();
        Plan { workload, users, pace: Pace::Closed { visitors, pause: Duration::ZERO }, ..plan() }
    };
    let said = |workload, visitors, logins| with(workload, visitors, logins).scarcity().unwrap_or_default();
    for workload in [Workload::Flow, Workload::SignIn, Workload::Day] {
        assert!(
            said(workload, 9, 2).starts_with("9 users share 2 accounts: where a server lets few attempts at a time")
        );
        assert!(said(workload, 8, 2).starts_with("2 accounts to sign in with: a server that keeps"));
        assert!(said(workload, 4, 1).starts_with("1 account to sign in with"));
        assert_eq!(said(workload, 4000, 1000), "");
        assert!(said(workload, 4001, 1000).starts_with("4001 users share 1000 accounts"));
    }
    for workload in [Workload::Session, Workload::Introspect, Workload::Jwks, Workload::SignUp] {
        assert_eq!(said(workload, 50, 1), "", "{workload:?}");
    }
    assert_eq!(with(Workload::Userinfo, 1, 3).accounts(), Some(3));
    assert_eq!([Workload::Jwks, Workload::SignUp].map(|workload| with(workload, 1, 3).accounts()), [None; 2]);
}

#[test]
fn users_are_split_at_the_first_colon() {
    let read = users("ann:a:b\n\nbob:c\n").unwrap();
    assert_eq!((read.len(), read[0].login.as_str(), read[0].password.as_str()), (2, "ann", "a:b"));
    // Red without `strip_prefix`: the first user of the file cannot sign in.
    assert_eq!(users("\u{feff}ann:\u{feff}a\n").unwrap()[0].login, "ann");
    assert_eq!(users("\u{feff}ann:\u{feff}a\n").unwrap()[0].password, "\u{feff}a", "elsewhere it is part of the text");
    assert!(users("ann:a\nbob\n").err().unwrap().to_string().starts_with("line 2 "));
}

/// Red without `server_time` in `check`: it was said after everybody had prepared, and after the warm-up.
#[test]
fn a_server_process_that_is_not_there_is_refused_before_anything_is_sent() {
    let check = |server_pids| Plan { server_pids, ..plan() }.check();
    assert_eq!([check(vec![]), check(vec![std::process::id()])], [Ok(()), Ok(())]);
    let refusal = check(vec![std::process::id(), u32::MAX]).unwrap_err();
    assert!(refusal.to_string().ends_with("no such process, or no /proc") && refusal.exit_code() == 2, "{refusal}");
}

/// Red without the bound: the command works on a schedule that no machine can keep, and counts starts that are none.
#[test]
fn a_rate_that_no_machine_can_offer_is_refused() {
    let check = |rate, arrivals| Plan { pace: Pace::Open { rate, visitors: 1 }, arrivals, ..plan() }.check();
    for arrivals in [Arrivals::Even, Arrivals::Poisson] {
        for rate in [1e30, 1.1e8, f64::INFINITY] {
            let refusal = check(rate, arrivals).unwrap_err();
            assert_eq!(refusal.to_string(), "the rate must be at most 100 million per second", "{rate}");
            assert_eq!(refusal.exit_code(), 2);
        }
        assert_eq!(check(1e6, arrivals), Ok(()));
    }
    for rate in [0.0, -1.0, f64::NAN, f64::NEG_INFINITY] {
        assert_eq!(check(rate, Arrivals::Even).unwrap_err().to_string(), "the rate must be above zero", "{rate}");
    }
}
