//! Somebody who takes their time over the consent page.

use super::{NOW, database, newcomer, node, shop, sign_in};
use crate::App;
use crate::admin::clients::ClientSecret;
use crate::authorize::{Asked, Outcome, SignIn};
use crate::browser::Browser;
use crate::clock::Clock;
use crate::sign_in::Next;
use rules::Span;
use rules::oauth::client::Client;
use rules::oauth::params::Params;
use rules::oauth::scope::Scope;
use rules::people::Role;
use rules::secret::Secret;

/// An authorization request that has consent asked for, with one more parameter.
fn request(more: (&str, &str)) -> Params {
    let pairs = [
        ("client_id", "shop"),
        ("redirect_uri", "https://shop.test/cb"),
        ("response_type", "code"),
        ("scope", "openid"),
        ("code_challenge", "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"),
        ("code_challenge_method", "S256"),
        more,
    ];
    Params::parse(pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).into()).unwrap()
}

#[track_caller]
fn sign_in_page(outcome: Outcome) -> Box<SignIn> {
    match outcome {
        Outcome::SignIn(page) => page,
        other => panic!("no sign-in page: {other:?}"),
    }
}

#[track_caller]
fn consent_page(outcome: Outcome) -> Box<Asked> {
    match outcome {
        Outcome::Consent(page, _) => page,
        other => panic!("no consent page: {other:?}"),
    }
}

/// Ada and the shop; a browser that nobody is signed in with.
async fn prepared(app: &App) -> Browser {
    app.add_user(&newcomer("ada", ""), Role::Member).await.unwrap().unwrap();
    app.add_client(shop(), ClientSecret::Nothing).await.unwrap().unwrap();
    Browser { flow: Some(Secret::new("the flow of this browser")), ..Browser::default() }
}

#[tokio::test]
async fn a_yes_is_to_what_was_shown_and_to_nothing_that_came_since() {
    // red without `shown` in authorize.rs, consent: what the application may not have is left out of the page.
    let (folder, clock) = (tempfile::tempdir().unwrap(), Clock::fixed(NOW));
    let app = node(database(folder.path()).await, clock.clone()).await;
    let mut browser = prepared(&app).await;
    let mut pairs = request(("state", "s")).pairs().to_vec();
    pairs.iter_mut().filter(|(name, _)| name == "scope").for_each(|(_, value)| *value = "openid email".into());
    let wide = Params::parse(pairs).unwrap();
    let page = sign_in_page(app.authorize(wide, &browser).await.unwrap());
    clock.advance(Span::seconds(1));
    let flow = app.open_flow(&page.flow.text, &browser).unwrap();
    let Next::GoOn(flow) = sign_in(&app, flow, &mut browser).await else { panic!("no consent") };
    let mut asked = consent_page(app.resume(flow, &browser).await.unwrap());

    let widen = |client: &mut Client| {
        client.scope = Scope::from("openid email".to_owned());
        Ok(())
    };
    assert!(app.edit_client(&"shop".into(), widen).await.unwrap().is_ok());
    for shown in ["openid", "openid email"] {
        let flow = app.open_flow(&asked.flow.text, &browser).unwrap();
        assert_eq!(flow.shown.as_ref().map(ToString::to_string).as_deref(), Some(shown));
        match app.consent(flow, true, &browser).await.unwrap() {
            Outcome::Respond(response) => assert_eq!((shown, response.fields[0].0), ("openid email", "code")),
            other => asked = consent_page(other),
        }
    }
}

#[tokio::test]
async fn a_yes_that_comes_late_asks_for_the_password_again_and_is_no_error() {
    // red where authorize.rs, consent, issues a code without asking what comes next.
    for more in [("prompt", "login"), ("max_age", "60")] {
        let (folder, clock) = (tempfile::tempdir().unwrap(), Clock::fixed(NOW));
        let app = node(database(folder.path()).await, clock.clone()).await;
        let mut browser = prepared(&app).await;
        let mut page = sign_in_page(app.authorize(request(more), &browser).await.unwrap());
        for late in [true, true, false] {
            clock.advance(Span::seconds(1));
            let flow = app.open_flow(&page.flow.text, &browser).unwrap();
            let Next::GoOn(flow) = sign_in(&app, flow, &mut browser).await else { panic!("{more:?}: no consent") };
            let asked = consent_page(app.resume(flow, &browser).await.unwrap());
            clock.advance(if late { Span::minutes(6) } else { Span::minutes(4) });
            let flow = app.open_flow(&asked.flow.text, &browser).unwrap();
            let answered = app.consent(flow, true, &browser).await.unwrap();
            match (late, answered) {
                (true, outcome) => {
                    page = sign_in_page(outcome);
                    assert_eq!((page.login.as_str(), page.again), ("ada", true), "nobody else comes in here");
                }
                (false, Outcome::Respond(response)) => assert_eq!(response.fields[0].0, "code", "{more:?}"),
                (false, other) => panic!("{more:?}: {other:?}"),
            }
        }
    }
}
