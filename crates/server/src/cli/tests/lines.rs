//! What commands leave in the audit log that change something, read the log, or copy everything; and that other
//! commands leave nothing.

use super::*;
use crate::control;
use serde_json::{Value, json};
use store::moving::fence;

/// Returns the details of all lines of that kind, the oldest first, without the operator.
async fn details(operator: &mut Operator<'_>, kind: &str) -> Vec<Value> {
    let lines = operator.does(&format!("audit list --kind {kind}")).await.json;
    let mut details: Vec<Value> = lines.as_array().unwrap().iter().rev().map(|line| line["detail"].clone()).collect();
    for detail in &mut details {
        let [by, _] = ["by", "uid"].map(|who| detail.as_object_mut().unwrap().remove(who));
        assert_eq!(by, Some(json!("operator")));
    }
    details
}

async fn folder() -> (tempfile::TempDir, Config) {
    let folder = tempfile::tempdir().unwrap();
    instance(folder.path()).await.close().await;
    let config = config(folder.path());
    (folder, config)
}

#[tokio::test]
async fn an_account_that_is_set_to_what_it_is_leaves_no_line() {
    // red without `changed` in app/admin/users.rs, set_claims.
    let (_folder, config) = folder().await;
    let mut operator = Operator::new(&config);
    operator.types("user add ada --email ada@example.test --password-stdin", PASSWORD).await.unwrap();
    let set = "user set ada locale=en email=ada@work.test name=Ada";
    let first = operator.does(set).await;
    let new = |is: &str| json!({ "was": null, "is": is });
    let email = json!({ "was": "ada@example.test", "is": "ada@work.test" });
    assert_eq!(first.json["changed"], json!({ "locale": new("en"), "name": new("Ada"), "email": email }));
    let whole = [" changed\n", "is ada@work.test", "was ada@example.test", "is Ada\n"];
    assert!(whole.iter().all(|part| first.text.contains(part)) && !first.text.contains("null"), "{}", first.text);
    let mut same = first.json;
    same["changed"] = json!({});
    for line in [set, "user set ada@work.test email=ada@work.test phone_number="] {
        let again = operator.does(line).await;
        assert!(again.json == same && again.text.ends_with("nothing was changed"), "{line}: {}", again.text);
    }
    assert_eq!(details(&mut operator, "user.changed").await, [json!({ "changed": "locale name email" })]);
    // Lines of one millisecond have no order.
    tokio::time::sleep(std::time::Duration::from_millis(2)).await;
    let last = operator.does("user set ada name=Ada locale= email=").await.json;
    assert_eq!((&last["claims"], &last["email"]), (&json!({ "name": "Ada" }), &Value::Null));
    assert_eq!(details(&mut operator, "user.changed").await[1..], [json!({ "changed": "locale email" })]);

    operator.types("user add bob --email bob@example.test --password-stdin", PASSWORD).await.unwrap();
    assert!(operator.cannot("user set ada email=bob@example.test name=Eve").await.contains("signs in with that"));
    assert!(operator.cannot("user set ada name=Eve email=nobody").await.contains("not an e-mail address"));
    assert_eq!(operator.does("user show ada").await.json["claims"], json!({ "name": "Ada" }), "all of it or nothing");
    operator.0.close().await;
}

#[tokio::test]
async fn who_was_given_a_role_is_told_and_who_was_removed_is_not_named() {
    // red without the role in app/admin/users.rs, add; with the username in the detail of remove_user.
    let (_folder, config) = folder().await;
    let mut operator = Operator::new(&config);
    for line in ["user add ada --role owner --password-stdin", "user add bob --password-stdin"] {
        operator.types(line, PASSWORD).await.unwrap();
        // Lines of one millisecond have no order.
        tokio::time::sleep(std::time::Duration::from_millis(2)).await;
    }
    operator.does("user remove bob").await;
    assert_eq!(details(&mut operator, "user.added").await, [json!({ "role": "owner" }), json!({})]);
    assert_eq!(details(&mut operator, "user.removed").await, [json!({})]);
    operator.0.close().await;
}

#[tokio::test]
async fn what_a_new_application_may_do_is_told() {
    // red without `granted` in app/admin/changed.rs.
    let (_folder, config) = folder().await;
    let mut operator = Operator::new(&config);
    operator.types("user add ada --password-stdin", PASSWORD).await.unwrap();
    let add =
        "client add --id shop --name Shop --redirect-uri https://shop.test/cb --scope openid --first-party --trusted";
    let secret = operator.does(add).await.json["client_secret"].as_str().unwrap().to_owned();
    let told = details(&mut operator, "client.added").await;
    let added = |what: &[&str]| json!({ "added": what, "removed": [] });
    let yes = json!({ "was": false, "is": true });
    let expected = json!({
        "redirect_uris": added(&["https://shop.test/cb"]),
        "grant_types": added(&["authorization_code", "refresh_token"]),
        "scope": added(&["openid"]),
        "token_endpoint_auth_methods": added(&["client_secret_basic", "client_secret_post"]),
        "first_party": yes,
        "trusted": yes,
    });
    assert_eq!(told, [expected]);
    assert!(!serde_json::to_string(&told).unwrap().contains(&secret));
    operator.0.close().await;
}

#[tokio::test]
async fn a_list_in_another_order_is_no_change_and_a_long_one_is_told_whole_to_who_changed_it() {
    // red where `difference` compares lists as they stand; without `bounded` in app/admin/changed.rs, or with it for both.
    let (_folder, config) = folder().await;
    let mut operator = Operator::new(&config);
    operator.does("client add --id shop --redirect-uri https://shop.test/cb --scope openid profile").await;
    let same = operator.does("client set shop --scope profile openid").await;
    assert!(same.json["changed"] == json!({}) && same.text.contains("nothing was changed"), "{}", same.text);
    assert_eq!(details(&mut operator, "client.changed").await, [] as [Value; 0]);

    let uris: Vec<String> = (0..49).map(|at| format!("https://shop.test/{}{at}", "x".repeat(100))).collect();
    let set = format!("client set shop --add-redirect-uri {}", uris.join(" "));
    let changed = operator.does(&set).await.json["changed"]["redirect_uris"].clone();
    assert_eq!(changed, json!({ "added": uris, "removed": [] }));
    let counted = json!({ "what": "settings", "redirect_uris": { "added_count": 49, "removed_count": 0 } });
    assert_eq!(details(&mut operator, "client.changed").await, [counted]);
    operator.0.close().await;
}

/// Red without `told_as` in app/admin/changed.rs: the two had other names for the same thing, and opposite values.
#[tokio::test]
async fn a_change_names_settings_as_they_are_shown() {
    let (_folder, config) = folder().await;
    let mut operator = Operator::new(&config);
    operator.does("client add --id shop --redirect-uri https://shop.test/cb").await;
    let set = "client set shop --name Laden --grant authorization_code --auth-method client_secret_post --id-token-alg ES256 \
               --access-token opaque --access-token-alg RS256 --access-token-typ JWT --pkce optional \
               --no-id-token-on-refresh";
    for (set, many) in [(set, 9), ("client set shop --pkce required --native", 2)] {
        let told = operator.does(set).await.json;
        let changed = told["changed"].as_object().unwrap();
        assert_eq!(changed.len(), many, "{changed:?}");
        for (name, difference) in changed {
            assert!(
                difference.get("is").is_none_or(|is| *is == told[name]) && told.get(name).is_some(),
                "{name}: {told}"
            );
        }
    }
    operator.0.close().await;
}

#[tokio::test]
async fn who_loses_a_group_that_is_removed_is_told_in_their_own_line() {
    // red without `take_all_out` in app/admin/groups.rs.
    let (_folder, config) = folder().await;
    let mut operator = Operator::new(&config);
    operator.does("group add temp").await;
    for name in ["ada", "bob"] {
        operator.types(&format!("user add {name} --password-stdin"), PASSWORD).await.unwrap();
        let member = format!("group member temp {name}");
        assert_eq!(
            [&operator.does(&member).await, &operator.does(&member).await].map(|told| told.json["changed"].clone()),
            [true, false]
        );
    }
    operator.does("group remove temp").await;
    for name in ["ada", "bob"] {
        let lines = operator.does(&format!("audit list --kind group.changed --user {name}")).await.json;
        let told: Vec<&Value> = lines.as_array().unwrap().iter().map(|line| &line["detail"]["what"]).collect();
        assert_eq!(told, ["left", "joined"], "{name}");
    }
    assert!(operator.cannot("group show temp").await.contains("no group is called temp"));
    operator.0.close().await;
}

#[tokio::test]
async fn what_is_so_already_is_not_changed_and_programs_are_told() {
    let (_folder, config) = folder().await;
    let mut operator = Operator::new(&config);
    operator.types("user add ada --password-stdin", PASSWORD).await.unwrap();
    operator.does("client add --id shop --redirect-uri https://shop.test/cb").await;
    let keys = operator.does("keys list").await.json;
    let revoke = format!("keys rotate --revoke {}", keys[0]["kid"].as_str().unwrap());
    for line in ["user disable ada", "user enable ada", "client disable shop", "client enable shop", &*revoke] {
        let told = [operator.does(line).await, operator.does(line).await].map(|told| told.json["changed"].clone());
        assert_eq!(told, [true, false], "{line}");
    }
    for line in ["audit accept --yes", "audit rekey --yes"] {
        let told = operator.does(line).await;
        assert!(told.json["changed"] == json!(false) && told.text.contains("nothing was changed"), "{}", told.text);
    }
    // red where the account is told as it was before.
    let set = operator.types("user set-password ada --password-stdin", "gorse violet anvil 41").await.unwrap().json;
    assert_eq!(set["updated_at"], operator.does("user show ada").await.json["updated_at"]);
    operator.0.close().await;
}

#[tokio::test]
async fn a_group_is_one_however_its_name_is_typed() {
    // red without `spellings` in app/admin/groups.rs, group, or without `composed` in rules/people/labels.rs.
    let (folder, config) = folder().await;
    let mut operator = Operator::new(&config);
    operator.types("user add ada --password-stdin", PASSWORD).await.unwrap();
    let (composed, apart) = ("R\u{e9}daction", "Re\u{301}daction");
    let group = operator.does(&format!("group add {apart}")).await.json;
    assert_eq!(group["name"], json!(composed));
    assert_eq!(operator.does("group list").await.json, json!([group]), "id and name, as the list has them");
    for typed in [composed, apart] {
        assert!(operator.cannot(&format!("group add {typed}")).await.contains("exists"));
        operator.does(&format!("group member {typed} ada")).await;
        assert_eq!(operator.does(&format!("group show {typed}")).await.json.as_array().unwrap().len(), 1);
    }
    assert_eq!(operator.does("user show ada").await.json["groups"], json!([composed]));
    assert_eq!(details(&mut operator, "group.changed").await.len(), 2, "she joined once");
    assert_eq!(operator.does(&format!("group remove {apart}")).await.json["name"], json!(composed));

    // A group that an earlier program made.
    operator.0.close().await;
    let server = instance(folder.path()).await;
    let add = [rules::Change::AddGroup { group: "g1".into(), name: apart.to_owned() }];
    let fresh = app::entropy::fresh().unwrap();
    let writes = store::tables::changes::batch(&server.app.realm.id, &add, server.app.clock.now(), &fresh);
    server.app.engine.commit(writes).await.unwrap();
    server.close().await;
    let mut operator = Operator::new(&config);
    for typed in [composed, apart] {
        assert!(operator.cannot(&format!("group add {typed}")).await.contains("exists"), "they look alike");
        assert_eq!(operator.does(&format!("group show {typed}")).await.json, json!([]));
    }
    assert!(operator.cannot("group add sta\u{200B}ff").await.contains("U+200B"));
    operator.0.close().await;
}

#[tokio::test]
async fn an_application_hides_nothing_in_its_name() {
    // red without `registers` in app/admin/clients.rs.
    let (_folder, config) = folder().await;
    let mut operator = Operator::new(&config);
    operator.types("user add ada --password-stdin", PASSWORD).await.unwrap();
    let add = "client add --id shop --redirect-uri https://shop.test/cb";
    assert!(operator.cannot(&format!("{add} --name Sh\u{AD}op")).await.contains("U+00AD"));
    operator.does(&format!("{add} --name Sch\u{F6}n")).await;
    assert!(operator.cannot("client set shop --name Shop\u{E0041}").await.contains("U+E0041"));
    operator.does("client set shop --name \u{645}\u{6CC}\u{200C}\u{62E}").await;
    operator.0.close().await;
}

#[tokio::test]
async fn what_is_not_there_has_gone_already() {
    // red where List::apply in cli/change.rs refuses it: what is there already may be added again.
    let (_folder, config) = folder().await;
    let mut operator = Operator::new(&config);
    operator.types("user add ada --password-stdin", PASSWORD).await.unwrap();
    operator.does("client add --id=-x --redirect-uri https://shop.test/a --resource https://api.test").await;
    for gone in [
        "--remove-scope nosuch",
        "--remove-redirect-uri https://shop.test/b",
        "--remove-post-logout-redirect-uri https://shop.test/b",
        "--remove-grant client_credentials",
        "--remove-resource https://other.test",
    ] {
        let told = operator.does(&format!("client set -x {gone}")).await;
        assert_eq!(told.json["changed"], json!({}), "{gone}");
        assert!(told.text.contains("nothing was changed"), "{}", told.text);
    }
    assert!(details(&mut operator, "client.changed").await.is_empty());
    operator.0.close().await;
}

#[tokio::test]
async fn whoever_reads_the_log_or_copies_the_database_leaves_a_line() {
    // red without begins_to_read in cli/audit/mod.rs, for each of the three, or tell_of_copy in cli/backup.rs.
    let (folder, mut config) = folder().await;
    for line in ["audit list", "audit export", "audit tail"] {
        Operator::new(&config).does(line).await;
    }
    assert!(details(&mut Operator::new(&config), "audit.read").await.is_empty(), "nobody asked for them");
    config.audit.reads = true;
    let mut operator = Operator::new(&config);
    operator.types("user add ada --password-stdin", PASSWORD).await.unwrap();
    for looks in ["audit status", "audit verify", "audit head", "audit strangers", "user list", "keys list"] {
        operator.does(looks).await;
    }
    assert!(operator.types("audit export --kind nothing", "").await.is_err());
    for line in ["audit list", "audit export", "audit export --format csv --since 1h", "audit tail -n 3 --user ada"] {
        let read = operator.does(line).await;
        assert_eq!(read.notes, Vec::<String>::new(), "{line}");
        // Lines of one millisecond have no order.
        tokio::time::sleep(std::time::Duration::from_millis(2)).await;
    }
    let read = ["list", "export", "export", "tail"].map(|command| json!({ "command": command }));
    assert_eq!(details(&mut operator, "audit.read").await, read);
    assert_eq!(details(&mut operator, "audit.read").await.len(), 5, "and this one");

    let copy = folder.path().join("copy.db");
    let backup = format!("backup {}", copy.display());
    let bytes = operator.does(&backup).await.json["bytes"].clone();
    assert!(operator.cannot(&backup).await.contains("overwrites nothing"));
    let copied = json!({ "file": copy.display().to_string(), "bytes": bytes });
    assert_eq!(details(&mut operator, "database.copied").await, [copied]);
    operator.0.close().await;
}

#[tokio::test]
async fn a_database_that_takes_no_writes_is_read_and_copied_all_the_same() {
    // red where a line that cannot be written is a failure, or is not reported.
    let (folder, mut config) = folder().await;
    config.audit.reads = true;
    let server = Instance::open(&config, Some(&config.public_url(8080))).await.unwrap();
    fence::raise(&*server.app.engine, "move-1", "there").await.unwrap();
    let control = control::listen(folder.path(), &server).unwrap();
    let scenario = async {
        let mut operator = Operator::new(&config);
        for line in ["audit list", "audit export", "audit tail"] {
            let read = operator.does(line).await;
            assert_eq!(read.notes.len(), 1, "{line}: {read:?}");
            assert!(read.notes[0].starts_with("the audit log may have no entry of this reading: "), "{read:?}");
        }
        for line in ["audit verify", "audit head", "audit status", "audit strangers"] {
            assert_eq!(operator.does(line).await.notes, Vec::<String>::new(), "{line}");
        }
        let copy = folder.path().join("copy.db");
        let copied = operator.does(&format!("backup {}", copy.display())).await;
        let untold = |note: &String| note.starts_with("the audit log may have no entry of this backup: ");
        assert!(copy.exists() && copied.notes.iter().any(untold), "{copied:?}");
    };
    tokio::select! {
        () = control.run(std::future::pending()) => panic!("the control socket ended"),
        () = Box::pin(scenario) => {}
    }
    server.close().await;
}

#[tokio::test]
async fn what_was_done_to_a_membership_is_told_apart_from_what_was_so_before() {
    // Red where cli/group.rs says of both how things are now.
    let (_folder, config) = folder().await;
    let mut operator = Operator::new(&config);
    operator.types("user add ada --password-stdin", PASSWORD).await.unwrap();
    operator.does("group add staff").await;
    for (flag, done, before) in [("", "was added to", "is in"), ("--remove", "was removed from", "is not in")] {
        let line = format!("group member staff ada {flag}");
        let told = [operator.does(&line).await.text, operator.does(&line).await.text];
        assert!(told[0].ends_with(&format!(" {done} group staff")), "{told:?}");
        assert!(told[1].ends_with(&format!(" {before} group staff (as before)")), "{told:?}");
    }
    operator.0.close().await;
}

#[tokio::test]
async fn whoever_names_what_is_not_there_is_told_where_to_look() {
    // Red without `find` in cli/client.rs or cli/group.rs, for each of these.
    let (_folder, config) = folder().await;
    let mut operator = Operator::new(&config);
    operator.types("user add ada --password-stdin", PASSWORD).await.unwrap();
    for command in ["show", "disable", "enable", "remove", "rotate-secret", "set --trusted"] {
        let told = operator.cannot(&format!("client {command} nope")).await;
        assert_eq!(told, "no client has the id nope; see: portiere client list", "{command}");
    }
    for line in ["group show nope", "group remove nope", "group member nope ada"] {
        assert_eq!(operator.cannot(line).await, "no group is called nope; see: portiere group list", "{line}");
    }
    operator.0.close().await;
}

#[tokio::test]
async fn whoever_registers_an_application_learns_what_it_needs() {
    // Red without `with_options` or `handed_over` in cli/client.rs.
    let (_folder, config) = folder().await;
    let mut operator = Operator::new(&config);
    let told = operator.cannot("client add --id x").await;
    assert!(told.contains("--redirect-uri") && told.ends_with("--grant client_credentials"), "{told}");
    let added = operator.does("client add --id x --redirect-uri https://x.test/cb").await;
    let rotated = operator.does("client rotate-secret x").await;
    for told in [added, rotated] {
        let issuer = told.json["issuer"].as_str().unwrap();
        assert!(told.text.contains(issuer) && told.json["client_secret"].is_string(), "{}", told.text);
    }
    operator.0.close().await;
}
