//! What a server is, and how safe a commit is that it acknowledges.

use std::fmt;
use std::time::Duration;

use crate::engine::{Durability, Read, Row, Sql, Value};
use crate::remote::{Loss, OpenError, Replication};

/// The database cluster that answers. A different one was restored, or is not ours; a higher timeline was promoted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The cluster's own number, set when it was created (`pg_control_system`).
    pub system: String,
    /// How often a standby of the cluster was promoted, counting from 1.
    pub timeline: u32,
    /// When it was started and last recovered from a crash, if it may forget commits whenever it dies.
    pub life: Option<String>,
}

impl fmt::Display for Identity {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "PostgreSQL {} timeline {}", self.system, self.timeline)?;
        self.life.iter().try_for_each(|life| write!(out, " since {life}"))
    }
}

/// What a server reports about itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Facts {
    version: i64,
    encoding: String,
    fsync: bool,
    full_page_writes: bool,
    checksums: bool,
    read_only: bool,
    /// Whether commits wait for standbys at all.
    waits: bool,
    /// Standbys that follow it, those among them that confirm commits now, and those that our role may not see.
    followers: i64,
    in_sync: i64,
    hidden: i64,
    /// What commits wait for, in this session.
    pub(super) commit: Level,
}

/// What a commit waits for (`synchronous_commit`), from nothing to everything.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Level {
    Off,
    Local,
    RemoteWrite,
    On,
    RemoteApply,
}

impl Level {
    fn parse(text: &str) -> Option<Self> {
        Some(match text {
            "off" => Level::Off,
            "local" => Level::Local,
            "remote_write" => Level::RemoteWrite,
            "on" => Level::On,
            "remote_apply" => Level::RemoteApply,
            _ => return None,
        })
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Level::Off => "off",
            Level::Local => "local",
            Level::RemoteWrite => "remote_write",
            Level::On => "on",
            Level::RemoteApply => "remote_apply",
        }
    }

    /// What our commits wait for, given the server's own setting: never less than its disk and its standbys' disks.
    pub(super) fn ours(self, accepted: &[Loss]) -> Self {
        if accepted.contains(&Loss::Commits) { self } else { self.max(Level::On) }
    }
}

/// The query for [`Facts`].
pub(super) fn facts() -> Read {
    let sql = Sql::fixed(
        "SELECT current_setting('server_version_num'), current_setting('server_encoding'), current_setting('fsync'), \
         current_setting('full_page_writes'), current_setting('data_checksums'), \
         current_setting('transaction_read_only'), current_setting('synchronous_standby_names'), \
         current_setting('synchronous_commit'), pg_is_in_recovery(), \
         (SELECT count(*) FROM pg_stat_replication WHERE state <> 'backup'), \
         (SELECT count(*) FROM pg_stat_replication WHERE sync_state IN ('sync', 'quorum') AND state = 'streaming'), \
         (SELECT count(*) FROM pg_stat_replication WHERE sync_state IS NULL)",
    );
    Read { sql, args: vec![] }
}

/// The advice about replication that was declared strict but does not look so.
const UNCONFIRMED: &str = "store.replication is strict, but no standby confirms the server's commits";
/// The advice about replication that may be strict.
const UNSAID: &str = "a standby confirms the server's commits, but it is unknown whether the server would go on \
                      without one: assuming that it would, until store.replication says which";

/// The timeline on which the server writes, as eight digits of a file's name. A standby has none: it fails there.
const TIMELINE: &str = "substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8)";

/// When the server was started, and since when it counts statistics: a recovery resets these, even without a restart if
/// only a process of the server died. Microseconds since 1970.
const LIFE: &str = "concat(CAST(extract(epoch FROM pg_postmaster_start_time()) * 1000000 AS bigint), ' ', \
     (SELECT CAST(extract(epoch FROM stats_reset) * 1000000 AS bigint) FROM pg_stat_bgwriter))";

/// Asks how many of our commits wait for a standby for longer than any caller waits for them. Nobody can end such a
/// wait: each keeps its connection and its locks until a standby is there.
pub(super) fn stranded(patience: Duration) -> Read {
    let sql = Sql::fixed(
        "SELECT count(*) FROM pg_stat_activity WHERE usename = current_user AND wait_event = 'SyncRep' \
         AND query_start < now() - CAST(? AS interval)",
    );
    Read { sql, args: vec![Value::Text(format!("{} milliseconds", patience.as_millis()))] }
}

/// The query for the server's [`Identity`], including its life if it `forgets`. Not every role has the right to ask.
pub(super) fn identity(forgets: bool) -> Read {
    let (comma, life) = if forgets { (", ", LIFE) } else { ("", "") };
    let sql =
        Sql::joined(&["SELECT CAST(system_identifier AS text), ", TIMELINE, comma, life, " FROM pg_control_system()"]);
    Read { sql, args: vec![] }
}

/// The guard of a batch for this server alone: it finds one row there, and none on any other.
pub(super) fn still(known: &Identity) -> Read {
    let (and, life, is) = if known.life.is_some() { (" AND ", LIFE, " = ?") } else { ("", "", "") };
    let beginning = "SELECT 1 FROM pg_control_system() WHERE CAST(system_identifier AS text) = ? AND ";
    let sql = Sql::joined(&[beginning, TIMELINE, " = ?", and, life, is]);
    let timeline = format!("{:08X}", known.timeline);
    let args = [known.system.clone(), timeline].into_iter().chain(known.life.clone()).map(Value::Text).collect();
    Read { sql, args }
}

impl Identity {
    pub(super) fn of(rows: &[Row]) -> Option<Self> {
        let (system, timeline, life) = match rows.first()?.as_slice() {
            [Value::Text(system), Value::Text(timeline)] => (system, timeline, None),
            [Value::Text(system), Value::Text(timeline), Value::Text(life)] => (system, timeline, Some(life.clone())),
            _ => return None,
        };
        Some(Identity { system: system.clone(), timeline: u32::from_str_radix(timeline, 16).ok()?, life })
    }
}

impl Facts {
    pub(super) fn of(rows: &[Row]) -> Option<Self> {
        let row = rows.first()?;
        let text = |at: usize| match row.get(at) {
            Some(Value::Text(text)) => Some(text.as_str()),
            _ => None,
        };
        let int = |at: usize| match row.get(at) {
            Some(Value::Int(int)) => Some(*int),
            _ => None,
        };
        let on = |at: usize| text(at).map(|text| text == "on");
        Some(Facts {
            version: text(0)?.parse().ok()?,
            encoding: text(1)?.to_owned(),
            fsync: on(2)?,
            full_page_writes: on(3)?,
            checksums: on(4)?,
            read_only: on(5)? || int(8)? != 0,
            waits: !text(6)?.trim().is_empty(),
            commit: Level::parse(text(7)?)?,
            followers: int(9)?,
            in_sync: int(10)?,
            hidden: int(11)?,
        })
    }

    /// Checks that the server meets the requirements, except for losses that were accepted by name.
    pub(super) fn fit(&self, accepted: &[Loss]) -> Result<(), OpenError> {
        let refused = |why: String| Err(OpenError::Unfit(why));
        if self.version < 130_000 {
            return refused(format!("PostgreSQL 13 or newer is needed; this is {}", self.version / 10_000));
        }
        if self.encoding != "UTF8" {
            return refused(format!("the database has the encoding {}, but needs UTF8", self.encoding));
        }
        if self.read_only {
            return refused(
                "the server is read-only: it is a standby, or its default_transaction_read_only is on".to_owned(),
            );
        }
        for (setting, on, right) in [
            ("fsync", self.fsync, ""),
            (
                "full_page_writes",
                self.full_page_writes,
                ", which is right where the storage writes pages whole (ZFS); have data checksums on then",
            ),
        ] {
            if !on && !accepted.contains(&Loss::Database) {
                return refused(format!(
                    "{setting} is off on the server: power loss may cost the whole database; change that, or accept the loss by \
                     name: store.accept_loss = [\"database\"]{right}"
                ));
            }
        }
        Ok(())
    }

    /// Whether it may forget acknowledged commits if it or its machine dies and comes back. Checksums detect a
    /// half-written page and keep the server from starting; without checksums the stale half is taken as it is.
    pub(super) fn forgets(&self) -> bool {
        !self.fsync || !(self.full_page_writes || self.checksums) || self.commit == Level::Off
    }

    /// Whether a standby confirms our commits at present.
    fn confirmed(&self) -> bool {
        self.waits && self.in_sync > 0 && self.commit >= Level::On
    }

    /// How safe an acknowledged commit is, by what the server shows and what was `said` about its replication. `alone`:
    /// no other server may take its place, as far as the URL says.
    pub(super) fn durability(&self, said: Replication, alone: bool) -> Durability {
        // A loss that was accepted is shown, even if it would not go unnoticed.
        if self.forgets() || !self.full_page_writes || said == Replication::Bounded {
            return Durability::Bounded;
        }
        // Neither is enough by itself: a confirming standby may be gone in a moment, and what was said may be wrong.
        if said == Replication::Strict && self.confirmed() {
            return Durability::ZeroLoss;
        }
        // The server that takes over may not have received the last commits.
        match alone && self.followers + self.hidden == 0 {
            true => Durability::DurableNode,
            false => Durability::Bounded,
        }
    }

    /// What an operator should know about the server, which may be intended.
    pub(super) fn advice(&self, said: Replication) -> impl Iterator<Item = &'static str> {
        let strict = said == Replication::Strict;
        let hidden = strict && self.waits && self.in_sync == 0 && self.hidden > 0;
        [
            (!self.checksums, "data checksums are off on the server: it does not notice data that a disk corrupts"),
            (hidden, "whether a standby is in sync is hidden from this role: grant it pg_monitor"),
            (strict && !hidden && !self.confirmed(), UNCONFIRMED),
            (said == Replication::Observed && self.confirmed(), UNSAID),
        ]
        .into_iter()
        .filter_map(|(so, advice)| so.then_some(advice))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEEN: Replication = Replication::Observed;

    fn sound() -> Facts {
        Facts {
            version: 150_004,
            encoding: "UTF8".to_owned(),
            fsync: true,
            full_page_writes: true,
            checksums: true,
            read_only: false,
            waits: false,
            followers: 0,
            in_sync: 0,
            hidden: 0,
            commit: Level::On,
        }
    }

    #[test]
    fn a_server_that_is_not_what_we_need_is_refused() {
        assert_eq!(sound().fit(&[]), Ok(()));
        for (facts, word) in [
            (Facts { version: 120_022, ..sound() }, "this is 12"),
            (Facts { encoding: "SQL_ASCII".to_owned(), ..sound() }, "SQL_ASCII"),
            (Facts { read_only: true, ..sound() }, "read-only"),
            (Facts { fsync: false, ..sound() }, "fsync"),
            (Facts { full_page_writes: false, ..sound() }, "full_page_writes"),
        ] {
            let Err(OpenError::Unfit(why)) = facts.fit(&[Loss::Commits]) else { panic!("{facts:?}") };
            assert!(why.contains(word), "{why}");
            let loses = !facts.fsync || !facts.full_page_writes;
            assert_eq!(why.contains(r#"store.accept_loss = ["database"]"#), loses, "{why}");
            assert_eq!(why.contains("writes pages whole"), !facts.full_page_writes, "{why}");
        }
    }

    #[test]
    fn losses_are_accepted_by_name() {
        let unsafe_one = Facts { fsync: false, full_page_writes: false, ..sound() };
        assert_eq!(unsafe_one.fit(&[Loss::Database]), Ok(()));
        assert_eq!(unsafe_one.durability(SEEN, true), Durability::Bounded);
        assert_eq!(Level::Off.ours(&[Loss::Commits]), Level::Off);
        assert_eq!(Level::Off.ours(&[Loss::Database]), Level::On);
        assert_eq!(Facts { commit: Level::Off, ..sound() }.durability(SEEN, true), Durability::Bounded);
    }

    #[test]
    fn a_weaker_setting_of_the_server_is_not_ours_and_a_stronger_one_is() {
        for level in [Level::Off, Level::Local, Level::RemoteWrite, Level::On] {
            assert_eq!(level.ours(&[]), Level::On, "{level:?}");
            assert_eq!(Level::parse(level.name()), Some(level));
        }
        assert_eq!(Level::RemoteApply.ours(&[]), Level::RemoteApply);
    }

    #[test]
    fn nothing_is_lost_only_with_a_standby_that_is_in_sync_now_where_that_is_said_to_be_strict() {
        // Red without either half of the condition for ZeroLoss in durability.
        let synced = Facts { waits: true, followers: 2, in_sync: 1, ..sound() };
        let strict = Replication::Strict;
        assert_eq!(synced.durability(strict, false), Durability::ZeroLoss);
        assert_eq!(
            Facts { commit: Level::RemoteApply, ..synced.clone() }.durability(strict, true),
            Durability::ZeroLoss
        );
        for unsaid in [SEEN, Replication::Bounded] {
            assert_eq!(synced.durability(unsaid, true), Durability::Bounded, "{unsaid:?}");
        }
        for weaker in [
            Facts { commit: Level::RemoteWrite, ..synced.clone() },
            Facts { in_sync: 0, ..synced.clone() },
            Facts { waits: false, ..synced.clone() },
            Facts { fsync: false, ..synced.clone() },
            Facts { followers: 0, in_sync: 0, hidden: 1, ..synced },
        ] {
            assert_eq!(weaker.durability(strict, true), Durability::Bounded, "{weaker:?}");
        }
    }

    #[test]
    fn others_may_take_over_from_a_server_that_looks_alone() {
        assert_eq!(sound().durability(Replication::Bounded, true), Durability::Bounded);
        assert_eq!(sound().durability(Replication::Strict, true), Durability::DurableNode, "nobody confirms anything");
    }

    #[test]
    fn a_server_whose_place_another_may_take_loses_what_that_one_did_not_get() {
        // Red without `followers`, `hidden` or `alone` in durability.
        assert_eq!(sound().durability(SEEN, true), Durability::DurableNode);
        assert_eq!(sound().durability(SEEN, false), Durability::Bounded);
        assert_eq!(Facts { followers: 1, ..sound() }.durability(SEEN, true), Durability::Bounded);
        assert_eq!(Facts { hidden: 1, ..sound() }.durability(SEEN, true), Durability::Bounded);
        // It waits for a standby that is not there.
        assert_eq!(Facts { waits: true, ..sound() }.durability(SEEN, true), Durability::DurableNode);
    }

    #[test]
    fn a_server_has_a_life_where_it_forgets_at_its_end() {
        for (facts, forgets) in [
            (sound(), false),
            (Facts { followers: 1, ..sound() }, false),
            (Facts { commit: Level::Off, ..sound() }, true),
            (Facts { fsync: false, ..sound() }, true),
            // Red with full_page_writes alone: each start of a server on ZFS would be a failover.
            (Facts { full_page_writes: false, ..sound() }, false),
            (Facts { full_page_writes: false, checksums: false, ..sound() }, true),
            (Facts { checksums: false, ..sound() }, false),
        ] {
            assert_eq!(facts.forgets(), forgets, "{facts:?}");
            let bounded = forgets || !facts.full_page_writes || facts.followers > 0;
            assert_eq!(facts.durability(SEEN, true) == Durability::Bounded, bounded, "{facts:?}");
        }
        assert_ne!(identity(true).sql, identity(false).sql);
        let row = |values: &[&str]| vec![values.iter().map(|&value| Value::Text(value.to_owned())).collect()];
        let of = |values: &[&str]| Identity::of(&row(values)).map(|identity| identity.to_string());
        assert_eq!(of(&["7", "0000000A"]).as_deref(), Some("PostgreSQL 7 timeline 10"));
        assert_eq!(of(&["7", "00000001", "5 6"]).as_deref(), Some("PostgreSQL 7 timeline 1 since 5 6"));
    }

    #[test]
    fn what_a_server_says_of_itself_is_what_a_batch_for_it_asks_for() {
        for told in [&["7", "0000000A"][..], &["7", "0000000A", "5 6"]] {
            let row: Row = told.iter().map(|&value| Value::Text(value.to_owned())).collect();
            let guard = still(&Identity::of(std::slice::from_ref(&row)).unwrap());
            assert_eq!((guard.sql.text().matches('?').count(), &guard.args), (told.len(), &row));
            assert_eq!(guard.sql.text().contains(LIFE), told.len() > 2);
        }
    }

    #[test]
    fn advice_is_given_where_there_is_something_to_say() {
        let of = |facts: &Facts, said| facts.advice(said).collect::<Vec<_>>().join("; ");
        let nothing = String::new();
        assert_eq!(of(&sound(), SEEN), nothing);
        assert!(of(&Facts { checksums: false, ..sound() }, SEEN).contains("checksums"));
        let hidden = Facts { waits: true, hidden: 1, ..sound() };
        assert!(of(&hidden, Replication::Strict).contains("pg_monitor"));
        assert_eq!([SEEN, Replication::Bounded].map(|said| of(&hidden, said)), [""; 2], "nothing hangs on it");
        let synced = Facts { waits: true, followers: 1, in_sync: 1, hidden: 1, ..sound() };
        assert_eq!([Replication::Strict, Replication::Bounded].map(|said| of(&synced, said)), [""; 2]);
        assert!(of(&synced, SEEN).contains("store.replication"));
        assert!(of(&sound(), Replication::Strict).contains("no standby confirms"));
    }
}
