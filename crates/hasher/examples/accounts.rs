//! The life of passwords in a server: sign-up, sign-in with a rehash, import, wrapping of old digests, a new pepper.
//!
//! `cargo run -p hasher --example accounts`
#![allow(clippy::print_stdout, reason = "an example tells what happens")]

use std::{collections::HashMap, error::Error};

use hasher::{
    FairKey, Hasher, Key, KeyId, Keys, Policy, Settings, Stored,
    import::{self, Imported},
};
use zeroize::Zeroizing;

/// A table of accounts, and the pool.
struct Server {
    hasher: Hasher,
    /// Text is what a database stores.
    passwords: HashMap<String, String>,
    /// Stands for the system's source of randomness.
    salts: u8,
}

type Done<T> = Result<T, Box<dyn Error>>;

impl Server {
    fn start(policy: Policy, peppers: &[(&str, u8)], passwords: HashMap<String, String>) -> Done<Self> {
        let id = |name: &str| KeyId::new(name.as_bytes()).ok_or("a name has 1 to 8 bytes");
        let pepper = |&(name, byte)| id(name).map(|id| Key::pepper(id, Zeroizing::new([byte; 32])));
        // The secret of the system that Devise's hashes come from; it stays until the last of these hashes is gone.
        let devise = Key::import(id("devise")?, Zeroizing::new(b"its pepper".to_vec()));
        let keys = peppers.iter().map(pepper).chain([Ok(devise)]).collect::<Result<Vec<_>, _>>()?;
        let hasher = Hasher::start(Settings { policy, keys: Keys::new(keys)?, ..Settings::default() })?;
        Ok(Server { hasher, passwords, salts: 0 })
    }

    fn salt(&mut self) -> [u8; 16] {
        self.salts += 1;
        [self.salts; 16]
    }

    async fn sign_up(&mut self, name: &str, password: &str) -> Done<()> {
        let salt = self.salt();
        let text = self.hasher.hash(&visitor()?, password.as_bytes(), salt).await?;
        self.passwords.insert(name.to_owned(), text);
        Ok(())
    }

    /// Imports what another system stored, as text or JSON. A fast digest becomes the password of a slow hash at once.
    async fn import(&mut self, name: &str, exported: &str) -> Done<()> {
        let text = match import::any(exported)? {
            Imported::Stored(stored) => stored.to_string(),
            Imported::Fast(digest) => {
                let salt = self.salt();
                self.hasher.wrap(&visitor()?, &digest, salt).await?
            }
        };
        self.passwords.insert(name.to_owned(), text);
        Ok(())
    }

    async fn sign_in(&mut self, name: &str, password: &str) -> Done<bool> {
        let (who, salt) = (visitor()?, self.salt());
        let Some(text) = self.passwords.get(name).cloned() else {
            // Not random: the same name always takes the same path. Here every name has one salt; in earnest it is made
            // from the name under a secret key, as in the example `server`.
            return Ok(self.hasher.decoy(&who, [7; 16], password.as_bytes()).await?.ok);
        };
        let stored: Stored = text.parse()?;
        let found = self.hasher.verify(&who, &stored, password.as_bytes()).await?;
        // The password is proved: if there is no time for a new hash now, the next sign-in makes it.
        if found.rehash
            && let Ok(newer) = self.hasher.rehash(&who, &stored, password.as_bytes(), salt).await
        {
            println!("  {name}: {} becomes {}", stored.scheme(), newer.rsplit_once('$').map_or("", |(front, _)| front));
            // Only if the old hash is still there: the password may have been changed meanwhile.
            if let Some(kept) = self.passwords.get_mut(name).filter(|kept| **kept == text) {
                *kept = newer;
            }
        }
        Ok(found.ok)
    }
}

/// Whose share of the time a hash uses up: tenant and address.
fn visitor() -> Done<FairKey> {
    Ok(FairKey::new("main", "192.0.2.7".parse()?))
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Done<()> {
    println!("sign-up and imports, with the pepper p1");
    let mut server = Server::start(Policy::default(), &[("p1", 1)], HashMap::new())?;
    server.sign_up("ada", "correct horse").await?;
    server.import("bob", "$2y$05$abcdefghijklmnopqrstuuG46VdGlZM7MD48578yjdzjFxYU4ZcC2").await?;
    server.import("cem", "{SHA}W6ph5Mm5Pz8GgiULbPgzG37mj9g=").await?;
    assert!(server.sign_in("ada", "correct horse").await?);
    assert!(!server.sign_in("ada", "wrong").await? && !server.sign_in("nobody", "wrong").await?);
    assert!(server.sign_in("bob", "tr0ub4dor").await?);
    assert!(server.sign_in("cem", "password").await?, "the old digest is gone, its password is not");

    println!("p2 is for new hashes; p1 stays until nobody's hash needs it");
    let mut server = Server::start(Policy::default(), &[("p2", 2), ("p1", 1)], server.passwords)?;
    assert!(server.sign_in("ada", "correct horse").await? && server.sign_in("cem", "password").await?);
    let p1 = KeyId::new(b"p1").ok_or("a name has 1 to 8 bytes")?;
    for (name, text) in &server.passwords {
        let needed = text.parse::<Stored>()?.keys().any(|(_, id)| id == p1);
        println!("  {name} needs p1: {needed}");
    }

    println!("a dearer policy: hashes move to it as people sign in");
    let peppers = [("p2", 2), ("p1", 1)];
    let mut server = Server::start(Policy::new(47_104, 2, 1)?, &peppers, server.passwords)?;
    assert!(server.sign_in("ada", "correct horse").await?);
    server.hasher.stop().await;
    Ok(())
}
