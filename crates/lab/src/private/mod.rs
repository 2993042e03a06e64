//! Private servers: a temporary folder, people, a client, cores.
//!
//! A [`Setup`] describes a server, [`Private::start`] creates it: a data folder in a temporary [`Folder`], an
//! application and people with known passwords, and the program itself on a free loopback port, without our own
//! environment. It returns once the server is ready and has finished measuring the machine. However the program that
//! started it ends, nothing is left behind: no process and no file.

mod cores;
mod folder;
mod people;
mod probe;

pub use cores::{Cores, on};
pub use folder::{Folder, end_all, guard, unless_ending};
pub use probe::{Metrics, free_port};

use load::Refusal;
use load::plan::{Arrivals, Client, Pace, Plan, Proof, Shape, Workload};
use load::wire::Url;
use rules::Secret;
use std::fs::{File, OpenOptions};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// The password of every user.
pub const PASSWORD: &str = "plum-Lantern-47-orbit";
/// The application that people sign in to.
pub const CLIENT: &str = "shop";
/// Where its codes would be sent.
const REDIRECT_URI: &str = "https://shop.example.com/callback";

/// The longest that a server may take to be ready, to settle, or to stop.
const PATIENCE: Duration = Duration::from_secs(60);
/// The account whose password hash is copied to every user.
const TEMPLATE: &str = "template";
/// How often to try to start a server whose port another program takes first.
const TRIES: u32 = 3;

/// Where a private server keeps its data.
#[derive(Clone)]
pub enum Store {
    /// In a file of its own.
    File,
    /// In the database at this URL (`postgres://…`, `mysql://…`), which has to be empty and is filled with people.
    Server(Secret),
}

/// The description of a private server.
#[derive(Clone)]
pub struct Setup {
    /// The program, `portiere`.
    pub program: PathBuf,
    /// Options that differ from the defaults, by their names in the configuration, such as `hash.max_wait`.
    pub options: Vec<(String, String)>,
    /// The number of people.
    pub people: usize,
    /// The cores that it runs on; `None`: the cores of the calling thread.
    pub cores: Option<Cores>,
    /// Where it keeps its data.
    pub store: Store,
    /// The folder that its own folder is created in, which determines the disk; `None`: where temporary files go.
    pub within: Option<PathBuf>,
    /// What the database does with each audit entry (SQLite).
    pub audited: Audited,
    /// The algorithms that sign the application's ID tokens and its access tokens: `RS256`, `ES256` or `EdDSA`.
    pub signed: (&'static str, &'static str),
}

/// What becomes of an audit entry that the server writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Audited {
    /// It is kept, and sealed.
    Once,
    /// It is written a second time, into a separate table.
    Twice,
    /// It is deleted again in the same transaction: nothing is left to be sealed.
    Never,
}

impl Setup {
    /// Describes a server as shipped, with a thousand people.
    pub fn of(program: &Path) -> Setup {
        Setup {
            program: program.to_owned(),
            options: Vec::new(),
            people: 1000,
            cores: None,
            store: Store::File,
            within: None,
            audited: Audited::Once,
            signed: ("RS256", "ES256"),
        }
    }

    /// Sets this option of the configuration.
    #[must_use]
    pub fn with(mut self, option: &str, value: impl Into<String>) -> Setup {
        self.options.push((option.to_owned(), value.into()));
        self
    }
}

/// A running server. Dropping it ends the server and removes its folder.
pub struct Private {
    folder: Folder,
    child: Option<Child>,
    pid: u32,
    setup: Setup,
    port: u16,
    metrics: u16,
    secret: Secret,
    users: Vec<load::plan::User>,
}

impl Private {
    /// Starts a server; it is ready and has settled when this returns. Blocks, and must be called on a plain thread.
    ///
    /// # Errors
    /// [`Refusal::Failure`]: the obstacle, in a line.
    pub fn start(setup: &Setup) -> Result<Private, Refusal> {
        people::expect_empty(&setup.store)?;
        let folder = Folder::new(&setup.program, setup.within.as_deref())?;
        let secret = prepare(setup, &folder)?;
        people::settle(&setup.store, &data(&folder), TEMPLATE, setup.people)?;
        people::alter_events(&setup.store, &data(&folder), setup.audited)?;
        let mut tries = 1;
        loop {
            let mut server = launch(setup, &folder, &secret)?;
            match server.wait_until_ready() {
                Ok(()) => {
                    server.settle();
                    return Ok(server);
                }
                Err(refusal) if tries < TRIES && refusal.to_string().contains("in use") => tries += 1,
                Err(refusal) => return Err(refusal),
            }
        }
    }

    /// Returns the base URL, which is the issuer.
    pub fn url(&self) -> String {
        format!("http://localhost:{}", self.port)
    }

    /// Returns the PID of the server.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Returns its folder.
    pub fn folder(&self) -> &Folder {
        &self.folder
    }

    /// Returns a plan for the load generator: a closed loop of 20 users, for 5 s after 1 s, which callers may change.
    ///
    /// # Errors
    /// [`Refusal::Use`], never for a running server.
    pub fn plan(&self, workload: Workload) -> Result<Plan, Refusal> {
        Ok(Plan {
            target: Url::parse(&self.url()).map_err(|wrong| Refusal::Use(wrong.to_string()))?,
            reach: Arc::default(),
            workload,
            pace: Pace::Closed { visitors: 20, pause: Duration::ZERO },
            shape: Shape::Steady,
            arrivals: Arrivals::Even,
            warmup: Duration::from_secs(1),
            duration: Duration::from_secs(5),
            timeout: Duration::from_secs(30),
            heeds_retry_after: false,
            threads: 1,
            client: Client {
                id: CLIENT.to_owned(),
                proof: Proof::Basic(self.secret.reveal().to_owned()),
                redirect_uri: REDIRECT_URI.to_owned(),
                scope: "openid".to_owned(),
                own_scope: None,
                parameters: vec![],
                token_parameters: vec![],
            },
            introspector: None,
            users: self.users.clone(),
            server_pids: vec![self.pid],
            without_refresh: false,
            without_introspection: false,
            without_account_api: false,
            recovery: None,
            interrupt: load::interrupt::Interrupt::default(),
        })
    }

    /// Returns the processor time that it has used so far; zero if the system does not tell.
    pub fn cpu(&self) -> Duration {
        load::cpu::of_process(self.pid).unwrap_or_default()
    }

    /// Returns its resident memory in bytes; zero if the system does not tell.
    pub fn resident(&self) -> u64 {
        probe::resident(self.pid).unwrap_or_default()
    }

    /// Returns how many bytes it has written to disk so far; `None` if the system does not tell.
    pub fn written(&self) -> Option<u64> {
        probe::written(self.pid)
    }

    /// Returns its current metrics (`/metrics`).
    ///
    /// # Errors
    /// [`Refusal::Failure`] if it does not serve them.
    pub fn metrics(&self) -> Result<Metrics, Refusal> {
        match probe::get(self.metrics, "/metrics") {
            Ok((200, text)) => Ok(Metrics::parse(&text)),
            Ok((status, _)) => Err(Refusal::Failure(format!("cannot read the private server's metrics: {status}"))),
            Err(error) => Err(Refusal::Failure(format!("cannot read the private server's metrics: {error}"))),
        }
    }

    /// Runs a command of the program on its data folder (in the running server, if it is such a command), and returns
    /// what it printed.
    ///
    /// # Errors
    /// [`Refusal::Failure`] with the command's message.
    pub fn command(&self, words: &[&str], input: &str) -> Result<String, Refusal> {
        command(&self.setup, &self.folder, words, input)
    }

    /// Stops it as an operator would, and waits for what it still does.
    pub fn stop(mut self) {
        let Some(child) = &mut self.child else { return };
        let pid = i32::try_from(self.pid).ok().and_then(rustix::process::Pid::from_raw);
        // A server that is gone need not be signalled.
        let _ = pid.map(|pid| rustix::process::kill_process(pid, rustix::process::Signal::TERM));
        let begun = Instant::now();
        while matches!(child.try_wait(), Ok(None)) && begun.elapsed() < PATIENCE {
            sleep(Duration::from_millis(5));
        }
    }

    fn wait_until_ready(&mut self) -> Result<(), Refusal> {
        let begun = Instant::now();
        while !matches!(probe::get(self.port, "/readyz"), Ok((200, _))) {
            let ended = self.child.as_mut().is_none_or(|child| !matches!(child.try_wait(), Ok(None)));
            if ended || begun.elapsed() > PATIENCE {
                let why = why(&self.folder);
                return Err(Refusal::Failure(format!("the private server does not start: {why}")));
            }
            sleep(Duration::from_millis(5));
        }
        Ok(())
    }

    /// Waits until the work after the start (mostly measuring how to hash) is done.
    fn settle(&self) {
        /// The time between two checks.
        const PAUSE: Duration = Duration::from_millis(200);
        /// The processor time that an idle server may use in that time.
        const REST: Duration = Duration::from_millis(20);
        let (begun, learnt) = (Instant::now(), data(&self.folder).join("hashing"));
        while begun.elapsed() < PATIENCE {
            let before = self.cpu();
            sleep(PAUSE);
            if learnt.exists() && self.cpu().saturating_sub(before) <= REST {
                return;
            }
        }
    }
}

impl Drop for Private {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            self.folder.kill(&mut child);
        }
    }
}

fn data(folder: &Folder) -> PathBuf {
    folder.path().join("data")
}

fn log(folder: &Folder) -> PathBuf {
    folder.path().join("log")
}

/// Creates the data folder, an account with the password, and the application; returns the application's secret.
fn prepare(setup: &Setup, folder: &Folder) -> Result<Secret, Refusal> {
    command(setup, folder, &["user", "add", TEMPLATE, "--password-stdin"], PASSWORD)?;
    let (id_tokens, access_tokens) = setup.signed;
    let mut words = vec!["client", "add", "--json", "--id", CLIENT, "--trusted", "--first-party"];
    words.extend(["--redirect-uri", REDIRECT_URI, "--id-token-alg", id_tokens, "--access-token-alg", access_tokens]);
    for grant in ["authorization_code", "refresh_token", "client_credentials", "device_code"] {
        words.extend(["--grant", grant]);
    }
    let told = command(setup, folder, &words, "")?;
    let made: serde_json::Value = serde_json::from_str(&told).unwrap_or_default();
    let secret = made["client_secret"].as_str();
    secret.map(Secret::new).ok_or_else(|| Refusal::Failure("the private server made no client secret".to_owned()))
}

/// Returns a command that runs the program with the options, without our own environment.
fn program(setup: &Setup, folder: &Folder) -> Command {
    let mut command = Command::new(&setup.program);
    command.env_clear().env("PORTIERE_DATA", data(folder)).current_dir(folder.path());
    if let Store::Server(url) = &setup.store {
        // It need not wait for anybody when it stops.
        command.env("PORTIERE_STORE_URL", url.reveal()).env("PORTIERE_LIMITS_STOP_DELAY", "0s");
    }
    let variable = |option: &str| format!("PORTIERE_{}", option.to_uppercase().replace('.', "_"));
    command.envs(setup.options.iter().map(|(option, value)| (variable(option), value)));
    command
}

fn command(setup: &Setup, folder: &Folder, words: &[&str], input: &str) -> Result<String, Refusal> {
    folder.run(program(setup, folder).args(words), input)
}

fn launch(setup: &Setup, folder: &Folder, secret: &Secret) -> Result<Private, Refusal> {
    let failed = |error: std::io::Error| Refusal::Failure(format!("the private server does not start: {error}"));
    let (port, metrics) = (free_port().map_err(failed)?, free_port().map_err(failed)?);
    let log: File = OpenOptions::new().create(true).append(true).open(log(folder)).map_err(failed)?;
    let mut command = program(setup, folder);
    command.args(["serve", "--listen", &format!("127.0.0.1:{port}")]);
    command.env("PORTIERE_METRICS_LISTEN", format!("127.0.0.1:{metrics}"));
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
    let child = on(setup.cores.as_ref(), || folder.spawn(&mut command)).map_err(Refusal::Failure)??;
    let (pid, users) = (child.id(), people::users(setup.people));
    let (folder, setup, secret) = (folder.clone(), setup.clone(), secret.clone());
    Ok(Private { folder, child: Some(child), pid, setup, port, metrics, secret, users })
}

/// Returns true if there is no space for a database.
pub fn is_full(folder: &Path) -> bool {
    /// In bytes: too little for a database.
    const LITTLE: u64 = 1 << 20;
    rustix::fs::statvfs(folder).is_ok_and(|disk| disk.f_bavail * disk.f_frsize < LITTLE)
}

/// Returns why a server does not start: the last line that it logged, unless there was no space for one.
fn why(folder: &Folder) -> String {
    if is_full(folder.path()) {
        return "no room is left on the disk of its folder".to_owned();
    }
    let text = std::fs::read_to_string(log(folder)).unwrap_or_default();
    text.trim().lines().last().unwrap_or("it says nothing").to_owned()
}
