//! Adds many people who all have the same password, so that one hash serves for all of them. Their server must not run
//! meanwhile.

use super::{Audited, PASSWORD, Store};
use load::Refusal;
use rules::decision::Change;
use rules::events::{Event, Kind};
use rules::fresh::Fresh;
use rules::id::RealmId;
use rules::people::User;
use rules::people::names::LoginKey;
use std::path::Path;
use std::sync::Arc;
use store::engine::Engine;
use store::migrations::MIGRATIONS;
use store::moving::catalogue::tables;
use store::mysql::Mysql;
use store::postgres::Postgres;
use store::remote::Settings;
use store::sqlite::{Options, Sqlite};
use store::tables::ask;
use store::tables::changes::batch;
use store::tables::users::ByLogin;

/// The realm that the set-up creates.
const REALM: &str = "main";
/// People per transaction.
const TOGETHER: usize = 100;

/// Returns the login of the person with this number.
pub fn login(number: usize) -> String {
    format!("user-{number:07}")
}

/// Returns the users that the load generator needs, for this many people.
pub fn users(count: usize) -> Vec<load::plan::User> {
    (0..count).map(|number| load::plan::User { login: login(number), password: PASSWORD.to_owned() }).collect()
}

/// Makes sure that a server's database may be filled.
///
/// # Errors
/// [`Refusal::Failure`] if it is not empty or cannot be reached.
pub fn expect_empty(store: &Store) -> Result<(), Refusal> {
    if let Store::File = store {
        return Ok(());
    }
    let tables = with_engine(store, Path::new(""), async |engine| tables(engine).await.map_err(|trouble| trouble.why));
    match tables.map_err(|why| Refusal::Failure(format!("the database that was named: {why}")))? {
        tables if tables.is_empty() => Ok(()),
        _ => Err(Refusal::Failure("the database that was named is not empty: name one that is".to_owned())),
    }
}

/// Creates this many accounts, each with the password of the account `template`.
///
/// # Errors
/// [`Refusal::Failure`] with the database's message.
pub fn settle(store: &Store, data: &Path, template: &str, count: usize) -> Result<(), Refusal> {
    let made = with_engine(store, data, async |engine| add(engine, template, count).await);
    made.map_err(|why| Refusal::Failure(format!("people cannot be added to the private server: {why}")))
}

/// Writes every audit entry a second time, with an index like that of the first.
const AGAIN: [&str; 3] = [
    "CREATE TABLE events_again (realm text NOT NULL, id text NOT NULL, at bigint NOT NULL, kind text NOT NULL, user_id text,
        client_id text, session_id text, address text, detail text NOT NULL, request text, block bigint NOT NULL DEFAULT 0,
        PRIMARY KEY (realm, id)) WITHOUT ROWID",
    "CREATE INDEX events_again_of_block ON events_again (realm, block, id)",
    "CREATE TRIGGER events_again AFTER INSERT ON events BEGIN INSERT INTO events_again
        (realm, id, at, kind, user_id, client_id, session_id, address, detail, request) VALUES (NEW.realm, NEW.id, NEW.at,
        NEW.kind, NEW.user_id, NEW.client_id, NEW.session_id, NEW.address, NEW.detail, NEW.request); END",
];

/// Deletes every audit entry again.
const TAKEN_OUT: [&str; 1] = ["CREATE TRIGGER events_gone AFTER INSERT ON events BEGIN
        DELETE FROM events WHERE realm = NEW.realm AND id = NEW.id; END"];

/// Makes the database treat each further audit entry in this way (SQLite).
///
/// # Errors
/// [`Refusal::Failure`] with the database's message.
pub fn alter_events(store: &Store, data: &Path, audited: Audited) -> Result<(), Refusal> {
    let statements: &[&str] = match audited {
        Audited::Once => return Ok(()),
        Audited::Twice => &AGAIN,
        Audited::Never => &TAKEN_OUT,
    };
    let statements = statements.iter().map(|statement| (*statement).to_owned()).collect();
    let altered = with_engine(store, data, async |engine| engine.alter(statements).await.map_err(|error| error.0));
    altered.map_err(|why| Refusal::Failure(format!("the private server's audit log cannot be changed: {why}")))
}

/// Opens the database, does `work` with it, and closes it.
fn with_engine<T>(
    store: &Store,
    data: &Path,
    work: impl AsyncFnOnce(&dyn Engine) -> Result<T, String>,
) -> Result<T, String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(|error| error.to_string())?.block_on(async {
        match store {
            Store::File => {
                // The default handler ends the process, and all measurements before it would be lost.
                let on_fatal = Arc::new(|_: &str| ());
                let options = Options { on_fatal, ..Options::at(data.join("portiere.db")) };
                let engine = Sqlite::open(options, MIGRATIONS).map_err(|error| error.to_string())?;
                let done = work(&engine).await;
                engine.close();
                done
            }
            Store::Server(url) if url.reveal().starts_with("postgres") => {
                let engine = Postgres::open(Settings::at(url.reveal()), MIGRATIONS).await;
                work(&engine.map_err(|error| error.to_string())?).await
            }
            Store::Server(url) => {
                let engine = Mysql::open(Settings::at(url.reveal()), MIGRATIONS).await;
                let engine = engine.map_err(|error| error.to_string())?;
                let done = work(&engine).await;
                engine.close().await;
                done
            }
        }
    })
}

async fn add(engine: &dyn Engine, template: &str, count: usize) -> Result<(), String> {
    let realm = RealmId(REALM.to_owned());
    let key = LoginKey::of(template);
    let found = ask(engine, &realm, ByLogin(key.as_ref())).await.map_err(|error| error.0)?;
    let template = found.ok_or_else(|| format!("{template} is not there"))?;
    for first in (0..count).step_by(TOGETHER) {
        let people = (first..count.min(first + TOGETHER)).map(|number| one(&template, number));
        let writes = people.flat_map(|(changes, fresh)| batch(&realm, &changes, template.created, &fresh)).collect();
        engine.commit(writes).await.map_err(|error| format!("{error:?}"))?;
    }
    Ok(())
}

/// Returns the changes that the server itself would write, and the randomness that names the audit entry.
fn one(template: &User, number: usize) -> ([Change; 2], Fresh) {
    let mut seed = [b'u'; 32];
    seed[..8].copy_from_slice(&(number as u64).to_be_bytes());
    let (fresh, at) = (Fresh::new(seed), template.created);
    let user = User { password: template.password.clone(), ..User::new(fresh.user(), login(number), at) };
    let event = Event::new(Kind::UserAdded, at).user(&user.id).detail("by", "operator");
    ([Change::AddUser(Box::new(user)), Change::Record(event)], fresh)
}
