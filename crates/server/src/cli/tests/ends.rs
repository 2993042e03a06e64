//! Where a list ends before everything is listed, and how to go on.

use super::*;

async fn folder() -> (tempfile::TempDir, Config) {
    let folder = tempfile::tempdir().unwrap();
    instance(folder.path()).await.close().await;
    let config = config(folder.path());
    (folder, config)
}

/// Seals what is not sealed yet into a block.
async fn seal(data: &Path) {
    let server = instance(data).await;
    server.app.seal_once().await.unwrap();
    server.close().await;
}

#[tokio::test]
async fn a_list_of_the_log_that_ends_at_its_limit_says_how_to_go_on() {
    // Red without `on_from` in cli/audit/list.rs: nothing told that there is more, and the table shows no id.
    let (_folder, config) = folder().await;
    let mut operator = Operator::new(&config);
    for name in ["one", "two", "three"] {
        operator.does(&format!("group add {name}")).await;
        // Lines of one millisecond have no order.
        tokio::time::sleep(std::time::Duration::from_millis(2)).await;
    }
    let list = "audit list --kind group.changed";
    let mut listed = operator.does(&format!("{list} --limit 2")).await;
    let last = listed.json[1]["id"].as_str().unwrap();
    let note = format!("there are older entries: go on with --before {last}, or list more at once with --limit");
    assert_eq!(listed.notes, [note]);
    listed = operator.does(&format!("{list} --limit 1 --before {last}")).await;
    assert_eq!((listed.json[0]["detail"]["group"].as_str(), listed.notes.len()), (Some("one"), 0), "no more of these");
    operator.0.close().await;
}

#[tokio::test]
async fn a_tail_begins_with_as_many_entries_that_match_as_were_asked_for() {
    // Red where cli/audit/tail.rs filters the newest N alone, or does not say that it looked no further.
    let (folder, config) = folder().await;
    {
        let mut operator = Operator::new(&config);
        for name in ["one", "two"] {
            operator.does(&format!("group add {name}")).await;
        }
        operator.types("user add ada --password-stdin", PASSWORD).await.unwrap();
        operator.0.close().await;
    }
    seal(folder.path()).await;
    let mut operator = Operator::new(&config);
    let tail = operator.does("audit tail -n 1 --kind group.changed").await;
    assert!(tail.text.contains("group=two") && !tail.text.contains("group=one"), "{}", tail.text);
    assert_eq!(tail.notes, [""; 0]);
    assert_eq!(operator.does("audit tail -n 2 --kind group.changed").await.text.matches("group=").count(), 2);
    for name in ["a", "b", "c", "d", "e", "f", "g"] {
        // Of entries of one millisecond chance decides which is the newest.
        tokio::time::sleep(std::time::Duration::from_millis(2)).await;
        operator.does(&format!("group add {name}")).await;
    }
    operator.0.close().await;
    seal(folder.path()).await;
    let mut operator = Operator::new(&config);
    let tail = operator.does("audit tail -n 3 --kind user.added").await;
    let note = "sealed entries, 0 match: portiere audit list looks further back";
    assert!(tail.notes.len() == 1 && tail.notes[0].ends_with(note), "{tail:?}");
    // The newest block has none of these.
    operator.types("user add bob --password-stdin", PASSWORD).await.unwrap();
    operator.0.close().await;
    seal(folder.path()).await;
    let mut operator = Operator::new(&config);
    assert!(operator.does("audit tail -n 1 --kind group.changed").await.text.contains("group=g"));
    operator.0.close().await;
}

#[tokio::test]
async fn a_list_of_accounts_or_clients_ends_at_its_limit() {
    // Red without `cut` in cli/user.rs, cli/group.rs or cli/client.rs.
    let (_folder, config) = folder().await;
    let mut operator = Operator::new(&config);
    operator.does("group add staff").await;
    for name in ["ada", "bob"] {
        operator.types(&format!("user add {name} --password-stdin"), PASSWORD).await.unwrap();
        operator.does(&format!("group member staff {name}")).await;
        operator.does(&format!("client add --id {name} --public --redirect-uri https://a.test/{name}")).await;
    }
    for (list, id) in [("user list", "id"), ("group show staff", "id"), ("client list", "client_id")] {
        let first = operator.does(&format!("{list} --limit 1")).await;
        assert_eq!((first.json.as_array().unwrap().len(), &first.next), (1, &None), "{list}");
        let last = first.json[0][id].as_str().unwrap();
        assert_eq!(first.notes, [format!("there are more than these: go on with --after {last}")], "{list}");
        let rest = operator.does(&format!("{list} --limit 1 --after={last}")).await;
        assert_eq!((rest.json.as_array().unwrap().len(), rest.notes.len()), (1, 0), "{list}");
        assert_ne!(rest.json[0][id].as_str(), Some(last));
    }
    operator.0.close().await;
}
