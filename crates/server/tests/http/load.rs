//! `portiere load`, against this server and against what is none.

use crate::monitoring::figures::{SERVED, samples};
use crate::support::*;
use serde_json::Value;
use std::path::Path;

/// A server with an application that may do everything, and the words that name both.
struct Scene {
    folder: tempfile::TempDir,
    server: &'static Server,
    app: App,
}

impl Scene {
    fn new() -> Scene {
        let server = sign_up_server();
        let folder = tempfile::tempdir().unwrap();
        let app = App::add(server, Grants::All, &["--trusted", "--first-party"]);
        let people: String = (0..3)
            .map(|_| Person::add(server))
            .map(|person| format!("{}:{}\n", person.name, person.password))
            .collect();
        std::fs::write(folder.path().join("people"), people).unwrap();
        std::fs::write(folder.path().join("secret"), SECRET).unwrap();
        Scene { folder, server, app }
    }

    fn file(&self, name: &str) -> String {
        self.folder.path().join(name).to_str().unwrap().to_owned()
    }

    fn load(&self, line: &str) -> Output {
        let (people, secret) = (self.file("people"), self.file("secret"));
        self.load_as(line, &people, &secret)
    }

    fn load_as(&self, line: &str, people: &str, secret: &str) -> Output {
        let given = [
            ("--target", self.server.issuer.as_str()),
            ("--client", &self.app.id),
            ("--redirect-uri", &self.app.redirect),
            ("--users", people),
            ("--client-secret-file", secret),
            ("--warmup", "100ms"),
        ];
        let mut words: Vec<&str> = std::iter::once("load").chain(line.split(' ')).collect();
        given.iter().for_each(|(name, value)| words.extend([name, value]));
        if !line.contains("--duration") {
            words.extend(["--duration", "1s"]);
        }
        run(self.folder.path(), &words, "")
    }

    /// What a measurement of so many seconds comes to. Where the machine is slow, or stands still for a moment, a longer one does.
    fn report(&self, line: &str, seconds: u32, will_do: impl Fn(&Value) -> bool) -> Value {
        let measured = |longer| self.load(&format!("{line} --json --duration {}s", seconds * longer));
        let read = |output: &Output| serde_json::from_str(&output.out).unwrap();
        let output = first_that([1, 4, 16].into_iter().map(measured), |one| match one.code {
            0 => will_do(&read(one)),
            _ => !one.err.contains(": no iteration of "),
        });
        assert_eq!((output.code, output.err.as_str()), (0, ""), "{line}");
        read(&output)
    }
}

/// The first of several tries that will do; where none does it is the last, and the test says what is wrong with it.
fn first_that<T>(mut tries: impl Iterator<Item = T>, will_do: impl Fn(&T) -> bool) -> T {
    let mut tried = tries.next().unwrap();
    while !will_do(&tried) {
        let Some(next) = tries.next() else { break };
        tried = next;
    }
    tried
}

fn run_alone(words: &[&str]) -> Output {
    run(Path::new("/nowhere"), words, "")
}

/// Iterations of each step that came out well, in all the reports.
fn done(report: &Value, step: &str) -> u64 {
    let run = &report["runs"][0];
    let beside = run["beside"].as_array().unwrap();
    let steps = std::iter::once(run).chain(beside).flat_map(|one| one["steps"].as_array().unwrap());
    steps.filter(|one| one["step"] == step).map(|one| one["count"].as_u64().unwrap()).sum()
}

#[test]
fn every_workload_goes_through() {
    let scene = Scene::new();
    for (line, steps) in [
        ("w1 --vus 2", &["authorize", "login", "token", "introspect", "refresh"][..]),
        ("w2 --vus 8 --pause 10ms", &["userinfo", "device", "poll", "account"]),
        ("w3 --rate 400", &["account", "sign_in", "sign_up"]),
        ("w5 --rate 200 --vus 4", &["refresh", "introspect", "userinfo", "jwks", "discovery"]),
        ("userinfo --rate 50 --ramp 1s", &["userinfo"]),
        ("jwks", &["jwks"]),
        ("client_credentials --vus 2", &["client_credentials"]),
        ("device --vus 2", &["device", "poll"]),
    ] {
        let is_whole = |report: &Value| steps.iter().all(|step| done(report, step) > 0);
        let report = scene.report(line, 1, |report| {
            assert_eq!(report["runs"][0]["failed"], 0, "{line}: {report:#}");
            // Three accounts are few where passwords are measured, and of no account where they are not.
            let notes = report["runs"][0]["notes"].as_array().unwrap().iter();
            // Where the machine stands still at the end, an iteration outlasts the others.
            let notes: Vec<_> = notes.filter(|note| !note.as_str().unwrap().contains("still under way")).collect();
            let few = usize::from(line.starts_with("w1") || line.starts_with("w5"));
            assert_eq!(
                notes.iter().filter(|note| note.as_str().unwrap().starts_with("3 accounts to sign in")).count(),
                few,
                "{line}"
            );
            assert_eq!(notes.len(), few, "{line}: {notes:?}");
            is_whole(report)
        });
        assert!(is_whole(&report), "{line}: {report:#}");
    }
}

// Red where the thread that waits for the end of the window does not wait: it took a whole core of what was measured.
#[test]
fn who_asks_little_takes_little_of_the_machine() {
    let report = Scene::new().report("jwks --vus 1 --rate 20", 3, |_| true);
    let cores = report["runs"][0]["generator_cores"].as_f64();
    assert!(cores.is_some_and(|cores| cores < 0.5), "{cores:?}");
}

#[test]
fn a_sign_up_is_an_account() {
    let scene = Scene::new();
    let before = scene.server.must(&["user", "list", "--json"], "");
    // Longer than the rest: one takes a hash, and all tests hash.
    scene.report("sign_up --vus 1", 4, |_| true);
    let after = scene.server.must(&["user", "list", "--json"], "");
    assert!(after.matches("\"load-").count() > before.matches("\"load-").count(), "{after}");
}

#[test]
fn a_search_and_a_comparison_come_to_a_page_and_a_table() {
    let scene = Scene::new();
    let (save, html) = (scene.file("a.json"), scene.file("a.html"));
    let line = format!("search w1 --vus 40 --p99 2s --errors 5 --precision 50 --rate 4 --save {save} --html {html}");
    // Where the machine stands still for two seconds, a trial fails.
    let searches = std::iter::repeat_with(|| scene.load(&line)).take(5);
    let output = first_that(searches, |output| output.code == 0);
    assert_eq!(output.code, 0, "{}", output.err);
    assert!(output.out.starts_with("Holds "), "{}", output.out);
    assert!(std::fs::read_to_string(&html).unwrap().contains("Throughput and latency"));
    for (line, expected) in
        [(["load", "compare", &save, &save], "limit /s"), (["load", "compare", &save, &html], "is not a result: ")]
    {
        let output = run_alone(&line);
        assert!(format!("{}{}", output.out, output.err).contains(expected), "{} {}", output.out, output.err);
    }
}

#[test]
fn a_client_that_is_not_of_the_house_reads_userinfo_and_is_told_so() {
    let mut scene = Scene::new();
    scene.app = App::trusted(scene.server);
    // One iteration in five is that of a device.
    let report = scene.report("w2 --vus 4 --pause 10ms", 1, |report| done(report, "userinfo") > 0);
    assert_eq!((done(&report, "account"), done(&report, "userinfo") > 0), (0, true), "{report:#}");
    let notes = report["runs"][0]["notes"].to_string();
    assert!(notes.contains("userinfo in place of the account") && notes.contains("401 client-refused"), "{notes}");
    let refused = scene.load("w3 --rate 100");
    assert!(refused.err.contains("w3 goes without by --no-sign-ups"), "{}", refused.err);
    let reads = |report: &Value| done(report, "userinfo") > 0;
    assert!(reads(&scene.report("w3 --rate 100 --no-sign-ups", 3, reads)));
}

#[test]
fn what_cannot_be_measured_is_one_line() {
    let scene = Scene::new();
    let (people, secret, wrong) = (scene.file("people"), scene.file("secret"), scene.file("wrong"));
    std::fs::write(&wrong, "nobody:at all\n").unwrap();
    let stranger = Person::add(scene.server);
    stranger.change(scene.server, "disable");
    let out = scene.file("out");
    std::fs::write(&out, format!("{}:{}\n", stranger.name, stranger.password)).unwrap();
    let credentials = "the sign-in page came back";
    for (output, code, expected) in [
        (scene.load_as("w1", &people, &wrong), 1, "portiere: the first iteration failed: token: 401 invalid_client"),
        (scene.load_as("w1", &wrong, &secret), 1, credentials),
        (scene.load_as("w1", &out, &secret), 1, credentials),
        (scene.load_as("w3", &wrong, &secret), 1, "wrong login or password of nobody"),
        (scene.load("w1 --save /dev/full"), 1, "/dev/full cannot be written: No space left on device"),
        (scene.load("w1 --html /nowhere/at/all"), 1, "/nowhere/at/all cannot be written: No such file"),
        (scene.load("w1 --ramp 1h"), 2, "the ramp must be"),
        (run_alone(&["load", "jwks", "--target", "http://192.0.2.1"]), 2, "--i-own-this-host"),
        (run_alone(&["load", "jwks", "--target", "http://127.0.0.1:1"]), 1, "no connection (connection refused)"),
        (run_alone(&["load"]), 2, "required"),
    ] {
        let Output { code: ended, err, out } = output;
        assert_eq!((ended, err.trim_end().lines().count()), (code, 1), "{expected}: {err} {out}");
        assert!(err.contains(expected), "{expected}: {err}");
    }
    let elsewhere = format!("{}/elsewhere", scene.server.issuer);
    let refused = run_alone(&["load", "jwks", "--target", &elsewhere]);
    assert!(refused.err.contains("is not an OpenID provider: ") && refused.code == 1, "{}", refused.err);
}

/// Red without `by_signals` in the command line (the process is gone, and so is what it measured).
#[test]
fn what_was_measured_when_somebody_ends_it_is_written() {
    use rustix::process::{Pid, Signal, kill_process};
    use std::process::Stdio;
    let server = Server::leaked(&[SERVED]);
    let answers = || {
        let samples = samples(server);
        samples.get("portiere_http_requests_total{route=\"/oauth2/jwks\",method=\"GET\",status=\"200\"}").copied()
    };
    let folder = tempfile::tempdir().unwrap();
    // Who runs the tests under nohup has closed terminals ignored, by what they start too.
    let hears_hangup = signals("self", "SigIgn:") & 1 == 0;
    for signal in [Signal::INT, Signal::TERM].into_iter().chain(hears_hangup.then_some(Signal::HUP)) {
        let (save, html) = (folder.path().join("a.json"), folder.path().join("a.html"));
        let before = answers().unwrap_or(0.0);
        let load = program()
            .args(["load", "jwks", "--vus", "2", "--duration", "1h", "--warmup", "0s", "--target", &server.issuer])
            .args([Path::new("--save"), &save, Path::new("--html"), &html])
            .args(["--data".as_ref(), folder.path()])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // Before it measures, it tries everything out.
        until("it measures", || answers().is_some_and(|now| now > before + 500.0));
        kill_process(Pid::from_child(&load), signal).unwrap();
        let said = load.wait_with_output().unwrap();
        let (out, err) = (String::from_utf8_lossy(&said.stdout), String::from_utf8_lossy(&said.stderr));
        assert_eq!((said.status.code(), err.as_ref()), (Some(1), "portiere: interrupted\n"), "{out}");
        assert!(out.contains("Ended before its time: interrupted"), "{out}");
        let saved: Value = serde_json::from_slice(&std::fs::read(&save).unwrap()).unwrap();
        assert!(saved["runs"][0]["iterations"].as_u64() > Some(0), "{saved:#}");
        assert!(std::fs::read_to_string(&html).unwrap().contains("interrupted"));
        [save, html].iter().for_each(|file| std::fs::remove_file(file).unwrap());
    }
    server.kill();
}

/// Red without `Heard::asked`: the first signal is then only a wish that nobody reads.
#[test]
fn whoever_still_waits_for_a_secret_ends_at_the_first_signal() {
    use rustix::process::{Pid, Signal, kill_process};
    use std::process::Stdio;
    let folder = tempfile::tempdir().unwrap();
    let mut load = program()
        .args(["load", "client_credentials", "--client", "x", "--client-secret-stdin"])
        .args(["--target", "http://127.0.0.1:9"])
        .args(["--data".as_ref(), folder.path()])
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    // It listens for SIGINT before it does for SIGTERM. One that comes between a handler and who listens to it is heard by nobody.
    until("it listens", || signals(&load.id().to_string(), "SigCgt:") & 1 << 14 != 0);
    kill_process(Pid::from_child(&load), Signal::INT).unwrap();
    until("it ends", || load.try_wait().unwrap().is_some());
    assert_eq!(load.wait().unwrap().code(), Some(130));
}

/// A set of signals of a process, as a mask: the lowest bit is SIGHUP.
fn signals(process: &str, set: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    u64::from_str_radix(status.lines().find_map(|line| line.strip_prefix(set)).unwrap().trim(), 16).unwrap()
}
