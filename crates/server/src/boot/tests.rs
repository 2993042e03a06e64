//! Opening an instance, and which process may.

use super::*;
use crate::config::Sources;
use crate::private::aside;
use rules::jose::Alg;
use rules::{Change, Fresh};
use std::path::Path;
use store::engine::Engine;
use store::migrations::MIGRATIONS;
use store::moving::marks::{Arrival, Marks};
use store::moving::{Move, catalogue, fence};
use store::schema::Migration;
use store::sqlite::{Options, Sqlite};
use store::tables::changes;

const OWN: [u8; 32] = [7; 32];

async fn put(file: &Path, key: [u8; 32]) {
    let file = file.to_owned();
    aside(move || crate::private::replace(&file, &key)).await.unwrap();
}

/// Makes a database as the first schema had it, with a key that [`OWN`] sealed.
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
    put(&key, [8; 32]).await;
    let refused = Instance::open(&config, None).await.err().unwrap().to_string();
    assert!(refused.contains("it belongs to another master key") && refused.contains("master.key"), "{refused}");
    // Red without it in `explain`: a node that was started beside others has a key of its own, and none to put back.
    assert!(refused.contains("if another node was first, copy its key there"), "{refused}");
    assert_eq!(tables(&file).await, before);
    put(&key, OWN).await;
    let opened = Instance::open(&config, None).await.unwrap();
    // Red where `begin` looks at the schema after it migrated: a command that only asked would migrate without a word.
    assert_eq!(opened.schema_before, MIGRATIONS[0].version);
    opened.close().await;
    assert!(tables(&file).await > before, "or the test shows nothing");
    let again = Instance::open(&config, None).await.unwrap();
    assert_eq!(again.schema_before, MIGRATIONS.last().unwrap().version);
    again.close().await;
}

/// Makes a file of the version after the next, which no earlier program can work on.
fn of_later(file: &Path) -> Sqlite {
    let version = MIGRATIONS.len() as i64;
    let later = |ahead| Migration { version: version + ahead, name: "later", oldest: version + ahead, steps: &[] };
    Sqlite::open(Options::at(file), Vec::leak([MIGRATIONS, &[later(1), later(2)]].concat())).unwrap()
}

#[tokio::test]
async fn whoever_cannot_work_on_what_was_moved_here_has_not_served_from_it() {
    // red where `begin` marks the move as served before it checks the schema: the move could not be given up any more.
    let folder = tempfile::tempdir().unwrap();
    let flags = vec![("data", folder.path().display().to_string()), ("hash.threads", "1".to_owned())];
    let config = Config::load(Sources { flags, ..Sources::default() }).unwrap();
    put(&config.master_key_file(), OWN).await;
    let (from, to) = (of_later(&folder.path().join("old.db")), of_later(&config.database().unwrap()));
    from.migrate().await.unwrap();
    to.migrate().await.unwrap();
    let id = fence::raise(&from, "move-1", "there").await.unwrap();
    Move { from: &from, to: &to, id: &id, from_name: "here", page: 100, tell: &|_| {} }.run().await.unwrap();
    to.close();
    drop(to);
    let refused = Instance::open(&config, None).await.err().unwrap().to_string();
    assert!(refused.contains("newer program"), "{refused}");
    let to = of_later(&config.database().unwrap());
    assert_eq!(Marks::read(&to).await.unwrap().into.unwrap().state, Arrival::Ready);
}

#[tokio::test]
async fn the_port_is_closed_until_the_server_has_started() {
    // Red where `Ready::of` listens before `open_soon`: a connection would wait with a server that waits itself.
    let silent = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    // Keeps the port from other tests, and not from the server: nobody listens there.
    let kept = Bound::to(&["127.0.0.1:0".parse().unwrap()], false).unwrap();
    let (folder, address) = (tempfile::tempdir().unwrap(), kept.addresses()[0]);
    let url = format!("postgres://ada:secret@{}/portiere", silent.local_addr().unwrap());
    let data = folder.path().display().to_string();
    let flags = vec![("data", data), ("listen", address.to_string()), ("store.url", url)];
    let config = Config::load(Sources { flags, ..Sources::default() }).unwrap();
    let waiting = async {
        let asked = silent.accept().await.unwrap();
        (tokio::net::TcpStream::connect(address).await, asked)
    };
    tokio::select! {
        _ = Box::pin(Ready::of(&config, false)) => panic!("it waits for its database"),
        (connected, _asked) = waiting => {
            assert_eq!(connected.unwrap_err().kind(), std::io::ErrorKind::ConnectionRefused);
        }
    }
}
