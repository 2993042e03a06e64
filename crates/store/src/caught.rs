//! Where the driver breaks down, or what looks after its connections.
//!
//! A driver panics over some of what a server may say, such as an auth switch to a way of signing in that it was built without.
//! Whatever answers on the database's port must not end who asked: that may be the task that everything else runs in.

use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures_util::FutureExt;
use tokio::time::sleep;

/// What comes of work of the driver's; otherwise, in a sentence, how it broke down. The connection is no use any more then: whoever
/// calls closes it.
pub(crate) async fn caught<T>(work: impl Future<Output = T>) -> Result<T, String> {
    AssertUnwindSafe(work).catch_unwind().await.map_err(|panic| {
        let what = said(panic.as_ref());
        format!("the database driver cannot do what the server asks for, or read what it says: {what}")
    })
}

/// How long work that broke down is left alone: should it do so again and again, it leaves the processor to others.
const REST: Duration = Duration::from_millis(250);

/// Does work that goes on for as long as the engine is open, and begins it again where it breaks down: nobody else would, and what
/// it kept would be missing until the next start.
pub(crate) async fn survive<W: Future<Output = ()>>(what: &'static str, mut begin: impl FnMut() -> W) {
    while let Err(panic) = AssertUnwindSafe(begin()).catch_unwind().await {
        tracing::error!(why = said(panic.as_ref()), "{what} broke down, and is begun again");
        drop(panic);
        sleep(REST).await;
    }
}

fn said(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("it does not say why")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn who_breaks_down_says_why_and_ends_nobody_else() {
        // red without catch_unwind: the test is the one that ends.
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
        // red without catch_unwind in `survive`: a connection that nobody keeps any more.
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
