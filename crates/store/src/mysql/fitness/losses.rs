//! What a server is configured to lose, and which of these losses go unnoticed.

use super::Answers;
use crate::remote::Loss;

/// A loss that a server is configured to have.
pub(super) struct Risk {
    /// The kind of loss.
    pub(super) loss: Loss,
    /// Whether the server goes on without the lost data as if it had never existed. Otherwise it finds the damage by
    /// its own checksums, and does not start or reports it.
    pub(super) forgets: bool,
    /// The setting that causes it.
    pub(super) why: String,
}

impl Risk {
    /// The error with which a server that has this risk is refused.
    pub(super) fn refusal(&self) -> String {
        let Risk { loss, forgets, why } = self;
        let what = match loss {
            Loss::Commits => "acknowledged commits",
            Loss::Database => "the whole database",
        };
        let advice = match (loss, forgets) {
            (Loss::Commits, _) => r#"store.accept_loss = ["commits"]"#,
            (Loss::Database, true) => r#"store.accept_loss = ["database"]"#,
            (Loss::Database, false) => {
                r#"store.accept_loss = ["database"], which is right where the storage writes pages whole (RDS Optimized Writes, ZFS)"#
            }
        };
        format!("it could lose {what}: {why}; change that, or accept the loss by name: {advice}")
    }
}

/// Returns every loss that a server is configured to have.
pub(super) fn would_lose(variables: &Answers, status: &Answers) -> Vec<Risk> {
    let mut risks = Vec::new();
    let mut set = |loss, forgets, name: &str| {
        risks.push(Risk { loss, forgets, why: format!("{name} = {}", variables.text(name)) });
    };
    if variables.text("innodb_flush_log_at_trx_commit") != "1" {
        set(Loss::Commits, true, "innodb_flush_log_at_trx_commit");
    }
    if variables.is_on("log_bin") && variables.text("sync_binlog") != "1" {
        set(Loss::Commits, true, "sync_binlog");
    }
    // MySQL: DETECT_ONLY finds a torn page but cannot repair it; without a doublewrite buffer the page's checksum finds
    // it too. MariaDB: `fast` does not sync the pages' own places, so that older pages may come back.
    match variables.text("innodb_doublewrite") {
        "DETECT_AND_RECOVER" => {}
        fast if fast.eq_ignore_ascii_case("fast") => set(Loss::Database, true, "innodb_doublewrite"),
        _ if !variables.is_on("innodb_doublewrite") => set(Loss::Database, false, "innodb_doublewrite"),
        _ => {}
    }
    // `nosync` syncs nothing at all, `littlesync` only the log: what a checkpoint counts as written may not be on disk.
    match variables.text("innodb_flush_method") {
        method if method.eq_ignore_ascii_case("nosync") => {
            set(Loss::Commits, true, "innodb_flush_method");
            set(Loss::Database, true, "innodb_flush_method");
        }
        method if method.eq_ignore_ascii_case("littlesync") => set(Loss::Database, true, "innodb_flush_method"),
        _ => {}
    }
    if variables.is_on("debug_no_sync") {
        set(Loss::Commits, true, "debug_no_sync");
        set(Loss::Database, true, "debug_no_sync");
    }
    if !status.text("innodb_redo_log_enabled").is_empty() && !status.is_on("innodb_redo_log_enabled") {
        risks.push(Risk { loss: Loss::Database, forgets: true, why: "the redo log is disabled".to_owned() });
    }
    risks
}

#[cfg(test)]
mod tests {
    use super::super::tests::{MARIADB, MYSQL, REDO, answers, but};
    use super::super::{Durability, judge};
    use super::*;

    #[test]
    fn a_server_that_would_lose_something_is_refused_unless_that_was_accepted_by_name() {
        for (server, name, value, loss) in [
            (MARIADB, "innodb_flush_log_at_trx_commit", "2", Loss::Commits),
            (MARIADB, "innodb_flush_log_at_trx_commit", "0", Loss::Commits),
            (MYSQL, "sync_binlog", "0", Loss::Commits),
            (MYSQL, "sync_binlog", "1000", Loss::Commits),
            (MARIADB, "innodb_doublewrite", "OFF", Loss::Database),
            (MARIADB, "innodb_doublewrite", "fast", Loss::Database),
            (MYSQL, "innodb_doublewrite", "DETECT_ONLY", Loss::Database),
            (MARIADB, "innodb_flush_method", "littlesync", Loss::Database),
        ] {
            let (other, named) = match loss {
                Loss::Commits => (Loss::Database, r#"["commits"]"#),
                Loss::Database => (Loss::Commits, r#"["database"]"#),
            };
            for accepted in [&[][..], &[other]] {
                let why = but(server, name, value, accepted).unwrap_err();
                assert!(why.contains(&format!("{name} = {value}")) && why.contains(named), "{why}");
            }
            assert_eq!(but(server, name, value, &[other, loss]).unwrap().losses, [loss]);
        }
        for (server, name, value) in [
            (MARIADB, "innodb_flush_method", "nosync"),
            (MYSQL, "innodb_flush_method", "NOSYNC"),
            (MARIADB, "debug_no_sync", "ON"),
        ] {
            for accepted in [&[][..], &[Loss::Commits], &[Loss::Database]] {
                let why = but(server, name, value, accepted).unwrap_err();
                assert!(why.contains(&format!("{name} = {value}")), "{why}");
            }
            assert!(but(server, name, value, &[Loss::Commits, Loss::Database]).is_ok());
        }
        for method in ["fsync", "O_DSYNC", "O_DIRECT", "O_DIRECT_NO_FSYNC"] {
            assert!(but(MARIADB, "innodb_flush_method", method, &[]).is_ok(), "{method}");
        }
        let disabled = answers(&[("Innodb_redo_log_enabled", "OFF")]);
        assert!(judge(&answers(MYSQL), &disabled, &[Loss::Commits]).unwrap_err().contains("redo log"));
    }

    #[test]
    fn a_server_without_a_doublewrite_buffer_forgets_nothing() {
        // Red with every accepted loss in `forgets`: on storage that writes whole pages each start would be a failover.
        let accepted = [Loss::Commits, Loss::Database];
        for (server, name, value, forgets) in [
            (MYSQL, "innodb_doublewrite", "OFF", false),
            (MARIADB, "innodb_doublewrite", "OFF", false),
            (MYSQL, "innodb_doublewrite", "DETECT_ONLY", false),
            (MARIADB, "innodb_doublewrite", "fast", true),
            (MARIADB, "innodb_flush_method", "littlesync", true),
            (MARIADB, "innodb_flush_method", "nosync", true),
            (MYSQL, "debug_no_sync", "ON", true),
            (MYSQL, "sync_binlog", "0", true),
        ] {
            let fitness = but(server, name, value, &accepted).unwrap();
            assert_eq!(fitness.forgets(), forgets, "{name} = {value}");
            // A loss was accepted, and the durability says so.
            assert_eq!(fitness.durability(true), Durability::Bounded, "{name} = {value}");
            let why = but(server, name, value, &[]).unwrap_err();
            assert_eq!(why.contains("RDS Optimized Writes"), !forgets, "{why}");
        }
        assert!(!judge(&answers(MYSQL), &answers(REDO), &[]).unwrap().forgets());
        assert!(judge(&answers(MYSQL), &answers(&[("Innodb_redo_log_enabled", "OFF")]), &accepted).unwrap().forgets());
    }
}
