//! From a URL to a connection that the server has accepted.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::io;
use std::net::IpAddr;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::net::UnixStream;
use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode, SslNegotiation};
use tokio_postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream};
use tokio_postgres_rustls::MakeRustlsConnect;
use zeroize::Zeroizing;

use super::dial::dial;
use super::lane::Stream;
use super::tls;
use crate::caught::caught;
use crate::remote::{DATABASE, OpenError, Settings, is_of_tls};
use crate::sealing::{self, Renewed};

type Raw = Box<dyn Stream>;
type Sealed = <MakeRustlsConnect as MakeTlsConnect<Raw>>::Stream;

/// Where the servers are, and our credentials.
pub(super) struct Door {
    config: Config,
    places: Vec<Place>,
    tls: Renewed<MakeRustlsConnect>,
    /// The password from a file, if there is one.
    password: Option<Renewed<Zeroizing<String>>>,
    /// Whether TLS files were given: TLS is then wanted, wherever the server is.
    tls_is_meant: bool,
    /// The place that accepted us last; it is tried first.
    last: AtomicUsize,
    patience: Duration,
}

/// Why a place did not let us in.
enum Shut {
    /// It gave no answer, or has no room: it may open later.
    Silent(String),
    /// It does not open to those who come as the settings say.
    ForUs(String),
}

/// One of the servers that the URL names.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Place {
    host: At,
    port: u16,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum At {
    /// A folder with the server's socket.
    Folder(PathBuf),
    /// The name that the certificate has to match, and the address if it is known.
    Name(String, Option<IpAddr>),
}

/// The longest wait for one place, so that there is time for the next.
const PATIENCE: Duration = Duration::from_secs(3);

impl Door {
    /// Reads the URL and the TLS files.
    pub(super) fn new(settings: &Settings) -> Result<Self, OpenError> {
        let mut config = parse(&settings.url)?;
        if config.get_application_name().is_none() {
            config.application_name("portiere");
        }
        let places = places(&config)?;
        let patience = config.get_connect_timeout().copied().unwrap_or(PATIENCE).min(settings.timeout);
        let files = settings.tls.clone();
        let tls = Renewed::new(DATABASE, files.files(), move || tls::connector(&files))?;
        let kept = |file: PathBuf| Renewed::new(DATABASE, vec![file.clone()], move || sealing::password(&file));
        let password = settings.password.clone().map(kept).transpose()?;
        let tls_is_meant = settings.tls.authorities.is_some() || settings.tls.identity.is_some();
        Ok(Door { config, places, tls, password, tls_is_meant, last: AtomicUsize::new(0), patience })
    }

    /// Whether the URL names only one server, which no other replaces.
    pub(super) fn is_alone(&self) -> bool {
        self.places.len() == 1
    }

    /// The numbers of the places, in the order in which they are tried.
    pub(super) fn order(&self) -> impl Iterator<Item = usize> {
        let (first, count) = (self.last.load(Relaxed), self.places.len());
        (first..first + count).map(move |number| number % count)
    }

    /// Notes that this place accepted us and meets the requirements.
    pub(super) fn liked(&self, place: usize) {
        self.last.store(place, Relaxed);
    }

    /// Opens a connection to this place and signs in. Also returns what the server sent after it accepted us.
    pub(super) async fn enter(&self, place: usize) -> Result<(Box<dyn Stream>, Vec<u8>), OpenError> {
        let place = self.places.get(place).ok_or_else(|| OpenError::Settings("no such place".to_owned()))?;
        let entered = match tokio::time::timeout(self.patience, caught(self.try_enter(place))).await {
            Ok(entered) => entered.map_err(Shut::Silent).flatten(),
            Err(_) => Err(Shut::Silent(format!("no answer within {:?}", self.patience))),
        };
        entered.map_err(|shut| match shut {
            Shut::Silent(why) => OpenError::Unreachable(format!("{}: {why}", place.name())),
            Shut::ForUs(why) => OpenError::Refused(format!("{}: {why}", place.name())),
        })
    }

    async fn try_enter(&self, place: &Place) -> Result<(Box<dyn Stream>, Vec<u8>), Shut> {
        let (mut raw, near) = place.dial().await.map_err(Shut::Silent)?;
        let stream = if self.wants_tls(&place.host, near) {
            ask_for_tls(&mut raw).await?;
            let At::Name(name, _) = &place.host else {
                return Err(Shut::ForUs("TLS is not possible over a Unix socket".to_owned()));
            };
            let Ok(connect) = MakeTlsConnect::<Raw>::make_tls_connect(&mut self.tls.get().await, name);
            let sealed = connect.connect(raw).await;
            Carrier::Sealed(Box::new(sealed.map_err(|error| {
                let shut = if is_of_tls(&error) { Shut::ForUs } else { Shut::Silent };
                shut(format!("TLS: {error}"))
            })?))
        } else {
            Carrier::Plain(raw)
        };
        let wire = Arc::new(Mutex::new(Lendable { stream, inbox: Vec::new(), read: 0 }));
        let mut config = self.config.clone();
        if let Some(password) = &self.password {
            config.password(password.get().await.as_bytes());
        }
        // TLS, if any, is already established: nothing more has to be negotiated.
        config.ssl_mode(SslMode::Require).ssl_negotiation(SslNegotiation::Direct);
        let signed_in = config.connect_raw(Lent(Arc::clone(&wire)), AsIs).await;
        drop(signed_in.map_err(|error| {
            let shut = if is_refusal(&error) { Shut::ForUs } else { Shut::Silent };
            shut(sentence(&error))
        })?);
        let wire = Arc::into_inner(wire).ok_or_else(|| Shut::Silent("the connection is still in use".to_owned()))?;
        let Lendable { stream, inbox, read } = wire.into_inner().unwrap_or_else(PoisonError::into_inner);
        Ok((stream.into_stream(), inbox[read..].to_vec()))
    }

    /// Whether a connection uses TLS, unless the URL has `sslmode=disable`: always to another machine; here, if TLS
    /// files were given or the URL requires it. A local listener may relay what it gets to a server elsewhere.
    fn wants_tls(&self, host: &At, near: bool) -> bool {
        match (self.config.get_ssl_mode(), host) {
            (SslMode::Disable, _) | (_, At::Folder(_)) => false,
            (SslMode::Prefer, At::Name(..)) => self.tls_is_meant || !near,
            _ => true,
        }
    }
}

/// Parses a URL. Error messages never contain a part of the URL, which could be a part of the password.
fn parse(url: &str) -> Result<Config, OpenError> {
    let refused = |why: &str| OpenError::Settings(format!("the URL of the database cannot be read: {why}"));
    if !(url.starts_with("postgres://") || url.starts_with("postgresql://")) {
        return Err(refused("it does not begin with postgres://"));
    }
    if !url.split('%').skip(1).all(is_escape) {
        return Err(refused("a literal % must be written as %25"));
    }
    // The server's certificate and name are always checked, so verify-full and verify-ca are the same as require.
    let (place, query) = url.split_once('?').unwrap_or((url, ""));
    let options: Vec<&str> = query
        .split('&')
        .map(|option| match option {
            "sslmode=verify-full" | "sslmode=verify-ca" => "sslmode=require",
            "sslmode=allow" => "sslmode=prefer",
            other => other,
        })
        .filter(|option| !option.is_empty())
        .collect();
    let config = format!("{place}?{}", options.join("&")).parse().map_err(|error: tokio_postgres::Error| {
        let source = std::error::Error::source(&error).map(ToString::to_string).unwrap_or_default();
        match source.strip_prefix("invalid value for option ") {
            Some("`sslmode`") => refused("sslmode must be disable, allow, prefer, require, verify-ca or verify-full"),
            Some(option) => refused(&format!("invalid value for {option}")),
            None => refused("it has an unknown option, or a character that has to be percent-encoded"),
        }
    });
    let config: Config = config?;
    if config.get_ssl_negotiation() != SslNegotiation::default() {
        return Err(refused("sslnegotiation=direct is not supported: leave it out, and TLS is asked for first"));
    }
    Ok(config)
}

/// Whether what follows a `%` makes it an escape (RFC 3986 §2.1). The driver takes any other one as it is.
fn is_escape(rest: &str) -> bool {
    rest.get(..2).is_some_and(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()))
}

fn places(config: &Config) -> Result<Vec<Place>, OpenError> {
    let (hosts, addresses, ports) = (config.get_hosts(), config.get_hostaddrs(), config.get_ports());
    let count = hosts.len().max(addresses.len());
    if count == 0 {
        return Err(OpenError::Settings("the URL of the database names no host".to_owned()));
    }
    if ![0, 1, count].contains(&ports.len())
        || (!hosts.is_empty() && !addresses.is_empty() && hosts.len() != addresses.len())
    {
        return Err(OpenError::Settings("the URL of the database does not have one port for each host".to_owned()));
    }
    let place = |at: usize| {
        let address = addresses.get(at).copied();
        let host = match (hosts.get(at), address) {
            (Some(Host::Unix(folder)), _) => At::Folder(folder.clone()),
            (Some(Host::Tcp(name)), address) => At::Name(name.clone(), address),
            (None, Some(address)) => At::Name(address.to_string(), Some(address)),
            (None, None) => return None,
        };
        Some(Place { host, port: ports.get(at).or(ports.first()).copied().unwrap_or(5432) })
    };
    Ok((0..count).filter_map(place).collect())
}

impl Place {
    fn name(&self) -> String {
        match &self.host {
            At::Folder(folder) => format!("{} ({})", folder.display(), self.port),
            At::Name(name, _) => format!("{name}:{}", self.port),
        }
    }

    /// Connects, and returns whether the server is on this machine.
    async fn dial(&self) -> Result<(Raw, bool), String> {
        match &self.host {
            At::Folder(folder) => {
                let socket = UnixStream::connect(folder.join(format!(".s.PGSQL.{}", self.port))).await;
                socket.map(|socket| (Box::new(socket) as Raw, true)).map_err(|error| error.to_string())
            }
            At::Name(name, address) => {
                let socket = dial(name, *address, self.port).await.map_err(|error| error.to_string())?;
                let near = socket.peer_addr().is_ok_and(|peer| peer.ip().to_canonical().is_loopback());
                Ok((Box::new(socket), near))
            }
        }
    }
}

/// PostgreSQL documentation, "SSL Session Encryption": a request of its own, answered by one letter.
async fn ask_for_tls(raw: &mut Raw) -> Result<(), Shut> {
    let lost = |error: io::Error| Shut::Silent(error.to_string());
    raw.write_all(&[0, 0, 0, 8, 0x04, 0xd2, 0x16, 0x2f]).await.map_err(lost)?;
    match raw.read_u8().await.map_err(lost)? {
        b'S' => Ok(()),
        _ => Err(Shut::ForUs("the server does not support TLS; set sslmode=disable to connect without it".to_owned())),
    }
}

/// Whether an error says that the server would refuse the same again: whoever signs in (class 28), a database that does
/// not exist, rights that are missing; or that we refuse what it asks for.
fn is_refusal(error: &tokio_postgres::Error) -> bool {
    let Some(said) = error.as_db_error() else {
        let cause = std::error::Error::source(error);
        return !error.is_closed() && !cause.is_some_and(|cause| cause.is::<io::Error>());
    };
    let code = said.code().code();
    code.starts_with("28") || ["3D000", "42501"].contains(&code)
}

fn sentence(error: &tokio_postgres::Error) -> String {
    match (error.as_db_error(), std::error::Error::source(error)) {
        (Some(said), _) => format!("{} ({})", said.message(), said.code().code()),
        (None, Some(source)) => format!("{error}: {source}"),
        (None, None) => error.to_string(),
    }
}

/// The stream that carries the bytes.
enum Carrier {
    Plain(Raw),
    Sealed(Box<Sealed>),
}

impl Carrier {
    fn into_stream(self) -> Box<dyn Stream> {
        match self {
            Carrier::Plain(raw) => raw,
            Carrier::Sealed(sealed) => sealed,
        }
    }

    fn io(&mut self) -> Pin<&mut dyn Stream> {
        match self {
            Carrier::Plain(raw) => Pin::new(raw),
            Carrier::Sealed(sealed) => Pin::new(sealed),
        }
    }
}

/// A connection that is lent to `tokio_postgres` for signing in, and taken back.
struct Lendable {
    stream: Carrier,
    inbox: Vec<u8>,
    read: usize,
}

struct Lent(Arc<Mutex<Lendable>>);

impl Lent {
    fn hold(&self) -> MutexGuard<'_, Lendable> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl AsyncRead for Lent {
    /// Gives one byte at a time: a reader that stops after a message has then not begun the next one, and loses nothing
    /// with its buffer.
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let mut lent = self.hold();
        let lent = &mut *lent;
        if lent.read == lent.inbox.len() {
            let mut chunk = [0; 4096];
            let mut chunk = ReadBuf::new(&mut chunk);
            ready!(lent.stream.io().poll_read(context, &mut chunk))?;
            lent.inbox = chunk.filled().to_vec();
            lent.read = 0;
        }
        let byte = lent.inbox.get(lent.read..=lent.read).unwrap_or_default();
        into.put_slice(byte);
        lent.read += byte.len();
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Lent {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.hold().stream.io().poll_write(context, bytes)
    }
    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.hold().stream.io().poll_flush(context)
    }
    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.hold().stream.io().poll_shutdown(context)
    }
}

impl TlsStream for Lent {
    fn channel_binding(&self) -> ChannelBinding {
        match &self.hold().stream {
            Carrier::Plain(_) => ChannelBinding::none(),
            Carrier::Sealed(sealed) => sealed.channel_binding(),
        }
    }
}

/// Uses a stream as it is.
struct AsIs;

impl TlsConnect<Lent> for AsIs {
    type Stream = Lent;
    type Error = Infallible;
    type Future = Ready<Result<Lent, Infallible>>;
    fn connect(self, stream: Lent) -> Self::Future {
        ready(Ok(stream))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn door(url: &str) -> Result<Door, OpenError> {
        Door::new(&Settings::at(url))
    }

    #[test]
    fn a_url_names_servers_in_order() {
        let found = door("postgres://u:p@a:1,b:2/db?connect_timeout=1").unwrap();
        let place = |name: &str, port| Place { host: At::Name(name.to_owned(), None), port };
        assert_eq!(found.places, [place("a", 1), place("b", 2)]);
        assert_eq!(found.patience, Duration::from_secs(1));
        found.liked(1);
        assert_eq!((found.order().collect::<Vec<_>>(), found.is_alone()), (vec![1, 0], false));
        let found = door("postgresql://u@%2Fvar%2Frun/db").unwrap();
        assert_eq!(found.places, [Place { host: At::Folder("/var/run".into()), port: 5432 }]);
        assert!(found.is_alone());
    }

    #[test]
    fn other_machines_have_tls_unless_the_url_says_no() {
        let named = At::Name("db".to_owned(), None);
        for (query, near, wanted) in [
            ("", false, true),
            ("", true, false),
            ("sslmode=prefer", false, true),
            ("sslmode=allow", false, true),
            ("sslmode=disable", false, false),
            ("sslmode=require", true, true),
            ("sslmode=verify-ca", true, true),
            ("connect_timeout=9&sslmode=verify-full", true, true),
        ] {
            let door = door(&format!("postgres://u@db/db?{query}")).unwrap();
            assert_eq!(door.wants_tls(&named, near), wanted, "{query} {near}");
            assert!(!door.wants_tls(&At::Folder("/run".into()), true), "{query}");
            // Red where a local relay (HAProxy) is taken for the server: TLS files mean that it has to be checked.
            let meant = Door { tls_is_meant: true, ..door };
            assert_eq!(meant.wants_tls(&named, true), !query.contains("disable"), "{query}");
        }
    }

    #[test]
    fn what_would_change_how_a_connection_is_protected_is_not_passed_over() {
        // Red without get_ssl_negotiation: it would be asked for TLS in the open all the same.
        for option in ["sslnegotiation=direct", "sslmode=require&sslnegotiation=direct", "ssl%6Eegotiation=direct"] {
            let Err(OpenError::Settings(why)) = door(&format!("postgres://u@db/db?{option}")) else {
                panic!("{option}")
            };
            assert!(why.contains("sslnegotiation=direct is not supported"), "{why}");
        }
        assert!(door("postgres://u@db/db?sslnegotiation=postgres").is_ok());
        for option in ["sslcert=a.pem", "sslrootcert=a.pem", "gssencmode=require", "require_auth=scram-sha-256"] {
            assert!(door(&format!("postgres://u@db/db?{option}")).is_err(), "{option}");
        }
    }

    #[test]
    fn a_url_that_cannot_be_read_is_not_quoted() {
        for url in [
            "mysql://u:hunter2@a/db",
            "postgres://u:hunter2@a:port/db",
            "postgres://u:hunter2@a/db?sslmode=hunter2",
            "postgres://u:hunter2@a,b/db?port=1,2,3",
            "postgres:///db?user=hunter2",
            // Red without `is_escape`: the driver sends the password as it is written.
            "postgres://u:hunter2%zz@a/db",
            "postgres://u:hunter2%4@a/db",
            "postgres://u:hunter2@a/db%",
        ] {
            let Err(OpenError::Settings(why)) = door(url) else { panic!("{url}") };
            assert!(!why.contains("hunter"), "{why}");
        }
    }
}
