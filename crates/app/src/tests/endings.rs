//! An account that holds a great deal is shut out at once, and what it holds ends in steps.

use super::{NOW, database, newcomer, node};
use crate::App;
use crate::clock::Clock;
use rules::people::{Role, User};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use store::engine::{Answer, Around, CommitError, Engine, Write};
use store::tables::living::AT_ONCE;

/// How many sessions the account has, and how many families.
const MANY: i64 = 50_000;

/// An engine that notes the most rows that a statement touched, and may have no time for the end of families.
struct Patience {
    inside: Arc<dyn Engine>,
    most: AtomicU64,
    is_late: AtomicBool,
}

impl Around for Patience {
    fn inside(&self) -> &dyn Engine {
        &*self.inside
    }
    fn commit_around(&self, writes: Vec<Write>) -> Answer<'_, Vec<u64>, CommitError> {
        let ends = writes.iter().any(|write| write.sql.text().starts_with("UPDATE families SET revoked_at"));
        if ends && self.is_late.load(SeqCst) {
            return Box::pin(async { Err(CommitError::Unavailable("no answer in 10 s".to_owned())) });
        }
        Box::pin(async move {
            let touched = self.inside.commit(writes).await?;
            self.most.fetch_max(touched.iter().copied().max().unwrap_or_default(), SeqCst);
            Ok(touched)
        })
    }
}

/// An account that holds a great deal, and the engine beneath.
struct Hoard {
    app: App,
    engine: Arc<Patience>,
    user: User,
    folder: tempfile::TempDir,
}

impl Hoard {
    async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let inside = database(folder.path()).await;
        let engine = Arc::new(Patience { inside, most: AtomicU64::new(0), is_late: AtomicBool::new(false) });
        let app = node(engine.clone(), Clock::fixed(NOW)).await;
        let user = app.add_user(&newcomer("ada", ""), Role::Member).await.unwrap().unwrap();
        let hoard = Hoard { app, engine, user, folder };
        hoard.fill("old").await;
        hoard
    }

    async fn fill(&self, name: &str) {
        let (user, many) = (&self.user.id, "WITH RECURSIVE many (at) AS (SELECT 1 UNION ALL SELECT at + 1 FROM many");
        let sessions = format!(
            "INSERT INTO sessions (realm, id, handle, user_id, auth_time, amr, created, last_seen, expires, agent, \
             address) {many} WHERE at < {MANY}) \
             SELECT 'main', '{name}' || at, '', '{user}', 1, '', 1, 1, 1, '', '' FROM many"
        );
        let families = format!(
            "INSERT INTO families (realm, id, client_id, user_id, granted, created, idle_until, expires) \
             {many} WHERE at < {MANY}) SELECT 'main', '{name}' || at, 'shop', '{user}', '', 1, 1, 1 FROM many"
        );
        self.engine.inside.alter(vec![sessions, families]).await.unwrap();
    }

    /// How many sessions and families live.
    fn live(&self) -> (i64, i64) {
        let connection = rusqlite::Connection::open(Path::new(self.folder.path()).join("facts.db")).unwrap();
        let count = |sql: &str| connection.query_row(sql, [], |row| row.get(0)).unwrap();
        let sessions = count("SELECT COUNT(*) FROM sessions WHERE ended_at IS NULL");
        (sessions, count("SELECT COUNT(*) FROM families WHERE revoked_at IS NULL"))
    }

    async fn set(&self, enabled: bool) -> Result<(), String> {
        let set = self.app.set_user_enabled(&self.user, enabled).await;
        set.map(|set| drop(set.unwrap())).map_err(|fault| fault.to_string())
    }

    async fn is_enabled(&self) -> bool {
        self.app.find_user("ada").await.unwrap().unwrap().expect("added").is_enabled()
    }
}

#[tokio::test]
async fn an_account_is_disabled_whatever_it_holds_and_is_not_enabled_before_that_has_ended() {
    // Red with SetDisabled in the batch that ends all, and without `ends_all_but` where an account is enabled.
    let hoard = Hoard::new().await;
    hoard.engine.is_late.store(true, SeqCst);
    let why = hoard.set(false).await.unwrap_err();
    assert!(why.contains("no answer in 10 s; the account is disabled, but not all"), "{why}");
    assert!(!hoard.is_enabled().await, "it is disabled");
    assert!(hoard.set(true).await.is_err() && !hoard.is_enabled().await, "what it held would live again");
    assert_eq!(hoard.live().1, MANY);
    hoard.engine.is_late.store(false, SeqCst);
    hoard.set(true).await.unwrap();
    assert!(hoard.is_enabled().await);
    assert_eq!(hoard.live(), (0, 0));

    hoard.fill("new").await;
    hoard.engine.is_late.store(true, SeqCst);
    hoard.set(false).await.unwrap_err();
    hoard.engine.is_late.store(false, SeqCst);
    hoard.set(false).await.unwrap();
    assert_eq!(hoard.live(), (0, 0), "it was disabled already");
    let most = hoard.engine.most.load(SeqCst);
    assert!(most <= AT_ONCE as u64, "a statement touched {most} rows");
}

#[tokio::test]
async fn a_password_ends_whatever_the_account_holds() {
    // Red without `ends_all_but` in admin/users.rs, set_password.
    let hoard = Hoard::new().await;
    hoard.app.set_password(&hoard.user, b"heron quartz saddle 52").await.unwrap().unwrap();
    assert_eq!(hoard.live(), (0, 0));
    let most = hoard.engine.most.load(SeqCst);
    assert!(most <= AT_ONCE as u64, "a statement touched {most} rows");
}

#[tokio::test]
async fn nothing_but_the_audit_log_names_an_account_that_was_removed() {
    // Red without the codes in store/tables/living.rs, remove: they stayed for three months. Red without `empty` in
    // admin/users.rs, remove_user: one statement would remove all.
    let hoard = Hoard::new().await;
    let user = &hoard.user.id;
    let rows = [
        "INSERT INTO codes (realm, family, handle, client_id, user_id, session_id, redirect_uri, granted, expires, \
         redeemed_at) SELECT realm, id, '', client_id, user_id, '', '', '', 1, 1 FROM families"
            .to_owned(),
        format!(
            "INSERT INTO devices (realm, handle, user_code, client_id, scope, resources, address, asked, expires, \
             interval_s, stage, user_id) VALUES ('main', 'a', 'a', 'shop', '', '', '', 1, 1, 5, 'approved', '{user}')"
        ),
        format!(
            "INSERT INTO consents (realm, user_id, client_id, scope, granted) VALUES ('main', '{user}', 'shop', '', 1)"
        ),
        format!("INSERT INTO members (realm, user_id, group_id) VALUES ('main', '{user}', 'staff')"),
    ];
    hoard.engine.inside.alter(rows.into()).await.unwrap();
    hoard.app.remove_user(&hoard.user).await.unwrap().unwrap();
    let connection = rusqlite::Connection::open(hoard.folder.path().join("facts.db")).unwrap();
    let mut tables = connection
        .prepare(
            "SELECT m.name FROM sqlite_master AS m, pragma_table_info(m.name) AS c \
             WHERE m.type = 'table' AND c.name = 'user_id'",
        )
        .unwrap();
    let tables: Vec<String> = tables.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
    assert!(tables.len() > 7, "{tables:?}");
    for table in tables {
        let sql = format!("SELECT COUNT(*) FROM {table} WHERE user_id = ?");
        let rows: i64 = connection.query_row(&sql, [user.as_str()], |row| row.get(0)).unwrap();
        assert_eq!(rows > 0, table == "events", "{table}: {rows}");
    }
    let most = hoard.engine.most.load(SeqCst);
    assert!(most <= AT_ONCE as u64, "a statement touched {most} rows");
}
