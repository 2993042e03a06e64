//! The engine for MySQL and MariaDB against the conformance suite, the real schema, and what it promises beyond that.
//!
//! Needs a server: `scripts/databases up mariadb FOLDER` prints the URL of one, for `PORTIERE_TEST_MYSQL`. Without it
//! every test passes and says so.
#![allow(clippy::unwrap_used, reason = "a test stops where something is wrong")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Opts};
use store::conformance::{self, MIGRATIONS};
use store::mysql::Mysql;
use store::remote::Settings;
use store::schema::Migration;
use tokio::sync::{RwLock, RwLockReadGuard};

/// Held by every test; alone by those that change settings of the whole server.
static SERVER: RwLock<()> = RwLock::const_new(());

/// A database of one test.
struct Place {
    admin: Conn,
    /// The server's URL, up to the database.
    server: String,
    database: String,
    _shared: Option<RwLockReadGuard<'static, ()>>,
}

impl Place {
    /// `None` where there is no server to test with.
    async fn new() -> Option<Self> {
        let shared = SERVER.read().await;
        Some(Place { _shared: Some(shared), ..Place::alone().await? })
    }

    async fn alone() -> Option<Self> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let Some(server) = std::env::var("PORTIERE_TEST_MYSQL").ok().filter(|url| !url.is_empty()) else {
            println!("skipped: start a server with scripts/databases, and put its URL into PORTIERE_TEST_MYSQL");
            return None;
        };
        let server = server.trim_end_matches('/').to_owned();
        let opts = mysql_async::OptsBuilder::from_opts(Opts::from_url(&server).unwrap()).prefer_socket(false);
        let mut admin = Conn::new(opts).await.unwrap();
        let database = format!("portiere_test_{}_{}", std::process::id(), NEXT.fetch_add(1, Relaxed));
        admin.query_drop(format!("CREATE DATABASE {database}")).await.unwrap();
        Some(Place { admin, server, database, _shared: None })
    }

    fn settings(&self) -> Settings {
        Settings::at(format!("{}/{}", self.server, self.database))
    }

    async fn open(&self) -> Arc<Mysql> {
        Arc::new(Mysql::open(self.settings(), MIGRATIONS).await.unwrap())
    }

    async fn ready(&self) -> Arc<Mysql> {
        use store::engine::Engine;
        let engine = self.open().await;
        engine.migrate().await.unwrap();
        engine
    }

    /// Only after a test that passed: what one that failed leaves behind may say why.
    async fn remove(mut self) {
        self.admin.query_drop(format!("DROP DATABASE {}", self.database)).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mysql_conforms() {
    let Some(place) = Place::new().await else { return };
    let failures = conformance::run(place.open().await).await;
    assert!(failures.is_empty(), "{failures:#?}");
    place.remove().await;
}
