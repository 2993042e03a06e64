//! D1, seen from outside: no answer to a write leaves before the log that holds it was synced. The page cache survives a
//! killed process, so a kill proves nothing here; the system calls do.

use crate::support::*;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What the system calls of a server say.
#[derive(Debug, Default, PartialEq, Eq)]
struct Verdict {
    /// Syncs of the log that were more than of its data.
    whole: usize,
    /// Answers that left while something in the write-ahead log was not synced.
    early: usize,
    /// Answers before which nothing was synced since the one before.
    bare: usize,
    /// Answers in all.
    answers: usize,
    /// Writes to the log.
    writes: usize,
}

/// SQLite's log.
fn is_wal(path: &str) -> bool {
    path.ends_with("-wal")
}

/// What a node acknowledged, over a database server.
fn is_journal(path: &str) -> bool {
    path.contains("/journal/") && path.ends_with(".log")
}

/// Reads what strace wrote. Calls of several threads are interleaved: a sync counts when it has ended and nothing was
/// written since it began.
fn judge(trace: &str, is_log: fn(&str) -> bool) -> Verdict {
    let mut verdict = Verdict::default();
    let (mut dirty, mut written, mut syncing, mut synced) = (false, 0_usize, None, false);
    for line in trace.lines() {
        let Some((_thread, call)) = line.trim_start().split_once(char::is_whitespace) else { continue };
        let call = call.trim_start();
        let resumed = call.starts_with("<... ");
        let name = call.trim_start_matches("<... ").split(['(', ' ']).next().unwrap_or("");
        let on_log = call.split('>').next().is_some_and(is_log);
        let on_socket =
            call.split('>').next().is_some_and(|first| first.contains("socket:[") || first.contains("TCP:["));
        match name {
            "pwrite64" | "pwritev" | "write" if on_log && !resumed => {
                dirty = true;
                written += 1;
                verdict.writes += 1;
            }
            "fdatasync" | "fsync" if on_log || resumed => {
                if !resumed {
                    syncing = Some(written);
                    verdict.whole += usize::from(name == "fsync");
                }
                if !call.contains("unfinished") && call.ends_with("= 0") && syncing.take() == Some(written) {
                    (dirty, synced) = (false, true);
                }
            }
            "write" | "writev" | "sendto" | "sendmsg" if on_socket && !resumed && call.contains("HTTP/1.1 ") => {
                verdict.answers += 1;
                verdict.early += usize::from(dirty);
                verdict.bare += usize::from(!std::mem::take(&mut synced));
            }
            _ => {}
        }
    }
    verdict
}

/// A server whose calls are traced into `path`.
fn traced(path: &str, settings: &[(&str, &str)]) -> &'static Server {
    let calls = "trace=pwrite64,pwritev,write,writev,sendto,sendmsg,fdatasync,fsync";
    let strace = ["strace", "-D", "-f", "-y", "-q", "-s", "32", "-e", calls, "-e", "signal=none", "-o", path];
    Box::leak(Box::new(Server::wrapped(settings, &strace)))
}

/// Writes of every kind, one request at a time.
fn trace(synchronous: &str) -> Verdict {
    let file = tempfile::NamedTempFile::new().unwrap();
    let path = file.path().to_str().unwrap().to_owned();
    let settings = [("PORTIERE_STORE_SYNCHRONOUS", synchronous), ("PORTIERE_SIGNUP_ENABLED", "true")];
    let server = traced(&path, &settings);
    let (app, person) = (App::trusted(server), Person::add(server));
    std::fs::write(&path, "").unwrap();
    let mut browser = Browser::new(server);
    for _ in 0..5 {
        let first = app.tokens(&mut browser, &person);
        let second = Tokens::of(&app.refresh(&first.refresh));
        app.revoke(&second.access).must_be(200);
        app.revoke(&second.refresh).must_be(200);
        app.post("/oauth2/device", &[("scope", "openid")]).must_be(200);
        let code = app.code(&mut browser, &person, &app.ask());
        App::trusted(server).redeem(&code).must_be(400);
        let mut newcomer = Browser::new(server);
        let page = newcomer.get("/signup").text();
        let form = Form::find(&page, "/signup").unwrap().fill("username", &unique("sync"));
        newcomer.submit(&form.fill("password", "gorse violet anvil 41")).must_be(303);
        let sign_out = newcomer.account_form("/account/signout");
        newcomer.submit(&sign_out).must_be(303);
    }
    server.kill();
    judge(&std::fs::read_to_string(&path).unwrap(), is_wal)
}

/// What ends something, one request at a time, and nothing else: what the first node does with its journal.
fn trace_endings() -> Verdict {
    let file = tempfile::NamedTempFile::new().unwrap();
    let path = file.path().to_str().unwrap().to_owned();
    let server = traced(&path, &[]);
    let (app, person) = (App::trusted(server), Person::add(server));
    let mut browser = Browser::new(server);
    let [mut rotated, revoked] = [0; 2].map(|_| app.tokens(&mut browser, &person));
    let codes = [0; 4].map(|_| app.code(&mut browser, &person, &app.ask()));
    let sign_out = browser.account_form("/account/signout");
    std::fs::write(&path, "").unwrap();
    for _ in 0..20 {
        rotated = Tokens::of(&app.refresh(&rotated.refresh));
    }
    app.revoke(&revoked.refresh).must_be(200);
    app.revoke(&rotated.access).must_be(200);
    for code in &codes {
        app.redeem(code).must_be(200);
    }
    browser.submit(&sign_out).must_be(303);
    server.kill();
    judge(&std::fs::read_to_string(&path).unwrap(), is_journal)
}

fn strace_is_there() -> bool {
    let found = Command::new("strace").arg("-V").output().is_ok_and(|output| output.status.success());
    if !found {
        println!("skipped: strace is not installed");
    }
    found
}

#[test]
fn d1_no_acknowledged_write_leaves_before_its_sync() {
    // red with synchronous=NORMAL, or an answer before COMMIT: store/sqlite/{open,writer}.rs. `whole` is red without
    // HAVE_FDATASYNC in .cargo/config.toml.
    if !on_file() || !strace_is_there() {
        return;
    }
    // What the server writes by itself may be on its way to a slow disk while a page is answered: not every time.
    let mut verdicts = (0..3).map(|_| trace("full")).inspect(|verdict| {
        assert!(verdict.writes > 40 && verdict.answers > 40, "{verdict:?}");
        assert!(verdict.early * 10 < verdict.answers, "{verdict:?}");
        assert_eq!(verdict.whole, 0, "{verdict:?}");
    });
    assert!(verdicts.any(|verdict| verdict.early == 0), "each time");
}

#[test]
fn d1_the_same_trace_tells_when_nothing_is_synced() {
    if !on_file() || !strace_is_there() {
        return;
    }
    let verdict = trace("normal");
    assert!(verdict.early > 0, "{verdict:?}");
}

#[test]
fn d2_no_acknowledged_ending_leaves_before_the_journal_of_its_node_was_synced() {
    // red without sync_data in server/journal/writer.rs, write (early), and without the append in app/ward/mod.rs (bare).
    if on_file() || !strace_is_there() {
        return;
    }
    let verdict = trace_endings();
    // Other nodes answer the rest of them.
    let least = 24 / nodes();
    assert!(verdict.writes >= least && verdict.answers >= least, "{verdict:?}");
    assert_eq!((verdict.early, verdict.bare), (0, 0), "{verdict:?}");
}

#[test]
fn d1_the_judge_reads_interleaved_calls() {
    let wal = "7</d/portiere.db-wal>";
    let socket = "9<socket:[1]>";
    let write = format!("11 pwrite64({wal}, \"x\", 4096, 0) = 4096\n");
    let sync = format!("11 fdatasync({wal}) = 0\n");
    let answer = format!("12 sendto({socket}, \"HTTP/1.1 200 OK\", 15, 0) = 15\n");
    let begun = format!("11 fdatasync({wal} <unfinished ...>\n");
    let ended = "11 <... fdatasync resumed>) = 0\n";
    let whole = |trace: &str| judge(trace, is_wal).whole;
    assert_eq!((whole(&sync), whole(&format!("11 fsync({wal}) = 0\n"))), (0, 1));
    let early = |trace: &[&str]| judge(&trace.concat(), is_wal).early;
    let bare = |trace: &[&str]| judge(&trace.concat(), is_wal).bare;
    assert_eq!(bare(&[&write, &sync, &answer, &write, &sync, &answer]), 0);
    assert_eq!(bare(&[&write, &sync, &answer, &answer]), 1);
    assert_eq!(bare(&[&write, &begun, ended, &answer, &answer]), 1);
    assert_eq!(early(&[&write, &sync, &answer]), 0);
    assert_eq!(early(&[&write, &answer, &sync]), 1);
    assert_eq!(early(&[&write, &begun, &answer, ended]), 1);
    assert_eq!(early(&[&write, &begun, ended, &answer]), 0);
    assert_eq!(early(&[&write, &begun, &write, ended, &answer]), 1);
}

#[test]
fn what_an_acknowledged_write_is_worth_is_said_at_the_start_and_by_readyz() {
    // red without `worth` in server/boot.rs, announce.
    for synchronous in ["full", "normal"] {
        let server = Server::start(&[("PORTIERE_STORE_SYNCHRONOUS", synchronous)]);
        let ready = Call::get("/readyz").try_send_here(server.port).unwrap().must_be(200).json();
        let worth = ready["durability"].as_str().unwrap();
        assert!(worth.contains("lost") || worth.contains("undo"), "{worth}");
        until(worth, || server.said().lines().any(|line| line.trim() == worth));
        until(worth, || server.log().lines().any(|line| line.contains(worth) && line.contains("INFO")));
    }
}

#[test]
fn replication_that_is_said_to_be_strict_and_does_not_look_so_is_said_at_the_start_and_by_readyz() {
    // red without `contradiction` in server/boot.rs, worth, and in server/http/health.rs.
    let url = default_server().setting("PORTIERE_STORE_URL");
    if !url.is_some_and(|url| url.starts_with("postgres")) {
        println!("skipped: no other database can be said to replicate strictly");
        return;
    }
    let server = Server::start(&[("PORTIERE_STORE_REPLICATION", "strict")]);
    let ready = Call::get("/readyz").try_send_here(server.port).unwrap().must_be(200).json();
    let doubt = "store.replication is strict, but no standby confirms the server's commits";
    assert_eq!(ready["durability"], "durable: nothing acknowledged is lost while the disk survives", "{ready}");
    assert_eq!(ready["warnings"], serde_json::json!([doubt]), "{ready}");
    until(doubt, || server.said().lines().any(|line| line.trim() == doubt));
}

#[test]
fn a_second_server_on_the_same_folder_is_refused() {
    // red without the lock in store/sqlite/open.rs.
    let server = default_server();
    let second = server.command(&["serve", "--listen", "127.0.0.1:0"], "");
    assert!(
        second.code != 0 && second.err.contains("a server or a command works on this data folder"),
        "{}",
        second.err
    );
    server.get("/readyz").must_be(200);
}

#[test]
fn a_program_is_told_as_an_object_where_the_server_is() {
    // red without `json` in server/boot.rs, announce.
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().display().to_string();
    let serve = ["serve", "--json", "--listen", "127.0.0.1:0", "--data", &data];
    let mut server = program().args(serve).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(server.stdout.take().unwrap()).read_line(&mut line).unwrap();
    server.kill().unwrap();
    server.wait().unwrap();
    let told: serde_json::Value = serde_json::from_str(&line).unwrap_or_else(|_| panic!("{line}"));
    assert!(told["issuer"].as_str().is_some_and(|issuer| issuer.starts_with("http://localhost:")), "{told}");
    assert!(told["durability"].is_string() && told["data"].is_string(), "{told}");
    let link = std::fs::read_to_string(told["setup_link"].as_str().unwrap()).unwrap();
    assert!(link.contains("/setup#"), "{told}");
}

#[test]
fn sigterm_finishes_what_runs_and_exits_with_success() {
    // red without Orders in server/boot.rs, run.
    let server = Server::leaked(&[]);
    let (app, person) = (App::trusted(server), Person::add(server));
    let tokens = app.tokens(&mut Browser::new(server), &person);
    assert_eq!(server.stop(), Some(0));
    server.restart();
    assert!(app.is_active(&tokens.access));
    server.kill();
}

#[test]
fn a_backup_brings_back_people_and_no_tokens() {
    // red without revive_nothing in app/admin/restore.rs.
    if !on_file() {
        return;
    }
    let server = Server::leaked(&[]);
    let (app, person) = (App::trusted(server), Person::add(server));
    let mut browser = Browser::new(server);
    let tokens = app.tokens(&mut browser, &person);
    let code = app.code(&mut browser, &person, &app.ask());
    let copy = server.folder.join("copy.db");
    server.must(&["backup", copy.to_str().unwrap()], "");
    assert_eq!(server.stop(), Some(0));
    keep_only(&server.data(), &["master.key"]);
    server.must(&["restore", copy.to_str().unwrap()], "");
    server.restart();
    assert!(!browser.is_signed_in());
    app.redeem(&code).must_fail(400, "invalid_grant");
    app.refresh(&tokens.refresh).must_fail(400, "invalid_grant");
    assert!(!app.is_active(&tokens.access));
    app.tokens(&mut Browser::new(server), &person);
    server.kill();
}

#[test]
fn the_log_of_a_server_that_was_killed_is_not_played_into_a_backup() {
    // red where put_aside in server/cli/restore.rs looks at the database alone.
    if !on_file() {
        return;
    }
    let server = Server::leaked(&[]);
    let known = Person::add(server);
    let copy = server.folder.join("copy.db");
    server.must(&["backup", copy.to_str().unwrap()], "");
    let later = Person::add(server);
    server.kill();
    let database = server.data().join("portiere.db");
    let log = std::fs::metadata(server.data().join("portiere.db-wal")).unwrap().len();
    assert!(log > 0, "or the test shows nothing");
    std::fs::remove_file(&database).unwrap();
    // It opens the folder as a start does, and ends.
    let refused = server.command(&["migrate"], "");
    assert!(refused.code == 1 && refused.err.contains("portiere.db-wal"), "{}", refused.err);
    assert!(!database.exists(), "nothing began anew");
    server.must(&["restore", copy.to_str().unwrap()], "");
    server.restart();
    server.must(&["user", "show", &known.name], "");
    assert_eq!(server.command(&["user", "show", &later.name], "").code, 1, "it is not in the backup");
    // A restore takes nothing that is damaged.
    let again = server.folder.join("again.db");
    server.must(&["backup", again.to_str().unwrap()], "");
    assert_eq!(server.stop(), Some(0));
    server.must(&["restore", "--force", again.to_str().unwrap()], "");
}

#[test]
fn a_database_server_that_was_restored_brings_back_people_and_no_tokens() {
    // red without end_all in server/cli/restore.rs: the nodes have nothing that remembers what was revoked since.
    let Some(server) = Server::pair() else { return };
    let url = server.setting("PORTIERE_STORE_URL").unwrap();
    let (app, asks, person) = (App::trusted(server), App::web(server), Person::add(server));
    let [mut stays, mut leaves] = [0; 2].map(|_| Browser::of(server, &person));
    let [kept, revoked] = [0; 2].map(|_| app.tokens(&mut stays, &person));
    asks.tokens(&mut stays, &person);
    let code = app.code(&mut stays, &person, &app.ask());
    let dump = Dump::of(&url);
    app.revoke(&revoked.refresh).must_be(200);
    let sign_out = leaves.account_form("/account/signout");
    leaves.submit(&sign_out).must_be(303);

    server.stop_first();
    let in_place = |more: &[&str]| server.command(&[&["restore", "--in-place"], more].concat(), "");
    let refused = in_place(&["--yes"]);
    assert!(refused.code == 1 && refused.err.contains("runs on this database"), "{}", refused.err);
    server.lose_second();
    server.folders().iter().for_each(|data| keep_only(data, &["master.key", "audit.key"]));
    dump.restore();
    assert_eq!(in_place(&[]).code, 2, "it asks, and there is nobody");
    let told = in_place(&["--yes", "--json"]);
    assert_eq!(told.code, 0, "{}", told.err);
    let told: serde_json::Value = serde_json::from_str(&told.out).unwrap();
    let ended = |what: &str| told["ended"][what].as_u64().unwrap();
    assert_eq!([ended("sessions"), ended("families"), ended("consents")], [2, 3, 1], "{told}");
    assert_eq!(told["waiting_for"], serde_json::json!([]), "nobody remembers more");

    server.start_first();
    server.find_second();
    assert!(!stays.is_signed_in() && !leaves.is_signed_in());
    app.redeem(&code).must_fail(400, "invalid_grant");
    for tokens in [&kept, &revoked] {
        app.refresh(&tokens.refresh).must_fail(400, "invalid_grant");
        assert!(!app.is_active(&tokens.access));
    }
    let mut newcomer = Browser::of(server, &person);
    app.tokens(&mut newcomer, &person);
    let page = newcomer.get(&asks.ask().target());
    let page = newcomer.follow(page).text();
    assert!(Form::find(&page, "/consent").is_some(), "a consent may have been taken back since: {page}");
    server.kill();
}

/// A folder on a new disk, with the keys that its owner kept.
fn keep_only(data: &Path, keys: &[&str]) {
    let files = std::fs::read_dir(data).unwrap().flatten().map(|entry| entry.path());
    let kept = |file: &PathBuf| keys.iter().any(|key| file.file_name().is_some_and(|name| name == *key));
    for file in files.filter(|file| !kept(file)) {
        if file.is_dir() { std::fs::remove_dir_all(file).unwrap() } else { std::fs::remove_file(file).unwrap() }
    }
}
