//! Who is believed to be the server, and as whom we appear.

use std::path::Path;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::remote::{OpenError, Tls};

/// What seals connections. Certificates are always checked, with the name.
pub(super) fn connector(tls: &Tls) -> Result<MakeRustlsConnect, OpenError> {
    let failed = |error: rustls::Error| OpenError::Settings(format!("TLS to the database: {error}"));
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(failed)?
        .with_root_certificates(authorities(tls.authorities.as_deref())?);
    let config = match &tls.identity {
        None => config.with_no_client_auth(),
        Some((chain, key)) => {
            let key = PrivateKeyDer::from_pem_file(key).map_err(|error| unreadable(key, &error))?;
            config.with_client_auth_cert(certificates(chain)?, key).map_err(failed)?
        }
    };
    Ok(MakeRustlsConnect::new(config))
}

fn authorities(file: Option<&Path>) -> Result<RootCertStore, OpenError> {
    let mut roots = RootCertStore::empty();
    match file {
        Some(file) => {
            for certificate in certificates(file)? {
                roots.add(certificate).map_err(|error| unreadable(file, &error))?;
            }
        }
        // None at all is no error here: a connection that stays on this machine needs none.
        None => drop(roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs)),
    }
    Ok(roots)
}

fn certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, OpenError> {
    let read = CertificateDer::pem_file_iter(file).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let found = read.map_err(|error| unreadable(file, &error))?;
    if found.is_empty() {
        return Err(OpenError::Settings(format!("{}: no certificate is in it", file.display())));
    }
    Ok(found)
}

fn unreadable(file: &Path, why: &dyn std::fmt::Display) -> OpenError {
    OpenError::Settings(format!("{}: {why}", file.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_cannot_be_used_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let empty = folder.path().join("empty.pem");
        std::fs::write(&empty, "").unwrap();
        let missing = folder.path().join("missing.pem");
        for tls in [
            Tls { authorities: Some(missing.clone()), identity: None },
            Tls { authorities: Some(empty.clone()), identity: None },
            Tls { authorities: None, identity: Some((missing.clone(), missing)) },
            Tls { authorities: None, identity: Some((empty.clone(), empty)) },
        ] {
            let Err(OpenError::Settings(why)) = connector(&tls).map(drop) else { panic!("{tls:?}") };
            assert!(why.contains(".pem"), "{why}");
        }
        assert!(connector(&Tls::default()).is_ok());
    }
}
