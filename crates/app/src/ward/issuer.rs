//! Under which public URL a database is served: one, at all nodes. Cookies, tokens and links carry it.

use super::nodes::watched;
use crate::{App, Fault};
use rules::{Span, Time};
use std::sync::{Mutex, MutexGuard, PoisonError};
use store::tables::ask;
use store::tables::realms::{Issuer, note_issuer};

/// For so long another public URL is told of after it was seen.
const TOLD: Span = Span::minutes(10);

/// The public URL that another node gave to the database, and when that was seen last.
#[derive(Default)]
pub(crate) struct Elsewhere(Mutex<Option<(String, Time)>>);

impl Elsewhere {
    /// Whether it is news.
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
    /// Notes where the server is reached, which only a server knows: whoever opens its database for a moment may have read
    /// another configuration, or none. To be done before [`App::meet`], too: who hears of this node reads this one.
    pub async fn note_issuer(&self) -> Result<(), Fault> {
        let note = note_issuer(&self.realm.id, &self.realm.issuer);
        let touched = self.below().commit(vec![note]).await?;
        if touched.last().is_some_and(|rows| *rows > 0) {
            tracing::warn!(issuer = self.realm.issuer, "the issuer has changed: applications must be told");
        }
        Ok(())
    }

    /// Why this node must not serve: others that run serve the same database under another public URL, and would answer half of
    /// what is meant for this one with 421. To be asked before [`App::meet`], with which a node says that it is there: those that
    /// are started together under a new URL would take one another for such. It takes some seconds where the URL has changed.
    pub async fn served_elsewhere(&self) -> Result<Option<String>, Fault> {
        self.served_elsewhere_by(watched()).await
    }

    /// The same, by those that are heard in the course of this.
    pub(super) async fn served_elsewhere_by(&self, watched: impl Future<Output = ()>) -> Result<Option<String>, Fault> {
        if self.noted_elsewhere().await?.is_none() {
            return Ok(None);
        }
        let others = self.others_heard(watched).await?;
        // One that came meanwhile may have come with the same.
        let (Some(node), Some(noted)) = (others.first(), self.noted_elsewhere().await?) else { return Ok(None) };
        Ok(Some(format!(
            "node {node} serves this database as {noted}, and this one would as {}: give this one the same public_url; or, to change it, \
             stop all nodes first (one that has stopped just now is not heard any more after ten seconds: start this one again)",
            self.realm.issuer
        )))
    }

    /// The public URL that was noted last, where it is not this node's. A file has one server.
    async fn noted_elsewhere(&self) -> Result<Option<String>, Fault> {
        let below = &**self.below();
        if below.answering().is_none() {
            return Ok(None);
        }
        let noted = ask(below, &self.realm.id, Issuer).await?;
        Ok(noted.filter(|noted| *noted != self.realm.issuer))
    }

    /// Looks whether somebody else has noted another public URL since, and puts this node's back: where both run, both see it.
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

    /// That this database is served under another public URL, too, where that was seen a short time ago.
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
