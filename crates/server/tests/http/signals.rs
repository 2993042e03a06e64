//! What signals do to a server, but for those that end one that serves.

use crate::monitoring::figures::{SERVED, ports};
use crate::support::*;
use rustix::fs::{CWD, FileType, mknodat};
use rustix::process::{Pid, Signal, kill_process};
use std::fs::File;
use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;
use std::process::{Child, Stdio};

/// Sends a signal, as `kill` does.
fn signal(pid: u32, signal: Signal) {
    kill_process(Pid::from_raw(i32::try_from(pid).unwrap()).unwrap(), signal).unwrap();
}

/// Red where net/serve.rs hears SIGHUP only with TLS: whoever hears it not is ended by it.
#[test]
fn sighup_without_tls_ends_nothing() {
    let server = Server::start(&[]);
    server.pids().into_iter().for_each(|pid| signal(pid, Signal::HUP));
    until("SIGHUP is answered", || server.logs().iter().all(|log| log.contains("no certificate to read again")));
    assert_eq!(server.get("/healthz").status, 200);
    assert_eq!(server.stop(), Some(0));
}

/// Red where metrics/serve.rs hears SIGHUP, too: it has no certificate, and said so beside one that was read again.
#[test]
fn sighup_is_answered_once() {
    let server = Server::start(&[SERVED]);
    server.pids().into_iter().for_each(|pid| signal(pid, Signal::HUP));
    let answers = |log: &String| log.matches("no certificate to read again").count();
    until("SIGHUP is answered", || server.logs().iter().all(|log| answers(log) > 0));
    assert_eq!(server.stop(), Some(0));
    assert!(server.logs().iter().all(|log| answers(log) == 1));
}

/// Red where metrics/secret.rs, `watch`, hears no SIGHUP (it would take half a minute), or where metrics/serve.rs keeps what it read
/// at the start.
#[test]
fn sighup_has_the_secret_of_the_metrics_read_again() {
    let folder = tempfile::tempdir().unwrap();
    let link = folder.path().join("secret");
    // As Kubernetes changes what it mounts: a link leads elsewhere.
    let lead = |secret: &str| {
        let (file, new) = (folder.path().join(secret.len().to_string()), folder.path().join("new"));
        std::fs::write(&file, format!("{secret}\n")).unwrap();
        std::fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
        std::os::unix::fs::symlink(&file, &new).unwrap();
        std::fs::rename(&new, &link).unwrap();
    };
    let (first, second) = ("first-secret-of-a-scraper", "second-secret-of-a-scraper");
    lead(first);
    let server = Server::start(&[SERVED, ("PORTIERE_METRICS_SECRET", link.to_str().unwrap())]);
    let statuses = |secret: &str| -> Vec<u16> {
        let ask = |port| Call::get("/metrics").bearer(secret).try_send_here(port).expect("an answer").status;
        ports(&server).into_iter().map(ask).collect()
    };
    assert!(statuses(first).iter().all(|status| *status == 200));
    lead(second);
    server.pids().into_iter().for_each(|pid| signal(pid, Signal::HUP));
    until("the second secret is known", || statuses(second).iter().all(|status| *status == 200));
    assert!(statuses(first).iter().all(|status| *status == 401));
    // A line is written a moment after what it tells.
    until("it is told", || server.logs().iter().all(|log| log.contains("metrics.secret read again")));
    assert!(!server.logs().concat().contains("of-a-scraper"));
}

/// Red without XFSZ in cli/serve.rs, run: the limit of a file's size (`ulimit -f`) would end the server without a word, where a write
/// that fails is answered.
#[test]
fn a_file_that_may_grow_no_more_ends_nothing() {
    let server = Server::start(&[]);
    server.pids().into_iter().for_each(|pid| signal(pid, Signal::XFSZ));
    assert_eq!(server.get("/healthz").status, 200);
    assert_eq!(server.stop(), Some(0));
}

/// Red where boot.rs hears signals only once the server is ready: one that is the first process of its container would not end at
/// all, and any other is ended by the signal itself, without an exit code.
#[test]
fn a_server_that_waits_for_its_database_stops_when_it_is_told_to() {
    let (folder, silent) = (tempfile::tempdir().unwrap(), TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap());
    let url = format!("postgres://ada:secret@{}/portiere", silent.local_addr().unwrap());
    let mut command = program();
    command.args(["serve", "--listen", "127.0.0.1:0", "--data"]).arg(folder.path()).env("PORTIERE_STORE_URL", url);
    let mut server = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    // It is asked, and answers nothing.
    let _asked = silent.accept().unwrap();
    signal(server.id(), Signal::TERM);
    assert_eq!(server.wait().unwrap().code(), Some(0));
}

/// Whether a process that breaks down leaves no memory behind, which others would find: the soft limit, and the hard
/// one. Red with a limit of 0 where 1 is allowed: it stops no pipe.
pub fn leaves_no_core(pid: u32) -> bool {
    let cores = |pid: &str| {
        let limits = std::fs::read_to_string(format!("/proc/{pid}/limits")).unwrap();
        let line = limits.lines().find_map(|line| line.strip_prefix("Max core file size")).unwrap();
        line.split_whitespace().take(2).map(str::to_owned).collect::<Vec<_>>()
    };
    let of_it = cores(&pid.to_string());
    of_it == ["1", "1"] || (cores("self")[1] == "0" && of_it == ["0", "0"])
}

/// Red without `leave_no_core` in cli/mod.rs, main.
#[test]
fn keys_and_passwords_are_in_no_core_dump() {
    let pids = default_server().pids();
    assert!(!pids.is_empty() && pids.into_iter().all(leaves_no_core));
}

/// Red without `leave_no_core` in cli/mod.rs, main: it is given one, and waits for it here.
#[test]
fn a_password_that_a_command_is_given_is_in_no_core_dump() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = program();
    command.arg("--data").arg(folder.path()).args(["user", "add", "ada", "--password-stdin"]);
    let mut waiting = command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    until("core dumps are off", || leaves_no_core(waiting.id()));
    assert!(waiting.try_wait().unwrap().is_none(), "it waits");
    waiting.kill().unwrap();
    waiting.wait().unwrap();
}

/// A server that speaks TLS, which ends with the test.
struct Secured {
    child: Child,
    /// Of its metrics, which are plain.
    port: u16,
}

impl Secured {
    fn start(folder: &Path) -> Secured {
        let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
        std::fs::write(folder.join("cert.pem"), made.cert.pem()).unwrap();
        std::fs::write(folder.join("key.pem"), made.signing_key.serialize_pem()).unwrap();
        let port = free_port();
        let child = program()
            .args(["serve", "--listen", "127.0.0.1:0", "--data"])
            .arg(folder.join("data"))
            .env("PORTIERE_TLS_CERTIFICATE", folder.join("cert.pem"))
            .env("PORTIERE_TLS_KEY", folder.join("key.pem"))
            .env("PORTIERE_METRICS_LISTEN", format!("127.0.0.1:{port}"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(File::create(folder.join("log")).unwrap())
            .spawn()
            .unwrap();
        let server = Secured { child, port };
        until("it answers", || server.answers());
        server
    }

    fn answers(&self) -> bool {
        Call::get("/metrics").try_send_here(self.port).is_some_and(|answer| answer.status == 200)
    }
}

impl Drop for Secured {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// Red without O_NONBLOCK in net/tls.rs, `content`: nothing is ever said, and the thread that reads waits for ever.
#[test]
fn a_certificate_that_is_a_pipe_stops_nobody_and_is_told_of() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = Secured::start(folder.path());
    let certificate = folder.path().join("cert.pem");
    std::fs::remove_file(&certificate).unwrap();
    mknodat(CWD, &certificate, FileType::Fifo, 0o600.into(), 0).unwrap();
    signal(server.child.id(), Signal::HUP);
    let log = || std::fs::read_to_string(folder.path().join("log")).unwrap_or_default();
    until("the log says why", || log().contains("not a regular file"));
    assert!(server.answers());
    signal(server.child.id(), Signal::TERM);
    assert_eq!(server.child.wait().unwrap().code(), Some(0));
}

/// Red where boot.rs drops the commands that it carries out: they would be told that nobody knows whether it was done.
#[test]
fn commands_that_are_carried_out_at_a_stop_are_answered() {
    if !on_file() {
        return;
    }
    let server = Server::leaked(&[]);
    for _ in 0..3 {
        let told = at_once(7, |at| match at {
            0 => {
                std::thread::sleep(std::time::Duration::from_millis(20));
                assert_eq!(server.stop(), Some(0));
                String::new()
            }
            _ => (0..5).map(|_| server.command(&["group", "add", &unique("g")], "").err).collect(),
        });
        assert!(told.iter().all(|err| !err.contains("may or may not have been carried out")), "{told:?}");
        server.restart();
    }
    server.kill();
}

/// Red without `open_soon` in boot.rs: it would say that another server runs.
#[test]
fn a_server_waits_for_a_command_that_holds_the_database_for_a_moment() {
    if !on_file() {
        return;
    }
    let server = Server::leaked(&[]);
    assert_eq!(server.stop(), Some(0));
    let file = server.data().join("portiere.db");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let _within = runtime.enter();
    let held = store::sqlite::Sqlite::open(store::sqlite::Options::at(file), &[]).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(std::time::Duration::from_millis(500));
            held.close();
        });
        server.restart();
    });
    server.kill();
}

#[test]
fn a_server_that_stands_still_is_waited_for_no_longer_than_was_said() {
    // red without `timeout` in cli/ready.rs, answer: one look took ten seconds.
    let server = Server::start(&[]);
    server.pids().into_iter().for_each(|pid| signal(pid, Signal::STOP));
    let began = std::time::Instant::now();
    let waited = server.command(&["ready", "--wait", "1s"], "");
    let took = began.elapsed();
    server.pids().into_iter().for_each(|pid| signal(pid, Signal::CONT));
    assert_eq!((waited.code, waited.out.as_str()), (75, ""), "{}", waited.err);
    assert!(waited.err.contains("did not answer in time") && took.as_secs() < 8, "{took:?}: {}", waited.err);
}

/// The process that a process started, once there is one.
fn started_by(pid: u32) -> Option<u32> {
    let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).ok()?;
    children.split_whitespace().next()?.parse().ok()
}

#[test]
fn a_command_that_is_the_first_process_of_a_container_ends_at_a_signal() {
    // red without `ends_at_signals` in cli/mod.rs: only SIGKILL would end it.
    let alone = |command: &[&std::ffi::OsStr]| {
        let mut unshare = std::process::Command::new("unshare");
        unshare.args(["--user", "--map-root-user", "--pid", "--fork"]).args(command);
        unshare.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
        unshare
    };
    if !alone(&["true".as_ref()]).status().is_ok_and(|status| status.success()) {
        println!("skipped: no process can be the first one here (unshare)");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    for (line, name, code) in [
        (&["ready", "--wait", "10m"][..], Signal::TERM, 143),
        (&["ready", "--wait", "10m"], Signal::INT, 130),
        // Waits for its input.
        (&["user", "add", "bob", "--password-stdin"], Signal::TERM, 143),
    ] {
        let words = [BINARY].iter().chain(line).chain(&["--data"]).map(std::convert::AsRef::as_ref);
        let words: Vec<&std::ffi::OsStr> = words.chain([data.as_os_str()]).collect();
        let mut unshare = alone(&words).spawn().unwrap();
        let first = || started_by(unshare.id()).filter(|pid| listens(*pid, name));
        until(&format!("{line:?} listens"), || first().is_some());
        signal(first().unwrap(), name);
        until(&format!("{line:?} ends"), || unshare.try_wait().unwrap().is_some());
        assert_eq!(unshare.wait().unwrap().code(), Some(code), "{line:?} {name:?}");
    }
    assert!(!data.exists());
}

/// Whether a process has a handler for a signal.
fn listens(pid: u32, signal: Signal) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    let mask = caught.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or_default();
    mask & (1 << (signal.as_raw() - 1)) != 0
}
