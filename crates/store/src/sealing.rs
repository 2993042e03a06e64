//! TLS to a database server: the files for it, and what is made of them.

use std::fmt;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use rustix::fs::OFlags;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, Error, RootCertStore};

use crate::remote::OpenError;

/// Files for TLS, each PEM. A connection to another machine always has TLS, unless the URL says that it has not.
#[derive(Clone, Debug, Default)]
pub struct Tls {
    /// Certificates of authorities that are believed; the system's where there is none.
    pub authorities: Option<PathBuf>,
    /// Our certificate chain and its key, for servers that want one.
    pub identity: Option<(PathBuf, PathBuf)>,
}

impl Tls {
    /// The certificates of authorities that are believed. A system may have none, which no connection needs that stays there.
    pub(crate) fn believed(&self) -> Result<Vec<CertificateDer<'static>>, OpenError> {
        match &self.authorities {
            Some(file) => certificates(file),
            None => Ok(rustls_native_certs::load_native_certs().certs),
        }
    }

    /// What seals a connection with these.
    pub(crate) fn config(&self) -> Result<ClientConfig, OpenError> {
        let failed = |error: Error| OpenError::Settings(format!("TLS to the database: {error}"));
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(failed)?
            .with_root_certificates(self.roots()?);
        match (self.presented()?, &self.identity) {
            (Some((chain, key)), Some(files)) => {
                config.with_client_auth_cert(chain, key).map_err(|error| unusable(files, &error))
            }
            _ => Ok(config.with_no_client_auth()),
        }
    }

    /// The same, as it is written in the files.
    pub(crate) fn written(&self) -> Result<Option<Pair>, OpenError> {
        let Some((chain, key)) = &self.identity else { return Ok(None) };
        Ok(Some((content(chain)?, content(key)?)))
    }

    /// What tells these files from others.
    fn stamps(&self) -> Vec<Stamp> {
        let pair = self.identity.iter().flat_map(|(chain, key)| [chain, key]);
        let files = self.authorities.iter().chain(pair);
        files
            .map(|file| {
                let meta = std::fs::metadata(file).ok()?;
                Some((meta.ino(), meta.mtime(), meta.mtime_nsec(), meta.len()))
            })
            .collect()
    }

    fn roots(&self) -> Result<RootCertStore, OpenError> {
        let mut roots = RootCertStore::empty();
        for certificate in self.believed()? {
            // A system may have some that nobody can use.
            if let (Err(error), Some(file)) = (roots.add(certificate), &self.authorities) {
                return Err(unreadable(file, &error));
            }
        }
        Ok(roots)
    }

    /// Our certificate chain and its key.
    fn presented(&self) -> Result<Option<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>)>, OpenError> {
        let Some((chain, key)) = &self.identity else { return Ok(None) };
        let chain = certificates(chain)?;
        let key = PrivateKeyDer::from_pem_slice(&content(key)?).map_err(|error| unreadable(key, &error))?;
        Ok(Some((chain, key)))
    }
}

/// No file of certificates is longer, in bytes: authorities of a whole system take a fifth of that.
const LONGEST: u64 = 1 << 20;

/// What a file says. A pipe would keep its reader waiting, and a device would never end.
fn content(file: &Path) -> Result<Vec<u8>, OpenError> {
    let failed = |error: std::io::Error| unreadable(file, &error);
    let flags = i32::try_from(OFlags::NONBLOCK.bits()).unwrap_or_default();
    let open = File::options().read(true).custom_flags(flags).open(file).map_err(failed)?;
    let meta = open.metadata().map_err(failed)?;
    if !meta.is_file() || meta.len() > LONGEST {
        return Err(unreadable(file, &"it is not a regular file of 1 MiB at most"));
    }
    let mut text = Vec::new();
    open.take(LONGEST).read_to_end(&mut text).map_err(failed)?;
    Ok(text)
}

fn certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, OpenError> {
    let text = content(file)?;
    let read = CertificateDer::pem_slice_iter(&text).collect::<Result<Vec<_>, _>>();
    let found = read.map_err(|error| unreadable(file, &error))?;
    if found.is_empty() {
        return Err(unreadable(file, &"no certificate is in it"));
    }
    Ok(found)
}

/// A file that cannot be used.
fn unreadable(file: &Path, why: &dyn fmt::Display) -> OpenError {
    OpenError::File(file.to_owned(), why.to_string())
}

/// Which of a certificate chain and its key cannot be used. The key is read first, so that what is said of a certificate is of the
/// chain.
fn unusable((chain, key): &(PathBuf, PathBuf), error: &Error) -> OpenError {
    let Error::InvalidCertificate(why) = error else {
        let of = if matches!(error, Error::NoCertificatesPresented) { chain } else { key };
        return unreadable(of, error);
    };
    let why = format!("{why:?}");
    // Its name is all that the library passes on.
    if why.contains("UnsupportedCertVersion") {
        return unreadable(chain, &"the certificate is of X.509 version 1; version 3 is needed");
    }
    unreadable(chain, &format!("the certificate cannot be used: {why}"))
}

/// What connections are sealed with, made anew once its files are others: certificates end, and a server that runs for longer
/// needs the next one when it has to connect again.
pub(crate) struct Renewed<T> {
    tls: Tls,
    make: Box<Maker<T>>,
    kept: Mutex<Kept<T>>,
}

/// How it is made.
type Maker<T> = dyn Fn(&Tls) -> Result<T, OpenError> + Send + Sync;
/// A certificate chain and its key, as they are written.
type Pair = (Vec<u8>, Vec<u8>);

/// What was made, of which files, and of which others it could not be made.
struct Kept<T> {
    of: Vec<Stamp>,
    made: T,
    failed: Option<Vec<Stamp>>,
}

/// What tells one content of a file from the next; nothing where there is no file.
type Stamp = Option<(u64, i64, i64, u64)>;

impl<T: Clone> Renewed<T> {
    /// Makes it for the first time.
    pub(crate) fn new(
        tls: &Tls,
        make: impl Fn(&Tls) -> Result<T, OpenError> + Send + Sync + 'static,
    ) -> Result<Self, OpenError> {
        // The stamps first: what is written meanwhile is seen the next time.
        let stamps = tls.stamps();
        let made = make(tls)?;
        Ok(Renewed {
            tls: tls.clone(),
            make: Box::new(make),
            kept: Mutex::new(Kept { of: stamps, made, failed: None }),
        })
    }

    /// What the next connection is sealed with. Where the files cannot be used, which is said once, it is what was good before, and
    /// they are tried again for the next: they may be half replaced, or not be readable yet.
    pub(crate) fn get(&self) -> T {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let stamps = self.tls.stamps();
        if kept.of != stamps {
            match (self.make)(&self.tls) {
                Ok(made) => {
                    tracing::info!("the files for TLS to the database were read anew");
                    *kept = Kept { of: stamps, made, failed: None };
                }
                Err(error) if kept.failed.as_ref() != Some(&stamps) => {
                    tracing::warn!(%error, "new files for TLS to the database cannot be used, those of before are");
                    kept.failed = Some(stamps);
                }
                Err(_) => {}
            }
        }
        kept.made.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_waits_at_a_pipe_and_nothing_is_read_that_does_not_end() {
        // Red without NONBLOCK in `content`: whoever opens a pipe waits for who writes to it.
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, rustix::fs::Mode::RUSR, 0).unwrap();
        for file in [pipe, PathBuf::from("/dev/zero"), folder.path().to_owned()] {
            let pair = Some((file.clone(), file.clone()));
            let authorities = Tls { authorities: Some(file.clone()), identity: None };
            let identity = Tls { authorities: None, identity: pair };
            let errors = [authorities.believed().err(), identity.presented().err(), identity.written().err()];
            assert!(
                errors.iter().all(|error| matches!(error, Some(OpenError::File(named, _)) if *named == file)),
                "{errors:?}"
            );
        }
    }

    #[test]
    fn what_is_wrong_is_said_of_the_file_that_it_is_in() {
        // Red where every error is one of the key's file.
        let files = (PathBuf::from("chain"), PathBuf::from("key"));
        let made = || rcgen::generate_simple_self_signed(["a".to_owned()]).unwrap();
        let (one, other) = (made(), made());
        let key = |of: &rcgen::CertifiedKey<rcgen::KeyPair>| of.signing_key.serialize_der();
        let tried = |chain: Vec<u8>, key: Vec<u8>| {
            let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
            let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
            let config = config.with_root_certificates(RootCertStore::empty());
            let made = config.with_client_auth_cert(vec![chain.into()], PrivateKeyDer::try_from(key).unwrap());
            unusable(&files, &made.unwrap_err()).to_string()
        };
        let whole = one.cert.der().to_vec();
        let mut first = whole.clone();
        // The version, as it is written: [0] { INTEGER 2 }.
        let at = first.windows(5).position(|five| five == [0xa0, 3, 2, 1, 2]).unwrap();
        first[at + 4] = 0;
        assert_eq!(tried(first, key(&one)), "chain: the certificate is of X.509 version 1; version 3 is needed");
        assert!(tried(whole[..40].to_vec(), key(&one)).starts_with("chain: the certificate cannot be used: "));
        assert!(tried(whole, key(&other)).starts_with("key: "));
    }

    #[test]
    fn new_files_are_used_from_the_next_connection_on() {
        // Red where what was made first is kept for ever, or where files that cannot be used take away what was good.
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("ca.pem");
        let tls = Tls { authorities: Some(file.clone()), identity: None };
        let write = |text: &str| {
            let new = folder.path().join("new");
            std::fs::write(&new, text).unwrap();
            std::fs::rename(new, &file).unwrap();
        };
        write("first");
        let made = Renewed::new(&tls, |tls| {
            let file = tls.authorities.as_ref().unwrap();
            let text = std::fs::read_to_string(file).map_err(|error| unreadable(file, &error))?;
            if text == "bad" { Err(unreadable(file, &"bad")) } else { Ok(Arc::new(text)) }
        })
        .unwrap();
        let first = made.get();
        assert!(Arc::ptr_eq(&first, &made.get()), "nothing is made anew for nothing");
        for (text, used) in [("second", "second"), ("bad", "second"), ("third", "third")] {
            write(text);
            assert_eq!(*made.get(), used, "{text}");
        }
        std::fs::remove_file(&file).unwrap();
        assert_eq!(*made.get(), "third");
    }
}
