//! Every request, once on the database itself and once through the control socket of whoever holds it.

use super::*;
use crate::control;
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt;

/// Runs `scenario` without a server, then again on another folder with one.
macro_rules! here_and_there {
    ($name:ident, $scenario:ident) => {
        #[tokio::test]
        async fn $name() {
            let folder = tempfile::tempdir().unwrap();
            let config = config(folder.path());
            let mut operator = Operator::new(&config);
            Box::pin($scenario(&mut operator)).await;
            operator.0.close().await;

            let folder = tempfile::tempdir().unwrap();
            let config = super::config(folder.path());
            let server = instance(folder.path()).await;
            let control = control::listen(folder.path(), &server).unwrap();
            tokio::select! {
                () = control.run() => panic!("the control socket ended"),
                () = Box::pin(async { $scenario(&mut Operator::new(&config)).await }) => {}
            }
            server.close().await;
        }
    };
}

here_and_there!(people_are_managed, people);
here_and_there!(applications_are_managed, applications);
here_and_there!(groups_are_managed, groups);
here_and_there!(keys_are_managed, keys);
here_and_there!(events_are_listed, events);
here_and_there!(a_set_up_link_is_made_until_there_is_an_owner, setup_link);
here_and_there!(a_backup_overwrites_nothing, backup);

async fn add_user(operator: &mut Operator<'_>, flags: &str) -> Value {
    operator.types(&format!("user add {flags} --password-stdin"), PASSWORD).await.unwrap().json
}

async fn people(operator: &mut Operator<'_>) {
    add_user(operator, "ada --email ada@example.test --role owner").await;
    let bob = add_user(operator, "bob").await;
    assert_eq!((&bob["role"], &bob["email"], &bob["disabled"]), (&json!("member"), &Value::Null, &json!(false)));
    assert!(operator.cannot("user add eve --role owner --password-stdin").await.contains("owner"));
    assert!(operator.cannot("user add BOB --password-stdin").await.contains("has that username"));
    let weak = operator.types("user add eve --password-stdin", "password\n").await.unwrap_err();
    assert_eq!(weak.exit_code(), 1);

    let list = operator.does("user list").await;
    assert_eq!(list.json.as_array().unwrap().len(), 2);
    assert!(list.text.starts_with("USERNAME  EMAIL") && list.text.contains("ada@example.test"), "{}", list.text);

    let ada = operator.does("user set ada@example.test name=Ada locale=en").await.json;
    assert_eq!(ada["claims"], json!({ "name": "Ada", "locale": "en" }));
    assert_eq!(ada["email_verified"], json!(true));
    assert!(operator.cannot("user set ada sub=1").await.contains("cannot be set"));

    assert!(operator.cannot("user disable ada").await.contains("owner"));
    let bob = operator.does("user disable bob").await.json;
    assert!(bob["disabled"] == json!(true) && bob["disabled_at"].is_string(), "{bob}");
    assert_eq!(operator.does("user enable bob").await.json["disabled"], json!(false));
    operator.types("user set-password bob --password-stdin", "another horse entirely\n").await.unwrap();
    operator.does("user remove bob").await;
    assert_eq!(operator.cannot("user show bob").await, "no user is called bob; see: portiere user list");
}

async fn applications(operator: &mut Operator<'_>) {
    add_user(operator, "ada").await;
    let hint = operator.does("client list").await;
    assert!(hint.text.starts_with("no clients yet") && hint.json == json!([]));
    let add = "client add --id shop --name Shop --redirect-uri https://shop.test/cb";
    let shop = operator.does(add).await;
    let secret = shop.json["client_secret"].as_str().unwrap().to_owned();
    assert!(secret.len() >= 43 && shop.text.contains(&secret), "{}", shop.text);
    assert!(operator.cannot(add).await.contains("exists"));
    assert!(operator.cannot("client add --id x --redirect-uri http://shop.test/cb").await.contains("http is for"));
    operator.does("client add --id app --public --redirect-uri http://127.0.0.1/cb").await;

    let given = "a given secret of thirty-two bytes or more\n";
    let api = "client add --id api --resource-server --resource https://api.test --secret-stdin";
    assert!(operator.types(api, given).await.unwrap().json.get("client_secret").is_none());
    assert!(operator.types("client rotate-secret api --secret-stdin", "short\n").await.is_err());

    let list = operator.does("client list").await;
    let ids: Vec<_> = list.json.as_array().unwrap().iter().map(|client| client["client_id"].clone()).collect();
    assert_eq!(ids, ["api", "app", "shop"]);
    assert!(!serde_json::to_string(&list.json).unwrap().contains(&secret), "told once");

    let fresh = operator.does("client rotate-secret shop").await;
    assert_ne!(fresh.json["client_secret"], json!(secret));
    assert!(operator.cannot("client rotate-secret app").await.contains("does not authenticate with a secret"));
    assert_eq!(operator.does("client disable shop").await.json["disabled"], json!(true));
    assert!(operator.does("client show shop").await.text.contains("disabled"));
    assert_eq!(operator.does("client enable shop").await.json["disabled"], json!(false));
    operator.does("client remove shop").await;
    assert!(operator.cannot("client show shop").await.contains("no client has the id shop"));
    assert!(operator.cannot("client remove shop").await.contains("no client has the id shop"));
}

async fn groups(operator: &mut Operator<'_>) {
    add_user(operator, "ada").await;
    assert!(operator.does("group list").await.text.starts_with("no groups yet"));
    operator.does("group add staff").await;
    operator.does("group add night").await;
    assert!(operator.cannot("group add staff").await.contains("exists"));
    assert_eq!(operator.does("group member staff ada").await.json["groups"], json!(["staff"]));
    operator.does("group member staff ada").await;
    operator.does("group member night ada").await;
    assert_eq!(operator.does("user show ada").await.json["groups"], json!(["night", "staff"]));
    assert!(operator.cannot("group member day ada").await.contains("no group"));
    assert!(operator.cannot("group member staff eve").await.contains("no user"));
    let members = operator.does("group show night").await;
    assert_eq!((&members.json[0]["username"], members.json.as_array().unwrap().len()), (&json!("ada"), 1));
    operator.does("group member night ada --remove").await;
    let members = operator.does("group show night").await;
    assert!(members.text.starts_with("nobody is in group night") && members.json == json!([]));
    assert!(operator.cannot("group show day").await.contains("no group"));
    operator.does("group remove night").await;
    assert_eq!(operator.does("group list").await.json.as_array().unwrap().len(), 1);
    assert_eq!(operator.does("user show ada").await.json["groups"], json!(["staff"]));
}

/// How many keys stand at each stage, and the `kid` of the ES256 key that signs.
async fn stages(operator: &mut Operator<'_>) -> (Value, String) {
    let keys = operator.does("keys list").await.json;
    let keys = keys.as_array().unwrap();
    let count = |stage: &str| keys.iter().filter(|key| key["stage"] == stage).count();
    let signer = keys.iter().find(|key| key["stage"] == "active" && key["alg"] == "ES256").unwrap();
    let counts = json!(["active", "next", "revoked"].map(count));
    (counts, signer["kid"].as_str().unwrap().to_owned())
}

async fn keys(operator: &mut Operator<'_>) {
    add_user(operator, "ada").await;
    let (counts, first) = stages(operator).await;
    assert_eq!(counts, json!([3, 0, 0]));
    assert_eq!(operator.does("keys rotate").await.json["made"].as_array().unwrap().len(), 3);
    assert_eq!(stages(operator).await, (json!([3, 3, 0]), first.clone()));

    // An heir waits: it takes over at once.
    let revoked = operator.does(&format!("keys rotate --revoke {first}")).await.json;
    assert_eq!((&revoked["made"], &revoked["revoked"]), (&json!([]), &json!(first)));
    let (counts, second) = stages(operator).await;
    assert_eq!(counts, json!([3, 2, 1]));
    assert_ne!(second, first);

    // None waits: one is made.
    assert_eq!(
        operator.does(&format!("keys rotate --revoke {second}")).await.json["made"].as_array().unwrap().len(),
        1
    );
    assert_eq!(stages(operator).await.0, json!([3, 2, 2]));
    assert!(operator.cannot(&format!("keys rotate --revoke {first}")).await.contains("already"));
    assert!(operator.cannot("keys rotate --revoke nothing").await.contains("no key"));
}

async fn events(operator: &mut Operator<'_>) {
    add_user(operator, "ada").await;
    // Within a millisecond they have no order.
    tokio::time::sleep(std::time::Duration::from_millis(2)).await;
    operator.does("group add staff").await;
    let all = operator.does("events list").await;
    let kinds: Vec<_> = all.json.as_array().unwrap().iter().map(|event| event["event"].clone()).collect();
    assert_eq!(&kinds[..2], ["group.changed", "user.added"]);
    assert_eq!(all.json[0]["detail"], json!({ "group": "staff", "what": "added" }));
    assert!(all.text.contains("group=staff what=added"), "{}", all.text);
    let newest = operator.does("events list --limit 1").await;
    assert_eq!((newest.json.as_array().unwrap().len(), newest.next), (1, None));
    let before = newest.json[0]["id"].as_str().unwrap().to_owned();
    let rest = operator.does(&format!("events list --before {before}")).await;
    assert_eq!(rest.json[0]["event"], "user.added");
}

async fn setup_link(operator: &mut Operator<'_>) {
    let first = operator.does("setup-link").await;
    assert!(first.text.starts_with("http://localhost:8080/setup#"), "{}", first.text);
    assert_eq!(first.json["expires_in"], json!(1800));
    assert_ne!(operator.does("setup-link").await.json["link"], first.json["link"]);
    add_user(operator, "ada --role owner").await;
    assert!(operator.cannot("setup-link").await.contains("there is an owner"));
}

async fn backup(operator: &mut Operator<'_>) {
    add_user(operator, "ada").await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("copy.db");
    let line = format!("backup {}", file.display());
    let told = operator.does(&line).await;
    assert!(told.text.contains("master key is not in it"), "{}", told.text);
    let metadata = std::fs::metadata(&file).unwrap();
    assert_eq!((metadata.permissions().mode() & 0o777, json!(metadata.len())), (0o600, told.json["bytes"].clone()));
    assert!(operator.cannot(&line).await.contains("is there already"));
    assert!(operator.cannot(&format!("backup {}/none/copy.db", folder.path().display())).await.contains("none"));
    let newest = store::migrations::MIGRATIONS.last().unwrap().version;
    assert_eq!(operator.does("migrate").await.json, json!({ "schema": newest }));
}

#[tokio::test]
async fn what_only_looks_makes_no_database() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("typo");
    let config = config(&data);
    let mut operator = Operator::new(&config);
    assert!(operator.cannot("user list").await.contains("is --data right?"));
    assert!(operator.cannot("user remove ada").await.contains("is --data right?"));
    assert!(!data.exists());
}

#[tokio::test]
async fn a_command_waits_for_another_one_to_end() {
    let folder = tempfile::tempdir().unwrap();
    let config = config(folder.path());
    let other = instance(folder.path()).await;
    let mut operator = Operator::new(&config);
    let ends = async {
        tokio::time::sleep(std::time::Duration::from_millis(150)).await;
        other.close().await;
    };
    let (outcome, ()) = tokio::join!(operator.does("group add staff"), ends);
    assert_eq!(outcome.json, json!({ "name": "staff" }));
}

#[tokio::test]
async fn long_lists_come_in_pages() {
    let folder = tempfile::tempdir().unwrap();
    let config = config(folder.path());
    let mut operator = Operator::new(&config);
    for n in 0..205 {
        operator.does(&format!("client add --id c{n:03} --public --redirect-uri https://c.test/{n}")).await;
    }
    let mut list = request("client list", "").unwrap();
    let first = operator.0.ask(&list).await.unwrap();
    assert_eq!((first.json.as_array().unwrap().len(), first.next.as_deref()), (200, Some("c199")));
    list.go_on(first.next.unwrap());
    let second = operator.0.ask(&list).await.unwrap();
    assert_eq!((second.json.as_array().unwrap().len(), second.next), (5, None));
    assert!(second.text.starts_with("c200"), "headings come once: {}", second.text);
    let mut events = request("events list --limit 201", "").unwrap();
    assert_eq!(operator.0.ask(&events).await.unwrap().json.as_array().unwrap().len(), 201);
    events.go_on("x".into());
}
