//! The secret for scrapes, read again when its file changes. A link that is repointed, as Kubernetes does, is such a
//! change too.

use crate::config::SecretFile;
use crate::net::{hear_hangups, next_hangup};
use crate::private;
use rules::secret::same;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;
use tokio::time::MissedTickBehavior;
use zeroize::Zeroizing;

/// The shortest secret.
const SHORTEST: usize = 16;
/// How often the file is checked, as TLS files are.
const LOOK_EVERY: Duration = Duration::from_secs(30);

/// The secret in force, and the file that it came from.
pub struct ScrapeSecret {
    file: SecretFile,
    current: RwLock<Zeroizing<Vec<u8>>>,
}

impl ScrapeSecret {
    /// Reads the secret. The error is a sentence that names the option.
    pub fn load(file: &SecretFile) -> Result<Arc<Self>, String> {
        Ok(Arc::new(ScrapeSecret { file: file.clone(), current: RwLock::new(read(file)?) }))
    }

    /// Returns whether `token` is the secret.
    pub fn is(&self, token: &[u8]) -> bool {
        same(token, &self.current.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Reads the secret again; returns whether it changed. On an error, the secret in force stays.
    fn reload(&self) -> Result<bool, String> {
        let fresh = read(&self.file)?;
        let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
        let is_another = *current != fresh;
        *current = fresh;
        Ok(is_another)
    }

    /// Reads the secret again every half minute, and at SIGHUP. Never ends.
    pub async fn watch(self: Arc<Self>) {
        let (mut hangup, mut ticks, mut told) = (hear_hangups(), tokio::time::interval(LOOK_EVERY), None);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let asked = tokio::select! {
                _ = ticks.tick() => false,
                () = next_hangup(&mut hangup) => true,
            };
            // On a thread that may block: a file system that does not answer must not stop the threads that serve.
            let secret = Arc::clone(&self);
            let looked = tokio::task::spawn_blocking(move || secret.reload()).await;
            let outcome = looked.unwrap_or_else(|error| Err(error.to_string()));
            self.tell(outcome, asked, &mut told);
        }
    }

    /// Logs what is new, or everything if somebody asked.
    fn tell(&self, outcome: Result<bool, String>, asked: bool, told: &mut Option<String>) {
        match outcome {
            Ok(is_another) => {
                if is_another || asked {
                    tracing::info!(file = %self.file.display(), is_another, "metrics.secret read again");
                }
                *told = None;
            }
            Err(error) => {
                if asked || told.as_ref() != Some(&error) {
                    tracing::error!(%error, "metrics.secret not replaced, the old one stays");
                }
                *told = Some(error);
            }
        }
    }
}

fn read(file: &SecretFile) -> Result<Zeroizing<Vec<u8>>, String> {
    let wrong = |why: &dyn std::fmt::Display| file.wrong("metrics.secret", why);
    let text = private::read_text(file).map_err(|why| wrong(&why))?;
    let text = Zeroizing::new(text.trim_ascii().to_vec());
    match text.len() < SHORTEST {
        true => Err(wrong(&format_args!("has fewer than {SHORTEST} characters"))),
        false => Ok(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Config, Sources};
    use std::path::Path;

    fn put(file: &Path, text: &str) {
        crate::private::create(file, text.as_bytes()).unwrap();
    }

    #[test]
    fn a_secret_is_another_one_once_its_link_leads_elsewhere_and_stays_where_that_cannot_be_used() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        put(&at("one"), "first-secret-of-a-scraper\n");
        put(&at("two"), "second-secret-of-a-scraper\n");
        put(&at("three"), "short\n");
        let lead = |name: &str| {
            std::os::unix::fs::symlink(name, at("new")).unwrap();
            std::fs::rename(at("new"), at("link")).unwrap();
        };
        lead("one");
        let flags = vec![("metrics.secret", at("link").display().to_string())];
        let config = Config::load(Sources { flags, ..Sources::default() }).unwrap();
        let secret = ScrapeSecret::load(config.metrics.secret.as_ref().unwrap()).unwrap();
        assert!(secret.is(b"first-secret-of-a-scraper") && !secret.is(b"second-secret-of-a-scraper"));
        assert_eq!(secret.reload(), Ok(false));
        lead("two");
        assert_eq!(secret.reload(), Ok(true));
        assert!(secret.is(b"second-secret-of-a-scraper") && !secret.is(b"first-secret-of-a-scraper"));
        lead("three");
        let why = secret.reload().unwrap_err();
        assert!(why.starts_with("metrics.secret: ") && why.contains("fewer than 16"), "{why}");
        assert!(secret.is(b"second-secret-of-a-scraper"));
    }
}
