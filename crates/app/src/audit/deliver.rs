//! Delivering sealed entries to a stream: at least once, in the order of the chain. One node does it for all nodes.
//! Entries are marked as delivered when the receiver has said so; if a node stops in between, the next one sends the
//! same entries again.

use super::lag::is_beyond;
use super::seal::end;
use super::sink::{Refused, Sink};
use super::trouble::{self, HALTED};
use super::{ELSEWHERE, EVERY, Step, Tenure, rest};
use crate::complaint::Complaints;
use crate::leases::LEASE;
use crate::{App, Fault, entropy};
use rules::Time;
use rules::audit::Line;
use std::time::{Duration, Instant};
use store::engine::CommitError;
use store::tables::audit::{self, Begins, Newest, Place, Streams};

/// The time of the last delivery of a stream that never delivered anything.
pub(super) const NEVER: Time = Time(0);

/// Entries that are sent at a time at first.
const AT_ONCE: i64 = 200;
/// The most at a time, where many wait and the receiver is quick: at most this many come twice after an interruption.
/// What a batch costs beside its entries (over syslog a connection, some round trips) is then little, however far away
/// the receiver is.
const AT_MOST: i64 = 2000;
/// A receiver that takes longer than this for a batch gets no more at a time: twice as many would come near the longest
/// that it may take.
const QUICK: Duration = Duration::from_secs(2);
/// The longest that a receiver may take for a batch. Shorter than a lease.
const PATIENCE: Duration = Duration::from_secs(30);
/// The first rest after a failure; it doubles with each further one.
const FIRST_REST: Duration = Duration::from_secs(1);
/// The longest rest after a failure, and the longest that a receiver may ask for.
const LONGEST_REST: Duration = Duration::from_secs(60);

/// After this many failures in a row fewer entries are sent: one of them may be what makes the receiver fail.
pub(super) const DOUBTS: u32 = 4;

/// After this many failures in a row another node may try.
const YIELDS: u32 = 8;

/// Where entries are delivered to.
pub struct Stream {
    /// Its name.
    pub name: String,
    /// The receiver.
    pub sink: Sink,
}

/// How delivery has gone lately.
pub(super) struct Going {
    tenure: Tenure,
    /// Failures in a row.
    pub(super) failures: u32,
    complaints: Complaints,
    /// The most entries that are sent at a time: fewer where the receiver refused more.
    most: i64,
    /// This many made the receiver fail, or did not get through in time: that number is not tried again at once.
    too_many: Option<i64>,
    /// The last entry of those that were sent without an answer: the same are sent again, under the same name.
    upto: Option<Place>,
    /// The first entry that the receiver refused for good since it last accepted anything.
    refused: Option<String>,
    /// How long the receiver took in this step.
    away: Duration,
}

impl Going {
    pub(super) fn of(name: &str) -> Self {
        Going {
            tenure: Tenure::of(format!("audit.stream.{name}")),
            failures: 0,
            complaints: Complaints::default(),
            most: AT_ONCE,
            too_many: None,
            upto: None,
            refused: None,
            away: Duration::ZERO,
        }
    }

    /// Cuts `lines` down to those that were sent without an answer, where it begins with them.
    fn as_before(&self, lines: &mut Vec<Line>) {
        let last = self.upto.as_ref().and_then(|upto| lines.iter().position(|line| place(line) == *upto));
        lines.truncate(last.map_or(lines.len(), |at| at + 1));
    }

    /// Notes that `sent` entries were delivered. If that was the most at a time, allows more: twice as many, up to the
    /// number that was too many, and from there on few more. A receiver that takes its time gets no more than at the
    /// beginning.
    fn went_well(&mut self, sent: i64) {
        (self.failures, self.upto, self.refused) = (0, None, None);
        self.complaints.all_over();
        if sent < self.most {
            return;
        }
        // A receiver that takes long gets as many as it began with, also after it had fewer.
        let most = if self.away > QUICK { self.most.max(AT_ONCE) } else { AT_MOST };
        let more = match self.too_many {
            Some(many) if self.most * 2 >= many => self.most + (self.most / 8).max(1),
            _ => self.most * 2,
        };
        self.most = more.min(most);
        self.too_many = self.too_many.filter(|many| self.most < *many);
    }

    /// Notes that `sent` entries were refused for good: one of them, or their number. Half as many will tell.
    fn halve(&mut self, sent: i64) {
        (self.upto, self.too_many, self.most) = (None, Some(sent), sent / 2);
    }

    /// Says that a single entry is refused for good: the stream goes no further until an operator has looked. If no
    /// entry was ever accepted, or another was refused just before, this one is hardly the cause.
    fn stuck(&mut self, seen: &audit::Stream, line: &str, refused: Refused) -> Refused {
        let first = self.refused.get_or_insert_with(|| line.to_owned());
        let every = seen.moved_at == NEVER || first != line;
        let why = trouble::stuck(&seen.name, line, every, &refused.why);
        Refused { why, ..refused }
    }

    /// Returns how long to rest after a step. While the receiver took its time, the database was not needed.
    fn rest(&self, step: &Step, took: Duration) -> Duration {
        rest(step, took.saturating_sub(self.away))
    }
}

impl App {
    /// Delivers until it is dropped.
    pub async fn deliver(&self, stream: Stream) {
        let mut going = Going::of(&stream.name);
        loop {
            let began = Instant::now();
            going.away = Duration::ZERO;
            let pause = match self.deliver_once(&stream, &mut going).await {
                Ok(Ok(step)) => {
                    if matches!(step, Step::Idle | Step::Elsewhere) {
                        stream.sink.let_go();
                    }
                    going.rest(&step, began.elapsed())
                }
                Ok(Err(refused)) => {
                    going.failures += 1;
                    match refused.for_good {
                        true => going.complaints.accuse(&refused.why, "a stream of the audit log is stuck"),
                        false => {
                            let what = "a stream of the audit log could not be delivered: it will be retried";
                            going.complaints.tell(&refused.why, what);
                        }
                    }
                    match going.failures % YIELDS {
                        // Another node may reach the receiver: the lease expires, and the node that looks next has it.
                        0 => {
                            going.tenure.until = None;
                            Duration::from(LEASE) + ELSEWHERE * 2
                        }
                        _ => pause(going.failures, refused.after),
                    }
                }
                Err(fault) => {
                    going.tenure.until = None;
                    going.failures += 1;
                    going.complaints.tell(&fault, "a stream of the audit log is stuck");
                    pause(going.failures, None)
                }
            };
            tokio::time::sleep(pause).await;
        }
    }

    pub(super) async fn deliver_once(
        &self,
        stream: &Stream,
        going: &mut Going,
    ) -> Result<Result<Step, Refused>, Fault> {
        if !going.tenure.holds(self).await? {
            return Ok(Ok(Step::Elsewhere));
        }
        let Some(seen) = self.stream(&stream.name).await? else { return Ok(Ok(Step::More)) };
        if trouble::is_cut(&seen.trouble) {
            return Ok(Err(Refused::because(seen.trouble)));
        }
        let mut lines = match self.sealed_after(&seen.place, going.most).await {
            Ok(lines) => lines,
            Err(fault) => {
                self.note_halt(&seen, &fault).await;
                return Err(fault);
            }
        };
        let found = lines.len() as i64;
        going.as_before(&mut lines);
        let Some(last) = lines.last() else { return self.nothing_after(&seen).await };
        let place = place(last);
        let more = found == going.most || (lines.len() as i64) < found;
        going.upto = Some(place.clone());
        let asked = Instant::now();
        let sent = tokio::time::timeout(PATIENCE, stream.sink.send(&self.realm, &lines)).await;
        let sent = sent.unwrap_or_else(|_| Err(Refused::in_the_midst("the receiver did not answer in time")));
        going.away = asked.elapsed();
        let sent = match sent {
            Err(refused) if refused.for_good && lines.len() > 1 => {
                going.halve(lines.len() as i64);
                return Ok(Ok(Step::More));
            }
            Err(refused) if refused.for_good => Err(going.stuck(&seen, &last.id, refused)),
            Err(refused) if refused.doubtful && going.failures >= DOUBTS => {
                going.too_many = Some(lines.len() as i64);
                going.most = (lines.len() as i64 / 2).max(1);
                let why =
                    if lines.len() == 1 { trouble::doubted(&seen.name, &last.id, &refused.why) } else { refused.why };
                Err(Refused { why, ..refused })
            }
            sent => sent,
        };
        self.note_sent(seen, place, &sent).await?;
        if sent.is_ok() {
            going.went_well(lines.len() as i64);
        }
        Ok(sent.map(|()| if more { Step::More } else { Step::Idle }))
    }

    /// Writes into the stream's row how far it is now, or why it is no further.
    async fn note_sent(&self, seen: audit::Stream, place: Place, sent: &Result<(), Refused>) -> Result<(), Fault> {
        let trouble = sent.as_ref().err().map_or("", |refused| refused.why.as_str());
        if sent.is_err() && seen.trouble == trouble {
            return Ok(());
        }
        let (place, moved_at) = match sent {
            Ok(()) => (place, self.clock.now()),
            Err(_) => (seen.place.clone(), seen.moved_at),
        };
        let next = audit::Stream { name: seen.name, place, moved_at, trouble: trouble.to_owned() };
        self.mark(&seen.place, &next).await
    }

    /// Writes into the stream's row why nothing after its place can be read: the stream shows no other sign of it. If
    /// that cannot be written either, the log has both.
    async fn note_halt(&self, seen: &audit::Stream, fault: &Fault) {
        let trouble = format!("{HALTED} block {}: {fault}", seen.place.block);
        // What an operator has to do about an entry is not overwritten by a read that fails later.
        if seen.trouble != trouble && !trouble::names_a_line(&seen.trouble) {
            self.mark(&seen.place, &audit::Stream { trouble, ..seen.clone() }).await.ok();
        }
    }

    /// Handles a stream with nothing sealed after its place: the chain has to reach up to there.
    async fn nothing_after(&self, seen: &audit::Stream) -> Result<Result<Step, Refused>, Fault> {
        let (newest, begins) = self.ask((Newest, Begins)).await?;
        let (end, _) = end(newest.as_ref(), begins.as_ref());
        if !is_beyond(&seen.place, &end) {
            // What could not be read can be read now, and there is nothing whose delivery would say so.
            if seen.trouble.starts_with(HALTED) {
                self.mark(&seen.place, &audit::Stream { trouble: String::new(), ..seen.clone() }).await?;
            }
            return Ok(Ok(Step::Idle));
        }
        let why = trouble::cut(seen.place.block, end.number);
        self.mark(&seen.place, &audit::Stream { trouble: why.clone(), ..seen.clone() }).await?;
        Ok(Err(Refused::because(why)))
    }

    /// Returns how far a stream is; `None` if it was only just begun, where the chain begins.
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
        let stream = audit::Stream { name: name.to_owned(), place, moved_at: NEVER, trouble: String::new() };
        self.engine.commit(vec![audit::begin(&self.realm.id, &stream)]).await?;
        Ok(None)
    }

    async fn mark(&self, seen: &Place, next: &audit::Stream) -> Result<(), Fault> {
        match self.engine.commit(vec![audit::advance(&self.realm.id, seen, next)]).await {
            // Another node was faster: the entries went out twice.
            Ok(_) | Err(CommitError::Conflict { .. }) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

/// Returns the place of a stream that has delivered up to this entry.
fn place(line: &Line) -> Place {
    Place { block: line.block, line: line.id.clone() }
}

/// Doubles with each failure, with some randomness, so that many nodes do not retry at the same moment.
fn pause(failures: u32, asked: Option<Duration>) -> Duration {
    let doubled = FIRST_REST.saturating_mul(1 << failures.saturating_sub(1).min(10)).min(LONGEST_REST);
    let chance = entropy::bytes().map_or(0, |bytes| u32::from(bytes[0]));
    let spread = doubled / 2 + doubled * chance / 510;
    asked.map_or(spread, |asked| spread.max(asked.min(LONGEST_REST))).max(EVERY / 2)
}

/// Returns the bytes of a batch for a receiver that takes lines of JSON.
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
    fn nothing_rests_for_the_time_that_a_receiver_takes() {
        // Red without `saturating_sub` in `rest`: a distant receiver would get a few hundred entries a second.
        let ms = Duration::from_millis;
        let going = Going { away: ms(290), ..Going::of("http") };
        assert_eq!(going.rest(&Step::More, ms(300)), ms(40));
        assert_eq!(Going::of("http").rest(&Step::More, ms(300)), EVERY);
    }

    #[test]
    fn what_was_too_many_is_come_back_to_slowly() {
        let mut going = Going::of("http");
        (going.too_many, going.most) = (Some(100), 50);
        let steps: Vec<i64> = std::iter::from_fn(|| {
            going.went_well(1);
            going.went_well(going.most);
            Some(going.most)
        })
        .take(9)
        .collect();
        assert_eq!(steps, [56, 63, 70, 78, 87, 97, 109, 218, 436], "and is forgotten once it is gone beyond");
    }

    #[test]
    fn more_is_sent_at_a_time_where_much_waits_and_the_receiver_is_quick() {
        // Red with `min(AT_ONCE)` in `went_well`: a receiver that takes a batch in 200 ms would get a thousand entries
        // a second, whatever is written.
        let mut going = Going::of("syslog");
        let after = |going: &mut Going, sent: i64| {
            going.went_well(sent);
            going.most
        };
        assert_eq!(after(&mut going, 199), 200, "nothing more waited");
        for more in [400, 800, 1600, 2000, 2000] {
            let sent = going.most;
            assert_eq!(after(&mut going, sent), more);
        }
        let mut slow = Going { away: QUICK * 2, ..Going::of("syslog") };
        assert_eq!(after(&mut slow, 200), 200);
        // Red where a slow receiver gets nothing back: one entry at a time for ever, once something was wrong.
        slow.most = 1;
        for more in [2, 4, 8, 16, 32, 64, 128, 200, 200] {
            let sent = slow.most;
            assert_eq!(after(&mut slow, sent), more);
        }
    }

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
