//! Many people who all have one password, so that one hash serves for all of them. The server that they are for does not run
//! meanwhile.

use super::{PASSWORD, Store};
use load::Refusal;
use rules::decision::Change;
use rules::events::{Event, Kind};
use rules::fresh::Fresh;
use rules::id::RealmId;
use rules::people::names::LoginKey;
use rules::people::user::{Profile, Role, User};
use std::path::Path;
use store::engine::Engine;
use store::migrations::MIGRATIONS;
use store::mysql::Mysql;
use store::postgres::Postgres;
use store::remote::Settings;
use store::sqlite::{Options, Sqlite};
use store::tables::ask;
use store::tables::changes::batch;
use store::tables::users::ByLogin;

/// The realm that set-up makes.
const REALM: &str = "main";
/// People in one transaction.
const TOGETHER: usize = 100;

/// How the person of this number signs in.
pub fn login(number: usize) -> String {
    format!("user-{number:07}")
}

/// What the load generator has to know of so many.
pub fn users(count: usize) -> Vec<load::plan::User> {
    (0..count).map(|number| load::plan::User { login: login(number), password: PASSWORD.to_owned() }).collect()
}

/// Makes so many accounts, each with the password of the account `template`.
///
/// # Errors
/// [`Refusal::Failure`]: what the database said.
pub fn settle(store: &Store, data: &Path, template: &str, count: usize) -> Result<(), Refusal> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Refusal::Failure(error.to_string()))?;
    let made = match store {
        Store::File => {
            let engine =
                Sqlite::open(Options::at(data.join("portiere.db")), MIGRATIONS).map_err(|error| error.to_string());
            engine.and_then(|engine| {
                let made = runtime.block_on(add(&engine, template, count));
                engine.close();
                made
            })
        }
        Store::Server(url) => runtime.block_on(async {
            let settings = Settings::at(url.reveal());
            if url.reveal().starts_with("postgres") {
                let engine = Postgres::open(settings, MIGRATIONS).await.map_err(|error| error.to_string())?;
                add(&engine, template, count).await
            } else {
                let engine = Mysql::open(settings, MIGRATIONS).await.map_err(|error| error.to_string())?;
                let made = add(&engine, template, count).await;
                engine.close().await;
                made
            }
        }),
    };
    made.map_err(|why| Refusal::Failure(format!("people cannot be added to the private server: {why}")))
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

/// What the server itself would write, and the chance that names the line of the audit log.
fn one(template: &User, number: usize) -> ([Change; 2], Fresh) {
    let mut seed = [b'u'; 32];
    seed[..8].copy_from_slice(&(number as u64).to_be_bytes());
    let (fresh, at) = (Fresh::new(seed), template.created);
    let user = User {
        id: fresh.user(),
        username: login(number),
        email: None,
        email_verified: false,
        profile: Profile::empty(),
        password: template.password.clone(),
        role: Role::Member,
        disabled_at: None,
        created: at,
        updated: at,
    };
    let event = Event::new(Kind::UserAdded, at).user(&user.id).detail("by", "operator");
    ([Change::AddUser(Box::new(user)), Change::Record(event)], fresh)
}
