//! The page that Prometheus reads.

use crate::support::*;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::process::{Command, Stdio};

/// Serves metrics on a free port of each node.
pub const SERVED: (&str, &str) = ("PORTIERE_METRICS_LISTEN", "127.0.0.1:0");

/// The ports on which the nodes of a server serve metrics, as their logs say.
pub fn ports(server: &Server) -> Vec<u16> {
    let port = |log: String| {
        let line = log.lines().find(|line| line.contains("metrics are served")).expect("it says where").to_owned();
        let (_, after) = line.split_once("127.0.0.1:").expect("on loopback");
        after.split(|c: char| !c.is_ascii_digit()).next().unwrap().parse().unwrap()
    };
    server.logs().into_iter().map(port).collect()
}

/// What each node answers.
pub fn pages(server: &Server) -> Vec<String> {
    let page = |port| Call::get("/metrics").try_send_here(port).expect("an answer").must_be(200).text();
    ports(server).into_iter().map(page).collect()
}

/// Red without HEADER_TIMEOUT in metrics/serve.rs: silent connections would hold all places for as long as others may.
#[test]
fn silent_connections_do_not_keep_a_scraper_out() {
    let server = Server::leaked(&[SERVED, ("PORTIERE_LIMITS_HEADER_TIMEOUT", "5m")]);
    let port = ports(server)[0];
    let silent = |_| std::net::TcpStream::connect(("127.0.0.1", port)).expect("accepted");
    let held: Vec<_> = (0..64).map(silent).collect();
    until("a scrape is answered", || {
        Call::get("/metrics").try_send_here(port).is_some_and(|answer| answer.status == 200)
    });
    drop(held);
}

/// Every sample, by name and labels as they are written, added up over the nodes.
pub fn samples(server: &Server) -> BTreeMap<String, f64> {
    let mut samples = BTreeMap::new();
    for page in pages(server) {
        for line in page.lines().filter(|line| !line.starts_with('#')) {
            let (name, value) = line.rsplit_once(' ').unwrap();
            *samples.entry(name.to_owned()).or_insert(0.0) += value.parse::<f64>().unwrap();
        }
    }
    samples
}

/// The names of all metrics that have samples.
pub fn names(server: &Server) -> BTreeSet<String> {
    let pages = pages(server).concat();
    pages.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next()).map(str::to_owned).collect()
}

/// Runs a tool of Prometheus, which must be content.
#[track_caller]
pub fn promtool(arguments: &[&str], input: &str) {
    let mut child = Command::new("promtool")
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("promtool, which scripts/install-test-tools installs");
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&said));
}

#[test]
fn prometheus_can_read_it_and_finds_nothing_to_lint() {
    let server = Server::leaked(&[SERVED]);
    Browser::of(server, &Person::add(server));
    for page in pages(server) {
        promtool(&["check", "metrics"], &page);
    }
}

#[test]
fn nobody_sees_it_without_being_meant_to() {
    // red without the look at the secret in metrics/serve.rs.
    default_server().get("/metrics").must_be(404);
    assert!(!default_server().log().contains("metrics are served"), "it is off by default");
    let folder = tempfile::tempdir().unwrap();
    let secret = folder.path().join("secret");
    std::fs::write(&secret, "correct horse battery\n").unwrap();
    std::fs::set_permissions(&secret, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    let server = Server::start(&[SERVED, ("PORTIERE_METRICS_SECRET", secret.to_str().unwrap())]);
    let port = ports(&server)[0];
    let ask = |call: Call| call.try_send_here(port).unwrap();
    let refused = ask(Call::get("/metrics")).must_be(401);
    assert!(refused.header("www-authenticate").is_some() && !refused.text().contains("portiere_"));
    // CO-10: byte for byte, or not at all.
    for wrong in near_in_header("correct horse battery", 1) {
        ask(Call::get("/metrics").bearer(&wrong)).must_be(401);
    }
    assert!(ask(Call::get("/metrics").bearer("correct horse battery")).must_be(200).text().contains("portiere_"));
    ask(Call::new("POST", "/metrics")).must_be(405);
    ask(Call::get("/login")).must_be(404);
}

#[test]
fn nothing_of_a_request_becomes_a_label() {
    // red with the path in place of the template in http/front.rs.
    let server = Server::leaked(&[SERVED]);
    let app = App::web(server);
    let ask = |seed: usize| {
        let odd = format!("q\"x\\{seed}");
        server.get(&format!("/nothing/{seed}"));
        server.get(&format!("/assets/{seed}.css"));
        server.get(&format!("/api/v1/problems/{seed}"));
        server.send(&Call::new(&format!("BREW{seed}"), "/login"));
        app.post("/oauth2/token", &[("grant_type", &odd), ("code", &odd)]);
        server.send(&Call::get("/login").header("host", &format!("evil{seed}.test")));
        server.send(&Call::get("/login").header("user-agent", &odd));
    };
    // Twice, so that every node was asked everything.
    (0..2 * nodes()).for_each(ask);
    let before: BTreeSet<String> = samples(server).into_keys().collect();
    (100..160).for_each(ask);
    let after: BTreeSet<String> = samples(server).into_keys().collect();
    // Kinds of hashes show as they are measured, which nobody's request does.
    let measured = |name: &&String| name.starts_with("portiere_hashing_lanes{");
    let new: Vec<_> = after.difference(&before).filter(|name| !measured(name)).collect();
    assert!(new.is_empty(), "{new:?}");
    assert!(after.contains("portiere_http_requests_total{route=\"/assets/{name}\",method=\"GET\",status=\"404\"}"));
    assert!(after.contains("portiere_http_requests_total{route=\"none\",method=\"GET\",status=\"404\"}"));
    assert!(after.len() < 4000, "{} series", after.len());
}
