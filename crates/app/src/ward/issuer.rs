//! The public URL under which a database is served: the same at all nodes. Cookies, tokens and links carry it.

use super::nodes::watched;
use crate::{App, Fault};
use rules::{Span, Time};
use std::sync::{Mutex, MutexGuard, PoisonError};
use store::tables::ask;
use store::tables::realms::{Issuer, note_issuer};

/// How long after it was last seen another public URL is reported.
const TOLD: Span = Span::minutes(10);

/// The public URL that another node gave to the database, and when it was last seen.
#[derive(Default)]
pub(crate) struct Elsewhere(Mutex<Option<(String, Time)>>);

impl Elsewhere {
    /// Notes a URL that was seen; returns whether it is news.
    fn saw(&self, issuer: &str, now: Time) -> bool {
        let before = self.held().replace((issuer.to_owned(), now));
        before.is_none_or(|(known, at)| known != issuer || now.since(at) > TOLD)
    }

    fn lately(&self, now: Time) -> Option<String> {
        self.held().as_ref().filter(|(_, at)| now.since(*at) <= TOLD).map(|(issuer, _)| issuer.clone())
    }

    fn held(&self) -> MutexGuard<'_, Option<(String, Time)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl App {
    /// Notes the server's URL, which only a server knows: a command that opens the database for a moment may have read
    /// another configuration, or none. To be called before [`App::meet`], too: a node that hears of this one reads it.
    pub async fn note_issuer(&self) -> Result<(), Fault> {
        let note = note_issuer(&self.realm.id, &self.realm.issuer);
        let touched = self.below().commit(vec![note]).await?;
        if touched.last().is_some_and(|rows| *rows > 0) {
            tracing::warn!(issuer = self.realm.issuer, "the issuer has changed: applications must be told");
        }
        Ok(())
    }

    /// Returns why this node must not serve: other running nodes serve the same database under another public URL, and
    /// would answer half of the requests for this one with 421. To be called before [`App::meet`], which reports this
    /// node: nodes started together under a new URL would take one another for such. Takes seconds if the URL has
    /// changed.
    pub async fn served_elsewhere(&self) -> Result<Option<String>, Fault> {
        self.served_elsewhere_by(watched()).await
    }

    /// The same, by the nodes that are heard while `watched` runs.
    pub(super) async fn served_elsewhere_by(&self, watched: impl Future<Output = ()>) -> Result<Option<String>, Fault> {
        if self.noted_elsewhere().await?.is_none() {
            return Ok(None);
        }
        let others = self.others_heard(watched).await?;
        // A node that came meanwhile may have come with the same URL.
        let (Some(node), Some(noted)) = (others.first(), self.noted_elsewhere().await?) else { return Ok(None) };
        Ok(Some(format!(
            "node {node} serves this database as {noted}, but public_url of this one is {}: give this one the same \
             public_url; or, to change it, stop all nodes first (a node that has just stopped still counts for ten \
             seconds: then start this one again)",
            self.realm.issuer
        )))
    }

    /// The public URL that was noted last, where it is not this node's. `None` over a file, which has one server.
    async fn noted_elsewhere(&self) -> Result<Option<String>, Fault> {
        let below = &**self.below();
        if below.answering().is_none() {
            return Ok(None);
        }
        let noted = ask(below, &self.realm.id, Issuer).await?;
        Ok(noted.filter(|noted| *noted != self.realm.issuer))
    }

    /// Checks whether another node has noted another public URL, and puts this node's back: if both run, both see it.
    pub(super) async fn mind_issuer(&self) {
        let Ok(Some(noted)) = self.ask(Issuer).await else { return };
        if noted == self.realm.issuer {
            return;
        }
        if self.elsewhere.saw(&noted, self.clock.now()) {
            tracing::warn!("{}", told(&noted));
        }
        if let Err(error) = self.engine.commit(vec![note_issuer(&self.realm.id, &self.realm.issuer)]).await {
            tracing::debug!(?error, "the public URL of this node could not be noted");
        }
    }

    /// Says that this database is also served under another public URL, if that was seen a short time ago.
    pub fn elsewhere(&self) -> Option<String> {
        self.elsewhere.lately(self.clock.now()).map(|noted| told(&noted))
    }
}

fn told(noted: &str) -> String {
    format!(
        "another node serves this database under another public_url, {noted}: requests that reach the wrong one of them are answered \
         with 421. Give all nodes the same (portiere node list says which there are)"
    )
}
