//! Waiting, for every test program of this folder.

use std::time::Duration;

/// Waits until something holds, which it has to in the end, however busy the machine is.
pub async fn until(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let waited = async {
        while !holds().await {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), waited).await.unwrap_or_else(|_| panic!("never: {what}"));
}
