//! What a server is, and what its acknowledgement is worth.

use crate::engine::{Durability, Read, Row, Sql, Value};
use crate::remote::{Loss, OpenError};

/// Which database cluster answers. Another one than before was restored, or is not ours; a higher timeline was promoted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The cluster's own number, made when it was (`pg_control_system`).
    pub system: String,
    /// How often a standby of it was promoted, from 1.
    pub timeline: u32,
}

/// What a server says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Facts {
    version: i64,
    encoding: String,
    fsync: bool,
    full_page_writes: bool,
    checksums: bool,
    read_only: bool,
    /// Whether it waits for standbys at all.
    standbys: bool,
    /// Standbys that confirm commits at present, and those of which we may not know.
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

    /// What our commits wait for on a server whose own setting this is: never less than its disk and its standbys'.
    pub(super) fn ours(self, accepted: &[Loss]) -> Self {
        if accepted.contains(&Loss::Commits) { self } else { self.max(Level::On) }
    }
}

/// Asks for [`Facts`].
pub(super) fn facts() -> Read {
    let sql = Sql::fixed(
        "SELECT current_setting('server_version_num'), current_setting('server_encoding'), current_setting('fsync'), \
         current_setting('full_page_writes'), current_setting('data_checksums'), \
         current_setting('transaction_read_only'), current_setting('synchronous_standby_names'), \
         current_setting('synchronous_commit'), pg_is_in_recovery(), \
         (SELECT count(*) FROM pg_stat_replication WHERE sync_state IN ('sync', 'quorum') AND state = 'streaming'), \
         (SELECT count(*) FROM pg_stat_replication WHERE sync_state IS NULL)",
    );
    Read { sql, args: vec![] }
}

/// Asks whether the server has become a standby.
pub(super) fn recovers() -> Read {
    Read { sql: Sql::fixed("SELECT pg_is_in_recovery()"), args: vec![] }
}

/// Asks for its [`Identity`]. Not everybody may.
pub(super) fn identity() -> Read {
    let sql = Sql::fixed(
        "SELECT CAST(system_identifier AS text), substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8) FROM pg_control_system()",
    );
    Read { sql, args: vec![] }
}

impl Identity {
    pub(super) fn of(rows: &[Row]) -> Option<Self> {
        match rows.first()?.as_slice() {
            [Value::Text(system), Value::Text(timeline)] => {
                Some(Identity { system: system.clone(), timeline: u32::from_str_radix(timeline, 16).ok()? })
            }
            _ => None,
        }
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
            standbys: !text(6)?.trim().is_empty(),
            commit: Level::parse(text(7)?)?,
            in_sync: int(9)?,
            hidden: int(10)?,
        })
    }

    /// Whether it is what we need, but for losses that were accepted by name.
    pub(super) fn fit(&self, accepted: &[Loss]) -> Result<(), OpenError> {
        let refused = |why: String| Err(OpenError::Unfit(why));
        if self.version < 130_000 {
            return refused(format!("PostgreSQL 13 is the oldest that will do; this is {}", self.version / 10_000));
        }
        if self.encoding != "UTF8" {
            return refused(format!("the database has the encoding {}, and has to have UTF8", self.encoding));
        }
        if self.read_only {
            return refused(
                "the server only reads: it is a standby, or its default_transaction_read_only is on".to_owned(),
            );
        }
        for (setting, on) in [("fsync", self.fsync), ("full_page_writes", self.full_page_writes)] {
            if !on && !accepted.contains(&Loss::Database) {
                return refused(format!("{setting} is off on the server: power loss may cost the whole database"));
            }
        }
        if !self.checksums {
            tracing::warn!("data checksums are off on the server: it does not notice what a disk garbles");
        }
        Ok(())
    }

    /// What an acknowledgement is worth when commits wait for `level`.
    pub(super) fn durability(&self, level: Level) -> Durability {
        if !self.fsync || !self.full_page_writes || level == Level::Off {
            return Durability::Bounded;
        }
        if self.standbys && self.in_sync == 0 && self.hidden > 0 {
            tracing::warn!("whether a standby is in sync is hidden from this role: grant it pg_monitor");
        }
        if self.standbys && self.in_sync > 0 && level >= Level::On {
            Durability::ZeroLoss
        } else {
            Durability::DurableNode
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sound() -> Facts {
        Facts {
            version: 150_004,
            encoding: "UTF8".to_owned(),
            fsync: true,
            full_page_writes: true,
            checksums: true,
            read_only: false,
            standbys: false,
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
            (Facts { read_only: true, ..sound() }, "only reads"),
            (Facts { fsync: false, ..sound() }, "fsync"),
            (Facts { full_page_writes: false, ..sound() }, "full_page_writes"),
        ] {
            let Err(OpenError::Unfit(why)) = facts.fit(&[Loss::Commits]) else { panic!("{facts:?}") };
            assert!(why.contains(word), "{why}");
        }
    }

    #[test]
    fn losses_are_accepted_by_name() {
        let unsafe_one = Facts { fsync: false, full_page_writes: false, ..sound() };
        assert_eq!(unsafe_one.fit(&[Loss::Database]), Ok(()));
        assert_eq!(unsafe_one.durability(Level::On), Durability::Bounded);
        assert_eq!(Level::Off.ours(&[Loss::Commits]), Level::Off);
        assert_eq!(Level::Off.ours(&[Loss::Database]), Level::On);
        assert_eq!(sound().durability(Level::Off), Durability::Bounded);
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
    fn nothing_is_lost_only_with_a_standby_that_is_in_sync_now() {
        let strict = Facts { standbys: true, in_sync: 1, ..sound() };
        assert_eq!(strict.durability(Level::On), Durability::ZeroLoss);
        assert_eq!(strict.durability(Level::RemoteWrite), Durability::DurableNode);
        assert_eq!(Facts { in_sync: 0, ..strict.clone() }.durability(Level::On), Durability::DurableNode);
        assert_eq!(Facts { standbys: false, ..strict.clone() }.durability(Level::On), Durability::DurableNode);
        assert_eq!(Facts { in_sync: 0, hidden: 1, ..strict }.durability(Level::On), Durability::DurableNode);
    }
}
