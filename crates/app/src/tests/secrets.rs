//! The secrets of other systems with which hashes were made.

use super::{NOW, database, hashing_node};
use crate::clock::Clock;
use hasher::{Key, KeyId, Keys, Settings as Hashing};
use store::tables::secrets::{Secrets, note};
use zeroize::Zeroizing;

#[tokio::test]
async fn a_proof_that_an_earlier_version_made_gives_way_to_one_of_today() {
    // red without `forget` in passwords.rs, confirm_secrets: the fast one would stay, and could be guessed at.
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
