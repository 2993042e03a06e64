//! What can be known about both ends before anything is done. Nothing is changed here.

use super::claim::{Mover, examine};
use super::marks::Marks;
use super::rights::{self, Deed};
use super::{Arrival, Trouble, catalogue, page, vacant};
use crate::dialect::Dialect;
use crate::engine::{Engine, Read, Sql, Value};
use crate::migrations::MIGRATIONS;
use crate::schema;

/// Whether a target can be filled from `from` by this move. Returns how far the move is, or `None` if the target is
/// empty, with or without our tables.
pub async fn of_target(from: &dyn Engine, to: &dyn Engine, mover: Mover<'_>) -> Result<Option<Arrival>, Trouble> {
    vacant(to).await?;
    let (theirs, ours) = (catalogue::version(to).await?, schema::newest(MIGRATIONS));
    let arrival = match theirs == ours {
        true => examine(from, to, mover).await?,
        false if theirs > ours => {
            return Err(Trouble::new(format!(
                "the target has schema {theirs}, this program {ours}: a newer version has used it"
            )));
        }
        false => unfinished(to).await?,
    };
    rights::suffice(to, Deed::Fill { makes: theirs < ours }).await.map_err(of("the target"))?;
    Ok(arrival)
}

/// Checks whether a source can be closed to writes, as far as that can be queried.
pub async fn of_source(from: &dyn Engine) -> Result<(), Trouble> {
    let marks = Marks::read(from).await?;
    if let (None, Some(why)) = (&marks.out, marks.obstacle()) {
        return Err(Trouble::new(why));
    }
    rights::suffice(from, Deed::Fence).await.map_err(of("the source"))
}

/// Checks that a fence of a source waits for no node, if the target is a file: nodes do not work on a file, so what
/// they acknowledged would never be replayed there, and the fence would wait for ever.
pub async fn nobody_is_awaited(from: &dyn Engine, to: Dialect) -> Result<(), Trouble> {
    if to != Dialect::Sqlite || !catalogue::has(from, "fence_nodes").await? {
        return Ok(());
    }
    let nodes = catalogue::listed(from, "SELECT DISTINCT node FROM fence_nodes WHERE state = 'waiting' ORDER BY node");
    let nodes = nodes.await?;
    if nodes.is_empty() {
        return Ok(());
    }
    let nodes = nodes.join(", ");
    Err(Trouble::new(format!(
        "a fence of the source waits for nodes ({nodes}): what they acknowledged and the database lost is never \
         replayed to a file; start them on the source first, or give that up: portiere fence accept-loss"
    )))
}

fn of(end: &'static str) -> impl Fn(Trouble) -> Trouble {
    move |trouble| trouble.told(|why| format!("{end}: {why}"))
}

/// Checks that a target with an older or partial schema of ours has no rows, so that it can be brought up to date.
async fn unfinished(to: &dyn Engine) -> Result<Option<Arrival>, Trouble> {
    if let Some(why) = Marks::read(to).await?.obstacle() {
        return Err(Trouble::new(format!("cannot move to the target: {why}")));
    }
    let tables = catalogue::tables(to).await.map_err(of("the target"))?;
    for table in tables.values().filter(|table| !catalogue::is_own(&table.name)) {
        if page::count(to, table).await? > 0 {
            return Err(Trouble::new(format!("the target is not empty: it has rows in the table {}", table.name)));
        }
    }
    Ok(None)
}

/// The longest packet that a server accepts, in bytes, if it has such a limit.
pub async fn packet(to: &dyn Engine) -> Result<Option<u64>, Trouble> {
    let sql = "SELECT @@max_allowed_packet FROM information_schema.schemata AS s WHERE s.schema_name = DATABASE()";
    match to.dialect() {
        Dialect::Sqlite | Dialect::Postgres => Ok(None),
        Dialect::Mysql => Ok(number(to, Sql::fixed(sql)).await?),
    }
}

/// The approximate size of a database, in bytes: of its files.
pub async fn size(from: &dyn Engine) -> Result<u64, Trouble> {
    let sql = Sql::fixed(match from.dialect() {
        Dialect::Sqlite => {
            "SELECT (c.page_count - f.freelist_count) * s.page_size \
             FROM pragma_page_count AS c, pragma_freelist_count AS f, pragma_page_size AS s"
        }
        Dialect::Postgres => "SELECT CAST(pg_database_size(current_database()) AS bigint)",
        Dialect::Mysql => {
            "SELECT CAST(SUM(t.data_length + t.index_length) AS SIGNED) FROM information_schema.tables AS t \
             WHERE t.table_schema = DATABASE()"
        }
    });
    Ok(number(from, sql).await?.unwrap_or(0))
}

async fn number(engine: &dyn Engine, sql: Sql) -> Result<Option<u64>, Trouble> {
    match engine.fetch(&[Read { sql, args: vec![] }]).await?.concat().concat().as_slice() {
        [Value::Int(number)] => Ok(Some(number.unsigned_abs())),
        _ => Ok(None),
    }
}
