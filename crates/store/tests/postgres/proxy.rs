//! Something between the engine and its server that can be silent, or cut every connection.

use std::sync::Arc;

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

pub struct Proxy {
    pub port: u16,
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
        let moods = Arc::clone(&mood);
        serving.spawn(async move {
            let mut pipes = JoinSet::new();
            loop {
                let (client, _) = listener.accept().await.unwrap();
                if *moods.borrow() == Mood::Shut {
                    continue;
                }
                let Ok(server) = TcpStream::connect(("127.0.0.1", port)).await else { continue };
                let ((from_client, to_client), (from_server, to_server)) = (client.into_split(), server.into_split());
                pipes.spawn(pipe(from_client, to_server, moods.subscribe(), &[Mood::Open, Mood::Deaf]));
                pipes.spawn(pipe(from_server, to_client, moods.subscribe(), &[Mood::Open]));
            }
        });
        Proxy { port: own, mood, _serving: serving }
    }

    pub fn is(&self, mood: Mood) {
        self.mood.send_replace(mood);
    }
}

/// Passes bytes on while the mood is one of these.
async fn pipe(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, moods: watch::Receiver<Mood>, open: &'static [Mood]) {
    let mut cut = moods.clone();
    let mut passing = moods;
    let work = async move {
        let mut chunk = vec![0; 65_536];
        while let Ok(count @ 1..) = from.read(&mut chunk).await {
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
