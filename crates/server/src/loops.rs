//! Loops that run until the process ends.

use std::convert::Infallible;
use std::panic::resume_unwind;
use tokio::task::JoinSet;

/// Never ready. A panic of one of these tasks goes on here, and so ends the process: whoever watches over it starts it anew. A
/// loop that stands still in a process that lives would be missed by nobody.
pub async fn panic_of<T: 'static>(tasks: &mut JoinSet<T>) -> Infallible {
    while let Some(ended) = tasks.join_next().await {
        if let Err(error) = ended {
            resume_unwind(error.into_panic());
        }
    }
    std::future::pending().await
}

/// Runs what is to break down, in a runtime without a clock: whoever asks it for the time panics. Bounded, so that what does not
/// break down ends, too.
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
    #[should_panic(expected = "timers are disabled")]
    fn a_loop_that_panics_beside_others_is_heard() {
        // red where the error of `join_next` is passed over.
        without_time(async {
            let mut loops = JoinSet::new();
            loops.spawn(async {});
            loops.spawn(pending());
            loops.spawn(async { tokio::time::sleep(std::time::Duration::ZERO).await });
            panic_of(&mut loops).await
        });
    }
}
