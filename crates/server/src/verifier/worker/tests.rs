//! A worker and what servers do to it.

use super::*;
use crate::loops::without_time;
use crate::private::Key;
use hasher::remote::versions::Apart;
use std::path::Path;
use tempfile::TempDir;
use tokio_rustls::{TlsAcceptor, server::TlsStream};

/// Has a worker visit a server that does this; returns what came of both, and the folder that holds the worker's.
async fn visit<T>(serves: impl AsyncFnOnce(TlsStream<TcpStream>, &Path) -> T) -> (T, Result<(), String>, TempDir) {
    let root = tempfile::tempdir().unwrap();
    let folder = Folder::at(&root.path().join("worker"));
    let (prepared, server) = (folder.clone(), Identity::of(&Key::new([1; 32])).unwrap());
    let identity = aside(move || prepared.prepare()).await.unwrap();
    let config = identity.dialling(server.pin).unwrap();
    let listener = tokio::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let door = listener.local_addr().unwrap().to_string();
    let bench = Bench { folder, work: Work::default(), served: watch::Sender::new(0), pool: Mutex::new(None) };
    let (_stop, stopping) = watch::channel(false);
    let served = async {
        let (stream, _) = listener.accept().await.unwrap();
        let stream = TlsAcceptor::from(server.accepting().unwrap()).accept(stream).await.unwrap();
        serves(stream, root.path()).await
    };
    let (served, ended) = tokio::join!(Box::pin(served), Box::pin(bench.visit(&door, &config, stopping)));
    (served, ended, root)
}

fn terms() -> Terms {
    Terms { cost: Cost::new(64, 2, 1).unwrap(), tag_bytes: 32 }
}

#[tokio::test]
async fn a_worker_says_what_it_speaks_and_why_it_is_not_let_in() {
    // Red where it offers one version only, hides what it is told, or goes on in a version that it did not offer.
    let later = Versions::between(Versions::OURS.highest() + 1, 255).unwrap();
    let apart = Apart { server: later, worker: Versions::OURS }.to_string();
    let terms = terms();
    for (answer, told) in [
        (Frame::Refused(apart.clone()), apart.as_str()),
        (Frame::Welcome { version: 255, terms }, "goes on in version 255"),
        (Frame::Welcome { version: 0, terms }, "goes on in version 0"),
    ] {
        let answers = async |mut stream: TlsStream<TcpStream>, _: &Path| {
            let greeting = receive(&mut stream).await.unwrap();
            send(&mut stream, &answer).await.unwrap();
            greeting
        };
        let (greeting, ended, _) = visit(answers).await;
        assert!(matches!(greeting, Frame::Hello { speaks: Versions::OURS }), "{greeting:?}");
        let why = ended.unwrap_err();
        assert!(why.contains(told), "{why}");
    }
    assert!(apart.ends_with("upgrade the worker"), "{apart}");
}

#[tokio::test]
async fn a_worker_says_how_much_it_holds_when_work_has_taught_it() {
    // Red where a worker holds for ever what it said first: it never has enough to try another lane.
    let (ours, mut theirs) = tokio::io::duplex(1 << 16);
    let (answers, answered) = mpsc::unbounded_channel();
    let (open, holds) = (AtomicUsize::new(3), AtomicUsize::new(3));
    let (_stop, stopping) = watch::channel(false);
    let served = watch::Sender::new(1);
    let share = |_| u32::try_from(holds.load(Ordering::Relaxed)).unwrap();
    let speaks = speak(ours, answered, (&open, stopping), (served.subscribe(), 3, share));
    let hears = async {
        let mut heard = Vec::new();
        for (id, now) in [(1, 3), (2, 5), (3, 5)] {
            holds.store(now, Ordering::Relaxed);
            answers.send(Say::Answer(Answer { id, tag: None })).unwrap();
            heard.push(receive(&mut theirs).await.unwrap());
            if id == 2 {
                heard.push(receive(&mut theirs).await.unwrap());
            }
        }
        drop(answers);
        heard
    };
    let (ended, heard) = tokio::join!(speaks, hears);
    ended.unwrap();
    let heard: Vec<_> = heard.iter().map(|frame| frame.encode().to_vec()).collect();
    let answer = |id| Frame::Answers(vec![Answer { id, tag: None }]);
    let expected = [answer(1), answer(2), Frame::Holds(5), answer(3)];
    assert_eq!(heard, expected.map(|frame| frame.encode().to_vec()));
}

#[tokio::test]
async fn a_server_that_asks_without_end_is_left() {
    // Red without MOST_OPEN: each ask is an answer that waits for a server that never reads.
    let floods = async |mut stream: TlsStream<TcpStream>, _: &Path| {
        receive(&mut stream).await.unwrap();
        send(&mut stream, &Frame::Welcome { version: Versions::OURS.highest(), terms: terms() }).await.unwrap();
        let cost = Cost::new(1 << 16, 3, 1).unwrap();
        for frame in 0_u64.. {
            let ask = |at| Ask {
                id: frame * TOGETHER as u64 + at,
                cost,
                tag_bytes: 32,
                h0: hasher::argon2::H0::from_bytes(&[0; 64]),
            };
            let asks = Frame::Asks((0..TOGETHER as u64).map(ask).collect());
            if send(&mut stream, &asks).await.is_err() {
                return frame as usize * TOGETHER;
            }
            assert!(frame < 1000, "nobody stops it");
        }
        0
    };
    let (asked, ended, _) = visit(floods).await;
    let why = ended.unwrap_err();
    assert!(why.contains("asks for more than it may"), "{why}");
    assert!(asked >= MOST_OPEN, "{asked}");
}

#[tokio::test]
async fn a_worker_keeps_what_work_has_taught_it() {
    // Red where only the measurement at the start is kept.
    let forgets = async |mut stream: TlsStream<TcpStream>, root: &Path| {
        receive(&mut stream).await.unwrap();
        send(&mut stream, &Frame::Welcome { version: Versions::OURS.highest(), terms: terms() }).await.unwrap();
        assert!(matches!(receive(&mut stream).await.unwrap(), Frame::Ready(_)));
        std::fs::remove_file(root.join("worker/hashing")).unwrap();
    };
    let ((), ended, root) = visit(forgets).await;
    ended.unwrap_err();
    assert!(Folder::at(&root.path().join("worker")).learnt().is_some());
}

#[test]
#[should_panic(expected = "timers are disabled")]
fn a_post_that_breaks_down_ends_the_worker() {
    // red where posts are first looked at when the worker is told to stop: that server is not dialled any more.
    let root = tempfile::tempdir().unwrap();
    let folder = Folder::at(&root.path().join("worker"));
    drop(folder.prepare().unwrap());
    let (servers, server_key) = (vec!["127.0.0.1:1".to_owned()], shown(Handle([1; 32])));
    folder.keep(&Post { name: "hash-1".to_owned(), servers, server_key }).unwrap();
    let (_stop, stopping) = watch::channel(false);
    without_time(serve(folder, Work::default(), stopping));
}

#[test]
fn whoever_does_not_answer_may_do_so_later() {
    // Red with Failed for what happens after the connection, in `enroll`: scripts try again after 75 alone.
    for (kind, later) in [
        (io::ErrorKind::TimedOut, true),
        (io::ErrorKind::ConnectionRefused, true),
        (io::ErrorKind::ConnectionReset, true),
        (io::ErrorKind::UnexpectedEof, false),
        (io::ErrorKind::InvalidData, false),
        (io::ErrorKind::PermissionDenied, false),
    ] {
        let (Unenrolled::Away(told) | Unenrolled::Failed(told)) = &unheard("a:1", &kind.into());
        assert!(matches!(unheard("a:1", &kind.into()), Unenrolled::Away(_)) == later, "{told}");
        assert!(later || !told.contains("does not answer"), "{told}");
    }
}
