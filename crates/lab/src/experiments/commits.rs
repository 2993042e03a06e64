//! Batches like those of a sign-in (a session and its audit entry), committed directly to the store.

use crate::capacity::figure::quantile;
use crate::experiments::Halt;
use rules::decision::Change;
use rules::events::{Event, Kind};
use rules::fresh::Fresh;
use rules::id::{RealmId, SessionId, UserId};
use rules::login::session::{Method, Session};
use rules::time::{Span, Time};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};
use store::engine::Engine as _;
use store::migrations::MIGRATIONS;
use store::sqlite::{Options, Sqlite};
use store::tables::changes::batch;
use tokio::runtime::Runtime;
use tokio::task::JoinSet;

/// Any time will do: the rows are only written.
const NOW: Time = Time(1_767_225_600_000);

/// Which commits a sign-in makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Audit {
    /// The audit entry is in the batch of what it records.
    Together,
    /// The audit entry is committed after that.
    Apart,
    /// There is no audit entry.
    Off,
}

/// A database in a file.
pub struct Ledger {
    engine: Arc<Sqlite>,
    runtime: Runtime,
    next: Arc<AtomicU64>,
}

/// The results of a number of writers.
pub struct Written {
    /// Sign-ins per second.
    pub rate: f64,
    /// The time of a sign-in, in milliseconds: 99 of 100 took no longer.
    pub p99: f64,
}

impl Ledger {
    /// Creates one in `folder`, with at most `together` batches per transaction.
    pub fn open(folder: &Path, name: &str, together: usize) -> Result<Ledger, Halt> {
        let failed = |why: String| Halt::Failed(format!("the database of the experiment: {why}"));
        // The default handler ends the process, and with it all experiments of the run.
        let on_fatal = Arc::new(|_: &str| ());
        let options = Options { group_limit: together, on_fatal, ..Options::at(folder.join(name)) };
        let engine = Arc::new(Sqlite::open(options, MIGRATIONS).map_err(|error| failed(error.to_string()))?);
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
        let runtime = runtime.map_err(|error| failed(error.to_string()))?;
        runtime.block_on(engine.migrate()).map_err(|error| failed(error.0))?;
        Ok(Ledger { engine, runtime, next: Arc::default() })
    }

    /// Runs this many writers, each of which waits for its answer and starts again.
    pub fn write(&self, writers: usize, audit: Audit, span: Duration) -> Result<Written, Halt> {
        let begun = Instant::now();
        let all = async {
            let mut running = JoinSet::new();
            for _ in 0..writers {
                running.spawn(one_after_another(Arc::clone(&self.engine), Arc::clone(&self.next), audit, begun + span));
            }
            let mut took = Vec::new();
            while let Some(done) = running.join_next().await {
                took.extend(done.map_err(|error| error.to_string())??);
            }
            Ok::<_, String>(took.iter().map(|took: &Duration| took.as_secs_f64() * 1e3).collect::<Vec<f64>>())
        };
        let mut took = self.runtime.block_on(all).map_err(|why| Halt::Failed(format!("a commit: {why}")))?;
        took.sort_by(f64::total_cmp);
        let rate = took.len() as f64 / begun.elapsed().as_secs_f64();
        let p99 = if took.is_empty() { f64::NAN } else { quantile(&took, 0.99) };
        Ok(Written { rate, p99 })
    }
}

impl Drop for Ledger {
    fn drop(&mut self) {
        self.engine.close();
    }
}

async fn one_after_another(
    engine: Arc<Sqlite>,
    next: Arc<AtomicU64>,
    audit: Audit,
    until: Instant,
) -> Result<Vec<Duration>, String> {
    let (realm, mut took) = (RealmId("main".to_owned()), Vec::new());
    while Instant::now() < until {
        let begun = Instant::now();
        let (session, event, fresh) = sign_in(next.fetch_add(1, Relaxed));
        let batches = match audit {
            Audit::Together => vec![vec![session, event]],
            Audit::Apart => vec![vec![session], vec![event]],
            Audit::Off => vec![vec![session]],
        };
        for changes in batches {
            engine.commit(batch(&realm, &changes, NOW, &fresh)).await.map_err(|error| error.to_string())?;
        }
        took.push(begun.elapsed());
    }
    Ok(took)
}

fn sign_in(number: u64) -> (Change, Change, Fresh) {
    let mut seed = [7; 32];
    seed[..8].copy_from_slice(&number.to_be_bytes());
    let fresh = Fresh::new(seed);
    let session = Session {
        id: SessionId(fresh.ordered("sid", NOW)),
        handle: fresh.secret("session").handle(),
        user: UserId(format!("user-{}", number % 1000)),
        auth_time: NOW,
        amr: vec![Method::Password.amr().to_owned()],
        created: NOW,
        last_seen: NOW,
        expires: NOW + Span::days(30),
        agent: "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0".to_owned(),
        address: "192.0.2.17".to_owned(),
        ended_at: None,
    };
    let event = Event::new(Kind::SignedIn, NOW).user(&session.user).session(&session.id).address("192.0.2.17");
    (Change::StartSession(Box::new(session)), Change::Record(event), fresh)
}
