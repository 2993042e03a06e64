//! TLS from certificate files, which are read again when they change.

use super::certificate::{end, misnamed, outlived};
use app::clock::Clock;
use rules::Time;
use rustix::fs::OFlags;
use rustls::ServerConfig;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::fmt;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::{Instant, MissedTickBehavior};
use tokio_rustls::TlsAcceptor;
use zeroize::Zeroizing;

/// How often the files are checked.
const LOOK_EVERY: Duration = Duration::from_secs(30);
/// How often a warning about the certificate is repeated.
const SAY_EVERY: Duration = Duration::from_secs(24 * 3600);
/// How long a check may take before that is logged.
const LOOK_WITHIN: Duration = Duration::from_secs(5);
/// How often that is logged again.
const STALLED_EVERY: Duration = Duration::from_secs(3600);
/// The longest file that is read, in bytes: more than any certificate chain has.
const LONGEST: u64 = 1 << 20;

/// Why the files do not make a TLS server.
#[derive(Debug)]
pub enum TlsError {
    /// A file cannot be read.
    Unreadable(PathBuf, std::io::Error),
    /// A file holds no certificate (or no private key) in PEM.
    Empty(PathBuf, &'static str),
    /// A file is not what it should be.
    Invalid(PathBuf, String),
    /// The key belongs to another certificate.
    Mismatch {
        /// The certificate's file.
        certificate: PathBuf,
        /// The key's file.
        key: PathBuf,
    },
}

impl fmt::Display for TlsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TlsError::Unreadable(file, error) => write!(f, "cannot read {}: {error}", file.display()),
            TlsError::Empty(file, what) => write!(f, "{} holds no {what} in PEM", file.display()),
            TlsError::Invalid(file, why) => write!(f, "{} cannot be used: {why}", file.display()),
            TlsError::Mismatch { certificate, key } => {
                write!(
                    f,
                    "the key in {} does not belong to the certificate in {}",
                    key.display(),
                    certificate.display()
                )
            }
        }
    }
}

impl std::error::Error for TlsError {}

impl TlsError {
    /// Returns the option to look at, if `certificate` is the certificate's file. One file may hold the key as well: it
    /// is read for the certificate first.
    pub fn option(&self, certificate: &Path) -> &'static str {
        let of_certificate = match self {
            TlsError::Unreadable(file, _) | TlsError::Invalid(file, _) => file == certificate,
            TlsError::Empty(_, what) => *what == CERTIFICATE,
            TlsError::Mismatch { .. } => false,
        };
        if of_certificate { "tls.certificate" } else { "tls.key" }
    }
}

/// The certificate in force, and the files that it came from.
pub struct TlsReload {
    certificate: PathBuf,
    key: PathBuf,
    /// The host of the public URL.
    host: String,
    seen: Mutex<Stamp>,
    current: RwLock<Pair>,
    /// Failed handshakes.
    failed: AtomicU64,
}

/// A usable certificate, with its key.
struct Pair {
    config: Arc<ServerConfig>,
    leaf: CertificateDer<'static>,
}

/// What changes about two files if either is written or replaced.
type Stamp = [Option<(u64, i64, i64, u64)>; 2];

impl TlsReload {
    /// Reads both files. In its file, the certificate comes first, then its chain. It should be for `host`.
    pub fn load(certificate: &Path, key: &Path, host: &str) -> Result<Arc<Self>, TlsError> {
        let seen = Mutex::new(stamp(certificate, key));
        let current = RwLock::new(read(certificate, key)?);
        let (certificate, key, host) = (certificate.to_owned(), key.to_owned(), host.to_owned());
        Ok(Arc::new(TlsReload { certificate, key, host, seen, current, failed: AtomicU64::new(0) }))
    }

    /// Reads both files again. On an error, the certificate in force stays, and the files are read again at the next
    /// check: their permissions may change without a change of the files.
    pub fn reload(&self) -> Result<(), TlsError> {
        // Taken before the files are read, so that a change during the read is noticed the next time.
        let seen = stamp(&self.certificate, &self.key);
        let fresh = read(&self.certificate, &self.key)?;
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = fresh;
        *self.seen.lock().unwrap_or_else(PoisonError::into_inner) = seen;
        Ok(())
    }

    /// Reads the files again if they changed since they were last read successfully, and logs the outcome.
    pub fn reload_if_changed(&self) {
        if *self.seen.lock().unwrap_or_else(PoisonError::into_inner) != stamp(&self.certificate, &self.key) {
            self.reload_and_log();
        }
    }

    /// Checks the files, and reads them if they changed or if somebody `asked`, on a thread that may block: a file
    /// system that does not answer must not stop the threads that serve. Ready when it is done, so that no second check
    /// begins before that; returns the warnings of [`TlsReload::doubts`].
    pub(super) async fn look(self: &Arc<Self>, asked: bool) -> Vec<String> {
        let tls = Arc::clone(self);
        let mut looking = tokio::task::spawn_blocking(move || {
            match asked {
                true => tls.reload_and_log(),
                false => tls.reload_if_changed(),
            }
            tls.doubts()
        });
        let mut patience = LOOK_WITHIN;
        loop {
            if let Ok(doubts) = tokio::time::timeout(patience, &mut looking).await {
                return doubts.unwrap_or_default();
            }
            tracing::error!(
                certificate = %self.certificate.display(),
                key = %self.key.display(),
                "the TLS files are still being read: their file system does not answer; the old certificate stays"
            );
            patience = STALLED_EVERY;
        }
    }

    fn reload_and_log(&self) {
        match self.reload() {
            Ok(()) => tracing::info!(certificate = %self.certificate.display(), "TLS certificate read again"),
            Err(error) => tracing::error!(%error, "TLS certificate not replaced, the old one stays"),
        }
    }

    /// Counts a failed handshake.
    pub(super) fn fails(&self) {
        self.failed.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the failed handshakes since the start.
    pub fn failed(&self) -> u64 {
        self.failed.load(Ordering::Relaxed)
    }

    pub(super) fn acceptor(&self) -> TlsAcceptor {
        Arc::clone(&self.current.read().unwrap_or_else(PoisonError::into_inner).config).into()
    }

    /// Returns a sentence if the certificate in force has ended, or ends within a week.
    pub fn outlived(&self) -> Option<String> {
        let current = self.current.read().unwrap_or_else(PoisonError::into_inner);
        outlived(&current.leaf, Clock::system().now()).map(|why| self.about(&why))
    }

    /// Returns when the certificate in force ends.
    pub fn end(&self) -> Option<Time> {
        end(&self.current.read().unwrap_or_else(PoisonError::into_inner).leaf)
    }

    /// Returns what browsers mind about the certificate, or will soon, and whether its key is secret: a sentence each.
    pub fn doubts(&self) -> Vec<String> {
        let named = misnamed(&self.current.read().unwrap_or_else(PoisonError::into_inner).leaf, &self.host);
        self.outlived()
            .into_iter()
            .chain(named.map(|why| self.about(&why)))
            .chain(bared("TLS key", &self.key))
            .collect()
    }

    fn about(&self, why: &str) -> String {
        format!("the TLS certificate in {} {why}", self.certificate.display())
    }
}

/// Returns a sentence if every user of the machine may read or write the key of a certificate. Programs share
/// certificates and keys by groups: a group is no reason to refuse, nor is a certificate that works one to stop for.
pub fn bared(what: &str, key: &Path) -> Option<String> {
    let mode = std::fs::metadata(key).ok()?.mode() & 0o777;
    let name = key.display();
    (mode & 0o007 != 0).then(|| {
        format!("the {what} in {name} is open to everybody (mode {mode:04o}): make it its owner's alone (chmod 600)")
    })
}

/// Keeps SIGHUP from ending the process from now on. Must run inside the runtime.
pub fn hear_hangups() -> Option<Signal> {
    let heard = signal(SignalKind::hangup());
    heard.inspect_err(|error| tracing::error!(%error, "cannot listen for SIGHUP, which would end the server")).ok()
}

/// Checks the files every half minute, and reads them at SIGHUP; without files, logs that there are none. Never ends.
pub(super) async fn watch(tls: Option<Arc<TlsReload>>, mut hangup: Option<Signal>) {
    let Some(tls) = tls else {
        loop {
            next_hangup(&mut hangup).await;
            tracing::info!("SIGHUP: there is no certificate to read again, since this server has no TLS");
        }
    };
    let (mut ticks, mut told) = (tokio::time::interval(LOOK_EVERY), None);
    // After a check that took long, the next one is half a minute away again.
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let asked = tokio::select! {
            _ = ticks.tick() => false,
            () = next_hangup(&mut hangup) => true,
        };
        tell(tls.look(asked).await, &mut told);
    }
}

/// Ready at the next SIGHUP.
pub async fn next_hangup(hangup: &mut Option<Signal>) {
    match hangup {
        Some(signal) => {
            signal.recv().await;
        }
        None => std::future::pending().await,
    }
}

/// Logs the warnings if they are new, and again now and then.
fn tell(doubts: Vec<String>, told: &mut Option<(Vec<String>, Instant)>) {
    if told.as_ref().is_some_and(|(before, at)| *before == doubts && at.elapsed() < SAY_EVERY) {
        return;
    }
    doubts.iter().for_each(|doubt| tracing::warn!("{doubt}"));
    *told = Some((doubts, Instant::now()));
}

fn stamp(certificate: &Path, key: &Path) -> Stamp {
    [certificate, key].map(|file| {
        let meta = std::fs::metadata(file).ok()?;
        Some((meta.ino(), meta.mtime(), meta.mtime_nsec(), meta.len()))
    })
}

/// Reads both files for TLS 1.3 and 1.2 (RFC 9325), with HTTP/2 and HTTP/1.1 offered by ALPN (RFC 7301).
fn read(certificate: &Path, key: &Path) -> Result<Pair, TlsError> {
    let chain = CertificateDer::pem_slice_iter(&content(certificate)?).collect::<Result<Vec<_>, _>>();
    let chain = chain.map_err(|error| pem_error(certificate, CERTIFICATE, error))?;
    let Some(leaf) = chain.first().cloned() else {
        return Err(TlsError::Empty(certificate.to_owned(), CERTIFICATE));
    };
    let text = content(key)?;
    let private = PrivateKeyDer::from_pem_slice(&text).map_err(|error| match is_locked(&text) {
        true => TlsError::Invalid(key.to_owned(), LOCKED.to_owned()),
        false => pem_error(key, "private key", error),
    })?;
    let invalid = |file: &Path, error: rustls::Error| TlsError::Invalid(file.to_owned(), error.to_string());
    let provider = Arc::new(aws_lc_rs::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13, &rustls::version::TLS12])
        .map_err(|error| invalid(certificate, error))?
        .with_no_client_auth()
        .with_single_cert(chain, private)
        .map_err(|error| match error {
            rustls::Error::InconsistentKeys(_) => {
                TlsError::Mismatch { certificate: certificate.to_owned(), key: key.to_owned() }
            }
            rustls::Error::InvalidCertificate(_) => TlsError::Invalid(certificate.to_owned(), NO_VERSION_3.to_owned()),
            _ => invalid(key, error),
        })?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    config.ticketer = aws_lc_rs::Ticketer::new().map_err(|error| invalid(key, error))?;
    Ok(Pair { config: Arc::new(config), leaf })
}

/// What is missing in the certificate's file.
const CERTIFICATE: &str = "certificate";
/// Why a file that exists is not read.
const NO_FILE: &str = "it is not a regular file: put one in its place, or name another";
const TOO_LONG: &str = "it is longer than 1 MiB: name the file that holds the PEM alone";
/// Why a key with a passphrase cannot be read.
const LOCKED: &str = "its private key is encrypted, and nobody is there to type a passphrase: write it without one \
                      (openssl pkey -in KEY -out NEW), in a file that the server's user alone can read";
/// Why a certificate cannot be read.
const NO_VERSION_3: &str =
    "its first certificate is not one of X.509 version 3, with the server's names in subjectAltName";

fn is_locked(key: &[u8]) -> bool {
    std::str::from_utf8(key).is_ok_and(|text| text.contains("ENCRYPTED"))
}

/// Returns the content of a file. A pipe would block its reader, and a device would never end.
fn content(file: &Path) -> Result<Zeroizing<Vec<u8>>, TlsError> {
    let unreadable = |error| TlsError::Unreadable(file.to_owned(), error);
    let flags = i32::try_from(OFlags::NONBLOCK.bits()).unwrap_or_default();
    let open = File::options().read(true).custom_flags(flags).open(file).map_err(unreadable)?;
    let meta = open.metadata().map_err(unreadable)?;
    let why = match (meta.is_file(), meta.len() <= LONGEST) {
        (false, _) => NO_FILE,
        (true, false) => TOO_LONG,
        (true, true) => {
            // Allocated at its final size: a buffer that grows leaves copies of the key behind.
            let length = usize::try_from(meta.len()).unwrap_or_default();
            let mut text = Zeroizing::new(Vec::with_capacity(length + 1));
            open.take(LONGEST).read_to_end(&mut text).map_err(unreadable)?;
            return Ok(text);
        }
    };
    Err(TlsError::Invalid(file.to_owned(), why.to_owned()))
}

fn pem_error(file: &Path, what: &'static str, error: pem::Error) -> TlsError {
    match error {
        pem::Error::Io(error) => TlsError::Unreadable(file.to_owned(), error),
        pem::Error::NoItemsFound => TlsError::Empty(file.to_owned(), what),
        other => TlsError::Invalid(file.to_owned(), other.to_string()),
    }
}
