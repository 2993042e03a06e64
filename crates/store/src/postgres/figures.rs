//! Keeps the planner's statistics of fast-growing tables up to date.
//!
//! Without statistics, the planner assumes that any value of a key's first column leads to one row, but that column is
//! the realm of every row: scanning all its sessions seems as cheap as finding one. The server updates its statistics
//! by itself, a minute or more after a table has grown. Until then each request reads more, the faster users come.

use std::sync::Arc;
use std::time::Duration;

use super::cargo::Cargo;
use super::flight::Fault;
use super::migrate;
use super::pool::Pool;
use crate::engine::{Read, Sql, Unavailable, Value};

/// The pause between two checks.
const EVERY: Duration = Duration::from_secs(5);

/// Tables with fewer rows are read as fast as they are searched.
const FEW: i64 = 16;

/// Updates the statistics of tables that have grown to twice the size that the server knows; runs until dropped. Each
/// table is sampled whenever it doubles. Several nodes may do so at the same time: the second one skips the table.
pub(super) async fn keep(pool: Arc<Pool>) {
    loop {
        match outgrown(&pool).await {
            Ok(tables) if tables.is_empty() => {}
            Ok(tables) => {
                tracing::debug!(?tables, "tables have grown: updating their statistics");
                let count = tables.iter().map(|table| format!("ANALYZE (SKIP_LOCKED) {table}")).collect();
                if let Err(why) = migrate::alter(&pool, count).await {
                    tracing::debug!(why = why.0, "the statistics of grown tables could not be updated");
                }
            }
            Err(why) => tracing::debug!(why = why.0, "could not find out which tables have grown"),
        }
        tokio::time::sleep(EVERY).await;
    }
}

/// Lists our tables that have at least twice the rows that the planner assumes, quoted for use in a statement.
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
