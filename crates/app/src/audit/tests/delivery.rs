//! A stream, and readers that follow: everything arrives, however it goes.

use super::*;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

/// What a receiver does with a request.
#[derive(Clone, Copy)]
pub(super) enum Mood {
    Takes,
    Fails,
    Resets,
    Hangs,
    TakesAndResets,
}

/// A receiver with moods: its sink, and the ids that it got, in order.
#[allow(clippy::disallowed_methods, reason = "a receiver of a test")]
pub(super) async fn moody(moods: &'static [Mood]) -> (Sink, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let got: Arc<Mutex<Vec<String>>> = Arc::default();
    let theirs = Arc::clone(&got);
    tokio::spawn(async move {
        for turn in 0.. {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mood = moods.get(turn).copied().unwrap_or(Mood::Takes);
            let body = read(&mut stream).await;
            let ids = body.lines().map(|line| {
                let line: serde_json::Value = serde_json::from_str(line).unwrap();
                line["id"].as_str().unwrap().to_owned()
            });
            if matches!(mood, Mood::Takes | Mood::TakesAndResets) {
                theirs.lock().unwrap().extend(ids);
            }
            match mood {
                Mood::Takes => stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await.unwrap(),
                Mood::Fails => stream.write_all(b"HTTP/1.1 500 No\r\ncontent-length: 0\r\n\r\n").await.unwrap(),
                Mood::Resets | Mood::TakesAndResets => stream.set_zero_linger().unwrap(),
                Mood::Hangs => tokio::time::sleep(Duration::from_secs(2)).await,
            }
        }
    });
    (over_http(&url), got)
}

pub(super) async fn read(stream: &mut tokio::net::TcpStream) -> String {
    let mut text = String::new();
    loop {
        let mut some = [0; 4096];
        let many = stream.read(&mut some).await.unwrap();
        text.push_str(std::str::from_utf8(&some[..many]).unwrap());
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse::<usize>().ok());
        if body.len() >= length.unwrap() {
            return body.to_owned();
        }
    }
}

#[tokio::test]
async fn a_stream_gets_everything_at_least_once_however_its_receiver_behaves() {
    let world = World::new(terms()).await;
    world.sealed(3, 150).await;
    let (sink, got) =
        moody(&[Mood::Fails, Mood::Resets, Mood::Takes, Mood::TakesAndResets, Mood::Hangs, Mood::Takes]).await;
    let (app, clock) = (world.app.clone(), world.clock.clone());
    let enough = async {
        let lines = || got.lock().unwrap().iter().collect::<BTreeSet<_>>().len();
        until("all lines are there", async || lines() >= 500).await;
        // Delivered entries are marked a moment later.
        until("they are marked", async || app.audit_lag().await.unwrap().streams[0].lines == 0).await;
    };
    let writes = async {
        for _ in 0..10 {
            world.write(5).await;
            clock.advance(Span::seconds(1));
            world.app.seal_once().await.unwrap();
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        enough.await;
    };
    tokio::select! {
        () = world.app.deliver(Stream { name: "http".into(), sink }) => {}
        () = writes => {}
    }
    let sent = got.lock().unwrap().clone();
    let all = ids(&world.app).await;
    assert_eq!(sent.iter().cloned().collect::<BTreeSet<_>>(), all, "none is lost");
    // A batch has 200 entries, and twice as many once one was taken.
    assert!(sent.len() <= all.len() + 400, "only what was interrupted comes twice: {} of {}", sent.len(), all.len());
}

#[tokio::test]
async fn whoever_follows_sees_each_line_once_however_late_it_was_committed() {
    let world = World::new(terms()).await;
    let app = &world.app;
    let writes = async {
        for number in 0..300_i64 {
            // Every third entry has an id from long before.
            let at = if number % 3 == 0 { Time(BEGAN.0 - number * 1000) } else { Time(BEGAN.0 + number) };
            let event = Event::new(Kind::SignedIn, at).detail("number", number);
            app.commit(vec![Change::Record(event)], at, &Fresh::new([(number % 250) as u8; 32])).await.unwrap();
        }
    };
    let seals = async {
        loop {
            app.seal_once().await.unwrap();
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    let (mut place, mut seen) = (Place::default(), Vec::new());
    let follows = async {
        while seen.len() < 300 {
            let lines = app.sealed_after(&place, 17).await.unwrap();
            if let Some(last) = lines.last() {
                place = Place { block: last.block, line: last.id.clone() };
            }
            seen.extend(lines.into_iter().map(|line| line.id));
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        () = async { tokio::join!(writes, follows); } => {}
        () = seals => {}
        () = tokio::time::sleep(Duration::from_secs(60)) => panic!("not all were seen"),
    }
    assert_eq!(seen.iter().collect::<BTreeSet<_>>().len(), 300, "each once");
    assert_eq!(seen.into_iter().collect::<BTreeSet<_>>(), ids(app).await);
    assert_eq!(world.verify(None).await.1, vec![]);
}

#[tokio::test]
async fn a_stream_that_cannot_read_what_is_next_says_so_until_it_can() {
    // Red without `note_halt` in audit/deliver.rs: it stood still and looked well, but for the log of the node.
    let world = World::new(terms()).await;
    world.sealed(3, 2).await;
    let behind = Place { block: 2, line: String::new() };
    begin(&world, behind).await;
    let world = world.tamper("UPDATE events SET id = CAST(id AS blob) WHERE block = 3").await;
    let deliver = async |world: &World| {
        let (sink, got) = moody(&[]).await;
        let mut going = super::super::deliver::Going::of("http");
        let stream = Stream { name: "http".into(), sink };
        let step = world.app.deliver_once(&stream, &mut going).await;
        let trouble = world.app.audit_lag().await.unwrap().streams.remove(0).trouble;
        (step.map(|step| step.is_ok()).map_err(|fault| fault.to_string()), trouble, got.lock().unwrap().len())
    };
    let (step, trouble, _) = deliver(&world).await;
    assert!(step.is_err() && trouble.contains("block 2") && trouble.contains("in block 3"), "{trouble}");
    let world = world.tamper("UPDATE events SET id = CAST(id AS text) WHERE block = 3").await;
    world.clock.advance(Span::hours(1));
    assert_eq!(deliver(&world).await, (Ok(true), String::new(), 4));
    // Red without the same in `nothing_after`: there may be nothing left to deliver.
    let halted = "UPDATE audit_streams SET trouble = 'what comes next cannot be read, from block 3: unavailable'";
    let world = world.tamper(halted).await;
    world.clock.advance(Span::hours(1));
    assert_eq!(deliver(&world).await, (Ok(true), String::new(), 0));
}

#[tokio::test]
async fn of_much_that_waits_more_is_sent_at_a_time() {
    // Red with `min(AT_ONCE)` in audit/deliver.rs, went_well: the distance of a receiver limited what it gets, for
    // good.
    let world = World::new(terms()).await;
    world.crowd(1000).await;
    let (sink, seen) = refused::picky(|_| 200).await;
    refused::deliver_until(&world.app, sink, until("all is delivered", async || refused::is_done(&world.app).await))
        .await;
    assert_eq!(refused::taken(&seen), refused::all_in_order(&world.app).await, "each once, in order");
    let sizes: Vec<usize> = seen.lock().unwrap().iter().map(|(ids, _)| ids.len()).collect();
    assert!(sizes[0] == 200 && sizes.iter().any(|many| *many > 200), "{sizes:?}");
}
