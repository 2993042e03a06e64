//! Expired rows are deleted step by step, and nothing else is.

use super::replays::{commit, family, ordered, session};
use super::{Done, Must, Read, Shared, Sql, Value, Write, rows, same, stands};
use crate::tables::codes::{Next, Stretch, drop_unused};
use crate::tables::living::{self, Kept, Living};
use crate::tables::restore::Issued;
use crate::tables::sweep::{Bounds, step};
use crate::tables::{ask, changes};
use rules::id::{FamilyId, RealmId, SessionId};
use rules::{Change, Fresh, Time};

/// Up to this time, everything is old.
const OLD: Time = Time(50_000);
/// How many rows are old, and how many are not.
const COUNTS: [i64; 2] = [25, 5];
/// How many rows of each kind a step deletes.
const AT_ONCE: i64 = 10;

/// The indexes of the statements in [`step`] that delete tokens and families.
const TOKENS: usize = 2;
const FAMILIES: usize = 6;

const REVOKE: Sql = Sql::fixed("INSERT INTO revoked_tokens (realm, jti, expires) VALUES (?, ?, ?)");
const REVOKED: Sql = Sql::fixed("SELECT expires FROM revoked_tokens WHERE realm = ? ORDER BY jti");
const BEGUN: Sql = Sql::fixed("SELECT id FROM families WHERE realm = ? ORDER BY id");

fn revoke(realm: &str, number: i64, expires: Time) -> Write {
    let args = vec![Value::Text(realm.into()), Value::Text(format!("{number:02}")), Value::Int(expires.0)];
    Write { sql: REVOKE, args, must: Must::Touch(1) }
}

/// Tokens that expired in one millisecond, tokens of another realm, and families, each begun after the one before.
async fn fill(engine: &Shared, realm: &RealmId) -> Done {
    let [old, live] = COUNTS;
    for number in 0..old + live {
        let at = if number < old { OLD } else { Time(OLD.0 + 1) };
        commit(engine, vec![revoke(&realm.0, number, at), revoke("another", number, OLD)]).await?;
        let begun = Time(if number < old { number } else { OLD.0 + number });
        let start = Change::StartFamily(Box::new(family("ada", &format!("{number}"), begun)));
        let seed = [u8::try_from(number).unwrap_or(u8::MAX); 32];
        commit(engine, changes::batch(realm, &[start], begun, &Fresh::new(seed))).await?;
    }
    Ok(())
}

async fn all(engine: &Shared, sql: Sql, realm: &str) -> Result<Vec<Value>, String> {
    let found = rows(engine, Read { sql, args: vec![Value::Text(realm.into())] }).await?;
    Ok(found.into_iter().flatten().collect())
}

const ISSUE: Sql = Sql::fixed(
    "INSERT INTO codes (realm, family, handle, client_id, user_id, session_id, redirect_uri, granted, expires, \
     redeemed_at) VALUES (?, ?, ?, 'shop', 'ada', 's', '', '{}', ?, ?)",
);

/// Ten codes, of which every other one was redeemed, are looked at in two stretches: the redeemed ones stay.
async fn unused_codes(engine: &Shared, realm: &RealmId) -> Done {
    let family = |number: i64| ordered(&number.to_string(), Time(number));
    for number in 0..10 {
        let redeemed = if number % 2 == 0 { Value::Int(1) } else { Value::Null };
        let handle = Value::Blob(vec![0; 32]);
        let args = vec![Value::Text(realm.0.clone()), Value::Text(family(number)), handle, Value::Int(1), redeemed];
        commit(engine, vec![Write { sql: ISSUE, args, must: Must::Touch(1) }]).await?;
    }
    let mut after = String::new();
    for wanted in [(3, 4, 2), (9, 6, 3)] {
        let next = Next { after: &after, before: OLD, limit: 6.min(wanted.1) };
        let found = ask(&**engine, realm, next).await.map_err(|why| why.0)?;
        let stretch = Stretch { last: FamilyId(family(wanted.0)), codes: wanted.1, unused: wanted.2 };
        same(found.as_ref(), Some(&stretch), "codes of a stretch")?;
        let gone = stands(engine, vec![drop_unused(realm, (&after, &stretch.last), OLD)]).await?;
        same(gone, vec![wanted.2.unsigned_abs()], "codes that nobody redeemed")?;
        after = stretch.last.0;
    }
    let rest = ask(&**engine, realm, Next { after: &after, before: OLD, limit: 6 }).await.map_err(|why| why.0)?;
    same(rest, None, "codes behind them")?;
    let left = ask(&**engine, realm, Next { after: "", before: OLD, limit: 100 }).await.map_err(|why| why.0)?;
    same(left.map(|left| (left.codes, left.unused)), Some((5, 0)), "codes that are left")
}

/// How many rows each statement of [`in_steps`] deletes.
pub const STEP: i64 = 100;

/// Every statement that deletes rows in steps, each with its table, for a realm in which everything is old.
pub fn in_steps(realm: &RealmId) -> Vec<(String, Write)> {
    const LATER: Time = Time(1 << 40);
    let bounds = Bounds { now: LATER, devices: LATER, sessions: LATER, families: LATER, strangers: LATER };
    let mut writes = step(realm, &bounds, STEP);
    writes.extend(Issued::ALL.map(|issued| issued.drop_first(realm, STEP)));
    let table = |write: &Write| write.sql.text().split(' ').nth(2).unwrap_or_default().to_owned();
    writes.into_iter().map(|write| (table(&write), write)).collect()
}

/// What a user holds ends as it is found, and nothing else does: what is kept, and what others hold.
async fn held(engine: &Shared, realm: &RealmId) -> Done {
    for number in 0..70 {
        for of in ["eve", "zoe"] {
            let (name, begun) = (format!("{of} {number}"), Time(number));
            let start = [
                Change::StartSession(Box::new(session(of, &name, begun))),
                Change::StartFamily(Box::new(family(of, &name, begun))),
            ];
            commit(engine, changes::batch(realm, &start, begun, &Fresh::new([0; 32]))).await?;
        }
    }
    let kept = SessionId(ordered("eve 7", Time(7)));
    for (of, except, wanted) in [("eve", Some(&kept), [69, 70]), ("eve", None, [1, 0]), ("zoe", None, [70, 70])] {
        for (kept, wanted) in [Kept::Sessions, Kept::Families].into_iter().zip(wanted) {
            let user = of.into();
            let living =
                async || ask(&**engine, realm, Living { kept, user: &user, except }).await.map_err(|why| why.0);
            let ids = living().await?;
            same(ids.len(), wanted, "what a user holds")?;
            let ended = stands(engine, living::end(realm, kept, &ids, OLD)).await?;
            same(ended.iter().sum(), wanted as u64, "what has ended")?;
            same(living().await?.len(), 0, "what a user still holds")?;
        }
    }
    Ok(())
}

/// Runs on the real schema.
pub async fn sweeping(engine: Shared) -> Done {
    engine.migrate().await.map_err(|why| why.0)?;
    held(&engine, &"held".into()).await?;
    let realm = RealmId("swept".into());
    unused_codes(&engine, &realm).await?;
    fill(&engine, &realm).await?;
    let bounds = Bounds { now: OLD, devices: OLD, sessions: OLD, families: OLD, strangers: OLD };
    for wanted in [10, 10, 5, 0] {
        let touched = stands(&engine, step(&realm, &bounds, AT_ONCE)).await?;
        same((touched[TOKENS], touched[FAMILIES]), (wanted, wanted), "tokens and families of a step")?;
    }
    let [old, live] = COUNTS;
    let left = all(&engine, REVOKED, &realm.0).await?;
    same(left, vec![Value::Int(OLD.0 + 1); usize::try_from(live).unwrap_or(0)], "tokens that are left")?;
    let begun = |number: i64| Value::Text(ordered(&number.to_string(), Time(OLD.0 + number)));
    same(all(&engine, BEGUN, &realm.0).await?, (old..old + live).map(begun).collect(), "families that are left")?;
    same(all(&engine, REVOKED, "another").await?.len() as i64, old + live, "tokens of another realm")
}
