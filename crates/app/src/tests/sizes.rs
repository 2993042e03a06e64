//! The largest application that can be registered: what it gets is accepted wherever it is shown.

use super::shop::{REDIRECT, code, params};
use super::{NOW, application, database, newcomer, node, sign_in};
use crate::App;
use crate::admin::clients::ClientSecret;
use crate::authorize::Outcome as Page;
use crate::browser::Browser;
use crate::clock::Clock;
use crate::sign_in::Next;
use crate::token::Handed;
use rules::Span;
use rules::jose::Alg;
use rules::oauth::client::{Client, Grant};
use rules::oauth::client_auth::{Means, Proof};
use rules::oauth::revoke::Outcome;
use rules::oauth::scope::Scope;
use rules::people::Role;
use rules::secret::Secret;

const SECRET: &str = "a secret that is as long as one should be, 0123456789";
/// What scope and resources may take together.
const MOST: usize = 8 * 1024;

/// A client with the longest id, and `resources` as long as they may be beside a scope of that many bytes.
fn largest(scope: usize, resources: usize) -> Client {
    let client = Client {
        redirect_uris: vec![REDIRECT.into()],
        grants: vec![Grant::AuthorizationCode, Grant::RefreshToken, Grant::ClientCredentials],
        scope: Scope::from(format!("openid profile {}", "s".repeat(scope))),
        access_alg: Alg::RS256,
        trusted: true,
        ..application(&"c".repeat(128))
    };
    let written = |client: &Client| serde_json::json!([client.scope, client.resources]).to_string().len();
    let uri = |at: usize, more: usize| format!("https://{at}.test/\"{}", "x".repeat(more));
    let resources: Vec<String> = (0..resources).map(|at| uri(at, 0)).collect();
    let client = Client { resources, ..client };
    let room = MOST - written(&client);
    match client.resources.clone().split_last() {
        Some((_, before)) => {
            let each = (room / client.resources.len()).min(1900);
            let mut resources: Vec<String> = (0..=before.len()).map(|at| uri(at, each)).collect();
            let rest = room - each * resources.len();
            resources[0].push_str(&"x".repeat(rest));
            Client { resources, ..client }
        }
        None => Client { scope: Scope::from(format!("{}{}", client.scope, "s".repeat(room))), ..client },
    }
}

fn proof(client: &Client) -> Proof {
    Proof { client: client.id.clone(), means: Means::Basic { secret: Secret::new(SECRET), plain: None } }
}

/// Signs Ada in to the client, for all that it may have.
async fn tokens_of_ada(app: &App, clock: &Clock, client: &Client) -> Handed {
    let scope = client.scope.to_string();
    let asked = params(&[
        ("client_id", client.id.as_str()),
        ("redirect_uri", REDIRECT),
        ("response_type", "code"),
        ("scope", &scope),
        ("code_challenge", "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"),
        ("code_challenge_method", "S256"),
    ]);
    let mut browser = Browser { flow: Some(Secret::new("the flow of this browser")), ..Browser::default() };
    let Page::SignIn(page) = app.authorize(asked, &browser).await.unwrap() else { panic!("no page") };
    let flow = app.open_flow(&page.flow.text, &browser).unwrap();
    clock.advance(Span::seconds(1));
    let Next::Respond(answer) = sign_in(app, flow, &mut browser).await else { panic!("no answer") };
    let redemption = params(&[
        ("grant_type", "authorization_code"),
        ("code", &code(&answer)),
        ("redirect_uri", REDIRECT),
        ("code_verifier", "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"),
    ]);
    app.token(&redemption, proof(client)).await.unwrap().unwrap()
}

async fn is_active(app: &App, token: &str, client: &Client) -> bool {
    app.introspect(Some(token), proof(client)).await.unwrap().unwrap()["active"] == true
}

#[tokio::test]
async fn the_tokens_of_the_largest_application_are_accepted_everywhere() {
    // Red without `in_a_token` in rules/oauth/registration.rs, or with a limit there that is twice as high.
    for (scope, resources) in [(10, 0), (10, 1), (10, 5), (10, 100), (3000, 100)] {
        let (folder, clock) = (tempfile::tempdir().unwrap(), Clock::fixed(NOW));
        let app = node(database(folder.path()).await, clock.clone()).await;
        app.add_user(&newcomer("ada", ""), Role::Member).await.unwrap().unwrap();
        let mut client = largest(scope, resources);
        if resources == 1 {
            client.resources[0].truncate(2000);
        }
        let given = || ClientSecret::Given(Secret::new(SECRET));
        let longer = Client { scope: client.scope.with(&"y".repeat(MOST)), ..client.clone() };
        assert!(app.add_client(longer, given()).await.unwrap().is_err());
        app.add_client(client.clone(), given()).await.unwrap().unwrap();

        let own = app.token(&params(&[("grant_type", "client_credentials")]), proof(&client)).await.unwrap().unwrap();
        let adas = tokens_of_ada(&app, &clock, &client).await;
        if resources == 0 {
            assert!(app.userinfo(adas.access_token.reveal()).await.unwrap().is_ok());
        }
        let epoch = app.epoch().await.unwrap();
        assert!(app.hint(adas.id_token.as_ref().unwrap().reveal(), epoch).await.unwrap().is_some());
        let known = app.authenticate(proof(&client)).await.unwrap().unwrap();
        for token in [&own.access_token, &adas.access_token, adas.refresh_token.as_ref().unwrap()] {
            let token = token.reveal();
            assert!(is_active(&app, token, &client).await, "{scope} {resources}: {} bytes", token.len());
            assert_eq!(app.revoke(token, &known).await.unwrap(), Ok(Outcome::Revoked), "{scope} {resources}");
            assert!(!is_active(&app, token, &client).await, "{scope} {resources}");
        }
    }
}
