//! Kinds of threads: the first level of the flame graph.

use std::collections::HashMap;
use std::fs;

/// The name of the runtime's threads: those of the network, and those for work that would keep the others waiting. The
/// runtime has one name for both.
pub const RUNTIME: &str = "network";

/// What threads do: how the name begins that each was given when it was made, and code that all of them run. The code
/// is for C libraries that do not tell names.
const KINDS: [(&str, &str, &str); 5] = [
    ("hasher-", "hasher::pool::", "hashing threads"),
    ("sqlite-writer", "sqlite::writer::Writer", "database writer"),
    ("sqlite-copier", "sqlite::copier::", "database copier"),
    ("sqlite-check", "sqlite::check::", "database check"),
    ("journal", "journal::writer::", "journal"),
];

/// Code that network threads run, and code that the runtime's others run. A network thread was one of these before.
const NETWORK: &str = "scheduler::multi_thread::worker::";
const APART: &str = "runtime::blocking::pool::";
/// Code that the main thread begins with, and code that every other thread begins with.
const MAIN: &str = "rt::lang_start";
const BEGIN: &str = "::thread_start";

const OF_NETWORK: &str = "network threads";
const OF_APART: &str = "long reads and files";
const OF_MAIN: &str = "main thread";

/// What is known about this process's threads: first their names. Stacks tell the rest, and as some of them break off,
/// what one stack of a thread tells goes for all of that thread's.
pub struct Threads {
    /// The name of the main thread, which is the program's.
    main: String,
    /// By thread: how sure it is (0 is surest), and the kind.
    seen: HashMap<u64, (usize, &'static str)>,
}

impl Threads {
    /// Knows only the main thread's name.
    pub fn now() -> Self {
        // The process has the name of its first thread (proc_pid_comm(5)).
        let name = fs::read_to_string("/proc/self/comm").unwrap_or_default();
        Threads { main: name.trim_end_matches('\n').to_owned(), seen: HashMap::new() }
    }

    /// Learns from a stack of a thread what the thread is.
    pub fn learn(&mut self, id: u64, functions: &[&str]) {
        let runs = |part: &str| functions.iter().any(|function| function.contains(part));
        // Code that may call what other threads run comes first.
        let runtimes = [(MAIN, OF_MAIN), (NETWORK, OF_NETWORK), (APART, OF_APART)];
        let kinds = runtimes.into_iter().chain(KINDS.map(|(_, part, kind)| (part, kind)));
        let Some((rank, (_, kind))) = kinds.enumerate().find(|(_, (part, _))| runs(part)) else { return };
        let best = self.seen.entry(id).or_insert((rank, kind));
        *best = (*best).min((rank, kind));
    }

    /// Returns the kind of a thread.
    pub fn kind<'a>(&self, name: &'a str, id: u64) -> &'a str {
        if let Some((.., kind)) = KINDS.iter().find(|(begin, ..)| name.starts_with(begin)) {
            return kind;
        }
        let seen = self.seen.get(&id).map(|(_, kind)| *kind);
        match name {
            RUNTIME => seen.filter(|kind| *kind == OF_APART).unwrap_or(OF_NETWORK),
            // Where names are not told, there is a number instead.
            _ if name.is_empty() || name.starts_with(|letter: char| letter.is_ascii_digit()) => {
                seen.unwrap_or("threads without names")
            }
            _ if name == self.main => OF_MAIN,
            _ => name,
        }
    }
}

/// Returns whether a stack goes down to where its thread began. Assembler often does not say where it puts the return
/// address, and then its callers are not found.
pub fn is_whole(functions: &[&str]) -> bool {
    functions.iter().any(|function| function.contains(BEGIN) || function.contains(MAIN))
}

#[cfg(test)]
mod tests {
    use super::*;

    const WORKER: [&str; 3] = [
        "<std::sys::thread::unix::Thread>::new::thread_start",
        "tokio::runtime::blocking::pool::Inner::run",
        "tokio::runtime::scheduler::multi_thread::worker::run",
    ];

    /// Returns the kind of a thread with these stacks.
    fn kind<'a>(name: &'a str, stacks: &[&[&str]]) -> &'a str {
        let mut threads = Threads { main: "portiere".into(), seen: HashMap::new() };
        stacks.iter().for_each(|functions| threads.learn(7, functions));
        threads.learn(8, &["journal::writer::run"]);
        threads.kind(name, 7)
    }

    #[test]
    fn threads_are_told_apart_by_name_or_by_what_they_run() {
        let cases: [(&str, &[&str], &str); 12] = [
            ("hasher-0", &[], "hashing threads"),
            ("hasher-17", &["hasher::pool::survive"], "hashing threads"),
            ("sqlite-writer", &[], "database writer"),
            (RUNTIME, &WORKER, "network threads"),
            (RUNTIME, &WORKER[..2], "long reads and files"),
            ("portiere", &["main"], "main thread"),
            ("portiere", &WORKER, "main thread"),
            ("140234", &["hasher::pool::survive"], "hashing threads"),
            ("140234", &WORKER, "network threads"),
            ("140234", &["std::rt::lang_start", "portiere::main"], "main thread"),
            ("140234", &["bn_powerx5"], "threads without names"),
            ("tracing-appender", &["hasher::pool::survive"], "tracing-appender"),
        ];
        for (thread, functions, expected) in cases {
            assert_eq!(kind(thread, &[functions]), expected, "{thread} {functions:?}");
        }
    }

    /// Red where each stack is looked at alone: RSA's broken stacks were the main thread's.
    #[test]
    fn a_stack_that_breaks_off_is_of_the_thread_that_it_was_seen_on() {
        let rsa: &[&str] = &["[unknown]", "bn_powerx5", "mulx4x_internal"];
        assert_eq!(kind(RUNTIME, &[rsa]), "network threads");
        assert_eq!(kind("140234", &[rsa, &WORKER]), "network threads");
        assert_eq!(kind(RUNTIME, &[rsa, &WORKER[..2]]), "long reads and files");
        assert_eq!(kind(RUNTIME, &[&["sqlite::writer::Writer::wake"]]), "network threads", "it only calls it");
        assert_eq!(kind(RUNTIME, &[&WORKER[1..2], &WORKER]), "network threads", "one that was too deep");
        assert!(!is_whole(rsa) && is_whole(&WORKER) && is_whole(&["main", "std::rt::lang_start"]));
    }

    #[test]
    fn names_are_short_enough_to_be_kept_whole() {
        // Linux cuts off what is longer (pthread_setname_np(3)).
        assert!(RUNTIME.len() <= 15 && KINDS.iter().all(|(name, ..)| name.len() <= 15 && !RUNTIME.starts_with(name)));
        assert!(!Threads::now().main.is_empty());
    }
}
