//! `portiere profile`: where the server's CPU time goes, and where its requests wait, for some seconds while it runs.
//!
//! Owns samples and their names, the tree, what requests waited for meanwhile, and the picture of it all. Between
//! profiles it costs nothing. One profile is taken at a time, and it ends when its caller goes.

mod draw;
mod elf;
mod names;
mod sampler;
mod symbols;
mod threads;
mod tree;
mod waits;

pub use draw::picture;
pub use threads::RUNTIME;
pub use tree::Node;
pub use waits::{Queue, Route};

use crate::http::Site;
use crate::metrics::Process;
use sampler::{Sampler, Seen};
use serde::{Deserialize, Serialize};
use std::time::{Duration, Instant};
use symbols::{Loaded, UNKNOWN};
use threads::Threads;
use tokio::sync::{Mutex, MutexGuard};
use tree::Stack;
use waits::Queues;

/// Samples per second of CPU time: few enough to cost nothing, and out of step with events every hundredth second.
pub const FREQUENCY: u32 = 99;
/// The pause between two looks at the queues.
const LOOK: Duration = Duration::from_millis(100);

/// Held by the profile that is being taken: there is one timer for the whole process.
static ONE: Mutex<()> = Mutex::const_new(());

/// A profile that is being taken. Whatever ends it stops the timer before the next one may begin.
struct Running {
    sampler: Sampler,
    loaded: Loaded,
    _one: MutexGuard<'static, ()>,
}

/// What was asked for.
#[derive(Clone, Copy, Debug)]
pub struct Asked {
    /// For how long.
    pub time: Duration,
    /// Samples per second of CPU time.
    pub frequency: u32,
}

/// The result of a profile. This is what `--json` prints.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Profile {
    /// The version of the server.
    pub version: String,
    /// When it was begun, in milliseconds since 1970.
    pub began: i64,
    /// How long it took.
    pub seconds: f64,
    /// Samples per second of CPU time.
    pub frequency: u32,
    /// The cores that the server may use.
    pub cores: usize,
    /// Seconds of CPU time that the process used meanwhile; 0 if the system does not tell.
    pub cpu_seconds: f64,
    /// The number of samples. The kernel takes fewer than it should if many cores are busy: the shares stay right.
    pub samples: u64,
    /// The flame graph: each node after the node that called it.
    pub nodes: Vec<Node>,
    /// Where requests waited, by route.
    pub routes: Vec<Route>,
    /// How long the queues were.
    pub queues: Vec<Queue>,
}

/// Why there is no profile.
#[derive(Debug, PartialEq, Eq)]
pub enum Untaken {
    /// Another one is being taken.
    Busy,
    /// Anything else, in one line.
    Failed(String),
}

impl From<String> for Untaken {
    fn from(why: String) -> Self {
        Untaken::Failed(why)
    }
}

/// Takes a profile of this process. If the future is dropped before it is done, the profile ends at once.
pub async fn take(asked: Asked, site: &Site) -> Result<Profile, Untaken> {
    let one = ONE.try_lock().map_err(|_| Untaken::Busy)?;
    let running = apart(move || Running::start(asked.frequency, one)).await?;
    let (began, since, cpu) = (site.app.clock.now(), Instant::now(), Process::now());
    let before = site.requests.spent();
    let queues = watch(asked.time, site).await;
    let seconds = since.elapsed().as_secs_f64();
    let cpu = cpu.zip(Process::now()).map_or(0.0, |(then, now)| now.cpu - then.cpu);
    let routes = waits::between(&before, site.requests.spent());
    let nodes = apart(move || running.end()).await?;
    Ok(Profile {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        began: began.0,
        seconds,
        frequency: asked.frequency,
        cores: std::thread::available_parallelism().map_or(1, |cores| cores.get()),
        cpu_seconds: cpu,
        samples: nodes.iter().filter(|node| node.parent.is_none()).map(|node| node.total).sum(),
        nodes,
        routes,
        queues,
    })
}

/// Works on a thread of its own: this reads files, for which the network threads have no time.
async fn apart<T: Send + 'static>(work: impl FnOnce() -> Result<T, String> + Send + 'static) -> Result<T, String> {
    tokio::task::spawn_blocking(work).await.map_err(|error| format!("the profile broke off: {error}"))?
}

/// Waits for the time to pass, and looks at the queues meanwhile.
async fn watch(time: Duration, site: &Site) -> Vec<Queue> {
    let end = tokio::time::Instant::now() + time;
    let mut queues = Queues::default();
    while tokio::time::Instant::now() < end {
        queues.look(site);
        tokio::time::sleep_until(end.min(tokio::time::Instant::now() + LOOK)).await;
    }
    queues.seen()
}

impl Running {
    fn start(frequency: u32, one: MutexGuard<'static, ()>) -> Result<Self, String> {
        if !sampler::HERE {
            return Err(sampler::ELSEWHERE.into());
        }
        let loaded = Loaded::now()?;
        Ok(Running { loaded, sampler: Sampler::start(frequency)?, _one: one })
    }

    /// Stops the timer, then names what was seen.
    fn end(self) -> Result<Vec<Node>, String> {
        let Running { sampler, mut loaded, _one } = self;
        let seen = sampler.seen()?;
        drop(sampler);
        for address in seen.iter().flat_map(Seen::looked_up) {
            loaded.learn(address);
        }
        let named = |stack: &Seen| stack.looked_up().map(|address| loaded.name(address)).collect::<Vec<_>>();
        let mut threads = Threads::now();
        seen.iter().for_each(|stack| threads.learn(stack.id, &named(stack)));
        Ok(tree::merge(seen.iter().map(|stack| {
            let (outside, functions) = outside(stack.cut, named(stack));
            Stack { thread: threads.kind(&stack.thread, stack.id), functions, times: stack.times, outside }
        })))
    }
}

/// Returns what stands for the outermost functions if they are missing, and those that are there. Before a stack breaks
/// off, the walk has often taken something else for an address.
fn outside(cut: bool, mut functions: Vec<&str>) -> (Option<&'static str>, Vec<&str>) {
    if cut {
        return (Some(tree::DEEPER), functions);
    }
    if threads::is_whole(&functions) {
        return (None, functions);
    }
    functions.drain(..functions.iter().take_while(|name| **name == UNKNOWN).count());
    (Some(tree::LOST), functions)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stack_that_breaks_off_says_so() {
        let whole = ["std::sys::thread::unix::Thread::new::thread_start", "a", UNKNOWN];
        assert_eq!(outside(false, whole.to_vec()), (None, whole.to_vec()));
        assert_eq!(outside(true, whole[1..].to_vec()), (Some(tree::DEEPER), whole[1..].to_vec()));
        let lost = outside(false, vec![UNKNOWN, UNKNOWN, "bn_powerx5", "mulx4x_internal"]);
        assert_eq!(lost, (Some(tree::LOST), vec!["bn_powerx5", "mulx4x_internal"]));
        assert_eq!(outside(false, vec!["bn_powerx5"]), (Some(tree::LOST), vec!["bn_powerx5"]), "both are one box");
    }
}
