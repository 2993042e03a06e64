//! Sign-ins of a server: verified, rehashed where the policy has moved on, told when to come back where too many wait,
//! and all the same for a name that does not exist.
//!
//! `cargo run -p hasher --example server`
#![allow(clippy::print_stdout, reason = "an example tells what happens")]

use std::{
    collections::HashMap,
    error::Error,
    fs::File,
    io::{self, Read},
    net::IpAddr,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use hasher::{FairKey, Hasher, Policy, Refusal, Settings, Stored, Verified};
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use tokio::task::JoinSet;

type Failure = Box<dyn Error + Send + Sync>;

/// The answer to a sign-in.
#[derive(Debug)]
enum Answer {
    Welcome,
    /// One answer for both, so that it reveals to nobody which names exist.
    WrongNameOrPassword,
    /// 503, with `Retry-After`: nothing was tried, and nothing is held against the client.
    ComeBack(Duration),
}

struct Server {
    hasher: Hasher,
    /// Stands for a database, which keeps text.
    passwords: Mutex<HashMap<String, String>>,
    /// Kept with the server's other secrets, so that it stays the same.
    decoys: [u8; 32],
}

impl Server {
    async fn sign_in(&self, address: IpAddr, name: &str, password: &str) -> Result<Answer, Failure> {
        // Whose share of the time the hash uses up: the tenant's, and within it the address's.
        let (who, password) = (FairKey::new("main", address), password.as_bytes());
        // Nothing is locked while a password is hashed, no transaction is open, and no thread of the server waits.
        let text = self.passwords().get(name).cloned();
        let stored: Option<Stored> = text.as_deref().map(str::parse).transpose()?;
        let found = match &stored {
            Some(stored) => self.hasher.verify(&who, stored, password).await,
            None => self.hasher.decoy(&who, self.decoy_salt(name)?, password).await,
        };
        match found {
            Ok(Verified { ok: false, .. }) => Ok(Answer::WrongNameOrPassword),
            Ok(Verified { rehash, .. }) => {
                if let Some((stored, text)) = stored.zip(text).filter(|_| rehash) {
                    self.renew(&who, name, (&stored, text.as_str()), password).await?;
                }
                Ok(Answer::Welcome)
            }
            // To the client `Unconfirmed` is the same, but a guess was made: where failures are counted, count it. And
            // a server that is stopped is about to be followed by another.
            Err(Refusal::Busy { retry_after } | Refusal::Unconfirmed { retry_after }) => {
                Ok(Answer::ComeBack(retry_after))
            }
            Err(Refusal::Stopped) => Ok(Answer::ComeBack(Duration::from_secs(1))),
            // No memory, a key that is not configured, …: never "wrong password".
            Err(refusal) => Err(refusal.into()),
        }
    }

    /// Replaces a hash that is older than today's policy, now that its password is proved.
    async fn renew(&self, who: &FairKey, name: &str, old: (&Stored, &str), password: &[u8]) -> Result<(), Failure> {
        // If there is no time for it now, the next sign-in does it.
        let Ok(newer) = self.hasher.rehash(who, old.0, password, random()?).await else { return Ok(()) };
        println!("  {name}: {} becomes {}", parameters(old.1), parameters(&newer));
        // Only if the old hash is still there: the password may have been changed meanwhile.
        if let Some(kept) = self.passwords().get_mut(name).filter(|kept| **kept == old.1) {
            *kept = newer;
        }
        Ok(())
    }

    /// Derives the salt from the name under a secret: a name always takes the same path.
    fn decoy_salt(&self, name: &str) -> Result<[u8; 16], Failure> {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.decoys)?;
        mac.update(name.as_bytes());
        Ok(mac.finalize().into_bytes()[..16].try_into()?)
    }

    fn passwords(&self) -> std::sync::MutexGuard<'_, HashMap<String, String>> {
        self.passwords.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The system's random bytes. A portable program takes them from the crate `getrandom`.
fn random<const N: usize>() -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes)
}

/// The part of a hash before its salt.
fn parameters(hash: &str) -> String {
    hash.split('$').take(4).collect::<Vec<_>>().join("$")
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failure> {
    // Ada's hash, made when the policy was cheaper than anything that is good enough today.
    let before = Hasher::start(Settings { policy: Policy::weak(7_168, 1, 1)?, ..Settings::default() })?;
    let desk: IpAddr = "192.0.2.7".parse()?;
    let ada = before.hash(&FairKey::new("main", desk), b"correct horse", random()?).await?;
    before.stop().await;

    // Nobody waits longer than this: real servers have more patience.
    let settings = Settings { max_wait: Duration::from_millis(100), ..Settings::default() };
    let (hasher, passwords) = (Hasher::start(settings)?, Mutex::new(HashMap::from([("ada".to_owned(), ada)])));
    let server = Arc::new(Server { hasher, passwords, decoys: random()? });

    println!("ada signs in, and then somebody who does not exist");
    println!("  {:?}", server.sign_in(desk, "ada", "correct horse").await?);
    println!("  {:?}", server.sign_in(desk, "nobody", "correct horse").await?);

    println!("500 guesses come at once from one address, and ada from another");
    let mut guesses = JoinSet::new();
    for guess in 0..500 {
        let server = Arc::clone(&server);
        guesses.spawn(async move { server.sign_in([198, 51, 100, 1].into(), "ada", &guess.to_string()).await });
    }
    // Lets the guesses come first.
    tokio::time::sleep(Duration::from_millis(20)).await;
    println!("  ada: {:?}", server.sign_in(desk, "ada", "correct horse").await?);
    let (mut tried, mut sent_away) = (0, Vec::new());
    while let Some(guess) = guesses.join_next().await {
        match guess?? {
            Answer::ComeBack(after) => sent_away.push(after),
            Answer::Welcome | Answer::WrongNameOrPassword => tried += 1,
        }
    }
    println!("  {tried} were tried, {} told to come back after up to {:?}", sent_away.len(), sent_away.iter().max());

    // Running jobs are finished, waiting and new ones are refused.
    server.hasher.stop().await;
    println!("after the stop: {:?}", server.sign_in(desk, "ada", "correct horse").await?);
    Ok(())
}
