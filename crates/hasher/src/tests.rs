//! The pool and the gate together, with a kernel that does as it is told.

use std::{
    future::Future,
    num::NonZeroUsize,
    pin::Pin,
    sync::{Arc, Condvar, Mutex},
    task::{Context, Poll, Waker},
    time::{Duration, Instant},
};

use zeroize::Zeroizing;

use crate::{
    FairKey, Hasher, Pepper, Policy, Refusal, Settings, Stored, Verified,
    arena::{Arena, Fault, Kernel},
    job::{Input, Kind, Tag},
    pepper::KeyId,
};

const SALT: [u8; 16] = [5; 16];
/// One pass over this much is expected to take a millisecond before anything was measured.
const MILLISECOND: u32 = 2500;

/// What the test and all kernels of a pool share.
#[derive(Default)]
struct Stage {
    scene: Mutex<Scene>,
    changed: Condvar,
}

#[derive(Default)]
struct Scene {
    /// How many jobs may still end; `None` lets all end.
    permits: Option<usize>,
    /// Passwords in the order in which they began.
    begun: Vec<String>,
    memory: u64,
    peak: u64,
}

/// Holds each job until the stage lets it end. The password tells it to panic or to fail.
struct Actor {
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
    fn tag(&mut self, kind: Kind, input: &Input) -> Result<Tag, Fault> {
        self.hold(self.held.max(kind.memory()));
        let mut scene = self.stage.scene.lock().unwrap();
        scene.begun.push(String::from_utf8_lossy(&input.password).into_owned());
        while scene.permits == Some(0) {
            scene = self.stage.changed.wait(scene).unwrap();
        }
        if let Some(permits) = &mut scene.permits {
            *permits -= 1;
        }
        drop(scene);
        match &input.password[..] {
            b"panic" => panic!("as the test asked"),
            b"fail" => Err(Fault),
            _ => Ok(Zeroizing::new(vec![0; input.tag])),
        }
    }

    fn release(&mut self) {
        self.hold(0);
    }
}

impl Stage {
    fn closed() -> Arc<Self> {
        let stage = Stage::default();
        stage.scene.lock().unwrap().permits = Some(0);
        Arc::new(stage)
    }
    fn open(&self) {
        self.scene.lock().unwrap().permits = None;
        self.changed.notify_all();
    }
    fn hasher(self: &Arc<Self>, settings: Settings) -> Hasher {
        let stage = self.clone();
        Hasher::start_with(settings, move || Actor { stage: stage.clone(), held: 0 }).unwrap()
    }
    fn begun(&self) -> Vec<String> {
        self.scene.lock().unwrap().begun.clone()
    }
    fn until(&self, what: &str, mut come: impl FnMut() -> bool) {
        let begun = Instant::now();
        while !come() {
            assert!(begun.elapsed() < Duration::from_secs(10), "never happened: {what}");
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// One thread, jobs of a millisecond, a waiting budget of ten.
fn narrow() -> Settings {
    Settings {
        threads: NonZeroUsize::new(1),
        max_wait: Duration::from_millis(10),
        policy: Policy::new(MILLISECOND, 1, 1).unwrap(),
        ..Settings::default()
    }
}

fn key(tenant: &str, host: u8) -> FairKey {
    FairKey::new(tenant, [192, 0, 2, host].into())
}

type Begun<T> = Pin<Box<dyn Future<Output = T>>>;
type Hashing = Begun<Result<String, Refusal>>;

/// Polls once, so that what was asked is in the queue, or answered, when this returns.
fn begin<T: 'static>(future: impl Future<Output = T> + 'static) -> Begun<T> {
    let mut future: Begun<T> = Box::pin(future);
    match now(&mut future) {
        Some(done) => Box::pin(std::future::ready(done)),
        None => future,
    }
}

/// The answer, if there is one already.
fn now<T>(future: &mut Begun<T>) -> Option<T> {
    match future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(done) => Some(done),
        Poll::Pending => None,
    }
}

fn ask(hasher: &Hasher, key: FairKey, password: &str) -> Hashing {
    let (hasher, password) = (hasher.clone(), password.to_owned());
    begin(async move { hasher.hash(&key, password.as_bytes(), SALT).await })
}

fn verify(hasher: &Hasher, key: FairKey, memory: u32) -> Begun<Result<Verified, Refusal>> {
    let text = format!("$argon2id$v=19$m={memory},t=1,p=1$AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAA");
    let (hasher, stored) = (hasher.clone(), text.parse::<Stored>().unwrap());
    begin(async move { hasher.verify(&key, &stored, b"any").await })
}

/// Occupies the one thread.
fn occupy(stage: &Stage, hasher: &Hasher) -> Hashing {
    let first = ask(hasher, key("first", 1), "first");
    stage.until("the first job runs", || hasher.state().running == 1);
    // By then its expected millisecond is over, and only what waits counts.
    std::thread::sleep(Duration::from_millis(2));
    first
}

#[tokio::test]
async fn past_the_budget_the_answer_is_busy_at_once() {
    let stage = Stage::closed();
    let hasher = stage.hasher(narrow());
    let first = occupy(&stage, &hasher);
    let mut flood: Vec<_> = (0..30).map(|_| ask(&hasher, key("main", 1), "flood")).collect();
    let refused: Vec<_> = flood.iter_mut().filter_map(now).collect();
    assert_eq!(refused.len(), 20);
    for refusal in refused {
        let Err(Refusal::Busy { retry_after }) = refusal else { panic!("{refusal:?}") };
        assert_eq!(retry_after, Duration::from_millis(10));
    }
    let state = hasher.state();
    assert_eq!((state.waiting, state.running, state.refused_total), (10, 1, 20));
    assert_eq!(state.expected_wait, Duration::from_millis(10));
    assert_eq!((state.threads, state.mean_cost), (1, Duration::from_millis(1)));
    stage.open();
    assert!(first.await.is_ok());
    for admitted in flood.into_iter().take(10) {
        assert!(admitted.await.is_ok());
    }
    assert_eq!(hasher.state().done_total, 11);
}

#[tokio::test]
async fn a_flood_gives_room_to_a_newcomer_who_is_next() {
    let stage = Stage::closed();
    let hasher = stage.hasher(narrow());
    let first = occupy(&stage, &hasher);
    let mut flood: Vec<_> = (0..10).map(|n| ask(&hasher, key("noisy", n), "noisy")).collect();
    assert!(flood.iter_mut().all(|job| now(job).is_none()));
    let quiet = ask(&hasher, key("quiet", 1), "quiet");
    let neighbour = ask(&hasher, key("noisy", 77), "neighbour");
    let state = hasher.state();
    assert_eq!((state.waiting, state.refused_total), (10, 2), "one of the flood, and the neighbour in the same tenant");
    stage.open();
    assert!(matches!(neighbour.await, Err(Refusal::Busy { .. })));
    assert!(quiet.await.is_ok() && first.await.is_ok());
    let mut served = 0;
    for job in flood {
        served += usize::from(job.await.is_ok());
    }
    assert_eq!(served, 9);
    let place = stage.begun().iter().position(|password| password == "quiet");
    assert!(place.unwrap() <= 2, "{:?}", stage.begun());
}

#[tokio::test]
async fn an_idle_thread_admits_what_ever_the_budget() {
    let stage = Stage::closed();
    let hasher = stage.hasher(Settings { max_wait: Duration::ZERO, ..narrow() });
    let first = ask(&hasher, key("main", 1), "first");
    assert!(matches!(ask(&hasher, key("main", 1), "second").await, Err(Refusal::Busy { .. })));
    stage.open();
    assert!(first.await.is_ok());
    assert!(ask(&hasher, key("main", 1), "third").await.is_ok());
}

#[tokio::test]
async fn who_goes_away_leaves_the_queue() {
    let stage = Stage::closed();
    let hasher = stage.hasher(narrow());
    let first = occupy(&stage, &hasher);
    let gone: Vec<_> = (0..5).map(|_| ask(&hasher, key("main", 1), "gone")).collect();
    let stays = ask(&hasher, key("main", 1), "stays");
    drop(gone);
    let state = hasher.state();
    assert_eq!((state.waiting, state.withdrawn_total), (1, 5));
    stage.open();
    assert!(first.await.is_ok() && stays.await.is_ok());
    assert_eq!(stage.begun(), ["first", "stays"]);
}

#[tokio::test]
async fn a_panic_ends_the_job_and_not_the_pool() {
    let stage = Arc::new(Stage::default());
    let hasher = stage.hasher(narrow());
    for password in ["panic", "fail"] {
        assert_eq!(ask(&hasher, key("main", 1), password).await, Err(Refusal::Failed), "{password}");
        assert_eq!(hasher.state().memory, 0, "memory of a failed job is not kept");
        assert!(ask(&hasher, key("main", 1), "fine").await.is_ok());
    }
    assert_eq!(hasher.state().running, 0);
}

#[tokio::test]
async fn stop_finishes_what_runs_and_refuses_what_waits() {
    let stage = Stage::closed();
    let hasher = stage.hasher(narrow());
    let runs = occupy(&stage, &hasher);
    let waits = ask(&hasher, key("main", 1), "waits");
    let stopper = hasher.clone();
    let mut stopping = begin(async move { stopper.stop().await });
    assert!(now(&mut stopping).is_none());
    assert_eq!(waits.await, Err(Refusal::Stopped));
    assert_eq!(ask(&hasher, key("main", 1), "comes").await, Err(Refusal::Stopped));
    stage.open();
    assert!(runs.await.is_ok());
    stopping.await;
    hasher.stop().await;
    assert_eq!(stage.begun(), ["first"]);
}

#[tokio::test]
async fn the_last_clone_ends_the_threads() {
    let stage = Arc::new(Stage::default());
    let hasher = stage.hasher(narrow());
    let other = hasher.clone();
    drop(hasher);
    assert!(ask(&other, key("main", 1), "still").await.is_ok());
    drop(other);
    // Each thread holds the stage through its kernel.
    stage.until("the threads are gone", || Arc::strong_count(&stage) == 1);
}

#[tokio::test]
async fn jobs_of_any_size_stay_under_the_ceiling_and_all_end() {
    const CEILING: u64 = 4096;
    let stage = Arc::new(Stage::default());
    let hasher = stage.hasher(Settings {
        threads: NonZeroUsize::new(4),
        memory: Some(CEILING * 1024),
        max_wait: Duration::from_secs(60),
        policy: Policy::new(1024, 1, 1).unwrap(),
        ..Settings::default()
    });
    assert_eq!(hasher.state().threads, 4);
    let sizes = [8, 1024, 4096, 64, 2048, 3000, 1024, 16, 4000, 1024];
    for round in 0..20 {
        let jobs: Vec<_> = sizes.iter().map(|&memory| verify(&hasher, key("main", round), memory)).collect();
        for job in jobs {
            let done = tokio::time::timeout(Duration::from_secs(10), job).await;
            assert_eq!(done.expect("stuck"), Ok(Verified { ok: true, rehash: true }));
        }
    }
    let scene = stage.scene.lock().unwrap();
    assert!(scene.peak <= CEILING, "{}", scene.peak);
    assert!(scene.peak > 3000);
}

#[tokio::test]
async fn a_thread_does_not_keep_from_another_what_it_needs_no_more() {
    let stage = Arc::new(Stage::default());
    let memory = Some(4 << 20);
    let policy = Policy::new(1024, 1, 1).unwrap();
    let threads = NonZeroUsize::new(2);
    let hasher = stage.hasher(Settings { threads, memory, policy, max_wait: Duration::from_secs(60), ..narrow() });
    assert!(verify(&hasher, key("main", 1), 4000).await.is_ok());
    stage.scene.lock().unwrap().permits = Some(0);
    let jobs: Vec<_> = (0..500).map(|_| verify(&hasher, key("main", 1), 1024)).collect();
    // The thread that holds almost everything may run some jobs before the other one looks for memory.
    stage.until("both threads run", || {
        let both = hasher.state().running == 2;
        if !both {
            stage.scene.lock().unwrap().permits = Some(1);
            stage.changed.notify_all();
        }
        both
    });
    assert_eq!(hasher.state().memory, 2 << 20);
    stage.open();
    for job in jobs {
        assert!(job.await.is_ok());
    }
}

#[tokio::test]
async fn an_idle_pool_gives_its_memory_back() {
    let idle = Duration::from_millis(50);
    let settings = Settings { idle, threads: NonZeroUsize::new(2), ..Settings::default() };
    let hasher = Hasher::start_with(settings, Arena::default).unwrap();
    assert!(ask(&hasher, key("main", 1), "password").await.is_ok());
    assert_eq!(hasher.state().memory, 19_456 * 1024);
    Stage::default().until("the memory is given back", || hasher.state().memory == 0);
    assert!(ask(&hasher, key("main", 1), "password").await.is_ok());
}

#[tokio::test]
async fn what_can_never_be_hashed_is_said_so() {
    let stage = Arc::new(Stage::default());
    let pepper = Pepper::new(KeyId::new(b"k1").unwrap(), [1; 32]);
    let settings = Settings { memory: Some(4 << 20), peppers: vec![pepper], ..narrow() };
    let hasher = stage.hasher(settings);
    let verify = async |params: &str, password: &[u8]| {
        let text = format!("$argon2id$v=19${params}$AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAA");
        hasher.verify(&key("main", 1), &text.parse().unwrap(), password).await
    };
    assert!(matches!(verify("m=4097,t=1,p=1", b"x").await, Err(Refusal::Unsupported(_))));
    assert!(matches!(verify("m=64,t=1,p=1,keyid=azI", b"x").await, Err(Refusal::Unsupported(_))));
    assert!(matches!(verify("m=64,t=1,p=1", &[b'x'; 4097]).await, Err(Refusal::Unsupported(_))));
    assert_eq!(stage.begun().len(), 0);
    assert!(verify("m=64,t=1,p=1,keyid=azE", &[b'x'; 4096]).await.is_ok());
    assert!(verify("m=4096,t=1,p=1", b"").await.is_ok());
}

#[tokio::test]
async fn a_decoy_costs_the_same_and_is_never_right() {
    let stage = Arc::new(Stage::default());
    let hasher = stage.hasher(narrow());
    // This kernel answers the very tag that a decoy has.
    let verified = hasher.decoy(&key("main", 1), SALT, b"guess").await;
    assert_eq!(verified, Ok(Verified { ok: false, rehash: false }));
    assert_eq!(stage.begun(), ["guess"]);
    assert_eq!(hasher.state().done_total, 1);
    assert_eq!(hasher.state().memory, u64::from(MILLISECOND) * 1024);
}
