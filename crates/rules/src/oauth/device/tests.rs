use super::*;
use crate::login::cookie::Seal;
use crate::login::session::{Entry, FRESH, Method, Origin, enter};
use crate::oauth::client::tests::native;
use crate::people::user::tests::person;
use crate::realm::{SKEW, Settings};

const NOW: Time = Time(1_000_000);

fn signed_in() -> Session {
    let user = person("ada");
    let entry = Entry { user: &user, method: Method::Password, before: None, origin: &Origin::default() };
    enter(&entry, &Settings::default(), &Seal::new([0; 32]), (NOW, &Fresh::new([1; 32]))).reply.expect("starts").session
}

fn device(asked: Time) -> Device {
    Device {
        handle: Handle::of("device"),
        user_code: Handle::of("user code"),
        client: "tv".into(),
        life: None,
        scope: Scope::default(),
        resources: vec![],
        address: String::new(),
        asked,
        expires: asked + Span::minutes(10),
        interval_s: INTERVAL_S,
        polled: None,
        stage: Stage::Pending,
    }
}

#[test]
fn rfc_6749_3_3_a_device_that_names_no_scope_asks_for_what_its_client_is_for() {
    // red with `openid` for every client: a client of an API alone was refused for a scope that it never sent.
    let asked = |registered: &str| {
        let mut client = native("tv", "http://localhost/cb");
        client.grants = vec![Grant::DeviceCode];
        client.scope = Scope::parse(registered).expect("legal");
        let realm = Realm { id: "main".into(), issuer: "https://id.test".into(), settings: Settings::default() };
        let decision = ask(&client, (None, vec![], ""), &[1; 32], &realm, (NOW, &Fresh::new([2; 32])));
        let scopes = decision.changes.into_iter().filter_map(|change| match change {
            Change::AskDevice(device) => Some(device.scope.to_string()),
            _ => None,
        });
        scopes.collect::<Vec<_>>()
    };
    assert_eq!(asked("openid email jobs:run"), ["openid"]);
    assert_eq!(asked("jobs:run jobs:read"), ["jobs:run jobs:read"]);
    assert!(asked("").is_empty());
}

#[test]
fn who_answers_what_was_answered_is_not_told_that_it_expired() {
    // Red where `answer` has one word for both: a device connected a moment ago was said to have no code any more.
    let (session, client) = (signed_in(), native("tv", "http://localhost/cb"));
    let who = Answerer { session: &session, consent: None, client: &client };
    let told = |device: Device, now| answer(&device, false, &who, (now, &Fresh::new([2; 32]))).reply;
    assert!(told(device(NOW), NOW).is_ok());
    for stage in [Stage::Denied, Stage::Redeemed] {
        let error = told(Device { stage, ..device(NOW) }, NOW).expect_err("answered");
        assert_eq!(error.code, ErrorCode::InvalidGrant);
    }
    let late = NOW + Span::minutes(10);
    let fresh = Session { auth_time: late, ..session.clone() };
    let who = Answerer { session: &fresh, ..who };
    let error = answer(&device(NOW), false, &who, (late, &Fresh::new([2; 32]))).reply.expect_err("too late");
    assert_eq!(error.code, ErrorCode::ExpiredToken);
}

#[test]
fn a_poll_that_another_node_dated_ahead_slows_nobody_down() {
    // Red where a poll ahead of this clock counts as just now: each poll at the other node would cost five seconds.
    let slows = |polled: Time| {
        let told = wait(&Device { polled: Some(polled), ..device(NOW) }, NOW).reply.expect_err("pending");
        told.code == ErrorCode::SlowDown
    };
    assert!(slows(NOW) && slows(NOW - Span::seconds(1)) && slows(NOW + Span(1)), "polls at the same time");
    assert!(!slows(NOW - Span::seconds(INTERVAL_S)) && !slows(NOW + SKEW));
}

#[test]
fn what_a_clock_dated_that_was_ahead_is_not_fresh() {
    // red without `is_believable` in `is_fresh` and in `is_over`.
    let entered = signed_in();
    let believed = NOW + SKEW + SKEW;
    for (dated, fresh) in [(NOW, true), (believed, true), (believed + Span(1), false), (NOW + FRESH, false)] {
        let session = Session { auth_time: dated, ..entered.clone() };
        assert_eq!(session.is_fresh(NOW), fresh, "{dated:?}");
        assert_eq!(is_open(&device(dated), NOW), fresh, "{dated:?}");
    }
    assert!(!entered.is_fresh(NOW + FRESH));
    assert!(!is_open(&device(NOW), NOW + Span::minutes(10)));
}

#[test]
fn a_user_code_is_read_however_it_is_typed() {
    let key = [1; 32];
    let code = user_code(&[7; 32]);
    let handle = user_code_handle(&key, &code).expect("ours");
    let typed = format!(" {} ", code.to_lowercase().replace('-', ""));
    assert!(user_code_handle(&key, &typed).is_some_and(|other| other == handle));
    for between in
        ["\u{2013}", "\u{2212}", "\u{a0}", "\t", " - ", "\u{ff0d}", "\u{3000}", "\u{202f}", "\u{200b}-\u{feff}"]
    {
        let typed = code.replace('-', between);
        assert!(user_code_handle(&key, &typed).is_some_and(|other| other == handle), "{typed:?}");
        assert_eq!(as_shown(&typed.to_lowercase()), code);
    }
    // Letters of a Japanese keyboard.
    let wide: String = code.chars().map(|c| char::from_u32(c as u32 + 0xfee0).unwrap_or(c)).collect();
    assert!(user_code_handle(&key, &wide).is_some_and(|other| other == handle), "{wide}");
    for more in ["\u{e9}", ".", "_", "\0", "\n", "\u{2028}"] {
        assert!(user_code_handle(&key, &format!("{code}{more}")).is_none(), "{more:?}");
    }
    assert!(user_code_handle(&key, "AEIO-UAEI").is_none());
    assert!(user_code_handle(&key, "BCDF").is_none());
    assert_eq!(as_shown("b\u{e9}d"), "b\u{e9}d");
}
