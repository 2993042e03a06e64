//! `portiere capacity` as a user runs it, and its table of what operations need beside what a server counts.

use crate::support::*;
use lab::capacity::demand::Operation;
use lab::private::{Metrics, Private, Setup};
use load::plan::{Pace, Plan, Workload};
use load::run::run as measure;
use serde_json::Value;
use std::collections::HashSet;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

/// How many come side by side: so many are cut off at the end, with a part of what they came for done.
const VISITORS: usize = 4;

/// What the server counted while users came for something.
struct Counted {
    before: Metrics,
    after: Metrics,
    /// How many went through.
    done: f64,
    seconds: u64,
}

impl Counted {
    fn many(&self, name: &str) -> f64 {
        self.after.sum(name) - self.before.sum(name)
    }

    /// Whether each took so many batches. Those who were cut off did a part of their sign-in, and the server seals its log
    /// and renews its leases meanwhile.
    fn took(&self, batches: f64, each: f64, done: f64) {
        let beside = 3.0 * VISITORS as f64 + 4.0 * self.seconds as f64;
        let off = (batches - each * done).abs();
        assert!(off <= beside + 0.05 * done, "{batches} batches of {done} in {} s, in the table {each}", self.seconds);
    }
}

/// What the server has counted once nobody's password is worked on: who is cut off leaves theirs to be hashed, and it would
/// count among those who come next.
fn at_rest(server: &Private) -> Metrics {
    loop {
        let now = server.metrics().unwrap();
        if now.sum("portiere_hashing_waiting") + now.sum("portiere_hashing_running") == 0.0 {
            return now;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Counts for long enough that those who are cut off are few, however slow the machine is.
fn counted(server: &Private, workload: Workload) -> Counted {
    let mut seconds = 1;
    loop {
        let before = at_rest(server);
        let pace = Pace::Closed { visitors: VISITORS, pause: Duration::ZERO };
        let plan = server.plan(workload).unwrap();
        let plan = Plan { pace, warmup: Duration::ZERO, duration: Duration::from_secs(seconds), ..plan };
        let report = measure(&plan, None).unwrap();
        assert_eq!(report.failed, 0, "{report}");
        if report.iterations >= 40 {
            return Counted { before, after: at_rest(server), done: report.iterations as f64, seconds };
        }
        seconds *= 2;
        assert!(seconds <= 64, "too few: {report}");
    }
}

#[test]
fn operations_need_what_the_server_counts() {
    const BATCHES: &str = "portiere_store_batches_total";
    const HASHES: &str = "portiere_hashing_done_total";
    const REQUESTS: &str = "portiere_http_requests_total";
    let within = tempfile::tempdir().unwrap();
    let setup = Setup { people: 20, within: Some(within.path().to_owned()), ..Setup::of(Path::new(BINARY)) };
    let server = Private::start(&setup).unwrap();

    let signed_in = counted(&server, Workload::Flow);
    let (demand, hashes) = (Operation::SignIn.demand(), signed_in.many(HASHES));
    assert!(hashes >= signed_in.done, "{} {hashes}", signed_in.done);
    signed_in.took(signed_in.many(BATCHES), demand.batches, hashes);
    let each = signed_in.many(REQUESTS) / hashes;
    let cut = VISITORS as f64 * demand.requests / hashes;
    assert!((each - demand.requests).abs() <= cut.max(0.2), "{each}, in the table {}", demand.requests);

    // One who refreshes has signed in before: that is a hash, three batches and three requests.
    let refreshed = counted(&server, Workload::Refresh);
    let tokens = refreshed.after.of(REQUESTS, "/oauth2/token") - refreshed.before.of(REQUESTS, "/oauth2/token");
    let (hashes, signed_in) = (refreshed.many(HASHES), 3.0 * refreshed.many(HASHES));
    let refreshes = tokens - hashes;
    assert!(refreshes + VISITORS as f64 >= refreshed.done, "{refreshes} {}", refreshed.done);
    refreshed.took(refreshed.many(BATCHES) - signed_in, Operation::Refresh.demand().batches, refreshes);

    let introspected = counted(&server, Workload::Introspect);
    let batches = introspected.many(BATCHES) - 3.0 * introspected.many(HASHES);
    assert_eq!(Operation::Introspect.demand().batches, 0.0);
    introspected.took(batches, 0.0, introspected.done);
    server.stop();
}

/// What is there but the files that were asked for.
fn left(folder: &Path) -> Vec<String> {
    let mut names: Vec<_> =
        std::fs::read_dir(folder).unwrap().map(|one| one.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// Whether nothing is said but what is being measured.
fn only_stages(err: &str) -> bool {
    err.lines().all(|line| line.contains(" %  "))
}

#[test]
fn a_machine_is_measured_and_what_follows_is_told_in_three_ways() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (json, html, prediction) = (file("a.json"), file("a.html"), file("prediction.json"));
    let data = folder.path().join("data");
    let words =
        ["capacity", "--quick", "--verify", "--json", "--save", &json, "--html", &html, "--prediction", &prediction];
    let output = run(&data, &words, "");
    assert_eq!(output.code, 0, "{}", output.err);
    // Red without `stage` in lab/capacity/progress.rs: a job's log says nothing for three minutes.
    assert!(only_stages(&output.err) && output.err.contains(" 40 %  commits and reads\n"), "{}", output.err);
    let told: Value = serde_json::from_str(&output.out).unwrap();
    let names: Vec<_> = told["forecasts"].as_array().unwrap().iter().map(|one| one["operation"].clone()).collect();
    assert_eq!(names, ["sign_in", "refresh", "introspect", "userinfo", "day"]);
    for forecast in told["forecasts"].as_array().unwrap() {
        assert!(forecast["bound"].as_f64().unwrap() > 1.0, "{forecast:#}");
        assert_eq!(forecast["levels"].as_array().map(Vec::len), Some(4));
    }
    assert!(told["settings"]["threads"].as_u64().unwrap() >= 1 && told["users"]["monthly"].as_f64().unwrap() > 1.0);
    let verified = told["verification"]["compared"].as_array().unwrap();
    let measured: Vec<_> = verified.iter().map(|one| one["measured"].as_f64().unwrap()).collect();
    assert!((5..=7).contains(&measured.len()) && measured.iter().any(|figure| *figure > 0.0), "{verified:#?}");
    assert_eq!(left(folder.path()), ["a.html", "a.json", "prediction.json"], "nothing else is left");
    let predicted: Value = serde_json::from_str(&std::fs::read_to_string(&prediction).unwrap()).unwrap();
    assert_eq!(predicted[0]["predicted"]["rate"], verified[0]["predicted"], "it is what was written before");

    let page = std::fs::read_to_string(&html).unwrap();
    assert!(page.contains("prefers-color-scheme: dark") && page.matches("<svg").count() >= 5);
    for outside in ["<script", "http-equiv", "src=", "href=", "url(", "@import", "NaN", "+inf"] {
        assert!(!page.contains(outside), "{outside}");
    }

    let again = run(&data, &["capacity", "--from", &json], "");
    assert_eq!(again.code, 0, "{}", again.err);
    assert!(again.out.starts_with("This machine carries "), "{}", again.out);
    let ours = told["made"]["version"].as_str().unwrap();
    let line = format!("\nMeasured by Portiere {ours} on ");
    assert!(again.out.contains(&line) && page.contains("<p>Measured by Portiere ") && told["made"]["at"].is_u64());
    assert!(!again.out.contains("those of Portiere"), "{}", again.out);
    it_is_said_when_and_by_which_version(folder.path(), &json, ours);
    for part in ["What would help", "[hash.argon2]", "People a month", "batches a second", "One sample says nothing"] {
        assert!(again.out.contains(part), "{part}: {}", again.out);
    }
    // What is recommended can be put into a file as it stands.
    let from = again.out.find("[hash]").unwrap();
    let end = from + again.out[from..].find("readers = ").unwrap();
    let end = end + again.out[end..].find('\n').unwrap();
    let config = file("portiere.toml");
    std::fs::write(&config, &again.out[from..end]).unwrap();
    let checked = run(&data, &["config", "check", "--config", &config], "");
    assert_eq!(checked.code, 0, "{}{}", &again.out[from..end], checked.err);
    assert!(!again.out.contains("±0 %") && !page.contains("±0 %"), "one sample: {}", again.out);
    let widest = again.out.lines().map(|line| line.chars().count()).max().unwrap();
    assert!(widest <= 100, "{widest}: {}", again.out);
}

/// Red now and then without `unless_ending` in lab/capacity/cli.rs: the database is removed under the probe that writes into it.
#[test]
fn who_interrupts_is_told_nothing_of_what_breaks_off() {
    use rustix::process::{Pid, Signal, kill_process};
    let folder = tempfile::tempdir().unwrap();
    let mut command = program();
    command.args(["capacity", "--quick", "--data"]).arg(folder.path().join("data"));
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // Until the database that it makes is written into, over and over.
    let mut written = HashSet::new();
    until("commits are measured", || {
        let entries = std::fs::read_dir(folder.path()).unwrap();
        let logs = entries.map(|entry| entry.unwrap().path().join("capacity.db-wal"));
        written.extend(logs.filter_map(|log| log.metadata().and_then(|found| found.modified()).ok()));
        written.len() > 5
    });
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let output = child.wait_with_output().unwrap();
    let err = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(130) && only_stages(&err), "{err}");
    assert!(output.stdout.is_empty() && left(folder.path()).is_empty(), "{:?}", left(folder.path()));
}

/// Red where the first signal ends the process while it proves: the minute that was measured before went with it.
#[test]
fn who_interrupts_the_proof_is_told_what_was_measured() {
    use rustix::process::{Pid, Signal, kill_process};
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name);
    let (saved, prediction) = (file("a.json"), file("prediction.json"));
    let mut command = program();
    command.args(["capacity", "--quick", "--verify", "--data"]).arg(file("data"));
    command.arg("--save").arg(&saved).arg("--prediction").arg(&prediction);
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // It is written before anything is run.
    while !std::fs::read_to_string(&prediction).is_ok_and(|text| text.ends_with("]\n")) {
        assert!(child.try_wait().unwrap().is_none(), "it ended before it began to prove");
        std::thread::sleep(Duration::from_millis(20));
    }
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let output = child.wait_with_output().unwrap();
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(1), "{err}");
    assert!(err.ends_with("the proof was interrupted: what was measured before it is not lost\n"), "{err}");
    assert!(out.starts_with("This machine carries "), "{out}");
    let told: Value = serde_json::from_str(&std::fs::read_to_string(&saved).unwrap()).unwrap();
    assert!(told["verification"].is_null() && told["probes"].is_object());
    assert_eq!(left(folder.path()), ["a.json", "prediction.json"]);
}

#[test]
fn what_cannot_be_is_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (none, other, nowhere) = (file("none.json"), file("other.json"), file("nowhere/a.html"));
    std::fs::write(&other, "{}").unwrap();
    for (words, code, said) in [
        (&["capacity", "--from", &none][..], 2, "none.json cannot be read"),
        (&["capacity", "--from", &other], 2, "other.json is not a result of this command"),
        (&["capacity", "--html", &nowhere], 1, "nowhere/a.html cannot be written"),
        (&["capacity", "--prediction", &none], 2, "--verify"),
        (&["capacity", "--from", &other, "--verify"], 2, "cannot be used with"),
    ] {
        let output = run(folder.path(), words, "");
        assert_eq!(output.code, code, "{words:?}: {}", output.err);
        assert!(output.err.contains(said) && output.err.trim_end().lines().count() == 1, "{words:?}: {}", output.err);
    }
    assert_eq!(left(folder.path()), ["other.json"]);
}

/// Of a file of another program. Red without `made`: it says how fast a machine was, and neither when nor with what.
fn it_is_said_when_and_by_which_version(folder: &Path, json: &str, ours: &str) {
    let before = folder.join("before.json");
    let with = |made: Value| {
        let mut saved: Value = serde_json::from_str(&std::fs::read_to_string(json).unwrap()).unwrap();
        saved["made"] = made;
        std::fs::write(&before, saved.to_string()).unwrap();
        let told = run(&folder.join("data"), &["capacity", "--from", before.to_str().unwrap()], "");
        std::fs::remove_file(&before).unwrap();
        told.out.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let other = with(serde_json::json!({ "version": "0.0.1", "at": 784_111_777, "machine": "another machine" }));
    assert!(other.contains("Measured by Portiere 0.0.1 on another machine, Sun, 06 Nov 1994 08:49:37 GMT."), "{other}");
    let apart = format!("those of Portiere 0.0.1, and the prediction is that of {ours}, which may");
    assert!(other.contains(&apart), "{other}");
    assert!(with(Value::Null).contains("by which version this was measured is not known"));
}
