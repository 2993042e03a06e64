//! Connections: how many, to whom, under which cover, and what happens when they end.

use std::sync::Arc;
use std::time::Duration;

use mysql_async::prelude::Queryable;
use store::conformance::{MIGRATIONS, five_reads, three_reads, three_rows};
use store::engine::{CommitError, Engine};
use store::mysql::Mysql;
use store::remote::{OpenError, Settings, Tls};
use tokio::task::JoinSet;

use super::between::{Between, STATUS};
use super::place::{Place, found, patient};
use super::until::until;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_more_connections_are_open_than_was_asked_for() {
    let Some(mut place) = Place::new().await else { return };
    let engine = place.ready_with(place.with(|settings| settings.connections = 3.try_into().unwrap())).await;
    let mut running = JoinSet::new();
    for number in 0..300 {
        let engine = Arc::clone(&engine);
        running.spawn(async move {
            engine.commit(three_rows(number)).await.unwrap();
            engine.fetch(&five_reads(number)).await.unwrap();
        });
    }
    let mut most = 0;
    while !running.is_empty() {
        most = most.max(place.connected().await.len());
        while running.try_join_next().is_some() {}
    }
    assert!((1..=3).contains(&most), "{most}");
    place.remove().await;
}

#[tokio::test]
async fn whoever_finds_no_free_connection_in_time_is_told() {
    let Some(place) = Place::new().await else { return };
    let one = |timeout| {
        place.with(|settings| {
            settings.connections = 1.try_into().unwrap();
            settings.timeout = timeout;
        })
    };
    let engine = place.ready_with(one(Duration::from_secs(4))).await;
    let patient = place.ready_with(one(Duration::from_secs(120))).await;
    let mut other = place.conn().await;
    // Whoever waits for a row lets others have the connection; for a table it is kept.
    other.query_drop("LOCK TABLES note WRITE").await.unwrap();
    let waits = tokio::spawn(async move { patient.commit(three_rows(1)).await });
    let mut running = JoinSet::new();
    for _ in 0..4 {
        let engine = Arc::clone(&engine);
        running.spawn(async move { engine.commit(three_rows(1)).await });
    }
    let mut whys = Vec::new();
    for answer in running.join_all().await {
        let Err(CommitError::Unavailable(why)) = answer else { panic!("{answer:?}") };
        whys.push(why);
    }
    assert!(!waits.is_finished(), "whoever has more time");
    assert!(whys.iter().any(|why| why.contains("no connection to the database became free")), "{whys:?}");
    other.query_drop("UNLOCK TABLES").await.unwrap();
    waits.await.unwrap().unwrap();
    until("a free place", async || engine.commit(three_rows(2)).await.is_ok()).await;
    place.remove().await;
}

#[tokio::test]
async fn connections_that_the_server_ended_are_made_anew_unseen() {
    let Some(mut place) = Place::new().await else { return };
    let engine = place.ready().await;
    for number in 0..5 {
        engine.commit(three_rows(number)).await.unwrap();
        assert_eq!(found(&engine, number).await, 3);
        assert!(place.kill().await > 0);
        if number % 2 == 0 {
            assert_eq!(found(&engine, number).await, 3);
        }
    }
    engine.commit(three_rows(10)).await.unwrap();
    place.remove().await;
}

#[tokio::test]
async fn a_connection_that_is_ended_while_it_is_made_is_made_once_more() {
    // red without the second attempt in mysql/connect.rs, ready.
    let Some(mut place) = Place::new().await else { return };
    let between = Between::new(&place).await;
    let engine = place.ready_with(place.at(&between.host)).await;
    engine.commit(three_rows(1)).await.unwrap();
    for (unwanted, found) in [(1, true), (2, false)] {
        assert!(place.kill().await > 0);
        between.hang_up_on(unwanted);
        let answer = engine.fetch(&five_reads(1)).await;
        assert_eq!(answer.is_ok(), found, "{answer:?}");
    }
    until("the server", async || engine.fetch(&five_reads(1)).await.is_ok()).await;
    place.remove().await;
}

#[tokio::test]
async fn what_is_closed_holds_no_connection() {
    let Some(mut place) = Place::new().await else { return };
    let engine = place.ready().await;
    let running = {
        let engine = Arc::clone(&engine);
        tokio::spawn(async move { engine.commit(three_rows(1)).await })
    };
    tokio::task::yield_now().await;
    engine.close().await;
    engine.close().await;
    let answer = running.await.unwrap();
    assert!(matches!(answer, Ok(_) | Err(CommitError::Unavailable(_))), "{answer:?}");
    assert!(matches!(engine.commit(three_rows(2)).await, Err(CommitError::Unavailable(_))));
    assert!(engine.fetch(&five_reads(2)).await.is_err());
    assert!(engine.health().await.unwrap().writable.is_err());
    until("no connection", async || place.connected().await.is_empty()).await;
    place.remove().await;
}

#[tokio::test]
async fn the_next_server_is_used_when_the_first_is_not_there() {
    let Some(place) = Place::new().await else { return };
    let second = Between::new(&place).await;
    let engine = place.ready_with(place.at(&format!("127.0.0.1:1,{}", second.host))).await;
    assert_eq!((engine.server().host, engine.server().moves), (second.host.clone(), 0));
    let nowhere = Mysql::open(place.at("127.0.0.1:1,127.0.0.1:2"), MIGRATIONS).await;
    let Err(OpenError::Unreachable(why)) = nowhere else { panic!("there is no server") };
    assert!(why.contains("127.0.0.1:1") && why.contains("127.0.0.1:2"), "{why}");
    place.remove().await;
}

/// A replica may be written to, unless it is told to be read only, and what is written there reaches nobody.
#[tokio::test]
async fn of_several_servers_one_that_only_follows_another_is_used_last() {
    // red without is_replica in mysql/pool/choice.rs.
    let Some(place) = Place::new().await else { return };
    let [first, second, third] = [Between::new(&place).await, Between::new(&place).await, Between::new(&place).await];
    for replica in [&first, &second] {
        replica.ask_instead(STATUS, "SELECT 'Slave_running', 'ON' UNION ALL SELECT 'Slaves_connected', '0'");
    }
    let hosts = [&first, &second, &third].map(|between| between.host.clone());
    let engine = place.ready_with(place.at(&hosts.join(","))).await;
    assert_eq!((engine.server().host, engine.server().moves), (hosts[2].clone(), 0));
    // It is promoted.
    second.ask_the_same();
    third.die().await;
    until("one that follows nobody", async || engine.health().await.unwrap().writable.is_ok()).await;
    assert_eq!((engine.server().host, engine.server().moves), (hosts[1].clone(), 1));
    second.die().await;
    until("one that is there", async || engine.health().await.unwrap().writable.is_ok()).await;
    assert_eq!((engine.server().host, engine.server().moves), (hosts[0].clone(), 2));
    engine.commit(three_rows(1)).await.unwrap();
    place.remove().await;
}

/// One server at a time: it is left when it fails, and only then gone back to.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_server_is_changed_when_it_fails_and_only_then() {
    let Some(mut place) = Place::new().await else { return };
    let (first, second) = (Between::new(&place).await, Between::new(&place).await);
    let hosts = [first.host.clone(), second.host.clone()];
    let engine = place.ready_with(place.at(&hosts.join(","))).await;
    let mut running = JoinSet::new();
    for task in 0..8 {
        let engine = Arc::clone(&engine);
        running.spawn(async move {
            let mut stood = Vec::new();
            for number in (0..150).map(|round| task * 1000 + round) {
                let pause = match engine.commit(three_rows(number)).await {
                    Ok(_) => {
                        stood.push(number);
                        2
                    }
                    // What is said of a server is said for a moment.
                    Err(_) => 50,
                };
                tokio::time::sleep(Duration::from_millis(pause)).await;
            }
            stood
        });
    }
    tokio::time::sleep(Duration::from_millis(150)).await;
    let freed = first.die().await;
    let stood = running.join_all().await.concat();
    assert!(stood.len() > 600, "{} of 1200 stood", stood.len());
    assert_eq!((engine.server().host, engine.server().moves), (hosts[1].clone(), 1));
    for number in stood {
        assert_eq!(found(&engine, number).await, 3, "{number}");
    }
    let first = Between::at(&freed, &place).await;
    engine.commit(three_rows(20_000)).await.unwrap();
    assert_eq!(engine.server().moves, 1, "the first is back, and not gone back to");
    second.die().await;
    until("the first again", async || {
        let there = async || engine.fetch(&three_reads(20_001)).await.is_ok_and(|rows| rows.concat().len() == 3);
        engine.commit(three_rows(20_001)).await.is_ok() || there().await
    })
    .await;
    assert_eq!((engine.server().host, engine.server().moves), (hosts[0].clone(), 2));
    drop(first);
    place.kill().await;
    place.remove().await;
}

/// Nothing is sent to the next server while something is still on its way to the last.
#[tokio::test]
async fn two_servers_are_never_used_at_the_same_time() {
    let Some(mut place) = Place::new().await else { return };
    let (first, second) = (Between::new(&place).await, Between::new(&place).await);
    let engine = place.ready_with(place.at(&format!("{},{}", first.host, second.host))).await;
    let mut other = place.conn().await;
    other.query_drop("START TRANSACTION").await.unwrap();
    other.query_drop("INSERT INTO note (realm, name) VALUES ('bench', '1-code')").await.unwrap();
    let commit = |number| {
        let engine = Arc::clone(&engine);
        tokio::spawn(async move { engine.commit(three_rows(number)).await })
    };
    let before = commit(1);
    tokio::time::sleep(Duration::from_millis(100)).await;
    first.go_deaf();
    tokio::time::sleep(Duration::from_millis(50)).await;
    let after = commit(2);
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(!before.is_finished() && !after.is_finished());
    assert_eq!(second.passed(), 0, "the first batch is not at its end");
    other.query_drop("ROLLBACK").await.unwrap();
    assert_eq!(before.await.unwrap(), Ok(vec![1, 1, 1]));
    assert_eq!(after.await.unwrap(), Ok(vec![1, 1, 1]));
    assert_eq!((engine.server().host, engine.server().moves), (second.host.clone(), 1));
    place.kill().await;
    place.remove().await;
}

#[tokio::test]
async fn where_no_server_is_left_the_answer_comes_at_once() {
    let Some(place) = Place::new().await else { return };
    let only = Between::new(&place).await;
    // Who waited for as long as there is time would see no end of it.
    let time = Duration::from_secs(24 * 3600);
    let engine = place.ready_with(Settings { timeout: time, ..place.at(&only.host) }).await;
    engine.commit(three_rows(1)).await.unwrap();
    let host = only.die().await;
    let told = async {
        for number in 2..20 {
            let answer = engine.commit(three_rows(number)).await;
            assert!(matches!(answer, Err(CommitError::Unavailable(_))), "{answer:?}");
            assert!(engine.fetch(&five_reads(1)).await.is_err());
        }
    };
    tokio::time::timeout(Duration::from_secs(60), told).await.expect("nobody waits for a server");
    assert!(engine.health().await.unwrap().writable.is_err_and(|why| why.contains(&host)));
    let _back = Between::at(&host, &place).await;
    until("the server again", async || engine.commit(three_rows(30)).await.is_ok()).await;
    assert_eq!((found(&engine, 1).await, found(&engine, 2).await, engine.server().moves), (3, 0, 0));
    place.remove().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn where_the_server_has_no_room_for_more_those_that_are_there_are_shared() {
    // red with an error in place of note_crowd in mysql/pool.rs, lease_at: whoever comes third is refused.
    let Some(mut place) = Place::new().await else { return };
    let settings = place.account("few", "NONE WITH MAX_USER_CONNECTIONS 2").await;
    let engine = place.ready_with(settings).await;
    let mut running = JoinSet::new();
    for number in 0..40 {
        let engine = Arc::clone(&engine);
        running.spawn(async move { engine.commit(three_rows(number)).await });
    }
    for answer in running.join_all().await {
        assert_eq!(answer, Ok(vec![1, 1, 1]));
    }
    assert_eq!(engine.health().await.unwrap().writable, Ok(()));
    assert!(engine.warning().is_some_and(|why| why.contains("accepts no more connections")));
    engine.close().await;
    place.remove().await;
}

/// Files of the server that the tests use, where it has TLS.
async fn tls(place: &mut Place) -> Option<Tls> {
    let authorities: Option<Option<String>> = place.admin.query_first("SELECT @@ssl_ca").await.unwrap();
    let authorities = std::path::PathBuf::from(authorities.flatten().filter(|file| !file.is_empty())?);
    let file = |name| authorities.with_file_name(name);
    let identity = Some((file("client.pem"), file("client.key")));
    Some(Tls { authorities: Some(authorities), identity })
}

#[tokio::test]
async fn tls_proves_who_the_server_is_and_who_we_are() {
    let Some(mut place) = Place::new().await else { return };
    let Some(files) = tls(&mut place).await else {
        println!("skipped: the server has no TLS");
        return;
    };
    let settings = place.account("sealed", "X509").await;
    let with = |url: &str, tls: &Tls| Settings { tls: tls.clone(), ..patient(url.to_owned()) };
    let engine = place.ready_with(with(&settings.url, &files)).await;
    engine.commit(three_rows(1)).await.unwrap();
    assert_eq!(found(&engine, 1).await, 3);

    let nameless = Tls { identity: None, ..files.clone() };
    let stranger = Tls { authorities: files.identity.clone().map(|(chain, _)| chain), ..files.clone() };
    let required = format!("{}?ssl-mode=required", settings.url);
    let disabled = format!("{}?ssl-mode=disabled", settings.url);
    for (what, url, tls) in [
        ("no certificate of ours", &settings.url, &nameless),
        ("an authority that did not sign", &settings.url, &stranger),
        ("the system's authorities", &required, &Tls::default()),
        ("no TLS at all", &disabled, &files),
    ] {
        let opened = Mysql::open(with(url, tls), MIGRATIONS).await;
        let Err(OpenError::Refused(why) | OpenError::Settings(why)) = opened else { panic!("{what}") };
        assert!(!why.contains(":word@"), "{why}");
    }
    let missing = Tls { authorities: Some("/nowhere/authorities.pem".into()), identity: None };
    let Err(OpenError::File(file, _)) = Mysql::open(with(&required, &missing), MIGRATIONS).await else { panic!() };
    assert_eq!(Some(file), missing.authorities);
    place.remove().await;
}

#[tokio::test]
async fn a_password_comes_from_its_file_and_the_next_connection_takes_the_next_one() {
    // Red without `password` in mysql/connect.rs, or where it is read once.
    let Some(mut place) = Place::new().await else { return };
    let account = place.account("filed", "NONE").await;
    let file = tempfile::NamedTempFile::new().unwrap();
    let user = format!("{}_filed@localhost", place.database);
    // As it is: nothing of it is percent-encoded.
    place.run(&format!("ALTER USER {user} IDENTIFIED BY 'p%4 :/@'")).await;
    std::fs::write(file.path(), "p%4 :/@\n").unwrap();
    let url = account.url.replace(":word@", "@");
    let settings = Settings { password: Some(file.path().to_owned()), ..patient(url) };
    let engine = place.ready_with(settings.clone()).await;
    engine.commit(three_rows(1)).await.unwrap();
    place.run(&format!("ALTER USER {user} IDENTIFIED BY 'the next'")).await;
    std::fs::write(file.path(), "the next").unwrap();
    place.kill().await;
    until("a commit by the next password", async || engine.commit(three_rows(2)).await.is_ok()).await;
    std::fs::write(file.path(), "").unwrap();
    let Err(OpenError::File(named, _)) = Mysql::judge(&settings) else { panic!() };
    assert_eq!(named, file.path());
    place.remove().await;
}

#[tokio::test]
async fn a_socket_of_this_machine_will_do() {
    let Some(mut place) = Place::new().await else { return };
    let socket: String = place.query("SELECT @@socket").await.remove(0);
    let settings = patient(format!("{}?socket={socket}", place.settings().url));
    let engine = place.ready_with(settings).await;
    engine.commit(three_rows(1)).await.unwrap();
    assert_eq!(engine.server().host, socket);
    place.remove().await;
}
