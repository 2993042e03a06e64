//! Where answers may go: only to what was registered, whatever is asked.

use crate::cases;
use crate::world::client;
use proptest::prelude::*;
use rules::oauth::authorize::{Fault, read};
use rules::oauth::client::Client;
use rules::oauth::logout::{Ask, Hint, Step, decide};
use rules::oauth::params::Params;
use rules::oauth::redirect::{Mode, Verified};
use rules::realm::{Realm, Settings};

const REGISTERED: [&str; 6] = [
    "https://app.test/cb",
    "https://app.test/cb?x=1",
    "http://127.0.0.1/cb",
    "http://127.0.0.1:8000/cb?y",
    "http://[::1]/",
    "com.example.app:/cb",
];

fn holder(native: bool) -> Client {
    let uris = REGISTERED.map(String::from).to_vec();
    Client { native, redirect_uris: uris.clone(), post_logout_redirect_uris: uris, ..client("web") }
}

/// A registered address, bent in one or two places; or anything at all.
fn asked() -> impl Strategy<Value = String> {
    let piece = proptest::sample::select(vec![
        "",
        ":1",
        ":80",
        ":65536",
        ":0",
        ":",
        ".evil.test",
        "@evil.test",
        "\\@evil.test",
        "/",
        "/../",
        "?",
        "#",
        "%2e",
        " ",
        "\t",
        "\0",
        "A",
        "é",
        "://",
        "//evil.test",
        ":80@evil.test",
        "&x",
        "127.0.0.1",
        "localhost",
        "https",
    ]);
    let bent =
        (proptest::sample::select(REGISTERED.to_vec()), proptest::collection::vec((any::<usize>(), piece), 0..3))
            .prop_map(|(known, bends)| {
                let mut text = known.to_owned();
                for (at, piece) in bends {
                    let places: Vec<usize> = text.char_indices().map(|(at, _)| at).chain([text.len()]).collect();
                    text.insert_str(places[at % places.len()], piece);
                }
                text
            });
    let port = (2usize..5, any::<u32>()).prop_map(|(which, port)| {
        let host = if which == 4 { "http://[::1]" } else { "http://127.0.0.1" };
        format!("{host}:{port}{}", ["", "", "/cb", "/cb?y", "/"][which])
    });
    prop_oneof![4 => bent, 2 => port, 1 => any::<String>()]
}

/// The address with the port of a loopback literal left out, and whether it has one to leave out.
fn without_port(uri: &str) -> (String, bool) {
    for host in ["http://127.0.0.1", "http://[::1]"] {
        let Some(rest) = uri.strip_prefix(host) else { continue };
        let tail = rest.strip_prefix(':').map(|rest| rest.trim_start_matches(|c: char| c.is_ascii_digit()));
        return (format!("{host}{}", tail.unwrap_or(rest)), true);
    }
    (uri.to_owned(), false)
}

/// Whether `uri` is registered, reckoned without the rules.
fn is_registered(uri: &str, native: bool) -> bool {
    let (bare, loopback) = without_port(uri);
    REGISTERED.contains(&uri) || (native && loopback && REGISTERED.iter().any(|known| without_port(known).0 == bare))
}

fn pair(name: &str, value: &str) -> (String, String) {
    (name.to_owned(), value.to_owned())
}

proptest! {
    #![proptest_config(cases(3_000))]

    /// RFC 9700 §2.1 and RFC 8252 §7.3.
    #[test]
    fn only_registered_bytes_or_another_loopback_port_are_accepted(uri in asked(), native in any::<bool>()) {
        let client = holder(native);
        if let Some(to) = Verified::accept(&client, &uri) {
            prop_assert!(is_registered(&uri, native), "{uri:?}");
            prop_assert_eq!(to.as_str(), &uri);
            let sent = to.with(Mode::Query, &[("code", "x&y=\"#".to_owned())]);
            prop_assert!(sent.starts_with(&uri) && !sent[uri.len()..].contains(['"', '#']), "{}", sent);
        }
        prop_assert_eq!(Verified::after_logout(&client, &uri).is_some(), REGISTERED.contains(&&*uri));
    }

    /// RFC 9700 §4.11.2: an error whose address was not verified stays here; any other goes to the address it named.
    #[test]
    fn an_error_never_leaves_for_an_address_that_was_not_verified(
        uri in asked(),
        native in any::<bool>(),
        rest in proptest::collection::vec((proptest::sample::select(vec![
            "response_type", "scope", "prompt", "max_age", "claims", "response_mode", "state", "code_challenge", "request",
        ]), any::<String>()), 0..6),
    ) {
        let realm = Realm { id: "main".into(), issuer: "https://id.test".into(), settings: Settings::default() };
        let mut pairs = vec![pair("client_id", "web"), pair("redirect_uri", &uri)];
        for (name, value) in &rest {
            if !pairs.iter().any(|(known, _)| known == name) {
                pairs.push(pair(name, value));
            }
        }
        let Ok(params) = Params::parse(pairs) else { return Ok(()) };
        let verified = is_registered(&uri, native);
        match read(&params, Some(&holder(native)), &realm) {
            Err(Fault::Local(_)) => {}
            Err(Fault::Client { back, error, .. }) => {
                prop_assert!(verified, "{uri:?}");
                let told = back.error(&realm.issuer, error);
                prop_assert_eq!(told.to.as_str(), &uri);
                prop_assert!(told.fields.contains(&("iss", realm.issuer.clone())));
            }
            Ok(request) => prop_assert!(verified && request.redirect_uri == uri, "{uri:?}"),
        }
        prop_assert!(matches!(read(&params, None, &realm), Err(Fault::Local(_))), "no client, no redirect");
    }

    /// RP-Initiated Logout 1.0 §3: only to a registered address, and without asking only for a hint that names this
    /// very session.
    #[test]
    fn nobody_is_signed_out_unasked_or_sent_elsewhere(
        uri in asked(),
        (user, session, client) in (0u8..2, proptest::option::of(0u8..2), 0u8..2),
        (hinted, sent, signed_in) in any::<(bool, bool, bool)>(),
    ) {
        let name = |kind: &str, which: u8| format!("{kind}{which}");
        let hint = Hint {
            client: name("c", client).as_str().into(),
            user: name("u", user).as_str().into(),
            session: session.map(|which| name("s", which).as_str().into()),
        };
        let holder = Client { id: "c0".into(), ..holder(false) };
        let (sid, whose) = ("s0".into(), "u0".into());
        let ask = Ask {
            hint: hinted.then_some(&hint),
            hint_sent: hinted || sent,
            client_sent: sent,
            client: Some(&holder),
            post_logout: Some(&uri),
            session: signed_in.then_some((&sid, &whose)),
        };
        let step = decide(&ask);
        let (Step::Confirm(to) | Step::SignOut(to) | Step::Done(to)) = &step;
        prop_assert!(to.as_ref().is_none_or(|to| REGISTERED.contains(&to.as_str()) && to.as_str() == uri));
        let named = hinted && client == 0 && user == 0 && session.is_none_or(|which| which == 0);
        prop_assert!(!matches!(step, Step::SignOut(_)) || named, "{step:?}");
    }
}
