//! A database of one's own on the server that the tests were given.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::Duration;

use store::conformance::MIGRATIONS;
use store::engine::Engine;
use store::postgres::Postgres;
use store::remote::Settings;
use tokio_postgres::{Client, Config, NoTls, SimpleQueryMessage};

/// A database, and a role that owns it and may do nothing else.
pub struct Database {
    pub name: String,
    admin: Config,
    pub port: u16,
}

/// A new database; `None`, with a word, where there is no server to make one on.
pub async fn database() -> Option<Database> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let Some(admin) = admin_url() else {
        println!("not run: needs PORTIERE_TEST_POSTGRES, the URL that `scripts/databases up postgres FOLDER` prints");
        return None;
    };
    let admin: Config = admin.parse().unwrap();
    let port = admin.get_ports()[0];
    let name = format!("portiere_{}_{}", std::process::id(), NEXT.fetch_add(1, Relaxed));
    let database = Database { name: name.clone(), admin, port };
    let client = connect(&database.admin).await;
    client.batch_execute(&format!("CREATE ROLE {name} LOGIN PASSWORD '{name}'")).await.unwrap();
    client.batch_execute(&format!("CREATE DATABASE {name} OWNER {name}")).await.unwrap();
    Some(database)
}

#[allow(clippy::disallowed_methods, reason = "a test has no configuration")]
fn admin_url() -> Option<String> {
    std::env::var("PORTIERE_TEST_POSTGRES").ok()
}

#[allow(clippy::disallowed_methods, reason = "it ends with its client")]
async fn connect(config: &Config) -> Client {
    let (client, connection) = config.connect(NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

impl Database {
    /// Where it is, as its owner.
    pub fn url(&self) -> String {
        self.url_at(self.port)
    }

    /// Where it is, as its owner, through something that listens at this port. A machine may stand still for a moment while
    /// somebody connects.
    pub fn url_at(&self, port: u16) -> String {
        format!("postgres://{0}:{0}@127.0.0.1:{port}/{0}?connect_timeout=30", self.name)
    }

    /// Settings with patience: a lock is waited for a quarter of that.
    pub fn settings(&self) -> Settings {
        Settings { timeout: Duration::from_secs(60), ..Settings::at(self.url()) }
    }

    /// An engine whose schema is not brought up yet.
    pub async fn open(&self) -> Postgres {
        Postgres::open(self.settings(), MIGRATIONS).await.unwrap()
    }

    /// An engine that is ready.
    pub async fn ready(&self, change: impl FnOnce(&mut Settings)) -> Postgres {
        let mut settings = self.settings();
        change(&mut settings);
        let engine = Postgres::open(settings, MIGRATIONS).await.unwrap();
        engine.migrate().await.unwrap();
        engine
    }

    /// Another session in this database, as one who may do everything.
    pub async fn admin(&self) -> Client {
        let mut config = self.admin.clone();
        connect(config.dbname(&self.name)).await
    }

    /// Something that holds for every later session in this database.
    pub async fn set(&self, setting: &str) {
        self.admin().await.batch_execute(&format!("ALTER DATABASE {} SET {setting}", self.name)).await.unwrap();
    }

    /// Ends the engines' sessions, those that `which` leaves, and waits until they have ended.
    pub async fn end_sessions(&self, which: &str) {
        let sql = format!(
            "SELECT count(pg_terminate_backend(pid, 5000)) FROM (SELECT pid FROM pg_catalog.pg_stat_activity WHERE datname = '{}' \
             AND application_name = 'portiere' {which}) AS ours",
            self.name
        );
        text(&self.admin().await, &sql).await;
    }

    /// The server's folder, as `scripts/databases` made it, if it was that.
    pub async fn folder(&self) -> Option<std::path::PathBuf> {
        let data = text(&self.admin().await, "SHOW data_directory").await;
        std::path::Path::new(&data)
            .parent()
            .map(Into::into)
            .filter(|folder: &std::path::PathBuf| folder.join("ca.pem").exists())
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        let (admin, name) = (self.admin.clone(), self.name.clone());
        let (done, dropped) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let client = connect(&admin).await;
                drop(client.batch_execute(&format!("DROP DATABASE {name} WITH (FORCE)")).await);
                drop(client.batch_execute(&format!("DROP ROLE {name}")).await);
            });
            let _ = done.send(());
        });
        // Not longer: the server waits with it until whoever is half signed in has gone, and that may be an engine of ours
        // which this thread would have to let go.
        let _ = dropped.recv_timeout(Duration::from_secs(1));
    }
}

/// The one value of a query.
pub async fn text(client: &Client, sql: &str) -> String {
    let rows = client.simple_query(sql).await.unwrap();
    let row = rows.iter().find_map(|message| match message {
        SimpleQueryMessage::Row(row) => row.get(0),
        _ => None,
    });
    row.unwrap_or_default().to_owned()
}
