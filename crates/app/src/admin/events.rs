//! Reading the audit log.

use crate::{App, Fault};
use store::tables::events::{Before, Line};

impl App {
    /// The newest `limit` lines before the line `before`; empty: from the newest on.
    pub async fn events(&self, before: &str, limit: i64) -> Result<Vec<Line>, Fault> {
        self.ask(Before { before, limit }).await
    }
}
