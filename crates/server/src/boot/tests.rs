//! Opening, and who may.

use super::*;
use crate::config::Sources;
use rules::jose::Alg;
use rules::{Change, Fresh};
use std::path::Path;
use store::engine::Engine;
use store::migrations::MIGRATIONS;
use store::moving::catalogue;
use store::sqlite::{Options, Sqlite};
use store::tables::changes;

const OWN: [u8; 32] = [7; 32];

/// A database as the first schema had it, with a key that [`OWN`] sealed.
async fn earlier(file: &Path) {
    let sqlite = Sqlite::open(Options::at(file), &MIGRATIONS[..1]).unwrap();
    sqlite.migrate().await.unwrap();
    let (now, fresh) = (Time(1_800_000_000_000), Fresh::new([1; 32]));
    let key = Keyring::new(&OWN).unwrap().make(Alg::ES256, now, &fresh).unwrap();
    let add = changes::batch(&RealmId::from(FIRST_REALM), &[Change::AddKey(Box::new(key))], now, &fresh);
    sqlite.commit(add).await.unwrap();
    sqlite.close();
}

async fn tables(file: &Path) -> usize {
    catalogue::tables(&Sqlite::open(Options::at(file), MIGRATIONS).unwrap()).await.unwrap().len()
}

#[tokio::test]
async fn whoever_has_another_master_key_leaves_the_schema_as_it_is() {
    // red without the look at what is sealed in `hold`, or where it comes after `begin`.
    let folder = tempfile::tempdir().unwrap();
    let flags = vec![("data", folder.path().display().to_string()), ("hash.threads", "1".to_owned())];
    let config = Config::load(Sources { flags, ..Sources::default() }).unwrap();
    let file = config.database().unwrap();
    earlier(&file).await;
    let before = tables(&file).await;
    let key = config.master_key_file();
    crate::private::create(&key, &[8; 32]).unwrap();
    let refused = Instance::open(&config, None).await.err().unwrap().to_string();
    assert!(refused.contains("the master key is another one") && refused.contains("master.key"), "{refused}");
    assert_eq!(tables(&file).await, before);
    crate::private::replace(&key, &OWN).unwrap();
    Instance::open(&config, None).await.unwrap().close().await;
    assert!(tables(&file).await > before, "or the test shows nothing");
}
