//! The audit log of a running server: sealed by one of its nodes, followed, exported, proved, delivered.

use crate::support::*;
use serde_json::Value;
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

fn wait_until(what: &str, mut done: impl FnMut() -> bool) {
    let began = Instant::now();
    while !done() {
        assert!(began.elapsed() < Duration::from_secs(120), "{what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn status(server: &Server) -> Value {
    serde_json::from_str(&server.must(&["audit", "status", "--json"], "")).unwrap()
}

/// The ids of all lines, as JSON lines have them.
fn exported(server: &Server) -> Vec<Value> {
    let out = server.must(&["audit", "export"], "");
    out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn ids(lines: &[Value]) -> BTreeSet<String> {
    lines.iter().map(|line| line["id"].as_str().unwrap().to_owned()).collect()
}

/// People who sign in, on several threads.
fn busy(server: &'static Server, threads: usize, each: usize) {
    let app = App::trusted(server);
    let people: Vec<_> = (0..threads).map(|_| Person::add(server)).collect();
    at_once(threads, |at| {
        for _ in 0..each {
            app.tokens(&mut Browser::new(server), &people[at]);
        }
    });
}

#[test]
fn every_line_is_sealed_once_by_whichever_node() {
    let server = Server::leaked(&[]);
    busy(server, 4, 4);
    wait_until("everything is sealed", || status(server)["unsealed"] == 0);
    let lines = exported(server);
    assert!(lines.len() > 30 && lines.iter().all(|line| line["block"].as_i64().unwrap() > 0));
    assert_eq!(status(server)["lines_kept"], lines.len());
    let verified: Value = serde_json::from_str(&server.must(&["audit", "verify", "--json"], "")).unwrap();
    assert_eq!((&verified["ok"], &verified["lines"]), (&Value::Bool(true), &Value::from(lines.len())), "{verified}");

    let head = server.folder.join("head.json");
    std::fs::write(&head, server.must(&["audit", "head"], "")).unwrap();
    busy(server, 2, 1);
    let verified = server.must(&["audit", "verify", "--head", head.to_str().unwrap()], "");
    assert!(verified.contains("nothing was cut off since"), "{verified}");
    let other = std::fs::read_to_string(&head).unwrap().replace("\"mac\": \"", "\"mac\": \"00");
    std::fs::write(&head, other).unwrap();
    let refused = server.command(&["audit", "verify", "--head", head.to_str().unwrap()], "");
    assert_eq!(refused.code, 1, "{}", refused.err);
    assert!(refused.out.contains("another one than when the head was exported"), "{}", refused.out);
    assert!(refused.err.contains("1 thing is wrong with the audit log"), "{}", refused.err);
}

#[test]
fn a_line_names_the_request_that_its_response_named() {
    let server = default_server();
    let (person, mut browser) = (Person::add(server), Browser::new(server));
    let page = browser.get("/login");
    let answer = browser.log_in_on(&page, &person.name, "not the password");
    let request = answer.header("x-request-id").unwrap().to_owned();
    let list = server.must(&["audit", "list", "--request", &request, "--json"], "");
    let lines: Vec<Value> = serde_json::from_str(&list).unwrap();
    assert_eq!((lines.len(), &lines[0]["event"]), (1, &Value::from("signin.failed")), "{list}");
    assert_eq!(lines[0]["outcome"], "refused");
    let by_name = ["audit", "list", "--user", &person.name, "--outcome", "refused", "--since", "1h", "--json"];
    assert_eq!(serde_json::from_str::<Vec<Value>>(&server.must(&by_name, "")).unwrap(), lines);
    let before = ["audit", "list", "--request", &request, "--until", "1h"];
    assert_eq!(server.must(&before, "").trim(), "no events");
    let csv = server.must(&["audit", "export", "--format", "csv", "--request", &request], "");
    assert!(csv.starts_with("realm,id,at,") && csv.contains(&request) && csv.lines().count() == 2, "{csv}");
    let wrong = server.command(&["audit", "list", "--kind", "signin.fail"], "");
    assert!(wrong.code == 2 && wrong.err.contains("signin.failed"), "{}", wrong.err);
}

#[test]
fn whoever_follows_sees_every_line_once() {
    let server = Server::leaked(&[]);
    let mut tail = Command::new(BINARY)
        .args(["audit", "tail", "-f", "-n", "1000", "--json", "--data"])
        .arg(server.data())
        .envs(server.setting("PORTIERE_STORE_URL").map(|url| ("PORTIERE_STORE_URL", url)))
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let seen: Arc<Mutex<Vec<String>>> = Arc::default();
    let out = BufReader::new(tail.stdout.take().unwrap());
    let theirs = Arc::clone(&seen);
    let reads = std::thread::spawn(move || {
        for line in out.lines().map_while(Result::ok) {
            let line: Value = serde_json::from_str(&line).unwrap();
            theirs.lock().unwrap().push(line["id"].as_str().unwrap().to_owned());
        }
    });
    busy(server, 4, 3);
    let all = ids(&exported(server));
    wait_until("all are seen", || seen.lock().unwrap().len() >= all.len());
    std::thread::sleep(Duration::from_secs(2));
    tail.kill().unwrap();
    tail.wait().unwrap();
    reads.join().unwrap();
    let seen = seen.lock().unwrap();
    assert_eq!(seen.iter().cloned().collect::<BTreeSet<_>>(), all);
    assert_eq!(seen.len(), all.len(), "none twice");
}

/// A receiver over HTTP that refuses the first request and takes the others.
fn receiver() -> (u16, Arc<Mutex<Vec<Value>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (port, got) = (listener.local_addr().unwrap().port(), Arc::<Mutex<Vec<Value>>>::default());
    let theirs = Arc::clone(&got);
    std::thread::spawn(move || {
        for (turn, stream) in listener.incoming().enumerate() {
            let mut stream = stream.unwrap();
            let body = body_of(&mut stream);
            let status = if turn == 0 { "503 Later" } else { "200 OK" };
            if turn > 0 {
                theirs.lock().unwrap().extend(body.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()));
            }
            let _ = stream.write_all(format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\n\r\n").as_bytes());
        }
    });
    (port, got)
}

fn body_of(stream: &mut TcpStream) -> String {
    let mut text = String::new();
    loop {
        let mut some = [0; 4096];
        let many = stream.read(&mut some).unwrap();
        text.push_str(std::str::from_utf8(&some[..many]).unwrap());
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        assert!(head.contains("authorization: Bearer token of the receiver"), "{head}");
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse::<usize>().ok());
        if body.len() >= length.unwrap() {
            return body.to_owned();
        }
    }
}

#[test]
fn a_stream_delivers_over_restarts_and_tells_how_far_it_is() {
    let (port, got) = receiver();
    let token = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(token.path(), "token of the receiver\n").unwrap();
    let url = format!("http://127.0.0.1:{port}/in");
    let server = Server::leaked(&[
        ("PORTIERE_AUDIT_HTTP_URL", &url),
        ("PORTIERE_AUDIT_HTTP_TOKEN_FILE", token.path().to_str().unwrap()),
    ]);
    busy(server, 2, 2);
    wait_until("all was delivered", || {
        let lines = exported(server);
        ids(&got.lock().unwrap()) == ids(&lines)
    });
    assert_eq!(server.stop(), Some(0));
    server.restart();
    busy(server, 2, 2);
    wait_until("all was delivered after a restart", || ids(&got.lock().unwrap()) == ids(&exported(server)));
    wait_until("nothing is behind", || {
        let stream = status(server)["streams"][0].clone();
        stream["behind"] == 0 && stream["trouble"].is_null() && stream["name"] == "http"
    });
    let forgotten = server.must(&["audit", "forget", "http"], "");
    assert!(forgotten.contains("given up"), "{forgotten}");
}

#[test]
fn a_server_without_its_key_goes_on_and_says_so() {
    let server = Server::leaked(&[]);
    busy(server, 1, 1);
    wait_until("something is sealed", || status(server)["block"].as_i64().unwrap() > 0);
    assert_eq!(server.stop(), Some(0));
    let key = server.data().join("audit.key");
    let kept = std::fs::read(&key).unwrap();
    std::fs::remove_file(&key).unwrap();
    if on_file() {
        server.restart();
        busy(server, 1, 1);
        wait_until("it is told", || server.log().contains("this node does not seal the audit log"));
        assert!(!key.exists(), "no other key is made in its place");
        assert!(status(server)["unsealed"].as_i64().unwrap() > 0);
        assert_eq!(server.command(&["audit", "verify"], "").code, 1, "nothing can be proved");
        server.stop();
    }
    std::fs::write(&key, kept).unwrap();
    Command::new("chmod").arg("600").arg(&key).status().unwrap();
    server.restart();
    wait_until("everything is sealed", || status(server)["unsealed"] == 0);
    server.must(&["audit", "verify"], "");
}

#[test]
fn following_needs_a_server() {
    let folder = tempfile::tempdir().unwrap();
    let refused = run(folder.path(), &["audit", "tail", "-f"], "");
    assert!(refused.code == 1 && refused.err.contains("no server runs"), "{}", refused.err);
}
