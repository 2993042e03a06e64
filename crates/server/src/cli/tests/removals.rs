//! Removals that are given again, and how they are confirmed.

use super::*;
use serde_json::json;

const REMOVALS: [(&str, &str, &str, &str); 4] = [
    ("user remove ada", "name", "ada", "user"),
    ("client remove shop", "client_id", "shop", "client"),
    ("group remove staff", "name", "staff", "group"),
    ("verifier revoke w1", "revoked", "w1", "worker"),
];

#[tokio::test]
async fn what_is_gone_already_is_no_failure_where_that_was_said() {
    // Red without `ended` in cli/removal.rs: a play that runs again ends with a failure.
    let folder = tempfile::tempdir().unwrap();
    let opened = instance(folder.path()).await;
    let row = "INSERT INTO workers (realm, worker_key, name, enrolled, address) VALUES ('main', \
               x'00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff', 'w1', 1, '')";
    opened.app.engine.alter(vec![row.to_owned()]).await.unwrap();
    opened.close().await;
    let config = config(folder.path());
    let mut operator = Operator::new(&config);
    operator.types("user add ada --password-stdin", PASSWORD).await.unwrap();
    operator.does("client add --id shop --redirect-uri https://shop.test/cb").await;
    operator.does("group add staff").await;
    for (line, field, name, what) in REMOVALS {
        let asked = format!("{line} --if-present");
        assert_eq!(operator.does(&asked).await.json["removed"], json!(true), "{line}");
        let again = operator.does(&asked).await;
        assert_eq!(again.json, json!({ field: name, "removed": false }), "{line}");
        assert_eq!(again.text, format!("there is no {what} \"{name}\"; nothing was changed"));
        assert!(matches!(operator.types(line, "").await, Err(Failure::NotFound(_))), "{line}");
    }
    let own = operator.types("client remove portiere-try --if-present", "").await;
    assert!(matches!(own, Err(Failure::Refused(_))), "what is not allowed is a failure all the same");
    operator.0.close().await;
}

#[test]
fn a_removal_takes_yes_and_asks_no_script() {
    let others = ["keys rotate --revoke kid", "audit forget http"];
    for line in REMOVALS.map(|(line, ..)| line).into_iter().chain(others) {
        for line in [line.to_owned(), format!("{line} --yes")] {
            assert!(request(&line, "").is_ok(), "{line}");
        }
    }
}
