//! What was acknowledged is there after the process is killed at any moment.
#![allow(clippy::unwrap_used, reason = "a test stops where something is wrong")]

mod until;

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use store::conformance::{MIGRATIONS, three_reads, three_rows};
use store::engine::Engine;
use store::sqlite::{Check, Options, Sqlite};
use until::until;

/// Writers in the child, each with numbers of its own.
const WRITERS: i64 = 8;

/// Numbers that one writer can use.
const SHARE: i64 = 1_000_000;

/// Runs in a process of its own, which the test below starts: writes until it is killed, and says each number that was
/// acknowledged. The first line of its input is the file and the number to begin at.
#[test]
#[ignore = "only as the child of the test below"]
fn child() {
    let mut input = String::new();
    std::io::stdin().read_line(&mut input).unwrap();
    let Some((from, path)) = input.trim().split_once(' ') else { return };
    let from: i64 = from.parse().unwrap();
    let engine = Arc::new(Sqlite::open(Options::at(path), MIGRATIONS).unwrap());
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
    runtime.block_on(async {
        engine.migrate().await.unwrap();
        let mut writers = tokio::task::JoinSet::new();
        for writer in 0..WRITERS {
            let engine = Arc::clone(&engine);
            writers.spawn(async move {
                for number in writer * SHARE + from.. {
                    engine.commit(three_rows(number)).await.unwrap();
                    println!("acknowledged {number}");
                }
            });
        }
        writers.join_all().await;
    });
}

/// Starts the child, kills it after it has acknowledged something and a little time has passed, and answers every number
/// that it acknowledged.
fn kill_while_writing(path: &Path, from: i64, after: Duration) -> Vec<i64> {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "child", "--ignored", "--nocapture"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    writeln!(child.stdin.take().unwrap(), "{from} {}", path.display()).unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    let number = |line: String| Some(line.split_once("acknowledged ")?.1.parse::<i64>().unwrap());
    let mut acknowledged = vec![lines.by_ref().find_map(number).expect("a first acknowledgement")];
    let killer = std::thread::spawn(move || {
        std::thread::sleep(after);
        child.kill().unwrap();
        child.wait().unwrap();
    });
    acknowledged.extend(lines.filter_map(number));
    killer.join().unwrap();
    acknowledged
}

#[tokio::test]
async fn nothing_acknowledged_is_lost_when_the_process_is_killed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("facts.db");
    let mut acknowledged = Vec::new();
    for round in 0..20 {
        let killed = kill_while_writing(&path, round * 10_000, Duration::from_millis(3 + 4 * round as u64));
        acknowledged.extend(killed);
    }
    assert!(acknowledged.len() >= 20);
    let engine = Sqlite::open(Options::at(&path), MIGRATIONS).unwrap();
    assert_ne!(engine.check(), Check::Spared, "the stop was unclean");
    for number in &acknowledged {
        let rows = engine.fetch(&three_reads(*number)).await.unwrap();
        assert!(rows.iter().all(|found| found.len() == 1), "{number} was acknowledged");
    }
    // What was not acknowledged is whole or absent.
    for writer in 0..WRITERS {
        for number in (0..20).flat_map(|round| (0..2000).map(move |at| writer * SHARE + round * 10_000 + at)) {
            let rows = engine.fetch(&three_reads(number)).await.unwrap().concat().len();
            assert!(rows == 0 || rows == 3, "{number}: {rows} rows of 3");
        }
    }
    until("the check is over", async || engine.check() != Check::Running).await;
    assert_eq!(engine.check(), Check::Passed);
    println!("{} acknowledged batches in 20 rounds", acknowledged.len());
}
