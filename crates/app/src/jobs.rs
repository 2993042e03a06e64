//! What is done in idle moments: expired rows are removed, old keys replaced. One node does it for all nodes, and
//! leaves it to another one when it ends.

use crate::complaint::Complaints;
use crate::{App, Fault, asked};
use rules::fresh::first_id;
use rules::{Span, Time};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use store::tables::codes::{self, Stretch};
use store::tables::leases;
use store::tables::sweep::{Bounds, step};

/// Rows of each kind that one batch removes.
const AT_ONCE: i64 = 200;
/// The same while requests wait: enough to keep up with what expires, since a flood may last.
const FEW: i64 = 20;
/// How long a device that goes on polling is told that its request has expired (RFC 8628 §3.5).
const POLLED_ON: Span = Span::hours(1);
/// How long an expired code that nobody redeemed is kept: longer than clocks of nodes may differ.
const UNUSED: Span = Span::minutes(10);
/// A node that begins looks for such codes among those of the last days; older ones go with the redeemed ones.
const LOOKED_BACK: Span = Span::days(2);
/// How many codes are looked at for each row that a batch may remove: most were redeemed, and stay.
const LOOKED_AT: i64 = 4;
/// The shortest rest between two batches.
const REST: Duration = Duration::from_millis(20);
/// A rest is this many times as long as the batch before it: requests have the database for most of the time, however
/// slow it is.
const RESTS: u32 = 4;
/// The same while requests wait.
const LONG_RESTS: u32 = 20;
/// Between two rounds.
const EVERY: Duration = Duration::from_secs(20);

/// How long one round sweeps, and how long it drops what is beyond the ceiling: the rest of the round waits for that,
/// and so does the lease, which has to be renewed.
const STRETCH: Duration = Duration::from_secs(20);

/// The job that one node does for all nodes.
const UPKEEP: &str = "upkeep";
/// How long old keys wait, at most, for a moment in which their successors keep nobody waiting.
const PUT_OFF: Span = Span::hours(6);
/// Whether requests wait at this moment. Work in idle moments gives way to them.
pub type Busy<'a> = &'a (dyn Fn() -> bool + Send + Sync);

/// What an operator chose for the upkeep.
#[derive(Clone, Copy, Debug)]
pub struct Upkeep {
    /// The age at which a signing key is replaced.
    pub keys: Span,
}

impl App {
    /// Removes what has expired, in small batches with rests between them, until there is little left: while requests
    /// wait, in smaller ones with longer rests. Returns how many rows were removed.
    pub async fn sweep(&self, busy: Busy<'_>) -> Result<u64, Fault> {
        Ok(self.sweep_for(Duration::MAX, busy).await?.gone)
    }

    /// The same, but stops once it has taken `stretch`.
    pub(crate) async fn sweep_for(&self, stretch: Duration, busy: Busy<'_>) -> Result<Swept, Fault> {
        let (settings, start) = (&self.realm.settings, Instant::now());
        let mut gone = 0;
        let (mut rows_left, mut codes_left) = (true, true);
        loop {
            let (now, began) = (self.clock.steady(), Instant::now());
            let bounds = Bounds {
                now,
                devices: now - POLLED_ON,
                sessions: now - settings.session_absolute - Span::days(1),
                families: now - settings.refresh_absolute - Span::days(1),
                strangers: now - self.books.terms().retention,
            };
            let (many, rests) = if busy() { (FEW, LONG_RESTS) } else { (AT_ONCE, RESTS) };
            if rows_left {
                let touched = self.engine.commit(step(&self.realm.id, &bounds, many)).await?;
                gone += touched.iter().sum::<u64>();
                rows_left = touched.iter().any(|rows| *rows >= many.unsigned_abs());
            }
            if codes_left {
                let unused = self.sweep_unused_codes(now, many * LOOKED_AT).await?;
                gone += unused.gone;
                codes_left = !unused.all;
            }
            if !rows_left && !codes_left {
                return Ok(Swept { gone, all: true });
            }
            tokio::time::sleep(REST.max(began.elapsed() * rests)).await;
            if start.elapsed() >= stretch {
                return Ok(Swept { gone, all: false });
            }
        }
    }

    /// Removes expired codes that nobody redeemed, among the next `limit` codes after those it looked at last. Their
    /// contents are as large as an application makes them, and a user can have one issued with every request.
    async fn sweep_unused_codes(&self, now: Time, limit: i64) -> Result<Swept, Fault> {
        let before = now - self.realm.settings.code_ttl - UNUSED;
        let after = self.unused.reached().clone().unwrap_or_else(|| first_id(before - LOOKED_BACK));
        let Some(Stretch { last, codes, unused }) = self.ask(codes::Next { after: &after, before, limit }).await?
        else {
            return Ok(Swept { gone: 0, all: true });
        };
        let mut gone = 0;
        if unused > 0 {
            let batch = vec![codes::drop_unused(&self.realm.id, (&after, &last), now)];
            gone = self.engine.commit(batch).await?.iter().sum();
        }
        *self.unused.reached() = Some(last.0);
        Ok(Swept { gone, all: codes < limit })
    }

    /// Lets another node have the jobs that this one does for all. For the end of a node.
    pub async fn retire(&self) {
        if let Err(fault) = self.write_rejections().await {
            tracing::warn!(%fault, "the latest counts of refused requests were not saved");
        }
        if let Err(fault) = self.write_uses().await {
            tracing::warn!(%fault, "session use within the last second was not saved");
        }
        self.close_books().await;
        if let Err(error) = self.engine.commit(leases::give_back(&self.realm.id, &self.node)).await {
            tracing::debug!(?error, "the leases of this node were not released: they will expire");
        }
        self.take_leave().await;
    }

    /// Does the upkeep until it is dropped.
    pub async fn keep_up(&self, upkeep: Upkeep, busy: Busy<'_>) {
        tokio::join!(self.look_after_all(upkeep, busy), self.keep_uses());
    }

    async fn look_after_all(&self, upkeep: Upkeep, busy: Busy<'_>) {
        let mut complaints = Complaints::default();
        loop {
            if let Err(fault) = self.write_rejections().await {
                tracing::debug!(%fault, "counts of refused requests were not saved yet");
            }
            if let Err(fault) = self.remember_origins().await {
                tracing::debug!(%fault, "the origins of applications were not read yet");
            }
            let leads = self.leads(UPKEEP).await;
            let pause = match complaints.hear("it is not known which node does the upkeep", leads) {
                Some(Some(_)) => asked::in_upkeep(self.keep_up_once(&upkeep, busy, &mut complaints)).await,
                Some(None) => {
                    complaints.all_over();
                    // Each node has its own settings.
                    if let Err(fault) = self.look_at_hashes_here().await {
                        tracing::debug!(%fault, "password hashes were not checked yet");
                    }
                    EVERY
                }
                None => EVERY,
            };
            tokio::time::sleep(pause).await;
        }
    }

    /// Does one round; returns how long to rest until the next. If one job fails each time, everything else goes on.
    pub(crate) async fn keep_up_once(&self, upkeep: &Upkeep, busy: Busy<'_>, complaints: &mut Complaints) -> Duration {
        complaints.hear("password hashes could not be checked", self.look_at_hashes().await);
        let mut pause = EVERY;
        let swept = self.sweep_for(STRETCH, busy).await;
        if complaints.hear("expired rows could not be removed", swept).is_some_and(|swept| !swept.all) {
            pause = REST;
        }
        complaints.hear("nodes that are gone could not be removed", self.sweep_nodes().await);
        let dropped = self.drop_beyond_ceiling(STRETCH).await;
        if let Some(dropped) = complaints.hear("audit lines beyond the ceiling could not be removed", dropped) {
            if dropped.gone > 0 {
                let lines = dropped.gone;
                tracing::warn!(lines, "audit lines were dropped unsealed: they were more than audit.ceiling");
            }
            if !dropped.all {
                pause = REST;
            }
        }
        let age = if busy() { upkeep.keys + PUT_OFF } else { upkeep.keys };
        let rotated = self.rotate_aged_keys(age).await;
        match complaints.hear("signing keys could not be rotated", rotated) {
            Some(made) if !made.is_empty() => {
                tracing::info!(keys = made.len(), "signing keys were due for rotation: added new ones");
            }
            _ => {}
        }
        complaints.hear("private halves of old signing keys could not be destroyed", self.destroy_past_keys().await);
        pause
    }
}

/// The family up to whose code expired codes that nobody redeemed were removed.
#[derive(Default)]
pub(crate) struct Unused(Mutex<Option<String>>);

impl Unused {
    fn reached(&self) -> MutexGuard<'_, Option<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a sweep removed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Swept {
    /// Rows that went.
    pub gone: u64,
    /// Whether little is left.
    pub all: bool,
}
