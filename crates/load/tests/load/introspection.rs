//! Providers that let an API ask about a token, and not the client that it is of.

use crate::commands::{Place, SHORT, done, said};
use crate::of_five;
use crate::provider::{Manner, Provider};

/// For what is made of a dozen runs and more.
const BRIEF: &str = "--warmup 20ms --duration 150ms --vus 4";

/// Red without `introspector`: such a provider could be measured with userinfo in its place only, and by W4 not at all.
#[test]
fn another_client_may_ask_about_tokens() {
    let (provider, place) = (Provider::start(Manner::Apis), Place::new("apis"));
    let (secret, wrong) = (place.file("api-secret"), place.file("wrong"));
    std::fs::write(&secret, "api-secret\n").unwrap();
    std::fs::write(&wrong, "no\n").unwrap();
    let line = |what: &str| format!("{what} {SHORT} --target {} {}", provider.url, place.client());
    for workload in ["w1", "introspect", "w5 --rate 100"] {
        let table = done(&line(&format!("{workload} --introspect-client api --introspect-secret-file {secret}")));
        assert!(table.contains("\nintrospection by a client of its own (--introspect-client)\n"), "{table}");
        assert!(provider.seen("/introspect") > 0 && provider.seen("/userinfo") == 0 || workload.starts_with("w5"));
    }
    for (what, expected) in [
        ("introspect".to_owned(), "not this client, --introspect-client names one"),
        ("w1".to_owned(), "--introspect-client names one, and --no-introspection asks for userinfo in its place"),
        (
            format!("w1 --introspect-client api --introspect-secret-file {wrong}"),
            "is it the secret of --introspect-client (--introspect-secret-file), and the way in which it authenticates (--auth)?",
        ),
    ] {
        let refusal = said(&line(&what)).unwrap_err().to_string();
        assert!(refusal.starts_with("the first iteration failed: introspect: 401 invalid_client; "), "{refusal}");
        assert!(refusal.ends_with(expected), "{refusal}");
    }
}

/// Red without jwt.rs in `read`, visitor/grant.rs, and without `cannot_ask`: w1 could not be run at all.
#[test]
fn who_signs_what_it_tells_and_who_tells_nothing_can_be_measured() {
    let place = Place::new("silent");
    let told = |manner: Manner, what: &str| {
        let provider = Provider::start(manner);
        (said(&format!("{what} {SHORT} --target {} {}", provider.url, place.client())), provider.seen("/userinfo"))
    };
    let (signed, asked) = told(Manner::Signing, "w1 --no-introspection");
    let table = signed.unwrap();
    assert!(table.contains("\nuserinfo in place of introspection: as it was asked for") && asked > 0, "{table}");
    let (table, asked) = told(Manner::Silent, "w1");
    let (table, note) = (table.unwrap(), "\nwithout introspection: the provider has no such endpoint, nor userinfo");
    assert!(table.contains(note) && asked == 0, "{table}");
    let overload = of_five(|| told(Manner::Silent, "w4").0, Result::is_ok);
    assert!(overload.unwrap().starts_with("w4: w1, refresh, jwks\n"));
    let refusal = told(Manner::Silent, "w5 --rate 50").0.unwrap_err().to_string();
    assert!(refusal.contains("discovery names neither this endpoint nor one for introspection"), "{refusal}");
}

/// Red where W4 has introspection beside its flood whatever there is: it ended when its capacity was known.
#[test]
fn an_overload_asks_userinfo_where_nobody_introspects_and_fails_before_it_begins() {
    let place = Place::new("mute");
    let of = |manner: Manner, more: &str| {
        let provider = Provider::start(manner);
        let told = said(&format!("w4 {BRIEF} --target {} {} {more}", provider.url, place.client()));
        (told, provider.seen("/login"))
    };
    for (manner, more) in [(Manner::Mute, ""), (Manner::Apis, "--no-introspection")] {
        // Where the machine stands still for the first window, there is no rate to go beyond.
        let (told, _) = of_five(|| of(manner, more), |(told, _)| told.is_ok());
        let table = told.unwrap();
        assert!(table.starts_with("w4: w1, userinfo, refresh, jwks\n"), "{table}");
    }
    let (told, logins) = of(Manner::Apis, "");
    assert!(told.unwrap_err().to_string().contains("introspect: 401 invalid_client; "));
    assert_eq!(logins, 1, "nobody came but for the rehearsal");
}
