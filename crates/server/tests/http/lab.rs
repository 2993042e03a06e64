//! Private servers, made with the real program.

use crate::support::*;
use lab::private::{Cores, Private, Setup};
use load::plan::{Plan, Workload};
use load::run::run as measure;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

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

fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < Duration::from_secs(60), "{what}: not in a minute");
        std::thread::sleep(Duration::from_millis(20));
    }
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
    let report = measure(&plan, None).unwrap();
    assert_eq!(report.failed, 0, "{report}");
    assert!(report.iterations > 0 && report.server.is_some(), "{report}");
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
    assert!(refusal.to_string().starts_with("no folder can be made in /nowhere/at/all: "), "{refusal}");
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
    let mut guard = Command::new(BINARY).args(["lab", "guard"]).arg(&folder).stdin(Stdio::piped()).spawn().unwrap();
    let mut input = guard.stdin.take().unwrap();
    std::io::Write::write_all(&mut input, format!("+{}\n", left.id()).as_bytes()).unwrap();
    assert!(left.try_wait().unwrap().is_none() && folder.exists());
    drop(input);
    wait_until("it ends", || left.try_wait().unwrap().is_some());
    assert!(guard.wait().unwrap().success() && !folder.exists());
}
