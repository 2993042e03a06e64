//! One connection: how it is made, what is checked before it is used, and the statements that it keeps.

use std::time::Duration;

use mysql_async::prelude::Queryable;
use mysql_async::{ClientIdentity, Conn, Error, Opts, OptsBuilder, SslOpts, Statement};
use tokio::time::{Instant, timeout};
use zeroize::Zeroizing;

use super::address::{Address, Encryption, Host};
use super::fault::{hung_up, is_crowded, is_denied, is_of_password, is_unfit, sentence};
use super::fitness::{self, Answers, Fitness};
use super::group;
use super::say::Phrase;
use crate::caught::caught;
use crate::dialect::mysql::Flavor;
use crate::held::Wait;
use crate::remote::{DATABASE, Loss, OpenError, Settings, Tls};
use crate::sealing::{self, Renewed};

/// The maximum number of statements that a connection keeps prepared: more than there are.
const STATEMENTS: usize = 4096;

/// Answers contain all their rows.
const UNLIMITED: &str = "SET SESSION sql_select_limit = 18446744073709551615";

/// The longest time that connecting may take, however patient a request is.
const LONGEST_PATIENCE: Duration = Duration::from_secs(10);
/// TCP keepalive probes begin when a connection has been silent for this long.
const KEEPALIVE: Duration = Duration::from_secs(15);

/// On one machine a round trip takes 0.05 ms, in one building 0.2 ms.
const FAR: Duration = Duration::from_millis(1);

/// A server, and how to connect to it.
pub(super) struct Node {
    /// The host of the server.
    pub(super) host: Host,
    opts: Renewed<Opts>,
    timeout: Duration,
    accepted: Vec<Loss>,
}

/// Why there is no connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Refused {
    /// The server is well but has no room for a connection: another server would not help.
    Crowded(String),
    /// The server cannot be reached, or refused the connection.
    Unreachable(String),
    /// The server was reached, but hung up before the connection was ready.
    HungUp(String),
    /// The server was reached, and would refuse the same again.
    Denied(String),
    /// The server does not meet the requirements.
    Unfit(String),
}

impl Refused {
    pub(super) fn why(self) -> String {
        match self {
            Refused::Crowded(why)
            | Refused::Unreachable(why)
            | Refused::HungUp(why)
            | Refused::Denied(why)
            | Refused::Unfit(why) => why,
        }
    }
}

impl From<Refused> for OpenError {
    fn from(refused: Refused) -> Self {
        match refused {
            Refused::Unfit(why) => OpenError::Unfit(why),
            Refused::Denied(why) => OpenError::Refused(why),
            refused => OpenError::Unreachable(refused.why()),
        }
    }
}

/// A connection.
pub(super) struct Link {
    /// The connection.
    pub(super) conn: Conn,
    /// The era of the pool in which it was made.
    pub(super) era: u64,
    /// Whether it was used before: if so, the server may have closed it meanwhile.
    pub(super) used: bool,
    /// The approximate round-trip time to the server.
    round_trip: Duration,
    /// How long its session waits for a row, and the possible times.
    wait: Wait,
    waits: Waits,
    /// Indexed by the number of the phrase.
    statements: Vec<Option<Statement>>,
}

impl Link {
    /// Returns the prepared statement of a phrase, which is prepared at its first use.
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

    /// Sets how long the session waits for a row from now on, unless it is set already.
    pub(super) async fn wait(&mut self, wait: Wait) -> Result<(), Error> {
        if self.wait != wait {
            let seconds = self.waits.seconds(wait);
            self.conn.query_drop(format!("SET SESSION innodb_lock_wait_timeout = {seconds}")).await?;
            self.wait = wait;
        }
        Ok(())
    }

    /// The longest that such a wait may take: the server checks only once a second who has waited long enough.
    pub(super) fn waits_at_most(&self, wait: Wait) -> Duration {
        match self.waits.seconds(wait) {
            0 => Duration::ZERO,
            seconds => Duration::from_secs(seconds + 1),
        }
    }

    /// Whether a round trip costs more than splitting a fetch between two tasks.
    pub(super) fn is_far(&self) -> bool {
        self.round_trip > FAR
    }
}

/// How long a row is waited for.
#[derive(Clone, Copy)]
struct Waits {
    flavor: Flavor,
    /// The longest time that a batch may take.
    limit: Duration,
}

impl Waits {
    /// Returns a tenth of a batch's time in whole seconds, the servers' unit. MySQL waits for at least one.
    fn seconds(self, wait: Wait) -> u64 {
        match (wait, self.flavor) {
            (Wait::Awhile, _) => self.limit.as_millis().div_ceil(10_000).max(1) as u64,
            (Wait::Hardly, Flavor::MariaDb) => 0,
            (Wait::Hardly, Flavor::MySql) => 1,
        }
    }
}

impl Node {
    /// Returns how to connect to each of the servers that a URL names.
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
                Some(file) => Ok(opts.pass(Some(sealing::password(file)?.as_str())).into()),
                None => Ok(opts.into()),
            }
        })?;
        Ok(Node { host: host.clone(), opts, timeout, accepted })
    }

    /// The longest time that connecting may take: part of a request's time, to leave time for another server, and no
    /// longer where a request may take minutes, as in a move.
    pub(super) fn patience(&self) -> Duration {
        (self.timeout / 4).min(LONGEST_PATIENCE)
    }

    /// Makes a connection that is set up, to a server that is fit.
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

    /// Tries once more if the server hung up: a command that ends all connections also ends one that is being made,
    /// which says nothing about the next one.
    async fn ready(&self) -> Result<(Conn, Fitness, Duration), Refused> {
        match self.connected().await {
            Err(Refused::HungUp(_)) => self.connected().await,
            connected => connected,
        }
    }

    /// Signs in, once more if the password was refused: the driver cuts a zero off the end of what the server asks it
    /// to sign, so that one in 256 sign-ins of an account of `ed25519` is refused though its password is right.
    async fn signed_in(&self) -> Result<Conn, Error> {
        match Conn::new(self.opts.get().await).await {
            Err(error) if is_of_password(&error) => Conn::new(self.opts.get().await).await,
            tried => tried,
        }
    }

    async fn connected(&self) -> Result<(Conn, Fitness, Duration), Refused> {
        let refused = |error: Error| self.refused(&error);
        let mut conn = self.signed_in().await.map_err(refused)?;
        // First of all, so that no answer is cut to the server's default limit.
        conn.query_drop(UNLIMITED).await.map_err(refused)?;
        let fitness = self.examine(&mut conn).await?;
        let session = session(&fitness, self.timeout);
        let began = Instant::now();
        conn.query_drop(session).await.map_err(refused)?;
        let once = began.elapsed();
        conn.ping().await.map_err(refused)?;
        // The shorter of two, since one may have waited for a processor.
        Ok((conn, fitness, once.min(began.elapsed() - once)))
    }

    fn refused(&self, error: &Error) -> Refused {
        let why = format!("{}: {}", self.host, sentence(error));
        match error {
            error if is_crowded(error) => Refused::Crowded(why),
            error if hung_up(error) => Refused::HungUp(why),
            error if is_unfit(error) => Refused::Unfit(why),
            error if is_denied(error) => Refused::Denied(why),
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

/// The settings with which every connection begins: none of them is left to the server's configuration.
///
/// A batch waits for a row only a part of its time, again and again ([`crate::held`]), and for a table half of it, so
/// that there is time left to report it. The server aborts a statement when we give up on it, so that a statement that
/// nobody waits for does not hold locks.
fn session(fitness: &Fitness, limit: Duration) -> String {
    let seconds = limit.as_secs_f64().max(1.0);
    let (row, table) = (Waits { flavor: fitness.flavor, limit }.seconds(Wait::Awhile), (limit / 2).as_secs().max(1));
    // A node that vanishes between a batch and its COMMIT leaves locks, which the server must release. MySQL's only
    // timeout for that is the one for any idle connection; a node that returns later finds it closed, and reconnects.
    let idle = (2 * limit.as_secs()).max(10);
    let silent = (4 * limit.as_secs()).max(60);
    // MariaDB has such a timeout; there, the connections of a node that vanishes stay for the 600 s of `wait_timeout`.
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
    // Another process may use another node of the cluster: what was acknowledged there is visible here.
    let sync = if fitness.galera.is_some() { ", wsrep_sync_wait = 7" } else { "" };
    format!(
        "SET SESSION sql_mode = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION', character_set_client = utf8mb4, \
         character_set_results = utf8mb4, collation_connection = {collation}, {isolation} = 'READ-COMMITTED', \
         foreign_key_checks = 1, unique_checks = 1, sql_notes = 1, sql_safe_updates = 0, sql_big_selects = 1, \
         sql_select_limit = 18446744073709551615, completion_type = 0, innodb_lock_wait_timeout = {row}, lock_wait_timeout = {table}, \
         {limits}, autocommit = 1{sync}"
    )
}

/// The trusted authorities, and our client certificate.
fn ssl(tls: &Tls) -> Result<SslOpts, OpenError> {
    let mut believed = tls.believed()?;
    // One unusable certificate of the system is no reason to use none; the driver would refuse them all.
    if tls.authorities.is_none() {
        believed.retain(|one| rustls::RootCertStore::empty().add(one.clone()).is_ok());
    }
    if believed.is_empty() {
        return Err(OpenError::Settings(
            "TLS to the database: this system has no trusted authorities; name a file of them".to_owned(),
        ));
    }
    let believed = believed.into_iter().map(|one| one.to_vec().into()).collect();
    // Reports errors in the files, by file name.
    drop(tls.config()?);
    // The driver keeps what it is given, so it is given the bytes themselves and no copy.
    let own = |mut text: Zeroizing<Vec<u8>>| std::mem::take(&mut *text);
    let identity = tls.written()?.map(|(chain, key)| ClientIdentity::new(own(chain).into(), own(key).into()));
    // One program has one provider; it does not matter which call installs it first.
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
        // The server releases what a node holds that vanished before its COMMIT.
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
        // Red with half of it: a batch that waits for a row occupies a connection for that long.
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
        // Whether the authorities are read shows whether a connection has TLS.
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
