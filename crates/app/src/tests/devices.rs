//! RFC 8628: what a device is told that asks (§3.2), and one that goes on polling (§3.5).

use super::{NOW, application, database, newcomer, node, sign_in};
use crate::App;
use crate::admin::clients::ClientSecret;
use crate::audit::Filter;
use crate::authorize::Outcome;
use crate::browser::Browser;
use crate::clock::Clock;
use crate::flow::{Flow, Place, To};
use rules::login::session::Session;
use rules::oauth::client::{AuthMethod, Client, Grant};
use rules::oauth::client_auth::{Means, Proof};
use rules::oauth::error::Code;
use rules::oauth::params::Params;
use rules::oauth::scope::Scope;
use rules::people::Role;
use rules::{Change, Fresh, Handle, Span};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use store::engine::{Answer, Around, CommitError, Engine, Write};
use store::tables::{changes, consents};

fn television() -> Client {
    Client { grants: vec![Grant::DeviceCode], auth_methods: vec![AuthMethod::None], ..application("tv") }
}

fn scope() -> Params {
    Params::parse(vec![("scope".into(), "read".into())]).unwrap()
}

/// An engine in which what is written next is there already, once: another device drew the same code.
struct Taken(Arc<dyn Engine>, AtomicBool);

impl Around for Taken {
    fn inside(&self) -> &dyn Engine {
        &*self.0
    }
    fn commit_around(&self, writes: Vec<Write>) -> Answer<'_, Vec<u64>, CommitError> {
        if !self.1.swap(false, Ordering::Relaxed) {
            return self.0.commit(writes);
        }
        Box::pin(async move {
            self.0.commit(writes.clone()).await?;
            self.0.commit(writes).await
        })
    }
}

#[tokio::test]
async fn a_user_code_that_another_device_has_is_drawn_again() {
    // Red where every try draws the same, and fails as the first did.
    let folder = tempfile::tempdir().unwrap();
    let engine = Arc::new(Taken(database(folder.path()).await, AtomicBool::new(false)));
    let app = node(Arc::clone(&engine) as Arc<dyn Engine>, Clock::fixed(NOW)).await;
    let (tv, _) = app.add_client(television(), ClientSecret::Nothing).await.unwrap().unwrap();
    engine.1.store(true, Ordering::Relaxed);
    app.device_ask(&tv, &scope(), "192.0.2.1").await.unwrap().unwrap();
    assert!(!engine.1.load(Ordering::Relaxed), "the code was taken");
}

#[tokio::test]
async fn a_device_is_told_for_an_hour_that_its_request_has_expired() {
    // Red where sweep.rs removes requests that expired just now; without `devices` in jobs.rs, sweep_for.
    let (folder, clock) = (tempfile::tempdir().unwrap(), Clock::fixed(NOW));
    let app = node(database(folder.path()).await, clock.clone()).await;
    let (tv, _) = app.add_client(television(), ClientSecret::Nothing).await.unwrap().unwrap();
    let asked = app.device_ask(&tv, &scope(), "192.0.2.1").await.unwrap().unwrap();
    let poll = Params::parse(vec![
        ("grant_type".into(), Grant::DeviceCode.name().into()),
        ("device_code".into(), asked.device_code.reveal().into()),
    ])
    .unwrap();
    let told = async || {
        app.sweep(&|| false).await.unwrap();
        let proof = Proof { client: "tv".into(), means: Means::Name };
        app.token(&poll, proof).await.unwrap().expect_err("nobody has answered").code
    };
    assert_eq!(told().await, Code::AuthorizationPending);
    clock.advance(Span::seconds(asked.expires_in));
    for _ in 0..11 {
        assert_eq!(told().await, Code::ExpiredToken);
        clock.advance(Span::minutes(5));
    }
    clock.advance(Span::minutes(5));
    assert_eq!(told().await, Code::InvalidGrant, "for ever would be rows for ever");
}

/// An engine that commits something else just before the next write, once.
struct Meanwhile(Arc<dyn Engine>, Mutex<Vec<Write>>);

impl Around for Meanwhile {
    fn inside(&self) -> &dyn Engine {
        &*self.0
    }
    fn commit_around(&self, writes: Vec<Write>) -> Answer<'_, Vec<u64>, CommitError> {
        let before = std::mem::take(&mut *self.1.lock().unwrap());
        if before.is_empty() {
            return self.0.commit(writes);
        }
        Box::pin(async move {
            self.0.commit(before).await?;
            self.0.commit(writes).await
        })
    }
}

impl Meanwhile {
    /// Replaces the secret of a user's session after a new password, once what was asked before has been decided.
    fn replaces_the_secret(&self, app: &App, session: &Session) {
        let raised = Session { handle: Handle::of("another"), auth_time: NOW + Span(1), ..session.clone() };
        let raise = Change::RaiseSession { session: Box::new(raised), was: session.handle };
        *self.1.lock().unwrap() = changes::batch(&app.realm.id, &[raise], NOW, &Fresh::new([7; 32]));
    }
}

#[tokio::test]
async fn se_02_nothing_is_given_for_a_cookie_whose_secret_is_replaced_meanwhile() {
    // Red without `handle` of Change::Stands in rules/oauth/device.rs, answer, and step.rs, issue; without
    // `still_proved` in device.rs, device_answer, it would be tried in vain until the user is told to come again.
    let folder = tempfile::tempdir().unwrap();
    let engine = Arc::new(Meanwhile(database(folder.path()).await, Mutex::default()));
    let app = node(Arc::clone(&engine) as Arc<dyn Engine>, Clock::fixed(NOW)).await;
    app.add_user(&newcomer("ada", ""), Role::Member).await.unwrap().unwrap();
    let (tv, _) = app.add_client(television(), ClientSecret::Nothing).await.unwrap().unwrap();
    let signed_in = async || {
        let mut browser = Browser::default();
        sign_in(&app, Flow::new(To::Place(Place::Account), NOW), &mut browser).await;
        let (session, _) = app.session(&browser).await.unwrap().expect("signed in");
        (browser, session)
    };

    let (browser, session) = signed_in().await;
    let asked = app.device_ask(&tv, &scope(), "192.0.2.1").await.unwrap().unwrap();
    let waiting = app.device_find(&asked.user_code, &session, &browser).await.unwrap().unwrap();
    engine.replaces_the_secret(&app, &session);
    let answered = app.device_answer(&waiting.device, true, &session).await.unwrap();
    assert_eq!(answered.expect_err("the secret is another one").code, Code::LoginRequired);
    let (_, session) = signed_in().await;
    app.device_answer(&waiting.device, true, &session).await.unwrap().expect("nobody has answered yet");

    let shop = Client {
        redirect_uris: vec!["https://shop.test/cb".into()],
        grants: vec![Grant::AuthorizationCode],
        scope: Scope::from("openid".to_owned()),
        auth_methods: vec![AuthMethod::None],
        trusted: true,
        ..application("shop")
    };
    app.add_client(shop, ClientSecret::Nothing).await.unwrap().unwrap();
    let given = async |browser: &Browser| {
        let pairs = [
            ("client_id", "shop"),
            ("redirect_uri", "https://shop.test/cb"),
            ("response_type", "code"),
            ("scope", "openid"),
            ("prompt", "none"),
            ("code_challenge", "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"),
            ("code_challenge_method", "S256"),
        ];
        let pairs = pairs.map(|(name, value)| (name.to_owned(), value.to_owned()));
        match app.authorize(Params::parse(pairs.into()).unwrap(), browser).await.unwrap() {
            Outcome::Respond(response) => response.fields[0].clone(),
            other => panic!("a page: {other:?}"),
        }
    };
    let (browser, session) = signed_in().await;
    assert_eq!(given(&browser).await.0, "code");
    engine.replaces_the_secret(&app, &session);
    assert_eq!(given(&browser).await, ("error", "login_required".to_owned()));
}

#[tokio::test]
async fn what_an_application_asked_for_in_another_life_is_neither_found_nor_allowed() {
    // Red without `is_of` in device.rs, look_up and device_answer: the user would be told that the device is connected,
    // and the device that it is not.
    let folder = tempfile::tempdir().unwrap();
    let app = node(database(folder.path()).await, Clock::fixed(NOW)).await;
    app.add_user(&newcomer("ada", ""), Role::Member).await.unwrap().unwrap();
    let trusted = Client { trusted: true, ..television() };
    let (tv, _) = app.add_client(trusted, ClientSecret::Nothing).await.unwrap().unwrap();
    let mut browser = Browser::default();
    sign_in(&app, Flow::new(To::Place(Place::Account), NOW), &mut browser).await;
    let (session, _) = app.session(&browser).await.unwrap().expect("signed in");
    let asked = app.device_ask(&tv, &scope(), "192.0.2.1").await.unwrap().unwrap();
    let waiting = app.device_find(&asked.user_code, &session, &browser).await.unwrap().unwrap();
    let distrust = |client: &mut Client| {
        client.trusted = false;
        Ok(())
    };
    app.edit_client(&"tv".into(), distrust).await.unwrap().unwrap();
    let answered = app.device_answer(&waiting.device, true, &session).await.unwrap();
    assert_eq!(answered.expect_err("nobody asks any more").code, Code::InvalidGrant);
    let found = app.device_find(&asked.user_code, &session, &browser).await.unwrap();
    assert!(matches!(found, Err(crate::device::Lookup::Unknown)));
}

#[tokio::test]
async fn a_device_is_answered_by_what_its_application_may_have_by_then() {
    // Red without `allowed` or `may` in rules/oauth/device.rs, as_it_may.
    let folder = tempfile::tempdir().unwrap();
    let app = node(database(folder.path()).await, Clock::fixed(NOW)).await;
    app.add_user(&newcomer("ada", ""), Role::Member).await.unwrap().unwrap();
    let wide = Client { scope: Scope::parse("openid read").unwrap(), ..television() };
    let (tv, _) = app.add_client(wide, ClientSecret::Nothing).await.unwrap().unwrap();
    let mut browser = Browser::default();
    sign_in(&app, Flow::new(To::Place(Place::Account), NOW), &mut browser).await;
    let (session, _) = app.session(&browser).await.unwrap().expect("signed in");
    let asks = Params::parse(vec![("scope".into(), "openid read".into())]).unwrap();
    let find = async || {
        let asked = app.device_ask(&tv, &asks, "192.0.2.1").await.unwrap().unwrap();
        let found = app.device_find(&asked.user_code, &session, &browser).await.unwrap();
        (asked, found)
    };
    let (asked, _) = find().await;
    let (other, waiting) = find().await;
    let less = |client: &mut Client| {
        client.scope = Scope::parse("openid").unwrap();
        Ok(())
    };
    app.edit_client(&"tv".into(), less).await.unwrap().unwrap();
    let narrowed = app.device_find(&asked.user_code, &session, &browser).await.unwrap().unwrap();
    assert_eq!(narrowed.device.scope.to_string(), "openid");
    app.device_answer(&narrowed.device, true, &session).await.unwrap().unwrap();
    let consent = app.ask(consents::Between(&session.user, &"tv".into())).await.unwrap().unwrap();
    assert_eq!(consent.scope.to_string(), "openid");
    let lines = app.audit_lines(&Filter::default(), "", true, 100).await.unwrap().lines;
    assert!(lines.iter().any(|line| line.kind == "consent.granted" && line.detail.contains("openid")));

    let none = |client: &mut Client| {
        (client.grants, client.redirect_uris) = (vec![Grant::AuthorizationCode], vec!["https://tv.test/cb".into()]);
        Ok(())
    };
    app.edit_client(&"tv".into(), none).await.unwrap().unwrap();
    let answered = app.device_answer(&waiting.unwrap().device, true, &session).await.unwrap();
    assert_eq!(answered.expect_err("it may not ask").code, Code::InvalidGrant);
    let found = app.device_find(&other.user_code, &session, &browser).await.unwrap();
    assert!(matches!(found, Err(crate::device::Lookup::Unknown)));
}

#[tokio::test]
async fn a_device_is_answered_for_the_resources_that_its_application_has_by_then() {
    // Red without `resources` in rules/oauth/device.rs, as_it_may: the user is told that it is connected, the device
    // not.
    let folder = tempfile::tempdir().unwrap();
    let app = node(database(folder.path()).await, Clock::fixed(NOW)).await;
    app.add_user(&newcomer("ada", ""), Role::Member).await.unwrap().unwrap();
    let named = |names: &[&str]| names.iter().map(|name| format!("https://{name}.test")).collect::<Vec<_>>();
    let (tv, _) = app
        .add_client(Client { resources: named(&["a", "b"]), ..television() }, ClientSecret::Nothing)
        .await
        .unwrap()
        .unwrap();
    let mut browser = Browser::default();
    sign_in(&app, Flow::new(To::Place(Place::Account), NOW), &mut browser).await;
    let (session, _) = app.session(&browser).await.unwrap().expect("signed in");
    let asked = app.device_ask(&tv, &scope(), "192.0.2.1").await.unwrap().unwrap();
    for (left, told) in [(named(&["b", "c"]), Some(named(&["b"]))), (named(&["c"]), None), (Vec::new(), None)] {
        let edit = |client: &mut Client| {
            client.resources.clone_from(&left);
            Ok(())
        };
        app.edit_client(&"tv".into(), edit).await.unwrap().unwrap();
        let found = app.device_find(&asked.user_code, &session, &browser).await.unwrap();
        assert_eq!(found.ok().map(|found| found.device.resources), told);
    }
}

#[tokio::test]
async fn a_device_that_was_allowed_in_the_last_moment_hears_of_it() {
    // Red without HEARD in tables/devices.rs, answer: the page said "connected", the device that the code had expired.
    let (folder, clock) = (tempfile::tempdir().unwrap(), Clock::fixed(NOW));
    let app = node(database(folder.path()).await, clock.clone()).await;
    app.add_user(&newcomer("ada", ""), Role::Member).await.unwrap().unwrap();
    let (tv, _) = app.add_client(television(), ClientSecret::Nothing).await.unwrap().unwrap();
    let asked = app.device_ask(&tv, &scope(), "192.0.2.1").await.unwrap().unwrap();
    clock.advance(Span::seconds(asked.expires_in - 1));
    let mut browser = Browser::default();
    sign_in(&app, Flow::new(To::Place(Place::Account), NOW), &mut browser).await;
    let (session, _) = app.session(&browser).await.unwrap().expect("signed in");
    let waiting = app.device_find(&asked.user_code, &session, &browser).await.unwrap().unwrap();
    app.device_answer(&waiting.device, true, &session).await.unwrap().unwrap();
    clock.advance(Span::seconds(asked.interval + 5));
    let poll = vec![
        ("grant_type".into(), Grant::DeviceCode.name().into()),
        ("device_code".into(), asked.device_code.reveal().into()),
    ];
    let proof = Proof { client: "tv".into(), means: Means::Name };
    app.token(&Params::parse(poll).unwrap(), proof).await.unwrap().expect("it is connected");
}
