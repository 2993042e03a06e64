//! A user.

use super::forms;
use super::names::is_plain;
use crate::decision::Change;
use crate::id::UserId;
use crate::secret::PasswordHash;
use crate::time::{Span, Time};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A user's role in the realm itself.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Signs in to applications.
    Member,
    /// Reserved for later: today an admin may do no more than a member.
    Admin,
    /// The first account; there is exactly one, which is neither disabled nor removed.
    Owner,
    /// A role that only a later version knows, by its name, as there may be while nodes are upgraded: here it may do no
    /// more than a member, and it stays what it is.
    #[serde(skip)]
    Later(Box<str>),
}

impl Role {
    /// The role's name, as the command line and the database write it.
    pub fn name(&self) -> &str {
        match self {
            Role::Member => "member",
            Role::Admin => "admin",
            Role::Owner => "owner",
            Role::Later(name) => name,
        }
    }
    /// Returns the role of that name, if this version knows one.
    pub fn parse(name: &str) -> Option<Self> {
        [Role::Member, Role::Admin, Role::Owner].into_iter().find(|role| role.name() == name)
    }
    /// Returns the role that this version or a later one stores under that name.
    pub fn stored(name: &str) -> Self {
        Role::parse(name).unwrap_or_else(|| Role::Later(name.into()))
    }
}

/// A user as stored.
#[derive(Clone)]
pub struct User {
    /// The `sub`.
    pub id: UserId,
    /// The name that they sign in with, as typed at sign-up.
    pub username: String,
    /// Their address, if they gave one.
    pub email: Option<String>,
    /// Whether it was proved that the address is theirs.
    pub email_verified: bool,
    /// Standard claims (OpenID Connect Core §5.1) other than those above, as a JSON object.
    pub profile: Profile,
    /// The stored form of their password, if they have one.
    pub password: Option<String>,
    /// What they may do to the realm.
    pub role: Role,
    /// Since when they may not sign in.
    pub disabled_at: Option<Time>,
    /// When the account was created.
    pub created: Time,
    /// When anything of it last changed (`updated_at`).
    pub updated: Time,
}

impl std::fmt::Debug for User {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("User").field("id", &self.id).finish_non_exhaustive()
    }
}

/// Standard claims as stored text, parsed only when a claim is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Profile(String);

/// The longest claim, in bytes.
pub const LONGEST_CLAIM: usize = 1000;

/// Claims that a user or an operator may set (OpenID Connect Core §5.1). Everything else in a token is for the server
/// alone to say.
pub const SETTABLE: [&str; 14] = [
    "name",
    "given_name",
    "family_name",
    "middle_name",
    "nickname",
    "profile",
    "picture",
    "website",
    "gender",
    "birthdate",
    "zoneinfo",
    "locale",
    "phone_number",
    "address",
];

/// The claims among them that are names of the user.
const NAMES: [&str; 5] = ["name", "given_name", "family_name", "middle_name", "nickname"];

impl Profile {
    /// A profile without claims.
    pub fn empty() -> Self {
        Profile("{}".into())
    }
    /// Takes the text as read from the database.
    pub fn stored(text: String) -> Self {
        Profile(text)
    }
    /// Returns the text as written to the database.
    pub fn text(&self) -> &str {
        &self.0
    }
    /// Returns the claims.
    pub fn claims(&self) -> Map<String, Value> {
        serde_json::from_str(&self.0).unwrap_or_default()
    }
    /// Returns those of `claims` that differ in another profile.
    pub fn changed<'a>(&self, other: &Profile, claims: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
        let (before, after) = (self.claims(), other.claims());
        claims.filter(|claim| before.get(*claim) != after.get(*claim)).collect()
    }
    /// Returns one claim, if it is text.
    pub fn get(&self, claim: &str) -> Option<String> {
        self.claims().get(claim).and_then(Value::as_str).map(str::to_owned)
    }
    /// Returns a copy with `claim` set to `value`, or removed when `value` is empty. Fails when the claim is not
    /// [`SETTABLE`], is longer than [`LONGEST_CLAIM`], is [not plain](is_plain) or lacks its form in OpenID Connect
    /// Core §5.1. A value that is there already need not be plain or of that form.
    pub fn with(&self, claim: &str, value: &str) -> Result<Self, &'static str> {
        if !SETTABLE.contains(&claim) {
            return Err("this claim cannot be set: only email and those of OpenID Connect Core 5.1 can, without sub, \
                        updated_at and the _verified ones");
        }
        let unfit = "a claim must be at most 1,000 bytes of printable text";
        if value.len() > LONGEST_CLAIM || value.chars().any(char::is_control) {
            return Err(unfit);
        }
        let mut claims = self.claims();
        if value.is_empty() {
            claims.remove(claim);
        } else if claims.get(claim).and_then(Value::as_str) != Some(value) {
            if !is_plain(value) {
                return Err(unfit);
            }
            claims.insert(claim.into(), forms::read(claim, value)?);
        }
        Ok(Profile(Value::Object(claims).to_string()))
    }
}

impl User {
    /// Returns a user who is new at `at`, and of whom nothing else is known yet.
    pub fn new(id: UserId, username: impl Into<String>, at: Time) -> Self {
        User {
            id,
            username: username.into(),
            email: None,
            email_verified: false,
            profile: Profile::empty(),
            password: None,
            role: Role::Member,
            disabled_at: None,
            created: at,
            updated: at,
        }
    }

    /// Returns the time of a change that is made now: later than every change before, whatever the nodes' clocks say.
    pub fn next_change(&self, now: Time) -> Time {
        now.max(self.updated + Span(1))
    }
    /// Returns the change that stores the password that they have as another `hash`. Nothing of the account changes,
    /// and so the time of its last change stays: if a failover has lost a change of the password, the account must not
    /// look younger than that.
    pub fn rehashed(&self, hash: String) -> Change {
        let seen = self.password.clone().map(PasswordHash::from);
        Change::SetPassword { user: self.id.clone(), seen, password: hash.into(), at: self.updated }
    }
    /// Whether they may sign in and what was issued for them may be used.
    pub fn is_enabled(&self) -> bool {
        self.disabled_at.is_none()
    }
    /// Returns every name that they go by, of which no password of theirs may be made.
    pub fn names(&self) -> Vec<String> {
        let claims = self.profile.claims();
        let told = NAMES.iter().filter_map(|claim| claims.get(*claim)?.as_str().map(str::to_owned));
        [self.username.clone()].into_iter().chain(self.email.clone()).chain(told).collect()
    }
    /// Returns what to call them on a page.
    pub fn display_name(&self) -> String {
        self.profile.get("name").unwrap_or_else(|| self.username.clone())
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A user of that name and id, without a password.
    pub fn person(name: &str) -> User {
        User::new(name.into(), name, Time(0))
    }

    #[test]
    fn reserved_claims_cannot_be_set() {
        for claim in ["iss", "sub", "aud", "exp", "email_verified", "groups", "acr", "sid", "email"] {
            assert!(Profile::empty().with(claim, "x").is_err(), "{claim}");
        }
    }

    #[test]
    fn a_claim_is_text_that_looks_like_what_it_is() {
        // Red without `is_plain` in Profile::with.
        for bad in [" ", "\u{200B}", "\u{202E}ada", "a\nb", "a\u{2028}b"] {
            assert!(Profile::empty().with("name", bad).is_err(), "{bad:?}");
        }
        let old = Profile::stored("{\"name\":\"\u{202E}ada\"}".to_owned());
        assert_eq!(old.with("name", "\u{202E}ada"), Ok(old.clone()), "what is there already");
    }

    #[test]
    fn what_is_there_already_may_stay() {
        let old = Profile::stored(r#"{"website":"foo"}"#.to_owned());
        assert_eq!(old.with("website", "foo"), Ok(old.clone()));
        assert!(old.with("website", "bar").is_err());
    }

    #[test]
    fn an_empty_value_removes_a_claim() {
        let named = Profile::empty().with("name", "Ada").expect("settable");
        assert_eq!(named.get("name").as_deref(), Some("Ada"));
        assert_eq!(named.with("name", "").expect("settable"), Profile::empty());
    }
}
