//! Servers that are paused: they take connections, and say nothing over any of them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use store::conformance::{five_reads, three_reads, three_rows};
use store::engine::{CommitError, Engine};
use store::mysql::Mysql;
use store::remote::Settings;
use tokio::task::JoinSet;

use super::between::{Between, Trick};
use super::place::{Place, found};
use super::until::until;

fn through(place: &Place, ways: &[&Between], timeout: Duration) -> Settings {
    let hosts: Vec<&str> = ways.iter().map(|way| way.host.as_str()).collect();
    Settings { timeout, ..place.at(&hosts.join(",")) }
}

/// Many who commit all the time, until told to stop.
struct Crowd {
    over: Arc<AtomicBool>,
    stood: Arc<AtomicUsize>,
    failed: Arc<AtomicUsize>,
    running: JoinSet<Vec<i64>>,
}

impl Crowd {
    fn new(engine: &Arc<Mysql>, count: i64) -> Self {
        let [stood, failed] = [Arc::default(), Arc::default()];
        let mut crowd = Crowd { over: Arc::default(), stood, failed, running: JoinSet::new() };
        for one in 0..count {
            let (engine, over) = (Arc::clone(engine), Arc::clone(&crowd.over));
            let (counted, failed) = (Arc::clone(&crowd.stood), Arc::clone(&crowd.failed));
            crowd.running.spawn(async move {
                let mut stood = Vec::new();
                for number in one * 100_000.. {
                    if over.load(Relaxed) {
                        break;
                    }
                    match engine.commit(three_rows(number)).await {
                        Ok(_) => {
                            stood.push(number);
                            counted.fetch_add(1, Relaxed);
                        }
                        Err(_) => {
                            failed.fetch_add(1, Relaxed);
                        }
                    }
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
                stood
            });
        }
        crowd
    }

    /// All of them are at it, over as many connections as there are going to be.
    async fn is_under_way(&self) {
        until("batches stand", async || self.stood.load(Relaxed) >= 300).await;
    }

    /// What stood, and how many did not.
    async fn end(self) -> (Vec<i64>, usize) {
        self.over.store(true, Relaxed);
        (self.running.join_all().await.concat(), self.failed.load(Relaxed))
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_falls_silent_is_left_before_a_request_runs_out_of_time() {
    // Red without `doubt` in mysql/pool/search.rs, hear, or give_up in everything.
    let Some(mut place) = Place::new().await else { return };
    let (first, second) = (Between::new(&place).await, Between::new(&place).await);
    let time = Duration::from_secs(20);
    let engine = place.ready_with(through(&place, &[&first, &second], time)).await;
    let crowd = Crowd::new(&engine, 30);
    crowd.is_under_way().await;
    let (asked, began) = (first.passed(), Instant::now());
    first.freeze();
    until("the next server", async || engine.server().moves == 1).await;
    assert!(began.elapsed() < time, "{:?}", began.elapsed());
    let number = 99_000_000;
    assert_eq!(engine.commit(three_rows(number)).await, Ok(vec![1, 1, 1]));
    assert_eq!(engine.server().host, second.host);
    // It was asked whether it was there, and once more before it was left, beside who was about to connect.
    assert!(first.passed() - asked <= 2 + 8, "{}", first.passed() - asked);
    let (stood, failed) = crowd.end().await;
    assert!(failed >= 1, "who was under way there is told");
    for number in stood {
        assert_eq!(found(&engine, number).await, 3, "{number}");
    }
    place.kill().await;
    place.remove().await;
}

#[tokio::test]
async fn a_search_goes_on_when_whoever_waited_for_it_has_gone() {
    // Red without `doubt` in mysql/pool/search.rs, hear: only a task can be there still.
    let Some(mut place) = Place::new().await else { return };
    let (first, second) = (Between::new(&place).await, Between::new(&place).await);
    let engine = place.ready_with(through(&place, &[&first, &second], Duration::from_secs(20))).await;
    engine.commit(three_rows(1)).await.unwrap();
    let before = first.passed();
    first.freeze();
    let asking = {
        let engine = Arc::clone(&engine);
        tokio::spawn(async move { drop(engine.fetch(&five_reads(1)[..1]).await) })
    };
    until("the server is asked whether it is there", async || first.passed() > before).await;
    asking.abort();
    until("the next server", async || engine.server().moves == 1).await;
    assert_eq!(found(&engine, 1).await, 3);
    place.kill().await;
    place.remove().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_stops_for_a_moment_is_not_left_and_nothing_fails() {
    let Some(mut place) = Place::new().await else { return };
    let (first, second) = (Between::new(&place).await, Between::new(&place).await);
    let engine = place.ready_with(through(&place, &[&first, &second], Duration::from_secs(32))).await;
    let crowd = Crowd::new(&engine, 12);
    crowd.is_under_way().await;
    first.freeze();
    // Longer than nobody asks, which are 8 s, and shorter than the question is waited for, which are 8 s more.
    tokio::time::sleep(Duration::from_secs(10)).await;
    first.thaw();
    tokio::time::sleep(Duration::from_millis(2500)).await;
    let (stood, failed) = crowd.end().await;
    assert_eq!((engine.server().moves, second.passed(), failed), (0, 0, 0));
    for number in stood {
        assert_eq!(found(&engine, number).await, 3, "{number}");
    }
    place.kill().await;
    place.remove().await;
}

/// As where commits wait for a replica that is away, or for room on a disk.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn where_commits_hang_reads_go_on_and_few_are_left_behind_at_the_server() {
    // Red with `lease` in place of lease_to_write in mysql/batch.rs, without until_ended, or without `hanging`.
    let Some(mut place) = Place::new().await else { return };
    if !place.is_mariadb().await {
        // Its limit of a statement is another one.
        return place.remove().await;
    }
    let between = Between::new(&place).await;
    let settings =
        Settings { connections: 4.try_into().unwrap(), ..through(&place, &[&between], Duration::from_secs(16)) };
    let engine = place.ready_with(settings).await;
    engine.commit(three_rows(1)).await.unwrap();
    between.play(Trick::Hold);
    let mut hanging = JoinSet::new();
    for number in 2..22 {
        let engine = Arc::clone(&engine);
        hanging.spawn(async move { engine.commit(three_rows(number)).await });
    }
    while !hanging.is_empty() {
        assert_eq!(engine.fetch(&three_reads(1)).await.unwrap().concat().len(), 3, "reads go on");
        if let Some(answer) = hanging.try_join_next() {
            assert!(answer.unwrap().is_err());
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert!(place.connected().await.len() <= 4 + 3, "{:?}", place.connected().await);
    let hang = async || engine.health().await.unwrap().writable.is_err_and(|why| why.contains("hang"));
    until("they are known to hang", hang).await;
    let answer = engine.commit(three_rows(30)).await;
    assert!(matches!(&answer, Err(CommitError::Unavailable(why)) if why.contains("hang")), "{answer:?}");
    between.stop();
    place.wake().await;
    until("they have ended", async || engine.commit(three_rows(31)).await.is_ok()).await;
    place.remove().await;
}
