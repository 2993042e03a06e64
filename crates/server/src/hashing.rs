//! How the hasher is set up from the configuration, and what it learns of the machine, which is kept in the data folder.

use crate::boot::BootError;
use crate::config::Config;
use crate::private::{self, Unread};
use hasher::{Calibration, Hasher, Key, KeyId, Keys, Policy};
use std::fs;
use std::num::NonZeroUsize;
use std::path::PathBuf;

/// What was learnt of the machine, in the data folder.
const LEARNT: &str = "hashing";

/// The settings, with the peppers and with what was learnt before.
pub fn settings(config: &Config) -> Result<hasher::Settings, BootError> {
    let argon2 = &config.argon2;
    let policy = Policy::new(argon2.memory_kib, argon2.passes, argon2.lanes);
    Ok(hasher::Settings {
        threads: config.hash.threads.and_then(NonZeroUsize::new),
        memory: config.hash.memory.map(|size| size.0),
        max_wait: config.hash.max_wait,
        policy: policy.map_err(|error| BootError::Other(format!("hash.argon2: {error}")))?,
        keys: peppers(config)?,
        calibration: fs::read_to_string(file(config)).ok().and_then(|text| Calibration::from_text(&text).ok()),
        ..hasher::Settings::default()
    })
}

fn file(config: &Config) -> PathBuf {
    config.server.data.join(LEARNT)
}

fn peppers(config: &Config) -> Result<Keys, BootError> {
    let mut keys = Vec::new();
    for pepper in &config.hash.peppers {
        let failed = |why: String| BootError::Other(format!("hash.peppers: {}: {why}", pepper.file.display()));
        let id = KeyId::new(pepper.name.as_bytes()).ok_or_else(|| failed("has no name".into()))?;
        let key = private::read_key(&pepper.file).map_err(|why| match why {
            Unread::Missing => failed(format!("{why}; put it back, or make a new one with: portiere hash pepper")),
            why => failed(why.to_string()),
        })?;
        keys.push(Key::pepper(id, key));
    }
    Keys::new(keys).map_err(|error| BootError::Other(format!("hash.peppers: {error}")))
}

/// Measures how many passwords at a time suit this machine, unless that is known, and keeps the answer. Takes all cores
/// for a moment, between sign-ins. Then it keeps what sign-ins teach, now and then.
pub async fn learn(hasher: &Hasher, config: &Config) {
    let mut kept = None;
    loop {
        let learnt = hasher.calibrate().await.to_text();
        if kept.as_ref() != Some(&learnt) {
            if let Err(error) = private::replace(&file(config), learnt.as_bytes()) {
                tracing::warn!(%error, file = %file(config).display(), "what was learnt of hashing could not be kept");
            }
            kept = Some(learnt);
        }
        tokio::time::sleep(KEEP_EVERY).await;
    }
}

/// How often it is kept.
const KEEP_EVERY: std::time::Duration = std::time::Duration::from_secs(6 * 3600);
