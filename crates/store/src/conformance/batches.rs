//! A batch commits as a whole or not at all, and says why not.

use super::{
    ADD, Check, Done, GET, Must, PUT, Shared, Sql, Value, Write, named, names, number, put, read, rows, same, stands,
    texts, write,
};
use crate::engine::{Broken, CommitError};

pub(super) const CHECKS: &[Check] = named![
    a_batch_answers_the_rows_of_each_statement,
    an_empty_batch_stands,
    a_failed_batch_leaves_nothing,
    touch_counts_matched_rows,
    find_counts_rows_and_sees_the_batch,
    of_several_finds_the_one_that_does_not_hold_is_told,
    any_never_breaks,
    absence_is_proved_by_a_key,
    a_unique_index_is_a_unique_key,
    a_missing_parent_is_foreign,
    a_parent_in_use_is_foreign,
    a_parent_of_the_same_batch_is_there,
    insert_if_absent_touches_none,
    a_statement_that_cannot_run_is_unavailable,
    arguments_match_placeholders,
    reads_are_answered_in_order,
    migrating_again_changes_nothing,
    a_sound_engine_is_writable,
];

const COUNT: Sql = Sql::fixed("SELECT name FROM note WHERE realm = ?");
const REMOVE: Sql = Sql::fixed("DELETE FROM note WHERE realm = ?");
const IF_ABSENT: Sql = Sql::fixed("INSERT INTO note (realm, name) VALUES (?, ?) ON CONFLICT DO NOTHING");
const LABEL: Sql = Sql::fixed("INSERT INTO label (id, title) VALUES (?, ?)");
const UNLABEL: Sql = Sql::fixed("DELETE FROM label WHERE id = ?");
const THING: Sql = Sql::fixed("INSERT INTO thing (id, label) VALUES (?, ?)");
const BROKEN: Sql = Sql::fixed("UPDATE no_such_table SET a = ?");

async fn conflicts(engine: &Shared, writes: Vec<Write>, at: usize, why: Broken) -> Done {
    same(engine.commit(writes).await, Err(CommitError::Conflict { at, why }), "the answer")
}

async fn a_batch_answers_the_rows_of_each_statement(engine: Shared) -> Done {
    let realm = "counts";
    let batch = vec![
        put(realm, "a", "", 0),
        put(realm, "b", "", 0),
        write(COUNT, &[realm], Must::Find(2)),
        write(REMOVE, &[realm], Must::Any),
        write(COUNT, &[realm], Must::Any),
    ];
    same(stands(&engine, batch).await?, vec![1, 1, 2, 2, 0], "rows")
}

async fn an_empty_batch_stands(engine: Shared) -> Done {
    same(stands(&engine, vec![]).await?, vec![], "rows")
}

async fn a_failed_batch_leaves_nothing(engine: Shared) -> Done {
    let realm = "nothing";
    stands(&engine, vec![put(realm, "old", "", 7)]).await?;
    let batch = vec![
        write(ADD, &[realm, "old"], Must::Touch(1)),
        put(realm, "new", "", 0),
        write(ADD, &[realm, "missing"], Must::Touch(1)),
        put(realm, "after", "", 0),
    ];
    conflicts(&engine, batch, 2, Broken::Guard).await?;
    same(number(&engine, realm, "old").await?, Value::Int(7), "the old note")?;
    same(names(&engine, realm).await?, vec![texts(&["old"])], "notes")
}

async fn touch_counts_matched_rows(engine: Shared) -> Done {
    const SET: Sql = Sql::fixed("UPDATE note SET body = ? WHERE realm = ?");
    let realm = "touch";
    stands(&engine, vec![put(realm, "a", "same", 0), put(realm, "b", "same", 0)]).await?;
    let set = |must| vec![write(SET, &["same", realm], must)];
    same(stands(&engine, set(Must::Touch(2))).await?, vec![2], "rows that were the same before")?;
    conflicts(&engine, set(Must::Touch(1)), 0, Broken::Guard).await?;
    conflicts(&engine, set(Must::Touch(0)), 0, Broken::Guard).await?;
    same(stands(&engine, vec![write(REMOVE, &["touch none"], Must::Touch(0))]).await?, vec![0], "no rows")
}

async fn find_counts_rows_and_sees_the_batch(engine: Shared) -> Done {
    let realm = "find";
    let find = |count| write(COUNT, &[realm], Must::Find(count));
    stands(&engine, vec![find(0), put(realm, "a", "", 0), find(1)]).await?;
    conflicts(&engine, vec![put(realm, "b", "", 0), find(1)], 1, Broken::Guard).await?;
    conflicts(&engine, vec![find(0)], 0, Broken::Guard).await?;
    same(names(&engine, realm).await?, vec![texts(&["a"])], "notes")
}

async fn of_several_finds_the_one_that_does_not_hold_is_told(engine: Shared) -> Done {
    const THERE: Sql = Sql::fixed("SELECT 1 FROM note WHERE realm = ? AND name = ?");
    const ANYBODY: Sql = Sql::fixed("SELECT 1 FROM note WHERE realm = ?");
    let realm = "several";
    let there = |name: &str| write(THERE, &[realm, name], Must::Find(1));
    stands(&engine, vec![put(realm, "a", "", 0), put(realm, "b", "", 0)]).await?;
    let add = write(ADD, &[realm, "a"], Must::Touch(1));
    same(stands(&engine, vec![there("a"), there("b"), there("a"), add]).await?, vec![1; 4], "rows")?;
    let late = || put(realm, "late", "", 0);
    conflicts(&engine, vec![there("a"), there("missing"), there("b"), late()], 1, Broken::Guard).await?;
    // Two rows for one statement do not make up for none for the other.
    let twice = || write(ANYBODY, &[realm], Must::Find(1));
    conflicts(&engine, vec![there("a"), twice(), late()], 1, Broken::Guard).await?;
    same(names(&engine, realm).await?, vec![texts(&["a"]), texts(&["b"])], "notes")
}

async fn any_never_breaks(engine: Shared) -> Done {
    let batch = vec![write(REMOVE, &["any"], Must::Any), write(COUNT, &["any"], Must::Any)];
    same(stands(&engine, batch).await?, vec![0, 0], "rows")
}

async fn absence_is_proved_by_a_key(engine: Shared) -> Done {
    let realm = "key";
    stands(&engine, vec![put(realm, "a", "first", 1)]).await?;
    conflicts(&engine, vec![put(realm, "b", "", 0), put(realm, "a", "second", 2)], 1, Broken::Unique).await?;
    same(names(&engine, realm).await?, vec![texts(&["a"])], "notes")?;
    same(number(&engine, realm, "a").await?, Value::Int(1), "the first one's number")
}

async fn a_unique_index_is_a_unique_key(engine: Shared) -> Done {
    stands(&engine, vec![write(LABEL, &["unique 1", "title"], Must::Touch(1))]).await?;
    conflicts(&engine, vec![write(LABEL, &["unique 2", "title"], Must::Touch(1))], 0, Broken::Unique).await
}

async fn a_missing_parent_is_foreign(engine: Shared) -> Done {
    let batch = vec![put("foreign", "a", "", 0), write(THING, &["orphan", "no label"], Must::Touch(1))];
    conflicts(&engine, batch, 1, Broken::Foreign).await?;
    same(names(&engine, "foreign").await?, vec![], "notes")
}

async fn a_parent_in_use_is_foreign(engine: Shared) -> Done {
    let label = write(LABEL, &["used", "used"], Must::Touch(1));
    stands(&engine, vec![label, write(THING, &["user", "used"], Must::Touch(1))]).await?;
    conflicts(&engine, vec![write(UNLABEL, &["used"], Must::Touch(1))], 0, Broken::Foreign).await
}

async fn a_parent_of_the_same_batch_is_there(engine: Shared) -> Done {
    let thing = || write(THING, &["child", "parent"], Must::Touch(1));
    let label = || write(LABEL, &["parent", "parent"], Must::Touch(1));
    conflicts(&engine, vec![thing(), label()], 0, Broken::Foreign).await?;
    stands(&engine, vec![label(), thing()]).await.map(drop)
}

async fn insert_if_absent_touches_none(engine: Shared) -> Done {
    let insert = |must| vec![write(IF_ABSENT, &["absent", "a"], must)];
    same(stands(&engine, insert(Must::Any)).await?, vec![1], "rows at first")?;
    same(stands(&engine, insert(Must::Any)).await?, vec![0], "rows later")?;
    conflicts(&engine, insert(Must::Touch(1)), 0, Broken::Guard).await
}

async fn a_statement_that_cannot_run_is_unavailable(engine: Shared) -> Done {
    let batch = vec![put("cannot", "a", "", 0), write(BROKEN, &["x"], Must::Any)];
    match engine.commit(batch).await {
        Err(CommitError::Unavailable(_)) => same(names(&engine, "cannot").await?, vec![], "notes"),
        other => Err(format!("answered {other:?}")),
    }
}

async fn arguments_match_placeholders(engine: Shared) -> Done {
    for args in [&["a"][..], &["a", "b", "c"]] {
        let answer = engine.fetch(&[read(GET, args)]).await;
        same(answer.is_err(), true, "a read with a wrong number of arguments fails")?;
        let answer = engine.commit(vec![write(PUT, args, Must::Any)]).await;
        same(matches!(answer, Err(CommitError::Unavailable(_))), true, "so does a batch")?;
    }
    Ok(())
}

async fn reads_are_answered_in_order(engine: Shared) -> Done {
    let realm = "order";
    stands(&engine, vec![put(realm, "a", "", 1), put(realm, "b", "", 2)]).await?;
    let reads =
        [read(GET, &[realm, "b"]), read(GET, &[realm, "missing"]), read(COUNT, &[realm]), read(GET, &[realm, "a"])];
    let answers = engine.fetch(&reads).await.map_err(|why| why.0)?;
    let row = |number| vec![vec![Value::Text(String::new()), Value::Int(number), Value::Null]];
    let wanted = vec![row(2), vec![], vec![texts(&["a"]), texts(&["b"])], row(1)];
    same(answers, wanted, "answers")?;
    same(engine.fetch(&[]).await, Ok(vec![]), "no reads")
}

async fn migrating_again_changes_nothing(engine: Shared) -> Done {
    stands(&engine, vec![put("again", "a", "", 0)]).await?;
    engine.migrate().await.map_err(|why| why.0)?;
    same(rows(&engine, read(COUNT, &["again"])).await?.len(), 1, "rows")
}

async fn a_sound_engine_is_writable(engine: Shared) -> Done {
    let health = engine.health().await.map_err(|why| why.0)?;
    same(health.writable, Ok(()), "writable")?;
    same(health.commit_ms.is_finite() && health.commit_ms >= 0.0, true, "commit_ms is a duration")
}
