//! A temporary folder that is removed, together with the processes that work in it, however the program that created it
//! ends.
//!
//! A separate process, the guard (`portiere lab guard`), waits for the end of its input. The input ends when the folder
//! is dropped, and also when the program is interrupted or killed; then the guard ends the processes that it was told
//! of and removes the folder. It is in its own process group, so Ctrl-C does not reach it.

use load::Refusal;
use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use std::collections::HashSet;
use std::fs::Permissions;
use std::io::{BufRead, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// The prefix of such folders' names: a guard only ever removes folders with it.
const PREFIX: &str = "portiere-lab-";
/// The longest that a killed process may take to disappear.
const PATIENCE: Duration = Duration::from_secs(10);

/// A folder of mode 0700. Clones are the same folder, which is removed with the last of them.
#[derive(Clone)]
pub struct Folder(Arc<Held>);

struct Held {
    /// Dropped after the guard has ended the processes; usually the guard has removed all of it by then.
    folder: TempDir,
    guard: Mutex<Guard>,
}

/// The guard process, and the pipe that tells it what to guard.
struct Guard {
    child: Child,
    input: Option<ChildStdin>,
}

impl Folder {
    /// Creates a folder in `within` (by default where temporary files go), watched over by `program`.
    ///
    /// # Errors
    /// [`Refusal::Failure`] if it cannot be created or the guard cannot be started.
    pub fn new(program: &Path, within: Option<&Path>) -> Result<Folder, Refusal> {
        let place = within.map_or_else(std::env::temp_dir, Path::to_owned);
        let failed =
            |error: std::io::Error| Refusal::Failure(format!("cannot make a folder in {}: {error}", place.display()));
        let only_ours = Permissions::from_mode(0o700);
        let made = tempfile::Builder::new().prefix(PREFIX).permissions(only_ours).tempdir_in(&place);
        let folder = made.map_err(failed)?;
        let mut command = Command::new(program);
        command.args(["lab", "guard"]).arg(folder.path()).env_clear().process_group(0);
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn().map_err(|error| cannot_run(program, &error))?;
        let input = child.stdin.take();
        let held = Arc::new(Held { folder, guard: Mutex::new(Guard { child, input }) });
        let mut open = OPEN.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        open.retain(|held| held.strong_count() > 0);
        open.push(Arc::downgrade(&held));
        Ok(Folder(held))
    }

    /// Returns its path.
    pub fn path(&self) -> &Path {
        self.0.folder.path()
    }

    /// Starts a process that ends with the folder at the latest. Ctrl-C does not reach it.
    ///
    /// # Errors
    /// [`Refusal::Failure`] if it does not start.
    pub fn spawn(&self, command: &mut Command) -> Result<Child, Refusal> {
        // The lock is held meanwhile, so that the next caller finds a guard that knows of this process.
        let mut guard = self.0.guard.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let program = PathBuf::from(command.get_program());
        let child = command.process_group(0).spawn().map_err(|error| cannot_run(&program, &error))?;
        guard.tell('+', child.id());
        Ok(child)
    }

    /// Runs a program to its end, with `input` on its standard input, and returns what it printed.
    ///
    /// # Errors
    /// [`Refusal::Failure`] if it does not start or does not succeed: the last line of its error output.
    pub fn run(&self, command: &mut Command, input: &str) -> Result<String, Refusal> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let program = PathBuf::from(command.get_program());
        let mut child = self.spawn(command)?;
        if let Some(mut stdin) = child.stdin.take() {
            // A program that reads no input may be gone already.
            drop(stdin.write_all(input.as_bytes()));
        }
        let pid = child.id();
        let output = child.wait_with_output().map_err(|error| cannot_run(&program, &error))?;
        self.forget(pid);
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        let said = String::from_utf8_lossy(&output.stderr);
        let said = said.trim().lines().last().unwrap_or("a private command failed");
        Err(Refusal::Failure(said.strip_prefix("portiere: ").unwrap_or(said).to_owned()))
    }

    /// Ends such a process at once, and waits until it is gone.
    pub fn kill(&self, child: &mut Child) {
        // It may be gone already.
        drop((child.kill(), child.wait()));
        self.forget(child.id());
    }

    /// Removes a process that ended by itself from the guard's list: its PID may be reused.
    pub fn forget(&self, pid: u32) {
        self.0.guard.lock().unwrap_or_else(std::sync::PoisonError::into_inner).tell('-', pid);
    }
}

fn cannot_run(program: &Path, error: &std::io::Error) -> Refusal {
    Refusal::Failure(format!("{} cannot be run: {error}", program.display()))
}

impl Guard {
    /// Tells the guard to do its work, and waits for it.
    fn finish(&mut self) {
        drop(self.input.take());
        drop(self.child.wait());
    }

    fn tell(&mut self, sign: char, pid: u32) {
        // A guard that is gone guards nothing any more; the folder is still removed when it is dropped.
        drop(self.input.as_mut().map(|input| writeln!(input, "{sign}{pid}")));
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.guard.get_mut().unwrap_or_else(std::sync::PoisonError::into_inner).finish();
    }
}

/// All folders of this process.
static OPEN: Mutex<Vec<Weak<Held>>> = Mutex::new(Vec::new());

/// Whether [`end_all`] has begun.
static ENDING: AtomicBool = AtomicBool::new(false);

/// Ends all processes of all folders, and removes the folders: for a process that ends without dropping anything.
pub fn end_all() {
    ENDING.store(true, SeqCst);
    let open = std::mem::take(&mut *OPEN.lock().unwrap_or_else(std::sync::PoisonError::into_inner));
    for held in open.iter().filter_map(Weak::upgrade) {
        held.guard.lock().unwrap_or_else(std::sync::PoisonError::into_inner).finish();
    }
}

/// Returns unless [`end_all`] has begun. Errors after that come from removed folders: there is nothing to report, and
/// the process ends in a moment.
pub fn unless_ending() {
    while ENDING.load(SeqCst) {
        std::thread::park();
    }
}

/// Does the guard's work: waits for the end of `input`, which names processes that began (`+`) and ended (`-`), ends
/// those that are left, and removes the folder.
///
/// # Errors
/// [`Refusal`] if the folder is not one of ours or cannot be removed.
pub fn guard(folder: &Path, input: impl BufRead) -> Result<(), Refusal> {
    let ours = |folder: &Path| folder.file_name().is_some_and(|name| name.to_string_lossy().starts_with(PREFIX));
    if !ours(folder) {
        return Err(Refusal::Use(format!("{} is not a folder of the lab", folder.display())));
    }
    let mut running = HashSet::new();
    for line in input.lines().map_while(Result::ok) {
        match line.split_at_checked(1).map(|(sign, pid)| (sign, pid.parse::<i32>().ok().and_then(Pid::from_raw))) {
            Some(("+", Some(pid))) => drop(running.insert(pid)),
            Some(("-", Some(pid))) => drop(running.remove(&pid)),
            _ => {}
        }
    }
    end(&running);
    match std::fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(Refusal::Failure(format!("cannot remove {}: {error}", folder.display())))
        }
        _ => Ok(()),
    }
}

/// Ends processes that are not children of this one, all at once, and waits until they are gone.
fn end(running: &HashSet<Pid>) {
    let begun = Instant::now();
    for pid in running {
        // It may have gone by itself.
        let _ = kill_process(*pid, Signal::KILL);
    }
    while running.iter().any(|pid| is_there(*pid)) && begun.elapsed() < PATIENCE {
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Whether a process still runs. One that has ended without being reaped by its parent, as the first process of many a
/// container never does, has released everything.
fn is_there(pid: Pid) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).unwrap_or_default();
    let is_over = stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with(['Z', 'X']));
    !is_over && test_kill_process(pid) != Err(Errno::SRCH)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The guard is a process of its own; the server's tests run it as one.
    #[test]
    fn the_guard_ends_what_still_runs_and_removes_the_folder() {
        let folder = tempfile::Builder::new().prefix(PREFIX).tempdir().unwrap();
        std::fs::write(folder.path().join("file"), "x").unwrap();
        let start = || Command::new("sleep").arg("600").spawn().unwrap();
        let (mut ended, mut left) = (start(), start());
        let told = format!("+{}\n+{}\nnonsense\n\n-{}\n", ended.id(), left.id(), ended.id());
        let begun = Instant::now();
        guard(folder.path(), told.as_bytes()).unwrap();
        // Red without `is_over`: nobody has reaped it until here.
        assert!(begun.elapsed() < PATIENCE && !left.wait().unwrap().success() && !folder.path().exists());
        assert!(ended.try_wait().unwrap().is_none(), "it was taken off the list");
        ended.kill().unwrap();
        ended.wait().unwrap();
        guard(folder.path(), &b""[..]).unwrap();
    }

    #[test]
    fn a_folder_of_somebody_else_is_let_be() {
        let folder = tempfile::tempdir().unwrap();
        let refusal = guard(folder.path(), &b""[..]).unwrap_err();
        assert!(refusal.to_string().ends_with("is not a folder of the lab") && folder.path().exists(), "{refusal}");
    }
}
