//! Which schema the tables are in, and a role that may make none.

use store::conformance::{MIGRATIONS, three_reads, three_rows};
use store::engine::Engine;
use store::moving::catalogue;
use store::postgres::Postgres;
use store::remote::{OpenError, Statements};

use crate::server::{Database, database, text};
use crate::until::until;

/// Why no program starts on it.
async fn refused(database: &Database) -> String {
    match Postgres::open(database.settings(), MIGRATIONS).await {
        Ok(_) => panic!("it was let in"),
        Err(OpenError::Unfit(why)) => why,
        Err(error) => panic!("{error:?}"),
    }
}

/// Makes a schema that comes before that of the tables: one with the role's name does so by itself.
async fn forestall(database: &Database, schema: &str) {
    let make = format!("CREATE SCHEMA {schema} AUTHORIZATION {}", database.name);
    database.admin().await.batch_execute(&make).await.unwrap();
    if schema != database.name {
        database.set(&format!("search_path = {schema}, public")).await;
    }
}

#[tokio::test]
async fn no_program_starts_with_a_schema_before_that_of_the_tables() {
    // red without `fit` in Postgres::open, or in postgres/migrate.rs: the tables are made once more, with nothing in them.
    for app in [false, true] {
        let Some(database) = database().await else { return };
        let shared = database.ready(|settings| settings.statements = Statements::Unnamed).await;
        let schema: &str = if app { "app" } else { &database.name };
        forestall(&database, schema).await;
        let wanted = format!("in schema public, and this role would make others in schema {schema}");
        let why = refused(&database).await;
        assert!(why.contains(&wanted), "{why}");
        assert!(why.contains(&format!("ALTER ROLE {} SET search_path = public", database.name)), "{why}");
        let why = shared.migrate().await.unwrap_err().0;
        assert!(why.contains(&wanted), "one whose sessions are told nothing makes none either: {why}");
        let admin = database.admin().await;
        let count = format!("SELECT count(*) FROM pg_tables WHERE schemaname = '{schema}'");
        assert_eq!(text(&admin, &count).await, "0");
        // What such a program of before left behind.
        admin.batch_execute(&format!("CREATE TABLE {schema}.schema_steps (LIKE public.schema_steps)")).await.unwrap();
        let why = refused(&database).await;
        assert!(why.contains(&format!("in schema {schema}, and in schema public")), "{why}");
        admin.batch_execute(&format!("DROP SCHEMA {schema} CASCADE")).await.unwrap();
        drop(database.ready(|_| ()).await);
    }
}

#[tokio::test]
async fn who_runs_stays_with_the_schema_that_was_found_at_the_start() {
    // red without `search_path` in postgres/link.rs, SESSION; for new sessions without `stay_in` in postgres/pool.rs.
    for app in [false, true] {
        let Some(database) = database().await else { return };
        let engine = database.ready(|_| ()).await;
        engine.commit(three_rows(1)).await.unwrap();
        let schema: &str = if app { "app" } else { &database.name };
        forestall(&database, schema).await;
        let admin = database.admin().await;
        for table in ["schema_steps", "schema_versions", "note"] {
            let like = format!(
                "CREATE TABLE {schema}.{table} (LIKE public.{table}); ALTER TABLE {schema}.{table} OWNER TO {}",
                database.name
            );
            admin.batch_execute(&like).await.unwrap();
        }
        let found = async || engine.fetch(&three_reads(1)).await.map(|rows| rows.concat().len());
        assert_eq!(found().await, Ok(3), "sessions of before");
        database.end_sessions("").await;
        until("a new session", async || found().await.is_ok()).await;
        assert_eq!(found().await, Ok(3), "sessions of after");
        until("a batch", async || engine.commit(three_rows(2)).await.is_ok()).await;
        assert_eq!(text(&admin, &format!("SELECT count(*) FROM {schema}.note")).await, "0");
        engine.migrate().await.unwrap();
    }
}

#[tokio::test]
async fn a_schema_may_have_any_name() {
    // red without `quote_ident` in dialect/moving.rs, or in postgres/link.rs.
    let Some(database) = database().await else { return };
    let schema = format!("CREATE SCHEMA \"My-Own\" AUTHORIZATION {}", database.name);
    database.admin().await.batch_execute(&schema).await.unwrap();
    database.set("search_path = nowhere, \"My-Own\", public").await;
    let engine = database.ready(|_| ()).await;
    engine.commit(three_rows(1)).await.unwrap();
    assert!(catalogue::tables(&engine).await.unwrap().contains_key("note"));
    let admin = database.admin().await;
    assert_eq!(text(&admin, "SELECT schemaname FROM pg_tables WHERE tablename = 'note'").await, "My-Own");
}

#[tokio::test]
async fn a_role_that_may_make_no_tables_starts_where_none_is_to_be_made() {
    // red without `has` in postgres/migrate.rs: CREATE TABLE IF NOT EXISTS is refused where the table is there.
    const REVOKE: &str = "REVOKE CREATE ON SCHEMA public FROM PUBLIC, pg_database_owner";
    let Some(database) = database().await else { return };
    drop(database.ready(|_| ()).await);
    database.admin().await.batch_execute(REVOKE).await.unwrap();
    database.ready(|_| ()).await.commit(three_rows(1)).await.unwrap();
}

#[tokio::test]
async fn who_lacks_the_right_to_make_tables_is_told_so() {
    // red without `lacks` in postgres/migrate.rs.
    const REVOKE: &str = "REVOKE CREATE ON SCHEMA public FROM PUBLIC, pg_database_owner";
    const GRANT: &str = "GRANT CREATE ON SCHEMA public TO pg_database_owner";
    let Some(database) = database().await else { return };
    let admin = database.admin().await;
    for (had, of) in [(None, "schema: "), (Some(&MIGRATIONS[..1]), "schema version 2, step 0: ")] {
        if let Some(migrations) = had {
            let older = Postgres::open(database.settings(), migrations).await.unwrap();
            older.migrate().await.unwrap();
        }
        admin.batch_execute(REVOKE).await.unwrap();
        let why = database.open().await.migrate().await.unwrap_err().0;
        assert!(why.starts_with(of) && why.ends_with("(42501): the role needs CREATE on schema public"), "{why}");
        admin.batch_execute(GRANT).await.unwrap();
    }
}
