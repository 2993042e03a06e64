//! Delivering sealed lines to a stream: at least once, in the order of the chain. One node does it for all. What was
//! delivered is marked when the receiver has said so; a node that ends in between is followed by one that sends the same
//! lines again.

use super::seal::end;
use super::sink::{Refused, Sink};
use super::{EVERY, Step, Tenure, rest};
use crate::jobs::Complaint;
use crate::{App, Fault, entropy};
use rules::audit::Line;
use std::time::{Duration, Instant};
use store::engine::CommitError;
use store::tables::audit::{self, Begins, Newest, Place, Streams};

/// The most lines that are sent at a time: as many come twice at most where one is interrupted.
const AT_ONCE: i64 = 200;
/// The longest that a receiver may take for them. Shorter than a lease.
const PATIENCE: Duration = Duration::from_secs(30);
/// The first rest after a failure; it doubles with each further one.
const FIRST_REST: Duration = Duration::from_secs(1);
/// The longest rest after a failure, and the longest that a receiver may ask for.
const LONGEST_REST: Duration = Duration::from_secs(60);

/// Where lines are delivered to.
pub struct Stream {
    /// What it is called.
    pub name: String,
    /// Who takes them.
    pub sink: Sink,
}

/// How it has gone lately.
struct Going {
    tenure: Tenure,
    failures: u32,
    complaint: Complaint,
}

impl App {
    /// Delivers until it is dropped.
    pub async fn deliver(&self, stream: Stream) {
        let tenure = Tenure::of(format!("audit.stream.{}", stream.name));
        let mut going = Going { tenure, failures: 0, complaint: Complaint::default() };
        loop {
            let began = Instant::now();
            let pause = match self.deliver_once(&stream, &mut going).await {
                Ok(Ok(step)) => rest(&step, began.elapsed()),
                Ok(Err(refused)) => {
                    going.failures += 1;
                    going
                        .complaint
                        .tell(&refused.why, "a stream of the audit log is not taken: it will be tried again");
                    pause(going.failures, refused.after)
                }
                Err(fault) => {
                    going.tenure.until = None;
                    going.failures += 1;
                    going.complaint.tell(&fault, "a stream of the audit log stands still");
                    pause(going.failures, None)
                }
            };
            tokio::time::sleep(pause).await;
        }
    }

    async fn deliver_once(&self, stream: &Stream, going: &mut Going) -> Result<Result<Step, Refused>, Fault> {
        if !going.tenure.holds(self).await? {
            return Ok(Ok(Step::Elsewhere));
        }
        let Some(seen) = self.stream(&stream.name).await? else { return Ok(Ok(Step::More)) };
        let lines = self.sealed_after(&seen.place, AT_ONCE).await?;
        let Some(last) = lines.last() else { return Ok(Ok(Step::Idle)) };
        let place = Place { block: last.block, line: last.id.clone() };
        let sent = tokio::time::timeout(PATIENCE, stream.sink.send(&self.realm, &lines)).await;
        let sent = sent.unwrap_or_else(|_| Err(Refused::because("the receiver did not answer in time")));
        let trouble = sent.as_ref().err().map_or("", |refused| refused.why.as_str());
        if sent.is_ok() || seen.trouble != trouble {
            let place = if sent.is_ok() { place } else { seen.place.clone() };
            let next =
                audit::Stream { name: seen.name, place, moved_at: self.clock.now(), trouble: trouble.to_owned() };
            let moved_at = if sent.is_ok() { next.moved_at } else { seen.moved_at };
            self.mark(&seen.place, &audit::Stream { moved_at, ..next }).await?;
        }
        if sent.is_ok() {
            going.failures = 0;
            going.complaint.over();
        }
        Ok(sent.map(|()| if lines.len() as i64 == AT_ONCE { Step::More } else { Step::Idle }))
    }

    /// How far a stream is; `None` when it was only just begun, where the chain begins.
    async fn stream(&self, name: &str) -> Result<Option<audit::Stream>, Fault> {
        let (streams, begins, newest) = self.ask((Streams, Begins, Newest)).await?;
        if let Some(stream) = streams.into_iter().find(|stream| stream.name == name) {
            return Ok(Some(stream));
        }
        let place = match (&begins, &newest) {
            (Some(begins), _) => Place::from(&begins.into()),
            (None, _) => Place { block: 1, line: String::new() },
        };
        tracing::info!(
            stream = name,
            until = end(newest.as_ref(), begins.as_ref()).0.last,
            "a stream of the audit log begins"
        );
        let stream = audit::Stream { name: name.to_owned(), place, moved_at: self.clock.now(), trouble: String::new() };
        self.engine.commit(vec![audit::begin(&self.realm.id, &stream)]).await?;
        Ok(None)
    }

    async fn mark(&self, seen: &Place, next: &audit::Stream) -> Result<(), Fault> {
        match self.engine.commit(vec![audit::advance(&self.realm.id, seen, next)]).await {
            // Another node was faster: the lines went out twice.
            Ok(_) | Err(CommitError::Conflict { .. }) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

/// Doubles with each failure, with some chance in it, so that many nodes do not come at the same moment.
fn pause(failures: u32, asked: Option<Duration>) -> Duration {
    let doubled = FIRST_REST.saturating_mul(1 << failures.saturating_sub(1).min(10)).min(LONGEST_REST);
    let chance = entropy::bytes().map_or(0, |bytes| u32::from(bytes[0]));
    let spread = doubled / 2 + doubled * chance / 510;
    asked.map_or(spread, |asked| spread.max(asked.min(LONGEST_REST))).max(EVERY / 2)
}

/// Bytes of a batch for a receiver that takes lines of JSON.
pub(super) fn json_lines(realm: &rules::id::RealmId, lines: &[Line]) -> Vec<u8> {
    let mut body = Vec::with_capacity(lines.len() * 400);
    for line in lines {
        body.extend_from_slice(super::wire::json(realm, line).to_string().as_bytes());
        body.push(b'\n');
    }
    body
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rests_grow_and_stay_bounded() {
        for failures in 1..40 {
            let rest = pause(failures, None);
            assert!(rest >= EVERY / 2 && rest <= LONGEST_REST, "{failures}: {rest:?}");
        }
        assert!(pause(1, None) < pause(8, None));
        assert!(pause(1, Some(Duration::from_secs(20))) >= Duration::from_secs(20));
        assert_eq!(pause(1, Some(Duration::from_secs(1 << 40))), LONGEST_REST);
    }
}
