//! A kernel that does as it is told, a clock that moves when it is told, and the state that both share with the test.

use std::{
    collections::HashMap,
    future::Future,
    num::NonZeroUsize,
    pin::Pin,
    sync::{
        Arc, Condvar, Mutex,
        atomic::{AtomicU8, AtomicU64, Ordering},
    },
    task::{Context, Poll, Waker},
    time::{Duration, Instant},
};

use zeroize::Zeroizing;

use crate::{
    FairKey, Hasher, Policy, Refusal, Settings,
    argon2::Cost,
    job::{Input, Kind, Tag},
    native::{Fault, Kernel},
};

pub(super) const SALT: [u8; 16] = [5; 16];
/// One pass over this many KiB is expected to take a millisecond before anything was measured.
pub(super) const MILLISECOND: u32 = 2500;

/// What the test and all kernels of a pool share.
#[derive(Default)]
pub(super) struct Stage {
    pub(super) scene: Mutex<Scene>,
    pub(super) changed: Condvar,
    skipped: AtomicU64,
    /// Where the next hashing thread that passes dies: a bit for each [`Spot`].
    deadly: AtomicU8,
}

/// Where a thread can die outside of a job.
#[derive(Clone, Copy, Debug)]
pub(super) enum Spot {
    /// Between a batch and its entry in the books.
    Kernel = 1,
    /// In the books, while they are locked.
    Books = 2,
}

#[derive(Default)]
pub(super) struct Scene {
    /// How many batches may still end; `None` lets all end.
    pub(super) permits: Option<usize>,
    /// The batches in the order in which they began.
    pub(super) begun: Vec<(Kind, Vec<String>)>,
    /// Memory that the system gives to one thread, in KiB; `None` is any amount.
    pub(super) given: Option<u64>,
    pub(super) memory: u64,
    pub(super) peak: u64,
}

/// Holds each batch until the stage lets it end. A password may tell it to panic or to fail.
pub(super) struct Actor {
    stage: Arc<Stage>,
    held: u64,
}

impl Actor {
    fn hold(&mut self, memory: u64) {
        let mut scene = self.stage.scene.lock().unwrap();
        scene.memory = scene.memory - self.held + memory;
        scene.peak = scene.peak.max(scene.memory);
        self.held = memory;
    }
}

impl Kernel for Actor {
    fn tags(&mut self, kind: Kind, inputs: &[Input]) -> Result<Vec<Tag>, Fault> {
        self.hold(kind.holds(inputs.len(), self.held));
        let names: Vec<_> = inputs.iter().map(name).collect();
        let mut scene = self.stage.scene.lock().unwrap();
        scene.begun.push((kind, names.clone()));
        while scene.permits == Some(0) {
            scene = self.stage.changed.wait(scene).unwrap();
        }
        if let Some(permits) = &mut scene.permits {
            *permits -= 1;
        }
        let refused = scene.given.is_some_and(|given| self.held > given);
        drop(scene);
        assert!(!names.iter().any(|name| name == "panic"), "as the test asked");
        if refused || names.iter().any(|name| name == "fail") {
            return Err(Fault);
        }
        Ok(vec![Zeroizing::new(vec![0; 32]); inputs.len()])
    }

    fn held(&self) -> u64 {
        self.stage.pass(Spot::Kernel);
        self.held
    }

    fn keep(&mut self, kib: u64) {
        self.hold(self.held.min(kib));
    }
}

impl Drop for Actor {
    fn drop(&mut self) {
        self.hold(0);
    }
}

/// The text of an input that a test made, or nothing.
fn name(input: &Input) -> String {
    match input {
        Input::Serial { password, .. } => String::from_utf8_lossy(password).into_owned(),
        Input::Argon2(_) | Input::Bcrypt(_) => String::new(),
    }
}

impl Stage {
    pub(super) fn open() -> Arc<Self> {
        Arc::default()
    }
    pub(super) fn closed() -> Arc<Self> {
        let stage = Stage::default();
        stage.scene.lock().unwrap().permits = Some(0);
        Arc::new(stage)
    }
    /// Lets this many batches end, or all.
    pub(super) fn permit(&self, batches: Option<usize>) {
        self.scene.lock().unwrap().permits = batches;
        self.changed.notify_all();
    }
    /// A pool on this stage, whose clock stands still until [`Stage::skip`].
    pub(super) fn hasher(self: &Arc<Self>, settings: Settings) -> Hasher {
        let (actors, clock, start) = (self.clone(), self.clone(), Instant::now());
        let now = move || {
            clock.pass(Spot::Books);
            start + Duration::from_millis(clock.skipped.load(Ordering::SeqCst))
        };
        Hasher::start_with(settings, Arc::new(now), move || Actor { stage: actors.clone(), held: 0 }).unwrap()
    }
    /// Makes the next hashing thread that passes this spot die.
    pub(super) fn kill(&self, spot: Spot) {
        self.deadly.fetch_or(spot as u8, Ordering::SeqCst);
    }
    fn pass(&self, spot: Spot) {
        let hashes = std::thread::current().name().is_some_and(|name| name.starts_with("hasher-"));
        let deadly = hashes && self.deadly.fetch_and(!(spot as u8), Ordering::SeqCst) & spot as u8 != 0;
        assert!(!deadly, "{spot:?}, as the test asked");
    }
    /// Moves the clock; the threads look at it.
    pub(super) fn skip(&self, hasher: &Hasher, time: Duration) {
        self.skipped.fetch_add(time.as_millis() as u64, Ordering::SeqCst);
        hasher.gate().tick();
    }
    /// All passwords in the order in which they began.
    pub(super) fn begun(&self) -> Vec<String> {
        self.batches().concat()
    }
    /// The passwords of each batch.
    pub(super) fn batches(&self) -> Vec<Vec<String>> {
        self.scene.lock().unwrap().begun.iter().map(|(_, names)| names.clone()).collect()
    }
    /// Occupies the one thread of a pool, with a job of a kind of its own that is expected to take no time.
    pub(super) fn occupy(&self, hasher: &Hasher) -> Hashing {
        let first = ask(hasher, key("first", 1), argon2(9), "first");
        until("the first job runs", || hasher.state().running == 1);
        first
    }
}

pub(super) fn until(what: &str, mut come: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !come() {
        assert!(begun.elapsed() < Duration::from_secs(60), "never happened: {what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// One thread, jobs of a millisecond, a waiting budget of ten.
pub(super) fn narrow() -> Settings {
    Settings {
        threads: NonZeroUsize::new(1),
        max_wait: Duration::from_millis(10),
        policy: Policy::weak(MILLISECOND, 1, 1).unwrap(),
        ..Settings::default()
    }
}

/// This many threads, and a long waiting budget.
pub(super) fn wide(threads: usize, memory: u64) -> Settings {
    let (threads, memory) = (NonZeroUsize::new(threads), Some(memory * 1024));
    Settings { threads, memory, max_wait: Duration::from_secs(60), policy: Policy::weak(8, 1, 1).unwrap(), ..narrow() }
}

pub(super) fn argon2(memory: u32) -> Kind {
    Kind::of_policy(Cost::new(memory, 1, 1).unwrap())
}

/// The kind of job that takes a millisecond.
pub(super) fn usual() -> Kind {
    argon2(MILLISECOND)
}

/// Tells the pool that three lanes are best for these kinds: three jobs together take as long as two in turn.
pub(super) fn three_lanes(hasher: &Hasher, kinds: &[Kind]) {
    let paces = [400.0, 400.0, 800.0 / 3.0, 500.0, 500.0].map(Some);
    hasher.gate().know(kinds.iter().map(|kind| ((*kind).into(), &paces[..])));
}

pub(super) fn key(tenant: &str, host: u8) -> FairKey {
    FairKey::new(tenant, [192, 0, 2, host].into())
}

pub(super) type Begun<T> = Pin<Box<dyn Future<Output = T>>>;
pub(super) type Hashing = Begun<Result<Tag, Refusal>>;

/// Polls once, so that the request is in the queue, or answered, when this returns.
pub(super) fn begin<T: 'static>(future: impl Future<Output = T> + 'static) -> Begun<T> {
    let mut future: Begun<T> = Box::pin(future);
    match now(&mut future) {
        Some(done) => Box::pin(std::future::ready(done)),
        None => future,
    }
}

/// The answer, if there is one already.
pub(super) fn now<T>(future: &mut Begun<T>) -> Option<T> {
    match future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(done) => Some(done),
        Poll::Pending => None,
    }
}

/// Asks for a job of this kind, whose input is a name that the stage can read.
pub(super) fn ask(hasher: &Hasher, key: FairKey, kind: Kind, name: &str) -> Hashing {
    let input = Input::Serial { password: Zeroizing::new(name.as_bytes().to_vec()), salt: Vec::new() };
    match hasher.gate().admit(&key, kind, input) {
        Ok(ticket) => begin(ticket.answer()),
        Err(refusal) => Box::pin(std::future::ready(Err(refusal))),
    }
}

/// How often each of these began.
pub(super) fn count(names: &[String]) -> HashMap<&str, usize> {
    names.iter().fold(HashMap::new(), |mut counts, name| {
        *counts.entry(name.as_str()).or_default() += 1;
        counts
    })
}
