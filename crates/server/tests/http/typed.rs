//! Secrets that are typed at a terminal, which `script` stands for: nobody looks over a shoulder.

use crate::support::*;
use std::collections::BTreeSet;
use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};

/// The documentation of all commands.
const COMMANDS: &str = include_str!("../../../../docs/guide/commands.md");
const SECRET: &str = "gorse-violet-anvil-41";

/// Every command line with a secret on standard input, and how often it is asked for at a terminal.
const LINES: [(&str, &str, usize); 8] = [
    ("user add", "bob --password-stdin", 2),
    ("user add", "eve --password-hash-stdin", 2),
    ("user set-password", "ada --password-stdin", 2),
    ("client add", "--id shop --redirect-uri https://a.test/cb --secret-stdin", 2),
    ("client rotate-secret", "shop --secret-stdin", 2),
    ("load", "client_credentials --target http://127.0.0.1:1 --client shop --client-secret-stdin", 1),
    ("load search", "client_credentials --target http://127.0.0.1:1 --client shop --client-secret-stdin", 1),
    ("verifier enroll", "--server 127.0.0.1:1 --token-stdin", 1),
];

/// Every command and its flag for a secret on standard input.
fn documented() -> BTreeSet<(String, String)> {
    let mut found = BTreeSet::new();
    let mut command = "";
    for line in COMMANDS.lines() {
        if let Some((_, name)) = line.split_once("## portiere ") {
            command = name;
        }
        let flag = line.strip_prefix("| `--").and_then(|row| row.split_once("-stdin` |"));
        found.extend(flag.map(|(flag, _)| (command.to_owned(), format!("--{flag}-stdin"))));
    }
    found
}

/// Types the secret each time that it is asked for; returns all that the terminal shows.
fn shown(data: &Path, line: &str, times: usize) -> String {
    let global = if line.starts_with("load") { String::new() } else { format!(" --data '{}'", data.display()) };
    let typed = format!("exec '{BINARY}' {line}{global}");
    let mut command = Command::new("script");
    command.args(["-qec", &typed, "/dev/null"]).current_dir(data.parent().unwrap());
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut script = command.spawn().unwrap();
    let (mut keys, mut screen) = (script.stdin.take().unwrap(), script.stdout.take().unwrap());
    let seen = Arc::new(Mutex::new(Vec::new()));
    let text = || String::from_utf8_lossy(&seen.lock().unwrap()).into_owned();
    std::thread::scope(|threads| {
        threads.spawn(|| {
            let mut bytes = [0; 1024];
            while let Ok(read @ 1..) = screen.read(&mut bytes) {
                seen.lock().unwrap().extend_from_slice(&bytes[..read]);
            }
        });
        // What is typed before the question is thrown away, and a note before it may have a colon of its own.
        let mut answered = 0;
        for _ in 0..times {
            let asks = || text().len() > answered && text().ends_with(": ");
            let has_asked = comes(|| asks() || script.try_wait().unwrap().is_some());
            answered = text().len();
            if !has_asked || keys.write_all(format!("{SECRET}\n").as_bytes()).is_err() {
                break;
            }
        }
        if !comes(|| script.try_wait().unwrap().is_some()) {
            script.kill().unwrap();
            script.wait().unwrap();
        }
    });
    text()
}

#[test]
fn no_terminal_shows_a_secret_that_is_typed() {
    // red with standard input read as it is, as in `load` and in `verifier enroll`: there was no question, and an echo.
    let flag = |line: &str| line.rsplit(' ').next().unwrap().to_owned();
    let of_table: BTreeSet<_> = LINES.iter().map(|(command, line, _)| ((*command).to_owned(), flag(line))).collect();
    assert_eq!(of_table, documented(), "a command is missing in LINES");
    if Command::new("script").arg("--version").output().is_err() {
        println!("skipped: there is no script(1)");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    assert_eq!(run(&data, &["user", "add", "ada", "--password-stdin"], "birch lantern cove 77").code, 0);
    for (command, line, times) in LINES {
        let shown = shown(&data, &format!("{command} {line}"), times);
        assert!(shown.matches(": ").count() >= times && !shown.contains(SECRET), "{command} {line}: {shown}");
    }
}
