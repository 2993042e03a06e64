//! The worker's side: dials each node of its server, computes what it is asked, and dials again when that ends.

use super::Unenrolled;
use super::folder::{Folder, Post};
use super::identity::{Identity, shown};
use super::wire::{receive, send};
use crate::loops::{end_of, panic_of, tell_of_ended};
use crate::private::aside;
use hasher::argon2::Cost;
use hasher::remote::frame::{Answer, Ask, Frame, Ready, TOGETHER, TOKEN, Terms};
use hasher::remote::versions::Versions;
use hasher::{FairKey, Hasher, Policy, Settings};
use rules::secret::{Handle, Secret, from_base64url};
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpStream, lookup_host};
use tokio::sync::{Mutex, mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};
use tokio_rustls::TlsConnector;
use zeroize::Zeroizing;

type Stream = tokio_rustls::client::TlsStream<TcpStream>;

/// The time within which a server must answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// A server that is silent for this long is gone: it asks every 5 s whether the worker is there.
const SILENCE: Duration = Duration::from_secs(20);
/// The first and the longest pause before a server is dialled again.
const PAUSES: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(30));
/// How long running work may go on when the worker is told to stop.
const LAST: Duration = Duration::from_secs(10);

/// How much of the machine a worker uses.
#[derive(Clone, Copy, Debug, Default)]
pub struct Work {
    /// Threads that hash; one per core by default.
    pub threads: Option<NonZeroUsize>,
    /// Memory in which hashes are computed, in bytes; a quarter of the machine's by default.
    pub memory: Option<u64>,
}

/// Reads a token as an operator was given it: the secret, and the key of the server.
fn read_token(text: &str) -> Option<(Zeroizing<[u8; TOKEN]>, Handle)> {
    let (secret, pin) = text.trim().strip_prefix("pvt1.")?.split_once('.')?;
    let secret = Zeroizing::new(from_base64url(secret)?);
    Some((Zeroizing::new(secret.as_slice().try_into().ok()?), super::identity::read(pin)?))
}

/// Enrolls the worker of a folder at the first of these servers that answers. Returns its name.
pub async fn enroll(folder: &Folder, token: &Secret, (servers, name): (&[String], &str)) -> Result<String, Unenrolled> {
    let (secret, pin) = read_token(token.reveal()).ok_or("not a token from portiere verifier token")?;
    if folder.is_taken() {
        let name = folder.post()?.name;
        return Err(format!("this folder belongs to worker {name}: choose another folder, or remove it first").into());
    }
    let prepared = folder.clone();
    let identity = aside(move || prepared.prepare()).await?;
    let config = identity.dialling(pin)?;
    let (mut failures, mut away) = (Vec::new(), false);
    for server in servers {
        let mut stream = match dial(server, &config).await {
            Ok(stream) => stream,
            Err(error) => {
                away |= is_away(&error);
                failures.push(format!("{server}: {}", explained(&error)));
                continue;
            }
        };
        let failed = |error: io::Error| unheard(server, &error);
        let asked = Frame::Enroll { speaks: Versions::OURS, token: secret.clone(), name: name.to_owned() };
        send(&mut stream, &asked).await.map_err(failed)?;
        // A worker that asks again with the same key and token is told the same.
        let answer = timeout(PATIENCE, receive(&mut stream)).await.unwrap_or_else(|late| Err(late.into()));
        return match answer.map_err(failed)? {
            Frame::Enrolled(name) => {
                let (folder, server_key) = (folder.clone(), shown(pin));
                let post = Post { name: name.clone(), servers: servers.to_vec(), server_key };
                aside(move || folder.keep(&post)).await.map(|()| name).map_err(Unenrolled::from)
            }
            Frame::Refused(why) => Err(format!("{server} refused: {why}").into()),
            _ => Err(format!("{server} violates the protocol").into()),
        };
    }
    let failures = failures.join("\n");
    Err(if away { Unenrolled::Away(failures) } else { Unenrolled::Failed(failures) })
}

/// Says that a server that was reached did not answer, and whether it may do so later.
fn unheard(server: &str, error: &io::Error) -> Unenrolled {
    let told = format!("{server}: {}", explained(error));
    if is_away(error) { Unenrolled::Away(told) } else { Unenrolled::Failed(told) }
}

/// Whether a server did not hear the worker, as one that starts or stops does not.
fn is_away(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionRefused, ConnectionReset, HostUnreachable, NetworkUnreachable, TimedOut};
    matches!(error.kind(), ConnectionRefused | ConnectionReset | HostUnreachable | NetworkUnreachable | TimedOut)
}

/// Explains for people what went wrong.
fn explained(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::InvalidData if error.to_string().contains("ApplicationVerificationFailure") => {
            "this is not the server that made the token: its key is another one".into()
        }
        io::ErrorKind::TimedOut => "does not answer".into(),
        io::ErrorKind::UnexpectedEof => "closed the connection: is this the port of workers.listen?".into(),
        io::ErrorKind::InvalidData => format!("{error}: is this the port of workers.listen?"),
        _ => error.to_string(),
    }
}

/// Reports a server that goes on in a version that was not offered to it.
fn not_asked_for(version: u8) -> String {
    format!(
        "the server goes on in version {version} of the hash worker protocol, and this worker speaks {}",
        Versions::OURS
    )
}

/// Returns the addresses of a server. A name service that does not know the name may only have no answer yet.
async fn resolved(server: &str) -> io::Result<Vec<SocketAddr>> {
    let found = lookup_host(server).await;
    let away = |error: io::Error| io::Error::new(io::ErrorKind::HostUnreachable, error.to_string());
    found.map(Iterator::collect).map_err(away)
}

async fn dial(server: &str, config: &Arc<ClientConfig>) -> io::Result<Stream> {
    let late = |_| io::Error::from(io::ErrorKind::TimedOut);
    let connected = async { TcpStream::connect(&resolved(server).await?[..]).await };
    let stream = timeout(PATIENCE, connected).await.map_err(late)??;
    stream.set_nodelay(true)?;
    let name = ServerName::IpAddress(Ipv4Addr::LOCALHOST.into());
    timeout(PATIENCE, TlsConnector::from(Arc::clone(config)).connect(name, stream)).await.map_err(late)?
}

/// Works for the server of a folder until it is told to stop.
pub async fn serve(folder: Folder, work: Work, mut stop: watch::Receiver<bool>) -> Result<(), String> {
    let (identity, post) = (folder.identity()?, folder.post()?);
    let _alone = folder.take()?;
    let pin = post.pin().ok_or("the server's key in worker.json cannot be read: enroll the worker anew")?;
    let bench = Arc::new(Bench { folder, work, served: watch::Sender::new(0), pool: Mutex::new(None) });
    let config = identity.dialling(pin)?;
    drop::<Identity>(identity);
    let mut posts = JoinSet::new();
    for server in post.servers {
        let (bench, config, stop) = (Arc::clone(&bench), Arc::clone(&config), stop.clone());
        posts.spawn(async move { bench.keep_on(&server, &config, stop).await });
    }
    tokio::select! {
        () = told(&mut stop) => {}
        // Otherwise a server whose task panicked would not be dialled any more.
        never = panic_of(&mut posts) => match never {},
    }
    drop(timeout(LAST, end_of(&mut posts, "the work for a server")).await);
    Ok(())
}

/// What all servers share: the threads that hash.
struct Bench {
    folder: Folder,
    work: Work,
    /// How many servers the worker works for at present: one that is down, or silent, has no share of it.
    served: watch::Sender<usize>,
    pool: Mutex<Option<(Cost, Hasher)>>,
}

impl Bench {
    async fn keep_on(&self, server: &str, config: &Arc<ClientConfig>, mut stop: watch::Receiver<bool>) {
        let mut pause = PAUSES.0;
        while !*stop.borrow() {
            let begun = Instant::now();
            let ended = self.visit(server, config, stop.clone()).await;
            if *stop.borrow() {
                return;
            }
            let why = ended.map_or_else(|why| why, |()| "the connection ended".into());
            pause = if begun.elapsed() > PAUSES.1 { PAUSES.0 } else { (pause * 2).min(PAUSES.1) };
            // Random, so that not all workers dial at the same moment when a server comes back.
            let chance = app::entropy::salt().map_or(0, |bytes| bytes[0]);
            let pause = pause.mul_f64(0.5 + f64::from(chance) / 512.0);
            tracing::warn!(server, why, again_in = ?pause, "not connected");
            tokio::select! {
                () = sleep(pause) => {}
                () = told(&mut stop) => return,
            }
        }
    }

    async fn visit(&self, server: &str, config: &Arc<ClientConfig>, stop: watch::Receiver<bool>) -> Result<(), String> {
        let failed = |error: io::Error| explained(&error);
        let mut stream = dial(server, config).await.map_err(failed)?;
        send(&mut stream, &Frame::Hello { speaks: Versions::OURS }).await.map_err(failed)?;
        let said = timeout(PATIENCE, receive(&mut stream)).await.map_err(|_| "does not answer".to_owned())?;
        let (version, terms) = match said.map_err(failed)? {
            Frame::Welcome { version, terms } if Versions::OURS.have(version) => (version, terms),
            Frame::Welcome { version, .. } => return Err(not_asked_for(version)),
            Frame::Refused(why) => return Err(why),
            _ => return Err("the server violates the protocol".into()),
        };
        let _served = Served::begin(&self.served);
        // Subscribed before this server's share is counted: others may come or go meanwhile.
        let served = self.served.subscribe();
        let (hasher, ready) = self.ready(terms).await?;
        send(&mut stream, &Frame::Ready(ready)).await.map_err(failed)?;
        let rate = ready.rate as f64 / 1e3;
        tracing::info!(server, threads = ready.threads, rate, holds = ready.holds, version, "working");
        let (reader, writer) = tokio::io::split(stream);
        let (answers, answered) = mpsc::unbounded_channel();
        let open = Arc::new(AtomicUsize::new(0));
        let ended = tokio::select! {
            ended = listen(reader, &hasher, answers, &open) => ended,
            ended = speak(writer, answered, (&open, stop), (served, ready.holds, |served| share(&hasher, served))) => ended,
        };
        // What work has taught: otherwise a measurement made while others used the machine would be believed for good.
        self.folder.learn(&hasher.calibration()).await;
        ended.map_err(|error| match error.kind() {
            // It was the right port: it worked a moment ago.
            io::ErrorKind::UnexpectedEof => "the server closed the connection".into(),
            _ => explained(&error),
        })
    }

    /// Returns the hasher, and what it can do at the server's parameters.
    async fn ready(&self, terms: Terms) -> Result<(Hasher, Ready), String> {
        let mut pool = self.pool.lock().await;
        let hasher = match &*pool {
            Some((cost, hasher)) if *cost == terms.cost => hasher.clone(),
            _ => {
                let cost = terms.cost;
                // It only measures here: the server answers for the cost of its hashes.
                let policy = Policy::weak(cost.memory(), cost.passes(), cost.lanes());
                let policy = policy.map_err(|bad| bad.to_string())?;
                let settings = Settings {
                    threads: self.work.threads.map(within_cores),
                    memory: self.work.memory,
                    // Credits bound the queue.
                    max_wait: Duration::from_secs(60),
                    policy,
                    calibration: self.folder.learnt(),
                    ..Settings::default()
                };
                let hasher = Hasher::start(settings).map_err(|error| error.to_string())?;
                self.folder.learn(&hasher.calibrate().await).await;
                *pool = Some((terms.cost, hasher.clone()));
                hasher
            }
        };
        let served = *self.served.borrow();
        let memory = self.work.memory.unwrap_or_else(hasher::tune::default_memory) / 1024;
        Ok((
            hasher.clone(),
            Ready {
                threads: u16::try_from(hasher.state().threads).unwrap_or(u16::MAX),
                memory: memory.max(u64::from(terms.cost.memory())),
                holds: share(&hasher, served),
                rate: (hasher.rate() * 1e3 / served.max(1) as f64) as u64,
            },
        ))
    }
}

/// Limits the threads to the cores: the server counts on what each thread does when all work.
fn within_cores(wanted: NonZeroUsize) -> NonZeroUsize {
    let cores = std::thread::available_parallelism().unwrap_or(wanted);
    if wanted > cores {
        tracing::warn!(%wanted, %cores, "fewer hashing threads than wanted: no more than there are cores");
    }
    wanted.min(cores)
}

/// One more server that the worker works for, until dropped.
struct Served<'a>(&'a watch::Sender<usize>);

impl<'a> Served<'a> {
    fn begin(served: &'a watch::Sender<usize>) -> Self {
        served.send_modify(|served| *served += 1);
        Served(served)
    }
}

impl Drop for Served<'_> {
    fn drop(&mut self) {
        self.0.send_modify(|served| *served -= 1);
    }
}

/// Returns how many passwords each of so many servers may have computed at a time: no thread waits for the network, and
/// each can try one lane more than it has.
fn share(hasher: &Hasher, served: usize) -> u32 {
    let (state, served) = (hasher.state(), served.max(1));
    let holds = (state.threads * (state.lanes * 2 + 1)).max(2 * served) / served;
    u32::try_from(holds).unwrap_or(u32::MAX)
}

/// Waits until the worker is told to stop.
async fn told(stop: &mut watch::Receiver<bool>) {
    // An error means that the sender has gone.
    drop(stop.wait_for(|stop| *stop).await);
}

/// The most asks that are open at a time. No server gets as many credits, and what it asks before it hears of fewer
/// comes on top; one that goes on asking without reading an answer would take all memory.
const MOST_OPEN: usize = 2 * hasher::remote::MOST_HELD as usize + TOGETHER;

/// What is said to the server.
enum Say {
    Answer(Answer),
    Pong,
}

async fn listen(
    mut reader: impl AsyncRead + Unpin,
    hasher: &Hasher,
    answers: mpsc::UnboundedSender<Say>,
    open: &Arc<AtomicUsize>,
) -> io::Result<()> {
    // Aborts what runs when the conversation ends.
    let mut running = JoinSet::new();
    let key = FairKey::new("server", Ipv4Addr::LOCALHOST.into());
    loop {
        let late = |_| io::Error::from(io::ErrorKind::TimedOut);
        match timeout(SILENCE, receive(&mut reader)).await.map_err(late)?? {
            Frame::Asks(asks) => {
                for ask in asks {
                    if open.fetch_add(1, Ordering::Relaxed) >= MOST_OPEN {
                        return Err(io::Error::new(io::ErrorKind::InvalidData, "the server asks for more than it may"));
                    }
                    running.spawn(compute(hasher.clone(), key.clone(), ask, answers.clone()));
                }
                tell_of_ended(&mut running, "a hash");
            }
            Frame::Ping => drop(answers.send(Say::Pong)),
            // What the worker said about itself is not enough, or it was revoked meanwhile.
            Frame::Refused(why) => return Err(io::Error::other(why)),
            _ => return Err(io::Error::new(io::ErrorKind::InvalidData, "an unexpected message came")),
        }
    }
}

async fn compute(hasher: Hasher, key: FairKey, ask: Ask, answers: mpsc::UnboundedSender<Say>) {
    let id = ask.id;
    let tag = hasher.fill(&key, ask).await.inspect_err(not_computed).ok();
    // An error means that the conversation is over.
    drop(answers.send(Say::Answer(Answer { id, tag })));
}

/// Logs the first, second, fourth and so on: a server may send as many of them as it likes.
fn not_computed(why: &impl std::fmt::Display) {
    static SO_FAR: AtomicUsize = AtomicUsize::new(0);
    let so_far = SO_FAR.fetch_add(1, Ordering::Relaxed) + 1;
    if so_far.is_power_of_two() {
        tracing::warn!(%why, so_far, "cannot compute a hash");
    }
}

/// Sends a frame to a server that reads.
async fn tell(writer: &mut (impl AsyncWrite + Unpin), frame: &Frame) -> io::Result<()> {
    timeout(SILENCE, send(writer, frame)).await.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))?
}

async fn speak(
    mut writer: impl AsyncWrite + Unpin,
    mut answered: mpsc::UnboundedReceiver<Say>,
    (open, mut stop): (&AtomicUsize, watch::Receiver<bool>),
    (mut served, mut holds, share): (watch::Receiver<usize>, u32, impl Fn(usize) -> u32),
) -> io::Result<()> {
    let (mut said, mut stopping) = (Vec::new(), false);
    loop {
        tokio::select! {
            () = told(&mut stop), if !stopping => {
                stopping = true;
                tell(&mut writer, &Frame::Holds(0)).await?;
                // What was asked before the server hears this comes within a moment.
                sleep(Duration::from_millis(200)).await;
            }
            Ok(()) = served.changed(), if !stopping => {
                holds = share(*served.borrow_and_update());
                tell(&mut writer, &Frame::Holds(holds)).await?;
            }
            count = answered.recv_many(&mut said, TOGETHER) => {
                if count == 0 {
                    return Ok(());
                }
                let mut answers = Vec::with_capacity(count);
                for say in said.drain(..) {
                    match say {
                        Say::Answer(answer) => answers.push(answer),
                        Say::Pong => tell(&mut writer, &Frame::Pong).await?,
                    }
                }
                let done = answers.len();
                if done > 0 {
                    tell(&mut writer, &Frame::Answers(answers)).await?;
                }
                open.fetch_sub(done, Ordering::Relaxed);
                // Work teaches how many lanes are best.
                let now = share(*served.borrow());
                if now != holds && !stopping {
                    holds = now;
                    tell(&mut writer, &Frame::Holds(holds)).await?;
                }
            }
        }
        if stopping && open.load(Ordering::Relaxed) == 0 {
            // Says that this is the end (close_notify): otherwise an attacker could have cut the connection.
            return writer.shutdown().await;
        }
    }
}

#[cfg(test)]
mod tests;
