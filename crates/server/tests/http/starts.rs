//! What keeps a server from starting: a check of its configuration says the same, and neither makes anything.

use crate::support::*;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Stdio;

/// The documentation of all options.
const OPTIONS: &str = include_str!("../../../../docs/config.md");

/// Every option that takes a file with a secret: its name and its variable, and whether its value begins with a name.
fn of_secret_files() -> Vec<(String, String, bool)> {
    let mut found = Vec::new();
    for line in OPTIONS.lines().filter(|line| line.starts_with("| `")) {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let takes = cells[2].trim_start_matches("a list, each ");
        let is_named = takes == "a name and a file with a colon between them";
        let quoted: Vec<&str> = cells[1].split('`').collect();
        if is_named || takes == "the path of a file" {
            found.push((quoted[1].to_owned(), quoted[3].to_owned(), is_named));
        }
    }
    found
}

/// What must be set beside an option for its file to be read.
fn beside(option: &str, certificate: &str) -> Vec<(&'static str, String)> {
    let set = |name: &'static str, value: &str| (name, value.to_owned());
    let server = set("PORTIERE_STORE_URL", "postgres://u@127.0.0.1:1/d");
    match option {
        "store.password_file" => vec![server],
        "store.key" => vec![server, set("PORTIERE_STORE_CERTIFICATE", certificate)],
        "tls.key" => vec![set("PORTIERE_TLS_CERTIFICATE", certificate)],
        "metrics.secret" => vec![set("PORTIERE_METRICS_LISTEN", "127.0.0.1:9464")],
        "hash.binding_keys" => vec![set("PORTIERE_HASH_PEPPERS", &format!("p1:{certificate}.pepper"))],
        "trace.headers" => vec![set("PORTIERE_TRACE_ENDPOINT", "https://otel.test/")],
        "trace.key" => {
            vec![set("PORTIERE_TRACE_ENDPOINT", "https://otel.test/"), set("PORTIERE_TRACE_CERTIFICATE", certificate)]
        }
        "audit.syslog.key" => vec![
            set("PORTIERE_AUDIT_SYSLOG_URL", "tls://logs.test"),
            set("PORTIERE_AUDIT_SYSLOG_CERTIFICATE", certificate),
        ],
        "audit.http.key" => vec![
            set("PORTIERE_AUDIT_HTTP_URL", "https://siem.test/"),
            set("PORTIERE_AUDIT_HTTP_CERTIFICATE", certificate),
        ],
        http if http.starts_with("audit.http.") => vec![set("PORTIERE_AUDIT_HTTP_URL", "https://siem.test/")],
        _ => vec![],
    }
}

/// Has the configuration checked, and a server started; returns what both of them say, which ends them with 2.
fn refused(data: &Path, settings: &[(&str, String)]) -> String {
    let ended = |line: &[&str]| {
        let mut command = program();
        command.args(line).arg("--data").arg(data).stdin(Stdio::null());
        let output = command.envs(settings.iter().map(|(name, value)| (name, value))).output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let [checked, served] = [&["config", "check"][..], &["serve", "--listen", "127.0.0.1:0"]].map(ended);
    assert_eq!(checked.0, Some(2), "{settings:?}: {}", checked.1);
    assert_eq!(checked, served, "{settings:?}");
    checked.1
}

#[test]
fn a_secret_that_is_nowhere_is_found_missing_before_a_start() {
    // red without `old_audit_keys` or `may_be_made` in server/trial.rs: systemd would start the server for ever.
    let folder = tempfile::tempdir().unwrap();
    let (data, none) = (folder.path().join("data"), folder.path().join("none/none.key"));
    let certificate = folder.path().join("c.pem");
    let made = rcgen::generate_simple_self_signed(vec!["login.test".to_owned()]).unwrap();
    fs::write(&certificate, made.cert.pem()).unwrap();
    let pepper = folder.path().join("c.pem.pepper");
    fs::write(&pepper, [7; 32]).unwrap();
    fs::set_permissions(&pepper, Permissions::from_mode(0o600)).unwrap();
    let options = of_secret_files();
    assert!(options.len() >= 17, "{options:?}");
    for (option, variable, is_named) in options {
        let mut settings = beside(&option, &certificate.display().to_string());
        let value = format!("{}{}", if is_named { "p1:" } else { "" }, none.display());
        settings.push((&variable, value));
        let said = refused(&data, &settings);
        let file = none.display().to_string();
        assert!(said.contains(&file) && said.contains(&option) && said.lines().count() == 1, "{option}: {said}");
        assert!(!data.exists(), "{option}: nothing is made");
    }
}

#[test]
fn a_data_folder_that_cannot_be_used_is_found_before_a_start() {
    // red without `data_folder` in server/trial.rs.
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    for name in ["letters", "pipes"] {
        fs::create_dir(at(name)).unwrap();
    }
    fs::write(at("file"), "").unwrap();
    fs::write(at("letters/letter"), "").unwrap();
    fs::set_permissions(at("letters"), Permissions::from_mode(0o755)).unwrap();
    fs::set_permissions(at("pipes"), Permissions::from_mode(0o700)).unwrap();
    rustix::fs::mknodat(rustix::fs::CWD, at("pipes/p"), rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
    for (name, why) in [
        ("file", "is not a folder"),
        ("file/data", "Not a directory"),
        ("letters", "is open to others (mode 0755) and holds other files"),
        ("pipes", "is a pipe or a device"),
    ] {
        let said = refused(&at(name), &[]);
        let of_data = |line: &str| line.starts_with("portiere: data: ") && line.contains(why);
        assert!(said.lines().any(of_data), "{name}: {said}");
    }
    assert_eq!(fs::read_dir(at("letters")).unwrap().count(), 1, "nothing is made");
}

#[test]
fn whoever_manages_the_server_is_told_when_it_answers_and_when_it_stops() {
    // red without `systemd::tell` in server/boot.rs or boot/stop.rs.
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("notify");
    let manager = std::os::unix::net::UnixDatagram::bind(&socket).unwrap();
    manager.set_read_timeout(Some(std::time::Duration::from_secs(120))).unwrap();
    let heard = || {
        let mut bytes = [0; 64];
        let length = manager.recv(&mut bytes).unwrap();
        String::from_utf8_lossy(&bytes[..length]).into_owned()
    };
    let mut command = program();
    command.args(["serve", "--listen", "127.0.0.1:0", "--data"]).arg(folder.path().join("data"));
    command.env("NOTIFY_SOCKET", &socket).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut server = command.spawn().unwrap();
    assert_eq!(heard(), "READY=1");
    assert_eq!(run(&folder.path().join("data"), &["ready"], "").code, 0);
    let pid = rustix::process::Pid::from_child(&server);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    assert_eq!(heard(), "STOPPING=1");
    assert_eq!(server.wait().unwrap().code(), Some(0));
}
