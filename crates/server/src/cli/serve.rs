//! `serve`.

use super::outcome::Failure;
use super::reach::own;
use crate::boot;
use crate::config::{Config, LogFormat};
use crate::logs::Logs;
use crate::loops::run_out;
use crate::net::hear_hangups;
use crate::private::is_empty;
use crate::profile::RUNTIME;
use clap::Args;
use rustix::process::{self, Resource, Rlimit, setrlimit};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{SignalKind, signal};

/// The arguments of `serve`.
#[derive(Clone, Debug, Args)]
pub struct Serve {
    /// An address to listen on; may be given several times [default: 127.0.0.1:8080 and [::1]:8080]
    #[arg(long, value_name = "ADDR:PORT", num_args = 1..)]
    pub listen: Vec<String>,
    /// The URL at which users and applications reach the server: the issuer [default: http://localhost (https with
    /// tls.certificate) with the port of --listen]
    #[arg(long, value_name = "URL")]
    pub public_url: Option<String>,
}

impl Serve {
    /// Returns the flags as options of the configuration.
    pub fn options(&self) -> Vec<(&'static str, String)> {
        let listen = self.listen.iter().map(|address| ("listen", address.clone()));
        listen.chain(self.public_url.iter().map(|url| ("public_url", url.clone()))).collect()
    }
}

/// Runs the server until it is told to stop. `no_core` tells whether core dumps could be turned off.
pub fn run(config: Config, json: bool, no_core: io::Result<()>) -> Result<(), Failure> {
    let failed = |error: &dyn std::fmt::Display| Failure::Failed(error.to_string());
    let runtime = runtime(config.log.format).map_err(|error| failed(&error))?;
    let _heard = {
        // First of all: a SIGHUP meanwhile must not end the process, nor a file that may grow no more (ulimit -f).
        let _inside = runtime.enter();
        (hear_hangups(), signal(SignalKind::from_raw(process::Signal::XFSZ.as_raw())))
    };
    may_begin(&config.server.data)?;
    let _logs = Logs::start(&config).map_err(|error| failed(&error))?;
    tell_of_cores(no_core);
    for warning in &config.warnings {
        tracing::warn!("{warning}");
    }
    Ok(run_out(runtime, Box::pin(boot::run(config, json)))?)
}

/// Starts the threads of the network. If the system gives the runtime no thread, it panics and then waits for those
/// that it got: the process would live and not listen. So the panic ends the process here.
fn runtime(format: LogFormat) -> io::Result<Runtime> {
    let threads = std::thread::available_parallelism().map_or(2, |cores| cores.get());
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |_| {
        let failure = Failure::Failed(NO_THREADS.to_owned());
        failure.tell_as(format);
        std::process::exit(failure.exit_code().into());
    }));
    let made = Builder::new_multi_thread().worker_threads(threads).thread_name(RUNTIME).enable_all().build();
    std::panic::set_hook(hook);
    made
}

/// Why a thread cannot be started.
const NO_THREADS: &str = "no more threads can be started: raise the limit of processes (ulimit -u, TasksMax, --pids-limit), or give it fewer cores";

/// Turns core dumps off, for good: the memory of a process that breaks down has keys and passwords in it. Linux
/// ignores a limit of 0 where core_pattern is a pipe (core(5)), as systemd-coredump's is, and hands over the whole
/// memory; a limit of exactly 1 stops the pipe, and is less than any file. Where only 0 is allowed, there is at least no
/// file.
pub fn leave_no_core() -> io::Result<()> {
    let at_most = |bytes| setrlimit(Resource::Core, Rlimit { current: Some(bytes), maximum: Some(bytes) });
    Ok(at_most(1).or_else(|_| at_most(0))?)
}

/// Warns, once there is a log, that turning core dumps off failed.
pub fn tell_of_cores(left: io::Result<()>) {
    if let Err(error) = left {
        tracing::warn!(%error, "cannot turn off core dumps, which contain keys and passwords: set LimitCORE=1");
    }
}

/// Refuses a first start in another user's folder: it makes keys, wherever the configuration has them, and root's would
/// keep the owner's server from starting. In a folder that was used before, what root leaves is its owner's.
fn may_begin(data: &Path) -> Result<(), Failure> {
    if boot::was_used(data) {
        return Ok(());
    }
    let us = process::geteuid().as_raw();
    let is_roots = data.metadata().is_ok_and(|folder| folder.uid() == 0);
    // A mount often belongs to root, also one that others may write to. Running as root would make nothing better.
    if is_roots && us != 0 {
        return Err(Failure::Failed(roots(data, us, seems_empty(is_empty(data)))));
    }
    own(data)
}

/// Says what to do about a folder of root's: any user who may can make a folder below it, which stays theirs at the
/// next mount. Giving the folder itself away is suggested only if nothing of others is in it.
fn roots(data: &Path, us: u32, is_empty: bool) -> String {
    let (below, data) = (data.join("portiere"), data.display());
    let or = if is_empty { format!(", or give it this one (chown {us} {data})") } else { String::new() };
    let below = below.display();
    format!("{data} belongs to root, and this is user {us}: name a folder in it for this alone, such as {below}{or}")
}

/// Takes a folder that only root may look into for empty: it was made for a service and never given to it.
fn seems_empty(looked: io::Result<bool>) -> bool {
    looked.unwrap_or_else(|error| error.kind() == io::ErrorKind::PermissionDenied)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_makes_no_keys_in_somebody_elses_folder() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(may_begin(folder.path()), Ok(()));
        // Only root can give a folder away.
        if rustix::process::geteuid().is_root() {
            std::os::unix::fs::chown(folder.path(), Some(12_345), None).unwrap();
            let refused = may_begin(folder.path()).unwrap_err();
            assert!(matches!(&refused, Failure::Failed(why) if why.contains("belongs to user 12345")), "{refused:?}");
            std::fs::write(folder.path().join("master.key"), "").unwrap();
            assert_eq!(may_begin(folder.path()), Ok(()), "where a server ran before, it runs again");
        }
    }

    #[test]
    fn who_is_given_a_mount_of_roots_is_told_of_a_folder_in_it() {
        // red where a mount that holds something has to be run by root: no user of a pod can be root.
        let told = |is_empty| roots(Path::new("/data"), 10_001, is_empty);
        let below =
            "/data belongs to root, and this is user 10001: name a folder in it for this alone, such as /data/portiere";
        assert_eq!(told(false), below);
        assert_eq!(told(true), format!("{below}, or give it this one (chown 10001 /data)"));
    }

    #[test]
    fn a_folder_of_roots_that_nobody_else_may_look_into_is_taken_for_empty() {
        // red where it is not: the user who is to get the folder would be told to run as root.
        let looked = |error: io::ErrorKind| seems_empty(Err(error.into()));
        assert_eq!((seems_empty(Ok(true)), seems_empty(Ok(false))), (true, false));
        assert_eq!((looked(io::ErrorKind::PermissionDenied), looked(io::ErrorKind::NotADirectory)), (true, false));
    }
}
