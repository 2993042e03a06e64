//! Sets up the hasher from the configuration, and keeps in the data folder what it learns about the machine.

use crate::boot::BootError;
use crate::config::{Config, KeyFile, all};
use crate::private::{self, Unread, aside};
use hasher::{Calibration, Hasher, Key, KeyId, Keys, KeysError, Policy, Role};
use std::fmt::Display;
use std::fs;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::thread;

/// The file in the data folder that holds what was learnt about the machine.
const LEARNT: &str = "hashing";

/// Returns the hasher's settings, with the secrets and with what was learnt before.
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

/// Returns how a server with this configuration differs from the one that `portiere capacity` measures, which has none.
pub fn differences(config: &Config) -> Vec<String> {
    let (here, measured) = (&config.argon2, Policy::default().cost());
    let parameters =
        (here.memory_kib, here.passes, here.lanes) != (measured.memory(), measured.passes(), measured.lanes());
    let hash = parameters.then(|| {
        let (m, t, p) = (here.memory_kib, here.passes, here.lanes);
        format!(
            "the configuration has other hash parameters (m={m}, t={t}, p={p}): the limit here is for those in the \
             report"
        )
    });
    let server = config.database().is_none();
    let store = server.then(|| "the configuration uses a database server: the limit here is that of SQLite".to_owned());
    hash.into_iter().chain(store).collect()
}

/// Warns if fewer threads hash than were asked for, or than there are cores: the memory has no room for so many hashes.
/// Also warns of a ceiling that is none, since it lies above all the memory there is.
pub fn tell_of_room(config: &Config) {
    if let Some((asked, there)) = config.hash.memory.zip(hasher::tune::most_memory())
        && asked.0 > there
    {
        let (asked, there) = (asked.0 >> 20, there >> 20);
        tracing::warn!(
            asked_mib = asked,
            there_mib = there,
            "hash.memory is more than there is: hashing may use all of it"
        );
    }
    let wanted = config.hash.threads.and_then(NonZeroUsize::new).or_else(|| thread::available_parallelism().ok());
    let Some((wanted, (threads, memory))) = wanted.map(NonZeroUsize::get).zip(limits(config)) else { return };
    if threads < wanted {
        let (one, memory) = (config.argon2.memory_kib >> 10, memory >> 20);
        tracing::warn!(
            threads,
            wanted,
            hash_mib = one,
            memory_mib = memory,
            "fewer hashing threads than wanted: hash.memory has no room for more"
        );
    }
}

/// Returns how many threads hash on this machine, and the most bytes of memory that they use.
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

/// Reads the secrets that stored hashes name. A pepper and an import key with the same ID are different secrets.
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

/// Reads a key that a command of Portiere makes.
fn made_here(option: &str, command: &str, of: &KeyFile) -> Result<(KeyId, private::Key), String> {
    let (id, failed) = named(option, of)?;
    let key = private::read_key(&of.file).map_err(|why| match why {
        Unread::Missing => failed(&format!("{why}; put it back, or make a new one with: {command}")),
        why => failed(&why),
    })?;
    Ok((id, key))
}

/// Returns the option that an error is about.
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

/// Returns the ID of a secret, and a function that says what is wrong with its file.
fn named<'a>(option: &'a str, key: &'a KeyFile) -> Result<(KeyId, impl Fn(&dyn Display) -> String + 'a), String> {
    let failed = move |why: &dyn Display| key.file.wrong(option, why);
    let id = KeyId::new(key.name.as_bytes()).ok_or_else(|| failed(&"has no name"))?;
    Ok((id, failed))
}

/// Measures how many passwords at a time suit this machine, unless that is known, and keeps the answer. Takes all cores
/// for a moment, between sign-ins. Then keeps what sign-ins teach, now and then.
pub async fn learn(learnt: &mut Learnt) {
    learnt.kept = Some(learnt.hasher.calibrate().await.to_text());
    learnt.write_aside(|_| true).await;
    loop {
        tokio::time::sleep(KEEP_EVERY).await;
        if learnt.is_news() {
            learnt.write_aside(|_| true).await;
        }
    }
}

/// The pause between two times of keeping what was learnt.
const KEEP_EVERY: std::time::Duration = std::time::Duration::from_secs(3600);

/// What is known about hashing on this machine, and what of that is in the file.
pub struct Learnt {
    hasher: Hasher,
    file: PathBuf,
    /// What was written last; `None` until the machine was measured, or is known.
    kept: Option<String>,
}

impl Learnt {
    /// Returns what a hasher has learnt, of which nothing is kept yet.
    pub fn of(hasher: &Hasher, config: &Config) -> Self {
        Learnt { hasher: hasher.clone(), file: file(config), kept: None }
    }

    /// Keeps at a stop what sign-ins have taught: otherwise a measurement made while others used the machine would be
    /// believed at every start. If somebody removed the file, the machine is to be measured anew.
    pub async fn leave(&mut self) {
        if self.kept.is_some() && self.is_news() {
            self.write_aside(Path::exists).await;
        }
    }

    /// Returns whether something was learnt since the last call.
    fn is_news(&mut self) -> bool {
        let now = Some(self.hasher.calibration().to_text());
        std::mem::replace(&mut self.kept, now) != self.kept
    }

    /// Writes to a file that is `wanted`, on another thread: a disk may stall, and the calling task does much else.
    async fn write_aside(&self, wanted: fn(&Path) -> bool) {
        let (file, kept) = (self.file.clone(), self.kept.clone().unwrap_or_default());
        aside(move || {
            if wanted(&file) {
                write(&file, &kept)
            }
        })
        .await;
    }
}

fn write(file: &Path, kept: &str) {
    if let Err(error) = private::replace(file, kept.as_bytes()) {
        tracing::warn!(%error, file = %file.display(), "cannot save what was measured about hashing");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Sources;

    #[tokio::test]
    async fn what_was_learnt_is_kept_at_a_stop_by_no_thread_that_hears_signals() {
        // Red where it is written when it is dropped: `private::replace` refuses the threads of the runtime.
        let folder = tempfile::tempdir().unwrap();
        let flags = vec![("data", folder.path().display().to_string()), ("hash.threads", "1".to_owned())];
        let config = Config::load(Sources { flags, ..Sources::default() }).unwrap();
        let hasher = Hasher::start(settings(&config).unwrap()).unwrap();
        let mut learnt = Learnt::of(&hasher, &config);
        learnt.leave().await;
        assert!(!file(&config).exists(), "nothing was measured");
        let known = hasher.calibrate().await.to_text();
        // What was kept before the latest lesson.
        for (is_there, kept) in [(true, "before"), (false, "before"), (true, &known)] {
            let before = if kept == known { "as it was" } else { "before" };
            match is_there {
                true => fs::write(file(&config), before).unwrap(),
                false => fs::remove_file(file(&config)).unwrap(),
            }
            learnt.kept = Some(kept.to_owned());
            learnt.leave().await;
            let expected = is_there.then(|| if kept == known { before.to_owned() } else { known.clone() });
            assert_eq!(fs::read_to_string(file(&config)).ok(), expected);
        }
        drop(learnt);
        hasher.stop().await;
    }
}
