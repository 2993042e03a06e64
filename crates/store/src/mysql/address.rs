//! Parses `mysql://user:password@a:3306,b:3306/database?ssl-mode=required`.

use crate::remote::OpenError;

/// The servers, the account and the database that a URL names.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Address {
    /// In order of preference; at least one.
    pub(super) hosts: Vec<Host>,
    /// The account.
    pub(super) user: String,
    /// Its password.
    pub(super) password: Option<String>,
    /// The database, which has to exist.
    pub(super) database: String,
    /// Whether connections use TLS.
    pub(super) encryption: Encryption,
}

/// One server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Host {
    /// A name or an address, and a port.
    Tcp(String, u16),
    /// A socket on this machine.
    Socket(String),
}

impl Host {
    /// Whether the server is on this machine.
    pub(super) fn is_here(&self) -> bool {
        match self {
            Host::Socket(_) => true,
            Host::Tcp(name, _) => {
                name == "localhost" || name.parse().is_ok_and(|address: std::net::IpAddr| address.is_loopback())
            }
        }
    }
}

impl std::fmt::Display for Host {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Host::Socket(path) => out.write_str(path),
            Host::Tcp(name, port) if name.contains(':') => write!(out, "[{name}]:{port}"),
            Host::Tcp(name, port) => write!(out, "{name}:{port}"),
        }
    }
}

/// `ssl-mode`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Encryption {
    /// Always to other machines; on this machine if a certificate or authorities are given.
    Elsewhere,
    /// To every server.
    Required,
    /// To no server, because the operator says so.
    Disabled,
}

const PORT: u16 = 3306;

impl Address {
    /// Parses a URL. Errors do not repeat the URL, because it contains a password.
    pub(super) fn parse(url: &str) -> Result<Self, OpenError> {
        let rest = ["mysql://", "mariadb://"].iter().find_map(|scheme| url.strip_prefix(scheme));
        let rest = rest.ok_or_else(|| wrong("it does not begin with mysql://"))?;
        let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, database) = place.split_once('/').ok_or_else(|| wrong("it names no database"))?;
        let (account, hosts) = authority.rsplit_once('@').unwrap_or(("", authority));
        let (user, password) = match account.split_once(':') {
            Some((user, password)) => (decoded(user)?, Some(decoded(password)?)),
            None => (decoded(account)?, None),
        };
        let database = decoded(database)?;
        if user.is_empty() || database.is_empty() {
            return Err(wrong("it needs a user and a database: mysql://USER:PASSWORD@HOST/DATABASE"));
        }
        let mut encryption = Encryption::Elsewhere;
        let mut hosts = hosts.split(',').map(host).collect::<Result<Vec<_>, _>>()?;
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            match (name, decoded(value)?) {
                ("ssl-mode", mode) => encryption = mode_of(&mode)?,
                ("socket", path) if path.starts_with('/') => hosts = vec![Host::Socket(path)],
                _ => {
                    return Err(wrong(
                        "after the question mark only ssl-mode and socket (an absolute path) are allowed",
                    ));
                }
            }
        }
        Ok(Address { hosts, user, password, database, encryption })
    }
}

fn mode_of(mode: &str) -> Result<Encryption, OpenError> {
    match mode {
        "disabled" => Ok(Encryption::Disabled),
        "required" => Ok(Encryption::Required),
        _ => Err(wrong("ssl-mode must be disabled or required (which checks the certificate and its name)")),
    }
}

fn host(text: &str) -> Result<Host, OpenError> {
    let bad = || wrong("each host must be NAME, NAME:PORT or [ADDRESS]:PORT");
    let (name, port) = match text.strip_prefix('[') {
        Some(rest) => {
            let (name, port) = rest.split_once(']').ok_or_else(bad)?;
            (name, port.strip_prefix(':').or_else(|| port.is_empty().then_some("")).ok_or_else(bad)?)
        }
        None => text.split_once(':').unwrap_or((text, "")),
    };
    let port = if port.is_empty() { PORT } else { port.parse().map_err(|_| bad())? };
    if name.is_empty() { Err(bad()) } else { Ok(Host::Tcp(decoded(name)?, port)) }
}

/// Percent-decoding (RFC 3986 §2.1): `%40` is an `@`.
fn decoded(text: &str) -> Result<String, OpenError> {
    let bad = || wrong("a literal % must be written as %25");
    let mut bytes = Vec::with_capacity(text.len());
    let mut pieces = text.split('%');
    bytes.extend(pieces.next().unwrap_or("").bytes());
    for piece in pieces {
        let digits = piece.get(..2).filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()));
        bytes.push(digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()).ok_or_else(bad)?);
        bytes.extend(piece[2..].bytes());
    }
    String::from_utf8(bytes).map_err(|_| wrong("it is not UTF-8"))
}

fn wrong(why: &str) -> OpenError {
    OpenError::Settings(format!("the database's URL: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tcp(name: &str, port: u16) -> Host {
        Host::Tcp(name.to_owned(), port)
    }

    #[test]
    fn a_url_names_servers_in_order() {
        let address = Address::parse("mysql://port%40iere:p%3Aw%2F%25@a,b:3307,[::1]:3308,[::1]/facts").unwrap();
        assert_eq!(address.hosts, [tcp("a", 3306), tcp("b", 3307), tcp("::1", 3308), tcp("::1", 3306)]);
        assert_eq!((address.user.as_str(), address.password.as_deref()), ("port@iere", Some("p:w/%")));
        assert_eq!((address.database.as_str(), address.encryption), ("facts", Encryption::Elsewhere));
        assert_eq!(address.hosts[2].to_string(), "[::1]:3308");
    }

    #[test]
    fn a_url_says_how_to_connect() {
        let of = |url| Address::parse(url).unwrap();
        assert_eq!(of("mysql://u@db/facts?ssl-mode=disabled").encryption, Encryption::Disabled);
        assert_eq!(of("mariadb://u@localhost/facts?ssl-mode=required").encryption, Encryption::Required);
        let socket = of("mysql://u@localhost/facts?socket=/run/my%20sql.sock");
        assert_eq!(socket.hosts, [Host::Socket("/run/my sql.sock".to_owned())]);
        for (name, here) in
            [("localhost", true), ("127.0.0.2", true), ("::1", true), ("10.0.0.1", false), ("localhost.example", false)]
        {
            assert_eq!(tcp(name, 1).is_here(), here, "{name}");
        }
    }

    #[test]
    fn a_wrong_url_is_not_repeated() {
        for url in [
            "postgres://u:secret@h/d",
            "mysql://u:secret@h",
            "mysql://u:secret@h/",
            "mysql://:secret@h/d",
            "mysql://u:secret%4@h/d",
            "mysql://u:secret%ff@h/d",
            "mysql://u:secret%+1@h/d",
            "mysql://u:secret@h:99999/d",
            "mysql://u:secret@h,/d",
            "mysql://u:secret@[::1/d",
            "mysql://u:secret@[::1]x/d",
            "mysql://u:secret@h/d?ssl-mode=preferred",
            "mysql://u:secret@h/d?socket=relative",
            "mysql://u:secret@h/d?sslmode=require",
        ] {
            let Err(OpenError::Settings(why)) = Address::parse(url) else { panic!("{url}") };
            assert!(!why.contains("secret"), "{why}");
        }
    }
}
