//! Any node may seal the audit log: every line once, in a chain without gaps, whenever the line was committed.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::{Done, Shared, same};
use crate::engine::{Broken, CommitError};
use crate::tables::audit::{
    Backlog, BacklogUpTo, Begins, Between, Misnumbered, Newest, Place, Stream, Streams, Topmost, Unsealed, Unsound,
    Whole, Within, advance, begin, begin_once, drop_unsealed, retire, seal,
};
use crate::tables::sweep::{self, Bounds};
use crate::tables::{ask, changes};
use rules::audit::{Block, Key, Keys, Line, Link, Sealing, Verifier};
use rules::events::{Event, Kind};
use rules::id::RealmId;
use rules::{Change, Fresh, Time};

/// How many writers there are at the same time, and how often each writes.
const WRITERS: usize = 4;
const EACH: usize = 60;

fn realm() -> RealmId {
    "sealed".into()
}

fn keys() -> Keys {
    Keys { current: Some(Key::new([7; 32].into())), old: Vec::new() }
}

/// A batch with two lines whose ids begin with `at`.
async fn write(engine: &Shared, at: Time, seed: usize) -> Done {
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&(seed as u64).to_be_bytes());
    let event = || Change::Record(Event::new(Kind::SignedIn, at).user(&"ada".into()).address("192.0.2.1"));
    let batch = changes::batch(&realm(), &[event(), event()], at, &Fresh::new(bytes));
    super::stands(engine, batch).await.map(drop)
}

/// Seals waiting lines, and returns how many; `None` if another node was faster.
async fn step(engine: &Shared, most: i64) -> Result<Option<usize>, String> {
    let asked = ask(&**engine, &realm(), (Newest, Unsealed { limit: most })).await;
    let (newest, mut lines) = asked.map_err(|why| why.0)?;
    if lines.is_empty() {
        return Ok(Some(0));
    }
    let block = next(newest.as_ref(), &mut lines);
    match engine.commit(seal(&realm(), &block, &lines)).await {
        Ok(_) => Ok(Some(lines.len())),
        Err(CommitError::Conflict { .. }) => Ok(None),
        Err(error) => Err(format!("{error:?}")),
    }
}

fn next(newest: Option<&Block>, lines: &mut [Line]) -> Block {
    let (realm, keys) = (realm(), keys());
    let end = newest.map_or_else(Link::beginning, Link::from);
    let Some(key) = &keys.current else { unreachable!("there is one") };
    Sealing { realm: &realm, key, now: Time(1) }.block(&end, lines)
}

/// Does the log upkeep of the realm `sealed`, in which thousands of lines wait, numbered from 1: some are deleted, and
/// others sealed. The cost at the server is measured by the server's own tests.
///
/// # Errors
/// What did not commit.
pub async fn upkeep(engine: &Shared) -> Done {
    let bounds = Bounds { now: Time(1), devices: Time(1), sessions: Time(1), families: Time(1), strangers: Time(1) };
    super::stands(engine, sweep::step(&realm(), &bounds, 100)).await?;
    super::stands(engine, drop_unsealed(&realm(), (1..=100).map(|id| format!("{id:026}")))).await?;
    same(step(engine, 256).await?, Some(256), "lines that are sealed")
}

/// Two nodes seal what four writers write, on the real schema.
pub async fn sealing(engines: [Shared; 2]) -> Done {
    engines[0].migrate().await.map_err(|why| why.0)?;
    let written = Arc::new(AtomicUsize::new(0));
    let mut all = tokio::task::JoinSet::new();
    for writer in 0..WRITERS {
        let (engine, written) = (Arc::clone(&engines[writer % 2]), Arc::clone(&written));
        all.spawn(async move {
            for number in 0..EACH {
                // Some times go backwards: these ids are smaller than those of lines that are sealed already.
                let at = if writer == 0 { 1_000_000 - number } else { 1_000_000 + number * 10 };
                write(&engine, Time(at as i64), writer * EACH + number).await?;
                written.fetch_add(1, Ordering::SeqCst);
            }
            Done::Ok(())
        });
    }
    for most in [64, 7] {
        let (engine, written) = (Arc::clone(&engines[usize::from(most == 7)]), Arc::clone(&written));
        all.spawn(async move {
            loop {
                let before = written.load(Ordering::SeqCst);
                if step(&engine, most).await? == Some(0) && before == WRITERS * EACH {
                    return Ok(());
                }
            }
        });
    }
    for done in all.join_all().await {
        done?;
    }
    verified(&engines[0], 2 * WRITERS * EACH).await?;
    late(&engines).await?;
    dropped(&engines).await?;
    streams(&engines).await?;
    retired(&engines).await
}

/// Checks that every line is sealed once, and that the chain proves it.
async fn verified(engine: &Shared, wanted: usize) -> Done {
    let fetched = ask(&**engine, &realm(), (Whole { number: 0, limit: 10_000 }, Backlog, Begins)).await;
    let (blocks, backlog, begins) = fetched.map_err(|why| why.0)?;
    same(backlog, (0, None), "lines that are not sealed")?;
    let (realm, keys) = (realm(), keys());
    let verifier = Verifier { realm: &realm, keys: &keys, head: None, mark: None };
    let (mut told, mut findings) = verifier.begin(begins.as_ref());
    for block in &blocks {
        let within = Within { block: block.number, after: "", limit: 1000 };
        let lines = ask(&**engine, &realm, within).await.map_err(|why| why.0)?;
        findings.extend(verifier.block(&mut told, block, &lines));
    }
    same(findings, vec![], "findings")?;
    same(told.lines, wanted as u64, "sealed lines")?;
    let all = Between { after: 0, before: i64::MAX, limit: 10_000 };
    let mut ids: Vec<_> =
        ask(&**engine, &realm, all).await.map_err(|why| why.0)?.into_iter().map(|line| line.id).collect();
    ids.sort();
    ids.dedup();
    same(ids.len(), wanted, "different lines")
}

/// A line with a smaller id than any other is sealed in a later block; a sealed line is not sealed again.
async fn late(engines: &[Shared; 2]) -> Done {
    let before = ask(&*engines[0], &realm(), Newest).await.map_err(|why| why.0)?;
    write(&engines[1], Time(1), 9_999).await?;
    let waits = ask(&*engines[0], &realm(), Unsealed { limit: 9 }).await.map_err(|why| why.0)?;
    for most in [1, 9] {
        let (all, some) = ask(&*engines[0], &realm(), (Backlog, BacklogUpTo { most })).await.map_err(|why| why.0)?;
        same(some, (all.0.min(most), all.1), "lines that are not sealed, counted up to a number")?;
    }
    same(step(&engines[0], 64).await?, Some(2), "late lines")?;
    let newest = ask(&*engines[1], &realm(), Newest).await.map_err(|why| why.0)?;
    let number = |block: &Option<Block>| block.as_ref().map_or(0, |block| block.number);
    same(number(&newest), number(&before) + 1, "their block")?;
    let mut again = waits.clone();
    let block = next(newest.as_ref(), &mut again);
    let guard = Err(CommitError::Conflict { at: 1, why: Broken::Guard });
    same(engines[1].commit(seal(&realm(), &block, &again)).await, guard, "sealing what is sealed")?;
    let taken = next(before.as_ref(), &mut again);
    let unique = Err(CommitError::Conflict { at: 0, why: Broken::Unique });
    same(engines[0].commit(seal(&realm(), &taken, &again)).await, unique, "a number that is taken")?;
    verified(&engines[0], 2 * WRITERS * EACH + 2).await
}

/// Lines that were never sealed are all dropped as named, or none is.
async fn dropped(engines: &[Shared; 2]) -> Done {
    for seed in 0..50 {
        write(&engines[0], Time(2), 20_000 + seed).await?;
    }
    let waits = ask(&*engines[1], &realm(), Unsealed { limit: 70 }).await.map_err(|why| why.0)?;
    let batch = || drop_unsealed(&realm(), waits.iter().map(|line| line.id.clone()));
    super::stands(&engines[1], batch()).await?;
    let gone = Err(CommitError::Conflict { at: 0, why: Broken::Guard });
    same(engines[0].commit(batch()).await, gone, "dropping what is gone")?;
    let rest = ask(&*engines[0], &realm(), Unsealed { limit: 70 }).await.map_err(|why| why.0)?;
    same(rest.len(), 30, "lines that stay")?;
    same(step(&engines[0], 64).await?, Some(30), "lines to seal")?;
    let sealed = drop_unsealed(&realm(), rest.into_iter().map(|line| line.id));
    let guard = Err(CommitError::Conflict { at: 0, why: Broken::Guard });
    same(engines[1].commit(sealed).await, guard, "dropping what was sealed")?;
    verified(&engines[0], 2 * WRITERS * EACH + 32).await
}

/// If two nodes deliver at the same time, one records it.
async fn streams(engines: &[Shared; 2]) -> Done {
    let at = |block, line: &str| Place { block, line: line.to_owned() };
    let is = |place| Stream { name: "http".into(), place, moved_at: Time(5), trouble: String::new() };
    for engine in engines {
        super::stands(engine, vec![begin(&realm(), &is(at(1, "")))]).await?;
    }
    let marks = [("a", &engines[0]), ("b", &engines[1])];
    let mut won = 0;
    for (line, engine) in marks {
        won += usize::from(engine.commit(vec![advance(&realm(), &at(1, ""), &is(at(2, line)))]).await.is_ok());
    }
    same(won, 1, "marks that stand")?;
    let again = engines[1].commit(vec![begin_once(&realm(), &is(at(7, "")))]).await;
    same(matches!(again, Err(CommitError::Conflict { at: 0, .. })), true, "beginning a stream that was begun")?;
    let other = Stream { name: "syslog".into(), ..is(at(3, "")) };
    super::stands(&engines[0], vec![begin_once(&realm(), &other)]).await?;
    let found = ask(&*engines[1], &realm(), Streams).await.map_err(|why| why.0)?;
    same(found, vec![is(at(2, "a")), other], "where the streams are")
}

/// If two nodes remove the oldest block, one succeeds, and the chain begins after it.
async fn retired(engines: &[Shared; 2]) -> Done {
    let blocks = ask(&*engines[0], &realm(), Whole { number: 0, limit: 3 }).await.map_err(|why| why.0)?;
    let (realm, keys) = (realm(), keys());
    let Some(key) = &keys.current else { unreachable!("there is one") };
    let sealing = Sealing { realm: &realm, key, now: Time(9) };
    let (mut seen, mut gone) = (None, 0);
    for block in &blocks[..2] {
        let next = sealing.checkpoint(&Link::from(block));
        let batch = || retire(&realm, (block.number, block.number, 1), (seen.as_ref(), &next));
        let (one, other) = tokio::join!(engines[0].commit(batch()), engines[1].commit(batch()));
        same(one.is_ok() != other.is_ok(), true, "one of two takes a block out")?;
        gone += usize::try_from(block.lines()).unwrap_or(0);
        seen = Some(next);
    }
    verified(&engines[1], 2 * WRITERS * EACH + 32 - gone).await?;
    sound(&engines[0]).await
}

/// Nothing is found wrong with records that this program wrote.
async fn sound(engine: &Shared) -> Done {
    let odd = (Misnumbered::Before(3), Misnumbered::Among(1, i64::MAX), Misnumbered::Beyond(0), Topmost);
    let found = ask(&**engine, &realm(), odd).await.map_err(|why| why.0)?;
    same(found, (vec![], vec![], vec![], None), "records of no block")?;
    for table in Unsound::tables(engine.dialect()) {
        let found = ask(&**engine, &realm(), table).await.map_err(|why| why.0)?;
        same(found, vec![], "what the engine finds wrong")?;
    }
    Ok(())
}
