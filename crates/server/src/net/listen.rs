//! Binding the addresses, before anything else starts, and listening there, once everything else has.

use crate::config::Config;
use socket2::{Domain, Protocol, Socket, Type};
use std::fmt;
use std::io;
use std::net::SocketAddr;
use tokio::net::TcpListener;

/// Connections that the kernel may queue for us; it limits this to `net.core.somaxconn`.
const BACKLOG: i32 = 4096;

/// Why an address cannot be listened on.
#[derive(Debug)]
pub enum ListenError {
    /// Another process listens there.
    InUse(SocketAddr),
    /// The port needs a privilege that the process lacks.
    Forbidden(SocketAddr),
    /// No interface of this machine has that address.
    NotOurs(SocketAddr),
    /// Anything else.
    Other(SocketAddr, io::Error),
}

impl ListenError {
    fn of(address: SocketAddr, error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::AddrInUse => ListenError::InUse(address),
            io::ErrorKind::PermissionDenied => ListenError::Forbidden(address),
            io::ErrorKind::AddrNotAvailable => ListenError::NotOurs(address),
            _ => ListenError::Other(address, error),
        }
    }
}

impl fmt::Display for ListenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ListenError::InUse(address) => {
                write!(f, "{address} is in use by another program: stop it, or choose another port")
            }
            ListenError::Forbidden(address) => {
                write!(f, "not allowed to listen on {address}: ports below 1024 need CAP_NET_BIND_SERVICE")
            }
            ListenError::NotOurs(address) => write!(f, "this machine has no address {}", address.ip()),
            ListenError::Other(address, error) => write!(f, "cannot listen on {address}: {error}"),
        }
    }
}

impl std::error::Error for ListenError {}

/// Bound sockets, which keep their addresses from other programs and refuse connections: until the server has started,
/// proxies and probes see a closed port, and no connection that hangs.
#[derive(Debug)]
pub struct Bound(Vec<(SocketAddr, Socket)>);

impl Bound {
    /// Binds the configured addresses.
    pub fn of(config: &Config) -> Result<Self, ListenError> {
        Bound::to(&config.server.listen, config.listens_by_default())
    }

    /// Binds all of `addresses`, or none. With `lenient`, an IPv6 address next to an IPv4 one is skipped on a machine
    /// without IPv6.
    pub fn to(addresses: &[SocketAddr], lenient: bool) -> Result<Self, ListenError> {
        let mut bound = Vec::with_capacity(addresses.len());
        for address in addresses {
            match open(*address, addresses) {
                Ok(socket) => bound.push((*address, socket)),
                Err(error) if lenient && address.is_ipv6() && !bound.is_empty() && no_ipv6(&error) => {
                    tracing::info!(%address, "this machine has no IPv6: address left out");
                }
                Err(error) => return Err(ListenError::of(*address, error)),
            }
        }
        Ok(Bound(bound))
    }

    /// Returns the addresses, with the ports that the kernel chose where port 0 was requested.
    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.0.iter().filter_map(|(_, socket)| socket.local_addr().ok()?.as_socket()).collect()
    }

    /// Takes connections from now on. Fails if another program that bound the same address meanwhile was faster. Must
    /// run inside the runtime, which would take a socket that does not listen yet for a closed one.
    pub fn listen(self) -> Result<Listeners, ListenError> {
        let listening = |(address, socket): (SocketAddr, Socket)| {
            let listened = socket.listen(BACKLOG).and_then(|()| TcpListener::from_std(socket.into()));
            listened.map_err(|error| ListenError::of(address, error))
        };
        self.0.into_iter().map(listening).collect::<Result<Vec<_>, _>>().map(Listeners)
    }
}

/// Listening sockets, not yet accepting.
#[derive(Debug)]
pub struct Listeners(pub(super) Vec<TcpListener>);

impl Listeners {
    /// Binds all of `addresses`, or none, and listens there; see [`Bound`]. Must run inside the runtime.
    pub fn bind(addresses: &[SocketAddr], lenient: bool) -> Result<Self, ListenError> {
        Bound::to(addresses, lenient)?.listen()
    }

    /// Returns the sockets, for protocols other than HTTP.
    pub fn into_inner(self) -> Vec<TcpListener> {
        self.0
    }

    /// Returns the addresses, with the ports that the kernel chose where port 0 was requested.
    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.0.iter().filter_map(|listener| listener.local_addr().ok()).collect()
    }
}

/// Bytes of answers that the kernel keeps for a client that has not taken them yet (Linux doubles it for its own
/// overhead). By itself it lets that grow to some 4 MiB for each connection, in memory that all programs of the machine
/// share: 300 connections that read nothing held 1.1 GiB.
const SEND_BUFFER: usize = 64 * 1024;

fn open(address: SocketAddr, all: &[SocketAddr]) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    if address.is_ipv6() {
        // `[::]` alone serves both families; next to an IPv4 address of the same port it must leave IPv4 to that one.
        socket.set_only_v6(all.iter().any(|other| other.is_ipv4() && other.port() == address.port()))?;
    }
    // A restart must not wait for the connections of the previous process to leave TIME_WAIT.
    socket.set_reuse_address(true)?;
    // Accepted connections inherit it.
    socket.set_send_buffer_size(SEND_BUFFER)?;
    socket.bind(&address.into())?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}

fn no_ipv6(error: &io::Error) -> bool {
    use rustix::io::Errno;
    let unsupported = [Errno::AFNOSUPPORT, Errno::ADDRNOTAVAIL, Errno::PROTONOSUPPORT];
    error.raw_os_error().is_some_and(|number| unsupported.contains(&Errno::from_raw_os_error(number)))
}

/// Raises the limit of open files to the most that this process may have. Returns the limit in force.
pub fn raise_nofile() -> io::Result<u64> {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    if limit.current != limit.maximum {
        setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum })?;
    }
    Ok(limit.maximum.unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_client_that_reads_nothing_holds_little_of_the_kernels_memory() {
        // Red without SEND_BUFFER.
        let listeners = Listeners::bind(&["127.0.0.1:0".parse().unwrap()], false).unwrap();
        let client = Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP)).unwrap();
        client.set_recv_buffer_size(2048).unwrap();
        client.connect(&listeners.addresses()[0].into()).unwrap();
        let (server, _) = listeners.into_inner().remove(0).accept().await.unwrap();
        server.writable().await.unwrap();
        let held: usize = std::iter::from_fn(|| server.try_write(&[0; 4096]).ok()).sum();
        assert!(held <= 3 * SEND_BUFFER, "{held} bytes");
    }
}
