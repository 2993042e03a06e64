//! Checks whether a server is fit: its version, that it can be written to, and what it would silently lose.

mod losses;

use std::collections::BTreeMap;

use super::group;
use crate::dialect::mysql::Flavor;
use crate::engine::Durability;
use crate::remote::Loss;

/// The settings that are checked, by name. Read with SHOW, which leaves out settings that a server does not have.
pub(super) const VARIABLES: &str = "SHOW GLOBAL VARIABLES WHERE Variable_name IN ('version', 'read_only', \
     'super_read_only', 'innodb_read_only', 'tx_read_only', 'transaction_read_only', 'innodb_flush_log_at_trx_commit', \
     'innodb_flush_method', 'debug_no_sync', 'innodb_doublewrite', 'log_bin', 'sync_binlog', 'binlog_format', 'wsrep_on', \
     'server_uuid', 'server_id', 'hostname', 'port', 'group_replication_group_name', \
     'group_replication_single_primary_mode', 'group_replication_consistency')";

/// What a server reports to every account about its current state. MySQL reports its replicas only if they confirm its
/// commits, and the server that it replicates from only to administrators.
pub(super) const STATUS: &str = "SHOW GLOBAL STATUS WHERE Variable_name IN ('Innodb_redo_log_enabled', \
     'wsrep_local_state_comment', 'wsrep_cluster_status', 'wsrep_cluster_conf_id', 'wsrep_cluster_state_uuid', \
     'wsrep_ready', 'wsrep_incoming_addresses', 'Slaves_connected', 'Rpl_semi_sync_master_clients', \
     'Rpl_semi_sync_source_clients', 'Slave_running', 'Slaves_running')";

/// When a server was started, in seconds since 1970. Both times are taken in the same statement, so their difference is
/// the same however late it is asked and however the clock was set meanwhile.
pub(super) fn started(flavor: Flavor) -> &'static str {
    match flavor {
        Flavor::MariaDb => {
            "SELECT UNIX_TIMESTAMP() - CAST(variable_value AS SIGNED) FROM information_schema.global_status \
             WHERE variable_name = 'Uptime'"
        }
        Flavor::MySql => {
            "SELECT UNIX_TIMESTAMP() - CAST(variable_value AS SIGNED) FROM performance_schema.global_status \
             WHERE variable_name = 'Uptime'"
        }
    }
}

/// The oldest versions that have what we use: row locks in a defined order, atomic DDL, a collation that does not pad.
const OLDEST_MARIADB: Version = (10, 6, 0);
const OLDEST_MYSQL: Version = (8, 0, 28);
/// A withdrawn version: rows of tables that had columns added may be misread after a crash recovery.
const WITHDRAWN_MYSQL: Version = (8, 0, 29);

type Version = (u32, u32, u32);

/// The advice about a server that accepts writes but should not.
const REPLICA: &str = "the database server in use is a replica of another one, and has no replica itself: what is \
                       written here reaches no other server. Set read_only = ON on a replica until it is promoted";

/// Names and values from a server's answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Answers(BTreeMap<String, String>);

impl Answers {
    pub(super) fn of(rows: Vec<(String, String)>) -> Self {
        Answers(rows.into_iter().map(|(name, value)| (name.to_ascii_lowercase(), value)).collect())
    }
    fn text(&self, name: &str) -> &str {
        self.0.get(name).map_or("", String::as_str)
    }
    fn is_on(&self, name: &str) -> bool {
        ["ON", "1", "YES", "TRUE"].iter().any(|on| self.text(name).eq_ignore_ascii_case(on))
    }
    fn count(&self, name: &str) -> u64 {
        self.text(name).parse().unwrap_or(0)
    }
    fn is_off(&self, name: &str) -> bool {
        ["", "OFF", "0", "NO", "FALSE"].iter().any(|off| self.text(name).eq_ignore_ascii_case(off))
    }
}

/// A server that may be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fitness {
    /// Whether the server is MariaDB or MySQL.
    pub(super) flavor: Flavor,
    /// The configuration number of its Galera cluster, if it is in one: it changes when nodes join or leave.
    pub(super) galera: Option<String>,
    /// The cluster, its configuration and its members: the same on all of its members, and on no other server.
    pub(super) component: String,
    /// Losses that it would have, all of them accepted.
    pub(super) losses: Vec<Loss>,
    /// Whether one of the losses would go unnoticed.
    pub(super) silent: bool,
    /// Whether it has replicas, so that one of them may take its place.
    pub(super) is_followed: bool,
    /// Whether it is a replica of another server and has no replicas itself.
    pub(super) is_replica: bool,
    /// Its id in the group that it is configured to belong to (MySQL's Group Replication).
    pub(super) member: Option<String>,
    /// Whether the members of that group are hidden from us.
    pub(super) is_blind: bool,
    /// Whether a member that takes over may answer before it has everything that the previous primary acknowledged.
    pub(super) is_hasty: bool,
    /// Tells it from other servers, and one state of its cluster from the others.
    pub(super) identity: String,
}

impl Fitness {
    /// Whether both are members of one Galera cluster now: what one of them acknowledged, the other has, or will have
    /// before it answers. If members do not report their addresses (`AUTO`, Galera's default), this cannot be known:
    /// two halves that were each bootstrapped anew look alike.
    pub(super) fn is_with(&self, other: &Fitness) -> bool {
        let told = |fitness: &Fitness| fitness.galera.is_some() && !fitness.component.contains("AUTO");
        told(self) && told(other) && self.component == other.component
    }

    /// Whether it may have forgotten acknowledged commits when it comes back: it is configured that way, or its cluster
    /// went on without it.
    pub(super) fn forgets(&self) -> bool {
        self.galera.is_some() || self.silent
    }

    /// How safe an acknowledged commit is. `alone`: no other server may take its place, as far as the URL says.
    pub(super) fn durability(&self, alone: bool) -> Durability {
        let has_others = self.galera.is_some() || self.member.is_some() || self.is_followed;
        match alone && !has_others && self.losses.is_empty() {
            true => Durability::DurableNode,
            false => Durability::Bounded,
        }
    }

    /// What an operator should know about the server, which may be intended.
    pub(super) fn advice(&self) -> impl Iterator<Item = &'static str> {
        [(self.is_replica, REPLICA), (self.is_blind, group::HIDDEN), (self.is_hasty, group::HASTY)]
            .into_iter()
            .filter_map(|(so, advice)| so.then_some(advice))
    }

    /// Makes the identity differ from the server's identity before it was restarted.
    pub(super) fn since(&mut self, started: i64) {
        self.identity.push_str(&format!(" since {started}"));
    }

    /// A server with nothing special about it.
    pub(super) fn plain(flavor: Flavor, identity: &str) -> Self {
        let (component, identity) = (String::new(), identity.to_owned());
        let [silent, is_followed, is_replica, is_blind, is_hasty] = [false; 5];
        let (galera, losses, member) = (None, vec![], None);
        Fitness {
            flavor,
            galera,
            component,
            losses,
            silent,
            is_followed,
            is_replica,
            member,
            is_blind,
            is_hasty,
            identity,
        }
    }
}

/// Whether the server is MariaDB or MySQL.
fn flavor(variables: &Answers) -> Flavor {
    let mariadb = variables.text("version").to_ascii_lowercase().contains("mariadb");
    if mariadb { Flavor::MariaDb } else { Flavor::MySql }
}

/// Judges a server by itself, without the group it may belong to, or returns a sentence that says what is wrong.
pub(super) fn judge(variables: &Answers, status: &Answers, accepted: &[Loss]) -> Result<Fitness, String> {
    let flavor = flavor(variables);
    recent(flavor, variables.text("version"))?;
    for name in ["read_only", "super_read_only", "innodb_read_only", "tx_read_only", "transaction_read_only"] {
        if !variables.is_off(name) {
            return Err(format!("it is read-only ({name} = {})", variables.text(name)));
        }
    }
    if variables.is_on("log_bin") && variables.text("binlog_format").eq_ignore_ascii_case("STATEMENT") {
        return Err("binlog_format = STATEMENT cannot replicate READ COMMITTED: set ROW or MIXED".to_owned());
    }
    let risks = losses::would_lose(variables, status);
    if let Some(risk) = risks.iter().find(|risk| !accepted.contains(&risk.loss)) {
        return Err(risk.refusal());
    }
    let silent = risks.iter().any(|risk| risk.forgets);
    let losses = risks.into_iter().map(|risk| risk.loss).collect();
    let galera = galera(variables, status)?;
    let identity = identity(variables, status, galera.as_deref());
    let component = ["wsrep_cluster_state_uuid", "wsrep_cluster_conf_id", "wsrep_incoming_addresses"];
    let component = component.map(|name| status.text(name)).join(" ");
    let (is_followed, follows) = replication(status);
    // A member of a cluster has what is written to the cluster, whatever else it replicates from.
    let is_replica = follows && !is_followed && galera.is_none();
    let has_group = !variables.text("group_replication_group_name").is_empty();
    let is_told_to = |name: &str, value: &str| has_group && variables.text(name).eq_ignore_ascii_case(value);
    if is_told_to("group_replication_single_primary_mode", "OFF") {
        return Err(group::SEVERAL.to_owned());
    }
    let is_hasty = is_told_to("group_replication_consistency", "EVENTUAL");
    let member = has_group.then(|| variables.text("server_uuid").to_owned());
    let plain = Fitness::plain(flavor, &identity);
    Ok(Fitness { galera, component, losses, silent, is_followed, is_replica, member, is_hasty, ..plain })
}

/// Returns whether the server has replicas, and whether it is one.
fn replication(status: &Answers) -> (bool, bool) {
    let followers = ["slaves_connected", "rpl_semi_sync_master_clients", "rpl_semi_sync_source_clients"];
    let is_followed = followers.iter().any(|name| status.count(name) > 0);
    // The first is about the connection without a name; the second counts all connections.
    (is_followed, status.is_on("slave_running") || status.count("slaves_running") > 0)
}

/// MySQL has an id for each server. A MariaDB server is identified by its host, its port and its configured id.
fn identity(variables: &Answers, status: &Answers, galera: Option<&str>) -> String {
    let itself = match variables.text("server_uuid") {
        "" => ["hostname", "port", "server_id"].map(|name| variables.text(name)).join(" "),
        uuid => uuid.to_owned(),
    };
    match galera {
        None => itself,
        Some(conf) => format!("{itself} of Galera {} {conf}", status.text("wsrep_cluster_state_uuid")),
    }
}

fn galera(variables: &Answers, status: &Answers) -> Result<Option<String>, String> {
    if !variables.is_on("wsrep_on") {
        return Ok(None);
    }
    for (name, wanted) in
        [("wsrep_cluster_status", "Primary"), ("wsrep_local_state_comment", "Synced"), ("wsrep_ready", "ON")]
    {
        if status.text(name) != wanted {
            return Err(format!("its Galera node is not usable ({name} = {}, not {wanted})", status.text(name)));
        }
    }
    Ok(Some(status.text("wsrep_cluster_conf_id").to_owned()))
}

fn recent(flavor: Flavor, text: &str) -> Result<(), String> {
    let (name, oldest) = match flavor {
        Flavor::MariaDb => ("MariaDB", OLDEST_MARIADB),
        Flavor::MySql => ("MySQL", OLDEST_MYSQL),
    };
    let (a, b, c) = oldest;
    if flavor == Flavor::MySql && version(text) == Some(WITHDRAWN_MYSQL) {
        return Err(format!(
            "its version is {text:?}, which was withdrawn because it may corrupt tables that had columns added: MySQL \
             8.0.30 or newer is needed"
        ));
    }
    if version(text).is_some_and(|version| version >= oldest) {
        return Ok(());
    }
    if text.is_empty() {
        return Err("it did not report its version".to_owned());
    }
    Err(format!("its version is {text:?}: {name} {a}.{b}.{c} or newer is needed"))
}

/// Parses a version such as `10.11.19-MariaDB-0+deb12u1`.
fn version(text: &str) -> Option<Version> {
    let numbers = text.split(|letter: char| letter != '.' && !letter.is_ascii_digit()).next()?;
    let mut numbers = numbers.split('.').map(|number| number.parse().ok());
    Some((numbers.next()??, numbers.next()??, numbers.next().flatten().unwrap_or(0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn answers(pairs: &[(&str, &str)]) -> Answers {
        Answers::of(pairs.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect())
    }

    pub(super) const MARIADB: &[(&str, &str)] = &[
        ("version", "10.11.19-MariaDB-0+deb12u1"),
        ("read_only", "OFF"),
        ("innodb_read_only", "OFF"),
        ("innodb_flush_log_at_trx_commit", "1"),
        ("innodb_doublewrite", "ON"),
        ("log_bin", "OFF"),
        ("sync_binlog", "0"),
        ("binlog_format", "MIXED"),
        ("wsrep_on", "OFF"),
    ];
    pub(super) const MYSQL: &[(&str, &str)] = &[
        ("version", "8.4.3"),
        ("read_only", "OFF"),
        ("super_read_only", "OFF"),
        ("innodb_read_only", "OFF"),
        ("innodb_flush_log_at_trx_commit", "1"),
        ("innodb_doublewrite", "ON"),
        ("log_bin", "ON"),
        ("sync_binlog", "1"),
        ("binlog_format", "ROW"),
    ];
    pub(super) const REDO: &[(&str, &str)] = &[("Innodb_redo_log_enabled", "ON")];

    /// A sound server, except for one setting.
    pub(super) fn but(server: &[(&str, &str)], name: &str, value: &str, accepted: &[Loss]) -> Result<Fitness, String> {
        let mut variables = answers(server);
        variables.0.insert(name.to_owned(), value.to_owned());
        judge(&variables, &answers(REDO), accepted)
    }

    #[test]
    fn a_sound_server_is_fit() {
        let fit = |flavor| Ok(Fitness { component: "  ".to_owned(), ..Fitness::plain(flavor, "  ") });
        assert_eq!(judge(&answers(MARIADB), &answers(&[]), &[]), fit(Flavor::MariaDb));
        assert_eq!(judge(&answers(MYSQL), &answers(REDO), &[]), fit(Flavor::MySql));
        assert_eq!(but(MYSQL, "innodb_doublewrite", "DETECT_AND_RECOVER", &[]), fit(Flavor::MySql));
    }

    #[test]
    fn an_old_server_is_refused() {
        for (server, version) in
            [(MARIADB, "10.5.28-MariaDB"), (MARIADB, "5.5.5-10.11.1-MariaDB"), (MYSQL, "8.0.27"), (MYSQL, "5.7.44-log")]
        {
            let why = but(server, "version", version, &[]).unwrap_err();
            assert!(why.contains("or newer is needed"), "{why}");
        }
        // Cut off by `sql_select_limit`, for example.
        let why = but(MYSQL, "version", "", &[]).unwrap_err();
        assert!(why.contains("did not report its version"), "{why}");
        for version in ["8.0.29", "8.0.29-0ubuntu0.22.04.2", "8.0.29-21"] {
            let why = but(MYSQL, "version", version, &[]).unwrap_err();
            assert!(why.contains("withdrawn") && why.contains("MySQL 8.0.30 or newer"), "{why}");
        }
        for (server, version) in [
            (MARIADB, "10.6.0-MariaDB"),
            (MARIADB, "12.1.2-MariaDB"),
            (MYSQL, "8.0.28"),
            (MYSQL, "8.0.30"),
            (MYSQL, "8.1.29"),
        ] {
            assert!(but(server, "version", version, &[]).is_ok(), "{version}");
        }
    }

    #[test]
    fn a_server_that_only_reads_is_refused() {
        for (server, name, value) in [
            (MARIADB, "read_only", "ON"),
            (MARIADB, "read_only", "NO_LOCK_NO_ADMIN"),
            (MARIADB, "innodb_read_only", "ON"),
            (MARIADB, "tx_read_only", "ON"),
            (MYSQL, "transaction_read_only", "ON"),
            (MYSQL, "super_read_only", "ON"),
        ] {
            assert!(but(server, name, value, &[]).unwrap_err().contains("read-only"), "{name} = {value}");
        }
    }

    #[test]
    fn statement_replication_is_refused() {
        assert!(but(MYSQL, "binlog_format", "STATEMENT", &[]).unwrap_err().contains("binlog_format"));
        assert!(but(MARIADB, "binlog_format", "STATEMENT", &[]).is_ok(), "without a binary log it means nothing");
    }

    #[test]
    fn a_galera_node_is_fit_while_it_is_synced_in_the_primary_component() {
        let mut variables = answers(MARIADB);
        variables.0.insert("wsrep_on".to_owned(), "ON".to_owned());
        let synced = [
            ("wsrep_cluster_conf_id", "7"),
            ("wsrep_cluster_status", "Primary"),
            ("wsrep_local_state_comment", "Synced"),
            ("wsrep_ready", "ON"),
        ];
        let fit = |with: &[(&str, &str)]| judge(&variables, &answers(&[&synced[..], with].concat()), &[]).unwrap();
        assert_eq!(fit(&[]).galera.as_deref(), Some("7"));
        // Red where only the number is compared, or nothing: a node that was bootstrapped alone has fewer members.
        let of = |uuid, members| fit(&[("wsrep_cluster_state_uuid", uuid), ("wsrep_incoming_addresses", members)]);
        let member = of("u", "db1:3306,db2:3306");
        assert!(member.is_with(&of("u", "db1:3306,db2:3306")));
        assert!(!member.is_with(&of("u", "db1:3306")) && !member.is_with(&of("v", "db1:3306,db2:3306")));
        assert!(!of("u", "AUTO,AUTO").is_with(&of("u", "AUTO,AUTO")), "nobody says who they are");
        let (single, other) =
            (but(MARIADB, "sync_binlog", "0", &[]).unwrap(), but(MARIADB, "sync_binlog", "0", &[]).unwrap());
        assert!(!single.is_with(&other), "they are no cluster");
        for (at, value) in [(1, "non-Primary"), (2, "Donor/Desynced"), (3, "OFF")] {
            let mut status = synced;
            status[at].1 = value;
            let why = judge(&variables, &answers(&status), &[]).unwrap_err();
            assert!(why.contains(value), "{why}");
        }
        assert!(judge(&variables, &answers(&[]), &[]).is_err());
    }

    #[test]
    fn a_server_that_forgets_is_told_from_itself_before_its_start() {
        // Red without the conditions of forgets and of durability.
        let sound = but(MARIADB, "sync_binlog", "0", &[]).unwrap();
        let seldom = but(MARIADB, "innodb_flush_log_at_trx_commit", "0", &[Loss::Commits]).unwrap();
        let clustered = Fitness { galera: Some("7".to_owned()), ..sound.clone() };
        assert_eq!([&sound, &seldom, &clustered].map(Fitness::forgets), [false, true, true]);
        let worth = [&sound, &seldom, &clustered].map(|fitness| fitness.durability(true));
        assert_eq!(worth, [Durability::DurableNode, Durability::Bounded, Durability::Bounded]);
        assert_eq!(
            sound.durability(false),
            Durability::Bounded,
            "another one may take over, and did not get the last of it"
        );
        let of = |started| {
            let mut seldom = seldom.clone();
            seldom.since(started);
            seldom.identity
        };
        assert_eq!(of(1), of(1));
        assert_ne!(of(1), of(2));
        assert_ne!(started(Flavor::MariaDb), started(Flavor::MySql));
    }

    #[test]
    fn a_server_that_others_follow_may_lose_what_they_did_not_get() {
        // Red without is_followed in durability, or without one of the names in `replication`.
        let of = |status: &[(&str, &str)]| judge(&answers(MARIADB), &answers(status), &[]).unwrap();
        let alone = [("Slaves_connected", "0"), ("Rpl_semi_sync_master_clients", "0"), ("Slave_running", "OFF")];
        assert_eq!(of(&alone).durability(true), Durability::DurableNode);
        for name in ["Slaves_connected", "Rpl_semi_sync_master_clients", "Rpl_semi_sync_source_clients"] {
            let followed = of(&[&alone[..], &[(name, "1")]].concat());
            assert_eq!((followed.durability(true), followed.is_replica), (Durability::Bounded, false), "{name}");
        }
    }

    #[test]
    fn a_group_has_one_member_that_is_written_to_and_another_may_take_its_place() {
        // Red without `SEVERAL` or `is_hasty` in `judge`, or without `member` in durability.
        let of = |mode: &str, consistency: &str| {
            let mut variables = answers(MYSQL);
            for (name, value) in [
                ("group_replication_group_name", "6f5c"),
                ("server_uuid", "id-0"),
                ("group_replication_single_primary_mode", mode),
                ("group_replication_consistency", consistency),
            ] {
                variables.0.insert(name.to_owned(), value.to_owned());
            }
            judge(&variables, &answers(REDO), &[])
        };
        let one = of("ON", "BEFORE_ON_PRIMARY_FAILOVER").unwrap();
        assert_eq!((one.durability(true), one.advice().next()), (Durability::Bounded, None));
        assert!(of("ON", "EVENTUAL").unwrap().advice().any(|advice| advice.contains("BEFORE_ON_PRIMARY_FAILOVER")));
        assert!(of("OFF", "BEFORE_ON_PRIMARY_FAILOVER").unwrap_err().contains("single_primary_mode"));
        // What a server reports that has the plugin but no group.
        let plugin = but(MYSQL, "group_replication_single_primary_mode", "OFF", &[]).unwrap();
        assert_eq!(plugin.durability(true), Durability::DurableNode);
    }

    #[test]
    fn a_server_that_only_follows_another_is_told_of() {
        let of = |status: &[(&str, &str)]| judge(&answers(MARIADB), &answers(status), &[]).unwrap();
        for follows in [("Slave_running", "ON"), ("Slaves_running", "1")] {
            let replica = of(&[("Slaves_connected", "0"), follows]);
            assert!(replica.is_replica && replica.advice().any(|advice| advice.contains("read_only = ON")));
            assert_eq!(replica.durability(true), Durability::DurableNode, "its disk is its own");
            // Two servers that replicate from each other: what is written to one reaches the other.
            assert!(!of(&[("Slaves_connected", "1"), follows]).is_replica);
        }
        let sound = of(&[("Slave_running", "OFF"), ("Slaves_running", "0")]);
        assert!(!sound.is_replica && sound.advice().next().is_none());
        let mut variables = answers(MARIADB);
        variables.0.insert("wsrep_on".to_owned(), "ON".to_owned());
        let member = [
            ("wsrep_cluster_status", "Primary"),
            ("wsrep_local_state_comment", "Synced"),
            ("wsrep_ready", "ON"),
            ("Slave_running", "ON"),
        ];
        assert!(!judge(&variables, &answers(&member), &[]).unwrap().is_replica, "of a cluster");
    }

    #[test]
    fn a_server_that_is_set_to_belong_to_a_group_has_its_id_there() {
        assert_eq!(judge(&answers(MYSQL), &answers(REDO), &[]).unwrap().member, None);
        let mut variables = answers(MYSQL);
        variables.0.insert("server_uuid".to_owned(), "u".to_owned());
        for (name, member) in [("", None), ("g", Some("u".to_owned()))] {
            variables.0.insert("group_replication_group_name".to_owned(), name.to_owned());
            let fitness = judge(&variables, &answers(REDO), &[]).unwrap();
            assert_eq!((fitness.member.clone(), fitness.advice().next()), (member, None));
            let blind = Fitness { is_blind: true, ..fitness };
            assert!(blind.advice().any(|advice| advice.contains("GRANT SELECT")));
        }
    }

    #[test]
    fn a_server_is_told_from_others_and_from_itself_in_another_cluster() {
        let of = |pairs: &[(&str, &str)], galera| {
            identity(&answers(pairs), &answers(&[("wsrep_cluster_state_uuid", "u")]), galera)
        };
        let one = [("hostname", "db1"), ("port", "3306"), ("server_id", "1")];
        assert_eq!(of(&one, None), "db1 3306 1");
        for (at, value) in [(0, "db2"), (1, "3307"), (2, "2")] {
            let mut other = one;
            other[at].1 = value;
            assert_ne!(of(&other, None), of(&one, None));
        }
        assert_eq!(of(&[("server_uuid", "x"), ("hostname", "db1")], None), "x");
        assert_eq!(of(&one, Some("7")), "db1 3306 1 of Galera u 7");
    }
}
