//! `migrate`: brings the database to this program's schema.

use super::outcome::{Failure, Outcome, Reply};
use crate::database::unmigrated;
use app::App;
use serde_json::{Value, json};
use store::migrations::MIGRATIONS;
use store::moving::catalogue;

/// Carries out the command.
pub async fn execute(app: &App) -> Reply {
    app.engine.migrate().await.map_err(|error| unmigrated(error.0))?;
    let version = catalogue::version(&*app.engine).await?;
    let ahead = match newest() {
        ours if version > ours => format!("; this program knows {ours}: a newer one has migrated it"),
        _ => String::new(),
    };
    Ok(Outcome::new(format!("the database has schema version {version}{ahead}"), json!({ "schema": version })))
}

/// Returns the schema version of this program.
pub fn newest() -> i64 {
    MIGRATIONS.last().map_or(0, |newest| newest.version)
}

/// Checks that a server brought the database as far as this program would: a server knows no schema after its own.
pub fn is_done(told: &Value) -> Result<(), Failure> {
    let newest = newest();
    match told["schema"].as_i64() {
        Some(schema) if schema >= newest => Ok(()),
        _ => Err(Failure::Failed(format!(
            "the running server is an older version, and left the database at its schema {}, not {newest}: stop it and \
             run this again, or start it with this program, which migrates, too",
            told["schema"]
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::super::request::Request;
    use super::*;

    #[test]
    fn a_server_of_an_older_version_does_not_bring_the_database_to_this_schema() {
        // red without `believed` for Migrate.
        let answer = |schema: i64| Outcome::new("the database has a schema", json!({ "schema": schema }));
        for schema in [newest(), newest() + 1] {
            assert_eq!(Request::Migrate.believed(answer(schema)), Ok(answer(schema)));
        }
        let Err(Failure::Failed(why)) = Request::Migrate.believed(answer(newest() - 1)) else { panic!("refused") };
        assert!(why.contains("older version") && why.contains(&format!("not {}", newest())), "{why}");
    }
}
