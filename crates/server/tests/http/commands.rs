//! Commands as a shell runs them: what is around them goes away, or is not what it should be.

use crate::support::*;
use std::io::{BufRead, BufReader, PipeWriter, pipe};
use std::process::Stdio;

/// Where nobody reads any more.
fn nowhere() -> PipeWriter {
    pipe().unwrap().1
}

/// The exit code of a command on a data folder, with standard output and standard error as they are.
fn code(server: &Server, arguments: &[&str], (out, err): (Stdio, Stdio)) -> Option<i32> {
    let mut command = program();
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
fn a_program_reads_why_a_command_failed() {
    // Red without `as_json` in cli/mod.rs, main, or in cli/table.rs: programs would have to read sentences.
    let server = default_server();
    for (line, exit, expected) in [
        (&["user", "show", "nobody-of-that-name", "--json"][..], 1, "not-found"),
        (&["--json", "client", "add", "--id", "x", "--redirect-uri", "http://x.test/cb"], 1, "refused"),
        (&["user", "list", "--json", "--limit", "many"], 2, "use"),
        (&["frobnicate", "--json"], 2, "use"),
        (&["config", "show", "--json", "--config", "/nonexistent/portiere.toml"], 2, "use"),
        (&["verifier", "enroll", "--json", "--server", "a", "--token", "t"], 2, "use"),
    ] {
        let output = server.command(line, "");
        assert_eq!((output.code, output.out.as_str()), (exit, ""), "{line:?}: {}", output.err);
        let told: serde_json::Value = serde_json::from_str(&output.err).unwrap_or_else(|_| panic!("{}", output.err));
        assert_eq!(told["error"]["code"], expected, "{line:?}: {told}");
        assert!(told["error"]["message"].as_str().is_some_and(|why| !why.is_empty()), "{line:?}: {told}");
        let people: Vec<&str> = line.iter().copied().filter(|word| *word != "--json").collect();
        assert!(server.command(&people, "").err.starts_with("portiere: "), "{line:?}");
    }
}

#[test]
fn a_secret_that_is_written_nowhere_is_said_to_be_lost_and_how_to_have_another() {
    // red without `lost` in cli/outcome.rs: the client would be there, and nobody would know its secret.
    let server = default_server();
    for more in [&[][..], &["--json"]] {
        let id = unique("lost");
        let add = ["client", "add", "--id", &id, "--redirect-uri", "https://a.test/cb"];
        for line in [&add[..], &["client", "rotate-secret", &id]] {
            let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
            let mut command = program();
            command.args(line).args(more).arg("--data").arg(server.data()).stdin(Stdio::null()).stdout(full);
            let output = command.output().unwrap();
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            assert_eq!((output.status.code(), said.lines().count()), (Some(1), 1), "{line:?}: {said}");
            let end = if more.is_empty() { "\n" } else { "\"}}\n" };
            let next = format!("portiere client rotate-secret {id}{end}");
            assert!(said.contains("No space left") && said.ends_with(&next), "{line:?}: {said}");
        }
        assert!(server.must(&["client", "rotate-secret", &id], "").contains("client_secret"));
    }
}

#[test]
fn a_command_that_is_run_again_finds_what_it_made_and_reads_nothing() {
    // red without `supposed` in cli/mod.rs: password and secret would be wanted for nothing.
    let server = default_server();
    let (name, id) = (unique("again"), unique("again"));
    let secret = "0123456789abcdef0123456789abcdef";
    let user = ["user", "add", &name, "--if-absent", "--json", "--password-stdin"];
    let uri = "https://a.test/cb";
    let client = ["client", "add", "--id", &id, "--redirect-uri", uri, "--if-absent", "--json", "--secret-stdin"];
    for (line, input) in [(&user[..], "gorse violet anvil 41"), (&client[..], secret)] {
        assert_eq!(server.command(line, "").code, 2, "what is not there needs it: {line:?}");
        for (input, created) in [(input, true), ("", false), (input, false)] {
            let told: serde_json::Value = serde_json::from_str(&server.must(line, input)).unwrap();
            assert_eq!(told["created"], created, "{line:?}");
            assert!(!told.to_string().contains(secret));
        }
    }
    let found = server.command(&["user", "add", &name, "--if-absent"], "");
    let said = format!("user \"{name}\" exists already; nothing was changed\n");
    assert_eq!((found.code, found.out, found.err), (0, said, String::new()));

    let folder = tempfile::tempdir().unwrap();
    for (input, created) in [("gorse violet anvil 41", true), ("", false)] {
        let output = run(folder.path(), &["user", "add", "ada", "--if-absent", "--json", "--password-stdin"], input);
        let told: serde_json::Value = serde_json::from_str(&output.out).unwrap();
        assert_eq!((output.code, &told["created"]), (0, &created.into()), "{}", output.err);
    }
}

#[test]
fn a_file_that_is_named_and_cannot_be_read_is_wrong_use() {
    // red with Failed for it in cli/audit/verify.rs (1 says that the log is wrong), cli/moving/mod.rs or cli/restore.rs.
    let folder = tempfile::tempdir().unwrap();
    let (data, none) = (folder.path().join("data"), folder.path().join("none"));
    let none = none.to_str().unwrap();
    for line in [
        &["audit", "verify", "--head", none][..],
        &["client", "add", "--id", "a", "--redirect-uri", "https://a.test/", "--jwks", none],
        &["client", "set", "a", "--jwks", none],
        &["move", "--to-file", none],
        &["restore", none],
        &["load", "compare", none, none],
        &["load", "client_credentials", "--client", "a", "--client-secret-file", none],
        &["load", "w1", "--client", "a", "--redirect-uri", "https://a.test/", "--users", none],
        &["capacity", "--from", none],
        &["config", "check", "--config", none],
    ] {
        let output = run(&data, line, "");
        assert_eq!((output.code, output.out.as_str()), (2, ""), "{line:?}: {}", output.err);
        assert!(output.err.contains(none) && output.err.lines().count() == 1, "{line:?}: {}", output.err);
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

#[test]
fn a_start_that_only_another_configuration_helps_ends_with_two() {
    // red without trial::problems in server/boot.rs, run, or with Failed for them in cli/outcome.rs: systemd would go on trying.
    let folder = tempfile::tempdir().unwrap();
    let (data, none) = (folder.path().join("data"), folder.path().join("none"));
    let none = none.to_str().unwrap();
    let pepper = format!("p1:{none}");
    let ended = |line: &[&str], settings: &[(&str, &str)]| {
        let mut command = program();
        command.args(line).arg("--data").arg(&data).envs(settings.iter().copied()).stdin(Stdio::null());
        let output = command.output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let serve = ["serve", "--listen", "127.0.0.1:0"];
    for (settings, why) in [
        (&[("PORTIERE_STORE_URL", "mysql://u:p%zz@127.0.0.1/d")][..], "store.url"),
        (&[("PORTIERE_TLS_CERTIFICATE", none), ("PORTIERE_TLS_KEY", none)], none),
        (&[("PORTIERE_HASH_PEPPERS", &pepper)], "hash.peppers"),
        (&[("PORTIERE_METRICS_LISTEN", "127.0.0.1:9464"), ("PORTIERE_METRICS_SECRET", none)], "metrics.secret"),
        (&[("PORTIERE_AUDIT_HTTP_URL", "https://siem.test/"), ("PORTIERE_AUDIT_HTTP_TOKEN_FILE", none)], "audit.http"),
        (&[("PORTIERE_TRACE_ENDPOINT", "https://otel.test/"), ("PORTIERE_TRACE_HEADERS", none)], "trace.headers"),
    ] {
        for line in [&["config", "check"][..], &serve] {
            let (code, said) = ended(line, settings);
            assert_eq!(code, Some(2), "{line:?} {settings:?}: {said}");
            assert!(said.contains(why), "{line:?} {settings:?}: {said}");
        }
        assert!(!data.exists(), "{settings:?}: nothing is made");
    }
    let (code, said) = ended(&serve, &[("PORTIERE_STORE_URL", "postgres://u:p@127.0.0.1:1/d")]);
    assert_eq!(code, Some(75), "a database that is away comes back: {said}");
}

/// Red without `tell_as` in cli/mod.rs, `ended`, or without `log_format` where the configuration itself is wrong; the last without
/// `logs::tell` in boot.rs, announce.
#[test]
fn where_the_log_is_json_whatever_a_server_says_is() {
    let folder = tempfile::tempdir().unwrap();
    let serve = |more: &[&str], (name, value): (&str, &str)| {
        let mut command = program();
        command.args(["serve", "--listen", "127.0.0.1:0", "--data"]).arg(folder.path().join(name)).args(more);
        command.env("PORTIERE_LOG_FORMAT", "json").env(name, value).stdin(Stdio::null());
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let read = |line: &str| -> (String, String) {
        let line: serde_json::Value = serde_json::from_str(line).unwrap_or_else(|_| panic!("no JSON: {line}"));
        assert!(line["timestamp"].is_string(), "{line}");
        let text = |name: &str| line[name].as_str().unwrap_or_default().to_owned();
        (text("level"), text("message"))
    };
    let away = ("PORTIERE_STORE_URL", "postgres://u:p@127.0.0.1:1/d");
    for (more, setting, code, why) in [
        (&[][..], away, 75, "store.url: "),
        (&["--json"], away, 75, "store.url: "),
        (&[], ("PORTIERE_HASH_THREADS", "-1"), 2, "PORTIERE_HASH_THREADS: hash.threads: "),
        (&["--json"], ("PORTIERE_TLS_CERTIFICATE", "c.pem"), 2, "tls.key: is missing"),
    ] {
        let output = serve(more, setting).wait_with_output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(code), "{setting:?}: {said}");
        let (level, message) = said.lines().map(read).next_back().unwrap();
        assert!(level == "ERROR" && message.starts_with(why), "{setting:?}: {said}");
    }
    let mut server = serve(&[], ("PORTIERE_LOG_LEVEL", "off"));
    let lines = BufReader::new(server.stdout.take().unwrap()).lines().map(Result::unwrap);
    let told: Vec<_> = lines.take(2).map(|line| read(&line)).collect();
    server.kill().unwrap();
    server.wait().unwrap();
    assert!(told.iter().all(|(level, _)| level == "INFO"), "{told:?}");
    assert!(
        told[0].1.starts_with("Portiere runs at http://localhost:") && told[1].1.starts_with("data in "),
        "{told:?}"
    );
}

#[test]
fn a_data_folder_has_one_server_whatever_databases_there_are() {
    // red without folder::take for a file in server/boot.rs, hold: the second one takes the socket of the first.
    use store::migrations::MIGRATIONS;
    use store::sqlite::{Options, Sqlite};
    let server = Server::start(&[]);
    let folder = tempfile::tempdir().unwrap();
    let (new, kept) = (folder.path().join("new.db"), folder.path().join("kept.db"));
    Sqlite::open(Options::at(&kept), MIGRATIONS).unwrap().close();
    for file in [&new, &kept] {
        let url = format!("sqlite:{}", file.display());
        let line = ["serve", "--listen", "127.0.0.1:0"];
        let second = server.command_with(&line, "", &[("PORTIERE_STORE_URL", &url)]);
        assert_eq!((second.code, second.out.as_str()), (1, ""), "{}", second.err);
        let why = "a server or a command works on this data folder: end it, or name another folder with --data";
        assert!(second.err.contains(why), "{}", second.err);
        server.must(&["client", "list"], "");
    }
    assert!(!new.exists(), "whoever is refused has made nothing");
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
            let mut command = program();
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

#[test]
fn a_server_that_starts_is_waited_for_until_it_is_ready() {
    // Red without `wait` in cli/ready.rs; with Failed where no server runs (a script would not try again).
    let server = Server::start(&[]);
    let ready = server.command(&["ready"], "");
    assert!(ready.code == 0 && ready.out.starts_with("ready\n") && ready.err.is_empty(), "{}", ready.err);
    let told: serde_json::Value = serde_json::from_str(&server.must(&["ready", "--json"], "")).unwrap();
    assert!(told["status"] == "ready" && told["hashing"].is_object(), "as /readyz tells it: {told}");
    server.kill();
    for line in [&["ready"][..], &["ready", "--json"], &["ready", "--wait", "300ms"]] {
        let away = server.command(line, "");
        assert_eq!((away.code, away.out.as_str()), (75, ""), "{line:?}: {}", away.err);
        assert!(away.err.contains("no server runs on "), "{}", away.err);
    }
    // Red where only Later is waited out in cli/ready.rs: a server that dies while it is asked would end the wait.
    let listener = std::os::unix::net::UnixListener::bind(server.data().join("portiere.sock.dying")).unwrap();
    std::fs::rename(server.data().join("portiere.sock.dying"), server.data().join("portiere.sock")).unwrap();
    let dies = std::thread::spawn(move || drop(listener.accept()));
    std::thread::scope(|scope| {
        let waits = scope.spawn(|| server.command(&["ready", "--wait", "2m"], ""));
        dies.join().unwrap();
        std::thread::sleep(std::time::Duration::from_millis(300));
        server.restart();
        let waited = waits.join().unwrap();
        assert_eq!((waited.code, waited.out.lines().next()), (0, Some("ready")), "{}", waited.err);
        assert!(waited.err.contains("; waiting"), "and says what for: {}", waited.err);
    });
    assert_eq!(server.command(&["ready", "--wait", "soon"], "").code, 2);
}

#[test]
fn a_wrong_configuration_keeps_nobody_from_a_server_that_runs() {
    // red without `to_ask` in cli/mod.rs: one typo, and nobody could be disabled until it is found.
    let server = default_server();
    let folder = tempfile::tempdir().unwrap();
    let (file, none) = (folder.path().join("p.toml"), folder.path().join("none"));
    let (there, nowhere) = (server.data().display().to_string(), none.display().to_string());
    let line = |words: &[&str], data: &[&str], text: &str| {
        std::fs::write(&file, text).unwrap();
        let mut command = program();
        let output = command.args(words).arg("--config").arg(&file).args(data).stdin(Stdio::null()).output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    for (text, told) in [
        ("[tls\n", "p.toml:"),
        ("[tls]\ncertifcate = 'c.pem'\n", "tls.certifcate: is not an option"),
        ("[code]\nttl = 'long'\n", "code.ttl: "),
        ("[tls]\ncertificate = 'c.pem'\n", "tls.key: is missing"),
    ] {
        for (words, code) in [
            (&["user", "list"][..], 0),
            (&["audit", "status"], 0),
            (&["user", "add", "nobody", "--if-absent", "--password-stdin"], 2),
            (&["user", "show", "nobody"], 1),
        ] {
            let (named, misnamed) = (format!("data = '{there}'\n{text}"), format!("dta = '{there}'\n{text}"));
            for (data, text) in [(&["--data", &there][..], text), (&[], &named)] {
                let (ended, said) = line(words, data, text);
                assert_eq!(ended, Some(code), "{words:?} {text}: {said}");
                assert!(said.contains(told) && said.contains("a server runs, and is asked"), "{words:?}: {said}");
            }
            let (ended, said) = line(words, &["--data", &nowhere], text);
            assert_eq!(ended, Some(2), "{words:?} {text}: {said}");
            assert!(said.contains(told) && !said.contains("a server runs"), "{words:?}: {said}");
            // The name that nobody knows may have been that of the data folder.
            let (ended, said) = line(words, &[], &misnamed);
            assert!(ended == Some(2) && said.contains("did you mean data?"), "{words:?} {text}: {said}");
        }
        assert!(!none.exists(), "{text}");
    }
}

#[test]
fn a_hyphen_is_no_file_to_write() {
    // red without `named` in load/output.rs: a file called - held what was meant for a pipe.
    let folder = tempfile::tempdir().unwrap();
    for line in [
        &["backup", "-"][..],
        &["hash", "pepper", "p1", "-"],
        &["hash", "binding", "b1", "-"],
        &["profile", "--output", "-"],
        &["load", "jwks", "--target", "http://127.0.0.1:1", "--save", "-"],
        &["load", "jwks", "--target", "http://127.0.0.1:1", "--html", "-"],
        &["capacity", "--html", "-"],
        &["lab", "all", "--quick", "--html", "-"],
    ] {
        let output = program().args(line).current_dir(folder.path()).stdin(Stdio::null()).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{line:?}: {said}");
        assert!(said.contains("- is not standard output here"), "{line:?}: {said}");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "{line:?}");
    }
}

#[test]
fn whoever_follows_ends_when_its_reader_leaves_also_if_nothing_happens() {
    // red without `rests` in cli/mod.rs: it would stay until the next entry.
    let server = Server::start(&[]);
    let mut command = program();
    command.args(["audit", "tail", "-f", "--data"]).arg(server.data()).stdin(Stdio::null()).stdout(Stdio::piped());
    let mut follows = command.spawn().unwrap();
    let mut line = String::new();
    BufReader::new(follows.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert!(!line.is_empty());
    until("nobody reads any more", || follows.try_wait().unwrap().is_some());
    assert_eq!(follows.wait().unwrap().code(), Some(0));
}
