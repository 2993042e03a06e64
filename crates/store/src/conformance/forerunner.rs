//! An older program, imitated by its statements: what it left on its own schema is readable and goes on, and so is what
//! it writes on today's schema beside a program of today.

use super::replays::{client, code, commit, family, ordered};
use super::{Done, Shared, same};
use crate::engine::{Must, Sql, Value, Write};
use crate::migrations::MIGRATIONS;
use crate::schema::Migration;
use crate::tables::row::to_json;
use crate::tables::{ask, changes, clients, codes, devices, families, journal, realms, values};
use rules::ending::{Ending, Record};
use rules::id::{FamilyId, LifeId, RealmId};
use rules::oauth::client::Client;
use rules::oauth::device::{Device, Stage};
use rules::oauth::scope::Scope;
use rules::{Change, Fresh, Handle, Time};
use std::future::Future;

/// The version of the schema that the older program knows.
const KNOWN: usize = 9;
const AT: Time = Time(5_000);

/// `open` returns an engine on the same database each time; the previous one is no longer used by then.
pub async fn forerunner<F: Future<Output = Shared>>(
    open: impl Fn(&'static [Migration]) -> F,
    close: impl Fn(),
) -> Done {
    let realm = RealmId("main".into());
    let older = open(&MIGRATIONS[..KNOWN]).await;
    older.migrate().await.map_err(|why| why.0)?;
    commit(&older, realms::ensure(&realm, "http://a", Time(1))).await?;
    writes(&older, &realm, "left").await?;
    drop(older);
    close();
    let engine = open(MIGRATIONS).await;
    engine.migrate().await.map_err(|why| why.0)?;
    lives(&engine, &realm, "left", None).await?;
    writes(&engine, &realm, "beside").await?;
    lives(&engine, &realm, "beside", None).await?;
    let life: LifeId = "a life".into();
    issues(&engine, &realm, "ours", Some(&life)).await?;
    lives(&engine, &realm, "ours", Some(&life)).await?;
    saves(&engine, &realm, "ours").await?;
    lives(&engine, &realm, "ours", Some(&life)).await
}

fn named(name: &str) -> Client {
    Client { created: AT, ..client(name) }
}

fn device(name: &str) -> Device {
    Device {
        handle: Handle::of(name),
        user_code: Handle::of(&format!("{name} code")),
        client: name.into(),
        life: None,
        scope: Scope::default(),
        resources: vec![],
        address: String::new(),
        asked: AT,
        expires: AT,
        interval_s: 5,
        polled: None,
        stage: Stage::Pending,
    }
}

/// Writes an application with one of everything that is issued to it, as the older program does.
async fn writes(engine: &Shared, realm: &RealmId, name: &str) -> Done {
    commit(engine, [begun(realm, name), waiting(realm, name)].concat()).await
}

fn write(text: &'static str, args: Vec<Value>) -> Write {
    Write { sql: Sql::fixed(text), args, must: Must::Touch(1) }
}

/// The application, and a token family.
fn begun(realm: &RealmId, name: &str) -> Vec<Write> {
    let (client, family) = (named(name), family("ada", name, AT));
    let refresh = family.refresh.as_ref().map(|refresh| refresh.current);
    vec![
        write(
            "INSERT INTO clients (realm, id, data, secret, disabled_at, created, epoch) VALUES \
             (?, ?, ?, ?, ?, ?, COALESCE((SELECT epoch FROM realms WHERE id = ?), 0))",
            values![realm, &client.id, to_json(&client), client.secret, client.disabled_at, client.created, realm],
        ),
        write(
            "INSERT INTO families (realm, id, client_id, user_id, session_id, granted, current_hash, created, \
             idle_until, expires) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            values![
                realm,
                &family.id,
                &family.client,
                &family.user,
                family.session.as_ref(),
                to_json(&family.granted),
                refresh,
                family.created,
                family.idle_until,
                family.expires
            ],
        ),
    ]
}

/// A code, and a device request.
fn waiting(realm: &RealmId, name: &str) -> Vec<Write> {
    let (code, device) = (code(name), device(name));
    vec![
        write(
            "INSERT INTO codes (realm, family, handle, client_id, user_id, session_id, by_consent, redirect_uri, \
             challenge, granted, expires, redeemed_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, NULL)",
            values![
                realm,
                &code.family,
                code.handle,
                &code.client,
                &code.user,
                &code.session,
                code.by_consent,
                code.redirect_uri.as_str(),
                code.challenge.clone(),
                to_json(&code.granted),
                code.expires
            ],
        ),
        write(
            "INSERT INTO devices (realm, handle, user_code, client_id, scope, resources, address, asked, expires, \
             interval_s, stage) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 'pending')",
            values![
                realm,
                device.handle,
                device.user_code,
                &device.client,
                device.scope.to_string(),
                to_json(&device.resources),
                device.address.as_str(),
                device.asked,
                device.expires,
                device.interval_s
            ],
        ),
    ]
}

/// Writes the same as a program of today.
async fn issues(engine: &Shared, realm: &RealmId, name: &str, life: Option<&LifeId>) -> Done {
    let life = || life.cloned();
    let batch = [
        Change::AddClient(Box::new(Client { life: life(), ..named(name) })),
        Change::StartFamily(Box::new(rules::oauth::family::Family { life: life(), ..family("ada", name, AT) })),
        Change::IssueCode(Box::new(rules::oauth::code::Code { life: life(), ..code(name) })),
        Change::AskDevice(Box::new(Device { life: life(), ..device(name) })),
    ];
    commit(engine, changes::batch(realm, &batch, AT, &Fresh::new([9; 32]))).await
}

/// An older program changes an application, and an old journal is replayed: neither knows the application's life.
async fn saves(engine: &Shared, realm: &RealmId, name: &str) -> Done {
    let client = named(name);
    let save = Write {
        sql: Sql::fixed(
            "UPDATE clients SET data = ?, secret = ?, disabled_at = ?, \
             epoch = COALESCE((SELECT epoch FROM realms WHERE id = ?), 0) WHERE realm = ? AND id = ?",
        ),
        args: values![to_json(&client), client.secret, client.disabled_at, realm, realm, &client.id],
        must: Must::Touch(1),
    };
    commit(engine, vec![save]).await?;
    let (secret, client) = (client.secret, Box::new(client));
    let ending = Ending::Client { client, secret, disabled_at: None, life: None, epoch: 100 };
    let record = Record { at: AT, witness: None, endings: vec![ending] };
    let fence = crate::tables::fences::Fence { number: 1, at: AT, identity: String::new(), epoch: 1 };
    for batch in journal::replay(realm, &record, &fence, AT) {
        commit(engine, batch).await?;
    }
    Ok(())
}

/// Checks that everything exists, with this life.
async fn lives(engine: &Shared, realm: &RealmId, name: &str, life: Option<&LifeId>) -> Done {
    let (family, code) = (FamilyId(ordered(name, AT)), code(name).family);
    let id = name.into();
    let asked = (
        clients::ById(&id),
        families::InContext(Some(&family)),
        codes::InContext(Some(&code)),
        devices::InContext(Handle::of(name)),
    );
    let (client, family, code, device) = ask(&**engine, realm, asked).await.map_err(|why| why.0)?;
    let found = [
        client.map(|client| (client.life, client.created)),
        family.map(|found| (found.family.life, found.family.created)),
        code.map(|found| (found.code.life, AT)),
        device.map(|found| (found.device.life, found.device.asked)),
    ];
    let wanted = || Some((life.cloned(), AT));
    same(found, [wanted(), wanted(), wanted(), wanted()], name)
}
