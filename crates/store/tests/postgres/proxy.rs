//! Something between the engine and its server that counts, and can be silent, or cut every connection.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

/// Whether bytes go through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mood {
    /// They do.
    Open,
    /// What the server answers is kept back.
    Deaf,
    /// Connections are cut, and new ones refused.
    Shut,
}

/// Who speaks on one connection.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Client,
    Server,
}

/// How often a client began to speak, and who spoke last on one connection.
struct Talk {
    rounds: Arc<AtomicU64>,
    client_spoke: AtomicBool,
}

impl Talk {
    fn heard(&self, side: Side) {
        let was = self.client_spoke.swap(side == Side::Client, SeqCst);
        if side == Side::Client && !was {
            self.rounds.fetch_add(1, SeqCst);
        }
    }
}

pub struct Proxy {
    pub port: u16,
    rounds: Arc<AtomicU64>,
    mood: Arc<watch::Sender<Mood>>,
    _serving: JoinSet<()>,
}

impl Proxy {
    /// Listens on a port of its own, in front of that one.
    pub async fn before(port: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mood = Arc::new(watch::Sender::new(Mood::Open));
        let mut serving = JoinSet::new();
        let own = listener.local_addr().unwrap().port();
        let (moods, rounds) = (Arc::clone(&mood), Arc::new(AtomicU64::new(0)));
        let counted = Arc::clone(&rounds);
        serving.spawn(async move {
            let mut pipes = JoinSet::new();
            loop {
                let (client, _) = listener.accept().await.unwrap();
                if *moods.borrow() == Mood::Shut {
                    continue;
                }
                let Ok(server) = TcpStream::connect(("127.0.0.1", port)).await else { continue };
                let ((from_client, to_client), (from_server, to_server)) = (client.into_split(), server.into_split());
                let talk = Arc::new(Talk { rounds: Arc::clone(&counted), client_spoke: AtomicBool::new(false) });
                let (out, back) = ((Arc::clone(&talk), Side::Client), (talk, Side::Server));
                pipes.spawn(pipe((from_client, to_server), out, moods.subscribe(), &[Mood::Open, Mood::Deaf]));
                pipes.spawn(pipe((from_server, to_client), back, moods.subscribe(), &[Mood::Open]));
            }
        });
        Proxy { port: own, rounds, mood, _serving: serving }
    }

    /// Round trips so far, on all connections: what was said by a client that the server had answered before.
    pub fn rounds(&self) -> u64 {
        self.rounds.load(SeqCst)
    }

    pub fn is(&self, mood: Mood) {
        self.mood.send_replace(mood);
    }
}

/// Passes bytes on while the mood is one of these.
async fn pipe(
    (mut from, mut to): (OwnedReadHalf, OwnedWriteHalf),
    (talk, side): (Arc<Talk>, Side),
    moods: watch::Receiver<Mood>,
    open: &'static [Mood],
) {
    let mut cut = moods.clone();
    let mut passing = moods;
    let work = async move {
        let mut chunk = vec![0; 65_536];
        while let Ok(count @ 1..) = from.read(&mut chunk).await {
            talk.heard(side);
            if passing.wait_for(|mood| open.contains(mood)).await.is_err()
                || to.write_all(&chunk[..count]).await.is_err()
            {
                break;
            }
        }
    };
    tokio::select! {
        () = work => {}
        _ = cut.wait_for(|mood| *mood == Mood::Shut) => {}
    }
}
