//! One connection: how it is made, what is asked before it is used, and the statements that it keeps.

use std::time::Duration;

use mysql_async::prelude::Queryable;
use mysql_async::{ClientIdentity, Conn, Error, Opts, OptsBuilder, SslOpts, Statement};
use tokio::time::{Instant, timeout};

use super::address::{Address, Encryption, Host};
use super::fault::{hung_up, is_crowded, is_unfit, sentence};
use super::fitness::{self, Answers, Fitness};
use super::group;
use super::say::Phrase;
use crate::caught::caught;
use crate::dialect::mysql::Flavor;
use crate::held::Wait;
use crate::remote::{DATABASE, Loss, OpenError, Settings, Tls};
use crate::sealing::{self, Renewed};

/// Statements that a connection keeps prepared at most: more than there are.
const STATEMENTS: usize = 4096;

/// Answers have as many rows as there are.
const UNLIMITED: &str = "SET SESSION sql_select_limit = 18446744073709551615";

/// Probes of the network begin when a connection has been silent for so long.
const KEEPALIVE: Duration = Duration::from_secs(15);

/// On one machine a round trip takes 0.05 ms, in one building 0.2 ms.
const FAR: Duration = Duration::from_millis(1);

/// A server, and how to connect to it.
pub(super) struct Node {
    /// Where it is.
    pub(super) host: Host,
    opts: Renewed<Opts>,
    timeout: Duration,
    accepted: Vec<Loss>,
}

/// Why there is no connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Refused {
    /// The server is well, and has no room: another one would not help.
    Crowded(String),
    /// It cannot be reached, or turned us away.
    Unreachable(String),
    /// It was reached, and hung up before the connection was ready.
    HungUp(String),
    /// It is not what we need.
    Unfit(String),
}

impl Refused {
    pub(super) fn why(self) -> String {
        match self {
            Refused::Crowded(why) | Refused::Unreachable(why) | Refused::HungUp(why) | Refused::Unfit(why) => why,
        }
    }
}

impl From<Refused> for OpenError {
    fn from(refused: Refused) -> Self {
        match refused {
            Refused::Unfit(why) => OpenError::Unfit(why),
            refused => OpenError::Unreachable(refused.why()),
        }
    }
}

/// A connection.
pub(super) struct Link {
    /// The connection.
    pub(super) conn: Conn,
    /// In which era of the pool it was made.
    pub(super) era: u64,
    /// Whether it has been used before: then nobody knows whether the server still knows it.
    pub(super) used: bool,
    /// How long the network takes to the server and back, about.
    round_trip: Duration,
    /// How long its session waits for a row, and how long it may.
    wait: Wait,
    waits: Waits,
    /// By the number of the phrase.
    statements: Vec<Option<Statement>>,
}

impl Link {
    /// The statement of a phrase, prepared at its first use.
    pub(super) async fn statement(&mut self, phrase: &Phrase) -> Result<Statement, Error> {
        if let Some(Some(statement)) = self.statements.get(phrase.number) {
            return Ok(statement.clone());
        }
        let statement = self.conn.prep(phrase.text.as_str()).await?;
        if self.statements.len() <= phrase.number {
            self.statements.resize(phrase.number + 1, None);
        }
        self.statements[phrase.number] = Some(statement.clone());
        Ok(statement)
    }

    /// Says how long a row is waited for from now on, unless that was said before.
    pub(super) async fn wait(&mut self, wait: Wait) -> Result<(), Error> {
        if self.wait != wait {
            let seconds = self.waits.seconds(wait);
            self.conn.query_drop(format!("SET SESSION innodb_lock_wait_timeout = {seconds}")).await?;
            self.wait = wait;
        }
        Ok(())
    }

    /// The longest that waiting so for a row may take: the server looks once a second who has waited for long enough.
    pub(super) fn waits_at_most(&self, wait: Wait) -> Duration {
        match self.waits.seconds(wait) {
            0 => Duration::ZERO,
            seconds => Duration::from_secs(seconds + 1),
        }
    }

    /// Whether a round trip costs more than what two tasks cost that share a fetch.
    pub(super) fn is_far(&self) -> bool {
        self.round_trip > FAR
    }
}

/// How long a row is waited for.
#[derive(Clone, Copy)]
struct Waits {
    flavor: Flavor,
    /// The longest that a batch may take.
    limit: Duration,
}

impl Waits {
    /// In whole seconds, since these servers know no parts of one: a tenth of what a batch may take. MySQL waits for one at least.
    fn seconds(self, wait: Wait) -> u64 {
        match (wait, self.flavor) {
            (Wait::Awhile, _) => self.limit.as_millis().div_ceil(10_000).max(1) as u64,
            (Wait::Hardly, Flavor::MariaDb) => 0,
            (Wait::Hardly, Flavor::MySql) => 1,
        }
    }
}

impl Node {
    /// How to connect to each of the servers that a URL names.
    pub(super) fn all(settings: &Settings, address: &Address) -> Result<Vec<Node>, OpenError> {
        address.hosts.iter().map(|host| Node::new(settings, address, host)).collect()
    }

    fn new(settings: &Settings, address: &Address, host: &Host) -> Result<Node, OpenError> {
        let given = settings.tls.authorities.is_some() || settings.tls.identity.is_some();
        let encrypted = match (address.encryption, host) {
            (_, Host::Socket(_)) | (Encryption::Disabled, _) => false,
            (Encryption::Required, _) => true,
            (Encryption::Elsewhere, host) => given || !host.is_here(),
        };
        let opts = match host {
            Host::Tcp(name, port) => OptsBuilder::default().ip_or_hostname(name.as_str()).tcp_port(*port),
            Host::Socket(path) => OptsBuilder::default().socket(Some(path.as_str())),
        };
        let opts = opts
            .user(Some(address.user.as_str()))
            .pass(address.password.as_deref())
            .db_name(Some(address.database.as_str()))
            .client_found_rows(true)
            .prefer_socket(false)
            .tcp_keepalive(Some(KEEPALIVE))
            .wait_timeout(Some(0))
            .stmt_cache_size(STATEMENTS);
        let (timeout, accepted) = (settings.timeout, settings.accepted.clone());
        let used = if encrypted { settings.tls.clone() } else { Tls::default() };
        let password = settings.password.clone();
        let files = used.files().into_iter().chain(password.clone()).collect();
        let opts = Renewed::new(DATABASE, files, move || {
            let ssl = if encrypted { Some(ssl(&used)?) } else { None };
            let opts = opts.clone().ssl_opts(ssl);
            match &password {
                Some(file) => Ok(opts.pass(Some(sealing::password(file)?)).into()),
                None => Ok(opts.into()),
            }
        })?;
        Ok(Node { host: host.clone(), opts, timeout, accepted })
    }

    /// The longest that connecting may take: a part of what a request may, so that there is time left to ask another server.
    pub(super) fn patience(&self) -> Duration {
        self.timeout / 4
    }

    /// A connection that is set up, to a server that is fit.
    pub(super) async fn connect(&self, era: u64) -> Result<(Link, Fitness), Refused> {
        let limit = self.patience();
        match timeout(limit, caught(self.ready())).await {
            Ok(Ok(Ok((conn, fitness, round_trip)))) => {
                let (wait, statements) = (Wait::Awhile, Vec::new());
                let waits = Waits { flavor: fitness.flavor, limit: self.timeout };
                let link = Link { conn, era, used: false, round_trip, wait, waits, statements };
                Ok((link, fitness))
            }
            Ok(Ok(Err(refused))) => Err(refused),
            Ok(Err(why)) => Err(Refused::Unreachable(format!("{}: {why}", self.host))),
            Err(_) => Err(Refused::Unreachable(format!("{}: no answer within {limit:?}", self.host))),
        }
    }

    /// Tries once more where the server hung up: whoever ends all connections ends the one that is being made with them, which
    /// says nothing of the next.
    async fn ready(&self) -> Result<(Conn, Fitness, Duration), Refused> {
        match self.connected().await {
            Err(Refused::HungUp(_)) => self.connected().await,
            connected => connected,
        }
    }

    async fn connected(&self) -> Result<(Conn, Fitness, Duration), Refused> {
        let refused = |error: Error| self.refused(&error);
        let mut conn = Conn::new(self.opts.get().await).await.map_err(refused)?;
        // Before anything is asked, or what is asked is cut to what the server's default lets through.
        conn.query_drop(UNLIMITED).await.map_err(refused)?;
        let fitness = self.examine(&mut conn).await?;
        let session = session(&fitness, self.timeout);
        let began = Instant::now();
        conn.query_drop(session).await.map_err(refused)?;
        let once = began.elapsed();
        conn.ping().await.map_err(refused)?;
        // Of two, since one may have waited for a processor.
        Ok((conn, fitness, once.min(began.elapsed() - once)))
    }

    fn refused(&self, error: &Error) -> Refused {
        let why = format!("{}: {}", self.host, sentence(error));
        match error {
            error if is_crowded(error) => Refused::Crowded(why),
            error if hung_up(error) => Refused::HungUp(why),
            error if is_unfit(error) => Refused::Unfit(why),
            _ => Refused::Unreachable(why),
        }
    }

    /// Asks a server whether it is fit.
    pub(super) async fn examine(&self, conn: &mut Conn) -> Result<Fitness, Refused> {
        let lost = |error: Error| self.refused(&error);
        let variables = Answers::of(conn.query(fitness::VARIABLES).await.map_err(lost)?);
        let status = Answers::of(conn.query(fitness::STATUS).await.map_err(lost)?);
        let unfit = |why: String| Refused::Unfit(format!("{}: {why}", self.host));
        let mut fitness = fitness::judge(&variables, &status, &self.accepted).map_err(unfit)?;
        if let Some(member) = &fitness.member {
            match group::members(conn).await.map_err(lost)? {
                Some(members) => group::judge(member, &members).map_err(unfit)?,
                None => fitness.is_blind = true,
            }
        }
        if fitness.forgets() {
            let started: Option<i64> = conn.query_first(fitness::started(fitness.flavor)).await.map_err(lost)?;
            if let Some(started) = started {
                fitness.since(started);
            }
        }
        Ok(fitness)
    }
}

/// What every connection begins with: nothing of it is left to how the server is configured.
///
/// A row is waited for a part of the time that a batch may take, again and again ([`crate::held`]); a table half of it, so that
/// there is time left to say so. The server gives up a statement when we have, so that one that nobody waits for does not hold
/// locks.
fn session(fitness: &Fitness, limit: Duration) -> String {
    let seconds = limit.as_secs_f64().max(1.0);
    let (row, table) = (Waits { flavor: fitness.flavor, limit }.seconds(Wait::Awhile), (limit / 2).as_secs().max(1));
    // A node that vanishes between a batch and its COMMIT leaves locks: the server lets go of them. MySQL knows no time for
    // that but the one for whoever says nothing at all, and who comes back later than that finds it closed, and dials again.
    let idle = (2 * limit.as_secs()).max(10);
    let silent = (4 * limit.as_secs()).max(60);
    // MariaDB has one for that; there a node that vanishes leaves its connections for so long.
    let (isolation, limits) = match fitness.flavor {
        Flavor::MariaDb => (
            "tx_isolation",
            format!("max_statement_time = {seconds:.3}, wait_timeout = 600, idle_transaction_timeout = {idle}"),
        ),
        Flavor::MySql => {
            ("transaction_isolation", format!("max_execution_time = {:.0}, wait_timeout = {silent}", seconds * 1e3))
        }
    };
    let collation = fitness.flavor.collation();
    // Another process may be at another node: what was acknowledged there is seen here.
    let sync = if fitness.galera.is_some() { ", wsrep_sync_wait = 7" } else { "" };
    format!(
        "SET SESSION sql_mode = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION', character_set_client = utf8mb4, \
         character_set_results = utf8mb4, collation_connection = {collation}, {isolation} = 'READ-COMMITTED', \
         foreign_key_checks = 1, unique_checks = 1, sql_notes = 1, sql_safe_updates = 0, sql_big_selects = 1, \
         sql_select_limit = 18446744073709551615, completion_type = 0, innodb_lock_wait_timeout = {row}, lock_wait_timeout = {table}, \
         {limits}, autocommit = 1{sync}"
    )
}

/// Who is believed to be the server, and as whom we appear.
fn ssl(tls: &Tls) -> Result<SslOpts, OpenError> {
    let mut believed = tls.believed()?;
    // One of the system's that nobody can use is no reason to use none of them, as elsewhere; the driver would refuse them all.
    if tls.authorities.is_none() {
        believed.retain(|one| rustls::RootCertStore::empty().add(one.clone()).is_ok());
    }
    if believed.is_empty() {
        return Err(OpenError::Settings("TLS to the database: this system has no authorities; name a file".to_owned()));
    }
    let believed = believed.into_iter().map(|one| one.to_vec().into()).collect();
    // What is wrong with the files is said here, by name.
    drop(tls.config()?);
    let identity = tls.written()?.map(|(chain, key)| ClientIdentity::new(chain.into(), key.into()));
    // One program, one provider; it is no matter who came first.
    drop(rustls::crypto::aws_lc_rs::default_provider().install_default());
    Ok(SslOpts::default().with_disable_built_in_roots(true).with_root_certs(believed).with_client_identity(identity))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fitness(flavor: Flavor, galera: Option<&str>) -> Fitness {
        Fitness { galera: galera.map(str::to_owned), ..Fitness::plain(flavor, "") }
    }

    #[test]
    fn a_session_leaves_nothing_to_the_server() {
        let limit = Duration::from_secs(10);
        let mariadb = session(&fitness(Flavor::MariaDb, None), limit);
        for wanted in [
            "STRICT_ALL_TABLES",
            "tx_isolation = 'READ-COMMITTED'",
            "innodb_lock_wait_timeout = 1,",
            " lock_wait_timeout = 5,",
            "autocommit = 1",
        ] {
            assert!(mariadb.contains(wanted), "{mariadb}");
        }
        assert!(mariadb.contains("max_statement_time = 10.000") && !mariadb.contains("wsrep"), "{mariadb}");
        // What a node that vanished before its COMMIT holds is let go of.
        assert!(mariadb.contains("idle_transaction_timeout = 20"), "{mariadb}");
        let mysql = session(&fitness(Flavor::MySql, None), limit);
        for wanted in ["transaction_isolation", "utf8mb4_0900_bin", "max_execution_time = 10000", "wait_timeout = 60,"]
        {
            assert!(mysql.contains(wanted), "{mysql}");
        }
        let galera = session(&fitness(Flavor::MariaDb, Some("1")), Duration::from_millis(10));
        assert!(galera.contains("wsrep_sync_wait = 7") && galera.contains("lock_wait_timeout = 1"), "{galera}");
    }

    #[test]
    fn a_row_is_waited_for_a_tenth_of_the_time_and_hardly_where_one_is_held() {
        // red with half of it: whoever waits for a row keeps a connection for so long.
        let of = |flavor, seconds| Waits { flavor, limit: Duration::from_secs(seconds) };
        for (limit, wait) in [(1, 1), (10, 1), (11, 2), (60, 6), (300, 30)] {
            assert_eq!(of(Flavor::MariaDb, limit).seconds(Wait::Awhile), wait, "{limit}");
        }
        let hardly = [Flavor::MariaDb, Flavor::MySql].map(|flavor| of(flavor, 60).seconds(Wait::Hardly));
        assert_eq!(hardly, [0, 1]);
    }

    #[tokio::test]
    async fn other_machines_need_tls_unless_the_url_says_otherwise() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("authorities.pem");
        std::fs::write(&file, "no certificate").unwrap();
        let tls = Tls { authorities: Some(file.clone()), identity: None };
        // Whether a connection has TLS shows in whether the authorities are read.
        for (url, encrypted) in [
            ("mysql://u@db.example/d", true),
            ("mysql://u@127.0.0.1,db.example/d", true),
            ("mysql://u@db.example/d?ssl-mode=disabled", false),
            ("mysql://u@localhost/d?ssl-mode=required", true),
            ("mysql://u@localhost/d?socket=/run/s", false),
        ] {
            let settings = Settings { tls: tls.clone(), ..Settings::at(url) };
            let nodes = Node::all(&settings, &Address::parse(url).unwrap());
            assert_eq!(nodes.is_err(), encrypted, "{url}");
            if let Err(why) = nodes {
                assert!(matches!(&why, OpenError::File(named, _) if *named == file), "{why}");
            }
        }
        let url = "mysql://u@127.0.0.1/d";
        let plain = Node::all(&Settings::at(url), &Address::parse(url).unwrap()).ok().unwrap();
        assert!(plain[0].opts.get().await.ssl_opts().is_none());
    }
}
