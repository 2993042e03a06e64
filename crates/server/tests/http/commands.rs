//! Commands as a shell runs them: what is around them goes away, or is not what it should be.

use crate::support::*;
use std::io::{PipeWriter, pipe};
use std::process::{Command, Stdio};

/// Where nobody reads any more.
fn nowhere() -> PipeWriter {
    pipe().unwrap().1
}

/// The exit code of a command on a data folder, with standard output and standard error as they are.
fn code(server: &Server, arguments: &[&str], (out, err): (Stdio, Stdio)) -> Option<i32> {
    let mut command = Command::new(BINARY);
    command.args(arguments).arg("--data").arg(server.data()).stdin(Stdio::null()).stdout(out).stderr(err);
    command.status().unwrap().code()
}

#[test]
fn whoever_reads_may_leave_and_the_exit_code_is_what_was_done() {
    // red with eprintln! in cli/outcome.rs, mutter, which panics there; or without BrokenPipe in cli/mod.rs, written.
    let server = default_server();
    for (arguments, expected) in [
        (&["user", "list"][..], 0),
        (&["user", "list", "--json"], 0),
        (&["audit", "export"], 0),
        (&["audit", "list", "--user", "nobody-of-that-name"], 0),
        (&["config", "example"], 0),
        (&["completions", "bash"], 0),
        (&["man"], 0),
        (&["--help"], 0),
        (&["user", "show", "nobody-of-that-name"], 1),
        (&["user", "frobnicate"], 2),
        (&["user", "add", "eve", "--password-stdin"], 2),
    ] {
        for streams in [(nowhere().into(), Stdio::null()), (Stdio::null(), nowhere().into())] {
            assert_eq!(code(server, arguments, streams), Some(expected), "{arguments:?}");
        }
        assert_eq!(code(server, arguments, (nowhere().into(), nowhere().into())), Some(expected), "{arguments:?}");
    }
}

#[test]
fn a_data_folder_that_is_none_is_one_clear_line() {
    // red without NotADirectory in control.rs, ask: what the system says of the socket tells nobody what to do.
    let folder = tempfile::tempdir().unwrap();
    let (file, none) = (folder.path().join("file"), folder.path().join("none"));
    std::fs::write(&file, "").unwrap();
    for (data, why) in [(&file, "is not a folder; is --data right?"), (&none, "is --data right?")] {
        for command in [["user", "list"], ["client", "list"], ["keys", "list"], ["audit", "verify"]] {
            let output = run(data, &command, "");
            assert_eq!((output.code, output.out.as_str()), (1, ""), "{command:?}: {}", output.err);
            assert!(output.err.trim_end().ends_with(why) && output.err.lines().count() == 1, "{}", output.err);
        }
    }
    assert!(!none.exists(), "a command that only reads makes nothing");
}

/// Red where cli/mod.rs changes the folder's name (it would be made), or where config/mod.rs leaves such variables out (the
/// server would start on SQLite).
#[test]
fn what_is_not_utf_8_is_refused_and_never_shown() {
    use std::os::unix::ffi::OsStrExt;
    let folder = tempfile::tempdir().unwrap();
    let odd = std::ffi::OsStr::from_bytes(b"hunter\xff");
    for (place, flag, variable) in [
        ("--data: data: is not UTF-8", Some(folder.path().join(odd)), None),
        ("PORTIERE_STORE_URL: store.url: is not UTF-8", None, Some(("PORTIERE_STORE_URL", odd))),
    ] {
        for line in [&["user", "list"][..], &["serve", "--listen", "127.0.0.1:0"]] {
            let mut command = Command::new(BINARY);
            command.args(line).arg("--data").arg(flag.clone().unwrap_or_else(|| folder.path().join("data")));
            command.envs(variable).stdin(Stdio::null());
            let output = command.output().unwrap();
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            assert_eq!(output.status.code(), Some(2), "{line:?}: {said}");
            assert!(said.contains(place) && !said.contains("hunter"), "{line:?}: {said}");
            assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "{line:?}: nothing is made");
        }
    }
}
