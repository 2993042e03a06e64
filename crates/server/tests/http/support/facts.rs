//! Where the servers under test keep their facts: each in a file of its own, or in a database of its own on the server
//! that `scripts/databases` started in the folder that `PORTIERE_TEST_STORE` names.

use std::collections::HashMap;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{LazyLock, Mutex};

/// Settings of a server under test, by the names of their variables.
pub type Settings = Vec<(String, String)>;

static SERVER: LazyLock<Option<String>> =
    LazyLock::new(|| std::env::var("PORTIERE_TEST_STORE").ok().filter(|folder| !folder.is_empty()));

/// Returns whether facts are in a SQLite file. Tests of that file have no meaning for a database server.
pub fn on_file() -> bool {
    SERVER.is_none()
}

/// Returns the settings of a server whose database is empty.
pub fn fresh() -> Settings {
    static MADE: AtomicU32 = AtomicU32::new(0);
    let Some(folder) = &*SERVER else { return Vec::new() };
    let name = format!("http_{}_{}", std::process::id(), MADE.fetch_add(1, Relaxed));
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/databases");
    let made = Command::new(script).args(["database", folder, &name]).output().expect("scripts/databases runs");
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let url = String::from_utf8(made.stdout).unwrap().trim().to_owned();
    // Many servers share a database server that has a limit. No proxy before them has to see them leave.
    let settings = [
        ("PORTIERE_STORE_URL", url.as_str()),
        ("PORTIERE_STORE_CONNECTIONS", "4"),
        ("PORTIERE_LIMITS_STOP_DELAY", "0s"),
    ];
    settings.map(|(name, value)| (name.to_owned(), value.to_owned())).into()
}

/// Returns how many nodes each server under test has: more than one only with a database server.
pub fn nodes() -> usize {
    let named = std::env::var("PORTIERE_TEST_NODES").ok().and_then(|count| count.parse().ok());
    if on_file() { 1 } else { named.unwrap_or(1) }
}

/// The ports of the nodes of one server, and whose turn it is.
struct Nodes {
    ports: Vec<u16>,
    turn: usize,
}

/// By the port of the first node.
static NODES: LazyLock<Mutex<HashMap<u16, Nodes>>> = LazyLock::new(Mutex::default);

/// Registers other ports at which the server at `port` can be reached.
pub fn register(port: u16, others: impl Iterator<Item = u16>) {
    let ports: Vec<u16> = [port].into_iter().chain(others).collect();
    NODES.lock().unwrap().insert(port, Nodes { ports, turn: 0 });
}

/// Sends all requests for the server at `port` to `only` from now on.
pub fn pin(port: u16, only: u16) {
    NODES.lock().unwrap().insert(port, Nodes { ports: vec![only], turn: 0 });
}

/// Returns the port of one node of the server at `port`: each in turn.
pub fn next_node(port: u16) -> u16 {
    match NODES.lock().unwrap().get_mut(&port) {
        Some(nodes) => {
            nodes.turn += 1;
            nodes.ports[nodes.turn % nodes.ports.len()]
        }
        None => port,
    }
}
