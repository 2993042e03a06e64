//! Room for connections: each user has one per origin that the provider names, and each is an open file.

use crate::Refusal;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raises this process's limit of open files as far as allowed: the number of origins is known only once users have
/// visited them. Makes sure of one file per user.
///
/// # Errors
/// [`Refusal::Failure`] if more are needed than the system allows.
pub fn make_room(users: u64) -> Result<(), Refusal> {
    /// Files that are open anyway.
    const OTHERS: u64 = 64;
    let needed = users.saturating_add(OTHERS);
    let mut limit = getrlimit(Resource::Nofile);
    // A system may allow less than the maximum it states; then at least what is needed is requested.
    for wanted in [limit.maximum, Some(needed)] {
        let is_more = limit.current.is_some_and(|current| wanted.is_none_or(|wanted| wanted > current));
        if is_more && setrlimit(Resource::Nofile, Rlimit { current: wanted, ..limit }).is_ok() {
            limit.current = wanted;
        }
    }
    if let Some(most) = limit.current.filter(|current| *current < needed) {
        return Err(Refusal::Failure(format!(
            "{users} users need as many open files, but only {most} are allowed (ulimit -n)"
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_files_are_allowed_as_may_be_and_no_more() {
        make_room(1).unwrap();
        let limit = getrlimit(Resource::Nofile);
        assert!(limit.maximum.is_none() || limit.current == limit.maximum, "{limit:?}");
        if limit.current.is_some() {
            let refusal = make_room(u64::MAX).unwrap_err();
            assert!(refusal.to_string().ends_with(" are allowed (ulimit -n)"), "{refusal}");
        }
    }
}
