//! When sessions were last used. No request waits for that: uses are kept in memory, and those of one second are
//! written as one batch. A node that is killed forgets that second.

use crate::browser::Browser;
use crate::{App, Fault, entropy};
use rules::decision::Change;
use rules::id::SessionId;
use rules::login::session::Session;
use rules::people::User;
use rules::{Decision, Span, Time};
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use store::engine::SENT_AT_ONCE;

/// Between two batches.
const EVERY: Duration = Duration::from_secs(1);
/// A session that would expire this soon does not wait for the next batch.
const SOON: Span = Span::seconds(10);

/// Uses that are not written yet, in order, so that two nodes never wait for each other's rows.
#[derive(Default)]
pub(crate) struct Uses(Mutex<BTreeMap<SessionId, Time>>);

impl Uses {
    fn note(&self, session: &SessionId, at: Time) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(session.clone(), at);
    }

    fn take(&self) -> Vec<Change> {
        let mut noted = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let first = std::iter::from_fn(|| noted.pop_first()).take(SENT_AT_ONCE);
        first.map(|(session, at)| Change::TouchSession { session, at }).collect()
    }
}

impl App {
    /// Returns the session that a browser's cookie proves, and its user, to be used: the use is noted when it is due.
    pub async fn session_in_use(&self, browser: &Browser) -> Result<Option<(Session, User)>, Fault> {
        let found = self.session(browser).await?;
        if let Some((session, _)) = &found {
            self.note_use(session).await;
        }
        Ok(found)
    }

    /// Notes that a session is used, if no other commit could say so: at most as often as the realm wants.
    pub async fn note_use(&self, session: &Session) {
        let (settings, now) = (&self.realm.settings, self.clock.now());
        if session.touch(settings, now).is_none() {
            return;
        }
        if !session.ends(settings).has_come(now + SOON) {
            return self.uses.note(&session.id, now);
        }
        let noted = self
            .settle(|now, _| async move { Ok(Decision::<(), ()>::accept(()).with(session.touch(settings, now))) })
            .await;
        if let Err(fault) = noted {
            tracing::debug!(%fault, "the use of a session was not noted");
        }
    }

    /// Writes what was noted so far. A use that cannot be written is forgotten: the session's next use is noted again.
    pub(crate) async fn write_uses(&self) -> Result<(), Fault> {
        loop {
            let uses = self.uses.take();
            if uses.is_empty() {
                return Ok(());
            }
            self.commit(uses, self.clock.now(), &entropy::fresh()?).await?;
        }
    }

    /// Writes uses until it is dropped.
    pub(crate) async fn keep_uses(&self) {
        loop {
            tokio::time::sleep(EVERY).await;
            if let Err(fault) = self.write_uses().await {
                tracing::debug!(%fault, "session use was not saved");
            }
        }
    }
}
