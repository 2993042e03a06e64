//! `portiere profile` on a server that works.

use crate::support::*;
use serde_json::Value;
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

/// People who sign in side by side.
const PEOPLE: usize = 4;

/// Does something while people sign in with their passwords, over and over.
fn under_load<T>(server: &'static Server, work: impl FnOnce() -> T) -> T {
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..PEOPLE {
            let (person, done) = (Person::add(server), &done);
            scope.spawn(move || {
                while !done.load(Relaxed) {
                    Browser::of(server, &person);
                }
            });
        }
        let answer = work();
        done.store(true, Relaxed);
        answer
    })
}

fn nodes(profile: &Value) -> &Vec<Value> {
    profile["nodes"].as_array().expect("nodes")
}

/// The names on the way to a node, the innermost first.
fn way<'a>(profile: &'a Value, node: &'a Value) -> impl Iterator<Item = &'a str> {
    let above = |node: &&'a Value| node["parent"].as_u64().map(|at| &nodes(profile)[usize::try_from(at).unwrap()]);
    std::iter::successors(Some(node), above).map(|node| node["name"].as_str().unwrap())
}

/// Red without the name that the server gives to the runtime's threads: those that are called as the program is are one with the
/// main thread where stacks break off.
#[test]
fn threads_of_the_network_are_called_so() {
    let server = Server::leaked(&[]);
    let cores = thread::available_parallelism().unwrap().get();
    for pid in server.pids() {
        let main = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap();
        // A thread has the name of who began it until it runs.
        until("all threads have their names", || {
            let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap().map(|task| task.unwrap().path());
            // One that ended meanwhile tells nothing.
            let names: Vec<_> = tasks.filter_map(|task| std::fs::read_to_string(task.join("comm")).ok()).collect();
            let called = |name: &str| names.iter().filter(|other| *other == name).count();
            called("network\n") >= cores && called(&main) == 1
        });
    }
}

/// A profile by somebody who can be sent away.
fn long_profile(server: &Server, output: &Path) -> Child {
    let data = server.data();
    let arguments = ["profile", "--seconds", "120", "--json", "--data"];
    let mut command = program();
    command
        .args(arguments)
        .arg(data)
        .arg("--output")
        .arg(output)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

#[test]
fn a_profile_names_what_hashes_and_that_requests_wait_for_it() {
    let server = Server::leaked(&[]);
    let file = server.folder.join("profile.svg");
    let arguments = ["profile", "--seconds", "4", "--json", "--output", file.to_str().unwrap()];
    let output = under_load(server, || server.must(&arguments, ""));
    let profile: Value = serde_json::from_str(&output).unwrap();

    let kernel = nodes(&profile).iter().find(|node| {
        let inside = node["name"].as_str().unwrap().starts_with("hasher::argon2");
        inside && way(&profile, node).last() == Some("hashing threads")
    });
    let kernel = kernel.unwrap_or_else(|| panic!("nothing hashes: {output}"));
    // Which of its callers there are depends on what the compiler put into which.
    assert!(way(&profile, kernel).count() > 4, "the kernel has callers: {output}");
    let (samples, hashing) = (profile["samples"].as_u64().unwrap(), kernel["total"].as_u64().unwrap());
    assert!(hashing * 4 > samples, "it is most of what a sign-in costs: {hashing} of {samples}");
    let all = |thread: &str| nodes(&profile).iter().any(|node| node["parent"].is_null() && node["name"] == thread);
    assert!(all("network threads"), "{output}");

    let routes = profile["routes"].as_array().unwrap();
    let login = routes.iter().find(|route| route["route"] == "/login").expect("people signed in");
    let waits = login["phases"].as_array().unwrap();
    let hash = waits.iter().find(|phase| phase["name"] == "hash").expect("they waited for a hash");
    assert!(hash["share"].as_f64().unwrap() > 0.05, "{login}");
    assert!(profile["queues"].as_array().unwrap().iter().any(|queue| queue["name"] == "password hashing"), "{output}");

    let picture = std::fs::read_to_string(file).unwrap();
    assert!(picture.starts_with("<svg ") && picture.contains("hasher::argon2") && picture.contains(">hash "));
    assert!(server.get("/healthz").status == 200, "and the server goes on");
}

#[test]
fn one_profile_is_taken_at_a_time_and_ends_with_whoever_asked() {
    let server = Server::leaked(&[]);
    let file = server.folder.join("early.svg");
    let mut first = long_profile(server, &file);
    until("it begins", || server.log().contains("taking a profile"));
    let second = server.command(&["profile", "--seconds", "1", "--json"], "");
    assert_eq!(second.code, 75, "{}", second.out);
    assert_eq!(second.err.lines().count(), 1, "{}", second.err);
    assert!(second.err.contains("another profile is being taken"), "{}", second.err);

    first.kill().unwrap();
    first.wait().unwrap();
    assert!(!file.exists(), "nothing is left of it");
    until("the next one may begin", || server.command(&["profile", "--seconds", "1", "--json"], "").code == 0);
}

#[test]
fn without_a_server_there_is_nothing_to_profile_and_no_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("profile.svg");
    let output = run(folder.path(), &["profile", "--output", file.to_str().unwrap()], "");
    assert_eq!((output.code, output.err.lines().count()), (75, 1), "{}", output.err);
    assert!(output.err.contains("no server runs"), "{}", output.err);
    assert!(!file.exists(), "nothing is left of it");
}

#[test]
fn a_file_that_cannot_be_written_is_known_before_anybody_waits() {
    let (server, began) = (Server::leaked(&[]), Instant::now());
    let output = server.command(&["profile", "--seconds", "120", "--output", "/proc/nowhere/profile.svg"], "");
    assert_eq!(output.code, 1);
    assert!(output.err.contains("/proc/nowhere/profile.svg"), "{}", output.err);
    assert!(began.elapsed() < Duration::from_secs(100), "nobody waited");
    for seconds in ["0", "121"] {
        assert_eq!(server.command(&["profile", "--seconds", seconds], "").code, 2, "{seconds}");
    }
}
