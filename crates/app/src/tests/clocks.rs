//! Nodes whose clocks differ as far as they may.

use super::{NOW, ada, application, database, node};
use crate::App;
use crate::admin::clients::ClientSecret;
use crate::clock::Clock;
use rules::Change;
use rules::Span;
use rules::id::ClientId;
use rules::login::session::end_all_but;
use rules::oauth::client::{AccessFormat, Client};
use rules::oauth::client_auth::{Means, Proof};
use rules::oauth::params::Params;
use rules::realm::SKEW;
use rules::secret::Secret;
use std::sync::Arc;
use store::engine::Engine;
use tempfile::TempDir;

const SECRET: &str = "a secret that is as long as one should be, 0123456789";

/// One node whose clock is behind, and one whose clock is ahead.
struct Two {
    _folder: TempDir,
    engine: Arc<dyn Engine>,
    clocks: [Clock; 2],
    behind: App,
    ahead: App,
}

impl Two {
    async fn start(apart: Span) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let engine = database(folder.path()).await;
        let clocks = [Clock::fixed(NOW), Clock::fixed(NOW + apart)];
        let [behind, ahead] = &clocks;
        let (behind, ahead) =
            (node(Arc::clone(&engine), behind.clone()).await, node(Arc::clone(&engine), ahead.clone()).await);
        Two { _folder: folder, engine, clocks, behind, ahead }
    }

    fn pass(&self, time: Span) {
        self.clocks.iter().for_each(|clock| clock.advance(time));
    }

    /// Returns whether a token is live at each of the two nodes.
    async fn live(&self, token: &str) -> [bool; 2] {
        let mut live = [false; 2];
        for (at, app) in [&self.behind, &self.ahead].into_iter().enumerate() {
            live[at] = app.introspect(Some(token), proof()).await.unwrap().is_ok_and(|told| told["active"] == true);
        }
        live
    }
}

async fn add(app: &App, format: AccessFormat) {
    let client = Client { access_format: format, ..application("svc") };
    app.add_client(client, ClientSecret::Given(Secret::new(SECRET))).await.unwrap().unwrap();
}

fn proof() -> Proof {
    Proof { client: "svc".into(), means: Means::Basic { secret: Secret::new(SECRET), plain: None } }
}

async fn token(app: &App) -> String {
    let params = Params::parse(vec![("grant_type".into(), "client_credentials".into())]).unwrap();
    app.token(&params, proof()).await.unwrap().unwrap().access_token.reveal().to_owned()
}

/// Changes the rows to what an earlier version would have left.
async fn without_lives(two: &Two) {
    let sql = vec!["UPDATE clients SET life = NULL".to_owned()];
    two.engine.alter(sql).await.unwrap();
    two.behind.rotate_secret(&"svc".into(), Some(Secret::new(SECRET))).await.unwrap().unwrap();
}

#[tokio::test]
async fn a_revoked_token_stays_dead_where_the_clock_is_behind() {
    // Red without `remembered` in rules/oauth/revoke.rs.
    let two = Two::start(SKEW + SKEW).await;
    add(&two.behind, AccessFormat::Jwt).await;
    let token = token(&two.behind).await;
    assert_eq!(two.live(&token).await, [true; 2]);
    let client = two.ahead.authenticate(proof()).await.unwrap().unwrap();
    two.ahead.revoke(&token, &client).await.unwrap().unwrap();
    for _ in 0..40 {
        assert_eq!(two.live(&token).await, [false; 2]);
        two.pass(Span::seconds(30));
        two.ahead.sweep(&|| false).await.unwrap();
    }
}

#[tokio::test]
async fn what_a_client_had_before_it_was_disabled_or_removed_stays_dead_at_every_node() {
    // Red where rules/oauth/introspect.rs, is_of, asks only for the time; without BumpEpoch in admin/clients.rs.
    for format in [AccessFormat::Jwt, AccessFormat::Opaque] {
        for apart in [Span::ZERO, SKEW] {
            for (removed, of_before) in [(false, false), (true, false), (false, true), (true, true)] {
                let (two, svc) = (Two::start(apart).await, ClientId::from("svc"));
                add(&two.behind, format).await;
                if of_before {
                    without_lives(&two).await;
                }
                let old = [token(&two.ahead).await, token(&two.behind).await];
                for token in &old {
                    assert_eq!(two.live(token).await, [true; 2], "{format:?} {apart:?} {of_before}");
                }
                if removed {
                    two.behind.remove_client(&svc).await.unwrap().unwrap();
                    add(&two.behind, format).await;
                } else {
                    two.behind.set_client_enabled(&svc, false).await.unwrap().unwrap();
                    two.behind.set_client_enabled(&svc, true).await.unwrap().unwrap();
                }
                let new = [token(&two.ahead).await, token(&two.behind).await];
                two.pass(Span::minutes(5));
                for token in &old {
                    assert_eq!(two.live(token).await, [false; 2], "{format:?} {apart:?} {removed} {of_before}");
                }
                for token in &new {
                    assert_eq!(two.live(token).await, [true; 2], "{format:?} {apart:?} {removed} {of_before}");
                }
            }
        }
    }
}

/// Red where families end before codes: a client that redeems one at that moment holds its row, and what it gets would
/// not be there yet when families end. And where approvals go before sessions: a request that approves at that moment
/// holds the session's row, and the approval would not be there yet when approvals are looked for.
#[test]
fn what_tokens_come_from_ends_before_they_do() {
    let changes = end_all_but(&ada().id, None, Span::seconds(60), NOW);
    let place = |wanted: fn(&Change) -> bool| changes.iter().position(wanted).unwrap();
    let families = place(|change| matches!(change, Change::RevokeFamiliesOf { .. }));
    assert!(place(|change| matches!(change, Change::BurnCodesOf { .. })) < families);
    let approvals = place(|change| matches!(change, Change::DropApprovalsOf { .. }));
    assert!(place(|change| matches!(change, Change::EndSessionsOf { .. })) < approvals && approvals < families);
}

#[test]
fn codes_are_burnt_whatever_the_clock_that_dated_them() {
    // Red without the difference that clocks may have in login/session.rs, end_all_but.
    let user = ada();
    let (ttl, at) = (Span::seconds(60), NOW);
    let since = end_all_but(&user.id, None, ttl, at).into_iter().find_map(|change| match change {
        Change::BurnCodesOf { since, .. } => Some(since),
        _ => None,
    });
    // Issued just before it is redeemed, by a clock as far behind as this one is ahead.
    assert!(since.is_some_and(|since| since <= at - SKEW - SKEW - ttl), "{since:?}");
}
