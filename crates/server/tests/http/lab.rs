//! `portiere lab`, and the private servers that it is made of.

use crate::scale::{LAB_RUNS, scaled};
use crate::support::*;
use lab::private::{Cores, Private, Setup};
use lab::report::{Expect, Group, Row, Sheet, figure};
use load::plan::{Plan, Workload};
use load::run::run as measure;
use serde_json::Value;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

fn setup(within: &Path) -> Setup {
    let people = 20;
    Setup { people, within: Some(within.to_owned()), ..Setup::of(Path::new(BINARY)) }
}

fn entries(folder: &Path) -> usize {
    std::fs::read_dir(folder).unwrap().count()
}

fn runs(pid: u32) -> bool {
    // A process that ended and was not waited for has no command line any more.
    std::fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| !line.is_empty())
}

#[test]
fn a_private_server_has_people_who_sign_in_and_figures_and_leaves_nothing() {
    let within = tempfile::tempdir().unwrap();
    let setup = Setup { cores: Some(Cores::all().unwrap().first(1).unwrap()), ..setup(within.path()) };
    let server = Private::start(&setup.with("brand.name", "Here")).unwrap();
    let folder = server.folder().path().to_owned();
    assert_eq!(std::fs::metadata(&folder).unwrap().permissions().mode() & 0o777, 0o700);
    let plan = server.plan(Workload::Flow).unwrap();
    assert_eq!(plan.users.len(), 20);
    let plan = Plan { warmup: Duration::ZERO, duration: Duration::from_secs(1), ..plan };
    // As long as it takes: the machine may be busy.
    let mut seconds = [1, 4, 16, 64].map(Duration::from_secs).into_iter();
    let report = loop {
        let report = measure(&Plan { duration: seconds.next().unwrap(), ..plan.clone() }, None).unwrap();
        assert_eq!(report.failed, 0, "{report}");
        if report.iterations > 0 {
            break report;
        }
    };
    assert!(report.server.is_some(), "{report}");
    assert!(server.cpu() > Duration::ZERO && server.resident() > 1 << 20);
    let metrics = server.metrics().unwrap();
    assert!(metrics.sum("portiere_hashing_done_total") >= report.iterations as f64);
    assert_eq!(metrics.sum("portiere_hashing_threads"), 1.0, "it has one core");
    let home = report.target;
    assert_eq!(home, server.url());
    assert_eq!(server.command(&["user", "list"], "").unwrap().lines().count(), 22, "the head, and the template");
    let pid = server.pid();
    server.stop();
    assert!(!runs(pid) && entries(within.path()) == 0, "{}", folder.display());
}

#[test]
fn the_environment_of_the_lab_is_not_that_of_its_servers() {
    // This process may not change its environment: another one asks.
    let within = tempfile::tempdir().unwrap();
    let server = Private::start(&setup(within.path())).unwrap();
    let environment = std::fs::read(format!("/proc/{}/environ", server.pid())).unwrap();
    let names: Vec<_> =
        environment.split(|byte| *byte == 0).filter_map(|one| one.split(|byte| *byte == b'=').next()).collect();
    let mut names: Vec<_> = names.into_iter().filter(|name| !name.is_empty()).map(String::from_utf8_lossy).collect();
    names.sort();
    assert_eq!(names, ["PORTIERE_DATA", "PORTIERE_METRICS_LISTEN"]);
}

#[test]
fn what_does_not_start_is_a_line_and_leaves_nothing() {
    let within = tempfile::tempdir().unwrap();
    let refusal = Private::start(&setup(within.path()).with("hash.argon2.passes", "many")).err().unwrap();
    assert!(refusal.to_string().contains("hash.argon2.passes") && !refusal.to_string().contains('\n'), "{refusal}");
    assert_eq!(entries(within.path()), 0);
    let nowhere = Path::new("/nowhere/at/all");
    let refusal = Private::start(&Setup { within: Some(nowhere.to_owned()), ..setup(nowhere) }).err().unwrap();
    assert!(refusal.to_string().starts_with("cannot make a folder in /nowhere/at/all: "), "{refusal}");
}

/// Ends up in the folder of a panic, too: the server of a thread that panicked is gone, and its folder.
#[test]
fn a_panic_leaves_nothing() {
    let within = tempfile::tempdir().unwrap();
    let setup = setup(within.path());
    let panicked = std::thread::spawn(move || {
        let server = Private::start(&setup).unwrap();
        std::panic::panic_any(server.pid());
    });
    let pid = panicked.join().unwrap_err().downcast_ref::<u32>().copied().unwrap();
    assert!(!runs(pid) && entries(within.path()) == 0);
}

/// The guard is a process of its own, and knows that its program ended when its input does.
#[test]
fn the_guard_ends_what_a_killed_program_left() {
    let within = tempfile::tempdir().unwrap();
    let folder = within.path().join("portiere-lab-killed");
    std::fs::create_dir(&folder).unwrap();
    let mut left = Command::new("sleep").arg("600").spawn().unwrap();
    let mut guard = program().args(["lab", "guard"]).arg(&folder).stdin(Stdio::piped()).spawn().unwrap();
    let mut input = guard.stdin.take().unwrap();
    std::io::Write::write_all(&mut input, format!("+{}\n", left.id()).as_bytes()).unwrap();
    assert!(left.try_wait().unwrap().is_none() && folder.exists());
    drop(input);
    until("it ends", || left.try_wait().unwrap().is_some());
    assert!(guard.wait().unwrap().success() && !folder.exists());
}

fn lab(words: &[&str]) -> Output {
    run(Path::new("/nowhere"), &[&["lab"], words].concat(), "")
}

/// What is said of failures; a long experiment says now and then how far it is, too.
fn failures(output: &Output) -> String {
    output.err.lines().filter(|line| line.starts_with("portiere: ")).map(|line| format!("{line}\n")).collect()
}

#[test]
fn the_experiments_are_listed() {
    let listed = lab(&["list"]);
    assert_eq!((listed.code, listed.out.lines().count()), (0, lab::experiments::ALL.len()), "{}", listed.out);
    let listed: Value = serde_json::from_str(&lab(&["list", "--json"]).out).unwrap();
    assert!(listed.as_array().unwrap().iter().all(|one| one["hypothesis"].is_string()), "{listed:#}");
}

/// One that measures and one that goes wrong, side by side, into every kind of file.
#[test]
fn an_experiment_that_goes_wrong_leaves_the_others_their_results() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (within, html, save, markdown) = (file("within"), file("a.html"), file("a.json"), file("a.md"));
    std::fs::create_dir(&within).unwrap();
    let words =
        ["run", "engines", "group-commit", "--quick", "--postgres", "postgres://127.0.0.1:1/none", "--within", &within];
    let files = ["--html", &html, "--save", &save, "--markdown", &markdown];
    let output = lab(&[&words[..], &files].concat());
    assert_eq!(
        (output.code, failures(&output).as_str()),
        (1, "portiere: the experiment engines failed: see its conclusion\n")
    );
    assert!(
        output.out.contains("a transaction for each batch") && output.out.contains("= Ended before its time: "),
        "{}",
        output.out
    );

    let saved: Value = serde_json::from_str(&std::fs::read_to_string(save).unwrap()).unwrap();
    let [commits, engines] = &saved["experiments"].as_array().unwrap()[..] else { panic!("{saved:#}") };
    assert_eq!((&commits["end"], &commits["name"]), (&Value::from("done"), &Value::from("group-commit")));
    assert!(engines["end"]["failed"].is_string(), "{engines:#}");
    let values = &commits["sheet"]["groups"][0]["rows"][0]["values"];
    assert!(values.as_array().unwrap().iter().all(|round| round[0].as_f64().unwrap() > 1.0), "{values}");
    assert!(saved["machine"]["cores"].as_u64().unwrap() > 0 && saved["quick"] == true, "{saved:#}");

    let page = std::fs::read_to_string(html).unwrap();
    assert!(page.contains("<svg") && page.contains("Group commit on and off"), "{page}");
    let page = std::fs::read_to_string(markdown).unwrap();
    let picture = "a/group-commit-1-1.svg";
    assert!(page.contains(&format!("]({picture})")) && folder.path().join(picture).exists(), "{page}");
    assert_eq!(entries(Path::new(&within)), 0, "nothing is left of it");
}

/// Before a release.
#[test]
fn all_experiments_come_to_an_end() {
    for _ in 0..scaled(LAB_RUNS) {
        let folder = tempfile::tempdir().unwrap();
        let save = folder.path().join("lab.json");
        let output = lab(&["all", "--quick", "--save", save.to_str().unwrap()]);
        assert_eq!((output.code, failures(&output).as_str()), (0, ""), "{}", output.out);
        let saved: Value = serde_json::from_str(&std::fs::read_to_string(&save).unwrap()).unwrap();
        let ends: Vec<_> = saved["experiments"].as_array().unwrap().iter().map(|one| &one["end"]).collect();
        assert_eq!(ends.len(), lab::experiments::ALL.len());
        assert!(ends.iter().all(|end| *end == "done" || end["skipped"].is_string()), "{ends:?}");
    }
}

/// What an experiment measured.
fn measured() -> Value {
    let row = |name: &str, value: f64| Row { values: vec![vec![value]; 3], ..Row::new(name, &[Expect::More]) };
    let group = Group::new("", &[figure("commits a second", "/s")], vec![row("one", 1.5), row("other", 2.5)]);
    serde_json::to_value(Sheet { groups: vec![group], notes: Vec::new() }).unwrap()
}

/// red if --resume made again what is done, or kept what went wrong: lab/report/saved.rs.
#[test]
fn a_run_that_was_cut_short_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("lab.json");
    let save = file.to_str().unwrap();
    // One that is made in no time, since there is no database: of the others it is only said that they were made.
    assert_eq!(lab(&["run", "engines", "--quick", "--save", save]).code, 0);
    let mut saved: Value = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
    let made = saved["experiments"][0].clone();
    let outcomes = lab::experiments::ALL.iter().map(|experiment| {
        let mut one = made.clone();
        let end = match experiment.name {
            "engines" => serde_json::json!({ "failed": "no room is left" }),
            _ => "done".into(),
        };
        (one["name"], one["end"], one["sheet"]) = (experiment.name.into(), end, measured());
        // What is made by other words is another experiment.
        (one["hypothesis"], one["method"]) = (experiment.hypothesis.into(), experiment.method.into());
        one
    });
    saved["experiments"] = outcomes.collect();
    std::fs::write(&file, saved.to_string()).unwrap();
    let all = ["all", "--quick", "--save", save, "--resume"];
    let output = lab(&all);
    assert_eq!((output.code, failures(&output).as_str()), (0, ""), "{}", output.out);
    let again: Value = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
    let again = again["experiments"].as_array().unwrap();
    assert_eq!(again.len(), lab::experiments::ALL.len());
    for (one, before) in again.iter().zip(saved["experiments"].as_array().unwrap()) {
        assert_eq!(one["name"], before["name"]);
        let kept = (one["end"] == "done", one["sheet"] == measured());
        match one["name"] == "engines" {
            true => assert!(one["end"]["skipped"].is_string() && kept == (false, false), "{one:#}"),
            false => assert_eq!(kept, (true, true), "{one:#}"),
        }
    }

    for (name, value) in [("version", "0.0.1".into()), ("quick", false.into()), ("machine", serde_json::json!({}))] {
        let mut other = saved.clone();
        other[name] = value;
        std::fs::write(&file, other.to_string()).unwrap();
        let refused = lab(&all);
        assert_eq!((refused.code, refused.err.lines().count()), (2, 1), "{name}: {}", refused.err);
        assert!(refused.err.contains("report"), "{}", refused.err);
    }
}

#[test]
fn what_cannot_be_made_here_is_skipped_with_a_sentence() {
    let one = Cores::all().unwrap().first(1).unwrap();
    let output = one.hold(|| lab(&["run", "engines", "workers", "--quick"])).unwrap();
    assert_eq!((output.code, failures(&output).as_str()), (0, ""), "{}", output.out);
    for sentence in
        ["Skipped: 2 cores are needed, but only 1 may be used on this machine", "Skipped: it needs an empty database"]
    {
        assert!(output.out.contains(sentence), "{sentence}: {}", output.out);
    }
}

#[test]
fn what_cannot_be_asked_of_the_lab_is_a_line() {
    for (words, code, expected) in [
        (&["run", "jornal"][..], 2, "no experiment is called jornal; the nearest are journal, "),
        (&["run"], 2, "<NAME>"),
        (&["all", "--html", "/nowhere/at/all"], 1, "/nowhere/at/all cannot be written: No such file"),
        (&["all", "--markdown", "/tmp/page.txt"], 2, "the name has to end in .md"),
        (
            &["run", "audit", "--quick", "--save", "/dev/full"],
            1,
            "/dev/full cannot be written: No space left on device",
        ),
        (
            &["run", "engines", "--postgres", "mysql://u:secret@h/d"],
            2,
            "--postgres is not postgres://USER:PASSWORD@HOST/DATABASE",
        ),
        // Red where it is asked for when the experiment begins, after all others.
        (&["all", "--mysql", "mysql://u:secret@h:3306"], 2, "--mysql is not mysql://USER:PASSWORD@HOST/DATABASE"),
        (
            &["all", "--postgres", "postgres://u@h/?sslmode=disable"],
            2,
            "--postgres is not postgres://USER:PASSWORD@HOST",
        ),
        // Red without Folder::new in lab/cli, experiment.
        (&["run", "lanes", "--within", "/nowhere/at/all"], 1, "cannot make a folder in /nowhere/at/all"),
        (&["all", "--resume"], 2, "--save"),
        (&["guard", "/tmp"], 2, "/tmp is not a folder of the lab"),
    ] {
        let output = lab(words);
        // Where it ran for half a minute before, a line says so.
        let said = output.err.lines().filter(|line| !line.starts_with("audit  ")).count();
        assert_eq!((output.code, said), (code, 1), "{words:?}: {}", output.err);
        assert!(output.err.contains(expected), "{words:?}: {}", output.err);
    }
}
