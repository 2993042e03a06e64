//! The audit log as a user files it away, block by block.

use super::*;
use crate::control;
use app::audit::Filter;
use rules::oauth::client_auth::{Means, Proof};
use rules::secret::Secret;
use serde_json::Value;

/// Returns all pages of an export, how many they were, and the notes.
async fn exported(operator: &mut Operator<'_>, line: &str) -> (String, usize, Vec<String>) {
    let (mut text, mut notes) = (String::new(), Vec::new());
    let mut export = request(line, "").unwrap();
    for pages in 1..100 {
        let page = operator.0.ask(&export).await.unwrap();
        text.push_str(&page.text);
        notes.extend(page.notes);
        match page.next {
            Some(next) => export.go_on(next),
            None => return (text, pages, notes),
        }
    }
    panic!("{line} comes to no end: {text}");
}

/// Returns the places of all lines but those that say that the log was read.
fn places(text: &str) -> Vec<(i64, String)> {
    let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let place = |line: Value| (line["block"].as_i64().unwrap(), line["id"].as_str().unwrap().to_owned());
    lines.filter(|line| line["event"] != "audit.read").map(place).collect()
}

/// Returns how often the log says that it was read.
async fn reads(server: &Instance) -> usize {
    let read = Filter { kinds: vec!["audit.read".to_owned()], ..Filter::default() };
    server.app.audit_lines(&read, "", true, 1000).await.unwrap().lines.len()
}

async fn filed(operator: &mut Operator<'_>, server: &Instance) {
    let (_, _, notes) = exported(operator, "audit export --after-block 0").await;
    assert_eq!(notes, ["exported up to block 0; next time: --after-block 0"], "nothing is sealed yet");
    for n in 0..15 {
        operator.does(&format!("client add --id c{n} --public --redirect-uri https://c.test/{n}")).await;
        if n % 5 == 4 {
            server.app.seal_once().await.unwrap();
        }
    }
    let before = reads(server).await;
    let (text, pages, notes) = exported(operator, "audit export --after-block 0").await;
    assert_eq!(reads(server).await, before + 1, "a line for a command, however many pages it takes");
    let all = places(&text);
    assert!(pages > 2 && all.len() >= 15 && all.is_sorted() && all.windows(2).all(|two| two[0] != two[1]), "{all:?}");
    let code = |block| async move { server.app.audit_code(block).await.unwrap().unwrap()[..12].to_owned() };
    let ends = format!("exported up to block 3; next time: --after-block 3:{}", code(3).await);
    assert_eq!(notes, std::slice::from_ref(&ends));
    let mut by_time = places(&exported(operator, "audit export").await.0);
    by_time.sort();
    assert_eq!(all, by_time, "all of them");
    let (text, _, _) = exported(operator, "audit export --after-block 1").await;
    let later: Vec<_> = all.iter().filter(|(block, _)| *block > 1).cloned().collect();
    assert_eq!(places(&text), later);
    let (text, _, notes) = exported(operator, "audit export --after-block 3").await;
    assert_eq!((&*text, notes), ("", vec![ends.clone()]));
    let (text, _, notes) = exported(operator, "audit export --after-block 0 --client c7 --format csv").await;
    assert_eq!(
        (text.lines().count(), text.matches(",c7,").count()),
        (2, 1),
        "a head, once, and what is wanted: {text}"
    );
    assert_eq!(notes, [ends], "whatever is wanted");
    // Red without is_there: of a log that was put back to block 1 and grew since, blocks 2 and 3 are in no export.
    let (text, ..) = exported(operator, &format!("audit export --after-block 2:{}", code(2).await)).await;
    assert_eq!(places(&text), all.iter().filter(|(block, _)| *block > 2).cloned().collect::<Vec<_>>());
    let another = format!("audit export --after-block 2:{}", code(1).await);
    let why = operator.types(&another, "").await.unwrap_err();
    assert!(matches!(&why, Failure::Failed(why) if why.contains("block 2 is not the one")), "{why:?}");
    for wrong in ["-1", "x", "2:", "2:5f0c21aa93", "2:5f0c21aa93dg"] {
        assert!(request(&format!("audit export --after-block={wrong}"), "").is_err(), "{wrong}");
    }
    set(operator, server).await;
    // Of another database, or of one that was put back: what is sealed under those numbers would be left out.
    let why = operator.types("audit export --after-block 4", "").await.unwrap_err();
    assert!(matches!(&why, Failure::Lasting(why) if why.contains("ends with block 3")), "{why:?}");
}

/// A stream goes on from the place that an export named, or from where the log ends.
async fn set(operator: &mut Operator<'_>, server: &Instance) {
    let code = server.app.audit_code(2).await.unwrap().unwrap()[..12].to_owned();
    for (after, said) in [("now", "3"), (&*format!("2:{code}"), "2"), ("0", "0")] {
        let told = operator.types(&format!("audit stream http --after-block {after}"), "").await.unwrap();
        assert_eq!(told.text.trim_end(), format!("stream http goes on after block {said}"));
    }
    for (wrong, why) in [
        ("audit stream http --after-block 4", "the log ends with block 3"),
        ("audit stream siem --after-block now", "no stream is called siem"),
        ("audit stream http --after-block 1:000000000000", "block 1 is not the one"),
    ] {
        let told = operator.types(wrong, "").await.unwrap_err();
        assert!(told.exit_code() == 1 && told.told().contains(why), "{wrong}: {told:?}");
    }
    for wrong in ["", " --after-block soon", " --after-block=-1"] {
        assert!(request(&format!("audit stream http{wrong}"), "").is_err(), "{wrong}");
    }
    let told = operator.types("audit list --kind audit.moved", "").await.unwrap();
    assert_eq!(told.text.matches("audit.moved").count(), 3, "{}", told.text);
    operator.does("audit forget http").await;
}

#[tokio::test]
async fn refusals_to_strangers_are_listed_page_by_page_up_to_the_limit() {
    // Red where a page ends the list, begins again or counts the limit anew; the pages of these tests have three lines.
    let folder = tempfile::tempdir().unwrap();
    let config = config(folder.path());
    let server = instance(folder.path()).await;
    let control = control::listen(folder.path(), &server).unwrap();
    let names: Vec<String> = (0..7).map(|at| format!("c{at}")).collect();
    let scenario = async {
        let mut operator = Operator::new(&config);
        for name in &names {
            operator.does(&format!("client add --id {name} --redirect-uri https://shop.test/cb")).await;
            let means = Means::Post(Secret::new("not the secret"));
            let proof = Proof { client: name.as_str().into(), means };
            let address = std::net::IpAddr::from([192, 0, 2, 7]);
            let asked = server.app.within("r".into(), address, server.app.authenticate(proof));
            assert!(asked.await.unwrap().is_err());
        }
        let more = |limit: usize| format!("there are more than these {limit}: see --limit");
        for (limit, pages, notes) in [(7, 3, vec![]), (9, 3, vec![]), (6, 2, vec![more(6)]), (2, 1, vec![more(2)])] {
            let line = format!("audit strangers --limit {limit}");
            let (text, made, told) = exported(&mut operator, &line).await;
            let listed: Vec<&String> = names.iter().filter(|name| text.contains(&format!(" {name} "))).collect();
            assert_eq!((listed.len(), made, told), (limit.min(7), pages, notes), "{text}");
            assert_eq!((text.lines().count(), text.matches("MINUTE").count()), (limit.min(7) + 1, 1), "{text}");
        }
    };
    tokio::select! {
        () = control.run(std::future::pending()) => panic!("the control socket ended"),
        () = Box::pin(scenario) => {}
    }
    server.close().await;
}

#[tokio::test]
async fn what_is_filed_block_by_block_is_whole_in_order_and_never_twice() {
    // red without CHAINED pages that go on after their last line, or without `reached` in cli/audit/list.rs.
    let folder = tempfile::tempdir().unwrap();
    let mut config = config(folder.path());
    config.audit.reads = true;
    let server = Instance::open(&config, Some(&config.public_url(8080))).await.unwrap();
    let control = control::listen(folder.path(), &server).unwrap();
    tokio::select! {
        () = control.run(std::future::pending()) => panic!("the control socket ended"),
        () = Box::pin(async { filed(&mut Operator::new(&config), &server).await }) => {}
    }
    server.close().await;
}
