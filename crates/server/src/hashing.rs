//! How the hasher is set up from the configuration, and what it learns of the machine, which is kept in the data folder.

use crate::boot::BootError;
use crate::cli::outcome::mutter;
use crate::config::{Config, KeyFile, all};
use crate::private::{self, Unread};
use hasher::{Calibration, Hasher, Key, KeyId, Keys, KeysError, Policy, Role};
use std::fmt::Display;
use std::fs;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::thread;

/// What was learnt of the machine, in the data folder.
const LEARNT: &str = "hashing";

/// The settings, with the secrets and with what was learnt before.
pub fn settings(config: &Config) -> Result<hasher::Settings, BootError> {
    let argon2 = &config.argon2;
    let policy = Policy::new(argon2.memory_kib, argon2.passes, argon2.lanes);
    Ok(hasher::Settings {
        threads: config.hash.threads.and_then(NonZeroUsize::new),
        memory: config.hash.memory.map(|size| size.0),
        max_wait: config.hash.max_wait,
        policy: policy.map_err(|error| BootError::Other(format!("hash.argon2: {error}")))?,
        keys: keys(config)?,
        calibration: fs::read_to_string(file(config)).ok().and_then(|text| Calibration::from_text(&text).ok()),
        ..hasher::Settings::default()
    })
}

/// Says in what a server of this configuration is another one than `portiere capacity` measures, which has none.
pub fn tell_of_differences(config: &Config) {
    let (here, measured) = (&config.argon2, Policy::default().cost());
    let parameters =
        (here.memory_kib, here.passes, here.lanes) != (measured.memory(), measured.passes(), measured.lanes());
    let hash = parameters.then(|| {
        let (m, t, p) = (here.memory_kib, here.passes, here.lanes);
        format!(
            "what is configured hashes with m={m}, t={t}, p={p}: the limit here is that of the parameters in the report"
        )
    });
    let server = config.database().is_none();
    let store = server
        .then(|| "what is configured has its facts on a database server: the limit here is that of SQLite".to_owned());
    hash.into_iter().chain(store).for_each(|line| mutter(&format!("portiere: {line}\n")));
}

/// Says where fewer threads hash than were asked for, or than there are cores: what one hash needs does not fit so often.
pub fn tell_of_room(config: &Config) {
    let wanted = config.hash.threads.and_then(NonZeroUsize::new).or_else(|| thread::available_parallelism().ok());
    let Some((wanted, (threads, memory))) = wanted.map(NonZeroUsize::get).zip(limits(config)) else { return };
    if threads < wanted {
        let (one, memory) = (config.argon2.memory_kib >> 10, memory >> 20);
        tracing::warn!(
            threads,
            wanted,
            hash_mib = one,
            memory_mib = memory,
            "fewer threads hash than could: hash.memory has no room for more"
        );
    }
}

/// How many threads hash, and in how many bytes of memory at most, on this machine.
pub fn limits(config: &Config) -> Option<(usize, u64)> {
    let argon2 = &config.argon2;
    let settings = hasher::Settings {
        threads: config.hash.threads.and_then(NonZeroUsize::new),
        memory: config.hash.memory.map(|size| size.0),
        policy: Policy::new(argon2.memory_kib, argon2.passes, argon2.lanes).ok()?,
        ..hasher::Settings::default()
    };
    settings.in_force().ok()
}

fn file(config: &Config) -> PathBuf {
    config.server.data.join(LEARNT)
}

/// The secrets that stored hashes name. Ids of peppers and of import keys are different names.
fn keys(config: &Config) -> Result<Keys, BootError> {
    let hash = &config.hash;
    let peppers = hash.peppers.iter().map(|of| {
        let (id, key) = made_here("hash.peppers", "portiere hash pepper", of)?;
        Ok(Key::pepper(id, key))
    });
    let bindings = hash.binding_keys.iter().map(|of| {
        let (id, key) = made_here("hash.binding_keys", "portiere hash binding", of)?;
        Ok(Key::binding(id, key))
    });
    let imports = hash.import_keys.iter().map(|of| {
        let (id, failed) = named("hash.import_keys", of)?;
        Ok(Key::import(id, private::read_text(&of.file).map_err(|why| failed(&why))?))
    });
    let keys = all(peppers.chain(bindings).chain(imports)).map_err(BootError::Wrong)?;
    Keys::new(keys).map_err(|error| BootError::Other(format!("{}: {error}", option_of(&error))))
}

/// A key that a command of ours makes.
fn made_here(option: &str, command: &str, of: &KeyFile) -> Result<(KeyId, private::Key), String> {
    let (id, failed) = named(option, of)?;
    let key = private::read_key(&of.file).map_err(|why| match why {
        Unread::Missing => failed(&format!("{why}; put it back, or make a new one with: {command}")),
        why => failed(&why),
    })?;
    Ok((id, key))
}

/// The option that an error is about.
fn option_of(error: &KeysError) -> &'static str {
    match error {
        KeysError::BindingWithoutPepper => "hash.binding_keys",
        KeysError::Repeated(role, _)
        | KeysError::Empty(role, _)
        | KeysError::Wrong(role, _)
        | KeysError::Missing(role, _) => match role {
            Role::Pepper => "hash.peppers",
            Role::Binding => "hash.binding_keys",
            Role::Import => "hash.import_keys",
        },
    }
}

/// The id of a secret, and how to say that something is wrong with its file.
fn named<'a>(option: &'a str, key: &'a KeyFile) -> Result<(KeyId, impl Fn(&dyn Display) -> String + 'a), String> {
    let failed = move |why: &dyn Display| key.file.wrong(option, why);
    let id = KeyId::new(key.name.as_bytes()).ok_or_else(|| failed(&"has no name"))?;
    Ok((id, failed))
}

/// Measures how many passwords at a time suit this machine, unless that is known, and keeps the answer. Takes all cores
/// for a moment, between sign-ins. Then it keeps what sign-ins teach, now and then, and when the server stops: what was measured
/// while others used the machine would be believed at every start.
pub async fn learn(hasher: &Hasher, config: &Config) {
    let mut learnt = Learnt { hasher, file: file(config), kept: hasher.calibrate().await.to_text() };
    learnt.write_aside().await;
    loop {
        tokio::time::sleep(KEEP_EVERY).await;
        if learnt.is_news() {
            learnt.write_aside().await;
        }
    }
}

/// How often it is kept.
const KEEP_EVERY: std::time::Duration = std::time::Duration::from_secs(3600);

/// What is known of hashing on this machine, and what of it is in the file.
struct Learnt<'a> {
    hasher: &'a Hasher,
    file: PathBuf,
    kept: String,
}

impl Learnt<'_> {
    /// Whether something was learnt since.
    fn is_news(&mut self) -> bool {
        let now = self.hasher.calibration().to_text();
        std::mem::replace(&mut self.kept, now) != self.kept
    }

    /// Beside the task that asks, which does much else: a disk may stall.
    async fn write_aside(&self) {
        let (file, kept) = (self.file.clone(), self.kept.clone());
        if let Err(error) = tokio::task::spawn_blocking(move || write(&file, &kept)).await {
            tracing::error!(%error, "what was learnt of hashing could not be kept");
        }
    }
}

fn write(file: &Path, kept: &str) {
    if let Err(error) = private::replace(file, kept.as_bytes()) {
        tracing::warn!(%error, file = %file.display(), "what was learnt of hashing could not be kept");
    }
}

impl Drop for Learnt<'_> {
    fn drop(&mut self) {
        // Who took it away wants it measured anew.
        if self.file.exists() && self.is_news() {
            write(&self.file, &self.kept);
        }
    }
}
