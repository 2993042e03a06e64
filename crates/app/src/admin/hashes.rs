//! How passwords are stored, and whose: for an operator about to remove a secret, or to end an import.

use super::users::PAGE;
use crate::{App, Fault};
use hasher::{KeyCheck, Stored};
use rules::people::User;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;
use store::tables::secrets::Secrets;
use store::tables::users::Page;

/// What a stored hash has in common with others.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct HashKind {
    /// The algorithm; `None` where the hash cannot be read.
    pub algorithm: Option<&'static str>,
    /// The secrets that it needs, by role and name as in the configuration: `pepper p1`, `binding b1`, `import i1`.
    pub secrets: Vec<String>,
    /// Whether its password is hashed anew when the owner signs in.
    pub is_outdated: bool,
    /// Whether it can be verified with the settings of this node.
    pub is_verifiable: bool,
}

impl HashKind {
    /// Whether an operator means it by `word`: an algorithm, or the name of a secret.
    fn is_called(&self, word: &str) -> bool {
        self.algorithm.unwrap_or(UNREADABLE) == word || self.secrets.iter().any(|secret| is_named(secret, word))
    }
}

/// Whether `word` is the name of a secret such as `pepper p1`, with its role or without it.
fn is_named(secret: &str, word: &str) -> bool {
    secret == word || secret.split_once(' ').is_some_and(|(_, name)| name == word)
}

/// The words that mean hashes, whether or not there are any.
#[derive(Clone, Debug)]
pub struct Words {
    /// The secrets that are configured here or were once, by role and name.
    pub secrets: BTreeSet<String>,
}

impl Words {
    /// The names of algorithms, and of what has none.
    pub fn algorithms() -> impl Iterator<Item = &'static str> {
        Stored::SCHEMES.into_iter().chain([UNREADABLE])
    }

    /// Whether there could be hashes that an operator means by `word`. Of another word, it proves nothing that no hash
    /// is called so.
    pub fn know(&self, word: &str) -> bool {
        Words::algorithms().any(|name| name == word) || self.secrets.iter().any(|secret| is_named(secret, word))
    }
}

/// The name of the algorithm of a hash that cannot be read.
pub const UNREADABLE: &str = "unreadable";

impl App {
    /// Counts the accounts with each kind of hash. There may be millions: requests go first.
    pub async fn hash_kinds(&self) -> Result<BTreeMap<HashKind, u64>, Fault> {
        let mut kinds = BTreeMap::new();
        self.each_hash(1, |hash| *kinds.entry(self.hash_kind(hash)).or_insert(0) += 1).await?;
        Ok(kinds)
    }

    /// Returns the next accounts after this id whose hash is of this algorithm or needs the secret of this name, and
    /// the id after which there may be more. If it returns no accounts, there are none.
    pub async fn users_with_hash(&self, word: &str, after: &str) -> Result<(Vec<User>, Option<String>), Fault> {
        let (mut found, mut after) = (Vec::new(), after.to_owned());
        loop {
            let began = Instant::now();
            let users = self.ask(Page { after: &after, limit: PAGE }).await?;
            let Some(last) = users.last().map(|user| user.id.0.clone()) else { return Ok((found, None)) };
            let is_meant = |hash: &String| self.hash_kind(hash).is_called(word);
            found.extend(users.into_iter().filter(|user| user.password.as_ref().is_some_and(is_meant)));
            if found.len() as i64 >= PAGE {
                return Ok((found, Some(last)));
            }
            after = last;
            tokio::time::sleep(began.elapsed()).await;
        }
    }

    /// Returns the words that mean hashes here.
    pub async fn hash_words(&self) -> Result<Words, Fault> {
        let noted = self.ask(Secrets).await?.into_iter().map(|(name, _)| name);
        Ok(Words { secrets: noted.chain(self.proofs().iter().map(KeyCheck::name)).collect() })
    }

    fn hash_kind(&self, hash: &str) -> HashKind {
        let stored: Option<Stored> = hash.parse().ok();
        HashKind {
            algorithm: stored.as_ref().map(Stored::scheme),
            secrets: stored.as_ref().map(secrets).unwrap_or_default(),
            is_outdated: stored.as_ref().is_some_and(|stored| self.hasher.outdates(stored)),
            is_verifiable: stored.as_ref().is_some_and(|stored| self.hasher.work(stored).is_ok()),
        }
    }
}

fn secrets(stored: &Stored) -> Vec<String> {
    stored.keys().map(|(role, id)| format!("{} {}", role.name(), String::from_utf8_lossy(id.as_bytes()))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_called_as_the_configuration_calls_them() {
        // Red where they are called as in stored hashes, in base64.
        let bound =
            "$pv1$m=64,t=2,p=1,keyid=azE,bindid=YjE$c2l4dGVlbiBieXRlIHNsdA$xCx6TzAjWZx7FnQVoBzb/MoX5N9ILT3QY0qhOXwGUj4";
        let secrets = secrets(&bound.parse().unwrap());
        assert_eq!(secrets, ["pepper k1", "binding b1"]);
        let kind = HashKind { algorithm: Some("argon2id, bound"), secrets, is_outdated: false, is_verifiable: true };
        for word in ["k1", "binding b1", "argon2id, bound"] {
            assert!(kind.is_called(word), "{word}");
        }
        assert!(!kind.is_called("azE") && !kind.is_called("pepper") && !kind.is_called(UNREADABLE));
    }

    #[test]
    fn a_word_that_means_no_hash_is_not_known() {
        let words = Words { secrets: ["pepper p1", "binding b1", "import my key"].map(str::to_owned).into() };
        let known = ["p1", "pepper p1", "b1", "binding b1", "my key", "import my key", UNREADABLE];
        assert!(known.into_iter().chain(Stored::SCHEMES).all(|word| words.know(word)));
        let unknown =
            ["", " ", "argon2", "Argon2id", "BCRYPT", "wrapped", "argon2id,bound", "P1", "p1 ", "p2", "pepper"];
        for word in unknown.into_iter().chain(["binding p1", "pepper  p1", "p1.key", "/etc/portiere/p1.key", "key"]) {
            assert!(!words.know(word), "{word:?}");
        }
    }
}
