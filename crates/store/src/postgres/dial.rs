//! Connects to the address of a name that answers first.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use tokio::net::{TcpStream, lookup_host};
use tokio::time::timeout;

/// How long one address may take before the next is tried in parallel (RFC 8305 §5).
const STAGGER: Duration = Duration::from_millis(250);
/// How long a server may leave sent data unacknowledged.
const UNCONFIRMED: Duration = Duration::from_secs(30);

/// Connects to `name`, at `address` if that is known.
pub(super) async fn dial(name: &str, address: Option<IpAddr>, port: u16) -> io::Result<TcpStream> {
    let addresses = match address {
        Some(address) => vec![SocketAddr::new(address, port)],
        None => lookup_host((name, port)).await?.collect(),
    };
    let socket = first(addresses).await?;
    socket.set_nodelay(true)?;
    keep_alive(&socket)?;
    Ok(socket)
}

/// Returns the first connection that succeeds: a dead machine does not answer, and the next may be there.
async fn first(addresses: Vec<SocketAddr>) -> io::Result<TcpStream> {
    let mut why = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
    let (mut addresses, mut tries) = (addresses.into_iter(), FuturesUnordered::new());
    loop {
        if let Some(next) = addresses.next() {
            tries.push(TcpStream::connect(next));
        }
        let tried = match addresses.len() {
            0 => Ok(tries.next().await),
            _ => timeout(STAGGER, tries.next()).await,
        };
        match tried {
            Ok(Some(Ok(socket))) => return Ok(socket),
            Ok(Some(Err(error))) => why = error,
            Ok(None) => return Err(why),
            Err(_) => {}
        }
    }
}

/// Turns on TCP keepalive. A caller that waits for a lock has sent everything, and would otherwise wait for a machine
/// that lost power for as long as its patience lasts: a day for a change of the schema.
fn keep_alive(socket: &TcpStream) -> rustix::io::Result<()> {
    use rustix::net::sockopt;
    sockopt::set_socket_keepalive(socket, true)?;
    sockopt::set_tcp_keepidle(socket, Duration::from_secs(15))?;
    sockopt::set_tcp_keepintvl(socket, Duration::from_secs(5))?;
    sockopt::set_tcp_keepcnt(socket, 3)?;
    // The same for a machine that vanished before it acknowledged data: the system would resend for 15 minutes.
    sockopt::set_tcp_user_timeout(socket, UNCONFIRMED.as_millis() as u32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::net::TcpSocket;

    /// A port that silently accepts no more connections.
    async fn silent() -> (SocketAddr, Vec<TcpStream>, tokio::net::TcpListener) {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let listener = socket.listen(0).unwrap();
        let (address, mut held) = (listener.local_addr().unwrap(), Vec::new());
        while let Ok(Ok(stream)) = timeout(Duration::from_millis(200), TcpStream::connect(address)).await {
            held.push(stream);
        }
        (address, held, listener)
    }

    #[tokio::test]
    async fn an_address_that_says_nothing_keeps_nobody_from_the_next() {
        // Red with addresses that are tried one after the other.
        let (silent, _held, _listener) = silent().await;
        let there = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = there.local_addr().unwrap();
        let found = timeout(Duration::from_secs(30), first(vec![silent, address])).await.unwrap().unwrap();
        assert_eq!(found.peer_addr().unwrap(), address);
    }

    #[tokio::test]
    async fn where_nobody_is_there_the_last_says_why() {
        let gone = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
        let refused = first(vec![gone, gone]).await.unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::ConnectionRefused);
        assert_eq!(first(Vec::new()).await.unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    #[tokio::test]
    async fn a_connection_that_confirms_nothing_ends() {
        let there = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = there.local_addr().unwrap().port();
        let socket = dial("localhost", Some("127.0.0.1".parse().unwrap()), port).await.unwrap();
        assert_eq!(rustix::net::sockopt::tcp_user_timeout(&socket).unwrap(), 30_000);
        assert!(rustix::net::sockopt::socket_keepalive(&socket).unwrap() && socket.nodelay().unwrap());
    }
}
