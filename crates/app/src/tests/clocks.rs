//! Nodes whose clocks differ as far as they may.

use super::shop::{REDIRECT, code, params};
use super::{NOW, PASSWORD, ada, application, database, newcomer, node, sign_in};
use crate::App;
use crate::admin::clients::ClientSecret;
use crate::authorize::Outcome as Page;
use crate::browser::Browser;
use crate::clock::Clock;
use crate::sign_in::{Next, Typed};
use rules::Change;
use rules::Span;
use rules::id::ClientId;
use rules::login::session::end_all_but;
use rules::oauth::client::{AccessFormat, Client, Grant};
use rules::oauth::client_auth::{Means, Proof};
use rules::oauth::revoke::Outcome;
use rules::oauth::scope::Scope;
use rules::people::Role;
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
    let client = Client {
        access_format: format,
        redirect_uris: vec![REDIRECT.into()],
        grants: vec![Grant::ClientCredentials, Grant::AuthorizationCode, Grant::RefreshToken],
        scope: Scope::from("openid offline_access".to_owned()),
        trusted: true,
        first_party: true,
        ..application("svc")
    };
    app.add_client(client, ClientSecret::Given(Secret::new(SECRET))).await.unwrap().unwrap();
}

fn proof() -> Proof {
    Proof { client: "svc".into(), means: Means::Basic { secret: Secret::new(SECRET), plain: None } }
}

async fn token(app: &App) -> String {
    let params = params(&[("grant_type", "client_credentials")]);
    app.token(&params, proof()).await.unwrap().unwrap().access_token.reveal().to_owned()
}

/// What was issued at one node.
struct Given {
    own: String,
    access: String,
    refresh: String,
    id: String,
}

impl Two {
    /// Two nodes, the client, and Ada.
    async fn with_ada(apart: Span, format: AccessFormat) -> Self {
        let two = Two::start(apart).await;
        add(&two.behind, format).await;
        two.behind.add_user(&newcomer("ada", ""), Role::Member).await.unwrap().unwrap();
        two
    }

    /// Has every kind of token issued at one of the nodes.
    async fn given_by(&self, app: &App) -> Given {
        let asked = [
            ("client_id", "svc"),
            ("redirect_uri", REDIRECT),
            ("response_type", "code"),
            ("scope", "openid offline_access"),
            ("prompt", "consent"),
            ("code_challenge", "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"),
            ("code_challenge_method", "S256"),
        ];
        let mut browser = Browser { flow: Some(Secret::new("the flow of this browser")), ..Browser::default() };
        let Page::SignIn(page) = app.authorize(params(&asked), &browser).await.unwrap() else { panic!("no page") };
        let flow = app.open_flow(&page.flow.text, &browser).unwrap();
        self.pass(Span::seconds(1));
        let code = match sign_in(app, flow, &mut browser).await {
            Next::Respond(answer) => code(&answer),
            Next::GoOn(flow) => {
                let Page::Consent(asked, _) = app.resume(flow, &browser).await.unwrap() else { panic!("no question") };
                let flow = app.open_flow(&asked.flow.text, &browser).unwrap();
                let Page::Respond(answer) = app.consent(flow, true, &browser).await.unwrap() else { panic!("no code") };
                code(&answer)
            }
        };
        let redemption = params(&[
            ("grant_type", "authorization_code"),
            ("code", &code),
            ("redirect_uri", REDIRECT),
            ("code_verifier", "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"),
        ]);
        let handed = app.token(&redemption, proof()).await.unwrap().unwrap();
        let text = |token: Option<&Secret>| token.expect("a token").reveal().to_owned();
        Given {
            own: token(app).await,
            access: text(Some(&handed.access_token)),
            refresh: text(handed.refresh_token.as_ref()),
            id: text(handed.id_token.as_ref()),
        }
    }
}

async fn revoke(app: &App, token: &str) -> Outcome {
    let client = app.authenticate(proof()).await.unwrap().unwrap();
    app.revoke(token, &client).await.unwrap().unwrap()
}

/// How far apart two clocks may be, and the formats of access tokens.
fn cases() -> impl Iterator<Item = (Span, AccessFormat)> {
    let apart = [Span::ZERO, SKEW, SKEW + SKEW];
    apart.into_iter().flat_map(|apart| [AccessFormat::Jwt, AccessFormat::Opaque].map(|format| (apart, format)))
}

#[tokio::test]
async fn what_a_clock_ahead_has_dated_is_revoked_where_the_clock_is_behind() {
    // Red with Expect's 60 s in introspect.rs, checked_at: the answer was 200, and nothing was revoked.
    for (apart, format) in cases() {
        let two = Two::with_ada(apart, format).await;
        let Given { own, access, refresh, .. } = two.given_by(&two.ahead).await;
        for token in [own, access, refresh] {
            assert_eq!(two.live(&token).await, [true; 2], "{apart:?} {format:?}");
            assert_eq!(revoke(&two.behind, &token).await, Outcome::Revoked, "{apart:?} {format:?}");
            assert_eq!(two.live(&token).await, [false; 2], "{apart:?} {format:?}");
        }
    }
}

#[tokio::test]
async fn what_has_expired_by_a_clock_ahead_is_revoked_there_while_it_lives_elsewhere() {
    // Red where introspect.rs, checked_at, asks for `exp`.
    for (apart, format) in cases() {
        let two = Two::with_ada(apart, format).await;
        let Given { own, access, refresh, .. } = two.given_by(&two.behind).await;
        let settings = &two.behind.realm.settings;
        let (short, long) = (settings.access_ttl, settings.refresh_idle);
        // A moment before each ends by the clock that is behind.
        two.pass(Span(short.0 - 1000));
        for (token, rest) in [(own, Span::ZERO), (access, Span::ZERO), (refresh, Span(long.0 - short.0))] {
            two.pass(rest);
            assert_eq!(two.live(&token).await, [true, apart == Span::ZERO], "{apart:?} {format:?}");
            assert_eq!(revoke(&two.ahead, &token).await, Outcome::Revoked, "{apart:?} {format:?}");
            assert_eq!(two.live(&token).await, [false; 2], "{apart:?} {format:?}");
        }
    }
}

#[tokio::test]
async fn what_a_clock_ahead_has_just_signed_is_accepted_where_the_clock_is_behind() {
    // Red with Expect's 60 s in introspect.rs, checked_at, or in authorize.rs, hint.
    for (apart, format) in cases() {
        let two = Two::with_ada(apart, format).await;
        let given = two.given_by(&two.ahead).await;
        let caller = two.ahead.first_party(proof(), None).await.unwrap().unwrap();
        let typed = Typed::new("ada", PASSWORD);
        let entered = two.ahead.enter(&caller, typed, &Browser::default(), None).await.unwrap().unwrap();
        for app in [&two.behind, &two.ahead] {
            assert!(app.userinfo(&given.access).await.unwrap().is_ok(), "{apart:?} {format:?}");
            let opened = app.open_account(&entered.handed.access_token).await.unwrap();
            assert!(opened.is_some(), "{apart:?} {format:?}");
            let hint = app.hint(&given.id, app.epoch().await.unwrap()).await.unwrap();
            assert!(hint.is_some_and(|hint| hint.client.as_str() == "svc"), "{apart:?} {format:?}");
        }
    }
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
