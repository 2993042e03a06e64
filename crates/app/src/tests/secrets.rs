//! The secrets of other systems with which hashes were made.

use super::coming::Coming;
use super::{NOW, database, hashing_node};
use crate::clock::Clock;
use crate::keyring::Keyring;
use crate::{App, Fault};
use hasher::{Hasher, Key, KeyId, Keys, Settings as Hashing};
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
    let hashing = |pepper: u8| {
        let keys = Keys::new([Key::pepper(KeyId::new(b"p1").unwrap(), Zeroizing::new([pepper; 32]))]).unwrap();
        Hashing { keys, ..Hashing::default() }
    };
    let (engine, other) = (Arc::new(Late(Arc::clone(&engine), Coming::default())), engine);
    let realm = Realm { id: "main".into(), issuer: "http://localhost".into(), settings: Settings::default() };
    let keyring = Keyring::new(&[1; 32]).unwrap();
    let late =
        App::new(realm, Arc::clone(&engine) as Arc<_>, Hasher::start(hashing(2)).unwrap(), keyring, Clock::fixed(NOW))
            .unwrap();
    // It has read that nothing is noted, and writes next.
    engine.1.after(0, async move {
        hashing_node(other, Clock::fixed(NOW), hashing(1)).await;
        Ok(())
    });
    let refused = late.confirm_secrets().await;
    assert!(engine.1.is_over());
    assert!(matches!(&refused, Err(Fault::Broken(why)) if why.contains("hash.peppers")), "{refused:?}");
}
