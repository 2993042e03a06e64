//! Databases to move between.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Opts};
use store::engine::{Answer, Around, Engine, Unavailable};
use store::migrations::MIGRATIONS;
use store::moving::{Move, Step, Sum, Trouble, fence};
use store::mysql::Mysql;
use store::postgres::Postgres;
use store::remote::Settings;
use store::sqlite::{Options, Sqlite};
use tempfile::TempDir;

/// An empty database, mostly of our schema.
pub struct Place {
    pub engine: Arc<dyn Engine>,
    pub kind: &'static str,
    _folder: Option<TempDir>,
}

impl Place {
    /// With our schema.
    async fn ready(self) -> Place {
        self.engine.migrate().await.unwrap();
        self
    }
}

/// An engine whose server is replaced, by one that has the same rows.
pub struct Replaced {
    engine: Arc<dyn Engine>,
    generation: AtomicU64,
    /// Whether that happens at each change of the schema, such as the making of fences.
    at_changes: bool,
}

impl Replaced {
    pub fn new(engine: Arc<dyn Engine>, at_changes: bool) -> Self {
        Replaced { engine, generation: AtomicU64::new(1), at_changes }
    }

    pub fn replace(&self) {
        self.generation.fetch_add(1, Relaxed);
    }
}

impl Around for Replaced {
    fn inside(&self) -> &dyn Engine {
        &*self.engine
    }
    fn alter_around(&self, statements: Vec<String>) -> Answer<'_, (), Unavailable> {
        if self.at_changes {
            self.replace();
        }
        self.engine.alter(statements)
    }
    fn generation_around(&self) -> u64 {
        self.generation.load(Relaxed)
    }
}

/// In a file.
pub async fn file() -> Place {
    bare_file().ready().await
}

fn bare_file() -> Place {
    let folder = tempfile::tempdir().unwrap();
    let engine = Sqlite::open(Options::at(folder.path().join("facts.db")), MIGRATIONS).unwrap();
    Place { engine: Arc::new(engine), kind: "SQLite", _folder: Some(folder) }
}

fn fresh() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!("moving_{}_{}", std::process::id(), NEXT.fetch_add(1, Relaxed))
}

/// Of a machine that may stand still for a moment: connecting may take a part of that.
fn patient(url: String) -> Settings {
    Settings { timeout: Duration::from_secs(60), ..Settings::at(url) }
}

fn given(name: &str) -> Option<String> {
    let url = std::env::var(name).ok().filter(|url| !url.is_empty());
    if url.is_none() {
        println!("not run: start a server with scripts/databases, and put its URL into {name}");
    }
    url
}

/// On a PostgreSQL server, where there is one.
pub async fn postgres() -> Option<Place> {
    Some(bare_postgres().await?.ready().await)
}

async fn bare_postgres() -> Option<Place> {
    let admin = given("PORTIERE_TEST_POSTGRES")?;
    let name = fresh();
    let config: tokio_postgres::Config = admin.parse().unwrap();
    let (client, connection) = config.connect(tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    client.batch_execute(&format!("CREATE DATABASE {name}")).await.unwrap();
    let url = format!("{}/{name}?connect_timeout=30", admin.rsplit_once('/').unwrap().0);
    let engine = Postgres::open(patient(url), MIGRATIONS).await.unwrap();
    Some(Place { engine: Arc::new(engine), kind: "PostgreSQL", _folder: None })
}

/// On a MySQL or MariaDB server, where there is one.
pub async fn mysql() -> Option<Place> {
    Some(bare_mysql().await?.ready().await)
}

async fn bare_mysql() -> Option<Place> {
    let admin = given("PORTIERE_TEST_MYSQL")?;
    let name = fresh();
    let mut conn = Conn::new(Opts::from_url(&admin).unwrap()).await.unwrap();
    conn.query_drop(format!("CREATE DATABASE {name}")).await.unwrap();
    let url = format!("{}/{name}", admin.trim_end_matches('/'));
    let engine = Mysql::open(patient(url), MIGRATIONS).await.unwrap();
    Some(Place { engine: Arc::new(engine), kind: "MariaDB", _folder: None })
}

/// Databases whose user may read and nothing else, with what filling and fencing lack then.
pub async fn limited() -> Vec<(Place, &'static str, &'static str)> {
    let mut places = Vec::new();
    if let Some(admin) = given("PORTIERE_TEST_POSTGRES") {
        let name = fresh();
        let config: tokio_postgres::Config = admin.parse().unwrap();
        let (client, connection) = config.connect(tokio_postgres::NoTls).await.unwrap();
        tokio::spawn(connection);
        client.batch_execute(&format!("CREATE ROLE {name} LOGIN PASSWORD '{name}'")).await.unwrap();
        client.batch_execute(&format!("CREATE DATABASE {name}")).await.unwrap();
        let place = admin.rsplit_once('@').unwrap().1.rsplit_once('/').unwrap().0;
        let made = Postgres::open(patient(format!("{}/{name}", admin.rsplit_once('/').unwrap().0)), MIGRATIONS).await;
        // Before version 15 everybody may make tables in this schema.
        made.unwrap().alter(vec!["REVOKE CREATE ON SCHEMA public FROM PUBLIC".to_owned()]).await.unwrap();
        let url = format!("postgres://{name}:{name}@{place}/{name}");
        let engine = Arc::new(Postgres::open(patient(url), MIGRATIONS).await.unwrap());
        places.push((
            Place { engine, kind: "PostgreSQL", _folder: None },
            "CREATE on the schema",
            "CREATE on the schema",
        ));
    }
    if let Some(admin) = given("PORTIERE_TEST_MYSQL") {
        let name = fresh();
        let mut conn = Conn::new(Opts::from_url(&admin).unwrap()).await.unwrap();
        conn.query_drop(format!("CREATE DATABASE {name}")).await.unwrap();
        conn.query_drop(format!("CREATE USER {name}@localhost IDENTIFIED BY '{name}'")).await.unwrap();
        conn.query_drop(format!("GRANT SELECT ON {name}.* TO {name}@localhost")).await.unwrap();
        let place = admin.trim_end_matches('/').rsplit_once('@').unwrap().1;
        let url = format!("mysql://{name}:{name}@{place}/{name}");
        let engine = Arc::new(Mysql::open(patient(url), MIGRATIONS).await.unwrap());
        places.push((
            Place { engine, kind: "MariaDB", _folder: None },
            "INSERT on the database",
            "TRIGGER on the database",
        ));
    }
    places
}

/// One of each engine that is there.
pub async fn all() -> Vec<Place> {
    [Some(file().await), postgres().await, mysql().await].into_iter().flatten().collect()
}

/// The same before anything was made in it.
pub async fn all_bare() -> Vec<Place> {
    [Some(bare_file()), bare_postgres().await, bare_mysql().await].into_iter().flatten().collect()
}

/// Moves everything, in small pages.
pub async fn run(from: &dyn Engine, to: &dyn Engine) -> Result<Option<Vec<Sum>>, Trouble> {
    run_with(from, to, &|_| {}).await
}

pub async fn run_with(
    from: &dyn Engine,
    to: &dyn Engine,
    tell: &(dyn Fn(Step) + Sync),
) -> Result<Option<Vec<Sum>>, Trouble> {
    let id = fence::raise(from, "move-1", "there").await?;
    Move { from, to, id: &id, from_name: "here", page: 3, tell }.run().await
}
