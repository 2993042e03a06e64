//! Where the driver breaks down.
//!
//! It panics over some of what a server may say, such as an auth switch to a way of signing in that it was built without. Whatever
//! answers on the database's port must not end who asked: that may be the task that everything else runs in.

use std::any::Any;
use std::panic::AssertUnwindSafe;

use futures_util::FutureExt;

/// What comes of work of the driver's; otherwise, in a sentence, how it broke down. The connection is no use any more then: whoever
/// calls closes it.
pub(super) async fn caught<T>(work: impl Future<Output = T>) -> Result<T, String> {
    AssertUnwindSafe(work).catch_unwind().await.map_err(|panic| {
        let what = said(panic.as_ref());
        format!("the database driver cannot do what the server asks for, or read what it says: {what}")
    })
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
}
