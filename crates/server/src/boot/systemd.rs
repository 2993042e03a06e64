//! Tells the manager that started this server how far it is (sd_notify(3)): systemd waits for that, where the unit says
//! `Type=notify`.

use crate::config;
use std::io;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// The server answers.
pub const READY: &str = "READY=1";
/// It was told to stop.
pub const STOPPING: &str = "STOPPING=1";

/// The variable that names the manager's socket, if there is a manager that wants to know.
const SOCKET: &str = "NOTIFY_SOCKET";

/// Tells the manager, if there is one. A server that it does not hear works all the same.
pub fn tell(state: &str) {
    let named = config::environment().into_iter().find(|(name, value)| name == SOCKET && !value.is_empty());
    if let Some((_, socket)) = named
        && let Err(error) = send(&socket, state)
    {
        tracing::warn!(%error, "cannot tell the service manager {state}: NOTIFY_SOCKET leads nowhere");
    }
}

fn send(socket: &str, state: &str) -> io::Result<()> {
    let datagram = UnixDatagram::unbound()?;
    // A manager that reads nothing does not hold up the server.
    datagram.set_nonblocking(true)?;
    datagram.send_to_addr(state.as_bytes(), &address(socket)?).map(drop)
}

/// Returns the address of a path, or, on Linux, of a name without a file, which is written with `@` before it.
fn address(socket: &str) -> io::Result<SocketAddr> {
    #[cfg(target_os = "linux")]
    if let Some(name) = socket.strip_prefix('@') {
        return <SocketAddr as std::os::linux::net::SocketAddrExt>::from_abstract_name(name);
    }
    SocketAddr::from_pathname(socket)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manager_is_told_at_a_path_and_at_a_name() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notify").display().to_string();
        for socket in [path.clone(), format!("@portiere-test-{}", std::process::id())] {
            let manager = UnixDatagram::bind_addr(&address(&socket).unwrap()).unwrap();
            for state in [READY, STOPPING] {
                send(&socket, state).unwrap();
                let mut heard = [0; 64];
                let length = manager.recv(&mut heard).unwrap();
                assert_eq!(&heard[..length], state.as_bytes(), "{socket}");
            }
        }
        assert!(send(&path, READY).is_err(), "nobody reads there any more");
    }
}
