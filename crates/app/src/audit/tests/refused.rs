//! A receiver that refuses what it is sent, not only for the moment: smaller batches, and an entry that is in the way.

use super::super::deliver::{DOUBTS, Going};
use super::*;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpListener;
use tokio::task::{JoinSet, LocalSet};

/// What a receiver was sent that takes a batch or answers with a status: the entries of each batch, and how it
/// answered.
pub(super) type Seen = Arc<Mutex<Vec<(Vec<String>, u16)>>>;

#[allow(clippy::disallowed_methods, reason = "a receiver of a test")]
pub(super) async fn picky(judge: impl Fn(&[String]) -> u16 + Send + 'static) -> (Sink, Seen) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let seen = Seen::default();
    let theirs = Arc::clone(&seen);
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let body = delivery::read(&mut stream).await;
            let id = |line: &str| {
                serde_json::from_str::<serde_json::Value>(line).unwrap()["id"].as_str().unwrap().to_owned()
            };
            let ids: Vec<String> = body.lines().map(id).collect();
            let status = judge(&ids);
            theirs.lock().unwrap().push((ids, status));
            if status == 0 {
                continue;
            }
            let answer = format!("HTTP/1.1 {status} x\r\ncontent-length: 0\r\n\r\n");
            stream.write_all(answer.as_bytes()).await.unwrap();
        }
    });
    (over_http(&url), seen)
}

/// Returns the entries that it took, in order.
pub(super) fn taken(seen: &Seen) -> Vec<String> {
    let seen = seen.lock().unwrap();
    seen.iter().filter(|(_, status)| *status == 200).flat_map(|(ids, _)| ids.clone()).collect()
}

/// Delivers until `done`, which may take steps of its own.
pub(super) async fn deliver_until(app: &App, sink: Sink, done: impl Future<Output = ()>) {
    tokio::select! {
        () = app.deliver(Stream { name: "http".into(), sink }) => {}
        () = done => {}
    }
}

pub(super) async fn all_in_order(app: &App) -> Vec<String> {
    app.sealed_after(&Place::default(), 10_000).await.unwrap().into_iter().map(|line| line.id).collect()
}

pub(super) async fn is_done(app: &App) -> bool {
    // Except for what is not sealed.
    let lag = app.audit_lag().await.unwrap();
    lag.streams.first().is_some_and(|stream| stream.lines == lag.unsealed)
}

/// Whether this entry is in the way.
async fn is_stuck(app: &App, id: &str) -> bool {
    let streams = app.audit_lag().await.unwrap().streams;
    streams.first().is_some_and(|stream| stream.stuck && stream.trouble.contains(id))
}

/// Runs each in a world of its own, side by side: most of it is waiting.
async fn side_by_side(worlds: impl IntoIterator<Item = impl Future<Output = ()> + 'static>) {
    let here = async {
        let mut all = JoinSet::new();
        worlds.into_iter().for_each(|world| drop(all.spawn_local(world)));
        all.join_all().await
    };
    LocalSet::new().run_until(here).await;
}

#[tokio::test]
async fn a_batch_that_is_too_large_is_sent_in_pieces() {
    side_by_side([1, 7, 150].into_iter().map(is_sent_in_pieces)).await;
}

async fn is_sent_in_pieces(most: usize) {
    let world = World::new(terms()).await;
    world.sealed(2, 150).await;
    let (sink, seen) = picky(move |ids| if ids.len() > most { 413 } else { 200 }).await;
    deliver_until(&world.app, sink, until("all is delivered", async || is_done(&world.app).await)).await;
    assert_eq!(taken(&seen), all_in_order(&world.app).await, "each once, in order: {most}");
}

#[tokio::test]
async fn a_line_that_is_refused_for_good_is_named_and_waits_until_an_operator_skips_it() {
    let refused: [(u16, &'static [usize]); 5] =
        [(400, &[0]), (413, &[199]), (422, &[200, 201]), (418, &[299]), (400, &[57, 250])];
    side_by_side(refused.into_iter().map(|(status, bad)| is_named_and_skipped(status, bad))).await;
}

async fn is_named_and_skipped(status: u16, bad: &'static [usize]) {
    let world = World::new(terms()).await;
    world.sealed(2, 150).await;
    let all = all_in_order(&world.app).await;
    let wrong: Vec<String> = bad.iter().map(|at| all[*at].clone()).collect();
    let theirs = wrong.clone();
    let (sink, seen) = picky(move |ids| if ids.iter().any(|id| theirs.contains(id)) { status } else { 200 }).await;
    let operator = async {
        for (id, at) in wrong.iter().zip(bad) {
            until("it stands in the way", async || is_stuck(&world.app, id).await).await;
            let trouble = world.app.audit_lag().await.unwrap().streams.remove(0).trouble;
            // If no other was taken, or the one before was refused as well, this entry is hardly the cause.
            let every = *at == 0 || at.checked_sub(1).is_some_and(|before| bad.contains(&before));
            assert_eq!(trouble.contains("refuses every line"), every, "{status} {at}: {trouble}");
            assert_eq!(trouble.contains(&format!("portiere audit skip http {id}")), !every, "{status} {at}: {trouble}");
            let before: Vec<String> = all[..*at].iter().filter(|id| !wrong.contains(id)).cloned().collect();
            assert_eq!(taken(&seen), before, "{status} {at}: all before it, and nothing behind");
            for other in [all.iter().find(|other| other != &id).unwrap(), "", &id[..25]] {
                assert!(world.app.skip_line("http", other).await.unwrap().is_err(), "only that one");
            }
            assert!(world.app.skip_line("syslog", id).await.unwrap().is_err(), "only there");
            world.app.skip_line("http", id).await.unwrap().unwrap();
            assert!(world.app.skip_line("http", id).await.unwrap().is_err(), "once");
        }
        until("the rest is delivered", async || is_done(&world.app).await).await;
    };
    deliver_until(&world.app, sink, operator).await;
    assert_eq!(world.app.audit_lag().await.unwrap().streams[0].moved_at, Some(world.clock.now()));
    let rest: Vec<String> = all.iter().filter(|id| !wrong.contains(id)).cloned().collect();
    assert_eq!(taken(&seen), rest, "{status} {bad:?}");
    let told = world.told(Kind::AuditSkipped).await;
    assert!(wrong.iter().all(|id| told.iter().any(|line| line.detail.contains(id))), "{told:?}");
}

#[tokio::test]
async fn what_is_refused_for_another_reason_is_sent_again_as_it_was() {
    side_by_side([401, 403, 404, 405, 407, 408, 415, 429, 500, 503, 301].into_iter().map(is_sent_again)).await;
}

async fn is_sent_again(status: u16) {
    let world = World::new(terms()).await;
    world.sealed(1, 200).await;
    let (sink, seen) = picky(move |_| status).await;
    deliver_until(&world.app, sink, until("it is sent again", async || seen.lock().unwrap().len() >= 2)).await;
    assert!(seen.lock().unwrap().iter().all(|(ids, _)| ids.len() == 200), "{status}");
    let stream = world.app.audit_lag().await.unwrap().streams.remove(0);
    assert!(!stream.stuck && stream.trouble.contains(&status.to_string()), "{}", stream.trouble);
    assert_eq!(stream.moved_at, None, "{status}: nothing was ever delivered");
}

#[tokio::test]
async fn a_line_that_a_receiver_fails_over_is_found_and_can_be_left_out() {
    // Red without DOUBTS in audit/deliver.rs, or in_the_midst in sink/http.rs: nothing after it would ever be
    // delivered.
    // Status 0 stands for a broken connection.
    for status in [500, 0] {
        is_found_and_left_out(status).await;
    }
}

async fn is_found_and_left_out(status: u16) {
    let world = World::new(terms()).await;
    world.sealed(1, 12).await;
    let all = all_in_order(&world.app).await;
    let (bad, theirs) = (all[5].clone(), all[5].clone());
    let (sink, seen) = picky(move |ids| if ids.contains(&theirs) { status } else { 200 }).await;
    let (stream, mut going) = (Stream { name: "http".into(), sink }, Going::of("http"));
    for named in [&bad, ""] {
        for _ in 0..40 {
            going.failures = DOUBTS;
            drop(world.app.deliver_once(&stream, &mut going).await.unwrap());
        }
        let at = world.app.audit_lag().await.unwrap().streams.remove(0);
        assert!(!at.stuck && at.trouble.contains(named) && at.trouble.is_empty() == named.is_empty(), "{}", at.trouble);
        assert_eq!(world.app.skip_line("http", &bad).await.unwrap().is_ok(), !named.is_empty());
    }
    let rest: Vec<String> = all.into_iter().filter(|id| *id != bad).collect();
    assert_eq!(taken(&seen), rest);
}

#[tokio::test]
async fn what_is_sent_again_without_an_answer_is_the_same_whatever_was_sealed_meanwhile() {
    // Red without as_before in audit/deliver.rs: a receiver that tells batches apart by name would keep entries twice.
    let world = World::new(terms()).await;
    world.sealed(1, 5).await;
    let (sink, seen) = picky(|_| 0).await;
    let (stream, mut going) = (Stream { name: "http".into(), sink }, Going::of("http"));
    for step in 0..3 {
        // The first step only begins the stream.
        drop(world.app.deliver_once(&stream, &mut going).await.unwrap());
        if step == 1 {
            world.sealed(1, 3).await;
        }
    }
    let seen = seen.lock().unwrap();
    assert_eq!(seen.iter().map(|(ids, _)| ids.len()).collect::<Vec<_>>(), [5, 5]);
    assert_eq!(seen[0], seen[1]);
}

#[tokio::test]
async fn a_receiver_that_refuses_everything_is_told_of_as_one_and_as_one_line_once_it_takes_others() {
    // Red where every refused entry is one to skip: an operator who did so lost one after the other, each reported
    // anew.
    let world = World::new(terms()).await;
    world.sealed(1, 6).await;
    let all = all_in_order(&world.app).await;
    let takes = Arc::new(Mutex::new(None::<String>));
    let wants = Arc::clone(&takes);
    let refuses = move |ids: &[String]| match &*wants.lock().unwrap() {
        Some(bad) if !ids.contains(bad) => 200,
        _ => 400,
    };
    let (sink, seen) = picky(refuses).await;
    let (stream, mut going) = (Stream { name: "http".into(), sink }, Going::of("http"));
    let mut trouble_after = async |steps: usize| {
        for _ in 0..steps {
            drop(world.app.deliver_once(&stream, &mut going).await.unwrap());
        }
        world.app.audit_lag().await.unwrap().streams.remove(0)
    };
    let at = trouble_after(8).await;
    assert!(
        at.stuck && at.trouble.starts_with("the receiver refuses every line") && at.trouble.contains(&all[0]),
        "{at:?}"
    );
    assert!(taken(&seen).is_empty());
    // The format is corrected, and one entry is refused all the same.
    *takes.lock().unwrap() = Some(all[3].clone());
    let at = trouble_after(12).await;
    assert!(
        at.stuck && at.trouble.starts_with(&format!("the receiver refuses the line {} for good", all[3])),
        "{at:?}"
    );
    assert_eq!(taken(&seen), all[..3]);
    *takes.lock().unwrap() = None;
    world.app.skip_line("http", &all[3]).await.unwrap().unwrap();
    let at = trouble_after(4).await;
    assert!(at.trouble.starts_with("the receiver refuses every line") && at.trouble.contains(&all[4]), "{at:?}");
}
