//! The secrets with which hashes were made.

use super::coming::Coming;
use super::{NOW, database, hashing_node, newcomer};
use crate::clock::Clock;
use crate::keyring::Keyring;
use crate::{App, Fault};
use hasher::{Hasher, Key, KeyId, Keys, Settings as Hashing};
use rules::Span;
use rules::people::Role;
use rules::realm::{Realm, Settings};
use std::sync::Arc;
use store::engine::{Answer, Around, CommitError, Engine, Write};
use store::tables::secrets::{Secrets, note};
use zeroize::Zeroizing;

#[tokio::test]
async fn a_proof_that_an_earlier_version_made_gives_way_to_one_of_today() {
    // Red without `forget` in secrets.rs, confirm_secrets: the fast one would stay, and could be guessed at.
    let folder = tempfile::tempdir().unwrap();
    let engine = database(folder.path()).await;
    let before = "import:ZHY:b237e25ea4251d5ddc7880c2de51b0cc";
    hashing_node(engine.clone(), Clock::fixed(NOW), Hashing::default()).await;
    engine.commit(vec![note(&"main".into(), "import dv", before)]).await.unwrap();
    let hashing = || {
        let id = KeyId::new(b"dv").unwrap();
        let keys = Keys::new([Key::import(id, Zeroizing::new(b"changeme1".to_vec()))]).unwrap();
        Hashing { keys, ..Hashing::default() }
    };
    let of_today = hashing().keys.checks().next().unwrap().to_string();
    for _ in 0..2 {
        let app = hashing_node(engine.clone(), Clock::fixed(NOW), hashing()).await;
        assert_eq!(app.ask(Secrets).await.unwrap(), [("import dv".to_owned(), of_today.clone())]);
    }
}

/// Hashing with a pepper `p1` of these bytes.
fn peppered(byte: u8) -> Hashing {
    let keys = Keys::new([Key::pepper(KeyId::new(b"p1").unwrap(), Zeroizing::new([byte; 32]))]).unwrap();
    Hashing { keys, ..Hashing::default() }
}

/// A node with this hashing that has not started yet.
fn about_to_start(engine: &Arc<dyn Engine>, hashing: Hashing) -> App {
    let realm = Realm { id: "main".into(), issuer: "http://localhost".into(), settings: Settings::default() };
    let keyring = Keyring::new(&[1; 32]).unwrap();
    App::new(realm, Arc::clone(engine), Hasher::start(hashing).unwrap(), keyring, Clock::fixed(NOW)).unwrap()
}

/// Whether a start is refused for this reason.
fn is_refused(start: &Result<(), Fault>, why: &str) -> bool {
    matches!(start, Err(Fault::Broken(told)) if told.starts_with("hash.peppers: ") && told.contains(why))
}

const NEEDED: &str = "pepper p1 is not configured, and 1 account has a password hashed with it";
const ANOTHER: &str = "pepper p1 is not the secret that passwords were hashed with";

async fn add_somebody(app: &App) -> Result<(), Fault> {
    app.add_user(&newcomer("somebody", ""), Role::Member).await.map(|added| drop(added.unwrap()))
}

#[tokio::test]
async fn a_secret_that_a_start_without_it_forgot_is_noted_again_before_a_hash_needs_it() {
    // Red without note_again in passwords.rs, announce.
    let folder = tempfile::tempdir().unwrap();
    let engine = database(folder.path()).await;
    let one = hashing_node(engine.clone(), Clock::fixed(NOW), peppered(1)).await;
    let noted = one.ask(Secrets).await.unwrap();
    assert_eq!(noted.len(), 1);
    // A command without the server's configuration.
    hashing_node(engine.clone(), Clock::fixed(NOW), Hashing::default()).await;
    assert!(one.ask(Secrets).await.unwrap().is_empty());
    add_somebody(&one).await.unwrap();
    assert_eq!(one.ask(Secrets).await.unwrap(), noted);
    let without = about_to_start(&engine, Hashing::default()).confirm_secrets().await;
    assert!(is_refused(&without, NEEDED), "{without:?}");
    let other = about_to_start(&engine, peppered(2)).confirm_secrets().await;
    assert!(is_refused(&other, ANOTHER), "{other:?}");
}

#[tokio::test]
async fn a_secret_that_was_forgotten_is_noted_again_at_the_next_look_at_hashes() {
    // Red without note_again in passwords.rs, look_at_hashes and look_at_hashes_here.
    let folder = tempfile::tempdir().unwrap();
    let engine = database(folder.path()).await;
    let clock = Clock::fixed(NOW);
    let one = hashing_node(engine.clone(), clock.clone(), peppered(1)).await;
    let noted = one.ask(Secrets).await.unwrap();
    let forget = async || drop(hashing_node(engine.clone(), Clock::fixed(NOW), Hashing::default()).await);
    // The first look announces the kind of a new hash.
    one.look_at_hashes().await.unwrap();
    forget().await;
    clock.advance(Span::hours(1));
    one.look_at_hashes().await.unwrap();
    assert_eq!(one.ask(Secrets).await.unwrap(), noted);
    forget().await;
    clock.advance(Span::hours(1));
    one.look_at_hashes_here().await.unwrap();
    assert_eq!(one.ask(Secrets).await.unwrap(), noted);
}

#[tokio::test]
async fn no_hash_is_made_with_a_secret_in_whose_place_another_was_noted() {
    // Red without `missing` in secrets.rs, note_again: nobody's password would be right at the other node.
    let folder = tempfile::tempdir().unwrap();
    let engine = database(folder.path()).await;
    let one = hashing_node(engine.clone(), Clock::fixed(NOW), peppered(1)).await;
    hashing_node(engine.clone(), Clock::fixed(NOW), Hashing::default()).await;
    hashing_node(engine.clone(), Clock::fixed(NOW), peppered(2)).await;
    let refused = add_somebody(&one).await;
    assert!(is_refused(&refused, ANOTHER), "{refused:?}");
}

#[tokio::test]
async fn a_first_hash_that_is_stored_while_a_start_counts_none_keeps_its_secret() {
    // Red without the second is_unneeded in secrets.rs, do_without.
    let folder = tempfile::tempdir().unwrap();
    let engine = database(folder.path()).await;
    let one = hashing_node(engine.clone(), Clock::fixed(NOW), peppered(1)).await;
    let noted = one.ask(Secrets).await.unwrap();
    let late = Arc::new(Late(Arc::clone(&engine), Coming::default()));
    let without = about_to_start(&(Arc::clone(&late) as Arc<dyn Engine>), Hashing::default());
    // It has counted, and removes the secret next.
    let adding = one.clone();
    late.1.after(0, async move { add_somebody(&adding).await.map_err(|fault| fault.to_string()) });
    let refused = without.confirm_secrets().await;
    assert!(late.1.is_over());
    assert!(is_refused(&refused, NEEDED), "{refused:?}");
    assert_eq!(one.ask(Secrets).await.unwrap(), noted);
}

#[tokio::test]
async fn no_hash_is_stored_whose_secret_was_forgotten_since_it_was_announced() {
    // Red without held_secrets in settle.rs, write: the hash would be there, and nothing to tell its secret by.
    let folder = tempfile::tempdir().unwrap();
    let engine = database(folder.path()).await;
    let late = Arc::new(Late(Arc::clone(&engine), Coming::default()));
    let one = hashing_node(Arc::clone(&late) as Arc<_>, Clock::fixed(NOW), peppered(1)).await;
    let noted = one.ask(Secrets).await.unwrap();
    // It commits the announcement, and then the account.
    late.1.after(1, async move {
        hashing_node(engine, Clock::fixed(NOW), Hashing::default()).await;
        Ok(())
    });
    let refused = add_somebody(&one).await;
    assert!(late.1.is_over());
    assert!(matches!(refused, Err(Fault::Contended(_))), "{refused:?}");
    assert!(one.ask(Secrets).await.unwrap().is_empty());
    add_somebody(&one).await.unwrap();
    assert_eq!(one.ask(Secrets).await.unwrap(), noted);
}

/// An engine in which something happens before one of its commits.
struct Late(Arc<dyn Engine>, Coming);

impl Around for Late {
    fn inside(&self) -> &dyn Engine {
        &*self.0
    }
    fn commit_around(&self, writes: Vec<Write>) -> Answer<'_, Vec<u64>, CommitError> {
        Box::pin(async move {
            self.1.now().await.map_err(CommitError::Unavailable)?;
            self.0.commit(writes).await
        })
    }
}

#[tokio::test]
async fn of_two_nodes_with_different_secrets_of_one_name_that_start_at_once_one_does_not() {
    // Red without the second `agree_with` in secrets.rs, confirm_secrets: each would find the other's passwords
    // wrong.
    let folder = tempfile::tempdir().unwrap();
    let engine = database(folder.path()).await;
    let (engine, other) = (Arc::new(Late(Arc::clone(&engine), Coming::default())), engine);
    let late = about_to_start(&(Arc::clone(&engine) as Arc<dyn Engine>), peppered(2));
    // It has read that nothing is noted, and writes next.
    engine.1.after(0, async move {
        hashing_node(other, Clock::fixed(NOW), peppered(1)).await;
        Ok(())
    });
    let refused = late.confirm_secrets().await;
    assert!(engine.1.is_over());
    assert!(is_refused(&refused, ANOTHER), "{refused:?}");
}
