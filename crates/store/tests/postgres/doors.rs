//! Ways in: TLS with certificates of one's own, a socket in a folder, a pooler between.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use store::conformance::{self, MIGRATIONS};
use store::engine::{CommitError, Engine};
use store::postgres::Postgres;
use store::remote::{OpenError, Settings, Statements, Tls};
use tempfile::TempDir;

use crate::server::{Database, database, text};
use crate::until::until;

/// A database on a server that `scripts/databases` has made certificates for, and their folder.
async fn sealed() -> Option<(Database, TempDir)> {
    let database = database().await?;
    let Some(folder) = database.folder().await else {
        println!("not run: the server is none of `scripts/databases`, or has no certificates");
        return None;
    };
    // Its files are not everybody's.
    let copy = tempfile::tempdir().unwrap();
    for file in ["ca.pem", "client.pem", "client.key"] {
        std::fs::copy(folder.join(file), copy.path().join(file)).unwrap();
    }
    Some((database, copy))
}

async fn is_sealed(database: &Database) -> bool {
    let sql = format!(
        "SELECT bool_and(s.ssl) FROM pg_stat_ssl s JOIN pg_stat_activity a USING (pid) \
         WHERE a.datname = '{}' AND a.application_name = 'portiere'",
        database.name
    );
    text(&database.admin().await, &sql).await == "t"
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_is_sealed_with_who_is_believed() {
    let Some((database, folder)) = sealed().await else { return };
    let tls = Tls { authorities: Some(folder.path().join("ca.pem")), identity: None };
    for query in ["sslmode=require", "sslmode=verify-full", "sslmode=require&channel_binding=require"] {
        let url = format!("{}&{query}", database.url());
        let settings = Settings { tls: tls.clone(), ..Settings::at(url) };
        let engine = Postgres::open(settings, MIGRATIONS).await.unwrap();
        assert!(is_sealed(&database).await, "{query}");
        let failures = if query == "sslmode=require" { conformance::run(Arc::new(engine)).await } else { vec![] };
        assert!(failures.is_empty(), "{failures:#?}");
    }
    let open = database.open().await;
    assert!(!is_sealed(&database).await, "on this machine it need not be");
    drop(open);
}

#[tokio::test]
async fn who_is_not_believed_is_not_talked_to() {
    let Some((database, folder)) = sealed().await else { return };
    let refused = |url: String, tls: Tls| async {
        match Postgres::open(Settings { tls, ..Settings::at(url) }, MIGRATIONS).await {
            Ok(_) => panic!("it was let in"),
            Err(OpenError::Refused(why)) => assert!(why.contains("TLS"), "{why}"),
            Err(error) => panic!("{error:?}"),
        }
    };
    refused(format!("{}&sslmode=require", database.url()), Tls::default()).await;
    // The certificate is for localhost and 127.0.0.1, and nobody else.
    let ours = Tls { authorities: Some(folder.path().join("ca.pem")), identity: None };
    let other =
        format!("postgres://{0}:{0}@other:{1}/{0}?hostaddr=127.0.0.1&sslmode=require", database.name, database.port);
    refused(other, ours).await;
}

#[tokio::test]
async fn a_server_that_asks_who_we_are_is_shown_a_certificate() {
    let Some((database, folder)) = sealed().await else { return };
    let admin = database.admin().await;
    // Another test may be making it at the same time.
    drop(admin.batch_execute("CREATE ROLE certified LOGIN").await);
    admin.batch_execute(&format!("GRANT ALL ON DATABASE {} TO certified", database.name)).await.unwrap();
    let place = format!("127.0.0.1:{}/{}", database.port, database.name);
    let url = format!("postgres://certified@{place}?sslmode=require&connect_timeout=30");
    let file = |name: &str| folder.path().join(name);
    let with = |identity| Tls { authorities: Some(file("ca.pem")), identity };
    let known = Settings { tls: with(Some((file("client.pem"), file("client.key")))), ..Settings::at(&url) };
    Postgres::open(known, MIGRATIONS).await.map(drop).unwrap();
    let stranger = Postgres::open(Settings { tls: with(None), ..Settings::at(&url) }, MIGRATIONS).await;
    assert!(matches!(stranger, Err(OpenError::Refused(_))));
}

#[tokio::test]
async fn a_password_comes_from_its_file_and_the_next_connection_takes_the_next_one() {
    // Red without `password` in postgres/connect.rs, or where it is read once.
    let Some(database) = database().await else { return };
    let admin = database.admin().await;
    let file = tempfile::NamedTempFile::new().unwrap();
    // As it is: nothing of it is percent-encoded.
    let changed = async |word: &str| {
        admin.batch_execute(&format!("ALTER ROLE {} PASSWORD '{word}'", database.name)).await.unwrap();
        std::fs::write(file.path(), format!("{word}\n")).unwrap();
    };
    changed("p%4 :/@").await;
    let url = format!("postgres://{0}@127.0.0.1:{1}/{0}?connect_timeout=30", database.name, database.port);
    let settings = Settings { url, password: Some(file.path().to_owned()), ..database.settings() };
    let engine = Postgres::open(settings.clone(), MIGRATIONS).await.unwrap();
    engine.migrate().await.unwrap();
    changed("the next").await;
    database.end_sessions("").await;
    until("a commit by the next password", async || engine.commit(conformance::three_rows(1)).await.is_ok()).await;
    std::fs::write(file.path(), "").unwrap();
    let Err(OpenError::File(named, _)) = Postgres::judge(&settings) else { panic!() };
    assert_eq!(named, file.path());
}

#[tokio::test]
async fn a_socket_in_a_folder_will_do() {
    let Some(database) = database().await else { return };
    let folder = text(&database.admin().await, "SHOW unix_socket_directories").await;
    if folder.is_empty() {
        return;
    }
    let folder = folder.replace('/', "%2F");
    let url = format!("postgres://{0}:{0}@{folder}:{1}/{0}?connect_timeout=30", database.name, database.port);
    let engine = Postgres::open(Settings::at(url), MIGRATIONS).await.unwrap();
    engine.migrate().await.unwrap();
    engine.commit(conformance::three_rows(1)).await.unwrap();
}

/// PgBouncer in transaction mode, which gives each transaction another of the server's connections.
struct Pooler {
    process: Child,
    port: u16,
    _folder: TempDir,
}

impl Pooler {
    async fn before(database: &Database) -> Option<Self> {
        let program = ["/usr/sbin/pgbouncer", "/usr/bin/pgbouncer"].into_iter().find(|path| Path::new(path).exists());
        let Some(program) = program else {
            println!("not run: needs the package pgbouncer");
            return None;
        };
        let folder = tempfile::tempdir().unwrap();
        // Those that the system gives to connections begin at 32768: one of them could be taken before the pooler begins.
        static DRAWN: AtomicU32 = AtomicU32::new(0);
        let drawn = std::process::id() + DRAWN.fetch_add(1, Relaxed);
        let port = 10_000 + u16::try_from(drawn % 22_000).unwrap();
        let (name, users) = (&database.name, folder.path().join("users"));
        let settings = format!(
            "[databases]\n{name} = host=127.0.0.1 port={} user={name} password={name}\n[pgbouncer]\n\
             listen_addr = 127.0.0.1\nlisten_port = {port}\nauth_type = plain\nauth_file = {}\npool_mode = transaction\n\
             default_pool_size = 3\nunix_socket_dir =\n",
            database.port,
            users.display()
        );
        let file = folder.path().join("pgbouncer.ini");
        std::fs::write(&users, format!("\"{name}\" \"{name}\"\n")).unwrap();
        std::fs::write(&file, settings).unwrap();
        std::fs::set_permissions(folder.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        let mut command = Command::new(program);
        // It refuses to be root.
        if std::os::unix::fs::MetadataExt::uid(&folder.path().metadata().unwrap()) == 0 {
            command.args(["-u", "nobody"]);
        }
        let quiet = command.arg("-q").arg(file).stdout(Stdio::null()).stderr(Stdio::null());
        let pooler = Pooler { process: quiet.spawn().unwrap(), port, _folder: folder };
        until("the pooler starts", async || std::net::TcpStream::connect(("127.0.0.1", port)).is_ok()).await;
        Some(pooler)
    }
}

impl Drop for Pooler {
    fn drop(&mut self) {
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn postgres_conforms_behind_a_pooler_in_transaction_mode() {
    let Some(database) = database().await else { return };
    let Some(pooler) = Pooler::before(&database).await else { return };
    let settings = || Settings { statements: Statements::Unnamed, ..Settings::at(database.url_at(pooler.port)) };
    let [one, two] = [settings(), settings()].map(|settings| Postgres::open(settings, MIGRATIONS));
    let (one, two) = futures_util::future::join(one, two).await;
    let (one, two) = (one.unwrap(), two.unwrap());
    let (first, second) = futures_util::future::join(one.migrate(), two.migrate()).await;
    assert_eq!((first, second), (Ok(()), Ok(())));
    drop(two);
    let failures = conformance::run(Arc::new(one)).await;
    assert!(failures.is_empty(), "{failures:#?}");
}

/// Whoever forgets to say so is told what to say.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kept_statements_behind_such_a_pooler_are_explained() {
    let Some(database) = database().await else { return };
    let Some(pooler) = Pooler::before(&database).await else { return };
    let explained = |why: &str| why.contains("store.statements = \"unnamed\"");
    let settings = Settings::at(database.url_at(pooler.port));
    let engine = match Postgres::open(settings, MIGRATIONS).await {
        Err(error) => return assert!(explained(&error.to_string()), "{error}"),
        Ok(engine) => Arc::new(engine),
    };
    drop(database.ready(|_| ()).await);
    let mut running = tokio::task::JoinSet::new();
    for number in 0..200 {
        let engine = Arc::clone(&engine);
        running.spawn(async move { engine.commit(conformance::three_rows(number)).await });
    }
    let answers = running.join_all().await;
    let told =
        |answer: &Result<Vec<u64>, CommitError>| matches!(answer, Err(CommitError::Unavailable(why)) if explained(why));
    assert!(answers.iter().any(told), "{answers:?}");
}
