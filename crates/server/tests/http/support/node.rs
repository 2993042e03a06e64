//! One process of the program under test.

use super::facts::Settings;
use super::program::{BINARY, apart};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;

/// A process with a folder of its own. When the test binary ends in any way, the process ends and the folder goes.
pub struct Node {
    pub folder: PathBuf,
    wrapper: Vec<String>,
    child: Mutex<Child>,
    guard: Mutex<Child>,
}

impl Node {
    /// Starts a node and returns it with the issuer that it names, or with its log if it does not start.
    pub fn start(folder: &Path, settings: &Settings, wrapper: &[String], port: u16) -> Result<(Node, String), String> {
        let (child, issuer) = launch(folder, settings, wrapper, port)?;
        let guard = Mutex::new(guard(folder, child.id()));
        let (folder, wrapper) = (folder.to_owned(), wrapper.to_vec());
        Ok((Node { folder, wrapper, child: Mutex::new(child), guard }, issuer))
    }

    /// Starts it again on the same folder; returns the issuer that it names.
    pub fn restart(&self, settings: &Settings, port: u16) -> String {
        let (child, issuer) = launch(&self.folder, settings, &self.wrapper, port).expect("it starts again");
        dismiss(std::mem::replace(&mut *self.guard.lock().unwrap(), guard(&self.folder, child.id())));
        *self.child.lock().unwrap() = child;
        issuer
    }

    /// Returns the lines that it has written to standard error.
    pub fn log(&self) -> String {
        let mut written = std::fs::read(self.folder.join("log")).unwrap_or_default();
        // It may be in the middle of its next line.
        written.truncate(written.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1));
        String::from_utf8(written).unwrap_or_default()
    }

    /// Returns what it wrote to standard output since its start, except the first line.
    pub fn said(&self) -> String {
        let said = std::fs::read_to_string(self.folder.join("out")).unwrap_or_default();
        said.lines().map(|line| message(line) + "\n").collect()
    }

    pub fn pid(&self) -> u32 {
        self.child.lock().unwrap().id()
    }

    /// Sends SIGKILL at once; returns when the process is gone.
    pub fn kill(&self) {
        let mut child = self.child.lock().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
    }

    /// Ends it as an operator would; returns the exit code.
    pub fn stop(&self) -> Option<i32> {
        let pid = rustix::process::Pid::from_raw(i32::try_from(self.pid()).unwrap()).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
        self.child.lock().unwrap().wait().unwrap().code()
    }
}

fn launch(folder: &Path, settings: &Settings, wrapper: &[String], port: u16) -> Result<(Child, String), String> {
    let log = std::fs::OpenOptions::new().create(true).append(true).open(folder.join("log")).unwrap();
    let mut line: Vec<String> = wrapper.to_vec();
    line.push(BINARY.to_owned());
    let mut child = apart(Command::new(&line[0]))
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
    let first = message(first.trim());
    let Some(issuer) = first.strip_prefix("Portiere runs at ") else {
        child.kill().ok();
        child.wait().ok();
        return Err(std::fs::read_to_string(folder.join("log")).unwrap_or_default());
    };
    // The rest of its output is read, so that the pipe never fills.
    let mut said = std::fs::File::create(folder.join("out")).unwrap();
    std::thread::spawn(move || std::io::copy(&mut out, &mut said));
    Ok((child, issuer.to_owned()))
}

/// Returns the message of a line, which is text, or a log line in JSON.
fn message(line: &str) -> String {
    let read: Option<serde_json::Value> = serde_json::from_str(line).ok();
    read.and_then(|line| line["message"].as_str().map(str::to_owned)).unwrap_or_else(|| line.to_owned())
}

/// Starts a shell that waits for this process to end (its input closes), then kills the server and removes the folder.
/// A server that was stopped before has no pid any more: another process may have it by then, which began later.
fn guard(folder: &Path, pid: u32) -> Child {
    const THEN: &str = "read -r keep && exit 0; \
                        [ \"$(sed 's/.*) //' \"/proc/$0/stat\" | cut -d' ' -f20)\" = \"$2\" ] && kill -9 \"$0\"; rm -rf \"$1\"";
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // The fields after the name, which may hold anything: the twentieth is when it began (proc_pid_stat(5)).
    let began = stat.rsplit(") ").next().and_then(|fields| fields.split(' ').nth(19)).unwrap_or("ended");
    Command::new("sh")
        .args(["-c", THEN])
        .arg(pid.to_string())
        .arg(folder)
        .arg(began)
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

impl Drop for Node {
    fn drop(&mut self) {
        let mut child = self.child.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        child.kill().ok();
        child.wait().ok();
        let mut guard = self.guard.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        drop(guard.stdin.take());
        guard.wait().ok();
    }
}
