//! Accounts that people make themselves.

use super::{NOW, database, newcomer, node};
use crate::App;
use crate::browser::Browser;
use crate::clock::Clock;
use crate::entropy;
use crate::flow::{Flow, Place, To};
use crate::sign_up::NotMade;
use rules::login::sign_up::{AT_ONCE, LEAK};
use rules::{Change, Span};
use std::sync::Arc;
use tempfile::TempDir;

async fn start() -> (TempDir, App) {
    let folder = tempfile::tempdir().unwrap();
    let engine = database(folder.path()).await;
    let app = node(engine, Clock::fixed(NOW)).await;
    (folder, app)
}

fn at(address: &str) -> Browser {
    Browser { counted: Some(address.parse().unwrap()), ..Browser::default() }
}

/// Counts so many accounts as made at that address, or in its network if that is the second counter.
async fn were_made(app: &App, browser: &Browser, counter: usize, times: i64) {
    let shared = app.sign_up_counters(browser)[counter];
    let count = Change::CountFailure { key: shared.key, at: NOW, leak: Span(shared.leak.0 * times) };
    app.commit(vec![count], NOW, &entropy::fresh().unwrap()).await.unwrap();
}

/// Makes an account of that name there; if that is refused, returns how long to wait.
async fn sign_up(app: &App, name: &str, browser: &Browser) -> Result<(), Span> {
    let flow = Flow::new(To::Place(Place::Account), NOW);
    match app.sign_up(flow, newcomer(name, ""), browser).await.unwrap() {
        Ok(_) => Ok(()),
        Err(NotMade::Wait(wait)) => Err(wait),
        Err(NotMade::Problems(problems)) => panic!("{problems:?}"),
    }
}

#[tokio::test]
async fn ds_05_of_any_number_of_sign_ups_at_once_as_many_are_heard_as_in_turn() {
    // Red without `beside` in app/sign_up.rs, may_sign_up.
    let (_folder, app) = start().await;
    let browser = at("192.0.2.1");
    // The next three are the last.
    were_made(&app, &browser, 0, AT_ONCE - 2).await;
    let [one, two, three, four, five, six] =
        ["ada", "bob", "cleo", "dora", "egon", "fay"].map(|name| sign_up(&app, name, &browser));
    let all = tokio::join!(one, two, three, four, five, six);
    let made = [all.0, all.1, all.2, all.3, all.4, all.5].iter().filter(|made| made.is_ok()).count();
    assert_eq!(made, 3);
    assert_eq!(sign_up(&app, "gail", &browser).await, Err(LEAK), "all of them were counted");
    // Red without `reject` in app/sign_up.rs.
    let refused = app.strangers(NOW - Span::hours(1), None, 10).await.unwrap();
    assert_eq!(refused.iter().map(|one| (one.what(), one.count)).collect::<Vec<_>>(), [("throttled", 4)]);
    assert_eq!(sign_up(&app, "hal", &at("203.0.113.1")).await, Ok(()), "elsewhere there is nobody to wait for");
}

#[tokio::test]
async fn ds_05_who_has_a_network_of_addresses_makes_no_more_accounts_with_each() {
    // Red where app/sign_up.rs looks only at the address.
    let (_folder, app) = start().await;
    for (one, another, elsewhere) in
        [("192.0.2.1", "192.0.2.2", "192.0.3.1"), ("2001:db8:1:200::1", "2001:db8:1:201::1", "2001:db8:1:300::1")]
    {
        were_made(&app, &at(one), 1, AT_ONCE * 10 + 10).await;
        let name = |at: &str| at.replace([':', '.'], "-");
        assert_eq!(sign_up(&app, &name(another), &at(another)).await, Err(LEAK), "{another}");
        assert_eq!(sign_up(&app, &name(elsewhere), &at(elsewhere)).await, Ok(()), "{elsewhere}");
    }
}

#[tokio::test]
async fn what_a_clock_counted_that_was_ahead_counts_no_more_once_it_is_right() {
    // Red without `until` in store/tables/counters.rs, failure, where it is written and where it is read.
    let folder = tempfile::tempdir().unwrap();
    let engine = database(folder.path()).await;
    let ahead = node(Arc::clone(&engine), Clock::fixed(NOW + Span::days(3_650))).await;
    let app = node(engine, Clock::fixed(NOW)).await;
    let browser = at("192.0.2.1");
    assert_eq!(sign_up(&ahead, "ada", &browser).await, Ok(()));
    assert_eq!(sign_up(&app, "bob", &browser).await, Ok(()));
    were_made(&app, &browser, 0, AT_ONCE).await;
    let wait = sign_up(&app, "cleo", &browser).await.unwrap_err();
    assert!(wait <= LEAK + LEAK, "what is counted now counts as ever, and no more: {wait:?}");
}
