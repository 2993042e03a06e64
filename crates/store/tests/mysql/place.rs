//! A database for one test, and how to look at it from outside.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::Duration;

use mysql_async::prelude::{FromRow, Queryable};
use mysql_async::{Conn, Opts, OptsBuilder};
use store::conformance::{MIGRATIONS, three_reads};
use store::engine::Engine;
use store::mysql::Mysql;
use store::remote::Settings;
use tokio::sync::{OnceCell, RwLock, RwLockReadGuard, RwLockWriteGuard};

use super::until::until;

/// Held by every test; alone by those that change settings of the whole server.
static SERVER: RwLock<()> = RwLock::const_new(());

/// What a run that was stopped half-way left changed is put right by the first test of the next.
static RESTORED: OnceCell<()> = OnceCell::const_new();

async fn restore(server: &str) {
    let mut admin = Conn::new(connect(server)).await.unwrap();
    for sql in ["SET GLOBAL read_only = 0", "SET GLOBAL innodb_flush_log_at_trx_commit = 1"] {
        admin.query_drop(sql).await.unwrap();
    }
    // MariaDB has none.
    drop(admin.query_drop("SET GLOBAL offline_mode = 0").await);
}

#[allow(dead_code, reason = "held, not looked at")]
enum Held {
    Shared(RwLockReadGuard<'static, ()>),
    Alone(RwLockWriteGuard<'static, ()>),
}

/// Of a machine that may stand still for a moment: connecting may take a quarter of that.
pub fn patient(url: String) -> Settings {
    Settings { timeout: Duration::from_secs(60), ..Settings::at(url) }
}

/// A database of one test.
pub struct Place {
    pub admin: Conn,
    /// The server's URL, up to the database.
    pub server: String,
    pub database: String,
    _held: Held,
}

fn connect(url: &str) -> OptsBuilder {
    OptsBuilder::from_opts(Opts::from_url(url).unwrap()).prefer_socket(false)
}

impl Place {
    /// `None` where there is no server to test with.
    pub async fn new() -> Option<Self> {
        Place::held(Held::Shared(SERVER.read().await)).await
    }

    /// With no other test beside it.
    pub async fn alone() -> Option<Self> {
        Place::held(Held::Alone(SERVER.write().await)).await
    }

    async fn held(held: Held) -> Option<Self> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let Some(server) = std::env::var("PORTIERE_TEST_MYSQL").ok().filter(|url| !url.is_empty()) else {
            println!("skipped: start a server with scripts/databases, and put its URL into PORTIERE_TEST_MYSQL");
            return None;
        };
        let server = server.trim_end_matches('/').to_owned();
        let mut admin = Conn::new(connect(&server)).await.unwrap();
        // A transaction that was left open shows as a failure.
        admin.query_drop("SET SESSION lock_wait_timeout = 20").await.unwrap();
        RESTORED.get_or_init(|| restore(&server)).await;
        let database = format!("portiere_test_{}_{}", std::process::id(), NEXT.fetch_add(1, Relaxed));
        admin.query_drop(format!("CREATE DATABASE {database}")).await.unwrap();
        Some(Place { admin, server, database, _held: held })
    }

    pub fn settings(&self) -> Settings {
        patient(format!("{}/{}", self.server, self.database))
    }

    pub fn with(&self, change: impl FnOnce(&mut Settings)) -> Settings {
        let mut settings = self.settings();
        change(&mut settings);
        settings
    }

    /// The account of the server's URL, reached through other hosts.
    pub fn at(&self, hosts: &str) -> Settings {
        let (account, _) = self.server.rsplit_once('@').unwrap();
        patient(format!("{account}@{hosts}/{}", self.database))
    }

    /// `127.0.0.1:PORT`
    pub fn host(&self) -> &str {
        self.server.rsplit_once('@').unwrap().1
    }

    /// Settings of an account of this test, which may do what the words after it say.
    pub async fn account(&mut self, name: &str, requires: &str) -> Settings {
        let account = format!("{}_{name}", self.database);
        self.run(&format!("CREATE USER {account}@localhost IDENTIFIED BY 'word' REQUIRE {requires}")).await;
        self.run(&format!("GRANT ALL ON {}.* TO {account}@localhost", self.database)).await;
        patient(format!("mysql://{account}:word@{}/{}", self.host(), self.database))
    }

    pub async fn open(&self) -> Arc<Mysql> {
        Arc::new(Mysql::open(self.settings(), MIGRATIONS).await.unwrap())
    }

    pub async fn ready(&self) -> Arc<Mysql> {
        self.ready_with(self.settings()).await
    }

    pub async fn ready_with(&self, settings: Settings) -> Arc<Mysql> {
        let engine = Mysql::open(settings, MIGRATIONS).await.unwrap();
        engine.migrate().await.unwrap();
        Arc::new(engine)
    }

    /// Whether this is a server of MariaDB, and not of MySQL.
    pub async fn is_mariadb(&mut self) -> bool {
        self.query::<String>("SELECT VERSION()").await[0].contains("MariaDB")
    }

    /// How many transactions of this server were ended so that another could go on.
    pub async fn deadlocks(&mut self) -> u64 {
        let (column, table, name) = match self.is_mariadb().await {
            true => ("variable_value", "global_status", "variable_name = 'innodb_deadlocks'"),
            false => ("count", "innodb_metrics", "name = 'lock_deadlocks'"),
        };
        let sql = format!("SELECT CAST({column} AS UNSIGNED) FROM information_schema.{table} WHERE {name}");
        self.query(&sql).await[0]
    }

    /// A connection of one's own to the test's database.
    pub async fn conn(&self) -> Conn {
        Conn::new(connect(&self.server).db_name(Some(&self.database))).await.unwrap()
    }

    /// Runs something as one who may do everything.
    pub async fn run(&mut self, sql: &str) {
        self.admin.query_drop(sql).await.unwrap();
    }

    pub async fn query<T: FromRow + Send + 'static>(&mut self, sql: &str) -> Vec<T> {
        self.admin.query(sql).await.unwrap()
    }

    /// Connections that others have to the test's database.
    pub async fn connected(&mut self) -> Vec<u64> {
        let sql = format!("SELECT id FROM information_schema.processlist WHERE db = '{}'", self.database);
        self.query(&sql).await
    }

    /// Ends every connection to the test's database; returns when those have ended. Others may have been made meanwhile.
    pub async fn kill(&mut self) -> usize {
        let connected = self.connected().await;
        for id in &connected {
            // It may have gone by itself.
            drop(self.admin.query_drop(format!("KILL {id}")).await);
        }
        until("the end of what was ended", async || self.connected().await.iter().all(|id| !connected.contains(id)))
            .await;
        connected.len()
    }

    /// Ends what takes its time at the server, and nothing else.
    pub async fn wake(&mut self) {
        let sql = format!(
            "SELECT id FROM information_schema.processlist WHERE db = '{}' AND info LIKE 'DO SLEEP%'",
            self.database
        );
        let asleep: Vec<u64> = self.query(&sql).await;
        assert!(!asleep.is_empty(), "nobody sleeps");
        for id in asleep {
            self.run(&format!("KILL {id}")).await;
        }
    }

    /// Only after a test that passed: what one that failed leaves behind may say why.
    pub async fn remove(mut self) {
        self.run(&format!("DROP DATABASE {}", self.database)).await;
        let sql = format!("SELECT user FROM mysql.user WHERE user LIKE '{}\\_%'", self.database);
        for account in self.query::<String>(&sql).await {
            self.run(&format!("DROP USER {account}@localhost")).await;
        }
    }
}

/// How many rows of `three_rows(number)` are there.
pub async fn found(engine: &Mysql, number: i64) -> usize {
    engine.fetch(&three_reads(number)).await.unwrap().concat().len()
}
