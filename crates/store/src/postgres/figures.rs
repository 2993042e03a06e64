//! What the server's planner knows of tables that have just grown.
//!
//! Without figures it takes any value of a key's first column, which is the realm of every row, to lead to one row: to look for a
//! session among all that the realm has seems as cheap as to find it. The server counts by itself, a minute or more after
//! a table has grown. Until then each request would read the more the faster people come.

use std::sync::Arc;
use std::time::Duration;

use super::cargo::Cargo;
use super::flight::Fault;
use super::migrate;
use super::pool::Pool;
use crate::engine::{Read, Sql, Unavailable, Value};

/// Between two looks.
const EVERY: Duration = Duration::from_secs(5);

/// A table with fewer rows is read as fast as it is searched.
const FEW: i64 = 16;

/// Has tables counted that have grown to twice what the server knows of; runs until it is dropped. Each is counted as often
/// as it doubles, by a sample. Which nodes do so at the same time makes no difference: whoever is second leaves it.
pub(super) async fn keep(pool: Arc<Pool>) {
    loop {
        match outgrown(&pool).await {
            Ok(tables) if tables.is_empty() => {}
            Ok(tables) => {
                tracing::debug!(?tables, "tables have grown: their figures are counted anew");
                let count = tables.iter().map(|table| format!("ANALYZE (SKIP_LOCKED) {table}")).collect();
                if let Err(why) = migrate::alter(&pool, count).await {
                    tracing::debug!(why = why.0, "figures of tables that have grown were not counted");
                }
            }
            Err(why) => tracing::debug!(why = why.0, "it is not known which tables have grown"),
        }
        tokio::time::sleep(EVERY).await;
    }
}

/// Tables of ours that have twice the rows, or more, that the planner believes, as they are written in a statement.
async fn outgrown(pool: &Pool) -> Result<Vec<String>, Unavailable> {
    let sql = Sql::fixed(
        "SELECT CAST(quote_ident(s.relname) AS text) FROM pg_stat_user_tables s JOIN pg_class c ON c.oid = s.relid \
         WHERE s.schemaname = current_schema() AND s.n_live_tup >= ? AND s.n_live_tup >= 2 * c.reltuples \
         AND pg_has_role(c.relowner, 'USAGE')",
    );
    let cargo = Cargo::reads(&pool.book, &[Read { sql, args: vec![Value::Int(FEW)] }]).map_err(Unavailable)?;
    let done = pool.send(Arc::new(cargo)).await.map_err(|fault: Fault| Unavailable(fault.sentence()))?;
    let names = done.rows.concat().into_iter().filter_map(|row| match row.into_iter().next() {
        Some(Value::Text(name)) => Some(name),
        _ => None,
    });
    Ok(names.collect())
}
