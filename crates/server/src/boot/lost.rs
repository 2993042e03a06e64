//! What a database lacks of what the node of this data folder acknowledged.

use super::BootError;
use crate::config::Config;
use crate::database::Database;
use crate::journal;
use app::clock::Clock;
use rules::id::RealmId;
use std::path::Path;
use store::engine::Engine;
use store::moving::catalogue;
use store::tables::ask;
use store::tables::nodes::Mark;

/// A node that remembers more than the database has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lacking {
    /// The node's name.
    pub node: String,
    /// The last mark that a database acknowledged.
    pub mark: i64,
    /// The mark in this database.
    pub found: i64,
}

/// Returns what this database lacks of what the node of a data folder acknowledged, by the node's mark. The schema may
/// be an earlier one.
pub async fn lacking(engine: &dyn Engine, realm: &RealmId, data: &Path) -> Result<Option<Lacking>, BootError> {
    // First: a node that runs raises the mark in the database before its own.
    let memory = journal::memory(data).map_err(|error| BootError::Other(format!("{}: {error}", data.display())))?;
    let Some(memory) = memory.filter(|memory| memory.mark > 0) else { return Ok(None) };
    let found = match catalogue::has(engine, "nodes").await.map_err(|trouble| BootError::Other(trouble.why))? {
        true => ask(engine, realm, Mark(&memory.node)).await.map_err(|error| BootError::Away(error.0))?,
        false => None,
    };
    let is_lacking = memory.is_ahead_of(found, Clock::system().now());
    Ok(is_lacking.then(|| Lacking { node: memory.node, mark: memory.mark, found: found.unwrap_or(0) }))
}

/// Refuses to serve from a file that lacks what this node acknowledged on the server from which the file was moved:
/// what was revoked there would be valid, and no fence tells. Asked before the move can no longer be given up.
pub(super) async fn refuse(config: &Config, database: &Database, realm: &RealmId) -> Result<(), BootError> {
    let Some(file) = config.database() else { return Ok(()) };
    let Some(lost) = lacking(&*database.engine(), realm, &config.server.data).await? else { return Ok(()) };
    let Lacking { node, mark, found } = lost;
    Err(BootError::Other(format!(
        "{} lacks what node {node} of this data folder acknowledged on a database server (the node knows its mark \
         {mark}, the file {found}): what was revoked or disabled since would be valid again. If it was just moved \
         here, give the move up (portiere move --abort), start the node on that server, which replays its journal, and \
         move again. Otherwise end all that was issued: portiere restore --in-place",
        file.display()
    )))
}
