//! What signals do to a server, but for those that end it.

use crate::support::*;
use rustix::process::{Pid, Signal, kill_process};

/// Sends a signal, as `kill` does.
fn signal(pid: u32, signal: Signal) {
    kill_process(Pid::from_raw(i32::try_from(pid).unwrap()).unwrap(), signal).unwrap();
}

/// Red where net/serve.rs hears SIGHUP only with TLS: whoever hears it not is ended by it.
#[test]
fn sighup_without_tls_ends_nothing() {
    let server = Server::start(&[]);
    server.pids().into_iter().for_each(|pid| signal(pid, Signal::HUP));
    until("SIGHUP is answered", || server.logs().iter().all(|log| log.contains("nothing to read again")));
    assert_eq!(server.get("/healthz").status, 200);
    assert_eq!(server.stop(), Some(0));
}
