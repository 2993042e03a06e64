//! Passwords hashed by another machine, which sees none of them and whose word lets nobody in. Both sides run in this
//! process; all that passes between them passes as bytes.
//!
//! `cargo run -p hasher --example workers`
#![allow(clippy::print_stdout, reason = "an example tells what happens")]

use std::{convert::Infallible, error::Error, net::Ipv4Addr, num::NonZeroUsize, time::Duration};

use hasher::{
    FairKey, Hasher, Key, KeyId, Keys, Policy, Settings, Stored, Subject,
    remote::{
        Introduction, Link,
        frame::{Answer, BadFrame, Frame, HEADER, Ready},
    },
};
use tokio::task::JoinSet;
use zeroize::Zeroizing;

type Done<T> = Result<T, Box<dyn Error>>;

const ADA: Subject<'_> = Subject { realm: "main", user: "ada" };

/// Without a pepper, a worker could guess fast from a stolen database; without a binding key, its answers would be
/// worth something. Both are 32 random bytes that the worker never has.
fn keys() -> Done<Keys> {
    let id = |name: &[u8]| KeyId::new(name).ok_or("a name has 1 to 8 bytes");
    let pepper = Key::pepper(id(b"p1")?, Zeroizing::new([1; 32]));
    let binding = Key::binding(id(b"b1")?, Zeroizing::new([2; 32]));
    Ok(Keys::new([pepper, binding])?)
}

/// What the other side reads from a frame. Between machines, the bytes go through a connection on which each side knows
/// the other's key.
fn carried(frame: &Frame) -> Result<Frame, BadFrame> {
    let bytes = frame.encode();
    let (header, body) = bytes.split_first_chunk::<HEADER>().ok_or(BadFrame("no header"))?;
    let (kind, _length) = Frame::header(*header)?;
    Frame::decode(kind, body)
}

/// The worker: computes the asks that it is sent and sends back answers. It has no keys and no database.
async fn work(worker: &Hasher, asks: Frame) -> Frame {
    let Frame::Asks(asks) = asks else { return Frame::Refused("not what was expected".to_owned()) };
    let (mut running, mut answers) = (JoinSet::new(), Vec::new());
    for ask in asks {
        let worker = worker.clone();
        running.spawn(async move {
            // All asks are one server's.
            let who = FairKey::new("server", Ipv4Addr::LOCALHOST.into());
            // `None`: it could not be computed here, and is computed elsewhere.
            Answer { id: ask.id, tag: worker.fill(&who, ask).await.ok() }
        });
    }
    while let Some(answer) = running.join_next().await {
        answers.extend(answer);
    }
    Frame::Answers(answers)
}

/// The server's side of the connection to one worker, for as long as it lasts.
async fn converse(link: &Link, worker: &Hasher) -> Done<Infallible> {
    loop {
        let asks = link.asks().await.map_err(|parted| format!("the worker is asked nothing more: {parted:?}"))?;
        match carried(&work(worker, carried(&Frame::Asks(asks))?).await)? {
            Frame::Answers(answers) => link.answers(answers),
            other => return Err(format!("{other:?}").into()),
        }
    }
}

/// Reports workers that were wrong, which are asked nothing more. Has late asks computed here as well, which the threads
/// would do by themselves when they have time.
async fn look_after(server: &Hasher) -> Infallible {
    loop {
        server.look_after_workers();
        for (who, lie) in server.liars() {
            println!("  {}: {}", who.name, lie.sentence());
        }
        tokio::time::sleep(Duration::from_millis(30)).await;
    }
}

/// Signs in `many` users at once, every tenth of them with a wrong password. Returns how many were let in.
async fn sign_ins(server: &Hasher, stored: &Stored, many: u8) -> Done<usize> {
    let mut visitors = JoinSet::new();
    for number in 0..many {
        let (server, stored) = (server.clone(), stored.clone());
        visitors.spawn(async move {
            let who = FairKey::new("main", Ipv4Addr::new(192, 0, 2, number).into());
            let password: &[u8] = if number % 10 == 0 { b"wrong" } else { b"correct horse" };
            server.verify_of(&who, ADA, &stored, password).await
        });
    }
    let mut let_in = 0;
    while let Some(found) = visitors.join_next().await {
        let_in += usize::from(found??.ok);
    }
    Ok(let_in)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Done<()> {
    // Too cheap for anything but an example, which is to be over soon.
    let policy = Policy::weak(8_192, 1, 1)?;
    let one = NonZeroUsize::new(1);
    // Nobody is sent away here: the example `server` shows that.
    let max_wait = Duration::from_secs(60);
    let server = Hasher::start(Settings { policy, keys: keys()?, threads: one, max_wait, ..Settings::default() })?;
    let worker = Hasher::start(Settings { policy, threads: one, ..Settings::default() })?;

    // New hashes are computed here. The stored verifier tells a worker nothing, and is of no use for another account.
    let who = FairKey::new("main", Ipv4Addr::new(192, 0, 2, 7).into());
    let text = server.hash_of(&who, ADA, b"correct horse", [7; 16]).await?;
    println!("stored: {text}");
    let stored: Stored = text.parse()?;

    // The worker's key tells who it is; what it can do, it says itself, and the truth shows soon.
    let it = Introduction { key: [3; 32], name: "worker-1".into(), address: "192.0.2.99:5000".to_owned() };
    let threads = u16::try_from(worker.state().threads)?;
    let ready = Ready { threads, memory: 1 << 20, holds: 16, rate: (worker.rate() * 1e3) as u64 };
    // 32 random bytes, from which its tests are derived.
    let link = server.attach(it, ready, Zeroizing::new([4; 32]))?;

    let let_in = tokio::select! {
        let_in = sign_ins(&server, &stored, 100) => let_in?,
        never = converse(&link, &worker) => match never? {},
        never = look_after(&server) => match never {},
    };
    let (state, there) = (server.state(), server.workers());
    println!(
        "100 came, {let_in} were let in; {} hashes here and there, {} there",
        state.done_total, state.remote_total
    );
    for worker in there {
        let counts = worker.counts;
        println!("  {}: {} asks, {} answers, {} lies", worker.who.name, counts.asked, counts.answered, counts.lies);
    }

    // The connection has ended: what the worker held is computed here.
    drop(link);
    println!("without it: {}", server.verify_of(&who, ADA, &stored, b"correct horse").await?.ok);
    tokio::join!(server.stop(), worker.stop());
    Ok(())
}
