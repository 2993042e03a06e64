//! The server's own hashing pool, kept busy.

use hasher::{FairKey, Hasher, Settings, StartError};
use load::Refusal;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

/// A rate may take this many times as long as it should.
const LONGER: u32 = 20;

/// A pool whose threads all hash, at the server's niceness, until it is dropped.
pub struct Busy {
    hasher: Hasher,
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Busy {
    /// Starts a pool with twice as many passwords in flight as `lanes` on each thread need, in at most `memory` bytes.
    /// When this returns, the pool has found out how many are best side by side.
    ///
    /// # Errors
    /// [`Refusal::Failure`].
    pub fn start(lanes: usize, memory: u64) -> Result<Busy, Refusal> {
        let failed = |why: String| Refusal::Failure(format!("passwords cannot be hashed: {why}"));
        let settings = Settings { memory: Some(memory), max_wait: Duration::from_secs(60), ..Settings::default() };
        let hasher = Hasher::start(settings).map_err(|error: StartError| failed(error.to_string()))?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| failed(error.to_string()))?;
        runtime.block_on(hasher.calibrate());
        let over = Arc::new(AtomicBool::new(false));
        let (pool, ended) = (hasher.clone(), Arc::clone(&over));
        let at_once = 2 * lanes * hasher.state().threads;
        let work = move || runtime.block_on(keep_busy(&pool, &ended, at_once));
        let thread = thread::Builder::new().name("busy".to_owned()).spawn(work);
        let thread = thread.map_err(|error| failed(error.to_string()))?;
        Ok(Busy { hasher, over, thread: Some(thread) })
    }

    /// Returns hashes per second over `span`, or over a longer time if none was done in it: hashing threads are nice,
    /// and others may keep all cores busy.
    pub fn rate(&self, span: Duration) -> f64 {
        let before = self.hasher.state().done_total;
        let is_seen = |_: &u32| {
            thread::sleep(span);
            self.hasher.state().done_total > before
        };
        self.beside(|| (0..LONGER).find(is_seen)).1
    }

    /// Does `work`, and returns how many hashes per second were done beside it.
    pub fn beside<T>(&self, work: impl FnOnce() -> T) -> (T, f64) {
        let (before, begun) = (self.hasher.state().done_total, Instant::now());
        let result = work();
        (result, (self.hasher.state().done_total - before) as f64 / begun.elapsed().as_secs_f64())
    }

    /// Returns how many hashes each thread runs side by side.
    pub fn lanes(&self) -> usize {
        self.hasher.state().lanes
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        // A panic of that thread has been reported already.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

async fn keep_busy(hasher: &Hasher, over: &Arc<AtomicBool>, at_once: usize) {
    let mut running = JoinSet::new();
    for number in 0..at_once {
        let (hasher, over) = (hasher.clone(), Arc::clone(over));
        running.spawn(async move {
            let key = FairKey::new("capacity", IpAddr::V4(Ipv4Addr::LOCALHOST));
            while !over.load(Ordering::Relaxed) {
                if hasher.hash(&key, b"plum-Lantern-47-orbit", [number as u8; 16]).await.is_err() {
                    return;
                }
            }
        });
    }
    while running.join_next().await.is_some() {}
    hasher.stop().await;
}
