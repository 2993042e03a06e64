//! Room for connections: each user has one, and each is an open file.

use crate::Refusal;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Allows this process as many open files as there are users, each of whom has a connection.
///
/// # Errors
/// [`Refusal::Failure`], where more are needed than the system allows.
pub fn make_room(users: u64) -> Result<(), Refusal> {
    /// Files that are open anyway.
    const OTHERS: u64 = 64;
    let needed = users.saturating_add(OTHERS);
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_none_or(|current| current >= needed) {
        return Ok(());
    }
    let raised = Rlimit { current: Some(needed), ..limit };
    if limit.maximum.is_some_and(|most| most < needed) || setrlimit(Resource::Nofile, raised).is_err() {
        let most = limit.maximum.unwrap_or_default();
        return Err(Refusal::Failure(format!(
            "{users} users need as many open files, and {most} are allowed (ulimit -n)"
        )));
    }
    Ok(())
}
