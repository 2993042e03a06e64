//! The server's side: which workers are let in, and one conversation with each.

use super::callers::{Callers, Strangers, Turned, explained, is_told};
use super::identity::{Identity, pin};
use super::places::{Doorstep, Knock, Places, Seat};
use super::wire::{receive, send};
use crate::boot::BootError;
use crate::config::Config;
use crate::loops::tell_of_ended;
use crate::net::{Listeners, Pause};
use app::{App, Fault};
use hasher::remote::frame::{Frame, Ready, Terms};
use hasher::remote::versions::{Apart, Versions};
use hasher::remote::{Introduction, Lie, Link, Name, Parted};
use rules::Secret;
use rules::secret::{Handle, base64url};
use rules::worker::Worker;
use std::collections::HashSet;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;
use zeroize::Zeroizing;

type Stream = tokio_rustls::server::TlsStream<TcpStream>;

/// The time within which a caller must have said who it is.
const PATIENCE: Duration = Duration::from_secs(10);
/// The time within which a worker must have measured how fast it is.
const MEASURING: Duration = Duration::from_secs(120);
/// How often a worker is asked whether it is there, and after how long a silence it counts as gone.
const PING: Duration = Duration::from_secs(5);
/// See [`PING`].
const SILENCE: Duration = Duration::from_secs(20);
/// How often the server looks for answers that are late.
const LOOK: Duration = Duration::from_millis(25);
/// How often the server looks for workers that were revoked, on whichever node.
const ASK: Duration = Duration::from_secs(5);
/// How much a worker may say unasked in one conversation: its credits change now and then.
const UNASKED: usize = 64;
/// Beside that, it may say once in this time how much it holds.
const SELDOM: Duration = Duration::from_secs(1);

/// The listener for workers.
pub struct Workers {
    listeners: Vec<TcpListener>,
    acceptor: TlsAcceptor,
    app: App,
    places: Arc<Places>,
    doorstep: Arc<Doorstep>,
    strangers: Arc<Strangers>,
    callers: Arc<Callers>,
}

/// An enrolled worker in a conversation, for the log.
struct Caller {
    name: Name,
    since: Instant,
    /// How many of its conversations in a row were short, counting this one.
    so_far: u64,
}

impl Caller {
    /// Returns its name, which changes from now on if somebody renames the worker while it is here.
    fn called(&self, name: &str) -> Name {
        self.name.change(name);
        self.name.clone()
    }
}

/// Why a conversation is over.
enum Ended {
    /// The worker was refused.
    Refused(String),
    /// A caller that wanted to enroll was refused.
    NotEnrolled(String),
    /// It speaks no version that the server speaks.
    Apart(Apart),
    /// The connection failed, or the worker did not keep to the protocol.
    Failed(io::Error),
    /// It is asked nothing more.
    Parted(Parted),
    /// It had said that it takes no more: it was stopped.
    Left,
    /// It was enrolled, and left.
    Enrolled,
    /// The server failed.
    Fault(Fault),
}

impl From<io::Error> for Ended {
    fn from(error: io::Error) -> Self {
        Ended::Failed(error)
    }
}
impl From<Fault> for Ended {
    fn from(fault: Fault) -> Self {
        Ended::Fault(fault)
    }
}
impl From<tokio::time::error::Elapsed> for Ended {
    fn from(_: tokio::time::error::Elapsed) -> Self {
        Ended::Failed(io::ErrorKind::TimedOut.into())
    }
}

impl Workers {
    /// Binds the configured addresses; callers that are no workers are counted in `strangers`.
    pub fn bind(config: &Config, app: &App, strangers: Arc<Strangers>) -> Result<Self, BootError> {
        let identity = Identity::of(&app.keyring.workers).map_err(BootError::Other)?;
        let acceptor = identity.accepting().map_err(BootError::Other)?.into();
        let listeners = Listeners::bind(&config.workers.listen, false)?;
        if !config.workers.listen.is_empty() {
            tracing::info!(addresses = ?listeners.addresses(), "listening for hash workers");
        }
        Ok(Workers {
            listeners: listeners.into_inner(),
            acceptor,
            app: app.clone(),
            places: Arc::default(),
            doorstep: Doorstep::new(),
            strangers,
            callers: Arc::default(),
        })
    }

    /// Lets workers in until it is dropped, which disconnects all of them.
    pub async fn run(self) {
        if self.listeners.is_empty() {
            return std::future::pending().await;
        }
        let doors = futures(self.listeners.iter().map(|listener| self.door(listener)));
        tokio::join!(doors, look_after(&self.app), judge(&self.app), follow(&self.app));
    }

    async fn door(&self, listener: &TcpListener) {
        let (mut guests, mut pause) = (JoinSet::new(), Pause::default());
        loop {
            tell_of_ended(&mut guests, "the conversation with a hash worker");
            match listener.accept().await {
                Ok((stream, from)) => {
                    pause = Pause::default();
                    let Some((knock, leave)) = self.doorstep.admit(from.ip().to_canonical()) else {
                        self.strangers
                            .another(from, (Turned::Crowd, "too many connections of its address wait to be let in"));
                        continue;
                    };
                    let (places, strangers) = (Arc::clone(&self.places), Arc::clone(&self.strangers));
                    let callers = Arc::clone(&self.callers);
                    let threshold = Threshold { knock, places, strangers: Arc::clone(&strangers), callers };
                    let guest = guest(stream, from, self.acceptor.clone(), (self.app.clone(), threshold));
                    guests.spawn(async move {
                        tokio::select! {
                            () = guest => {}
                            () = leave.notified() => {
                                strangers.another(from, (Turned::Crowd, "closed to make room for others"));
                            }
                        }
                    });
                }
                Err(error) => pause.after(error, "cannot accept connections of hash workers").await,
            }
        }
    }
}

/// Runs all of them at once.
async fn futures(all: impl Iterator<Item = impl Future<Output = ()>>) {
    let mut all: Vec<_> = all.map(Box::pin).collect();
    std::future::poll_fn(|context| {
        all.retain_mut(|one| one.as_mut().poll(context).is_pending());
        if all.is_empty() { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
    })
    .await;
}

async fn look_after(app: &App) {
    loop {
        sleep(LOOK).await;
        if app.hasher.has_workers() {
            app.hasher.look_after_workers();
        }
    }
}

/// Quarantines workers that were wrong. Not part of [`look_after`], since it asks the database.
async fn judge(app: &App) {
    let mut liars = Vec::new();
    loop {
        sleep(LOOK).await;
        liars.extend(app.hasher.liars());
        if !liars.is_empty() {
            quarantine(app, &mut liars).await;
        }
    }
}

/// Records which workers were wrong, and disconnects them if they came back; if that fails, they stay on the list.
async fn quarantine(app: &App, liars: &mut Vec<(Introduction, Lie)>) {
    for (who, lie) in std::mem::take(liars) {
        let (why, from) = (lie.sentence(), &who.address);
        app.hasher.dismiss(|other| other.key == who.key);
        match app.quarantine_worker(Handle(who.key), why).await {
            Ok(Some(worker)) => {
                tracing::error!(worker, from, why, "a hash worker gave a wrong answer, and is quarantined");
            }
            // Another connection of it, or another node, found out first; or it was revoked.
            Ok(None) => {}
            Err(fault) => {
                let worker = &who.name;
                tracing::error!(%worker, from, why, %fault, "cannot record that a hash worker gave a wrong answer");
                sleep(Duration::from_secs(1)).await;
                liars.push((who, lie));
            }
        }
    }
}

/// Disconnects workers that another node revoked or quarantined, and takes over new names of the others.
async fn follow(app: &App) {
    loop {
        sleep(ASK).await;
        if !app.hasher.has_workers() {
            continue;
        }
        // While the database cannot tell, the workers that are here stay.
        let Ok(known) = app.workers().await else { continue };
        app.call_workers(&known);
        let welcome: HashSet<_> =
            known.into_iter().filter(|known| known.quarantine.is_none()).map(|known| known.key.0).collect();
        let gone = app.hasher.dismiss(|who| !welcome.contains(&who.key));
        if gone > 0 {
            tracing::info!(workers = gone, "disconnected hash workers that are no longer let in");
        }
    }
}

/// The state of a caller that has not yet shown to be a worker.
struct Threshold {
    knock: Knock,
    places: Arc<Places>,
    strangers: Arc<Strangers>,
    callers: Arc<Callers>,
}

impl Threshold {
    /// Lets the caller in if there is room; otherwise says why there is none.
    fn cross(self, key: Handle) -> Result<Seat, String> {
        drop(self.knock);
        self.places.take(key)
    }
}

async fn guest(stream: TcpStream, from: SocketAddr, acceptor: TlsAcceptor, (app, threshold): (App, Threshold)) {
    let silent = (Turned::Silent, "it sent nothing");
    drop(stream.set_nodelay(true));
    match timeout(PATIENCE, stream.peek(&mut [0])).await {
        Ok(_) => threshold.knock.speaks(),
        Err(_) => return threshold.strangers.another(from, silent),
    }
    let stream = match timeout(PATIENCE, acceptor.accept(stream)).await {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) => return threshold.strangers.another(from, (Turned::Handshake, &error.to_string())),
        Err(_) => return threshold.strangers.another(from, silent),
    };
    let key = match stream.get_ref().1.peer_certificates() {
        Some([public, ..]) => pin(public),
        _ => return,
    };
    let (strangers, callers, mut known) = (Arc::clone(&threshold.strangers), Arc::clone(&threshold.callers), None);
    let Err(ended) = talk(stream, (key, from), (&app, &mut known), threshold).await else { return };
    if matches!((&ended, &known), (Ended::Apart(_), Some(_))) {
        strangers.count(Turned::Version);
    }
    match (ended, known) {
        // Anybody can show a key, or a token.
        (Ended::NotEnrolled(why), _) => strangers.another(from, (Turned::Token, &why)),
        (Ended::Apart(apart), None) => strangers.another(from, (Turned::Version, &apart.to_string())),
        (Ended::Refused(why), None) => strangers.another(from, (Turned::Unknown, &why)),
        (Ended::Failed(error), None) => strangers.another(from, (Turned::Broken, &error.to_string())),
        // Anybody can show a key for that, too.
        (Ended::Fault(fault), None) => strangers.another(from, (Turned::Away, &fault.to_string())),
        (ended, Some(caller)) if callers.ended(key, caller.so_far, caller.since.elapsed()) => {
            ended.tell(&caller, from);
        }
        _ => {}
    }
}

impl Ended {
    /// Logs how the conversation with an enrolled worker ended.
    fn tell(self, caller: &Caller, from: SocketAddr) {
        let (worker, so_far) = (&caller.name, caller.so_far);
        match self {
            Ended::Refused(why) => tracing::warn!(%worker, %from, why, so_far, "a hash worker was refused"),
            Ended::Apart(why) => tracing::warn!(%worker, %from, %why, so_far, "a hash worker was refused"),
            Ended::Failed(error) => {
                tracing::info!(%worker, %from, why = explained(&error), so_far, "lost the connection to a hash worker");
            }
            Ended::Parted(parted) => tracing::info!(%worker, %from, ?parted, so_far, "a hash worker was disconnected"),
            Ended::Left => tracing::info!(%worker, %from, "a hash worker disconnected"),
            Ended::Enrolled | Ended::NotEnrolled(_) => {}
            Ended::Fault(fault) => tracing::warn!(%worker, %from, %fault, so_far, "cannot serve a hash worker"),
        }
    }
}

/// Holds one conversation, from the first frame to the last; sets `known` if the caller is an enrolled worker.
async fn talk(
    mut stream: Stream,
    (key, from): (Handle, SocketAddr),
    (app, known): (&App, &mut Option<Caller>),
    threshold: Threshold,
) -> Result<(), Ended> {
    let speaks = match timeout(PATIENCE, receive(&mut stream)).await?? {
        Frame::Hello { speaks } => speaks,
        Frame::Enroll { speaks, token, name } => {
            understood(&mut stream, speaks).await?;
            let token = Secret::new(base64url(&*token));
            return enroll(&mut stream, app, (token, &name), (key, from)).await;
        }
        _ => return Err(out_of_turn()),
    };
    let found = app.worker(key).await?;
    *known = found.as_ref().map(|worker| {
        let so_far = threshold.callers.begins(key);
        Caller { name: worker.name.as_str().into(), since: Instant::now(), so_far }
    });
    // Only strangers with a token are told which versions are spoken here: their token must not be used up in vain.
    if let Err(why) = let_in(found) {
        return refuse(&mut stream, why).await;
    }
    let version = understood(&mut stream, speaks).await?;
    let _seat = match threshold.cross(key) {
        Ok(seat) => seat,
        Err(why) => return refuse(&mut stream, why).await,
    };
    let terms = Terms { cost: app.hasher.policy().cost(), tag_bytes: 32 };
    send(&mut stream, &Frame::Welcome { version, terms }).await?;
    let ready = measured(&mut stream).await?;
    if let Err(why) = can_work(ready, terms) {
        return refuse(&mut stream, why).await;
    }
    // That took seconds: the worker may have been revoked meanwhile.
    let worker = match let_in(app.worker(key).await?) {
        Ok(worker) => worker,
        Err(why) => return refuse(&mut stream, why).await,
    };
    let name = match known {
        Some(caller) => caller.called(&worker.name),
        None => Name::from(worker.name.as_str()),
    };
    if known.as_ref().is_none_or(|caller| is_told(caller.so_far)) {
        let (threads, holds) = (ready.threads, ready.holds);
        tracing::info!(worker = %name, %from, threads, holds, version, "a hash worker connected");
    }
    let seed = Zeroizing::new(app::entropy::bytes()?);
    let who = Introduction { key: key.0, name, address: address(from) };
    let link = app.hasher.attach(who, ready, seed).map_err(Fault::from)?;
    work(stream, &link).await
}

/// Returns an address as everywhere in the audit log: without the port.
fn address(from: SocketAddr) -> String {
    from.ip().to_canonical().to_string()
}

/// Enrolls a worker that shows a token.
async fn enroll(
    stream: &mut Stream,
    app: &App,
    (token, name): (Secret, &str),
    (key, from): (Handle, SocketAddr),
) -> Result<(), Ended> {
    match app.enroll_worker(token.reveal(), (key, name), &address(from)).await? {
        Ok(name) => {
            tracing::info!(%from, name, "a hash worker was enrolled");
            send(stream, &Frame::Enrolled(name)).await?;
            Err(Ended::Enrolled)
        }
        Err(refused) => {
            send(stream, &Frame::Refused(refused.why.clone())).await?;
            Err(Ended::NotEnrolled(refused.why))
        }
    }
}

/// Checks that a worker can compute a hash. Otherwise it would be asked nothing, and its operator would not know.
fn can_work(ready: Ready, terms: Terms) -> Result<(), String> {
    let need = u64::from(terms.cost.memory());
    match ready.memory >= need {
        true => Ok(()),
        false => {
            let has = ready.memory;
            Err(format!("a hash of this server takes {need} KiB, and the worker has {has} KiB for it: see --memory"))
        }
    }
}

/// Checks that a worker may work, as the database knows it now; the error says why not.
fn let_in(found: Option<Worker>) -> Result<Worker, String> {
    let Some(worker) = found else {
        return Err("this server does not know this worker: it was revoked, or never enrolled here".to_owned());
    };
    match worker.quarantine {
        Some((_, why)) => Err(format!("this worker is quarantined: {why}; see portiere verifier trust")),
        None => Ok(worker),
    }
}

/// Returns the version in which both sides go on.
async fn understood(stream: &mut Stream, speaks: Versions) -> Result<u8, Ended> {
    match Versions::OURS.with(speaks) {
        Ok(version) => Ok(version),
        Err(apart) => {
            send(stream, &Frame::Refused(apart.to_string())).await?;
            Err(Ended::Apart(apart))
        }
    }
}

async fn refuse(stream: &mut Stream, why: String) -> Result<(), Ended> {
    send(stream, &Frame::Refused(why.clone())).await?;
    Err(Ended::Refused(why))
}

fn out_of_turn() -> Ended {
    Ended::Failed(io::Error::new(io::ErrorKind::InvalidData, "an unexpected message came"))
}

async fn measured(stream: &mut Stream) -> Result<Ready, Ended> {
    match timeout(MEASURING, receive(stream)).await?? {
        Frame::Ready(ready) => Ok(ready),
        _ => Err(out_of_turn()),
    }
}

/// Asks and answers, until either ends. A worker that says more than it was asked is out of turn: the server would look
/// at the queue of all hashes for nothing.
async fn work(stream: Stream, link: &Link) -> Result<(), Ended> {
    let (mut reader, mut writer) = tokio::io::split(stream);
    let due = AtomicUsize::new(UNASKED);
    let listen = async {
        let (mut leaving, mut held) = (false, Instant::now());
        loop {
            let frame = match timeout(SILENCE, receive(&mut reader)).await? {
                Err(error) if leaving && error.kind() == io::ErrorKind::UnexpectedEof => return Err(Ended::Left),
                received => received?,
            };
            // How much it holds changes as its other servers come and go: once in a while it may say so unasked.
            let is_seldom = matches!(frame, Frame::Holds(_)) && held.elapsed() >= SELDOM;
            if is_seldom {
                held = Instant::now();
            } else if due.fetch_update(Relaxed, Relaxed, |due| due.checked_sub(weight(&frame))).is_err() {
                return Err::<(), _>(out_of_turn());
            }
            match frame {
                Frame::Answers(answers) => link.answers(answers),
                Frame::Holds(holds) => {
                    leaving = holds == 0;
                    link.holds(holds);
                }
                Frame::Pong => {}
                _ => return Err(out_of_turn()),
            }
        }
    };
    let speak = async {
        loop {
            let frame = match timeout(PING, link.asks()).await {
                Ok(Ok(asks)) => Frame::Asks(asks),
                Ok(Err(parted)) => return Err::<(), _>(Ended::Parted(parted)),
                Err(_) => Frame::Ping,
            };
            due.fetch_add(weight(&frame), Relaxed);
            timeout(SILENCE, send(&mut writer, &frame)).await??;
        }
    };
    tokio::select! {
        biased;
        ended = speak => ended,
        ended = listen => ended,
    }
}

/// Returns how many answers a frame asks for, or brings; a frame that brings none counts as one.
fn weight(frame: &Frame) -> usize {
    match frame {
        Frame::Asks(asks) => asks.len(),
        Frame::Answers(answers) => answers.len().max(1),
        _ => 1,
    }
}
