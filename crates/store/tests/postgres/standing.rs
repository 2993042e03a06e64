//! What an engine says of its server, and which servers it refuses.

use std::sync::atomic::{AtomicI64, Ordering::Relaxed};
use std::time::Duration;

use store::conformance::{MIGRATIONS, three_reads, three_rows};
use store::engine::{CommitError, Durability, Engine};
use store::postgres::Postgres;
use store::remote::{Loss, OpenError, Replication, Settings, Statements};

use tokio::sync::Mutex;
use tokio_postgres::Client;

use crate::server::{Database, database, text};
use crate::until::until;

/// Held by whoever has an engine that would take a server that recovered for another one, or lets it look so.
static RECOVERY: Mutex<()> = Mutex::const_new(());

async fn refused(settings: Settings) -> OpenError {
    match Postgres::open(settings, MIGRATIONS).await {
        Ok(_) => panic!("it was let in"),
        Err(error) => error,
    }
}

#[tokio::test]
async fn a_single_server_keeps_what_it_acknowledged_while_its_disk_survives() {
    let Some(database) = database().await else { return };
    let engine = database.ready(|_| ()).await;
    engine.commit(three_rows(1)).await.unwrap();
    let health = engine.health().await.unwrap();
    assert_eq!((health.durability, health.writable), (Durability::DurableNode, Ok(())));
    assert!(health.commit_ms > 0.0);
    let identity = engine.identity().unwrap();
    let admin = database.admin().await;
    assert_eq!(identity.system, text(&admin, "SELECT system_identifier FROM pg_control_system()").await);
    assert_eq!(identity.timeline.to_string(), text(&admin, "SELECT timeline_id FROM pg_control_checkpoint()").await);
}

/// What commits wait for is ours to say, whatever is set on the server.
#[tokio::test]
async fn a_weaker_commit_of_the_server_is_not_ours() {
    let Some(database) = database().await else { return };
    let _alone = RECOVERY.lock().await;
    database.set("synchronous_commit = off").await;
    for statements in [Statements::Kept, Statements::Unnamed] {
        let engine = database.ready(|settings| settings.statements = statements).await;
        assert_eq!(engine.health().await.unwrap().durability, Durability::DurableNode);
        assert_eq!(level_at_commit(&database, &engine, 1 + statements as i64).await, "on");
        let named = database
            .ready(|settings| {
                settings.statements = statements;
                settings.accepted = vec![Loss::Commits];
            })
            .await;
        assert_eq!(named.health().await.unwrap().durability, Durability::Bounded);
        assert_eq!(level_at_commit(&database, &named, 11 + statements as i64).await, "off");
    }
    database.set("synchronous_commit = remote_apply").await;
    let engine = database.ready(|_| ()).await;
    assert_eq!(level_at_commit(&database, &engine, 21).await, "remote_apply");
}

/// What was acknowledged last is gone when such a server has died, and it is the same one all the same.
#[tokio::test]
async fn a_server_that_forgets_when_it_dies_is_another_one_after_each_recovery() {
    // red without LIFE in postgres/server.rs, or without the statistics in it.
    let Some(database) = database().await else { return };
    let _alone = RECOVERY.lock().await;
    database.set("synchronous_commit = off").await;
    let durable = database.ready(|_| ()).await;
    for statements in [Statements::Kept, Statements::Unnamed] {
        let forgetful = database
            .ready(|settings| {
                settings.statements = statements;
                settings.accepted = vec![Loss::Commits];
            })
            .await;
        let [was, sound] = [&forgetful, &durable].map(|engine| engine.answering().unwrap());
        assert!(forgetful.health().await.unwrap().writable.is_ok());
        assert_eq!(forgetful.answering().unwrap(), was, "it lives on");
        // A recovery does this, and leaves the start of the server as it was where only a process of it died.
        database.admin().await.batch_execute("SELECT pg_stat_reset_shared('bgwriter')").await.unwrap();
        for engine in [&forgetful, &durable] {
            assert_eq!(engine.health().await.unwrap().writable, Ok(()));
        }
        let now = forgetful.answering().unwrap();
        assert!(now.generation > was.generation && now.identity != was.identity, "{was:?} {now:?}");
        assert_eq!(durable.answering().unwrap(), sound, "nothing of its own is lost");
    }
}

/// As behind a pooler, where a failover ends no connection: what the server says of its timeline is in a table.
#[tokio::test]
async fn another_server_on_the_same_connection_gets_no_batch_and_is_noticed_by_every_read() {
    // Red without `still` in postgres/mod.rs, send: it is written to before anybody asks which server it is. Red
    // without `told_apart` in fetch.
    let Some(database) = database().await else { return };
    let admin = database.admin().await;
    let told = "CREATE TABLE answers (timeline text); INSERT INTO answers VALUES ('00000001'); \
                GRANT SELECT ON answers TO PUBLIC; CREATE FUNCTION public.pg_walfile_name(pg_lsn) RETURNS text \
                LANGUAGE sql AS $$ SELECT timeline || '0000000000000001' FROM public.answers $$";
    admin.batch_execute(told).await.unwrap();
    database.set("search_path = public, pg_catalog").await;
    let engine = database.ready(|settings| settings.statements = Statements::Unnamed).await;
    let promoted = async |timeline: &str| {
        admin.batch_execute(&format!("UPDATE answers SET timeline = '{timeline}'")).await.unwrap();
    };
    let notes = async || text(&admin, "SELECT count(*) FROM note").await;
    engine.commit(three_rows(1)).await.unwrap();
    let (was, count) = (engine.answering().unwrap(), notes().await);
    assert!(was.identity.ends_with("timeline 1"), "{was:?}");

    promoted("00000002").await;
    let late = engine.commit_within(was.generation, three_rows(2)).await;
    assert!(matches!(&late, Err(CommitError::Unavailable(why)) if why.contains("another database server")), "{late:?}");
    assert_eq!(notes().await, count);
    let now = engine.answering().unwrap();
    assert!(now.generation > was.generation && now.identity.ends_with("timeline 2"), "{now:?}");
    until("a batch for that server", async || engine.commit(three_rows(2)).await.is_ok()).await;

    let before = engine.generation();
    promoted("0000000A").await;
    assert_eq!(engine.fetch(&three_reads(2)).await.unwrap().len(), 3);
    assert!(engine.generation() > before, "before the answer is given");
    // One of before: what it says may be old. Its connections were made anew meanwhile.
    until("reads from that server", async || engine.fetch(&three_reads(2)).await.is_ok()).await;
    promoted("00000002").await;
    let late = engine.fetch(&three_reads(2)).await;
    let is_told = |why: &str| why.contains("superseded") || why.contains("no connection");
    assert!(late.as_ref().is_err_and(|why| is_told(&why.0)), "{late:?}");
}

/// What a batch's own transaction waits for.
async fn level_at_commit(database: &Database, engine: &Postgres, number: i64) -> String {
    let admin = database.admin().await;
    let told = "CREATE TABLE IF NOT EXISTS told (level text); GRANT ALL ON told TO PUBLIC; DELETE FROM told; \
                CREATE OR REPLACE FUNCTION tell() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
                INSERT INTO told VALUES (current_setting('synchronous_commit')); RETURN NULL; END $$; \
                CREATE OR REPLACE TRIGGER tells AFTER INSERT ON note FOR EACH ROW EXECUTE FUNCTION tell()";
    admin.batch_execute(told).await.unwrap();
    engine.commit(three_rows(number)).await.unwrap();
    text(&admin, "SELECT DISTINCT level FROM told").await
}

#[tokio::test]
async fn a_server_that_only_reads_is_refused() {
    let Some(database) = database().await else { return };
    database.set("default_transaction_read_only = on").await;
    let OpenError::Unfit(why) = refused(database.settings()).await else { panic!() };
    assert!(why.contains("read-only"), "{why}");
}

#[tokio::test]
async fn a_server_that_turns_read_only_is_left() {
    let Some(database) = database().await else { return };
    let engine = database.ready(|_| ()).await;
    let admin = database.admin().await;
    // What a switchover does, as far as one database can.
    database.set("default_transaction_read_only = on").await;
    database.end_sessions("").await;
    let is_told = async || format!("{:?}", engine.commit(three_rows(1)).await).contains("read-only");
    until("a server that only reads", is_told).await;
    let writable = engine.health().await.unwrap().writable;
    assert!(writable.is_err_and(|why| why.contains("read-only")));
    admin
        .batch_execute(&format!(
            "SET default_transaction_read_only = off; ALTER DATABASE {} RESET default_transaction_read_only",
            database.name
        ))
        .await
        .unwrap();
    until("a server that writes", async || engine.commit(three_rows(2)).await.is_ok()).await;
}

/// Lets the server say something else of a setting than it is, to whoever asks in this database.
async fn says(admin: &Client, setting: &str, value: &str) {
    let says = format!(
        "CREATE OR REPLACE FUNCTION public.current_setting(name text) RETURNS text LANGUAGE plpgsql AS $$ BEGIN \
         RETURN CASE name WHEN '{setting}' THEN '{value}' ELSE pg_catalog.current_setting(name) END; END $$"
    );
    admin.batch_execute(&says).await.unwrap();
}

/// Lets the server say that it waits for standbys, and that so many of them confirm its commits.
async fn confirmed_by(admin: &Client, standbys: u32) {
    says(admin, "synchronous_standby_names", "*").await;
    let rows = format!(
        "CREATE TABLE IF NOT EXISTS public.pg_stat_replication (state text, sync_state text); \
         GRANT SELECT ON public.pg_stat_replication TO PUBLIC; DELETE FROM public.pg_stat_replication; \
         INSERT INTO public.pg_stat_replication SELECT 'streaming', 'sync' FROM generate_series(1, {standbys})"
    );
    admin.batch_execute(&rows).await.unwrap();
}

#[tokio::test]
async fn a_standby_that_confirms_now_is_enough_where_an_operator_says_that_nothing_goes_without_it() {
    // red without `replication` in postgres/pool.rs, learn.
    let Some(database) = database().await else { return };
    let admin = database.admin().await;
    confirmed_by(&admin, 1).await;
    database.set("search_path = public, pg_catalog").await;
    for (said, worth) in [
        (Replication::Observed, Durability::Bounded),
        (Replication::Bounded, Durability::Bounded),
        (Replication::Strict, Durability::ZeroLoss),
    ] {
        let engine = database.ready(|settings| settings.replication = said).await;
        assert_eq!(engine.health().await.unwrap().durability, worth, "{said:?}");
    }
    let strict = database.ready(|settings| settings.replication = Replication::Strict).await;
    confirmed_by(&admin, 0).await;
    assert_eq!(strict.health().await.unwrap().durability, Durability::DurableNode, "what was said is not so");
}

/// Each commit that waits for a standby keeps its connection after it was given up here. Red without
/// must_find_a_standby in postgres/link.rs: the server would have no connections left in the end, for anybody.
#[tokio::test]
async fn where_no_standby_confirms_no_more_commits_are_left_behind() {
    let Some(database) = database().await else { return };
    let admin = database.admin().await;
    let waiting = async |commits: u32, since: &str| {
        let view = format!(
            "DROP VIEW IF EXISTS public.pg_stat_activity; CREATE VIEW public.pg_stat_activity AS SELECT current_user AS usename, \
             'SyncRep' AS wait_event, now() - interval '{since}' AS query_start FROM generate_series(1, {commits}); \
             GRANT SELECT ON public.pg_stat_activity TO PUBLIC"
        );
        admin.batch_execute(&view).await.unwrap();
    };
    drop(database.ready(|_| ()).await);
    waiting(1000, "0 seconds").await;
    database.set("search_path = public, pg_catalog").await;
    let engine = database.ready(|_| ()).await;
    engine.commit(three_rows(1)).await.unwrap();
    drop(engine);
    waiting(1000, "1 hour").await;
    let OpenError::Unreachable(why) = refused(database.settings()).await else { panic!() };
    assert!(why.contains("1000 commits wait for a synchronous standby"), "{why}");
    waiting(1, "1 hour").await;
    let engine = database.ready(|_| ()).await;
    engine.commit(three_rows(2)).await.unwrap();
    // Those for batches end, and are not let in again. Red where batches may go over those for reads then: they would
    // wait there.
    waiting(1000, "1 hour").await;
    database.end_sessions("").await;
    until("reads go on", async || engine.fetch(&three_reads(2)).await.is_ok_and(|rows| rows.concat().len() == 3)).await;
    for number in 3..8 {
        let answer = engine.commit(three_rows(number)).await;
        assert!(matches!(answer, Err(CommitError::Unavailable(_))), "{answer:?}");
        assert_eq!(engine.fetch(&three_reads(2)).await.unwrap().concat().len(), 3);
    }
    until("that is told", async || engine.health().await.unwrap().writable.is_err_and(|why| why.contains("standby")))
        .await;
    waiting(1, "1 hour").await;
    until("a standby confirms again", async || engine.commit(three_rows(8)).await.is_ok()).await;
}

/// Connections that were made before are no way to go on.
#[tokio::test]
async fn a_server_that_stops_syncing_is_left() {
    // red without `fit` in postgres/pool.rs, look_after.
    let Some(database) = database().await else { return };
    let admin = database.admin().await;
    says(&admin, "fsync", "on").await;
    database.set("search_path = public, pg_catalog").await;
    let engine = database.ready(|_| ()).await;
    engine.commit(three_rows(0)).await.unwrap();
    says(&admin, "fsync", "off").await;
    assert!(engine.health().await.unwrap().writable.is_err_and(|why| why.contains("fsync is off")));
    let numbers = AtomicI64::new(1);
    let next = || engine.commit(three_rows(numbers.fetch_add(1, Relaxed)));
    let refused = |answer: Result<Vec<u64>, CommitError>| matches!(answer, Err(CommitError::Unavailable(why)) if why.contains("fsync is off"));
    until("nothing is written there", async || refused(next().await)).await;
    for _ in 0..10 {
        assert!(refused(next().await), "on no connection");
    }
    says(&admin, "fsync", "on").await;
    until("a server that syncs", async || next().await.is_ok()).await;
}

/// Where the storage writes pages whole nobody has to log them, and the server forgets nothing by that.
#[tokio::test]
async fn a_server_that_logs_no_whole_pages_is_the_same_one_after_a_start() {
    // red with `full_page_writes` by itself in postgres/server.rs, forgets.
    let Some(database) = database().await else { return };
    says(&database.admin().await, "full_page_writes", "off").await;
    database.set("search_path = public, pg_catalog").await;
    let OpenError::Unfit(why) = refused(database.settings()).await else { panic!() };
    assert!(why.contains("full_page_writes is off") && why.contains(r#"store.accept_loss = ["database"]"#), "{why}");
    let engine = database.ready(|settings| settings.accepted = vec![Loss::Database]).await;
    engine.commit(three_rows(1)).await.unwrap();
    let answering = engine.answering().unwrap();
    assert!(!answering.identity.contains(" since "), "{answering:?}");
    assert_eq!(engine.health().await.unwrap().durability, Durability::Bounded);
}

#[tokio::test]
async fn what_is_wrong_with_a_way_in_is_said_without_the_password() {
    let Some(database) = database().await else { return };
    let name = &database.name;
    let closed = {
        let probe = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        probe.local_addr().unwrap().port()
    };
    for url in [
        database.url_at(closed),
        format!("postgres://{name}:hunter2@127.0.0.1:{}/{name}", database.port),
        format!("postgres://{name}:{name}@127.0.0.1:{}/missing", database.port),
    ] {
        let error = refused(Settings::at(url)).await;
        let (OpenError::Unreachable(why) | OpenError::Refused(why)) = &error else { panic!("{error:?}") };
        // Red without `is_refusal` in postgres/connect.rs: a command would be told to try again with the same.
        assert_eq!(matches!(error, OpenError::Unreachable(_)), why.contains(&closed.to_string()), "{why}");
        assert!(why.starts_with("127.0.0.1:") && !why.contains("hunter2"), "{why}");
    }
}

/// The first host that is what we need is taken, as libpq does.
#[tokio::test]
async fn of_several_hosts_one_that_answers_is_taken() {
    let Some(database) = database().await else { return };
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let hosts = format!("127.0.0.1:{closed},127.0.0.1:{}", database.port);
    let url = format!("postgres://{0}:{0}@{hosts}/{0}?connect_timeout=30", database.name);
    let engine = Postgres::open(Settings::at(url), MIGRATIONS).await.unwrap();
    engine.migrate().await.unwrap();
    engine.commit(three_rows(1)).await.unwrap();
    // The others may take over, and did not wait for it.
    assert_eq!(engine.health().await.unwrap().durability, Durability::Bounded);
}

#[tokio::test]
async fn copies_are_made_with_the_servers_own_tools() {
    let Some(database) = database().await else { return };
    let why = database.open().await.backup(std::path::Path::new("/nowhere")).await.unwrap_err().0;
    assert!(why.contains("pg_dump"), "{why}");
}

/// A batch that was on its way to the server of before is not written to the next one.
#[tokio::test]
async fn a_batch_is_for_the_server_that_was_let_in() {
    // red without leads_to in postgres/pool.rs, send.
    let Some(database) = database().await else { return };
    let engine = database.ready(|_| ()).await;
    let now = engine.generation();
    let answer = engine.commit_within(now + 1, three_rows(1)).await;
    assert!(
        matches!(&answer, Err(CommitError::Unavailable(why)) if why.contains("another database server")),
        "{answer:?}"
    );
    assert_eq!(engine.fetch(&three_reads(1)).await.unwrap().concat().len(), 0);
    assert_eq!(engine.commit_within(now, three_rows(1)).await, Ok(vec![1, 1, 1]));
}

/// As where a standby that has to confirm every commit is away. Red without `standstill` in postgres/mod.rs, health.
#[tokio::test]
async fn nothing_can_be_written_while_every_batch_waits_and_reads_go_on() {
    let Some(database) = database().await else { return };
    let engine = database.ready(|settings| settings.timeout = Duration::from_secs(6)).await;
    engine.commit(three_rows(1)).await.unwrap();
    let admin = database.admin().await;
    let waits = "CREATE FUNCTION public.waits() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(600); RETURN NEW; \
                 END $$; CREATE TRIGGER waits BEFORE INSERT ON note FOR EACH ROW EXECUTE FUNCTION public.waits()";
    admin.batch_execute(waits).await.unwrap();
    assert!(engine.commit(three_rows(2)).await.is_err());
    let writable = engine.health().await.unwrap().writable;
    assert!(writable.as_ref().is_err_and(|why| why.contains("since a batch timed out")), "{writable:?}");
    assert_eq!(engine.fetch(&three_reads(1)).await.unwrap().concat().len(), 3, "reads go on");
    database.end_sessions("").await;
    admin.batch_execute("DROP TRIGGER waits ON note").await.unwrap();
    until("the next commit", async || engine.commit(three_rows(3)).await.is_ok()).await;
    assert_eq!(engine.health().await.unwrap().writable, Ok(()));
}
