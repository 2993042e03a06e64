//! The token with which a hash worker is enrolled.

use super::{NOW, database, node};
use crate::clock::Clock;
use crate::entropy;
use rules::secret::{Handle, base64url};
use rules::worker::{TOKEN_LIVES, spent};
use rules::{Change, Decision, Span};

/// Near misses of a token: prefixes, longer ones, another character at each place, white space, other case.
fn near(good: &str) -> Vec<String> {
    let mut near: Vec<String> = (0..good.len()).map(|at| good[..at].to_owned()).collect();
    for at in 0..good.len() {
        for other in ["A", "a", "-", "_", "=", "\0"] {
            near.push(format!("{}{other}{}", &good[..at], &good[at + 1..]));
        }
    }
    let around = [format!("{good}A"), format!("{good}="), format!(" {good}"), format!("{good}\n")];
    near.extend(around.into_iter().chain([good.to_lowercase(), good.to_uppercase()]));
    near.retain(|text| text != good);
    near
}

#[tokio::test]
async fn co_10_a_worker_is_let_in_by_its_token_alone_and_once() {
    // Red if admin/workers.rs, enroll_worker, looked for less than the handle of all that was sent.
    let folder = tempfile::tempdir().unwrap();
    let clock = Clock::fixed(NOW);
    let app = node(database(folder.path()).await, clock.clone()).await;
    let good = entropy::fresh().unwrap().secret("worker token");
    let token = good.handle();
    let offer = Change::OfferWorkerToken { token, now: NOW, expires: NOW + TOKEN_LIVES };
    let offered = app.settle(|_, _| async { Ok(Decision::<(), ()>::accept(()).and(offer.clone())) }).await.unwrap();
    assert!(offered.is_ok());
    let enroll = async |token: &str, key: u8| {
        app.enroll_worker(token, (Handle([key; 32]), "worker"), "192.0.2.1").await.unwrap().is_ok()
    };
    for text in near(good.reveal()) {
        assert!(!enroll(&text, 1).await, "{text}");
    }
    for off in [TOKEN_LIVES, Span::days(-365)] {
        // Red without either half of realm.rs, lasts: it has expired, or a clock that was ahead has made it.
        clock.set(off);
        assert!(!enroll(good.reveal(), 1).await, "{off:?}");
        clock.set(Span(-off.0));
    }
    assert!(enroll(good.reveal(), 1).await);
    assert!(!enroll(good.reveal(), 2).await, "it is used up");
}

#[tokio::test]
async fn who_did_not_hear_that_it_was_enrolled_is_told_again_and_nobody_else_is() {
    // Red where store/tables/workers.rs, enroll, forgets the token: the worker's folder could never be used.
    let folder = tempfile::tempdir().unwrap();
    let clock = Clock::fixed(NOW);
    let app = node(database(folder.path()).await, clock.clone()).await;
    let good = entropy::fresh().unwrap().secret("worker token");
    let offer = Change::OfferWorkerToken { token: good.handle(), now: NOW, expires: NOW + TOKEN_LIVES };
    let offered = app.settle(|_, _| async { Ok(Decision::<(), ()>::accept(()).and(offer.clone())) }).await.unwrap();
    assert!(offered.is_ok());
    let enroll = async |token: &str, key: u8| {
        app.enroll_worker(token, (Handle([key; 32]), "worker"), "192.0.2.1")
            .await
            .unwrap()
            .map_err(|refused| refused.why)
    };
    for _ in 0..2 {
        assert_eq!(enroll(good.reveal(), 1).await.as_deref(), Ok("worker"));
    }
    assert_eq!(app.workers().await.unwrap().len(), 1);
    // What is kept of a used token is no token.
    let kept = base64url(&spent(good.handle(), Handle([1; 32])).0);
    for (token, key, why) in [
        (good.reveal(), 2, "used or expired"),
        (kept.as_str(), 2, "used or expired"),
        ("another", 1, "enrolled as worker"),
    ] {
        let refused = enroll(token, key).await.unwrap_err();
        assert!(refused.contains(why), "{refused}");
    }
    clock.set(TOKEN_LIVES);
    assert!(
        enroll(good.reveal(), 1).await.unwrap_err().contains("enrolled as worker"),
        "as long as the token was good"
    );
    clock.set(Span(-TOKEN_LIVES.0));
    app.revoke_worker("worker").await.unwrap().unwrap();
    assert!(enroll(good.reveal(), 1).await.unwrap_err().contains("used or expired"), "it was revoked");
}

#[tokio::test]
async fn a_quarantined_worker_that_dials_in_a_loop_asks_the_database_seldom() {
    // Red without `recalled` in admin/workers.rs, worker: each call would be a query; without `forget`: a trusted
    // worker waits.
    let folder = tempfile::tempdir().unwrap();
    let (engine, clock) = (database(folder.path()).await, Clock::fixed(NOW));
    let (app, other) = (node(engine.clone(), clock.clone()).await, node(engine, clock).await);
    let token = entropy::fresh().unwrap().secret("worker token");
    let offer = Change::OfferWorkerToken { token: token.handle(), now: NOW, expires: NOW + TOKEN_LIVES };
    let offered = app.settle(|_, _| async { Ok(Decision::<(), ()>::accept(()).and(offer.clone())) }).await.unwrap();
    assert!(offered.is_ok());
    let key = Handle([1; 32]);
    app.enroll_worker(token.reveal(), (key, "worker"), "192.0.2.1").await.unwrap().unwrap();
    let is_quarantined = async || app.worker(key).await.unwrap().unwrap().quarantine.is_some();
    assert!(!is_quarantined().await && app.worker(Handle([2; 32])).await.unwrap().is_none());
    assert_eq!(other.quarantine_worker(key, "it was wrong").await.unwrap().as_deref(), Some("worker"));
    assert!(is_quarantined().await, "whoever may work is asked for each time");
    other.trust_worker("worker").await.unwrap().unwrap();
    assert!(is_quarantined().await, "no look so soon after the last");
    app.rename_worker("worker", "renamed").await.unwrap().unwrap();
    assert!(!is_quarantined().await);
    app.quarantine_worker(key, "once more").await.unwrap();
    assert!(is_quarantined().await);
    app.trust_worker("renamed").await.unwrap().unwrap();
    assert!(!is_quarantined().await);
}
