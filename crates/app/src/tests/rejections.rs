//! Refusals of callers that were not authenticated: each is counted, and a flood of them costs the database little.

use super::{NOW, application, database, newcomer, node};
use crate::App;
use crate::admin::clients::ClientSecret;
use crate::audit::Failures;
use crate::browser::Browser;
use crate::clock::Clock;
use crate::device::Lookup;
use crate::flow::{Flow, Place, To};
use crate::sign_in::Typed;
use rules::events::Rejection;
use rules::login::attempt::Refusal;
use rules::oauth::client::{AuthMethod, Client, Grant};
use rules::oauth::client_auth::{Means, Proof};
use rules::oauth::error::Error;
use rules::oauth::params::Params;
use rules::people::Role;
use rules::secret::Secret;
use rules::{Change, Span};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use store::engine::{Answer, Around, CommitError, Engine, Write};
use store::tables::counters::Rejections;
use tempfile::TempDir;

const ADDRESS: &str = "192.0.2.7";

/// A node with an application that has a secret, and a public one, which anybody can claim to be.
async fn start() -> (TempDir, App, Clock) {
    let (folder, clock) = (tempfile::tempdir().unwrap(), Clock::fixed(NOW));
    let app = node(database(folder.path()).await, clock.clone()).await;
    let shop = Client { auth_methods: vec![AuthMethod::Post], first_party: true, ..application("shop") };
    let open = Client {
        auth_methods: vec![AuthMethod::None],
        grants: vec![Grant::AuthorizationCode],
        redirect_uris: vec!["https://open.test/cb".into()],
        ..application("open")
    };
    app.add_client(shop, ClientSecret::Generated).await.unwrap().unwrap();
    app.add_client(open, ClientSecret::Nothing).await.unwrap().unwrap();
    (folder, app, clock)
}

fn posting(client: &str) -> Proof {
    Proof { client: client.into(), means: Means::Post(Secret::new("not the secret")) }
}

fn naming(client: &str) -> Proof {
    Proof { client: client.into(), means: Means::Name }
}

/// Returns how many commits there were.
fn commits(app: &App) -> u64 {
    app.tally.batches.sums().find(|(name, _)| *name == "committed").unwrap().1
}

async fn listed(app: &App) -> Vec<(&'static str, Option<String>, String, i64)> {
    let found = app.strangers(NOW - Span::hours(1), None, 100).await.unwrap();
    let told = |one: Failures| {
        let (what, client) = (one.what().to_owned().leak(), one.client().map(str::to_owned));
        (&*what, client, one.address, one.count)
    };
    let mut found: Vec<_> = found.into_iter().map(told).collect();
    found.sort();
    found
}

/// An engine that can stop taking writes.
struct Stopping {
    inner: Arc<dyn Engine>,
    stopped: AtomicBool,
}

impl Around for Stopping {
    fn inside(&self) -> &dyn Engine {
        &*self.inner
    }
    fn commit_around(&self, writes: Vec<Write>) -> Answer<'_, Vec<u64>, CommitError> {
        Box::pin(async move {
            match self.stopped.load(Ordering::Relaxed) {
                true => Err(CommitError::Unavailable("it takes no writes".into())),
                false => self.inner.commit(writes).await,
            }
        })
    }
}

/// One request.
async fn from<F: Future>(app: &App, work: F) -> F::Output {
    app.within("r1".into(), ADDRESS.parse().unwrap(), work).await
}

#[tokio::test]
async fn a_client_that_does_not_prove_who_it_is_is_counted_at_every_door() {
    // Red without `not_proved` in token.rs (judge_proof) or introspect.rs (asker), `not_served` in api.rs (first_party;
    // each of the two), or `reject` in audit/rejections.rs (proof_in).
    let (_folder, app, _) = start().await;
    let client = Params::parse(vec![("grant_type".into(), "client_credentials".into())]).unwrap();
    for (name, counted) in [("shop", Some("shop".to_owned())), ("nobody", None)] {
        from(&app, async {
            assert!(app.token(&client, posting(name)).await.unwrap().is_err());
            assert!(app.authenticate(posting(name)).await.unwrap().is_err());
            assert!(app.introspect(Some("x"), posting(name)).await.unwrap().is_err());
            assert!(app.first_party(posting(name), None).await.unwrap().is_err());
            assert!(app.first_party(naming(name), None).await.unwrap().is_err());
        })
        .await;
        let row = ("client", counted, ADDRESS.to_owned(), 5);
        assert!(listed(&app).await.contains(&row), "{row:?}: {:?}", listed(&app).await);
    }
    from(&app, async {
        assert!(app.introspect(Some("x"), naming("open")).await.unwrap().is_err());
        assert!(app.proof_in(Err(Error::client("it cannot be read"))).await.is_err());
        assert!(app.proof_in(Err(Error::request("it says two things"))).await.is_err());
    })
    .await;
    let listed = listed(&app).await;
    assert!(listed.contains(&("client", Some("open".to_owned()), ADDRESS.to_owned(), 1)), "{listed:?}");
    assert!(listed.contains(&("client", None, ADDRESS.to_owned(), 6)), "{listed:?}");
}

#[tokio::test]
async fn a_flood_of_wrong_secrets_is_a_commit_a_minute_and_an_address() {
    // Red where `reject` in audit/rejections.rs writes each; or without `write_rejections` in jobs.rs, retire: refusals
    // after the first of the last minute would be lost.
    let (_folder, app, clock) = start().await;
    let before = commits(&app);
    for _ in 0..3 {
        for _ in 0..100 {
            assert!(from(&app, app.authenticate(posting("shop"))).await.unwrap().is_err());
        }
        clock.advance(Span::minutes(1));
    }
    assert_eq!(commits(&app) - before, 3);
    app.retire().await;
    let written = app.ask(Rejections { since: NOW - Span::hours(1), after: None, limit: 10 }).await.unwrap();
    assert_eq!(written.iter().map(|(_, _, _, count)| count).sum::<i64>(), 300);
    assert_eq!(listed(&app).await.len(), 3);
}

#[tokio::test]
async fn whoever_is_told_to_wait_is_counted() {
    // Red without `reject` in sign_in.rs (hash) or device.rs (look_up); sign_ups.rs and the HTTP tests have the others.
    let (_folder, app, _) = start().await;
    app.add_user(&newcomer("ada", ""), Role::Member).await.unwrap().unwrap();
    let (flow, mut browser) = (|| Flow::new(To::Place(Place::Account), NOW), Browser::default());
    super::sign_in(&app, flow(), &mut browser).await;
    let (session, _) = app.session(&browser).await.unwrap().unwrap();
    let mut waits = 0;
    for _ in 0..7 {
        let tried = from(&app, app.sign_in(flow(), Typed::new("ada", b"wrong wrong wrong"), &Browser::default())).await;
        waits += i64::from(matches!(tried.unwrap(), Err(Refusal::Wait(_))));
    }
    for _ in 0..60 {
        let tried = from(&app, app.device_find("BCDF-GHJK", &session, &browser)).await;
        waits += i64::from(matches!(tried.unwrap(), Err(Lookup::Wait(_))));
    }
    assert!(waits > 2, "{waits}");
    assert_eq!(listed(&app).await, [("throttled", None, ADDRESS.to_owned(), waits)]);
}

#[tokio::test]
async fn where_nothing_can_be_written_a_refusal_is_told_all_the_same_and_written_later() {
    // Red without `put_back` in audit/rejections.rs, write_down; or if `reject` passed its fault on.
    let folder = tempfile::tempdir().unwrap();
    let inner = database(folder.path()).await;
    let engine = Arc::new(Stopping { inner, stopped: false.into() });
    let app = node(Arc::clone(&engine) as Arc<_>, Clock::fixed(NOW)).await;
    engine.stopped.store(true, Ordering::Relaxed);
    for _ in 0..3 {
        assert!(from(&app, app.authenticate(posting("nobody"))).await.unwrap().is_err());
    }
    assert_eq!(listed(&app).await, []);
    engine.stopped.store(false, Ordering::Relaxed);
    assert_eq!(listed(&app).await, [("client", None, ADDRESS.to_owned(), 3)]);
}

#[tokio::test]
async fn the_list_goes_on_where_a_page_of_it_ended() {
    // Red where only the newest can be read: a flood hides all that came before it.
    let (_folder, app, _) = start().await;
    let shop = || Some("shop".into());
    let mut changes = Vec::new();
    for at in [NOW, NOW - Span::minutes(1), NOW - Span::minutes(2)] {
        for address in ["192.0.2.1", "192.0.2.2"].map(str::to_owned) {
            changes.push(Change::CountStranger { address: address.clone(), at });
            for what in [Rejection::Client(None), Rejection::Client(shop()), Rejection::Throttled(None)] {
                changes.push(Change::CountRejections { what, address: address.clone(), at, many: 2 });
            }
        }
    }
    app.commit(changes, NOW, &crate::entropy::fresh().unwrap()).await.unwrap();
    let page = async |last: Option<&Failures>, limit| app.strangers(NOW - Span::hours(1), last, limit).await.unwrap();
    let whole = page(None, 100).await;
    assert_eq!(whole.len(), 24);
    for limit in 1..=9 {
        let mut pages = page(None, limit).await;
        while let more @ [_, ..] = &*page(pages.last(), limit).await {
            pages.extend_from_slice(more);
        }
        assert_eq!(pages, whole, "{limit} at a time");
    }
}

#[tokio::test]
async fn a_flood_from_many_addresses_leaves_few_rows_of_any_kind() {
    // Red without `row_of` in settle.rs, commit; or without `of_anybody` in audit/rejections.rs, count.
    const KINDS: usize = 2;
    let (_folder, app, _) = start().await;
    for number in 0..1_000 {
        let address = format!("2001:db8:0:{number:x}::/64");
        let change = Change::CountStranger { address, at: NOW };
        app.commit(vec![change], NOW, &crate::entropy::fresh().unwrap()).await.unwrap();
        let from = format!("10.0.{}.{}", number / 250, number % 250).parse().unwrap();
        assert!(app.within("r1".into(), from, app.authenticate(posting("nobody"))).await.unwrap().is_err());
    }
    app.write_rejections().await.unwrap();
    let rows = app.strangers(NOW - Span::hours(1), None, 3_000).await.unwrap();
    assert_eq!(rows.iter().map(|row| row.count).sum::<i64>(), 1_000 * KINDS as i64);
    assert!(rows.len() <= 257 * KINDS, "{}", rows.len());
}
