//! In which request something is done, so that the audit log can say so.

use std::future::Future;

tokio::task_local! {
    static REQUEST: String;
}

/// Does `work` as part of the request of that id.
pub async fn within<F: Future>(request: String, work: F) -> F::Output {
    REQUEST.scope(request, work).await
}

/// The request of which this is a part; `None` in the background.
pub(crate) fn request() -> Option<String> {
    REQUEST.try_with(Clone::clone).ok()
}
