//! Loops that run until the process ends.

use std::convert::Infallible;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::Duration;
use tokio::runtime::Runtime;
use tokio::task::{JoinError, JoinSet};

/// Never ready. Resumes a panic of one of the tasks, which ends the process, so that its supervisor starts it anew. If
/// the process lived on, nobody would notice a loop that stands still.
pub async fn panic_of<T: 'static>(tasks: &mut JoinSet<T>) -> Infallible {
    while let Some(ended) = tasks.join_next().await {
        if let Err(error) = ended {
            resume_unwind(error.into_panic());
        }
    }
    std::future::pending().await
}

/// Logs the panic in which a task ended, if it did: it is one of many, and the others go on. `what` it was begins the
/// line.
pub fn tell_of_panic(ended: Result<(), JoinError>, what: &'static str) {
    if let Err(fault) = ended
        && fault.is_panic()
    {
        tracing::error!(%fault, "{what} ended in a panic");
    }
}

/// Forgets the tasks that have ended, as [`tell_of_panic`] does.
pub fn tell_of_ended(tasks: &mut JoinSet<()>, what: &'static str) {
    while let Some(ended) = tasks.try_join_next() {
        tell_of_panic(ended, what);
    }
}

/// Waits until all tasks have ended.
pub async fn end_of(tasks: &mut JoinSet<()>, what: &'static str) {
    while let Some(ended) = tasks.join_next().await {
        tell_of_panic(ended, what);
    }
}

/// Does the work of a whole process, then abandons its threads. What still runs on other threads, such as a copy of the
/// database, or waits there for a disk, has had its time, however the work ended: nobody would restart a process that
/// has panicked and waits for them.
pub fn run_out<T>(runtime: Runtime, work: impl Future<Output = T>) -> T {
    let ended = catch_unwind(AssertUnwindSafe(|| runtime.block_on(work)));
    runtime.shutdown_timeout(Duration::from_secs(1));
    ended.unwrap_or_else(|panic| resume_unwind(panic))
}

/// Runs work that is meant to break down, in a runtime without a clock: asking for the time panics. The run is bounded,
/// so that work that does not break down ends, too.
#[cfg(test)]
pub fn without_time<T>(work: impl Future<Output = T>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().unwrap();
    runtime.block_on(async {
        let mut work = std::pin::pin!(work);
        for _ in 0..1000 {
            tokio::select! {
                biased;
                _ = &mut work => return,
                () = tokio::task::yield_now() => {}
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::pending;

    #[test]
    fn what_waits_for_a_disk_keeps_no_process_alive_that_broke_down() {
        // red without catch_unwind in run_out: the runtime would be dropped, and wait for the thread.
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let (over, waits) = std::sync::mpsc::channel::<()>();
        let work = async move {
            drop(tokio::task::spawn_blocking(move || waits.recv()));
            assert!(std::hint::black_box(false), "as it says");
        };
        let ended = catch_unwind(AssertUnwindSafe(|| run_out(runtime, work)));
        assert_eq!(ended.unwrap_err().downcast_ref::<&str>(), Some(&"as it says"));
        drop(over);
    }

    #[test]
    fn one_of_many_that_panics_is_told_of_and_the_others_are_waited_for() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let lines = crate::logs::tests::said(|| {
            runtime.block_on(async {
                let mut tasks = JoinSet::new();
                tasks.spawn(async {});
                tasks.spawn(async { assert!(std::hint::black_box(false), "as it says") });
                tasks.spawn(pending()).abort();
                end_of(&mut tasks, "a guest").await;
                assert!(tasks.is_empty());
            });
        });
        assert!(lines.len() == 1 && lines[0].contains("a guest ended in a panic"), "{lines:?}");
    }

    #[test]
    #[should_panic(expected = "timers are disabled")]
    fn a_loop_that_panics_beside_others_is_heard() {
        // red where the error of `join_next` is ignored.
        without_time(async {
            let mut loops = JoinSet::new();
            loops.spawn(async {});
            loops.spawn(pending());
            loops.spawn(async { tokio::time::sleep(std::time::Duration::ZERO).await });
            panic_of(&mut loops).await
        });
    }
}
