//! RFC 8628 §3.5: what a device hears that goes on polling.

use super::{NOW, application, database, node};
use crate::admin::clients::ClientSecret;
use crate::clock::Clock;
use rules::Span;
use rules::oauth::client::{AuthMethod, Client, Grant};
use rules::oauth::client_auth::{Means, Proof};
use rules::oauth::error::Code;
use rules::oauth::params::Params;

#[tokio::test]
async fn a_device_is_told_for_an_hour_that_its_request_has_expired() {
    // red where sweep.rs takes requests out that expired just now; without `devices` in jobs.rs, sweep.
    let (folder, clock) = (tempfile::tempdir().unwrap(), Clock::fixed(NOW));
    let app = node(database(folder.path()).await, clock.clone()).await;
    let tv = Client { grants: vec![Grant::DeviceCode], auth_methods: vec![AuthMethod::None], ..application("tv") };
    let (tv, _) = app.add_client(tv, ClientSecret::Nothing).await.unwrap().unwrap();
    let scope = Params::parse(vec![("scope".into(), "read".into())]).unwrap();
    let asked = app.device_ask(&tv, &scope, "192.0.2.1").await.unwrap().unwrap();
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
