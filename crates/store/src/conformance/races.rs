//! Many batches at once: each sees the data as if it were alone, and no answer comes early.

use std::collections::BTreeSet;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use super::{
    ADD, Check, Done, GET, Must, Shared, Sql, Value, named, names, number, put, read, rows, same, stands, together,
    write,
};
use crate::engine::{Broken, CommitError};

pub(super) const CHECKS: &[Check] = named![
    one_of_a_hundred_guarded_updates_wins,
    one_of_a_hundred_inserts_of_a_key_wins,
    no_update_is_lost,
    a_conflict_spares_the_batches_beside_it,
    a_broken_statement_spares_the_batches_beside_it,
    a_revocation_acknowledged_first_wins,
    what_leans_on_several_ends_with_one_of_them,
    an_acknowledged_batch_is_seen_by_the_next_fetch,
    readers_see_whole_batches,
    a_dropped_call_does_not_stop_its_batch,
];

const REDEEM: Sql = Sql::fixed("UPDATE note SET body = ? WHERE realm = ? AND name = ? AND body IS NULL");
const ISSUE: Sql = Sql::fixed("INSERT INTO note (realm, name, number) VALUES (?, ?, 0)");
const LIVE: Sql = Sql::fixed("SELECT name FROM note WHERE realm = ? AND name = ? AND body IS NULL");

const MANY: usize = 100;

async fn one_of_a_hundred_guarded_updates_wins(engine: Shared) -> Done {
    let realm = "redeem";
    stands(&engine, vec![write(ISSUE, &[realm, "code"], Must::Touch(1))]).await?;
    let redeem = |who: usize| {
        let token = format!("token-{who:03}");
        let code = write(REDEEM, &[&token, realm, "code"], Must::Touch(1));
        vec![put(realm, &token, "", 0), code]
    };
    let answers = together(&engine, (0..MANY).map(redeem).collect()).await?;
    let won: Vec<usize> = (0..MANY).filter(|&who| answers[who].is_ok()).collect();
    let &[winner] = won.as_slice() else { return Err(format!("winners: {won:?}")) };
    let lost = Err(CommitError::Conflict { at: 1, why: Broken::Guard });
    same(answers.iter().filter(|answer| **answer == lost).count(), MANY - 1, "conflicts")?;
    let token = format!("token-{winner:03}");
    let found = rows(&engine, read(GET, &[realm, "code"])).await?;
    same(&found[0][0], &Value::Text(token.clone()), "who redeemed it")?;
    same(names(&engine, realm).await?, vec![super::texts(&["code"]), super::texts(&[&token])], "tokens")
}

async fn one_of_a_hundred_inserts_of_a_key_wins(engine: Shared) -> Done {
    let batches = (0..MANY).map(|who| vec![put("first", "owner", "", who as i64)]).collect();
    let answers = together(&engine, batches).await?;
    let won: Vec<usize> = (0..MANY).filter(|&who| answers[who].is_ok()).collect();
    let lost = Err(CommitError::Conflict { at: 0, why: Broken::Unique });
    same(answers.iter().filter(|answer| **answer == lost).count(), MANY - 1, "conflicts")?;
    same(number(&engine, "first", "owner").await?, Value::Int(won[0] as i64), "the owner")
}

async fn no_update_is_lost(engine: Shared) -> Done {
    let realm = "count";
    stands(&engine, vec![put(realm, "logins", "", 0)]).await?;
    let add = || vec![write(ADD, &[realm, "logins"], Must::Touch(1))];
    for answer in together(&engine, (0..MANY).map(|_| add()).collect()).await? {
        same(answer, Ok(vec![1]), "each count")?;
    }
    same(number(&engine, realm, "logins").await?, Value::Int(MANY as i64), "the sum")
}

async fn a_conflict_spares_the_batches_beside_it(engine: Shared) -> Done {
    let realm = "beside";
    let batch = |who: usize| {
        let mut writes = vec![put(realm, &format!("{who:03}"), "", 0)];
        if who.is_multiple_of(3) {
            writes.push(write(ADD, &[realm, "missing"], Must::Touch(1)));
        }
        writes
    };
    let answers = together(&engine, (0..MANY).map(batch).collect()).await?;
    for (who, answer) in answers.into_iter().enumerate() {
        let conflict = Err(CommitError::Conflict { at: 1, why: Broken::Guard });
        same(answer, if who.is_multiple_of(3) { conflict } else { Ok(vec![1]) }, "each answer")?;
    }
    let wanted = (0..MANY).filter(|who| !who.is_multiple_of(3)).map(|who| super::texts(&[&format!("{who:03}")]));
    same(names(&engine, realm).await?, wanted.collect(), "what stands")
}

async fn a_broken_statement_spares_the_batches_beside_it(engine: Shared) -> Done {
    const NULL: Sql = Sql::fixed("INSERT INTO note (realm, body) VALUES (?, ?)");
    let batch = |who: usize| {
        let note = put("broken", &format!("{who:03}"), "", 0);
        if who == 50 { vec![note, write(NULL, &["broken", ""], Must::Any)] } else { vec![note] }
    };
    let answers = together(&engine, (0..MANY).map(batch).collect()).await?;
    same(matches!(answers[50], Err(CommitError::Unavailable(_))), true, "the broken one is unavailable")?;
    same(answers.iter().filter(|answer| answer.is_ok()).count(), MANY - 1, "the others stand")?;
    same(names(&engine, "broken").await?.len(), MANY - 1, "notes")
}

/// A token is issued only if its own batch finds the session live.
async fn a_revocation_acknowledged_first_wins(engine: Shared) -> Done {
    let realm = "revoke";
    stands(&engine, vec![write(ISSUE, &[realm, "session"], Must::Touch(1))]).await?;
    let issue = |who: usize| {
        vec![write(LIVE, &[realm, "session"], Must::Find(1)), put(realm, &format!("token-{who:03}"), "", 0)]
    };
    let revoke = || vec![write(REDEEM, &["revoked", realm, "session"], Must::Touch(1))];
    let mut batches: Vec<_> = (0..MANY).map(issue).collect();
    batches.insert(MANY / 2, revoke());
    let answers = together(&engine, batches).await?;
    same(answers[MANY / 2].clone(), Ok(vec![1]), "the revocation")?;
    let issued = answers.iter().filter(|answer| answer.is_ok()).count() - 1;
    same(names(&engine, realm).await?.len(), issued + 1, "the session and its tokens")?;
    let late = engine.commit(issue(MANY)).await;
    same(late, Err(CommitError::Conflict { at: 0, why: Broken::Guard }), "a token after the revocation")
}

/// Two rows that some engines look up together. A batch that ends one of them deletes every token that depends on it: a
/// token that appears after that was not held back by the rows that its batch found.
async fn what_leans_on_several_ends_with_one_of_them(engine: Shared) -> Done {
    const STANDS: Sql = Sql::fixed("SELECT 1 FROM note WHERE realm = ? AND name = ? AND body IS NULL");
    const TAKE_OUT: Sql = Sql::fixed("DELETE FROM note WHERE realm = ? AND name > ?");
    let realm = "lean";
    let opened = ["account", "session"].map(|name| write(ISSUE, &[realm, name], Must::Touch(1)));
    stands(&engine, opened.into()).await?;
    let issue = |who: usize| {
        let mut batch = Vec::from(["account", "session"].map(|name| write(STANDS, &[realm, name], Must::Find(1))));
        batch.push(put(realm, &format!("token-{who:03}"), "", 0));
        batch
    };
    let end = || {
        let ended = write(REDEEM, &["ended", realm, "session"], Must::Touch(1));
        vec![ended, write(TAKE_OUT, &[realm, "token"], Must::Any)]
    };
    let mut batches: Vec<_> = (0..MANY).map(issue).collect();
    batches.insert(MANY / 2, end());
    let answers = together(&engine, batches).await?;
    same(answers[MANY / 2].is_ok(), true, "the end")?;
    same(names(&engine, realm).await?, vec![super::texts(&["account"]), super::texts(&["session"])], "what is left")?;
    let late = engine.commit(issue(MANY)).await;
    same(late, Err(CommitError::Conflict { at: 1, why: Broken::Guard }), "a token after the end")
}

async fn an_acknowledged_batch_is_seen_by_the_next_fetch(engine: Shared) -> Done {
    let realm = "seen";
    stands(&engine, vec![put(realm, "n", "", 0)]).await?;
    for round in 1..=MANY as i64 {
        stands(&engine, vec![write(ADD, &[realm, "n"], Must::Touch(1))]).await?;
        same(number(&engine, realm, "n").await?, Value::Int(round), "the number just written")?;
    }
    Ok(())
}

async fn readers_see_whole_batches(engine: Shared) -> Done {
    const BOTH: Sql = Sql::fixed("SELECT number FROM note WHERE realm = ? ORDER BY name");
    let realm = "whole";
    stands(&engine, vec![put(realm, "a", "", 0), put(realm, "b", "", 0)]).await?;
    let writer = Arc::clone(&engine);
    let mut writing = tokio::task::JoinSet::new();
    writing.spawn(async move {
        for _ in 0..MANY {
            let both = ["a", "b"].map(|name| write(ADD, &[realm, name], Must::Touch(1)));
            stands(&writer, both.into()).await?;
        }
        Done::Ok(())
    });
    while writing.try_join_next().transpose().map_err(|error| error.to_string())?.transpose()?.is_none() {
        let found = rows(&engine, read(BOTH, &[realm])).await?;
        let different: BTreeSet<String> = found.iter().map(|row| format!("{row:?}")).collect();
        same(different.len(), 1, "half a batch")?;
        tokio::task::yield_now().await;
    }
    same(number(&engine, realm, "b").await?, Value::Int(MANY as i64), "the end")
}

async fn a_dropped_call_does_not_stop_its_batch(engine: Shared) -> Done {
    let mut call = engine.commit(vec![put("dropped", "a", "", 5)]);
    // One poll is enough to hand it over.
    poll_fn(|context| Poll::Ready(call.as_mut().poll(context).is_ready())).await;
    drop(call);
    for _ in 0..6000 {
        if number(&engine, "dropped", "a").await == Ok(Value::Int(5)) {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    Err("the batch was lost".to_owned())
}
