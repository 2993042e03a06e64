//! A pepper, a secret beside the database: with it in every hash, the database alone is not enough to guess passwords.
//! Shows how it is kept, proved at each start, and replaced.
//!
//! `cargo run -p hasher --example peppers`
#![allow(clippy::print_stdout, reason = "an example tells what happens")]

use std::error::Error;

use hasher::{FairKey, Hasher, Key, KeyCheck, KeyId, Keys, KeysError, Refusal, Settings, Stored};
use zeroize::Zeroizing;

type Done<T> = Result<T, Box<dyn Error>>;

/// 32 random bytes, which a program reads from a file beside its configuration. The name is no secret: hashes carry it.
fn pepper(name: &str, byte: u8) -> Done<Key> {
    let id = KeyId::new(name.as_bytes()).ok_or("a name has 1 to 8 bytes")?;
    Ok(Key::pepper(id, Zeroizing::new([byte; 32])))
}

/// The first key is for new hashes, the others are for the hashes that name them.
fn start(keys: &Keys) -> Done<Hasher> {
    Ok(Hasher::start(Settings { keys: keys.clone(), ..Settings::default() })?)
}

/// Checks the keys against what the database keeps about them, as every start does: a wrong file is found before any
/// user is told that the password is wrong.
fn confirm(keys: &Keys, kept: &[String]) -> Done<()> {
    for check in kept {
        let check: KeyCheck = check.parse()?;
        match keys.confirm(&check) {
            Ok(()) => println!("  {} is the one it was", check.name()),
            Err(why @ KeysError::Missing(..)) => println!("  {why}: right once no hash names it"),
            Err(why) => println!("  {why}"),
        }
    }
    Ok(())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Done<()> {
    let (who, password) = (FairKey::new("main", "192.0.2.7".parse()?), b"correct horse");

    println!("every hash has the pepper p1 in it; what proves that p1 stays the same goes into the database");
    let keys = Keys::new([pepper("p1", 1)?])?;
    let kept: Vec<String> = keys.checks().map(|check| check.to_string()).collect();
    let hasher = start(&keys)?;
    // A salt is 16 fresh random bytes.
    let text = hasher.hash(&who, password, [7; 16]).await?;
    println!("  {text}");
    hasher.stop().await;

    println!("another file under the name of p1, and none");
    confirm(&Keys::new([pepper("p1", 9)?])?, &kept)?;
    confirm(&Keys::default(), &kept)?;

    println!("p2 takes its place: it goes first, p1 stays");
    let keys = Keys::new([pepper("p2", 2)?, pepper("p1", 1)?])?;
    confirm(&keys, &kept)?;
    let hasher = start(&keys)?;
    let stored: Stored = text.parse()?;
    let found = hasher.verify(&who, &stored, password).await?;
    // Each hash moves when its owner signs in: nobody else knows the password.
    assert!(found.ok && found.rehash);
    let text = hasher.rehash(&who, &stored, password, [8; 16]).await?;
    println!("  {text}");
    hasher.stop().await;

    println!("p1 may go when no hash names it any more");
    let hasher = start(&Keys::new([pepper("p2", 2)?])?)?;
    let newer: Stored = text.parse()?;
    println!("  names p1: {} before, {} now", names(&stored, "p1"), names(&newer, "p1"));
    assert!(hasher.verify(&who, &newer, password).await?.ok);
    // A hash that names it is reported as one that cannot be verified, never as a wrong password.
    match hasher.verify(&who, &stored, password).await {
        Err(refusal @ Refusal::Unsupported(_)) => println!("  the hash of before: {refusal}"),
        other => return Err(format!("{other:?}").into()),
    }
    hasher.stop().await;
    Ok(())
}

/// Whether a hash needs the key of this name.
fn names(stored: &Stored, name: &str) -> bool {
    stored.keys().any(|(_, id)| id.as_bytes() == name.as_bytes())
}
