//! Removes what is left of a journal that is not kept any more.

use super::{FOLDER, part_file, parts, written};
use crate::private;
use app::App;
use app::ward::KEPT;
use rules::Time;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::Path;
use std::time::Duration;

/// The pause between two looks.
const PAUSE: Duration = Duration::from_secs(3600);

/// Where this node keeps no journal, removes the files of an earlier one once they are as old as a journal becomes:
/// they contain password hashes. What the node remembers stays, for the day when it works on a server again. Runs until
/// dropped.
pub async fn expire(data: &Path, app: &App) {
    // A journal that is kept forgets by itself.
    while app.guarded().is_none() {
        let (data, before) = (data.to_owned(), app.clock.steady() - KEPT);
        let removed = tokio::task::spawn_blocking(move || remove(&data, before)).await;
        if let Err(error) = removed.unwrap_or_else(|error| Err(io::Error::other(error))) {
            tracing::warn!(%error, "what is left of the journal of this node could not be removed");
        }
        tokio::time::sleep(PAUSE).await;
    }
    std::future::pending().await
}

/// Removes the files in which nothing is newer than `before`.
pub(super) fn remove(data: &Path, before: Time) -> io::Result<()> {
    let folder = data.join(FOLDER);
    let parts = match parts(&folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        parts => parts?,
    };
    let mut old = Vec::new();
    for part in &parts {
        let file = part_file(&folder, *part);
        if written(&file)? < before {
            old.push((file.metadata()?.len() > 0, file));
        }
    }
    if let (Some(newest), true, Some((true, _))) = (parts.first(), old.len() == parts.len(), old.first()) {
        // An empty one stays in their place: its number tells a later journal that older parts were removed.
        private::leave(&part_file(&folder, newest + 1), b"")?;
    }
    old.iter().filter(|(says, _)| *says).try_for_each(|(_, file)| fs::remove_file(file))
}
