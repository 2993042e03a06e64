//! `portiere move`, on a server that runs: nothing is written meanwhile, reads go on, and whoever was signed in goes on at
//! the new database. From whatever the servers under test keep their facts in, to a file, and to PostgreSQL and MariaDB
//! where `PORTIERE_TEST_POSTGRES` and `PORTIERE_TEST_MYSQL` name servers.

mod claims;
mod looking;

use crate::support::*;
use serde_json::Value;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;
use store::engine::Engine as _;

/// An empty database of each kind that is there: its URL.
fn targets(folder: &Path) -> Vec<String> {
    let file = format!("sqlite:{}", folder.join("new.db").display());
    let servers = [("PORTIERE_TEST_POSTGRES", "psql", vec!["-qc"]), ("PORTIERE_TEST_MYSQL", "mariadb", vec!["-e"])];
    let made = servers.into_iter().filter_map(|(variable, client, flags)| {
        let url = std::env::var(variable).ok().filter(|url| !url.is_empty())?;
        let name = format!("moved_{}_{}", std::process::id(), unique("to"));
        let create = format!("CREATE DATABASE {name}");
        let mut command = Command::new(client);
        if client == "psql" {
            command.arg(&url);
        } else {
            let (user, rest) = url.strip_prefix("mysql://")?.split_once(':')?;
            let (password, place) = rest.split_once('@')?;
            let (host, port) = place.trim_end_matches('/').split_once(':')?;
            command.args(["-h", host, "-P", port, "-u", user]).env("MYSQL_PWD", password);
        }
        let made = command.args(flags).arg(create).output().expect("the client is installed");
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        Some(match client {
            "psql" => format!("{}/{name}", url.rsplit_once('/')?.0),
            _ => format!("{}/{name}", url.trim_end_matches('/')),
        })
    });
    // A file is one node's.
    let file = (nodes() == 1).then_some(file);
    file.into_iter().chain(made.collect::<Vec<_>>()).collect()
}

/// A file with a URL in it, as an operator would give one with a password.
fn file_with(folder: &Path, url: &str) -> String {
    let file = folder.join("new-url");
    std::fs::write(&file, format!("{url}\n")).unwrap();
    file.to_str().unwrap().to_owned()
}

fn no_write_stands(server: &'static Server, app: &App, refresh: &str, person: &Person) {
    for refused in [app.refresh(refresh), app.post("/oauth2/device", &[("scope", "openid")])] {
        let wait = refused.must_be(503).header("retry-after").and_then(|wait| wait.parse::<u32>().ok());
        assert!(wait.is_some_and(|wait| (1..=60).contains(&wait)), "{wait:?}");
    }
    let mut browser = Browser::new(server);
    let page = browser.get("/login").must_be(200);
    let page = browser.log_in_on(&page, &person.name, &person.password);
    assert_eq!((page.status, page.header("retry-after").is_some()), (503, true));
}

#[test]
fn who_is_signed_in_stays_so_at_the_new_database() {
    // red without the triggers, the copy of any table, or Arrival::Ready.
    let folder = tempfile::tempdir().unwrap();
    for url in targets(folder.path()) {
        let server = Server::leaked(&[]);
        let (app, person) = (App::trusted(server), Person::add(server));
        let mut browser = Browser::new(server);
        let (kept, ended) = (app.tokens(&mut browser, &person), app.tokens(&mut browser, &person));
        app.revoke(&ended.refresh).must_be(200);
        let code = app.code(&mut browser, &person, &app.ask());
        let named = file_with(folder.path(), &url);
        // Where there is no terminal nobody is asked.
        let moved = server.must(&["move", "--to-file", &named, "--json"], "");
        let told: Value = serde_json::from_str(&moved).unwrap();
        assert!(told["rows"].as_u64().unwrap() > 10 && told["tables"].as_array().unwrap().len() > 20, "{moved}");

        no_write_stands(server, &app, &kept.refresh, &person);
        assert!(browser.is_signed_in() && app.is_active(&kept.access) && !app.is_active(&ended.access));
        server.get("/.well-known/openid-configuration").must_be(200);
        server.get("/oauth2/jwks").must_be(200);
        // An answer is good for others for a tenth of a second: the one from the start may be as young.
        std::thread::sleep(Duration::from_millis(150));
        let ready = server.get("/readyz").must_be(503).text();
        assert!(ready.contains("was moved to"), "{ready}");
        // Red without the exit code in cli/ready.rs, run.
        for line in [&["ready"][..], &["ready", "--wait", "300ms"]] {
            let told = server.command(line, "");
            assert!(told.code == 1 && told.err.ends_with("not ready\n"), "{line:?}: {}", told.err);
            assert!(told.out.starts_with("not ready\nproblem: ") && told.out.contains("was moved to"), "{}", told.out);
        }
        let second = server.must(&["move", "--to-file", &named, "--yes"], "");
        assert!(second.contains("already"), "{second}");

        assert_eq!(server.stop(), Some(0));
        let refused = server.command(&["serve", "--listen", "127.0.0.1:0"], "");
        assert!(refused.code == 1 && refused.err.contains("was moved to"), "{}", refused.err);
        for told in [&moved, &ready, &refused.err, &second] {
            assert!(!url.contains('@') || !told.contains(url.split(['/', '@']).nth(2).unwrap()), "{told}");
        }
        server.set("PORTIERE_STORE_URL", &url);
        server.restart();
        assert!(browser.is_signed_in() && !app.is_active(&ended.access));
        app.redeem(&code).must_be(200);
        let next = Tokens::of(&app.refresh(&kept.refresh));
        assert!(app.is_active(&next.access));
        app.tokens(&mut Browser::new(server), &person);
        server.kill();
    }
}

/// The same move once more, in a process that is killed after so long; whether it came to its end before.
fn killed_after(data: &Path, to: &str, patience: Duration) -> bool {
    let told = data.join("killed.log");
    assert!(patience < Duration::from_secs(60), "{}", std::fs::read_to_string(&told).unwrap());
    let mut child = program()
        .args(["move", "--yes", "--to", to, "--data"])
        .arg(data)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(std::fs::File::create(&told).unwrap())
        .spawn()
        .unwrap();
    std::thread::sleep(patience);
    let ended = child.try_wait().unwrap().is_some_and(|status| status.success());
    child.kill().unwrap();
    child.wait().unwrap();
    ended
}

/// How far the source is.
fn state(server: &Server) -> Value {
    serde_json::from_str::<Value>(&server.must(&["move", "--status", "--json"], "")).unwrap()["from"]["state"].take()
}

#[test]
fn a_move_that_is_killed_goes_on_and_can_be_given_up_until_it_is_served_from() {
    // red without the guard of moving/marks.rs, or the rows and the mark in one commit.
    if !on_file() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (mut fenced, mut free) = (0, 0);
    for round in 0..6 {
        let server = Server::leaked(&[]);
        let (app, person) = (App::trusted(server), Person::add(server));
        let mut browser = Browser::new(server);
        let tokens = app.tokens(&mut browser, &person);
        let to = format!("sqlite:{}", folder.path().join(format!("{round}.db")).display());
        let mut patience = Duration::from_millis(5 + 7 * round);
        while !killed_after(&server.data(), &to, patience) {
            // By shares, since a slow machine would be killed hundreds of times.
            patience += (patience / 8).max(Duration::from_millis(10));
            match state(server) {
                Value::Null => free += 1,
                _ => {
                    fenced += 1;
                    no_write_stands(server, &app, &tokens.refresh, &person);
                    assert!(browser.is_signed_in());
                }
            }
            if round % 3 == 2 && fenced > 0 {
                break;
            }
        }
        if round % 3 == 2 {
            given_up(server, &to);
            assert!(app.is_active(&Tokens::of(&app.refresh(&tokens.refresh)).access));
            server.kill();
            continue;
        }
        assert_eq!(state(server), "left");
        assert_eq!(server.stop(), Some(0));
        server.set("PORTIERE_STORE_URL", &to);
        server.restart();
        assert!(browser.is_signed_in());
        app.refresh(&tokens.refresh).must_be(200);
        let late = server.command(&["move", "--abort", "--yes", "--from", &old(server), "--to", &to], "");
        assert!(late.code == 1 && late.err.contains("a server has run on the target"), "{}", late.err);
        server.kill();
    }
    assert!(fenced > 0 && free > 0, "{fenced} {free}");
}

fn old(server: &Server) -> String {
    format!("sqlite:{}", server.data().join("portiere.db").display())
}

fn given_up(server: &Server, to: &str) {
    if state(server) == Value::Null {
        return;
    }
    assert_ne!(state(server), "lifting");
    let silent = server.command(&["move", "--abort", "--to", to], "");
    assert!(silent.code == 2 && silent.err.contains("--yes"), "{}", silent.err);
    server.must(&["move", "--abort", "--to", to, "--yes"], "");
    assert_eq!(state(server), Value::Null);
    let copy = server.command_with(&["user", "list"], "", &[("PORTIERE_STORE_URL", to)]);
    // Where nothing had arrived yet there is nothing to give up.
    assert!(copy.code == 0 || copy.err.contains("given up"), "{}", copy.err);
    let again = server.command(&["move", "--to", to, "--yes"], "");
    assert!(again.code == 0 || again.err.contains("given up"), "{}", again.err);
    if again.code == 0 {
        server.must(&["move", "--abort", "--to", to, "--yes"], "");
    }
}

/// A target of ours that takes no row of `users`.
fn refusing(file: &Path) -> String {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let refusing =
        store::sqlite::Sqlite::open(store::sqlite::Options::at(file), store::migrations::MIGRATIONS).unwrap();
    let trigger = "CREATE TRIGGER full BEFORE INSERT ON users BEGIN SELECT RAISE(ABORT, 'no room is left'); END";
    runtime.block_on(async {
        refusing.migrate().await.unwrap();
        refusing.alter(vec![trigger.to_owned()]).await.unwrap();
    });
    refusing.close();
    format!("sqlite:{}", file.display())
}

#[test]
fn a_backup_made_while_a_move_stands_still_or_after_it_can_be_restored() {
    // red without Named and `stopped` in cli/moving, fence::lift_in_copy in cli/restore.rs.
    if !on_file() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().canonicalize().unwrap().join(name).to_str().unwrap().to_owned();
    let server = Server::leaked(&[]);
    let (app, person) = (App::trusted(server), Person::add(server));
    let to = refusing(Path::new(&at("full.db")));
    let stuck = server.command(&["move", "--to", &to, "--yes"], "");
    assert!(stuck.code == 75 && stuck.err.contains(&format!("{to}: no room is left; sqlite:")), "{}", stuck.err);
    assert!(stuck.err.contains("takes no writes until this move is run again"), "{}", stuck.err);
    assert_eq!(state(server), "fenced");
    // Red without `noting` in cli/backup.rs.
    let copied = server.command(&["backup", &at("fenced.db")], "");
    assert!(copied.code == 0 && copied.err.contains(&format!("being moved to {to}")), "{}", copied.err);
    assert_eq!(server.stop(), Some(0));
    let restored = server.command(&["restore", "--force", &at("fenced.db")], "");
    assert!(restored.code == 0 && restored.err.contains(&format!("being moved to {to}")), "{}", restored.err);
    server.restart();
    assert_eq!(state(server), Value::Null);
    app.tokens(&mut Browser::new(server), &person);

    let to = format!("sqlite:{}", at("new.db"));
    server.must(&["move", "--to", &to, "--yes"], "");
    server.must(&["backup", &at("left.db")], "");
    assert_eq!(server.stop(), Some(0));
    let refused = server.command(&["restore", "--force", &at("left.db")], "");
    assert!(refused.code == 1 && refused.err.contains(&format!("moved to {to}")), "{}", refused.err);
    let restored = server.command(&["restore", "--force", "--target-is-gone", &at("left.db")], "");
    assert!(restored.code == 0 && restored.err.contains(&format!("moved to {to}")), "{}", restored.err);
    server.restart();
    app.tokens(&mut Browser::new(server), &person);
    server.kill();
}

/// The targets that are servers.
fn servers(folder: &Path) -> impl Iterator<Item = String> {
    targets(folder).into_iter().filter(|url| !url.starts_with("sqlite:"))
}

/// Red without `found` in cli/reach.rs: it made a provider there, and what was to be moved there was refused.
#[test]
fn a_command_that_only_reads_makes_nothing_on_an_empty_server() {
    let folder = tempfile::tempdir().unwrap();
    for url in servers(folder.path()) {
        let data = folder.path().join("data");
        let ended = |line: &[&str]| {
            let mut command = program();
            command.args(line).arg("--data").arg(&data).env("PORTIERE_STORE_URL", &url).stdin(Stdio::null());
            let output = command.output().unwrap();
            (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
        };
        for line in [
            &["user", "list"][..],
            &["client", "list"],
            &["keys", "rotate"],
            &["user", "show", "ada"],
            &["restore", "--in-place", "--yes"],
        ] {
            let (code, told) = ended(line);
            assert!(code == Some(1) && told.contains("there are no tables of Portiere in"), "{line:?}: {told}");
            assert!(told.trim_end().ends_with("is store.url right?") && told.lines().count() == 1, "{line:?}: {told}");
            assert!(!told.contains(url.split(['/', '@']).nth(2).unwrap()), "{told}");
            assert!(!data.exists(), "{line:?}");
        }
        let server = Server::leaked(&[]);
        server.must(&["move", "--to-file", &file_with(folder.path(), &url), "--yes"], "");
        server.kill();
    }
    for url in servers(folder.path()) {
        let data = folder.path().join("new");
        let mut command = program();
        command.args(["group", "add", "staff", "--data"]).arg(&data).env("PORTIERE_STORE_URL", &url);
        let output = command.stdin(Stdio::null()).output().unwrap();
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && told.contains("is that the store.url of your server?"), "{told}");
        std::fs::remove_dir_all(&data).unwrap();
    }
}

/// Red without no_other_before in server/boot.rs, hold: it filled the database, and said that the realm is not there.
#[test]
fn a_node_that_worked_on_a_database_leaves_an_empty_server_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    for url in servers(folder.path()) {
        let server = Server::leaked(&[]);
        let (app, person) = (App::trusted(server), Person::add(server));
        let mut browser = Browser::new(server);
        app.tokens(&mut browser, &person);
        until("the mark is kept", || server.data().join("audit.mark").exists());
        assert_eq!(server.stop(), Some(0));
        for line in [&["serve", "--listen", "127.0.0.1:0"][..], &["group", "add", "staff"], &["migrate"]] {
            let refused = server.command_with(line, "", &[("PORTIERE_STORE_URL", &url)]);
            let why = "this node has worked on another database";
            assert!(refused.code == 1 && refused.err.contains(why), "{line:?}: {}", refused.err);
        }
        server.restart();
        server.must(&["move", "--to-file", &file_with(folder.path(), &url), "--yes"], "");
        assert_eq!(server.stop(), Some(0));
        server.set("PORTIERE_STORE_URL", &url);
        server.restart();
        assert!(browser.is_signed_in());
        server.kill();
    }
}

/// Red with the name of the target alone in `is_target`, cli/moving/mod.rs: the answer was to set store.url, or to go on.
#[test]
fn a_move_is_given_up_whatever_its_target_is_called_now() {
    let folder = tempfile::tempdir().unwrap();
    for url in servers(folder.path()) {
        let alias =
            format!("{url}?{}", if url.starts_with("mysql:") { "ssl-mode=disabled" } else { "sslmode=disable" });
        let server = Server::leaked(&[]);
        server.must(&["move", "--to-file", &file_with(folder.path(), &url), "--yes"], "");
        let again = server.must(&["move", "--to-file", &file_with(folder.path(), &alias), "--yes"], "");
        assert!(again.contains("already"), "{again}");
        server.must(&["move", "--abort", "--to-file", &file_with(folder.path(), &alias), "--yes"], "");
        assert_eq!(state(server), Value::Null);
        Person::add(server);
        server.kill();
    }
    let server = Server::leaked(&[]);
    let at = |name: &str| folder.path().canonicalize().unwrap().join(name);
    let (to, other) = (refusing(&at("full.db")), format!("sqlite:{}", at("other.db").display()));
    Person::add(server);
    assert_eq!(server.command(&["move", "--to", &to, "--yes"], "").code, 75);
    for line in [&["move", "--to", &other, "--yes"][..], &["move", "--abort", "--to", &other, "--yes"]] {
        let refused = server.command(line, "");
        let why = format!("--to names {other}, but this move goes to {to}: name {to} as when the move began");
        assert!(refused.code == 1 && refused.err.contains(&why), "{line:?}: {}", refused.err);
    }
    assert!(!at("other.db").exists());
    // Red without `is_leaving` in server/database.rs: a command that has no server was told that it cannot succeed.
    server.stop();
    let later = server.command(&["user", "list"], "");
    assert!(later.code == 75 && later.err.contains("is being moved"), "{} {}", later.code, later.err);
    server.must(&["move", "--abort", "--to", &to, "--yes"], "");
    server.kill();
}

/// Red without Orders in `go`, cli/moving/mod.rs: the signal ends it without a word.
#[test]
fn a_move_that_is_interrupted_says_what_that_means() {
    use rustix::process::{Pid, Signal, kill_process};
    if !on_file() {
        return;
    }
    let tell = |pid: u32, signal| kill_process(Pid::from_raw(i32::try_from(pid).unwrap()).unwrap(), signal).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let server = Server::leaked(&[]);
    // It holds the file, and closes it to no writes.
    server.pids().into_iter().for_each(|pid| tell(pid, Signal::STOP));
    let mut command = program();
    command.args(["move", "--yes", "--to", &format!("sqlite:{}", folder.path().join("new.db").display()), "--data"]);
    command.arg(server.data()).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let moving = command.spawn().unwrap();
    let heard = || {
        let status = std::fs::read_to_string(format!("/proc/{}/status", moving.id())).unwrap_or_default();
        let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
        caught.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask & 0b10 != 0)
    };
    // Which it does last. One that comes between a handler and who listens to it is heard by nobody.
    until("it hears SIGINT", heard);
    tell(moving.id(), Signal::TERM);
    let output = moving.wait_with_output().unwrap();
    let told = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{told}");
    assert!(told.contains("interrupted while writes to sqlite:") && told.contains("--abort"), "{told}");
    server.pids().into_iter().for_each(|pid| tell(pid, Signal::CONT));
    server.kill();
}

/// Red without `vacant` in `Target::open` or `Database::open`: nothing is made in a database that is somebody else's.
#[test]
fn a_database_of_somebody_else_is_left_as_it_is() {
    let server = default_server();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("invoices.db");
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let open =
        || store::sqlite::Sqlite::open(store::sqlite::Options::at(&file), store::migrations::MIGRATIONS).unwrap();
    let theirs = open();
    runtime.block_on(theirs.alter(vec!["CREATE TABLE invoices (id bigint)".to_owned()])).unwrap();
    theirs.close();
    let output = server.command(&["move", "--to", &format!("sqlite:{}", file.display()), "--yes"], "");
    assert!(output.code == 1 && output.err.contains("tables that are not Portiere's: invoices"), "{}", output.err);
    let data = folder.path().join("data");
    let serve = std::process::Command::new("timeout")
        .args(["60", env!("CARGO_BIN_EXE_portiere"), "serve", "--listen", "127.0.0.1:0", "--data"])
        .arg(&data)
        .env("PORTIERE_STORE_URL", format!("sqlite:{}", file.display()))
        .env("PORTIERE_KEYS_MASTER_KEY", "A".repeat(43) + "=")
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&serve.stderr);
    assert!(serve.status.code() == Some(1) && told.contains("tables that are not Portiere's: invoices"), "{told}");
    let tables = runtime.block_on(store::moving::catalogue::tables(&open())).unwrap();
    assert_eq!(tables.into_keys().collect::<Vec<_>>(), ["invoices"]);
    server.get("/readyz").must_be(200);
}

#[test]
fn a_password_in_a_url_is_repeated_nowhere() {
    let server = default_server();
    let secret = "postgres://someone:verysecret@127.0.0.1:1/nowhere";
    for line in [vec!["move", "--to", secret, "--yes"], vec!["move", "--to", "http://u:verysecret@h/d", "--yes"]] {
        let output = server.command(&line, "");
        assert_ne!(output.code, 0);
        let told = format!("{}{}", output.out, output.err);
        assert!(!told.contains("verysecret") && !told.is_empty(), "{told}");
    }
    server.get("/readyz").must_be(200);
}
