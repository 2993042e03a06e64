//! The ceiling: what goes beyond it is dropped, and each loss is told, however the work is interrupted.

use super::*;
use crate::jobs::Swept;
use store::engine::{Answer, Around, CommitError, Engine, Write};

/// What happens before the commit of that number, counted from 0.
type Before = Box<dyn Fn(usize) -> Answer<'static, (), CommitError> + Send + Sync>;

/// A database to which something happens between the batches of a node.
pub(super) struct Meddled {
    inner: Arc<dyn Engine>,
    commits: Mutex<usize>,
    before: Before,
}

impl Meddled {
    pub(super) fn new(world: &World, before: Before) -> Arc<Self> {
        Arc::new(Meddled { inner: Arc::clone(&world.app.engine), commits: Mutex::new(0), before })
    }
}

impl Around for Meddled {
    fn inside(&self) -> &dyn Engine {
        &*self.inner
    }
    fn commit_around(&self, writes: Vec<Write>) -> Answer<'_, Vec<u64>, CommitError> {
        let mut commits = self.commits.lock().unwrap();
        let happens = (self.before)(*commits);
        *commits += 1;
        Box::pin(async move {
            happens.await?;
            self.inner.commit(writes).await
        })
    }
}

/// A node without a key that keeps to a ceiling of ten.
async fn low(world: &World, before: Before) -> App {
    let terms = Terms { keys: Keys::default(), ceiling: Some(10), ..terms() };
    node_on(Meddled::new(world, before), &world.clock, terms).await
}

/// Does nothing before any commit.
fn undisturbed() -> Before {
    Box::new(|_| Box::pin(std::future::ready(Ok(()))))
}

/// Returns how many entries were dropped, as the log says.
async fn told_dropped(world: &World) -> i64 {
    let count =
        |line: Line| serde_json::from_str::<serde_json::Value>(&line.detail).unwrap()["lines"].as_i64().unwrap();
    world.told(Kind::AuditDropped).await.into_iter().map(count).sum()
}

#[tokio::test]
async fn a_ceiling_is_kept_and_says_so() {
    let world = World::new(terms()).await;
    world.write(500).await;
    let app = low(&world, undisturbed()).await;
    let dropped = app.drop_beyond_ceiling(Duration::MAX).await.unwrap().gone;
    assert_eq!(world.app.audit_lag().await.unwrap().unsealed, 10);
    let told = world.told(Kind::AuditDropped).await;
    assert!(told.iter().all(|line| line.detail.contains("not sealed")), "{told:?}");
    // Some of the entries that told of a loss may have gone, too: those that remain tell of all of it.
    assert_eq!((told_dropped(&world).await, dropped), (500 + 3 - 10, 500 + 3 - 10));
    // The entries that tell of it are counted like those of a request.
    let counted = app.tally.events.sums().find(|(kind, _)| *kind == Kind::AuditDropped.name());
    assert!(counted.is_some_and(|(_, times)| times >= 3), "{counted:?}");
    assert_eq!(app.drop_beyond_ceiling(Duration::MAX).await.unwrap(), Swept { gone: 0, all: true });
}

#[tokio::test]
async fn dropping_ends_when_its_time_is_up_and_the_next_round_goes_on() {
    // Red without `stretch` in audit/retire.rs, drop_beyond_ceiling: keys and the lease would wait for the end of it.
    let world = World::new(terms()).await;
    world.write(500).await;
    let app = low(&world, undisturbed()).await;
    assert_eq!(app.drop_beyond_ceiling(Duration::ZERO).await.unwrap(), Swept { gone: 200, all: false });
    assert_eq!(app.drop_beyond_ceiling(Duration::MAX).await.unwrap(), Swept { gone: 293, all: true });
    assert_eq!(world.app.audit_lag().await.unwrap().unsealed, 10);
}

#[tokio::test]
async fn a_line_is_not_dropped_for_one_that_tells_of_it() {
    // Red where a batch may drop a single line, in audit/retire.rs, drop_beyond_ceiling: it would never be done.
    let world = World::new(Terms { keys: Keys::default(), ceiling: Some(1), ..terms() }).await;
    world.write(3).await;
    // No statement can name these two, and the other is all that could go.
    let unnamed = "UPDATE events SET id = CAST(id AS blob) WHERE id > (SELECT MIN(id) FROM events)";
    let world = world.tamper(unnamed).await;
    let dropped = tokio::time::timeout(Duration::from_secs(100), world.app.drop_beyond_ceiling(Duration::MAX)).await;
    assert_eq!(dropped.expect("it ends").unwrap(), Swept { gone: 0, all: true });
    assert_eq!(world.app.audit_lag().await.unwrap().unsealed, 3);
}

#[tokio::test]
async fn wherever_dropping_is_interrupted_what_is_gone_is_told() {
    for stops in 0..4 {
        let world = World::new(terms()).await;
        world.write(500).await;
        let before = move |number: usize| -> Answer<'static, (), CommitError> {
            let gone = CommitError::Unavailable("the node is killed".into());
            Box::pin(std::future::ready(if number >= stops { Err(gone) } else { Ok(()) }))
        };
        let app = low(&world, Box::new(before)).await;
        assert_eq!(app.drop_beyond_ceiling(Duration::MAX).await.is_err(), stops < 3, "{stops}");
        let left = world.app.audit_lag().await.unwrap().unsealed;
        assert_eq!(told_dropped(&world).await, 500 + stops.min(3) as i64 - left, "{stops}");
    }
}

#[tokio::test]
async fn what_is_sealed_meanwhile_is_not_dropped() {
    for moment in 0..3 {
        let world = World::new(terms()).await;
        world.write(500).await;
        let other = world.app.clone();
        let before = move |number: usize| -> Answer<'static, (), CommitError> {
            let other = other.clone();
            Box::pin(async move {
                while number == moment && matches!(other.seal_once().await.unwrap(), Sealed::Some(_)) {}
                Ok(())
            })
        };
        let app = low(&world, Box::new(before)).await;
        let dropped = app.drop_beyond_ceiling(Duration::MAX).await.unwrap().gone;
        // Each batch takes two hundred at most; that of the moment finds its entries sealed, and none is left.
        assert_eq!(dropped, moment as u64 * 200, "{moment}");
        assert_eq!(told_dropped(&world).await, moment as i64 * 200, "{moment}");
        assert_eq!(world.app.audit_lag().await.unwrap().kept, 500 - moment as i64 * 199, "{moment}");
        assert_eq!(world.verify(None).await.1, vec![]);
    }
}

#[tokio::test]
async fn a_ceiling_takes_nothing_that_is_sealed_before_its_time() {
    // Without streams, with one that has everything, and with one that has nothing. An entry distinguishes what a node
    // acknowledged from what was lost.
    for stream in [None, Some(13), Some(1)] {
        let world = World::new(Terms { ceiling: Some(20), ..terms() }).await;
        if let Some(block) = stream {
            begin(&world, Place { block, line: String::new() }).await;
        }
        world.sealed(12, 4).await;
        assert_eq!(world.retire().await, Retired::Nothing);
        assert_eq!(world.app.audit_lag().await.unwrap().kept, 48);
        assert!(world.told(Kind::AuditDropped).await.is_empty());
    }
}

#[tokio::test]
async fn a_ceiling_is_kept_where_every_block_has_but_one_line() {
    // Red with one block at a time: each entry that goes leaves one that tells of it, until there is nothing else.
    let world = World::new(Terms { max_lines: Some(20), ceiling: Some(64), ..terms() }).await;
    begin(&world, Place { block: 1, line: String::new() }).await;
    world.sealed(70, 1).await;
    for _ in 0..200 {
        world.retire().await;
        world.app.seal_once().await.unwrap();
        world.sealed(1, 1).await;
    }
    let (verified, findings) = world.verify(None).await;
    let kept = world.app.audit_lag().await.unwrap().kept;
    let told = world.told(Kind::AuditDropped).await.len() as i64;
    assert!(kept <= 64 + 2 && told * 3 < kept, "{told} of {kept} tell of others");
    assert_eq!(told_dropped(&world).await, verified.end.last - kept, "each that is not there any more is told of");
    assert_eq!(findings, vec![]);
}

#[tokio::test]
async fn every_stream_that_lacks_what_went_is_named() {
    // Red where only the first that waits is told of: a loss of the other would be in no entry.
    let at = |block, line: &str| Place { block, line: line.to_owned() };
    for (syslog, lacking) in [
        (at(1, ""), "http syslog"),
        (at(5, ""), "http syslog"),
        (at(8, ""), "http syslog"),
        (at(8, "~"), "http"),
        (at(9, ""), "http"),
        (at(13, ""), "http"),
    ] {
        let world = World::new(Terms { max_lines: Some(5), ceiling: Some(20), ..terms() }).await;
        begin(&world, at(1, "")).await;
        begin_as(&world, "syslog", syslog.clone()).await;
        world.sealed(12, 4).await;
        assert!(matches!(world.retire().await, Retired::Held(_)), "{syslog:?}");
        let told = world.told(Kind::AuditDropped).await;
        let detail: serde_json::Value = serde_json::from_str(&told[0].detail).unwrap();
        let wanted = serde_json::json!({ "why": "not delivered", "stream": lacking, "from_block": 1, "until_block": 8,
                                         "lines": 32 });
        assert_eq!((told.len(), detail), (1, wanted), "{syslog:?}");
        assert_eq!(told_dropped(&world).await, 32, "what two streams lack is lost once");
    }
}
