//! Nodes that start at the same moment on an empty database.

use super::coming::Coming;
use super::{NOW, database};
use crate::clock::Clock;
use crate::keyring::Keyring;
use crate::{App, Fault};
use hasher::{Hasher, Settings as Hashing};
use rules::realm::{Realm, Settings};
use std::path::Path;
use std::sync::{Arc, Mutex};
use store::engine::{Answer, Around, CommitError, Engine, Read, Row, Unavailable, Write};

/// An engine in which something happens before one of its steps.
struct Meanwhile(Arc<dyn Engine>, Coming);

impl Around for Meanwhile {
    fn inside(&self) -> &dyn Engine {
        &*self.0
    }
    fn fetch_around<'a>(&'a self, reads: &'a [Read]) -> Answer<'a, Vec<Vec<Row>>, Unavailable> {
        Box::pin(async move {
            self.1.now().await.map_err(Unavailable)?;
            self.0.fetch(reads).await
        })
    }
    fn commit_around(&self, writes: Vec<Write>) -> Answer<'_, Vec<u64>, CommitError> {
        Box::pin(async move {
            self.1.now().await.map_err(CommitError::Unavailable)?;
            self.0.commit(writes).await
        })
    }
}

/// A node under this master key that has not started yet.
fn under(master: u8, engine: Arc<dyn Engine>) -> App {
    let realm = Realm { id: "main".into(), issuer: "http://localhost".into(), settings: Settings::default() };
    let hashing = Hashing { threads: std::num::NonZeroUsize::new(1), memory: Some(32 << 20), ..Hashing::default() };
    let hasher = Hasher::start(hashing).unwrap();
    App::new(realm, engine, hasher, Keyring::new(&[master; 32]).unwrap(), Clock::fixed(NOW)).unwrap()
}

/// Starts a node, and another one with another master key before that step of the first; returns what either said, or
/// `None` if the first does not take so many steps.
async fn two_that_start(folder: &Path, step: usize) -> Option<[Result<(), Fault>; 2]> {
    let engine = database(folder).await;
    let around = Arc::new(Meanwhile(Arc::clone(&engine), Coming::default()));
    let (one, other, said) = (under(1, Arc::clone(&around) as Arc<_>), under(2, engine), Arc::new(Mutex::default()));
    let says: Arc<Mutex<Option<_>>> = Arc::clone(&said);
    around.1.after(step, async move {
        let prepared = other.prepare().await;
        *says.lock().unwrap() = Some(prepared);
        Ok(())
    });
    let one = one.prepare().await;
    let other = said.lock().unwrap().take()?;
    Some([one, other])
}

#[tokio::test]
async fn of_two_nodes_with_different_master_keys_that_start_at_once_one_does_not() {
    // Red without the second look at the keys in keyring.rs, prepare: a node that found none at first, and then those
    // of the other, served although it could not sign.
    let mut steps = 0;
    loop {
        let folder = tempfile::tempdir().unwrap();
        let Some(said) = two_that_start(folder.path(), steps).await else { break };
        let refused: Vec<_> = said.iter().filter_map(|said| said.as_ref().err()).collect();
        assert!(matches!(refused[..], [Fault::Foreign(_)]), "before step {steps}: {said:?}");
        steps += 1;
    }
    assert!(steps > 6, "{steps}");
}
