//! Replaying the removal of addresses to a database that lost it: a removed address must not sign anybody in.

use super::replays::{commit, user};
use super::{Done, Shared, same};
use crate::tables::fences::Fence;
use crate::tables::journal::replay;
use crate::tables::{ask, changes, realms, users};
use rules::ending::Record;
use rules::id::RealmId;
use rules::people::User;
use rules::people::names::Email;
use rules::{Change, Fresh, Time};

/// When the addresses were set.
const GIVEN: Time = Time(1_000);
/// When they were removed, which was lost.
const TAKEN: Time = Time(2_000);
/// The failover.
const FENCE: Time = Time(3_000);
/// A time after the failover.
const SINCE: Time = Time(4_000);

/// Users, named like the first part of their address; the address that they end with, and whether it signs them in.
const EXPECTED: [(&str, Option<&str>, bool); 5] = [
    ("gone", None, false),
    ("other", None, false),
    ("unproved", Some("unproved@example.org"), false),
    ("same", Some("same@example.org"), true),
    ("again", Some("again@example.org"), true),
];

/// Runs in realms of its own: lost changes are replayed in their order, and in the reverse order.
pub(super) async fn taken_away(engine: &Shared) -> Done {
    for (name, backwards) in [("forth", false), ("back", true)] {
        let realm = RealmId(name.to_owned());
        commit(engine, realms::ensure(&realm, &format!("http://{name}"), GIVEN)).await?;
        let people = EXPECTED.map(|(name, ..)| {
            let email = Some(format!("{name}@example.org"));
            Change::AddUser(Box::new(User { email, email_verified: true, updated: GIVEN, ..user(name) }))
        });
        does(engine, &realm, &people, GIVEN).await?;
        // While nodes are waited for, one user gets back the address whose removal was lost.
        does(engine, &realm, &[set("again", Some("again@example.org"), true, SINCE)], SINCE).await?;
        // Two sign in by their passwords, which are hashed again.
        for name in ["gone", "other"] {
            let person = User { updated: GIVEN, ..user(name) };
            does(engine, &realm, &[person.rehashed(format!("{name} 1 again"))], SINCE).await?;
        }
        let mut records = lost();
        if backwards {
            records.reverse();
        }
        let fence = Fence { number: 1, at: FENCE, identity: "next".into(), epoch: 1 };
        // Twice, as when an answer was lost.
        for batch in records.iter().flat_map(|record| [record; 2]).flat_map(|one| replay(&realm, one, &fence, SINCE)) {
            commit(engine, batch).await?;
        }
        is_so(engine, &realm).await.map_err(|why| format!("{name}: {why}"))?;
    }
    Ok(())
}

fn set(name: &str, email: Option<&str>, verified: bool, at: Time) -> Change {
    Change::SetEmail { user: name.into(), seen: None, email: email.map(str::to_owned), verified, at }
}

/// The records that nodes have in their journals and the database lacks.
fn lost() -> Vec<Record> {
    let (seen, password) = (Some("gone 1".into()), "gone 2".into());
    let changes = vec![
        set("gone", None, false, TAKEN),
        Change::SetPassword { user: "gone".into(), seen, password, at: TAKEN },
        set("other", Some("second@example.org"), true, TAKEN),
        set("other", Some("third@example.org"), false, TAKEN),
        set("unproved", Some("unproved@example.org"), false, TAKEN),
        set("same", Some("same@example.org"), true, TAKEN),
        set("again", None, false, TAKEN),
    ];
    let record = |(number, change)| Record::of(vec![change], TAKEN, Some(format!("lost {number}")));
    changes.into_iter().enumerate().filter_map(record).collect()
}

async fn does(engine: &Shared, realm: &RealmId, batch: &[Change], at: Time) -> Done {
    commit(engine, changes::batch(realm, batch, at, &Fresh::new([1; 32]))).await
}

async fn is_so(engine: &Shared, realm: &RealmId) -> Done {
    for (name, email, signs_in) in EXPECTED {
        let first = Email::parse(&format!("{name}@example.org")).map_err(|why| format!("{why:?}"))?;
        let (id, key) = (name.into(), first.key());
        let asked = (users::ById(&id), users::ByLogin(Some(key)));
        let (person, by_email) = ask(&**engine, realm, asked).await.map_err(|why| why.0)?;
        let person = person.ok_or_else(|| format!("{name} is gone"))?;
        let found = (person.email.as_deref(), person.email_verified, by_email.is_some());
        same(found, (email, signs_in, signs_in), name)?;
        let password = match name {
            "gone" => "gone 2".to_owned(),
            "other" => "other 1 again".to_owned(),
            name => format!("{name} 1"),
        };
        same(person.password, Some(password), "the password")?;
    }
    Ok(())
}
