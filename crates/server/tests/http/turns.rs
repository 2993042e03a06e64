//! How long the turns on a core are that the server's threads ask the system for.

use crate::support::*;
use std::fs::read_to_string;
use std::io::Write;
use std::path::Path;

/// The turns of a thread in nanoseconds, where the system tells (Linux from 6.12 on).
fn turns(thread: &Path) -> Option<u64> {
    let told = read_to_string(thread.join("sched")).ok()?;
    let line = told.lines().find_map(|line| line.strip_prefix("se.slice"))?;
    line.trim_start_matches([' ', ':']).parse().ok()
}

/// Red without `step_ahead` in cli/mod.rs, main, and red where the threads of the pool keep what they inherit.
#[test]
fn all_threads_have_short_turns_but_those_that_hash() {
    let Some(usual) = turns(Path::new("/proc/self")) else {
        writeln!(std::io::stderr(), "NOT TESTED: this system does not tell how long turns are").unwrap();
        return;
    };
    for pid in default_server().pids() {
        let threads = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap().map(|thread| thread.unwrap().path());
        // One that ended meanwhile tells nothing.
        let told = threads.filter_map(|thread| Some((read_to_string(thread.join("comm")).ok()?, turns(&thread)?)));
        let (hashing, others): (Vec<_>, Vec<_>) = told.partition(|(name, _)| name.starts_with("hasher"));
        assert!(!hashing.is_empty() && hashing.iter().all(|(_, turns)| *turns == usual), "{hashing:?}");
        assert!(others.len() > 2 && others.iter().all(|(_, turns)| *turns == 100_000), "{others:?}");
    }
}
