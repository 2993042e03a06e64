//! Users, and the names they sign in with.

use super::row::{Columns, every, one};
use super::{Question, read, values, write};
use crate::engine::{Must, Read, Row, Write};
use rules::id::{GroupId, RealmId, UserId};
use rules::people::names::{Email, LoginKey};
use rules::people::user::{Profile, Role, User};
use rules::time::Time;

/// The columns of a user, under the alias `u`.
macro_rules! user_columns {
    () => {
        "u.id, u.username, u.email, u.email_verified, u.profile, u.password, u.role, u.disabled_at, u.created, u.updated"
    };
}
pub(super) use user_columns;

pub(super) fn user(row: &mut Columns) -> Option<User> {
    Some(User {
        id: UserId(row.text()?),
        username: row.text()?,
        email: row.maybe_text()?,
        email_verified: row.flag()?,
        profile: Profile::stored(row.text()?),
        password: row.maybe_text()?,
        role: Role::stored(&row.text()?),
        disabled_at: row.maybe_time()?,
        created: row.time()?,
        updated: row.time()?,
    })
}

/// A user that an outer join may not have found.
pub(super) fn maybe_user(row: &mut Columns) -> Option<Option<User>> {
    if row.is_absent() {
        row.skip(10);
        return Some(None);
    }
    user(row).map(Some)
}

/// A user by id.
pub struct ById<'a>(pub &'a UserId);

impl Question for ById<'_> {
    type Fact = Option<User>;
    fn read(&self, realm: &RealmId) -> Read {
        let sql = concat!("SELECT ", user_columns!(), " FROM users u WHERE u.realm = ? AND u.id = ?");
        read(sql, values![realm, self.0])
    }
    fn fact(&self, rows: Vec<Row>) -> Option<Self::Fact> {
        one(rows, user)
    }
}

/// A user by login name; a name that cannot be a login name finds nobody, at the same cost.
pub struct ByLogin<'a>(pub Option<&'a LoginKey>);

impl Question for ByLogin<'_> {
    type Fact = Option<User>;
    fn read(&self, realm: &RealmId) -> Read {
        let sql = concat!(
            "SELECT ",
            user_columns!(),
            " FROM logins l JOIN users u ON u.realm = l.realm AND u.id = l.user_id WHERE l.realm = ? AND l.name = ?"
        );
        read(sql, values![realm, self.0.map_or("", LoginKey::as_str)])
    }
    fn fact(&self, rows: Vec<Row>) -> Option<Self::Fact> {
        one(rows, user)
    }
}

/// Up to `limit` users after `after`, by id.
pub struct Page<'a> {
    /// The id after which the page starts; empty for the first page.
    pub after: &'a str,
    /// The maximum number of users.
    pub limit: i64,
}

impl Question for Page<'_> {
    type Fact = Vec<User>;
    fn read(&self, realm: &RealmId) -> Read {
        let sql =
            concat!("SELECT ", user_columns!(), " FROM users u WHERE u.realm = ? AND u.id > ? ORDER BY u.id LIMIT ?");
        read(sql, values![realm, self.after, self.limit])
    }
    fn fact(&self, rows: Vec<Row>) -> Option<Self::Fact> {
        every(rows, user)
    }
}

/// Up to `limit` users of a group after `after`, by id.
pub struct InGroup<'a> {
    /// The group.
    pub group: &'a GroupId,
    /// The id after which the page starts; empty for the first page.
    pub after: &'a str,
    /// The maximum number of users.
    pub limit: i64,
}

impl Question for InGroup<'_> {
    type Fact = Vec<User>;
    fn read(&self, realm: &RealmId) -> Read {
        let sql = concat!(
            "SELECT ",
            user_columns!(),
            " FROM members m JOIN users u ON u.realm = m.realm AND u.id = m.user_id \
             WHERE m.realm = ? AND m.group_id = ? AND m.user_id > ? ORDER BY m.user_id LIMIT ?"
        );
        read(sql, values![realm, self.group, self.after, self.limit])
    }
    fn fact(&self, rows: Vec<Row>) -> Option<Self::Fact> {
        every(rows, user)
    }
}

/// The owner, if there is one.
pub struct Owner;

impl Question for Owner {
    type Fact = Option<UserId>;
    fn read(&self, realm: &RealmId) -> Read {
        read("SELECT user_id FROM owners WHERE realm = ?", values![realm])
    }
    fn fact(&self, rows: Vec<Row>) -> Option<Self::Fact> {
        one(rows, |row| row.text().map(UserId))
    }
}

pub(super) fn add(realm: &RealmId, user: &User) -> Vec<Write> {
    let row = values![
        realm,
        &user.id,
        user.username.as_str(),
        user.email.clone(),
        user.email_verified,
        user.profile.text(),
        user.password.clone(),
        user.role.name(),
        user.disabled_at,
        user.created,
        user.updated
    ];
    let sql = "INSERT INTO users (realm, id, username, email, email_verified, profile, password, role, disabled_at, \
               created, updated) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";
    let mut writes = vec![write(sql, row, Must::Touch(1))];
    let verified = user.email.as_deref().filter(|_| user.email_verified).and_then(|email| Email::parse(email).ok());
    let mut names: Vec<String> = LoginKey::of(&user.username).map(|key| key.as_str().to_owned()).into_iter().collect();
    names.extend(verified.map(|email| email.key().as_str().to_owned()));
    names.dedup();
    let sql = "INSERT INTO logins (realm, name, user_id) VALUES (?, ?, ?)";
    writes.extend(names.into_iter().map(|name| write(sql, values![realm, name, &user.id], Must::Touch(1))));
    writes
}

pub(super) fn set_email(
    realm: &RealmId,
    (user, seen): (&UserId, Option<&(Option<String>, bool)>),
    email: Option<&str>,
    (verified, at): (bool, Time),
) -> Vec<Write> {
    let set = match seen {
        None => {
            let sql = "UPDATE users SET email = ?, email_verified = ?, \
                       updated = CASE WHEN updated > ? THEN updated ELSE ? END WHERE realm = ? AND id = ?";
            write(sql, values![email, verified, at, at, realm, user], Must::Touch(1))
        }
        Some((was, proved)) => {
            let sql = "UPDATE users SET email = ?, email_verified = ?, \
                       updated = CASE WHEN updated > ? THEN updated ELSE ? END WHERE realm = ? AND id = ? \
                       AND COALESCE(email, '') = ? AND email_verified = ?";
            let was = was.as_deref().unwrap_or_default();
            write(sql, values![email, verified, at, at, realm, user, was, *proved], Must::Touch(1))
        }
    };
    let mut writes = vec![
        set,
        // Login names with an @ are addresses; usernames cannot contain one.
        write(
            "DELETE FROM logins WHERE realm = ? AND user_id = ? AND name LIKE '%@%'",
            values![realm, user],
            Must::Any,
        ),
    ];
    if let Some(key) = email.filter(|_| verified).and_then(|email| Email::parse(email).ok()) {
        let sql = "INSERT INTO logins (realm, name, user_id) VALUES (?, ?, ?)";
        writes.push(write(sql, values![realm, key.key().as_str(), user], Must::Touch(1)));
    }
    writes
}

/// Removes the user's addresses except `kept`, and the login names that were addresses, except `kept`'s if it is
/// verified; only from an account that has not changed since. Grants nothing, and leaves `updated` alone: other lost
/// changes of the account may be replayed before or after this.
pub(super) fn take_addresses(
    realm: &RealmId,
    user: &UserId,
    (kept, verified): (Option<&str>, bool),
    unless_since: Time,
) -> Vec<Write> {
    let proved = kept.filter(|_| verified);
    let key = proved.and_then(|email| Email::parse(email).ok()).map(|email| email.key().as_str().to_owned());
    let any = |sql: &'static str, args| write(sql, args, Must::Any);
    vec![
        any(
            "UPDATE users SET email_verified = 0 \
             WHERE realm = ? AND id = ? AND updated <= ? AND COALESCE(email, '') <> ?",
            values![realm, user, unless_since, proved.unwrap_or("")],
        ),
        any(
            "UPDATE users SET email = NULL WHERE realm = ? AND id = ? AND updated <= ? AND email <> ?",
            values![realm, user, unless_since, kept.unwrap_or("")],
        ),
        any(
            "DELETE FROM logins WHERE realm = ? AND user_id = ? AND name LIKE '%@%' AND name <> ? \
             AND EXISTS (SELECT 1 FROM users WHERE realm = ? AND id = ? AND updated <= ?)",
            values![realm, user, key.unwrap_or_default(), realm, user, unless_since],
        ),
    ]
}

/// Removes a user and what is left of their data ([`super::living::remove`]). The user goes first: a batch that grants them something looks for them and waits.
pub(super) fn remove(realm: &RealmId, user: &UserId) -> Vec<Write> {
    let theirs = [
        "DELETE FROM logins WHERE realm = ? AND user_id = ?",
        "DELETE FROM members WHERE realm = ? AND user_id = ?",
        "DELETE FROM consents WHERE realm = ? AND user_id = ?",
        "DELETE FROM devices WHERE realm = ? AND user_id = ?",
        "DELETE FROM families WHERE realm = ? AND user_id = ?",
        "DELETE FROM sessions WHERE realm = ? AND user_id = ?",
        "DELETE FROM owners WHERE realm = ? AND user_id = ?",
    ];
    let mut writes = vec![write("DELETE FROM users WHERE realm = ? AND id = ?", values![realm, user], Must::Touch(1))];
    writes.extend(theirs.map(|sql| write(sql, values![realm, user], Must::Any)));
    writes
}

pub(super) fn claim_owner(realm: &RealmId, user: &UserId) -> Write {
    write("INSERT INTO owners (realm, user_id) VALUES (?, ?)", values![realm, user], Must::Touch(1))
}

/// Replaces a stored password, unless it was replaced since the caller read it. A change that is made meanwhile may be
/// later than `at`: the account's time only grows.
pub(super) fn set_password(realm: &RealmId, user: &UserId, (seen, password): (Option<&str>, &str), at: Time) -> Write {
    let sql = "UPDATE users SET password = ?, updated = CASE WHEN updated > ? THEN updated ELSE ? END \
               WHERE realm = ? AND id = ? AND COALESCE(password, '') = ?";
    write(sql, values![password, at, at, realm, user, seen.unwrap_or("")], Must::Touch(1))
}

pub(super) fn set_profile(realm: &RealmId, user: &UserId, (seen, profile): (&Profile, &Profile), at: Time) -> Write {
    let sql = "UPDATE users SET profile = ?, updated = CASE WHEN updated > ? THEN updated ELSE ? END \
               WHERE realm = ? AND id = ? AND profile = ?";
    write(sql, values![profile.text(), at, at, realm, user, seen.text()], Must::Touch(1))
}

pub(super) fn set_disabled(realm: &RealmId, user: &UserId, disabled_at: Option<Time>, at: Time) -> Write {
    let sql = "UPDATE users SET disabled_at = ?, updated = CASE WHEN updated > ? THEN updated ELSE ? END \
               WHERE realm = ? AND id = ?";
    write(sql, values![disabled_at, at, at, realm, user], Must::Touch(1))
}
