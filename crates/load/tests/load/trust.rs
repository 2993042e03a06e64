//! Providers that say what is not so: nothing is sent to whom they name, and their tokens are no success.

use crate::provider::{Manner, Provider};
use crate::{is_clean, is_lively, measured, measured_until, of_five, plan, refused};
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use load::plan::{Client, Plan, Workload};
use load::run::run;
use load::wire::Reach;

/// What is not so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lie {
    /// Another issuer is named in the metadata.
    Issuer,
    /// There is no ID token.
    Nothing,
    /// The ID token is of another issuer.
    Of,
    /// It is for another client.
    For,
    /// It is an older one.
    Old,
    /// It is none.
    Garbled,
}

impl Lie {
    /// How a token answer begins: with an ID token, which is right where nobody lies.
    pub fn member(lie: Option<Lie>, url: &str, nonce: &str) -> String {
        let right = [url, "app", nonce];
        let [iss, aud, nonce] = match lie {
            Some(Lie::Nothing) => return "{".to_owned(),
            Some(Lie::Garbled) => return r#"{"id_token":"e30.e30.x","#.to_owned(),
            Some(Lie::Of) => ["http://127.0.0.1:1", "app", nonce],
            Some(Lie::For) => [url, "another", nonce],
            Some(Lie::Old) => [url, "app", "old"],
            Some(Lie::Issuer) | None => right,
        };
        let claims = format!(r#"{{"iss":"{iss}","sub":"1","aud":["{aud}"],"nonce":"{nonce}","exp":1}}"#);
        format!(r#"{{"id_token":"e30.{}.x","#, URL_SAFE_NO_PAD.encode(claims))
    }
}

/// Red without `is_issuer` in `read`: the password and the client's secret go to whoever is named.
#[test]
fn nothing_is_sent_to_an_issuer_that_was_not_asked() {
    for workload in
        [Workload::Profile, Workload::Day, Workload::SignIn, Workload::SignUp, Workload::Flow, Workload::Jwks]
    {
        let provider = Provider::start(Manner::Lying(Lie::Issuer));
        let line = refused(&plan(&provider.url, workload));
        let expected = format!("{} names the issuer \"http://127.0.0.1:1\", which has to be the URL", provider.url);
        assert!(line.starts_with(&expected) && !line.contains('\n'), "{line}");
        assert_eq!([provider.seen("/api/v1/signin"), provider.seen("/authorize")], [0, 0]);
    }
    let slashed = |url: &str| plan(&format!("{url}/"), Workload::Flow);
    is_clean(&measured_until(Manner::Good, slashed, is_lively).0, 4);
}

/// Red without `only_tls`: the client's secret and passwords went on in plain text.
#[test]
fn nothing_that_an_https_target_leads_to_is_sent_in_plain_text() {
    let secured = |manner| {
        let (provider, certificate) = Provider::secure(manner);
        let file = std::env::temp_dir().join(format!("load-led-{}.pem", std::process::id()));
        std::fs::write(&file, certificate).unwrap();
        let mut plan = plan(&provider.url, Workload::Flow);
        let mut reach = Reach::default();
        reach.speak_tls(Some(&file)).unwrap();
        reach.lead_to(&plan.target);
        std::fs::remove_file(&file).unwrap();
        plan.reach = std::sync::Arc::new(reach);
        (plan, provider)
    };
    let why = "it is http, but the target is https: nothing is sent there in plain text";
    let refused = |manner| refused(&secured(manner).0);
    assert_eq!(refused(Manner::Elsewhere), format!("the token_endpoint http://example.com/token: {why}"));
    let led = format!("the first iteration failed: authorize: led to http://example.com: {why}");
    assert_eq!(refused(Manner::Astray), led);
    // The redirect URI is http, and nothing is sent there.
    let good = || {
        let (plan, _provider) = secured(Manner::Good);
        run(&plan, None).unwrap()
    };
    is_clean(&of_five(good, is_lively), 4);
}

/// Red without `in_token` in `redeem`.
#[test]
fn an_id_token_that_is_not_for_this_request_is_a_failure_of_its_step() {
    for (lie, expected) in [
        (Lie::Nothing, "200, but without an ID token"),
        (Lie::Of, "200, but the ID token is of another issuer"),
        (Lie::For, "200, but the ID token is for another client"),
        (Lie::Old, "200, but the ID token has not the nonce of the request"),
        (Lie::Garbled, "200, but the ID token cannot be read"),
    ] {
        let provider = Provider::start(Manner::Lying(lie));
        let line = refused(&plan(&provider.url, Workload::Flow));
        assert_eq!(line, format!("the first iteration failed: token: {expected}"));
        // Who asks for no ID token may get any, or none.
        let asks_for_none = |url: &str| {
            let plan = plan(url, Workload::Flow);
            Plan { client: Client { scope: "profile".to_owned(), ..plan.client }, ..plan }
        };
        is_clean(&measured_until(Manner::Lying(lie), asks_for_none, is_lively).0, 4);
    }
}

/// Red where whoever was hung up on pauses: a hundred milliseconds after every second request.
#[test]
fn who_is_hung_up_on_comes_back_at_once() {
    let (report, _) = measured(Manner::HangingUp, Workload::Jwks);
    assert_eq!(report.failures[0].reason, "the connection was closed early", "{report}");
    assert_eq!(report.rested, 0, "{report}");
    let (good, _) = measured(Manner::Good, Workload::Jwks);
    assert!(good.rested == 0 && !good.to_string().contains("paused for"), "{good}");
}
