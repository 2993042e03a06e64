//! Which certificates are trusted: those of authorities, and exactly the ones in the named file.

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::verify_server_name;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};
use std::sync::Arc;

/// Trusts what the library trusts, and one thing more: the certificate that a server presents, if exactly that one was
/// named, whoever issued it. That may be a CA certificate, as `openssl req -x509` makes them and curl, Node and Python
/// accept them, or the certificate of an authority that was not named.
#[derive(Debug)]
pub(super) struct Trust {
    by_authority: Arc<WebPkiServerVerifier>,
    named: Vec<CertificateDer<'static>>,
}

impl Trust {
    /// Trusts certificates of `roots`, and exactly the certificates in `named`.
    ///
    /// # Errors
    /// A message, if there is no authority to trust.
    pub fn of(
        roots: RootCertStore,
        named: Vec<CertificateDer<'static>>,
        provider: Arc<CryptoProvider>,
    ) -> Result<Trust, String> {
        let built = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider).build();
        Ok(Trust { by_authority: built.map_err(|error| error.to_string())?, named })
    }
}

/// Whether that is the only fault of a certificate: it is checked after the validity period, and before the name.
pub(super) fn is_of_an_authority(error: &Error) -> bool {
    matches!(error, Error::InvalidCertificate(CertificateError::Other(why)) if why.to_string() == "CaUsedAsEndEntity")
}

/// Whether a certificate lacks nothing but an issuer who is known: that, too, is checked after the validity period, and
/// before the name.
fn is_of_a_stranger(error: &Error) -> bool {
    matches!(error, Error::InvalidCertificate(CertificateError::UnknownIssuer | CertificateError::BadSignature))
}

impl ServerCertVerifier for Trust {
    fn verify_server_cert(
        &self,
        own: &CertificateDer<'_>,
        chain: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        match self.by_authority.verify_server_cert(own, chain, name, ocsp, now) {
            Err(error)
                if (is_of_an_authority(&error) || is_of_a_stranger(&error))
                    && self.named.iter().any(|named| named == own) =>
            {
                verify_server_name(&ParsedCertificate::try_from(own)?, name)?;
                Ok(ServerCertVerified::assertion())
            }
            outcome => outcome,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        own: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.by_authority.verify_tls12_signature(message, own, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        own: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.by_authority.verify_tls13_signature(message, own, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.by_authority.supported_verify_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    /// Makes the certificate that `openssl req -x509` makes: self-signed, and a CA.
    fn made(name: &str) -> CertificateDer<'static> {
        let mut params = rcgen::CertificateParams::new([name.to_owned()]).unwrap();
        params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        params.self_signed(&rcgen::KeyPair::generate().unwrap()).unwrap().der().clone()
    }

    /// Makes a certificate that an authority of the same name as its own, or of another, has issued.
    fn issued(name: &str, issuer: &str) -> CertificateDer<'static> {
        let params = |name: &str| {
            let mut params = rcgen::CertificateParams::new(["localhost".to_owned()]).unwrap();
            params.distinguished_name.push(rcgen::DnType::CommonName, name);
            params
        };
        let mut authority = params(issuer);
        authority.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        let authority = rcgen::Issuer::new(authority, rcgen::KeyPair::generate().unwrap());
        params(name).signed_by(&rcgen::KeyPair::generate().unwrap(), &authority).unwrap().der().clone()
    }

    fn trusting(certificate: &CertificateDer<'static>) -> Trust {
        let mut roots = RootCertStore::empty();
        roots.add(certificate.clone()).unwrap();
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        Trust::of(roots, vec![certificate.clone()], provider).unwrap()
    }

    /// Red without `is_of_a_stranger`: a private authority's certificate that `--ca` names was not trusted.
    #[test]
    fn who_issued_the_very_certificate_that_was_named_does_not_matter() {
        for issuer in ["authority", "server"] {
            let [named, other] = [(); 2].map(|()| issued("server", issuer));
            let trust = trusting(&named);
            let verified = |shown: &CertificateDer<'_>, name: &'static str, years: u64| {
                let now = UnixTime::since_unix_epoch(Duration::from_secs(years * 365 * 86_400));
                trust.verify_server_cert(shown, &[], &ServerName::try_from(name).unwrap(), &[], now).map(|_| ())
            };
            assert_eq!(verified(&named, "localhost", 56), Ok(()));
            assert!(is_of_a_stranger(&verified(&other, "localhost", 56).unwrap_err()), "another of the same name");
            for (name, years) in [("example.com", 56), ("localhost", 4000), ("localhost", 1)] {
                let error = verified(&named, name, years).unwrap_err();
                assert!(!is_of_a_stranger(&error), "{name} {years}: {error}");
            }
        }
    }

    /// Red with the library's own verifier. Red without either condition in `verify_server_cert`, or without the name.
    #[test]
    fn the_very_certificate_that_was_named_is_trusted_for_its_name_and_time() {
        let verified = |trust: &Trust, shown: &CertificateDer<'_>, name: &'static str, years: u64| {
            let now = UnixTime::since_unix_epoch(Duration::from_secs(years * 365 * 86_400));
            trust.verify_server_cert(shown, &[], &ServerName::try_from(name).unwrap(), &[], now).map(|_| ())
        };
        let (named, other) = (made("localhost"), made("localhost"));
        let trust = trusting(&named);
        assert_eq!(verified(&trust, &named, "localhost", 56), Ok(()));
        let is = |outcome: Result<(), Error>, expected: fn(&CertificateError) -> bool| match outcome {
            Err(Error::InvalidCertificate(error)) => assert!(expected(&error), "{error:?}"),
            outcome => panic!("{outcome:?}"),
        };
        is(verified(&trust, &named, "example.com", 56), |error| {
            matches!(error, CertificateError::NotValidForNameContext { .. })
        });
        is(verified(&trust, &named, "localhost", 4000), |error| {
            matches!(error, CertificateError::ExpiredContext { .. })
        });
        is(verified(&trust, &named, "localhost", 1), |error| {
            matches!(error, CertificateError::NotValidYetContext { .. })
        });
        assert!(
            is_of_an_authority(&verified(&trust, &other, "localhost", 56).unwrap_err()),
            "another of the same name"
        );
    }
}
