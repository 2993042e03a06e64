//! Stored values are returned as they were given, and compare as bytes.

use super::{
    Check, Done, GET, Must, Read, Shared, Sql, Value, Write, named, names, put, read, rows, same, stands, texts, write,
};
use crate::dialect;
use crate::engine::CommitError;

pub(super) const CHECKS: &[Check] = named![
    text_compares_as_bytes,
    text_is_ordered_by_bytes,
    numbers_keep_64_bits,
    nothing_is_not_empty,
    bytes_are_kept_as_they_are,
    nul_is_refused,
    long_text_is_kept,
    a_batch_may_be_long,
    lists_find_each_row_once,
    pages_go_by_key,
    a_long_read_is_answered,
];

/// The number of statements in a batch that is long, but not bulk work.
const MANY_ROWS: usize = 2000;

const KEEP: Sql = Sql::fixed("INSERT INTO note (realm, name, body, number, bytes) VALUES (?, ?, ?, ?, ?)");

fn keep(realm: &str, name: &str, [body, number, bytes]: [Value; 3]) -> Write {
    let mut args = texts(&[realm, name]);
    args.extend([body, number, bytes]);
    Write { sql: KEEP, args, must: Must::Touch(1) }
}

/// Stores three values and reads them again.
async fn kept(engine: &Shared, realm: &str, values: [Value; 3]) -> Done {
    stands(engine, vec![keep(realm, "a", values.clone())]).await?;
    same(rows(engine, read(GET, &[realm, "a"])).await?, vec![values.into()], "what was kept")
}

/// Differences in case, accents, composition, spaces at the end, and letters that fold to two: all are different.
const ALIKE: [&str; 12] =
    ["", " ", "A", "Strasse", "a", "a ", "a\t", "stra\u{df}e", "strasse", "\u{e1}", "a\u{301}", "\u{ff41}"];

async fn text_compares_as_bytes(engine: Shared) -> Done {
    let realm = "alike";
    stands(&engine, ALIKE.iter().map(|name| put(realm, name, name, 0)).collect()).await?;
    for name in ALIKE {
        let found = rows(&engine, read(GET, &[realm, name])).await?;
        same(found.len(), 1, "rows of one name")?;
        same(&found[0][0], &Value::Text(name.to_owned()), "its body")?;
    }
    same(names(&engine, "ALIKE").await?, vec![], "a realm in capitals")
}

async fn text_is_ordered_by_bytes(engine: Shared) -> Done {
    let realm = "ordered";
    let mut sorted = ALIKE;
    sorted.sort_unstable();
    stands(&engine, ALIKE.iter().map(|name| put(realm, name, "", 0)).collect()).await?;
    same(names(&engine, realm).await?, sorted.map(|name| texts(&[name])).into(), "the order")
}

async fn numbers_keep_64_bits(engine: Shared) -> Done {
    for (at, number) in [i64::MIN, i64::MIN + 1, -1, 0, 1 << 53, (1 << 53) + 1, i64::MAX].into_iter().enumerate() {
        kept(&engine, &format!("number {at}"), [Value::Null, Value::Int(number), Value::Null]).await?;
    }
    Ok(())
}

async fn nothing_is_not_empty(engine: Shared) -> Done {
    kept(&engine, "empty", [Value::Text(String::new()), Value::Int(0), Value::Blob(vec![])]).await?;
    kept(&engine, "null", [Value::Null, Value::Null, Value::Null]).await
}

async fn bytes_are_kept_as_they_are(engine: Shared) -> Done {
    let every: Vec<u8> = (0..=255).collect();
    let text = "\u{1} \u{7f} \u{80} ' \" \\ % _ ? $1 \r\n \u{fffd} \u{10ffff}";
    kept(&engine, "bytes", [Value::Text(text.to_owned()), Value::Null, Value::Blob(every)]).await
}

async fn nul_is_refused(engine: Shared) -> Done {
    let answer = engine.commit(vec![put("nul", "a", "", 0), put("nul", "b\0", "", 0)]).await;
    same(matches!(answer, Err(CommitError::Unavailable(_))), true, "a batch with NUL is refused")?;
    same(names(&engine, "nul").await?, vec![], "notes")?;
    same(engine.fetch(&[read(GET, &["nul", "\0"])]).await.is_err(), true, "a read with NUL is refused")
}

async fn long_text_is_kept(engine: Shared) -> Done {
    let long = "\u{20ac}x".repeat(256 * 1024);
    let bytes = long.clone().into_bytes();
    kept(&engine, "long", [Value::Text(long), Value::Null, Value::Blob(bytes)]).await
}

async fn a_batch_may_be_long(engine: Shared) -> Done {
    let note = |at: usize| put("many", &format!("{at:05}"), "", at as i64);
    let counts = stands(&engine, (0..MANY_ROWS).map(note).collect()).await?;
    same(counts, vec![1; MANY_ROWS], "counts")?;
    same(names(&engine, "many").await?.len(), MANY_ROWS, "notes")
}

async fn lists_find_each_row_once(engine: Shared) -> Done {
    let realm = "lists";
    stands(&engine, ["a", "b", "c"].iter().map(|name| put(realm, name, "", 0)).collect()).await?;
    let pick = ["c", "a", "x", "a", "c"].map(|name| Value::Text(name.to_owned()));
    let (list, picked) = dialect::list(pick.into()).ok_or("the list is short")?;
    let sql = Sql::joined(&["SELECT name FROM note WHERE realm = ? AND name IN ", list, " ORDER BY name"]);
    let args = texts(&[realm]).into_iter().chain(picked).collect();
    same(rows(&engine, Read { sql, args }).await?, vec![texts(&["a"]), texts(&["c"])], "found")
}

async fn pages_go_by_key(engine: Shared) -> Done {
    const PAGE: Sql = Sql::fixed("SELECT name FROM note WHERE realm = ? AND name > ? ORDER BY name LIMIT ?");
    let realm = "pages";
    stands(&engine, (0..10).map(|at| put(realm, &format!("{at}"), "", 0)).collect()).await?;
    let mut seen = Vec::new();
    let mut after = texts(&[""]);
    loop {
        let args = texts(&[realm]).into_iter().chain(after).chain([Value::Int(4)]).collect();
        let page = rows(&engine, Read { sql: PAGE, args }).await?;
        let Some(last) = page.last().cloned() else { break };
        seen.extend(page);
        after = last;
    }
    same(seen, (0..10).map(|at| texts(&[&at.to_string()])).collect(), "all pages")
}

/// A read that looks at far more rows than it returns, beside one that does not.
async fn a_long_read_is_answered(engine: Shared) -> Done {
    const PAIRS: Sql = Sql::fixed("SELECT COUNT(*) FROM note a, note b WHERE a.realm = ? AND b.realm = ?");
    let note = |at: usize| put("pairs", &format!("{at:05}"), "", 0);
    stands(&engine, (0..500).map(note).collect()).await?;
    let reads = [read(PAIRS, &["pairs", "pairs"]), read(GET, &["pairs", "00007"])];
    let answers = engine.fetch(&reads).await.map_err(|why| why.0)?;
    same(answers[0].clone(), vec![vec![Value::Int(250_000)]], "pairs")?;
    same(answers[1].len(), 1, "the short read beside it")?;
    // The engine still works afterwards.
    stands(&engine, vec![write(GET, &["pairs", "00007"], Must::Find(1))]).await.map(drop)
}
