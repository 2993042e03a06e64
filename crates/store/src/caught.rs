//! Contains panics of the database driver and of the tasks that look after its connections.
//!
//! A driver panics at some server messages, such as a switch to an authentication method that it was built without.
//! Whatever answers on the database's port must not end the calling task, in which everything else may be running.

use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures_util::FutureExt;
use tokio::time::sleep;

/// Runs work of the driver, and returns its result or, if the driver panicked, a sentence that says how. After a panic
/// the connection is unusable, and the caller closes it.
pub(crate) async fn caught<T>(work: impl Future<Output = T>) -> Result<T, String> {
    AssertUnwindSafe(work).catch_unwind().await.map_err(|panic| {
        let what = said(panic.as_ref());
        format!("the database driver failed on what the server asked for or sent: {what}")
    })
}

/// The pause before work that panicked is started again, so that repeated panics leave the processor to others.
const REST: Duration = Duration::from_millis(250);

/// Runs work that lasts as long as the engine is open, and starts it again if it panics: nothing else would restart it,
/// and the work would be missing until the next start of the server.
pub(crate) async fn survive<W: Future<Output = ()>>(what: &'static str, mut begin: impl FnMut() -> W) {
    while let Err(panic) = AssertUnwindSafe(begin()).catch_unwind().await {
        tracing::error!(why = said(panic.as_ref()), "{what} panicked and is restarted");
        drop(panic);
        sleep(REST).await;
    }
}

fn said(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no reason given")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn who_breaks_down_says_why_and_ends_nobody_else() {
        // Red without catch_unwind: the panic ends the test itself.
        let word = String::from("it");
        let constant: Result<bool, String> =
            caught(async { if word.is_empty() { true } else { panic!("as it says") } }).await;
        let made: Result<bool, String> = caught(async { word.is_empty() || panic!("as {word} says") }).await;
        for said in [constant, made] {
            assert!(said.as_ref().is_err_and(|why| why.ends_with(": as it says")), "{said:?}");
        }
        assert_eq!(caught(async { 7 }).await, Ok(7));
    }

    #[tokio::test]
    async fn what_goes_on_is_begun_again_where_it_breaks_down() {
        // Red without catch_unwind in `survive`: nothing would look after the connection any more.
        let mut begun = 0;
        survive("work", || {
            begun += 1;
            let first = begun == 1;
            async move { assert!(!first, "it broke down") }
        })
        .await;
        assert_eq!(begun, 2, "again, and not once more when it has ended");
    }
}
