//! What only a later version knows, in a database that it shares with this one while nodes are upgraded: it is listed
//! and stays as it is, only it is refused, and everything else goes on.

use super::shop::{REDIRECT, params, request};
use super::{NOW, application, database, newcomer, node, sign_in};
use crate::admin::clients::ClientSecret;
use crate::authorize::Outcome;
use crate::browser::Browser;
use crate::clock::Clock;
use crate::flow::{Flow, Place, To};
use crate::{App, entropy};
use rules::events::Rejection;
use rules::id::ClientId;
use rules::oauth::client::{AuthMethod, Client, Grant};
use rules::oauth::client_auth::{Means, Proof};
use rules::oauth::error::Code;
use rules::oauth::scope::Scope;
use rules::people::Role;
use rules::secret::Secret;
use rules::{Change, Handle, Span};
use serde_json::{Value, json};
use tempfile::TempDir;

const SECRET: &str = "made up, and known to both sides";

/// An application that uses every setting.
fn shop() -> Client {
    Client {
        redirect_uris: vec![REDIRECT.into()],
        grants: vec![Grant::AuthorizationCode, Grant::ClientCredentials],
        scope: Scope::from("openid read".to_owned()),
        auth_methods: vec![AuthMethod::Post],
        trusted: true,
        ..application("shop")
    }
}

/// Values that this version does not know.
fn unknown() -> [(&'static str, Value); 6] {
    [
        ("grants", json!(["client_credentials", "authorization_code", "urn:later:grant"])),
        ("auth_methods", json!(["client_secret_post", "later_method"])),
        ("id_token_alg", json!("LATER512")),
        ("access_alg", json!("LATER512")),
        ("access_format", json!("later-form")),
        ("jwks", json!({ "keys": [{ "kty": "LATER" }] })),
    ]
}

/// An application as a later version stores it.
fn later(id: &str, (field, value): (&str, &Value)) -> Client {
    let mut stored = serde_json::to_value(shop()).unwrap();
    stored["id"] = id.into();
    stored["redirect_uris"] = json!([format!("https://{id}.test/cb")]);
    stored[field] = value.clone();
    Client { secret: Some(Handle::of(SECRET)), ..serde_json::from_value(stored).unwrap() }
}

fn proof(client: &str, secret: &str) -> Proof {
    Proof { client: client.into(), means: Means::Post(Secret::new(secret)) }
}

/// A node with an application of its own.
async fn house() -> (TempDir, App, String) {
    let folder = tempfile::tempdir().unwrap();
    let app = node(database(folder.path()).await, Clock::fixed(NOW)).await;
    let (_, secret) = app.add_client(shop(), ClientSecret::Generated).await.unwrap().unwrap();
    (folder, app, secret.expect("it was made").reveal().to_owned())
}

async fn commit(app: &App, changes: Vec<Change>) {
    app.commit(changes, NOW, &entropy::fresh().unwrap()).await.unwrap();
}

/// Returns whether an application gets tokens, and its users a page to sign in on; otherwise why not.
async fn served(app: &App, client: &str, secret: &str) -> Result<(), (Code, Code)> {
    let asked = params(&[("grant_type", "client_credentials"), ("scope", "read")]);
    let token = app.token(&asked, proof(client, secret)).await.unwrap();
    let redirect = format!("https://{client}.test/cb");
    let named = |(name, value): &(String, String)| match name.as_str() {
        "client_id" => (name.clone(), client.to_owned()),
        "redirect_uri" => (name.clone(), redirect.clone()),
        _ => (name.clone(), value.clone()),
    };
    let asked: Vec<(String, String)> = request().pairs().iter().map(named).collect();
    let asked: Vec<(&str, &str)> = asked.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    match (token, app.authorize(params(&asked), &Browser::default()).await.unwrap()) {
        (Ok(_), Outcome::SignIn(_)) => Ok(()),
        (Err(token), Outcome::Refused(page, None)) => Err((token.code, page.code)),
        (token, _) => panic!("{client} is served by halves: {:?}", token.err()),
    }
}

#[tokio::test]
async fn an_application_of_a_later_version_is_listed_and_it_alone_is_refused() {
    // Red without `take_unknown` in rules/oauth/client/stored.rs: no list, no origin and no page of an account could be
    // read; without `refusal` in client_auth.rs (prove) or authorize.rs (read): it would be served by what is known of
    // it.
    let (_folder, app, secret) = house().await;
    for (number, (field, value)) in unknown().iter().enumerate() {
        let added = later(&format!("later{number}"), (field, value));
        commit(&app, vec![Change::AddClient(Box::new(added)), Change::BumpEpoch]).await;
    }
    let listed = app.clients("").await.unwrap();
    assert_eq!(listed.len(), 1 + unknown().len());
    for (client, (field, value)) in listed.iter().zip(unknown()) {
        let (id, told) = (client.id.as_str(), client.unknown_values().expect("something"));
        assert!(told.starts_with(field), "{told}");
        assert_eq!(serde_json::to_value(client).unwrap()[field], value);
        let refused = served(&app, id, SECRET).await;
        assert_eq!(refused, Err((Code::InvalidClient, Code::UnauthorizedClient)), "{id}: {told}");
        assert!(app.introspect(Some("x"), proof(id, SECRET)).await.unwrap().is_err(), "{id}");
    }
    assert_eq!(served(&app, "shop", &secret).await, Ok(()));
    for origin in ["https://shop.test", "https://later0.test"] {
        assert!(app.is_registered_origin(origin).await.unwrap(), "{origin}: its page reads why it is refused");
    }
}

#[tokio::test]
async fn nothing_that_an_older_version_does_to_an_application_loses_what_it_does_not_know() {
    // Red without `known_whole` in admin/clients.rs, in either place; without `unknown` in `serialize` of
    // rules/oauth/client/stored.rs; where `set_client_enabled` or `drop_consents` ask whether it may be used.
    let (_folder, app, _) = house().await;
    let id: ClientId = "later".into();
    for (field, value) in unknown() {
        let stored = later("later", (field, &value));
        commit(&app, vec![Change::AddClient(Box::new(stored)), Change::BumpEpoch]).await;
        let trust = |client: &mut Client| {
            client.trusted = false;
            Ok(())
        };
        let edited = app.edit_client(&id, trust).await.unwrap().map(drop).unwrap_err();
        let rotated = app.rotate_secret(&id, None).await.unwrap().map(drop).unwrap_err();
        for refused in [edited, rotated] {
            assert!(refused.why.contains("only a newer version knows") && refused.why.contains(field), "{refused}");
        }
        for enabled in [false, true, false] {
            let done = app.set_client_enabled(&id, enabled).await.unwrap().unwrap();
            assert!(done.changed.is_some(), "{field}");
            let found = app.find_client(&id).await.unwrap().expect("it is there");
            assert_eq!((found.is_disabled(), found.is_enabled()), (!enabled, false), "{field}");
            assert_eq!(serde_json::to_value(&found).unwrap()[field], value, "{field}");
            assert_eq!((found.secret, found.trusted), (Some(Handle::of(SECRET)), true));
        }
        app.remove_client(&id).await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn somebody_with_a_role_of_a_later_version_is_listed_and_signs_in() {
    // Red with `Role::parse` in store/tables/users.rs: no list with them could be read, and they were told to come
    // back.
    let (_folder, app, _) = house().await;
    app.add_user(&newcomer("ada", ""), Role::Later("auditor".into())).await.unwrap().unwrap();
    app.add_user(&newcomer("bob", ""), Role::Member).await.unwrap().unwrap();
    let mut roles: Vec<_> = app.users("").await.unwrap().into_iter().map(|user| user.role).collect();
    roles.sort();
    assert_eq!(roles, [Role::Member, Role::Later("auditor".into())]);
    let mut browser = Browser::default();
    sign_in(&app, Flow::new(To::Place(Place::Account), NOW), &mut browser).await;
    let (_, ada) = app.session(&browser).await.unwrap().expect("signed in");
    let disabled = app.set_user_enabled(&ada, false).await.unwrap().unwrap();
    assert_eq!(disabled.role.name(), "auditor", "it stays what it is");
}

#[tokio::test]
async fn what_a_later_version_counts_is_listed_in_its_word() {
    // Red where Rejection::read knows no other words.
    let (_folder, app, _) = house().await;
    let counted = |what| Change::CountRejections { what, address: "192.0.2.1".into(), at: NOW, many: 2 };
    let what = [Rejection::Client(None), Rejection::Later("proof".into(), Some("shop".into()))];
    commit(&app, what.map(counted).into()).await;
    let listed = app.strangers(NOW - Span::hours(1), None, 10).await.unwrap();
    let mut told: Vec<_> = listed.iter().map(|one| (one.what(), one.client(), one.count)).collect();
    told.sort_unstable();
    assert_eq!(told, [("client", None, 2), ("proof", Some("shop"), 2)]);
}
