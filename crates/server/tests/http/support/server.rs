//! The binary, running.

use super::wire::{Answer, Call};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{LazyLock, Mutex};
use std::time::{Duration, Instant};

/// The program under test.
pub const BINARY: &str = env!("CARGO_BIN_EXE_portiere");

/// Failures from 127.0.0.1 are those of all tests together: they must not slow each other.
const ROOMY: [(&str, &str); 2] =
    [("PORTIERE_THROTTLE_ADDRESS_FREE_FAILURES", "1000000"), ("PORTIERE_LOG_FORMAT", "json")];

/// A server with a data folder of its own. The folder goes and the process ends with the test binary, however it ends.
pub struct Server {
    pub port: u16,
    pub issuer: String,
    pub folder: PathBuf,
    settings: Mutex<Vec<(String, String)>>,
    wrapper: Vec<String>,
    child: Mutex<Child>,
    guard: Mutex<Child>,
}

/// What a command came to.
pub struct Output {
    pub code: i32,
    pub out: String,
    pub err: String,
}

static DEFAULT: LazyLock<Server> = LazyLock::new(|| Server::start(&[]));
static STRICT: LazyLock<Server> = LazyLock::new(|| Server::start(&[("PORTIERE_REFRESH_GRACE", "0s")]));
static SIGN_UP: LazyLock<Server> = LazyLock::new(|| Server::start(&[("PORTIERE_SIGNUP_ENABLED", "true")]));
static SHORT: LazyLock<Server> =
    LazyLock::new(|| Server::start(&[("PORTIERE_CODE_TTL", "1s"), ("PORTIERE_TOKEN_ACCESS_TTL", "10s")]));

/// Everything as it comes.
pub fn default_server() -> &'static Server {
    &DEFAULT
}

/// Without grace for refresh tokens: any reuse revokes.
pub fn strict_server() -> &'static Server {
    &STRICT
}

/// With sign-up open to anybody.
pub fn sign_up_server() -> &'static Server {
    &SIGN_UP
}

/// With codes of one second and access tokens of ten.
pub fn short_server() -> &'static Server {
    &SHORT
}

impl Server {
    /// Starts a server on a fresh data folder.
    pub fn start(settings: &[(&str, &str)]) -> Server {
        Server::wrapped(settings, &[])
    }

    /// Starts a server under another public URL, which may name the port that it listens on.
    pub fn under(url: impl Fn(u16) -> String, settings: &[(&str, &str)]) -> Server {
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port();
        let url = url(port);
        let settings: Vec<_> = [("PORTIERE_PUBLIC_URL", url.as_str())].iter().chain(settings).copied().collect();
        Server::on(port, &settings, &[])
    }

    /// The same, run by another program: `wrapper` goes before its command line.
    pub fn wrapped(settings: &[(&str, &str)], wrapper: &[&str]) -> Server {
        Server::on(0, settings, wrapper)
    }

    fn on(port: u16, settings: &[(&str, &str)], wrapper: &[&str]) -> Server {
        let folder = tempfile::Builder::new().prefix("portiere-http-").tempdir().unwrap().keep();
        let settings: Vec<(String, String)> =
            ROOMY.iter().chain(settings).map(|(name, value)| ((*name).into(), (*value).into())).collect();
        let wrapper: Vec<String> = wrapper.iter().map(|part| (*part).to_owned()).collect();
        let (child, issuer) = launch(&folder, &settings, &wrapper, port).expect("the server starts");
        let port = match port {
            0 => issuer.rsplit(':').next().and_then(|port| port.parse().ok()).expect("the issuer names the port"),
            port => port,
        };
        let guard = Mutex::new(guard(&folder, child.id()));
        let server =
            Server { port, issuer, folder, settings: Mutex::new(settings), wrapper, child: Mutex::new(child), guard };
        server.wait_until_ready();
        server
    }

    pub fn data(&self) -> PathBuf {
        self.folder.join("data")
    }

    /// What the server wrote to standard error so far.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.folder.join("log")).unwrap_or_default()
    }

    pub fn pid(&self) -> u32 {
        self.child.lock().unwrap().id()
    }

    #[track_caller]
    pub fn send(&self, call: &Call) -> Answer {
        call.try_send(self.port).expect("the server answers")
    }

    #[track_caller]
    pub fn get(&self, target: &str) -> Answer {
        self.send(&Call::get(target))
    }

    #[track_caller]
    pub fn post(&self, target: &str, fields: &[(&str, &str)]) -> Answer {
        self.send(&Call::post(target, fields))
    }

    /// The same for tests that need it for long; it ends with the test binary.
    pub fn leaked(settings: &[(&str, &str)]) -> &'static Server {
        Box::leak(Box::new(Server::start(settings)))
    }

    /// Runs a command on the data folder.
    pub fn command(&self, arguments: &[&str], input: &str) -> Output {
        run(&self.data(), arguments, input)
    }

    /// Runs a command that has to succeed; what it printed.
    #[track_caller]
    pub fn must(&self, arguments: &[&str], input: &str) -> String {
        let output = self.command(arguments, input);
        assert_eq!(output.code, 0, "{arguments:?}: {}", output.err);
        output.out
    }

    /// SIGKILL, at once; returns when the process is gone.
    pub fn kill(&self) {
        let mut child = self.child.lock().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
    }

    /// Starts again on the same folder and port, ready before it returns.
    pub fn restart(&self) {
        let settings = self.settings.lock().unwrap().clone();
        let (child, issuer) = launch(&self.folder, &settings, &self.wrapper, self.port).expect("it starts again");
        assert_eq!(issuer, self.issuer);
        dismiss(std::mem::replace(&mut *self.guard.lock().unwrap(), guard(&self.folder, child.id())));
        *self.child.lock().unwrap() = child;
        self.wait_until_ready();
    }

    /// Another value of a setting from the next start on.
    pub fn set(&self, name: &str, value: &str) {
        self.settings.lock().unwrap().push((name.into(), value.into()));
    }

    fn wait_until_ready(&self) {
        let deadline = Instant::now() + Duration::from_secs(30);
        while Call::get("/readyz").try_send(self.port).is_none_or(|answer| answer.status != 200) {
            assert!(Instant::now() < deadline, "not ready: {}", self.log());
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Ends it as an operator would; the exit code.
    pub fn stop(&self) -> Option<i32> {
        let pid = rustix::process::Pid::from_raw(i32::try_from(self.pid()).unwrap()).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
        self.child.lock().unwrap().wait().unwrap().code()
    }
}

/// Runs a command on a data folder.
pub fn run(data: &Path, arguments: &[&str], input: &str) -> Output {
    let mut child = Command::new(BINARY)
        .args(arguments)
        .arg("--data")
        .arg(data)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // A command that reads no input may be gone already.
    drop(child.stdin.take().unwrap().write_all(input.as_bytes()));
    let output = child.wait_with_output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    Output { code: output.status.code().unwrap_or(-1), out: text(output.stdout), err: text(output.stderr) }
}

fn launch(
    folder: &Path,
    settings: &[(String, String)],
    wrapper: &[String],
    port: u16,
) -> Result<(Child, String), String> {
    let log = std::fs::OpenOptions::new().create(true).append(true).open(folder.join("log")).unwrap();
    let mut line: Vec<String> = wrapper.to_vec();
    line.push(BINARY.to_owned());
    let mut child = Command::new(&line[0])
        .args(&line[1..])
        .args(["serve", "--listen", &format!("127.0.0.1:{port}"), "--data"])
        .arg(folder.join("data"))
        .envs(settings.iter().map(|(name, value)| (name, value)))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(log)
        .spawn()
        .map_err(|error| error.to_string())?;
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let mut first = String::new();
    out.read_line(&mut first).unwrap();
    let Some(issuer) = first.trim().strip_prefix("Portiere runs at ") else {
        child.kill().ok();
        child.wait().ok();
        return Err(std::fs::read_to_string(folder.join("log")).unwrap_or_default());
    };
    // Whatever else it says is read, so that the pipe never fills.
    std::thread::spawn(move || std::io::copy(&mut out.take(u64::MAX), &mut std::io::sink()));
    Ok((child, issuer.to_owned()))
}

/// A shell that waits for the end of this process (its input closes) and then ends the server and takes the folder away.
fn guard(folder: &Path, pid: u32) -> Child {
    Command::new("sh")
        .args(["-c", "read -r keep && exit 0; kill -9 \"$0\" 2>/dev/null; rm -rf \"$1\""])
        .arg(pid.to_string())
        .arg(folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

fn dismiss(mut guard: Child) {
    guard.stdin.take().unwrap().write_all(b"keep\n").unwrap();
    guard.wait().unwrap();
}

impl Drop for Server {
    fn drop(&mut self) {
        let mut child = self.child.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        child.kill().ok();
        child.wait().ok();
        let mut guard = self.guard.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        drop(guard.stdin.take());
        guard.wait().ok();
    }
}
