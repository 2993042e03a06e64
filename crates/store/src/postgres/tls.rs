//! Who is believed to be the server, and as whom we appear.

use std::sync::Arc;

use rustls::{ClientConfig, RootCertStore};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::remote::{OpenError, Tls, unreadable};

/// What seals connections. Certificates are always checked, with the name.
pub(super) fn connector(tls: &Tls) -> Result<MakeRustlsConnect, OpenError> {
    let failed = |error: rustls::Error| OpenError::Settings(format!("TLS to the database: {error}"));
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(failed)?
        .with_root_certificates(roots(tls)?);
    let config = match tls.presented()? {
        None => config.with_no_client_auth(),
        Some((chain, key)) => config.with_client_auth_cert(chain, key).map_err(failed)?,
    };
    Ok(MakeRustlsConnect::new(config))
}

fn roots(tls: &Tls) -> Result<RootCertStore, OpenError> {
    let mut roots = RootCertStore::empty();
    for certificate in tls.believed()? {
        // A system may have some that nobody can use.
        if let (Err(error), Some(file)) = (roots.add(certificate), &tls.authorities) {
            return Err(unreadable(file, &error));
        }
    }
    Ok(roots)
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
