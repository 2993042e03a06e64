//! Running servers.

use super::facts::{self, Settings};
use super::learnt;
use super::node::Node;
use super::program::program;
use super::wire::{Answer, Call};
use rules::Handle;
use rules::secret::hexadecimal;
use std::collections::HashSet;
use std::io::Write;
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{LazyLock, Mutex};
use std::time::{Duration, Instant};

/// All tests fail from 127.0.0.1 together: they must not throttle each other. Nor may the queue for hashes refuse
/// anybody on a slow or busy machine; tests of that set another value.
const ROOMY: [(&str, &str); 3] = [
    ("PORTIERE_THROTTLE_ADDRESS_FREE_FAILURES", "1000000"),
    ("PORTIERE_HASH_MAX_WAIT", "60s"),
    ("PORTIERE_LOG_FORMAT", "json"),
];
/// How often a server gets another port because another program took the one that was found.
const PORTS: usize = 5;

/// A server with a data folder of its own; with a database server, it has as many nodes as `PORTIERE_TEST_NODES` says,
/// which requests reach in turn.
pub struct Server {
    pub port: u16,
    pub issuer: String,
    pub folder: PathBuf,
    settings: Mutex<Settings>,
    node: Node,
    /// The other nodes, with their ports.
    others: Vec<(Node, u16)>,
}

/// The outcome of a command.
pub struct Output {
    pub code: i32,
    pub out: String,
    pub err: String,
}

static DEFAULT: LazyLock<Server> = LazyLock::new(|| Server::start(&[]));
static STRICT: LazyLock<Server> = LazyLock::new(|| Server::start(&[("PORTIERE_REFRESH_GRACE", "0s")]));
// Tests send it more users than it can let in (`portiere load`), and each waits 30 seconds for an answer.
static SIGN_UP: LazyLock<Server> =
    LazyLock::new(|| Server::start(&[("PORTIERE_SIGNUP_ENABLED", "true"), ("PORTIERE_HASH_MAX_WAIT", "15s")]));
static SHORT: LazyLock<Server> =
    LazyLock::new(|| Server::start(&[("PORTIERE_CODE_TTL", "5s"), ("PORTIERE_TOKEN_ACCESS_TTL", "10s")]));

/// Returns a server with default settings.
pub fn default_server() -> &'static Server {
    &DEFAULT
}

/// Returns a server without a grace period for refresh tokens: any reuse revokes.
pub fn strict_server() -> &'static Server {
    &STRICT
}

/// Returns a server with sign-up open to anybody.
pub fn sign_up_server() -> &'static Server {
    &SIGN_UP
}

/// Returns a server whose codes last five seconds and access tokens ten.
pub fn short_server() -> &'static Server {
    &SHORT
}

impl Server {
    /// Starts a server on a fresh data folder.
    pub fn start(settings: &[(&str, &str)]) -> Server {
        Server::wrapped(settings, &[])
    }

    /// Starts a server with another public URL, which may name the port that it listens on.
    pub fn under(url: impl Fn(u16) -> String, settings: &[(&str, &str)]) -> Server {
        let port = free_port();
        let url = url(port);
        let settings: Vec<_> = [("PORTIERE_PUBLIC_URL", url.as_str())].iter().chain(settings).copied().collect();
        Server::on(told(&settings), Some(port), &settings, &[], facts::nodes())
    }

    /// Starts two nodes; `None` if the facts are in a file, which only one node can use.
    pub fn pair() -> Option<&'static Server> {
        (!facts::on_file()).then(|| &*Box::leak(Box::new(Server::on(told(&[]), None, &[], &[], 2))))
    }

    /// Starts a server under another program: `wrapper` goes before its command line.
    pub fn wrapped(settings: &[(&str, &str)], wrapper: &[&str]) -> Server {
        Server::on(told(settings), None, settings, wrapper, facts::nodes())
    }

    /// Starts a server without measurements of the machine, which makes its data folder itself.
    pub fn newcomer(settings: &[(&str, &str)]) -> Server {
        Server::on(empty(), None, settings, &[], facts::nodes())
    }

    /// Starts a server on a folder that the test prepared.
    pub fn over(folder: PathBuf, settings: &[(&str, &str)]) -> Server {
        Server::on(folder, None, settings, &[], 1)
    }

    fn on(folder: PathBuf, port: Option<u16>, settings: &[(&str, &str)], wrapper: &[&str], nodes: usize) -> Server {
        let given = ROOMY.iter().chain(settings).map(|(name, value)| ((*name).into(), (*value).into()));
        let settings: Settings = facts::fresh().into_iter().chain(given).collect();
        let wrapper: Vec<String> = wrapper.iter().map(|part| (*part).to_owned()).collect();
        let (node, issuer, port) = match port {
            Some(port) => {
                let (node, issuer) = Node::start(&folder, &settings, &wrapper, port).expect("the server starts");
                (node, issuer, port)
            }
            None => somewhere(&folder, &settings, &wrapper),
        };
        wait_until_ready(&node, port);
        let others: Vec<_> = (1..nodes).map(|_| beside(&folder, &settings, &issuer)).collect();
        facts::register(port, others.iter().map(|(_, port)| *port));
        Server { port, issuer, folder, settings: Mutex::new(settings), node, others }
    }

    pub fn data(&self) -> PathBuf {
        self.folder.join("data")
    }

    /// Returns what the server has written to standard error.
    pub fn log(&self) -> String {
        self.logs().concat()
    }

    /// Returns what the first node wrote to standard output since its start, except the first line.
    pub fn said(&self) -> String {
        self.node.said()
    }

    /// Returns what each node has written to standard error.
    pub fn logs(&self) -> Vec<String> {
        self.all().map(Node::log).collect()
    }

    /// Returns the process id of each node.
    pub fn pids(&self) -> Vec<u32> {
        self.all().map(Node::pid).collect()
    }

    fn all(&self) -> impl Iterator<Item = &Node> {
        [&self.node].into_iter().chain(self.others.iter().map(|(node, _)| node))
    }

    #[track_caller]
    pub fn send(&self, call: &Call) -> Answer {
        call.try_send(self.port).expect("the server answers")
    }

    /// Returns the name of a cookie of this server: `sid`, `flow`, `device`, `access`, `refresh`.
    pub fn cookie_name(&self, what: &str) -> String {
        format!("{what}-main-{}", hexadecimal(&Handle::of(&self.issuer).0[..4]))
    }

    #[track_caller]
    pub fn get(&self, target: &str) -> Answer {
        self.send(&Call::get(target))
    }

    #[track_caller]
    pub fn post(&self, target: &str, fields: &[(&str, &str)]) -> Answer {
        self.send(&Call::post(target, fields))
    }

    /// Starts a server for tests that need it for long; it ends with the test binary.
    pub fn leaked(settings: &[(&str, &str)]) -> &'static Server {
        Box::leak(Box::new(Server::start(settings)))
    }

    /// Runs a command on the data folder and its database.
    pub fn command(&self, arguments: &[&str], input: &str) -> Output {
        self.command_with(arguments, input, &[])
    }

    /// Likewise, with further settings.
    pub fn command_with(&self, arguments: &[&str], input: &str, settings: &[(&str, &str)]) -> Output {
        let kept = self.settings.lock().unwrap().clone();
        let of_store = kept.into_iter().filter(|(name, _)| name.starts_with("PORTIERE_STORE_"));
        let more = settings.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        run_with(&self.data(), arguments, input, of_store.chain(more).collect())
    }

    /// Runs a command that has to succeed; returns its output.
    #[track_caller]
    pub fn must(&self, arguments: &[&str], input: &str) -> String {
        let output = self.command(arguments, input);
        assert_eq!(output.code, 0, "{arguments:?}: {}", output.err);
        output.out
    }

    /// Sends SIGKILL at once; returns when the processes are gone.
    pub fn kill(&self) {
        self.all().for_each(Node::kill);
    }

    /// Starts again on the same folder and port; the server is ready when this returns.
    pub fn restart(&self) {
        let settings = self.settings.lock().unwrap().clone();
        assert_eq!(self.node.restart(&settings, self.port), self.issuer);
        wait_until_ready(&self.node, self.port);
        for (node, port) in &self.others {
            node.restart(&named(&settings, &self.issuer), *port);
            wait_until_ready(node, *port);
        }
    }

    /// Returns the value of a setting.
    pub fn setting(&self, name: &str) -> Option<String> {
        let settings = self.settings.lock().unwrap();
        settings.iter().rev().find(|(known, _)| known == name).map(|(_, value)| value.clone())
    }

    /// Returns the data folders of a pair.
    pub fn folders(&self) -> [PathBuf; 2] {
        [self.data(), self.others[0].0.folder.join("data")]
    }

    /// Returns the port of each node.
    pub fn ports(&self) -> Vec<u16> {
        [self.port].into_iter().chain(self.others.iter().map(|(_, port)| *port)).collect()
    }

    /// Returns how many nodes it has.
    pub fn count(&self) -> usize {
        1 + self.others.len()
    }

    /// Sends requests to one node of a pair only.
    pub fn only(&self, node: usize) {
        facts::pin(self.port, [self.port, self.others[0].1][node]);
    }

    /// Sends requests to both nodes again.
    pub fn both(&self) {
        facts::register(self.port, std::iter::once(self.others[0].1));
    }

    /// Kills the second node of a pair, and sends requests only to the first from then on.
    pub fn lose_second(&self) {
        self.others[0].0.kill();
        facts::register(self.port, std::iter::empty());
    }

    /// Starts the second node again.
    pub fn find_second(&self) {
        let (node, port) = &self.others[0];
        node.restart(&named(&self.settings.lock().unwrap(), &self.issuer), *port);
        wait_until_ready(node, *port);
        facts::register(self.port, std::iter::once(*port));
    }

    /// Stops only the first node.
    pub fn stop_first(&self) {
        assert_eq!(self.node.stop(), Some(0));
    }

    /// Starts the first node again.
    pub fn start_first(&self) {
        self.node.restart(&self.settings.lock().unwrap(), self.port);
        wait_until_ready(&self.node, self.port);
    }

    /// Changes a setting from the next start on.
    pub fn set(&self, name: &str, value: &str) {
        self.settings.lock().unwrap().push((name.into(), value.into()));
    }

    /// Ends it as an operator would; returns the exit code.
    pub fn stop(&self) -> Option<i32> {
        self.all().map(Node::stop).reduce(|first, other| if other == Some(0) { first } else { other }).flatten()
    }
}

/// Makes an empty folder for a node.
fn empty() -> PathBuf {
    tempfile::Builder::new().prefix("portiere-http-").tempdir().unwrap().keep()
}

/// Makes a folder with what nodes of these settings have measured of the machine.
fn told(settings: &[(&str, &str)]) -> PathBuf {
    let folder = empty();
    learnt::tell(&folder.join("data"), settings);
    folder
}

/// Starts one more node on the database of another, with a folder of its own.
fn beside(first: &Path, settings: &Settings, issuer: &str) -> (Node, u16) {
    let folder = empty();
    let (theirs, data) = (first.join("data"), folder.join("data"));
    std::fs::create_dir(&data).unwrap();
    for key in ["master.key", "audit.key"] {
        std::fs::copy(theirs.join(key), data.join(key)).unwrap();
    }
    // The first may not have measured yet; then both do.
    std::fs::copy(theirs.join(learnt::FILE), data.join(learnt::FILE)).ok();
    let (node, _, port) = somewhere(&folder, &named(settings, issuer), &[]);
    wait_until_ready(&node, port);
    (node, port)
}

/// Starts a node on a port that it can have again, whatever connects meanwhile; returns the issuer that it names.
fn somewhere(folder: &Path, settings: &Settings, wrapper: &[String]) -> (Node, String, u16) {
    for _ in 1..PORTS {
        let port = free_port();
        match Node::start(folder, settings, wrapper, port) {
            Ok((node, issuer)) => return (node, issuer, port),
            Err(log) => assert!(log.contains("is in use by another program"), "it does not start: {log}"),
        }
    }
    let port = free_port();
    let (node, issuer) = Node::start(folder, settings, wrapper, port).expect("it starts at last");
    (node, issuer, port)
}

/// Returns the settings of a node that listens on another port than the issuer names.
fn named(settings: &Settings, issuer: &str) -> Settings {
    settings.iter().cloned().chain([("PORTIERE_PUBLIC_URL".to_owned(), issuer.to_owned())]).collect()
}

/// Returns a free port that the system gives to nobody else: ports for connections, and for programs that ask for any
/// port, begin at 32768 (Linux) or higher. While its server is down it looks free: no other test gets it, and tests
/// that run in another process at the same time search another range.
pub fn free_port() -> u16 {
    const SHARES: u16 = 10;
    const SHARE: u16 = 22_000 / SHARES;
    static GIVEN: LazyLock<Mutex<HashSet<u16>>> = LazyLock::new(Mutex::default);
    let first = 10_000 + SHARE * u16::try_from(std::process::id() % u32::from(SHARES)).unwrap();
    let mut bytes = [0; 2];
    loop {
        aws_lc_rs::rand::fill(&mut bytes).unwrap();
        let port = first + u16::from_le_bytes(bytes) % SHARE;
        if GIVEN.lock().unwrap().insert(port) && TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok() {
            return port;
        }
    }
}

fn wait_until_ready(node: &Node, port: u16) {
    let deadline = Instant::now() + Duration::from_secs(120);
    while Call::get("/readyz").try_send_here(port).is_none_or(|answer| answer.status != 200) {
        assert!(Instant::now() < deadline, "not ready: {}", node.log());
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Runs a command on a data folder.
pub fn run(data: &Path, arguments: &[&str], input: &str) -> Output {
    run_with(data, arguments, input, Settings::new())
}

fn run_with(data: &Path, arguments: &[&str], input: &str, settings: Settings) -> Output {
    let mut child = program()
        .args(arguments)
        .envs(settings)
        .arg("--data")
        .arg(data)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // A command that reads no input may have ended already.
    drop(child.stdin.take().unwrap().write_all(input.as_bytes()));
    let output = child.wait_with_output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    Output { code: output.status.code().unwrap_or(-1), out: text(output.stdout), err: text(output.stderr) }
}
