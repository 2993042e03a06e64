//! Every request, once on the database itself and once through the control socket of the process that holds it.

use super::absent::again;
use super::hashes::counted;
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
            instance(folder.path()).await.close().await;
            let mut operator = Operator::new(&config);
            Box::pin($scenario(&mut operator)).await;
            operator.0.close().await;

            let folder = tempfile::tempdir().unwrap();
            let config = super::config(folder.path());
            let server = instance(folder.path()).await;
            let control = control::listen(folder.path(), &server).unwrap();
            tokio::select! {
                () = control.run(std::future::pending()) => panic!("the control socket ended"),
                () = Box::pin(async { $scenario(&mut Operator::new(&config)).await }) => {}
            }
            server.close().await;
        }
    };
}

here_and_there!(people_are_managed, people);
here_and_there!(applications_are_managed, applications);
here_and_there!(what_an_application_registered_is_changed, changes);
here_and_there!(no_client_is_called_as_a_resource, distinct);
here_and_there!(groups_are_managed, groups);
here_and_there!(what_is_there_already_is_found_and_left, again);
here_and_there!(hashes_are_counted, counted);
here_and_there!(keys_are_managed, keys);
here_and_there!(events_are_listed, events);
here_and_there!(a_set_up_link_is_made_until_there_is_an_owner, setup_link);
here_and_there!(a_backup_overwrites_nothing, backup);

pub async fn add_user(operator: &mut Operator<'_>, flags: &str) -> Value {
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
    operator.does("user disable bob").await;
    assert_eq!(operator.does("user enable bob").await.json["disabled"], json!(false));
    operator.does("user enable bob").await;
    let lines = operator.does("audit list --user bob").await.json;
    let kinds: Vec<_> = lines.as_array().unwrap().iter().map(|line| line["event"].as_str().unwrap()).collect();
    let once = |kind: &str| kinds.iter().filter(|known| **known == kind).count();
    assert_eq!(
        [once("user.disabled"), once("user.enabled")],
        [1, 1],
        "what is so already is not written down: {kinds:?}"
    );
    assert_eq!(
        operator.does("user list --after zzzzzzzzzzzzzzzzzzzzzz").await.text,
        "no users after id zzzzzzzzzzzzzzzzzzzzzz"
    );
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

/// Red without `mistaken` in app/admin/clients.rs: an ID token of the one is an access token for the other.
async fn distinct(operator: &mut Operator<'_>) {
    operator.does("client add --id api --resource-server --resource https://api.test urn:api").await;
    for id in ["https://api.test", "https://api.test/", "urn:api"] {
        let add = format!("client add --id {id} --redirect-uri https://shop.test/a");
        assert!(operator.cannot(&add).await.contains("is a resource of another client"), "{id}");
    }
    operator.does("client add --id https://app.test/id --redirect-uri https://shop.test/a").await;
    let set = "client set api --add-resource https://app.test/id";
    assert!(operator.cannot(set).await.contains("is the id of a client"));
}

async fn changes(operator: &mut Operator<'_>) {
    add_user(operator, "ada").await;
    operator.does("client add --id shop --redirect-uri https://shop.test/a https://shop.test/b").await;
    let set = "client set shop --name Shop --trusted --add-redirect-uri https://shop.test/c \
               --remove-redirect-uri https://shop.test/a --add-scope shop:read --remove-scope groups phone \
               --remove-grant refresh_token --pkce optional --id-token-alg ES256";
    let shop = operator.does(set).await;
    let told = &shop.json;
    assert_eq!(
        (&told["client_name"], &told["trusted"], &told["require_pkce"]),
        (&json!("Shop"), &json!(true), &json!(false))
    );
    assert_eq!(told["redirect_uris"], json!(["https://shop.test/b", "https://shop.test/c"]));
    assert_eq!(told["scope"], "openid profile email address offline_access shop:read");
    assert_eq!(
        (&told["grant_types"], &told["id_token_signed_response_alg"]),
        (&json!(["authorization_code"]), &json!("ES256"))
    );
    assert_eq!(told["require_pkce"], operator.does("client show shop").await.json["require_pkce"]);
    let uris = json!({ "added": ["https://shop.test/c"], "removed": ["https://shop.test/a"] });
    assert_eq!(
        (&told["changed"]["redirect_uris"], &told["changed"]["trusted"]),
        (&uris, &json!({ "was": false, "is": true }))
    );
    assert!(shop.text.contains("trusted") && shop.text.contains("removed https://shop.test/a"), "{}", shop.text);
    let line = &operator.does("audit list --kind client.changed").await.json;
    let detail = &line[0]["detail"];
    assert_eq!(
        (&detail["what"], &detail["redirect_uris"], &line[0]["client"]),
        (&json!("settings"), &uris, &json!("shop"))
    );

    // Red without either look at CLIENT_ID in cli/client.rs: the server's next start would silently undo this.
    let add = "client add --id portiere-try --public --redirect-uri https://shop.test/a";
    assert!(operator.cannot(add).await.contains("reserved for Try it"));
    assert!(operator.cannot("client remove portiere-try").await.contains("try_it"));
    assert!(operator.cannot("client set portiere-try --redirect-uri https://a.test/b").await.contains("next start"));

    // A change that changes nothing is not recorded again.
    let again = operator.does("client set shop --trusted --add-redirect-uri https://shop.test/b").await;
    assert!(again.json["changed"] == json!({}) && again.text.contains("nothing was changed"), "{}", again.text);
    operator.does("client enable shop").await;
    assert_eq!(operator.does("audit list --kind client.changed").await.json.as_array().unwrap().len(), 1);
    assert_eq!(operator.does("client set shop --trusted=no").await.json["trusted"], json!(false));

    no_changes(operator).await;
    let public = operator
        .does("client set shop --auth-method none --pkce required --add-redirect-uri http://127.0.0.1/cb")
        .await
        .json;
    assert_eq!(
        (&public["token_endpoint_auth_method"], &public["application_type"]),
        (&json!("none"), &json!("native"))
    );
    assert_eq!(public["changed"]["client_secret"], json!({ "is": "none" }));
    let confidential = operator.does("client set shop --auth-method client_secret_basic").await;
    let secret = confidential.json["client_secret"].as_str().unwrap();
    assert!(secret.len() >= 43 && confidential.text.contains(secret), "{}", confidential.text);
    assert!(
        operator.does("client set shop --auth-method client_secret_post").await.json.get("client_secret").is_none()
    );
}

async fn no_changes(operator: &mut Operator<'_>) {
    for (line, why) in [
        (
            "client set shop --remove-redirect-uri https://shop.test/b https://shop.test/c",
            "needs at least one redirect URI",
        ),
        ("client set shop --add-redirect-uri http://shop.test/cb", "http is for"),
        ("client set shop --auth-method none", "a public or native client must use PKCE"),
        ("client set shop --auth-method private_key_jwt", "needs a key set"),
        ("client set none --trusted", "no client has the id none"),
    ] {
        assert!(operator.cannot(line).await.contains(why), "{line}");
    }
}

async fn groups(operator: &mut Operator<'_>) {
    add_user(operator, "ada").await;
    assert!(operator.does("group list").await.text.starts_with("no groups yet"));
    operator.does("group add staff").await;
    operator.does("group add night").await;
    assert!(operator.cannot("group add staff").await.contains("exists"));
    assert_eq!(operator.does("group member staff ada").await.json["groups"], json!(["staff"]));
    assert!(operator.does("group member staff ada").await.text.contains("(as before)"));
    let joined = operator.does("audit list --kind group.changed --user ada").await.json;
    assert_eq!(joined.as_array().unwrap().len(), 1, "{joined}");
    operator.does("group member night ada").await;
    assert_eq!(operator.does("user show ada").await.json["groups"], json!(["night", "staff"]));
    assert!(operator.cannot("group member day ada").await.contains("no group"));
    assert!(operator.cannot("group member staff eve").await.contains("no user"));
    let members = operator.does("group show night").await;
    assert_eq!((&members.json[0]["username"], members.json.as_array().unwrap().len()), (&json!("ada"), 1));
    operator.does("group member night ada --remove").await;
    let members = operator.does("group show night").await;
    assert!(members.text.starts_with("no members in group night") && members.json == json!([]));
    assert!(operator.cannot("group show day").await.contains("no group"));
    operator.does("group remove night").await;
    assert_eq!(operator.does("group list").await.json.as_array().unwrap().len(), 1);
    assert_eq!(operator.does("user show ada").await.json["groups"], json!(["staff"]));
}

/// Returns how many keys are in each stage, and the `kid` of the ES256 key that signs.
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
    // Red without `waits` in app/admin/keys.rs: a play that runs again and again publishes more and more keys.
    let published = operator.does("keys list").await.json;
    let again = operator.does("keys rotate").await.json;
    let (made, changed) = (json!([]), json!(false));
    assert_eq!((&again["made"], &again["changed"], &again["keys"]), (&made, &changed, &published));

    // A successor waits: it takes over at once.
    let revoked = operator.does(&format!("keys rotate --revoke {first}")).await.json;
    assert_eq!((&revoked["made"], &revoked["revoked"]), (&json!([]), &json!(first)));
    let (counts, second) = stages(operator).await;
    assert_eq!(counts, json!([3, 2, 1]));
    assert_ne!(second, first);

    // No successor waits: one is made.
    assert_eq!(
        operator.does(&format!("keys rotate --revoke {second}")).await.json["made"].as_array().unwrap().len(),
        1
    );
    assert_eq!(stages(operator).await.0, json!([3, 2, 2]));
    let missing = operator.does("keys rotate").await;
    assert!(missing.text.starts_with("1 new key is published"), "the one that is missing: {}", missing.text);
    let forced = operator.does("keys rotate --force").await.json;
    assert_eq!((forced["made"].as_array().unwrap().len(), &forced["changed"]), (3, &json!(true)));
    assert_eq!(stages(operator).await.0, json!([3, 6, 2]));
    assert_eq!(operator.does(&format!("keys rotate --revoke {first}")).await.json["changed"], json!(false));
    assert!(operator.cannot("keys rotate --revoke nothing").await.contains("no key"));
}

async fn events(operator: &mut Operator<'_>) {
    add_user(operator, "ada").await;
    // Lines of one millisecond have no order.
    tokio::time::sleep(std::time::Duration::from_millis(2)).await;
    operator.does("group add staff").await;
    let all = operator.does("events list").await;
    let kinds: Vec<_> = all.json.as_array().unwrap().iter().map(|event| event["event"].clone()).collect();
    assert_eq!(&kinds[..2], ["group.changed", "user.added"]);
    let uid = rustix::process::geteuid().as_raw();
    assert_eq!(all.json[0]["detail"], json!({ "by": "operator", "group": "staff", "uid": uid, "what": "added" }));
    assert!(all.text.contains(&format!("by=operator group=staff uid={uid} what=added")), "{}", all.text);
    assert!(
        all.text.starts_with("AT (UTC) ") && all.text.contains("Z  user.added     done     ada   -"),
        "{}",
        all.text
    );
    let tail = operator.does("audit tail -n 5").await;
    assert!(tail.text.starts_with("AT (UTC)  EVENT") && all.notes.is_empty(), "{}", tail.text);
    for (line, note) in [
        ("audit list --user nobody", "no user is called nobody"),
        ("audit export --client none", "no client has the id none"),
        ("audit tail --user nobody", "no user is called nobody"),
    ] {
        let told = operator.does(line).await;
        assert!(told.notes.len() == 1 && told.notes[0].contains(note), "{line}: {told:?}");
    }
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
    assert!(["master.key", "audit.key", "hash.peppers"].iter().all(|key| told.text.contains(key)), "{}", told.text);
    let metadata = std::fs::metadata(&file).unwrap();
    assert_eq!((metadata.permissions().mode() & 0o777, json!(metadata.len())), (0o600, told.json["bytes"].clone()));
    assert!(operator.cannot(&line).await.contains("exists already"));
    assert!(operator.cannot(&format!("backup {}/none/copy.db", folder.path().display())).await.contains("none"));
    let newest = store::migrations::MIGRATIONS.last().unwrap().version;
    assert_eq!(operator.does("migrate").await.json, json!({ "schema": newest }));
}

/// Usernames that look like IDs were allowed once: nothing is done to a user who has one.
#[tokio::test]
async fn nobody_is_taken_for_somebody_else() {
    let folder = tempfile::tempdir().unwrap();
    let config = config(folder.path());
    let server = instance(folder.path()).await;
    let control = control::listen(folder.path(), &server).unwrap();
    let scenario = async {
        let mut operator = Operator::new(&config);
        let ada = add_user(&mut operator, "ada").await["id"].as_str().unwrap().to_owned();
        let taken = operator.types(&format!("user add --password-stdin -- {ada}"), PASSWORD).await.unwrap_err();
        assert!(matches!(&taken, Failure::Refused(why) if why.contains("the form of an id")), "{taken:?}");

        let ada_now = server.app.find_user("ada").await.unwrap().unwrap().unwrap();
        let decoy = rules::people::User { id: "-x".into(), username: ada.clone(), ..ada_now };
        let add = [rules::Change::AddUser(Box::new(decoy))];
        let writes = store::tables::changes::batch(
            &server.app.realm.id,
            &add,
            server.app.clock.now(),
            &app::entropy::fresh().unwrap(),
        );
        server.app.engine.commit(writes).await.unwrap();
        operator.does("group add staff").await;
        for line in [
            format!("user disable -- {ada}"),
            format!("user remove {ada}"),
            format!("user set-password --password-stdin {ada}"),
            format!("group member staff {ada}"),
            format!("audit list --user {ada}"),
        ] {
            let why = operator.cannot(&line).await;
            assert_eq!(why, format!("{ada} is the id of ada and the username of -x: say ada or -x"), "{line}");
        }
        assert_eq!(
            operator.does("user disable -x").await.json["username"],
            json!(ada),
            "an id may begin with a hyphen"
        );
        let told = operator.does("user disable ada").await;
        assert!(told.json["disabled_at"].is_string());
        assert!(told.text.contains(&format!("ada (id {ada}) disabled")), "{}", told.text);
    };
    tokio::select! {
        () = control.run(std::future::pending()) => panic!("the control socket ended"),
        () = Box::pin(scenario) => {}
    }
    server.close().await;
}

#[tokio::test]
async fn what_only_looks_makes_no_database() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("typo");
    let config = config(&data);
    let mut operator = Operator::new(&config);
    assert!(operator.cannot("user list").await.contains("is --data right?"));
    assert!(operator.cannot("user remove ada").await.contains("is --data right?"));
    assert!(operator.cannot("client set a --trusted").await.contains("is --data right?"));
    assert!(!data.exists());
    // A command that adds something may come before the first start.
    operator.does("group add a").await;
    operator.does("user list").await;
    assert!(data.join("master.key").exists());
}

/// A command does not know under which configuration the server runs.
#[tokio::test]
async fn a_command_leaves_the_issuer_as_the_server_noted_it() {
    let folder = tempfile::tempdir().unwrap();
    let url = crate::config::PublicUrl::parse("https://id.example.test").unwrap();
    let noted = async || {
        let config = config(folder.path());
        let server = Instance::open(&config, None).await.unwrap();
        let ask = store::tables::ask(&*server.app.engine, &server.app.realm.id, store::tables::realms::Issuer);
        let issuer = ask.await.unwrap();
        server.close().await;
        issuer.unwrap()
    };
    instance(folder.path()).await.close().await;
    let server = Instance::open(&config(folder.path()), Some(&url)).await.unwrap();
    server.app.note_issuer().await.unwrap();
    server.close().await;
    assert_eq!(noted().await, url.as_str());

    let plain = config(folder.path());
    let mut operator = Operator::new(&plain);
    let added = operator.does("client add --id a --public --redirect-uri https://a.test/").await;
    assert!(added.text.contains("https://id.example.test\n"), "{}", added.text);
    assert!(operator.does("setup-link").await.text.starts_with("https://id.example.test/setup#"));
    operator.0.close().await;

    let mut other = config(folder.path());
    other.server.public_url = Some(crate::config::PublicUrl::parse("https://other.test").unwrap());
    let mut operator = Operator::new(&other);
    assert!(operator.does("setup-link").await.text.starts_with("https://other.test/setup#"), "as it was told");
    operator.0.close().await;
    assert_eq!(noted().await, url.as_str());
}

#[tokio::test]
async fn the_file_with_the_set_up_link_follows() {
    let folder = tempfile::tempdir().unwrap();
    let config = config(folder.path());
    instance(folder.path()).await.close().await;
    let file = crate::setup_link::LinkFile::of(folder.path());
    let mut operator = Operator::new(&config);
    let first = operator.does("setup-link").await;
    assert!(!file.path().exists() && first.text.contains("no server runs"), "{}", first.text);
    file.write(first.json["link"].as_str().unwrap()).await.unwrap();
    let second = operator.does("setup-link").await.json["link"].as_str().unwrap().to_owned();
    assert_eq!(std::fs::read_to_string(file.path()).unwrap(), format!("{second}\n"));
    add_user(&mut operator, "bob").await;
    assert!(file.path().exists());
    add_user(&mut operator, "ada --role owner").await;
    assert!(!file.path().exists());
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
    assert_eq!(outcome.json["name"], json!("staff"));
}

#[tokio::test]
async fn long_lists_come_in_pages() {
    let folder = tempfile::tempdir().unwrap();
    let config = config(folder.path());
    instance(folder.path()).await.close().await;
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
