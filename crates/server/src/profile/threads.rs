//! Kinds of threads: the first level of the flame graph.

/// What threads do: how the name begins that each was given when it was made, and what all of them run. The second is for C
/// libraries that do not tell names.
const KINDS: [(&str, &str, &str); 5] = [
    ("hasher-", "hasher::pool::", "hashing threads"),
    ("sqlite-writer", "sqlite::writer::Writer", "database writer"),
    ("sqlite-copier", "sqlite::copier::", "database copier"),
    ("sqlite-check", "sqlite::check::", "database check"),
    ("journal", "journal::writer::", "journal"),
];

/// What threads of the network run, and those on which the runtime puts what would keep the others waiting.
const NETWORK: &str = "scheduler::multi_thread::worker::";
const APART: &str = "runtime::blocking::pool::";

/// Of which kind a thread is, by its name and by what is on its stack.
pub fn kind<'a>(thread: &'a str, functions: &[&str]) -> &'a str {
    let runs = |part: &str| functions.iter().any(|function| function.contains(part));
    if let Some((.., kind)) = KINDS.iter().find(|(name, ..)| thread.starts_with(name)) {
        return kind;
    }
    // Threads of the runtime are called as the program is.
    let unnamed = thread.is_empty() || thread.starts_with(|letter: char| letter.is_ascii_digit());
    if !unnamed && !thread.starts_with("portiere") {
        return thread;
    }
    match KINDS.iter().find(|(_, part, _)| unnamed && runs(part)) {
        Some((.., kind)) => kind,
        None if runs(NETWORK) => "network threads",
        None if runs(APART) => "long reads and files",
        None => "main thread",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_are_told_apart_by_name_or_by_what_they_run() {
        let worker =
            ["tokio::runtime::blocking::pool::Inner::run", "tokio::runtime::scheduler::multi_thread::worker::run"];
        let cases: [(&str, &[&str], &str); 9] = [
            ("hasher-0", &[], "hashing threads"),
            ("hasher-17", &["hasher::pool::survive"], "hashing threads"),
            ("sqlite-writer", &[], "database writer"),
            ("portiere", &worker, "network threads"),
            ("portiere", &worker[..1], "long reads and files"),
            ("portiere", &["portiere::main"], "main thread"),
            ("140234", &["hasher::pool::survive"], "hashing threads"),
            ("140234", &worker, "network threads"),
            ("tracing-appender", &["hasher::pool::survive"], "tracing-appender"),
        ];
        for (thread, functions, expected) in cases {
            assert_eq!(kind(thread, functions), expected, "{thread} {functions:?}");
        }
    }
}
