//! Hash workers: real ones, some of which are killed, and one that lies.

mod liar;

use crate::monitoring::figures::{SERVED, samples};
use crate::signals::leaves_no_core;
use crate::support::*;
use hasher::remote::frame::{Answer, Frame, Ready};
use hasher::remote::versions::Versions;
use liar::Liar;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use zeroize::Zeroizing;

/// A pepper and a binding key in a folder, as the configuration names them.
fn keys(folder: &Path) -> (String, String) {
    let key = |what: &str, name: &str| {
        let file = folder.join(name);
        let made = run(folder, &["hash", what, name, file.to_str().unwrap(), "--json"], "");
        assert_eq!(made.code, 0, "{}", made.err);
        let told: Value = serde_json::from_str(&made.out).unwrap();
        told.as_object().unwrap().values().next().unwrap().as_str().unwrap().to_owned()
    };
    (key("pepper", "p1"), key("binding", "b1"))
}

/// A server with both that listens for workers, with their folder.
fn server(threads: &str, port: u16) -> (&'static Server, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let (pepper, binding) = keys(folder.path());
    let server = Server::leaked(&[
        ("PORTIERE_HASH_PEPPERS", &pepper),
        ("PORTIERE_HASH_BINDING_KEYS", &binding),
        ("PORTIERE_WORKERS_LISTEN", &format!("127.0.0.1:{port}")),
        ("PORTIERE_HASH_THREADS", threads),
        ("PORTIERE_THROTTLE_FREE_FAILURES", "1000"),
        SERVED,
    ]);
    (server, folder)
}

/// Where each node listens for workers.
pub fn doors(server: &Server) -> Vec<String> {
    let lines = server.log();
    let of = lines.lines().filter_map(|line| line.split_once("listening for hash workers").map(|_| line));
    let doors = of.filter_map(|line| {
        let at = line.split_once("addresses")?.1;
        let from = at.find("127.0.0.1:")?;
        let end = at[from..].find(|c: char| !(c.is_ascii_digit() || c == '.' || c == ':'))?;
        Some(at[from..from + end].to_owned())
    });
    doors.collect()
}

fn json(server: &Server, arguments: &[&str]) -> Value {
    serde_json::from_str(&server.must(&[arguments, &["--json"]].concat(), "")).unwrap()
}

fn token(server: &Server) -> String {
    json(server, &["verifier", "token"])["token"].as_str().unwrap().to_owned()
}

/// Enrolls a worker at every node.
fn enroll(server: &Server, folder: &Path, name: &str, token: &str) -> Output {
    let (doors, folder) = (doors(server), folder.join(name));
    let mut line = vec!["verifier", "enroll", "--name", name, "--token-stdin", "--folder", folder.to_str().unwrap()];
    doors.iter().for_each(|door| line.extend(["--server", door]));
    run(&folder, &line, token)
}

/// A worker's process, which ends with the test.
pub struct Worker {
    child: Child,
    log: PathBuf,
}

impl Worker {
    pub fn start(folder: &Path, name: &str) -> Worker {
        let log = folder.join(format!("{name}.log"));
        let file = std::fs::OpenOptions::new().create(true).append(true).open(&log).unwrap();
        let child = program()
            .args(["verifier", "serve", "--threads", "1", "--folder"])
            .arg(folder.join(name))
            .current_dir(folder)
            .env("PORTIERE_LOG_FORMAT", "json")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(file)
            .spawn()
            .unwrap();
        Worker { child, log }
    }

    fn enrolled(server: &Server, folder: &Path, name: &str) -> Worker {
        let made = enroll(server, folder, name, &token(server));
        assert_eq!(made.code, 0, "{}", made.err);
        Worker::start(folder, name)
    }

    fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// As an operator would.
    fn stop(&mut self) -> Option<i32> {
        let pid = rustix::process::Pid::from_raw(i32::try_from(self.child.id()).unwrap()).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
        self.child.wait().unwrap().code()
    }

    fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

pub fn connected(server: &Server) -> usize {
    let status = json(server, &["verifier", "status"]);
    let workers = status["workers"].as_array().unwrap();
    workers.iter().map(|worker| worker["connections"].as_array().unwrap().len()).sum()
}

fn by_workers(server: &Server) -> u64 {
    json(server, &["verifier", "status"])["done_by_workers"].as_u64().unwrap()
}

/// What came of a sign-in.
#[derive(Debug, PartialEq, Eq)]
enum Came {
    In,
    Wrong,
    Later,
}

fn sign_in(server: &'static Server, person: &Person, password: &str) -> Came {
    let mut browser = Browser::new(server);
    let page = browser.get("/login");
    let answer = browser.log_in_on(&page, &person.name, password);
    match answer.status {
        503 => {
            assert!(answer.header("retry-after").is_some(), "{answer:?}");
            Came::Later
        }
        _ if browser.is_signed_in() => Came::In,
        _ => Came::Wrong,
    }
}

/// Signs people in at once again and again, until so many who came in are enough; how many came in, and how many passwords were
/// called wrong.
fn rush(server: &'static Server, people: &[Person], mut is_enough: impl FnMut(usize) -> bool) -> (usize, usize) {
    let (stop, came, wrong) = (AtomicBool::new(false), AtomicUsize::new(0), AtomicUsize::new(0));
    let mut enough = false;
    std::thread::scope(|scope| {
        for person in people {
            let (stop, came, wrong) = (&stop, &came, &wrong);
            scope.spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    let count = match sign_in(server, person, &person.password) {
                        Came::In => came,
                        Came::Wrong => wrong,
                        Came::Later => continue,
                    };
                    count.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        enough = comes(|| is_enough(came.load(Ordering::Relaxed)));
        stop.store(true, Ordering::Relaxed);
    });
    assert!(enough, "never enough");
    (came.into_inner(), wrong.into_inner())
}

#[test]
fn people_sign_in_through_workers_and_nobody_notices_when_all_are_killed() {
    let (server, folder) = server("1", 0);
    let mut workers: Vec<_> = ["one", "two"].map(|name| Worker::enrolled(server, folder.path(), name)).into();
    let people: Vec<_> = (0..12).map(|_| Person::add(server)).collect();
    until("the workers are here", || connected(server) >= 2);
    let (came, wrong) = rush(server, &people, |_| by_workers(server) > 30);
    assert!(came > 0);
    assert_eq!(wrong, 0);
    assert_eq!(sign_in(server, &people[0], "another password"), Came::Wrong);

    // Killed while everybody signs in.
    let mut before = None;
    let (_, wrong) = rush(server, &people, |came| {
        let before = *before.get_or_insert_with(|| {
            workers.iter_mut().for_each(Worker::kill);
            came
        });
        came >= before + 2 * people.len()
    });
    assert_eq!(wrong, 0, "a worker's failure was called a wrong password");
    until("they are known to be gone", || connected(server) == 0);
    // Red without `explained` in verifier/callers.rs.
    until("their end is told in words", || server.log().contains("the connection was lost"));
    assert!(!server.log().contains("docs.rs"), "{}", server.log());
    assert_eq!(sign_in(server, &people[0], &people[0].password), Came::In);
    server.kill();
}

#[test]
fn a_token_is_good_once_and_who_is_revoked_goes_at_once() {
    let (server, folder) = server("1", 0);
    let good = token(server);
    assert_eq!(enroll(server, folder.path(), "one", &good).code, 0);
    // Red without `spent` in rules/worker.rs: the answer was lost before it was kept.
    std::fs::remove_file(folder.path().join("one").join("worker.json")).unwrap();
    let once_more = enroll(server, folder.path(), "one", &good);
    assert_eq!(once_more.code, 0, "{}", once_more.err);
    let again = enroll(server, folder.path(), "two", &good);
    assert!(again.code == 1 && again.err.contains("used or expired"), "{}", again.err);
    // Red where refused tokens are no strangers of their own: somebody waits for that worker.
    until("it is counted", || samples(server)["portiere_workers_refused_total{reason=\"token\"}"] >= 1.0);
    until("it is told", || server.log().contains("a hash worker was not enrolled"));
    let mixed = token(server);
    let (secret, _) = mixed.rsplit_once('.').unwrap();
    let impostor = enroll(server, folder.path(), "three", &format!("{secret}.{}", "A".repeat(43)));
    assert!(impostor.code == 1 && impostor.err.contains("its key is another one"), "{}", impostor.err);
    assert!(enroll(server, folder.path(), "four", "nonsense").err.contains("not a token"));

    let mode = |file: &str| {
        use std::os::unix::fs::PermissionsExt;
        std::fs::metadata(folder.path().join("one").join(file)).unwrap().permissions().mode() & 0o777
    };
    assert_eq!([mode(""), mode("worker.key"), mode("worker.json")], [0o700, 0o600, 0o600]);

    let mut worker = Worker::start(folder.path(), "one");
    until("it is here", || connected(server) >= 1);
    // Red without `take` in verifier/worker.rs, serve.
    let one = folder.path().join("one");
    let second = run(folder.path(), &["verifier", "serve", "--folder", one.to_str().unwrap()], "");
    assert!(second.code == 1 && second.err.contains("is in use by another process"), "{}", second.err);
    server.must(&["verifier", "rename", "one", "first"], "");
    assert_eq!(json(server, &["verifier", "list"])[0]["name"], "first");
    // Red without `call_workers`, in rename_worker on this node and in verifier/listener.rs, follow, on others.
    let called = |name: &str| samples(server).contains_key(&format!("portiere_worker_trusted{{worker=\"{name}\"}}"));
    until("it is called so everywhere", || called("first") && !called("one"));
    server.must(&["verifier", "revoke", "first"], "");
    until("it is sent away and not let in again", || worker.log().contains("does not know this worker"));
    assert_eq!(connected(server), 0);
    assert_eq!(json(server, &["verifier", "list"]).as_array().unwrap().len(), 0);
    let events = json(server, &["events", "list", "--limit", "50"]);
    let kinds: Vec<_> = events.as_array().unwrap().iter().map(|event| event["event"].as_str().unwrap()).collect();
    for kind in ["worker.offered", "worker.enrolled", "worker.renamed", "worker.revoked"] {
        assert!(kinds.contains(&kind), "{kinds:?}");
    }
    // Red where the line has the port, too.
    let of_here = json(server, &["audit", "list", "--address", "127.0.0.1", "--kind", "worker.enrolled"]);
    assert_eq!(of_here.as_array().unwrap().len(), 1, "{of_here}");
    assert_eq!(worker.stop(), Some(0));
    server.kill();
}

#[test]
fn workers_come_back_when_the_server_does() {
    if !on_file() {
        return;
    }
    let port = free_port();
    let (server, folder) = server("1", port);
    let mut worker = Worker::enrolled(server, folder.path(), "one");
    until("it is here", || connected(server) == 1);
    // Red without `leave_no_core` in cli/mod.rs: passwords pass through a worker.
    assert!(leaves_no_core(worker.child.id()));
    server.kill();
    server.restart();
    until("it is here again", || connected(server) == 1);
    assert_eq!(worker.stop(), Some(0));
    until("it has gone", || connected(server) == 0);
    // Red without Ended::Left in verifier/listener.rs: a stop would read like a broken connection.
    until("its leave is told as one", || server.log().contains("a hash worker disconnected"));
    assert!(!server.log().contains("lost the connection to a hash worker"), "{}", server.log());
    server.kill();
}

#[test]
fn a_worker_that_lies_is_found_out_lets_nobody_in_and_keeps_nobody_out() {
    let (server, folder) = server("1", 0);
    let made = enroll(server, folder.path(), "liar", &token(server));
    assert_eq!(made.code, 0, "{}", made.err);
    let people: Vec<_> = (0..12).map(|_| Person::add(server)).collect();
    let door = doors(server).remove(0);
    let liar = Liar::start(&folder.path().join("liar"), &door);
    let (came, wrong) = rush(server, &people, |_| json(server, &["verifier", "list"])[0]["trust"] == "quarantined");
    assert!(came > 0);
    assert_eq!(wrong, 0, "the right password was refused");
    assert_eq!(sign_in(server, &people[0], "another password"), Came::Wrong);

    let heard = liar.end();
    assert!(heard.len() > 64);
    for secret in people.iter().flat_map(|person| [&person.password, &person.name]) {
        assert!(!heard.windows(secret.len()).any(|at| at == secret.as_bytes()), "{secret} went over the wire");
    }
    let events = json(server, &["events", "list", "--limit", "1000"]);
    assert!(events.as_array().unwrap().iter().any(|event| event["event"] == "worker.quarantined"));
    assert!(Liar::knock(&folder.path().join("liar"), &door).contains("quarantined"));
    // Red where each lie is told, and without `Callers` in verifier/listener.rs.
    (0..40).for_each(|_| drop(Liar::knock(&folder.path().join("liar"), &door)));
    let told = |what: &str| server.log().matches(what).count();
    until("it is told", || told("a hash worker gave a wrong answer") == 1 && told("a hash worker was refused") > 7);
    assert!(told("a hash worker was refused") < 20);
    // What the alert is made of. Which node wrote it down does not matter.
    let told = samples(server);
    assert_eq!(told["portiere_audit_events_total{event=\"worker.quarantined\"}"], 1.0);
    until("the nodes count it", || samples(server)["portiere_workers_quarantined"] == nodes() as f64);
    server.must(&["verifier", "trust", "liar"], "");
    until("it is trusted again", || samples(server)["portiere_workers_quarantined"] == 0.0);
    assert_eq!(Liar::knock(&folder.path().join("liar"), &door), "welcome");
    server.kill();
}

#[test]
fn a_worker_keeps_no_other_out_and_is_sent_away_when_it_says_what_nobody_asked() {
    let (server, folder) = server("1", 0);
    for name in ["greedy", "other"] {
        assert_eq!(enroll(server, folder.path(), name, &token(server)).code, 0);
    }
    let (door, greedy) = (doors(server).remove(0), folder.path().join("greedy"));
    let enough = |held: &[_]| held.iter().filter(|(said, _): &&(String, _)| said == "welcome").count();
    let held: Vec<_> = (0..12).map(|_| Liar::stay(&greedy, &door)).collect();
    // Red without `cross`, or where it did not look at the key: verifier/listener.rs, talk.
    assert_eq!(enough(&held), 8);
    assert!(held[11].0.contains("8 times already"), "{}", held[11].0);
    assert_eq!(Liar::knock(&folder.path().join("other"), &door), "welcome");
    drop(held);
    // Red without `can_work`: it would be asked nothing, and nobody would know.
    let forgetful = Ready { threads: 1, memory: 0, holds: 1, rate: 1 << 63 };
    assert!(Liar::ready(&folder.path().join("other"), &door, forgetful).contains("see --memory"));
    until("its places are free again", || Liar::knock(&greedy, &door) == "welcome");

    // Red without `notify_one` in verifier/places.rs.
    let strangers: Vec<_> = (0..200).map(|_| std::net::TcpStream::connect(&door).unwrap()).collect();
    until("a worker comes through those who say nothing", || {
        std::panic::catch_unwind(|| Liar::knock(&greedy, &door)).is_ok_and(|said| said == "welcome")
    });
    drop(strangers);

    // Red without `due` in verifier/listener.rs, work: each looks at the books of the queue.
    let unknown = |many| (0..many).map(|id| Answer { id: 1 << 40 | id, tag: None }).collect();
    for (frame, times) in [
        (Frame::Answers(unknown(512)), 1),
        (Frame::Answers(unknown(1)), 65),
        (Frame::Holds(0), 65),
        (Frame::Pong, 65),
        (Frame::Answers(Vec::new()), 65),
    ] {
        assert!(Liar::babble(&greedy, &door, &frame, times), "{frame:?} {times} times");
    }
    assert!(!Liar::babble(&greedy, &door, &Frame::Holds(0), 64), "its credits change now and then");
    server.kill();
}

#[test]
fn a_worker_of_another_version_works_in_a_common_one_or_is_told_who_has_to_be_upgraded() {
    // Red without `understood` in verifier/listener.rs, talk, at either place; without `count` in guest.
    let (server, folder) = server("1", 0);
    assert_eq!(enroll(server, folder.path(), "one", &token(server)).code, 0);
    let (door, one) = (doors(server).remove(0), folder.path().join("one"));
    let begin = |bytes: &[u8]| Liar::begin(&one, &door, bytes);
    let hello = |lowest: u8, highest: u8| [0, 0, 0, 2, 1, lowest, highest];
    let (lowest, highest) = (Versions::OURS.lowest(), Versions::OURS.highest());
    for (theirs, what) in
        [(hello(lowest, highest), "as ours"), (hello(highest, 255), "newer ones"), (hello(1, 255), "any")]
    {
        assert_eq!(begin(&theirs), Some(Ok(highest)), "{what}");
    }
    let refused = |server| samples(server)["portiere_workers_refused_total{reason=\"version\"}"];
    assert_eq!(refused(server), 0.0);
    let why = begin(&hello(highest + 1, 255)).unwrap().unwrap_err();
    assert!(why.contains("the server speaks version") && why.ends_with("upgrade the server"), "{why}");
    until("it is counted", || refused(server) == 1.0);
    until("it is told", || server.log().lines().any(|line| line.contains("was refused") && line.contains(&why)));

    // Who wants to become one is told the same, and the token is as good as before.
    let good = token(server);
    let secret = rules::secret::from_base64url(good.split('.').nth(1).unwrap()).unwrap();
    let speaks = Versions::between(highest + 1, 255).unwrap();
    let asking = Frame::Enroll { speaks, token: Zeroizing::new(secret.try_into().unwrap()), name: "two".into() };
    assert_eq!(begin(&asking.encode()), Some(Err(why)));
    until("it is counted, too", || refused(server) == 2.0);
    assert_eq!(enroll(server, folder.path(), "two", &good).code, 0);

    // What is no greeting ends the conversation.
    for garbage in
        [&hello(0, 1)[..], &hello(2, 1), &[0, 0, 0, 1, 1, 1], &[0, 0, 0, 3, 1, 1, 1, 1], b"GET / HTTP/1.1\r\n\r\n"]
    {
        assert_eq!(begin(garbage), None, "{garbage:?}");
    }
    assert_eq!(begin(&hello(lowest, highest)), Some(Ok(highest)), "and no other");
    server.kill();
}

#[test]
fn no_server_listens_for_workers_without_the_keys_that_make_them_harmless() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("portiere.toml");
    std::fs::write(&config, "[workers]\nlisten = [\"127.0.0.1:0\"]\n").unwrap();
    let refused = run(&folder.path().join("data"), &["config", "check", "--config", config.to_str().unwrap()], "");
    assert!(refused.code != 0 && refused.err.contains("portiere hash binding"), "{}{}", refused.out, refused.err);

    let server = Server::leaked(&[]);
    let refused = server.command(&["verifier", "token"], "");
    assert!(refused.code == 1 && refused.err.contains("portiere hash pepper"), "{}", refused.err);
    server.kill();
    let refused = server.command(&["verifier", "status"], "");
    assert!(refused.code == 75 && refused.err.contains("no server runs"), "{}", refused.err);
}

#[test]
fn a_token_of_a_server_that_hears_no_workers_comes_with_what_is_missing() {
    // Red where the token is all that is told: whoever enrolls with it would look for a port that is not there.
    let folder = tempfile::tempdir().unwrap();
    let (pepper, binding) = keys(folder.path());
    let server = Server::leaked(&[("PORTIERE_HASH_PEPPERS", &pepper), ("PORTIERE_HASH_BINDING_KEYS", &binding)]);
    let made = server.command(&["verifier", "token"], "");
    assert!(made.code == 0 && made.out.contains("pvt1.") && made.err.contains("workers.listen"), "{}", made.err);
    server.kill();
}

#[test]
fn plain_hashes_are_bound_when_their_owners_sign_in() {
    let (server, _folder) = server("1", 0);
    let name = unique("imported");
    let hash = "pbkdf2_sha256$1000$saltsalt$x74/eLoFuG1b9SwCoUbGr8vyg2cKlbteE/sweaLyNOQ=";
    server.must(&["user", "add", &name, "--password-hash-stdin"], hash);
    let person = Person { email: String::new(), password: "correct horse 1".into(), name };
    server.stop();
    assert_eq!(server.command(&["user", "list"], "").code, 0, "nobody's hash needs the keys yet");
    server.restart();
    assert_eq!(sign_in(server, &person, &person.password), Came::In);
    assert_eq!(sign_in(server, &person, &person.password), Came::In);
    server.stop();
    let refused = server.command(&["user", "list"], "");
    assert!(
        refused.err.contains("hash.binding_keys: binding b1 is not configured, and 1 account has"),
        "{}",
        refused.err
    );
}
