//! What browsers object to in a certificate that TLS itself accepts: it has expired, or is for another name.

use rules::{Span, Time};
use rustls::client::{verify_server_cert_signed_by_trust_anchor, verify_server_name};
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, Error, RootCertStore};
use std::time::Duration;

/// Operators are warned so long before a certificate ends. Programs that renew certificates do it earlier.
const SOON: Span = Span::days(7);

/// Returns whether the certificate is past its end, near it, or before its beginning; in words that follow its name.
pub fn outlived(leaf: &CertificateDer<'_>, now: Time) -> Option<String> {
    match (validity(leaf, now), validity(leaf, now + SOON)) {
        (Some(CertificateError::ExpiredContext { not_after, .. }), _) => {
            Some(format!("ended at {}", moment(not_after)))
        }
        (Some(CertificateError::NotValidYetContext { not_before, .. }), _) => {
            Some(format!("is not valid before {}", moment(not_before)))
        }
        (_, Some(CertificateError::ExpiredContext { not_after, .. })) => Some(format!("ends at {}", moment(not_after))),
        _ => None,
    }
}

/// Returns when the certificate ends, to the second.
pub fn end(leaf: &CertificateDer<'_>) -> Option<Time> {
    match validity(leaf, Time(i64::MAX)) {
        Some(CertificateError::ExpiredContext { not_after, .. }) => Some(read(not_after)),
        _ => None,
    }
}

/// Returns whether the certificate is not for the name `host` (RFC 9525); in words that follow its name.
pub fn misnamed(leaf: &CertificateDer<'_>, host: &str) -> Option<String> {
    let leaf = ParsedCertificate::try_from(leaf).ok()?;
    let name = ServerName::try_from(host.trim_matches(['[', ']'])).ok()?;
    verify_server_name(&leaf, &name).err().map(|_| format!("is not for {host}"))
}

/// Returns what is wrong with the certificate at that moment. Its dates are checked first; that no root of trust is
/// known here does not matter.
fn validity(leaf: &CertificateDer<'_>, at: Time) -> Option<CertificateError> {
    let leaf = ParsedCertificate::try_from(leaf).ok()?;
    let at = UnixTime::since_unix_epoch(Duration::from_millis(at.0.try_into().unwrap_or(0)));
    let algorithms = aws_lc_rs::default_provider().signature_verification_algorithms;
    match verify_server_cert_signed_by_trust_anchor(&leaf, &RootCertStore::empty(), &[], at, algorithms.all) {
        Err(Error::InvalidCertificate(why)) => Some(why),
        _ => None,
    }
}

fn moment(time: UnixTime) -> String {
    rules::utc::iso(read(time))
}

fn read(time: UnixTime) -> Time {
    Time::from_seconds(time.as_secs().try_into().unwrap_or(i64::MAX))
}
