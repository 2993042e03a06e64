//! The trusted authorities, and our client certificate.

use tokio_postgres_rustls::MakeRustlsConnect;

use crate::remote::{OpenError, Tls};

/// Makes the TLS connector. Certificates are always checked, including the name.
pub(super) fn connector(tls: &Tls) -> Result<MakeRustlsConnect, OpenError> {
    tls.config().map(MakeRustlsConnect::new)
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
            let Err(OpenError::File(file, why)) = connector(&tls).map(drop) else { panic!("{tls:?}") };
            assert!(file.extension().is_some_and(|end| end == "pem"), "{why}");
        }
        assert!(connector(&Tls::default()).is_ok());
    }
}
