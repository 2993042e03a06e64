//! The reasons for a missing response, and their messages.

use super::{Wrong, trust};
use rustix::io::Errno;
use std::io::ErrorKind;
use std::net::{IpAddr, UdpSocket};
use tokio_rustls::rustls;

/// The reason why there is no response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// No connection could be made.
    Connect(ErrorKind),
    /// The same, because this process or this machine may not open more files: a limit of the generator's own.
    NoFiles,
    /// The same, because this machine has no local port left: a limit of the generator's own.
    NoPorts,
    /// A connection was made, but the TLS handshake failed for this reason.
    Tls(&'static str),
    /// The connection ended in the middle of a response, or before it.
    Closed,
    /// Reading or writing failed otherwise.
    Broken(ErrorKind),
    /// The response was not complete in time.
    Timeout,
    /// The answer is not an HTTP/1.1 response.
    Malformed(&'static str),
    /// The URL leads neither to this machine nor to an owned one.
    Url(Wrong),
}

impl Fault {
    /// Returns true if there was no connection at all: an immediate retry would loop and only keep a core busy. A
    /// connection that ended is another matter, because the next one is work for the server, as the last one was.
    pub const fn is_unconnected(self) -> bool {
        match self {
            Fault::Connect(_) | Fault::NoFiles | Fault::NoPorts | Fault::Tls(_) => true,
            Fault::Closed | Fault::Broken(_) | Fault::Timeout | Fault::Malformed(_) | Fault::Url(_) => false,
        }
    }
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Fault::Connect(kind) => write!(f, "no connection ({kind})"),
            Fault::NoFiles => {
                f.write_str("no connection: the generator itself may open no more files, which is no failure of the server (ulimit -n)")
            }
            Fault::NoPorts => f.write_str(
                "no connection: the generator itself has no port left, which is no failure of the server (keep connections open)",
            ),
            Fault::Tls(why) => write!(f, "TLS failed: {why}"),
            Fault::Closed => f.write_str("the connection was closed early"),
            Fault::Broken(kind) => write!(f, "the connection broke ({kind})"),
            Fault::Timeout => f.write_str("no response in time"),
            Fault::Malformed(what) => f.write_str(what),
            Fault::Url(wrong) => write!(f, "{wrong}"),
        }
    }
}

/// Returns why no connection to `address` could be made.
pub(super) fn unconnected(error: &std::io::Error, address: IpAddr) -> Fault {
    match Errno::from_io_error(error) {
        Some(Errno::MFILE | Errno::NFILE) => Fault::NoFiles,
        // No local port is left: ports of closed connections stay unavailable for a minute. A machine without IPv6
        // says the same of ::1, where it means that there is no such address.
        Some(Errno::ADDRNOTAVAIL) if !(address.is_loopback() && is_absent(address)) => Fault::NoPorts,
        _ => Fault::Connect(error.kind()),
    }
}

/// Returns true if this machine does not have this address: nothing can be bound to it. The ports of UDP are others
/// than those that connections use up.
fn is_absent(address: IpAddr) -> bool {
    let bound = UdpSocket::bind((address, 0));
    bound.is_err_and(|error| matches!(Errno::from_io_error(&error), Some(Errno::ADDRNOTAVAIL | Errno::AFNOSUPPORT)))
}

/// Returns which fault tells most of those of all addresses of a host: a limit of the generator's own, which is no
/// failure of the server, wherever it occurred; otherwise the first, because a server need not listen at the others.
pub(super) fn most_telling(faults: &[Fault]) -> Fault {
    let own = [Fault::NoFiles, Fault::NoPorts].into_iter().find(|own| faults.contains(own));
    own.or(faults.first().copied()).unwrap_or(Fault::Connect(ErrorKind::AddrNotAvailable))
}

/// Describes why TLS failed.
fn objection(error: &rustls::Error) -> &'static str {
    use rustls::{AlertDescription as Alert, CertificateError as Certificate, Error};
    match error {
        Error::InvalidCertificate(Certificate::UnknownIssuer | Certificate::BadSignature) => {
            "the certificate's issuer is not trusted (--ca FILE)"
        }
        Error::InvalidCertificate(Certificate::NotValidForName | Certificate::NotValidForNameContext { .. }) => {
            "the certificate is for another name (subjectAltName)"
        }
        Error::InvalidCertificate(Certificate::Expired | Certificate::ExpiredContext { .. }) => {
            "the certificate has expired"
        }
        Error::InvalidCertificate(Certificate::NotValidYet | Certificate::NotValidYetContext { .. }) => {
            "the certificate is not valid yet"
        }
        error if trust::is_of_an_authority(error) => {
            "the server uses a certificate authority's certificate as its own, which is trusted only if --ca FILE \
             names exactly that one"
        }
        Error::InvalidCertificate(_) => "the certificate is not trusted (--ca FILE)",
        Error::AlertReceived(Alert::CertificateRequired) => {
            "the server requires a client certificate, which is not supported here"
        }
        Error::PeerIncompatible(_) | Error::AlertReceived(Alert::ProtocolVersion) => {
            "the server offers no safe version or cipher (TLS 1.2 at least)"
        }
        Error::AlertReceived(Alert::HandshakeFailure) => {
            "the server offers no safe cipher, or requires a client certificate, which is not supported here"
        }
        Error::InvalidMessage(_) => "the server does not speak TLS",
        _ => "the server and the generator do not agree",
    }
}

/// Returns why an existing connection is no longer usable.
pub(super) fn broken(error: std::io::Error) -> Fault {
    if let Some(error) = error.get_ref().and_then(|inside| inside.downcast_ref::<rustls::Error>()) {
        return Fault::Tls(objection(error));
    }
    match error.kind() {
        ErrorKind::ConnectionReset | ErrorKind::BrokenPipe | ErrorKind::UnexpectedEof => Fault::Closed,
        kind => Fault::Broken(kind),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_may_open_no_more_files_is_told_from_who_is_not_let_in() {
        let of = |errno: Errno| unconnected(&errno.into(), IpAddr::from([127, 0, 0, 1]));
        assert_eq!([of(Errno::MFILE), of(Errno::NFILE)], [Fault::NoFiles; 2]);
        assert_eq!(of(Errno::ADDRNOTAVAIL), Fault::NoPorts);
        assert_eq!(of(Errno::CONNREFUSED), Fault::Connect(ErrorKind::ConnectionRefused));
        assert!(Fault::NoFiles.to_string().contains("the generator itself"));
    }

    /// Red without `is_absent`: a server that is not there was the generator's own limit on a machine without IPv6.
    #[test]
    fn an_address_that_the_machine_does_not_have_is_no_want_of_ports() {
        assert!(!is_absent(IpAddr::from([127, 0, 0, 1])) && is_absent(IpAddr::from([192, 0, 2, 1])));
        let sixth = IpAddr::V6(std::net::Ipv6Addr::LOCALHOST);
        let expected = if is_absent(sixth) { Fault::Connect(ErrorKind::AddrNotAvailable) } else { Fault::NoPorts };
        assert_eq!(unconnected(&Errno::ADDRNOTAVAIL.into(), sixth), expected);
        let far = IpAddr::from([192, 0, 2, 1]);
        assert_eq!(unconnected(&Errno::ADDRNOTAVAIL.into(), far), Fault::NoPorts, "one of another machine");
    }

    /// Red where the last address speaks for all: the server was blamed for the ports that the generator did not have.
    #[test]
    fn a_limit_of_the_generator_outweighs_what_the_other_address_says() {
        let [refused, absent] = [ErrorKind::ConnectionRefused, ErrorKind::AddrNotAvailable].map(Fault::Connect);
        for (faults, expected) in [
            (&[Fault::NoPorts, refused][..], Fault::NoPorts),
            (&[refused, Fault::NoPorts], Fault::NoPorts),
            (&[Fault::NoPorts, Fault::NoFiles], Fault::NoFiles),
            (&[refused, absent], refused),
            (&[], absent),
        ] {
            assert_eq!(most_telling(faults), expected, "{faults:?}");
        }
    }

    /// Red where a visitor pauses after a hang-up: a server that closes each connection got ten requests a second per
    /// user.
    #[test]
    fn only_who_gets_no_connection_would_go_round() {
        let refused = Fault::Connect(ErrorKind::ConnectionRefused);
        assert!(
            [refused, Fault::NoFiles, Fault::NoPorts, Fault::Tls("the server does not speak TLS")]
                .iter()
                .all(|f| f.is_unconnected())
        );
        let others = [
            Fault::Closed,
            Fault::Broken(ErrorKind::Other),
            Fault::Timeout,
            Fault::Malformed(""),
            Fault::Url(Wrong::NoTls),
        ];
        assert!(!others.iter().any(|fault| fault.is_unconnected()));
    }

    #[test]
    fn what_tls_objects_to_is_told() {
        use rustls::{CertificateError as Certificate, Error};
        let of = |error: Error| broken(std::io::Error::new(ErrorKind::InvalidData, error)).to_string();
        assert!(of(Error::InvalidCertificate(Certificate::UnknownIssuer)).contains("--ca FILE"));
        assert!(of(Error::InvalidCertificate(Certificate::Expired)).contains("has expired"));
        assert!(of(Error::InvalidCertificate(Certificate::NotValidForName)).contains("another name"));
        assert!(of(Error::AlertReceived(rustls::AlertDescription::CertificateRequired)).contains("client certificate"));
    }
}
