//! RFC 8628: what a device hears that asks (§3.2), and that goes on polling (§3.5).

use super::{NOW, application, database, node};
use crate::admin::clients::ClientSecret;
use crate::clock::Clock;
use rules::Span;
use rules::oauth::client::{AuthMethod, Client, Grant};
use rules::oauth::client_auth::{Means, Proof};
use rules::oauth::error::Code;
use rules::oauth::params::Params;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use store::engine::{Answer, Around, CommitError, Engine, Write};

fn television() -> Client {
    Client { grants: vec![Grant::DeviceCode], auth_methods: vec![AuthMethod::None], ..application("tv") }
}

fn scope() -> Params {
    Params::parse(vec![("scope".into(), "read".into())]).unwrap()
}

/// Where what is written next is there already, once: somebody else drew the same.
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
    // red where every try draws the same, and fails as the first did.
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
    // red where sweep.rs takes requests out that expired just now; without `devices` in jobs.rs, sweep.
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
