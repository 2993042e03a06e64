//! Connecting to a database server or another server: the TLS files, the password file, and what is made from them.

use std::fmt;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::fs::OFlags;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, Error, InconsistentKeys, RootCertStore};
use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};
use zeroize::Zeroizing;

use crate::remote::OpenError;

/// PEM files for TLS. A connection to another machine always uses TLS, unless the URL turns it off.
#[derive(Clone, Debug, Default)]
pub struct Tls {
    /// Certificates of the authorities that are trusted; the system's if there is none.
    pub authorities: Option<PathBuf>,
    /// Our certificate chain and its key, for servers that ask for a client certificate.
    pub identity: Option<(PathBuf, PathBuf)>,
}

impl Tls {
    /// The certificates of the trusted authorities. A system may have none; connections within it do not need them.
    pub(crate) fn believed(&self) -> Result<Vec<CertificateDer<'static>>, OpenError> {
        match &self.authorities {
            Some(file) => certificates(file),
            None => Ok(rustls_native_certs::load_native_certs().certs),
        }
    }

    /// Builds the TLS client configuration from these files.
    ///
    /// # Errors
    /// Names the file that cannot be used.
    pub fn config(&self) -> Result<ClientConfig, OpenError> {
        let failed = |error: Error| OpenError::Settings(format!("TLS: {error}"));
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

    /// The certificate chain and its key, as the files contain them.
    pub(crate) fn written(&self) -> Result<Option<Pair>, OpenError> {
        let Some((chain, key)) = &self.identity else { return Ok(None) };
        Ok(Some((content(chain)?, content(key)?)))
    }

    /// The files.
    pub fn files(&self) -> Vec<PathBuf> {
        let pair = self.identity.iter().flat_map(|(chain, key)| [chain, key]);
        self.authorities.iter().chain(pair).cloned().collect()
    }

    fn roots(&self) -> Result<RootCertStore, OpenError> {
        let mut roots = RootCertStore::empty();
        for certificate in self.believed()? {
            // The system's store may contain certificates that rustls cannot use.
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

/// The maximum length of a file of certificates, in bytes: the authorities of a whole system take a fifth of it.
const LONGEST: u64 = 1 << 20;

/// Returns the content of a file. Reading from a pipe would block, and a device would never end.
fn content(file: &Path) -> Result<Zeroizing<Vec<u8>>, OpenError> {
    let failed = |error: std::io::Error| unreadable(file, &error);
    let flags = i32::try_from(OFlags::NONBLOCK.bits()).unwrap_or_default();
    let open = File::options().read(true).custom_flags(flags).open(file).map_err(failed)?;
    let meta = open.metadata().map_err(failed)?;
    if !meta.is_file() || meta.len() > LONGEST {
        return Err(unreadable(file, &"it is not a regular file of 1 MiB at most"));
    }
    // Allocated at its final size: a buffer that grows leaves copies of a key or a password behind.
    let length = usize::try_from(meta.len()).unwrap_or_default();
    let mut text = Zeroizing::new(Vec::with_capacity(length + 1));
    open.take(LONGEST).read_to_end(&mut text).map_err(failed)?;
    Ok(text)
}

/// The longest password, in bytes.
const LONGEST_PASSWORD: usize = 1024;

/// Returns the password that a file holds, without the line ending that editors add.
pub(crate) fn password(file: &Path) -> Result<Zeroizing<String>, OpenError> {
    let text = content(file)?;
    let text = str::from_utf8(&text).map_err(|_| unreadable(file, &"it is not UTF-8"))?;
    let bare = text.strip_suffix('\n').map_or(text, |line| line.strip_suffix('\r').unwrap_or(line));
    match bare.len() {
        1..=LONGEST_PASSWORD if !bare.contains('\0') => Ok(Zeroizing::new(bare.to_owned())),
        _ => Err(unreadable(file, &format_args!("it is empty, longer than {LONGEST_PASSWORD} bytes, or no text"))),
    }
}

fn certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, OpenError> {
    let text = content(file)?;
    let read = CertificateDer::pem_slice_iter(&text).collect::<Result<Vec<_>, _>>();
    let found = read.map_err(|error| unreadable(file, &error))?;
    if found.is_empty() {
        return Err(unreadable(file, &"it contains no certificate"));
    }
    Ok(found)
}

/// A file that cannot be used.
fn unreadable(file: &Path, why: &dyn fmt::Display) -> OpenError {
    OpenError::File(file.to_owned(), why.to_string())
}

/// The error that says whether the certificate chain or its key cannot be used. The key is read first, so an error
/// about a certificate is about the chain.
fn unusable((chain, key): &(PathBuf, PathBuf), error: &Error) -> OpenError {
    if matches!(error, Error::InconsistentKeys(InconsistentKeys::KeyMismatch)) {
        return OpenError::Mismatch { certificate: chain.clone(), key: key.clone() };
    }
    let Error::InvalidCertificate(why) = error else {
        let of = if matches!(error, Error::NoCertificatesPresented) { chain } else { key };
        return unreadable(of, error);
    };
    let why = format!("{why:?}");
    // The error's name is all that the library passes on.
    if why.contains("UnsupportedCertVersion") {
        return unreadable(chain, &"the certificate is of X.509 version 1; version 3 is needed");
    }
    unreadable(chain, &format!("the certificate cannot be used: {why}"))
}

/// Connection settings that are rebuilt when their files change: certificates expire and passwords are changed, and a
/// server that outlives them needs the new ones when it has to reconnect.
pub struct Renewed<T> {
    files: Arc<Files<T>>,
    look: Mutex<Option<Look>>,
}

/// The files, and what was made from them.
struct Files<T> {
    /// Names the server that is reached with the files, as in "the files for connecting to …".
    whose: &'static str,
    named: Vec<PathBuf>,
    make: Box<Maker<T>>,
    kept: Mutex<Kept<T>>,
}

/// Builds the settings from the files.
type Maker<T> = dyn Fn() -> Result<T, OpenError> + Send + Sync;
/// A certificate chain and its key, as they are written.
type Pair = (Zeroizing<Vec<u8>>, Zeroizing<Vec<u8>>);

/// The settings, the stamps of the files that they were made from, and the stamps of files that could not be used.
struct Kept<T> {
    of: Vec<Stamp>,
    made: T,
    failed: Option<Vec<Stamp>>,
}

/// Tells one content of a file from the next; `None` if there is no file.
type Stamp = Option<(u64, i64, i64, u64)>;

/// Returns the stamps of these files.
fn stamps(files: &[PathBuf]) -> Vec<Stamp> {
    let stamp = |file: &PathBuf| {
        let meta = std::fs::metadata(file).ok()?;
        Some((meta.ino(), meta.mtime(), meta.mtime_nsec(), meta.len()))
    };
    files.iter().map(stamp).collect()
}

/// One look at the files, in progress or over.
#[derive(Clone)]
struct Look {
    began: Instant,
    /// Closed once the look is over, however it ended.
    over: watch::Receiver<()>,
    /// Whether it was logged that the look takes long.
    told: bool,
}

/// How long a connection attempt waits for a look. The whole attempt has only some seconds.
const WITHIN: Duration = Duration::from_secs(1);

impl<T: Clone + Send + 'static> Renewed<T> {
    /// Makes the settings from these files for the first time; `whose` names the server that is reached with them, as
    /// in "the files for connecting to …".
    ///
    /// # Errors
    /// Names the file that cannot be used.
    pub fn new(
        whose: &'static str,
        named: Vec<PathBuf>,
        make: impl Fn() -> Result<T, OpenError> + Send + Sync + 'static,
    ) -> Result<Self, OpenError> {
        // The stamps come first, so that a change made meanwhile is seen the next time.
        let of = stamps(&named);
        let made = make()?;
        let kept = Mutex::new(Kept { of, made, failed: None });
        let files = Files { whose, named, make: Box::new(make), kept };
        Ok(Renewed { files: Arc::new(files), look: Mutex::new(None) })
    }

    /// Returns the settings for the next connection. If the files cannot be used (which is logged once), they are the
    /// previous ones, and the files are tried again next time: they may be half replaced, or not be readable yet. The
    /// same if their file system does not answer, which must not stop the server. Needs a tokio runtime.
    pub async fn get(&self) -> T {
        if self.files.named.is_empty() {
            return self.files.kept().made.clone();
        }
        let mut look = self.look();
        // Nothing is ever sent on this channel: the look is over when the sender is dropped.
        if timeout_at(look.began + WITHIN, look.over.changed()).await.is_err() {
            self.tell_of(look.began);
        }
        self.files.kept().made.clone()
    }

    /// Returns the look in progress, or starts a new one on a thread that may block. There are never two: if a file
    /// system does not answer, each look would block a thread.
    fn look(&self) -> Look {
        let mut last = self.last();
        if let Some(look) = last.as_ref().filter(|look| look.over.has_changed().is_ok()) {
            return look.clone();
        }
        let (end, over) = watch::channel(());
        let files = Arc::clone(&self.files);
        drop(tokio::task::spawn_blocking(move || {
            let _end = end;
            files.renew();
        }));
        last.insert(Look { began: Instant::now(), over, told: false }).clone()
    }

    /// Logs, once, that the look that began then takes long.
    fn tell_of(&self, began: Instant) {
        let mut last = self.last();
        if let Some(look) = last.as_mut().filter(|look| look.began == began && !look.told) {
            look.told = true;
            tracing::warn!(
                "the files for connecting to {} are still being read: their file system does not answer; what was read before is \
                 used",
                self.files.whose
            );
        }
    }

    fn last(&self) -> MutexGuard<'_, Option<Look>> {
        self.look.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> Files<T> {
    /// The lock is held only for as long as copying takes, never while a file is being read.
    fn kept(&self) -> MutexGuard<'_, Kept<T>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Rebuilds the settings if the files have changed.
    fn renew(&self) {
        let stamps = stamps(&self.named);
        if self.kept().of == stamps {
            return;
        }
        let made = (self.make)();
        let mut kept = self.kept();
        match made {
            Ok(made) => {
                tracing::info!("the files for connecting to {} were reloaded", self.whose);
                *kept = Kept { of: stamps, made, failed: None };
            }
            Err(error) if kept.failed.as_ref() != Some(&stamps) => {
                tracing::warn!(
                    %error,
                    "new files for connecting to {} cannot be used: keeping the previous ones",
                    self.whose
                );
                kept.failed = Some(stamps);
            }
            Err(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::future::{Either, select};
    use std::pin::pin;
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
    use std::sync::mpsc;

    #[test]
    fn nobody_waits_at_a_pipe_and_nothing_is_read_that_does_not_end() {
        // Red without NONBLOCK in `content`: opening a pipe blocks until there is a writer.
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
    fn a_password_is_the_text_of_its_file_without_the_end_of_its_line() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("password");
        let long = "x".repeat(LONGEST_PASSWORD);
        for (kept, read) in [
            ("p%w @/:", Some("p%w @/:")),
            (" word \n", Some(" word ")),
            ("word\r\n", Some("word")),
            ("word\n\n", Some("word\n")),
            (&long, Some(&*long)),
            ("", None),
            ("\n", None),
            ("a\0b", None),
            (&format!("{long}x"), None),
        ] {
            std::fs::write(&file, kept).unwrap();
            assert_eq!(password(&file).ok().as_ref().map(|text| text.as_str()), read, "{} bytes", kept.len());
        }
        std::fs::write(&file, [0xff]).unwrap();
        for wrong in [&file, &folder.path().join("none")] {
            assert!(matches!(password(wrong), Err(OpenError::File(named, _)) if named == *wrong));
        }
    }

    #[test]
    fn what_is_wrong_is_said_of_the_file_that_it_is_in() {
        // Red where every error names the key's file.
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
        // The version as it is encoded: [0] { INTEGER 2 }.
        let at = first.windows(5).position(|five| five == [0xa0, 3, 2, 1, 2]).unwrap();
        first[at + 4] = 0;
        assert_eq!(tried(first, key(&one)), "chain: the certificate is of X.509 version 1; version 3 is needed");
        assert!(tried(whole[..40].to_vec(), key(&one)).starts_with("chain: the certificate cannot be used: "));
        // Red without KeyMismatch in `unusable`.
        assert_eq!(tried(whole, key(&other)), "the key in key does not belong to the certificate in chain");
    }

    #[tokio::test]
    async fn new_files_are_used_from_the_next_connection_on() {
        // Red where the first settings are kept for ever, or where unusable files replace settings that work.
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("ca.pem");
        let write = |text: &str| {
            let new = folder.path().join("new");
            std::fs::write(&new, text).unwrap();
            std::fs::rename(new, &file).unwrap();
        };
        write("first");
        let named = file.clone();
        let made = Renewed::new("a test", vec![file.clone()], move || {
            let text = std::fs::read_to_string(&named).map_err(|error| unreadable(&named, &error))?;
            if text == "bad" { Err(unreadable(&named, &"bad")) } else { Ok(Arc::new(text)) }
        })
        .unwrap();
        let first = made.get().await;
        assert!(Arc::ptr_eq(&first, &made.get().await), "nothing is made anew for nothing");
        for (text, used) in [("second", "second"), ("bad", "second"), ("third", "third")] {
            write(text);
            // On a busy machine a look may take longer than `get` waits for it.
            while *made.get().await != used || made.last().as_ref().unwrap().over.has_changed().is_ok() {}
        }
        std::fs::remove_file(&file).unwrap();
        assert_eq!(*made.get().await, "third");
    }

    #[tokio::test]
    async fn a_file_system_that_does_not_answer_keeps_nobody_waiting() {
        // Red where the connecting thread itself looks at the files: nothing else runs on it until they are read.
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("ca.pem");
        std::fs::write(&file, "first").unwrap();
        let (answer, answers) = mpsc::channel();
        let (answers, looks) = (Mutex::new(answers), Arc::new(AtomicUsize::new(0)));
        let looked = Arc::clone(&looks);
        let made = Renewed::new("a test", vec![file.clone()], move || {
            if looked.fetch_add(1, Relaxed) == 0 {
                return Ok("first");
            }
            // Ends by itself where nothing should wait for it, so that the test ends.
            let _ = answers.lock().unwrap().recv_timeout(Duration::from_secs(10));
            Ok("second")
        })
        .unwrap();
        std::fs::write(&file, "the second").unwrap();
        {
            let timer = pin!(tokio::time::sleep(Duration::from_millis(1)));
            let Either::Left(_) = select(timer, pin!(made.get())).await else { panic!("nothing ran beside it") };
        }
        // Pretends that the look began long ago.
        made.last().as_mut().unwrap().began -= WITHIN;
        assert_eq!((made.get().await, made.get().await), ("first", "first"), "what was made before is used");
        assert!(made.last().as_ref().unwrap().told, "and that is said");
        answer.send(()).unwrap();
        // Red without `over`: the next two calls would each start a look as well.
        drop(made.look().over.changed().await);
        assert_eq!(looks.load(Relaxed), 2, "one looks at a time");
        assert_eq!(made.get().await, "second", "once it answers, it is used");
    }
}
