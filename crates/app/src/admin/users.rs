//! Managing people.

use super::{Ground, Refused};
use crate::browser::Browser;
use crate::sign_up::{Judged, NewPerson, Problem, names, taken};
use crate::{App, Fault, entropy};
use hasher::Stored;
use hasher::import::{self, Imported};
use rules::decision::Change;
use rules::events::{Event, Kind};
use rules::id::UserId;
use rules::login::password::Weak;
use rules::login::throttle::account_key;
use rules::people::names::{BadName, Email, LoginKey};
use rules::people::{Role, User};
use rules::secret::PasswordHash;
use rules::{Decision, Time};
use serde_json::{Map, Value, json};
use store::tables::users::{ById, ByLogin, Owner, Page};

/// How many people a page of a list has.
pub const PAGE: i64 = 500;

impl App {
    /// Makes an account. The address counts as verified: an operator entered it.
    pub async fn add_user(&self, typed: &NewPerson, role: Role) -> Result<Result<User, Refused>, Fault> {
        match self.new_person(typed, role.clone(), &Browser::default()).await? {
            Ok(person) => self.add(person.verified(true), role).await,
            Err(problems) => Ok(Err(refused(problems))),
        }
    }

    /// Makes an account for somebody whose password another system hashed: `hash` is what that system stored, as text
    /// that names its format or as the JSON of Keycloak, Auth0 or FusionAuth. The address counts as verified.
    pub async fn import_user(
        &self,
        (username, email): (&str, &str),
        hash: &str,
        role: Role,
    ) -> Result<Result<User, Refused>, Fault> {
        let hash = match import::any(hash) {
            Err(error) => return Ok(Err(Refused::new(format!("the password hash: {error}")))),
            Ok(Imported::Stored(stored)) if is_bound(&stored) => {
                return Ok(Err(Refused::new("the password hash is bound to another account: a new one cannot use it")));
            }
            Ok(Imported::Stored(stored)) => stored.to_string(),
            Ok(Imported::Fast(fast)) => self.wrap(&fast).await?,
        };
        let person = match Judged::imported(entropy::fresh()?.user(), (username, email), hash.clone(), role.clone()) {
            Ok(person) => person,
            Err(problems) => return Ok(Err(refused(problems))),
        };
        self.expecting(&hash, self.add(person.verified(true), role)).await
    }

    async fn add(&self, person: Judged, role: Role) -> Result<Result<User, Refused>, Fault> {
        let (person, role) = (&person, &role);
        self.settle(|now, _| async move {
            let (owner, name, email) = self.ask((Owner, person.by_name(), person.by_email())).await?;
            if *role == Role::Owner && owner.is_some() {
                return Ok(Decision::refuse(Refused::new("there is an owner already")));
            }
            let taken = taken(name.as_ref(), email.as_ref());
            if !taken.is_empty() {
                return Ok(Decision::refuse(refused(taken)));
            }
            let user = person.user(now);
            let mut event = Event::new(Kind::UserAdded, now).user(&user.id);
            if *role != Role::Member {
                event = event.detail("role", role.name());
            }
            let claim = (*role == Role::Owner).then(|| Change::ClaimOwner(user.id.clone()));
            Ok(Decision::accept(user.clone())
                .with(claim)
                .and(Change::AddUser(Box::new(user)))
                .and(Change::Record(event)))
        })
        .await
    }

    /// Returns a user by id, or by username or verified address. Where it is the id of one and the name of another, as
    /// could be before names of that form were refused, it does not guess which is meant.
    pub async fn find_user(&self, name: &str) -> Result<Result<Option<User>, Refused>, Fault> {
        let (id, key) = (UserId::from(name), LoginKey::of(name));
        Ok(match self.ask((ById(&id), ByLogin(key.as_ref()))).await? {
            (Some(one), Some(other)) if one.id != other.id => Err(Refused::new(format!(
                "{name} is the id of {} and the username of {}: say {} or {}",
                one.username, other.id, one.username, other.id
            ))),
            (one, other) => Ok(one.or(other)),
        })
    }

    /// Returns the user who has that username already. Names that are not acceptable for a new account are refused as
    /// they are there, and so is an address with which another user signs in.
    pub async fn user_called(&self, username: &str, email: &str) -> Result<Result<Option<User>, Refused>, Fault> {
        let mut problems = Vec::new();
        let names = names((username, email), &mut problems);
        let Some((name, email)) = names.filter(|_| problems.is_empty()) else {
            return Ok(Err(refused(problems)));
        };
        let asked = (ByLogin(Some(name.key())), ByLogin(email.as_ref().map(Email::key)));
        let (user, by_email) = self.ask(asked).await?;
        let somebody_else = by_email.filter(|other| user.as_ref().is_none_or(|user| user.id != other.id));
        Ok(match somebody_else {
            Some(_) => Err(refused(vec![Problem::EmailTaken])),
            None => Ok(user),
        })
    }

    /// Returns a user's name, by id; `None` if they were removed.
    pub async fn username(&self, id: &UserId) -> Result<Option<String>, Fault> {
        Ok(self.ask(ById(id)).await?.map(|user| user.username))
    }

    /// Returns a page of people, by id.
    pub async fn users(&self, after: &str) -> Result<Vec<User>, Fault> {
        self.ask(Page { after, limit: PAGE }).await
    }

    /// Whether anybody has an account. Anonymous requests ask this.
    pub async fn is_inhabited(&self) -> Result<bool, Fault> {
        Ok(!self.ask(Page { after: "", limit: 1 }).await?.is_empty())
    }

    /// Disables or enables an account, unless it is so already, and returns it as it is then. Disabling ends all that
    /// the account holds: it takes effect at once and by itself, and what is ended after it may be a lot. What is left
    /// of that, where it was interrupted, ends when the account is disabled once more, or before it is enabled.
    pub async fn set_user_enabled(&self, user: &User, enabled: bool) -> Result<Result<User, Refused>, Fault> {
        if user.role == Role::Owner && !enabled {
            return Ok(Err(Refused::new("the owner cannot be disabled")));
        }
        if !enabled && let Err(refused) = self.disable(user).await? {
            return Ok(Err(refused));
        }
        let ended = self.settle(|now, _| async move {
            let Some(user) = self.ask(ById(&user.id)).await? else {
                return Ok(Decision::refuse(gone()));
            };
            // If somebody enabled it meanwhile, that ended everything.
            if user.is_enabled() {
                return Ok(Decision::accept(user));
            }
            let ends = self.ends_all_but(&user.id, None, now).await?;
            if !enabled {
                return Ok(Decision::accept(user).with(ends));
            }
            let enable = Change::SetDisabled { user: user.id.clone(), disabled_at: None, at: now };
            let event = Change::Record(Event::new(Kind::UserEnabled, now).user(&user.id));
            let user = User { disabled_at: None, updated: user.updated.max(now), ..user };
            Ok(Decision::accept(user).with(ends).and(enable).and(event))
        });
        ended.await.map_err(|fault| if enabled { fault } else { half_done(fault) })
    }

    /// From here on, nothing that the account holds is believed.
    async fn disable(&self, user: &User) -> Result<Result<(), Refused>, Fault> {
        self.settle(|now, _| async move {
            let Some(user) = self.ask(ById(&user.id)).await? else {
                return Ok(Decision::refuse(gone()));
            };
            if !user.is_enabled() {
                return Ok(Decision::accept(()));
            }
            let set = Change::SetDisabled { user: user.id.clone(), disabled_at: Some(now), at: now };
            Ok(Decision::accept(()).and(set).and(Change::Record(Event::new(Kind::UserDisabled, now).user(&user.id))))
        })
        .await
    }

    /// Removes an account and all that belongs to it. The audit log keeps its id, and nothing that says who it was.
    pub async fn remove_user(&self, user: &User) -> Result<Result<(), Refused>, Fault> {
        if user.role == Role::Owner {
            return Ok(Err(Refused::new("the owner cannot be removed")));
        }
        self.empty(&user.id).await?;
        self.settle(|now, _| async move {
            let Some(user) = self.ask(ById(&user.id)).await? else {
                return Ok(Decision::refuse(gone()));
            };
            let event = Event::new(Kind::UserRemoved, now).user(&user.id);
            Ok(Decision::accept(()).and(Change::RemoveUser(user.id.clone())).and(Change::Record(event)))
        })
        .await
    }

    /// Sets a password, ends all that the account holds, and forgives failed attempts.
    pub async fn set_password(&self, user: &User, password: &[u8]) -> Result<Result<User, Refused>, Fault> {
        let password = match self.acceptable(password, &user.names()) {
            Ok(password) => password,
            Err(why) => return Ok(Err(Refused::new(weakness(why)))),
        };
        let hashed = &self.hash_new(&user.id, &password, &Browser::default()).await?;
        self.settle(|now, _| async move {
            let Some(user) = self.ask(ById(&user.id)).await? else {
                return Ok(Decision::refuse(gone()));
            };
            let change = Change::SetPassword {
                user: user.id.clone(),
                seen: user.password.clone().map(PasswordHash::from),
                password: hashed.as_str().into(),
                at: user.next_change(now),
            };
            let event = Event::new(Kind::PasswordChanged, now).user(&user.id).detail("ended", "all");
            let forget = Change::ForgetAttempts { key: account_key(&self.keyring.lookup, user.id.as_str(), None) };
            let ends = self.ends_all_but(&user.id, None, now).await?;
            let updated = user.next_change(now);
            let user = User { password: Some(hashed.clone()), updated, ..user };
            Ok(Decision::accept(user).and(change).and(forget).with(ends).and(Change::Record(event)))
        })
        .await
    }

    /// Sets standard claims of a user; `email` too, which counts as verified. What is so already is not recorded again.
    /// Returns the user as they are now, and what each claim that changed was and is.
    pub async fn set_claims(
        &self,
        user: &User,
        claims: &[(&str, &str)],
    ) -> Result<Result<(User, Map<String, Value>), Refused>, Fault> {
        self.settle(|now, _| async move {
            let Some(user) = self.ask(ById(&user.id)).await? else {
                return Ok(Decision::refuse(gone()));
            };
            let edited = match with_claims(&user, claims) {
                Ok(edited) => edited,
                Err(why) => return Ok(Decision::refuse(why)),
            };
            let changed = changed(&user, &edited, claims);
            if changed.is_empty() {
                return Ok(Decision::accept((user, Map::new())));
            }
            let address = LoginKey::of(edited.email.as_deref().unwrap_or(""));
            if changed.contains(&"email")
                && address.is_some()
                && self.ask(ByLogin(address.as_ref())).await?.is_some_and(|other| other.id != user.id)
            {
                return Ok(Decision::refuse(Refused::new("somebody signs in with that e-mail address")));
            }
            let event = Event::new(Kind::UserChanged, now).user(&user.id).detail("changed", changed.join(" "));
            let told = differences(&user, &edited, &changed);
            let changes = edits(user, edited.clone(), &changed, now);
            let edited = User { updated: edited.updated.max(now), ..edited };
            Ok(Decision::accept((edited, told)).with(changes).and(Change::Record(event)))
        })
        .await
    }
}

fn gone() -> Refused {
    Refused::missing("no such user")
}

/// Says how far a disabling came that could not end all that the account held. Of the rest nothing is in doubt that
/// disabling it again would not end.
fn half_done(fault: Fault) -> Fault {
    match fault {
        Fault::Unavailable(why) | Fault::InDoubt(why) | Fault::Contended(why) => Fault::Unavailable(format!(
            "{why}; the account is disabled, but not all that it held has been ended yet: disable it again"
        )),
        other => other,
    }
}

/// Returns a user with new claims.
fn with_claims(user: &User, claims: &[(&str, &str)]) -> Result<User, Refused> {
    let mut edited = user.clone();
    for (claim, value) in claims {
        if *claim == "email" {
            let given = Some(*value).filter(|value| !value.is_empty()).map(Email::parse).transpose();
            let email = given.map_err(|_| Refused::new("email: not an e-mail address"))?;
            edited.email_verified = email.is_some();
            edited.email = email.map(|email| email.as_str().to_owned());
            continue;
        }
        edited.profile = edited.profile.with(claim, value).map_err(|why| Refused::new(format!("{claim}: {why}")))?;
    }
    Ok(edited)
}

/// Returns the names of those `claims` that differ: the log is told no more of a person.
fn changed<'a>(user: &User, edited: &User, claims: &[(&'a str, &str)]) -> Vec<&'a str> {
    let asked = || claims.iter().map(|(claim, _)| *claim);
    let mut changed = user.profile.changed(&edited.profile, asked());
    let is_other = (&user.email, user.email_verified) != (&edited.email, edited.email_verified);
    changed.extend(asked().find(|claim| *claim == "email" && is_other));
    changed
}

/// Returns what each of the `changed` claims was and is, for the operator alone; what there is not, is null.
fn differences(user: &User, edited: &User, changed: &[&str]) -> Map<String, Value> {
    let value = |of: &User, claim: &str| match claim {
        "email" => json!(of.email),
        "email_verified" => json!(of.email_verified),
        claim => of.profile.claims().remove(claim).unwrap_or_default(),
    };
    let verified = changed.contains(&"email").then_some("email_verified");
    let claims = changed.iter().copied().chain(verified);
    let pairs = claims.map(|claim| (claim, value(user, claim), value(edited, claim))).filter(|(_, was, is)| was != is);
    pairs.map(|(claim, was, is)| (claim.to_owned(), json!({ "was": was, "is": is }))).collect()
}

/// Returns what has to be written so that `user` becomes `edited`.
fn edits(user: User, edited: User, changed: &[&str], at: Time) -> Vec<Change> {
    let email = changed.contains(&"email").then(|| Change::SetEmail {
        user: user.id.clone(),
        seen: Some((user.email, user.email_verified)),
        email: edited.email,
        verified: edited.email_verified,
        at,
    });
    let profile = changed.iter().any(|claim| *claim != "email").then_some(Change::SetProfile {
        user: user.id,
        seen: user.profile,
        profile: edited.profile,
        at,
    });
    email.into_iter().chain(profile).collect()
}

/// Whether a hash is of use to one account alone: a new account has an id that nothing was bound to.
fn is_bound(hash: &Stored) -> bool {
    hash.keys().any(|(role, _)| role == hasher::Role::Binding)
}

fn refused(problems: Vec<Problem>) -> Refused {
    let is_taken = |problem: &Problem| matches!(problem, Problem::NameTaken | Problem::EmailTaken);
    let ground = if problems.iter().all(is_taken) { Ground::Taken } else { Ground::Rule };
    Refused { why: problems.into_iter().map(sentence).collect::<Vec<_>>().join("; "), ground }
}

/// Says what is wrong, for an operator.
pub fn sentence(problem: Problem) -> String {
    match problem {
        Problem::Username(BadName::Form | BadName::Id) => {
            "the username must not begin with a hyphen nor have the form of an id (22 letters, digits, - and _)".into()
        }
        Problem::Username(_) => "the username must be 1 to 64 printable characters without @ and spaces".into(),
        Problem::Email(_) => "the e-mail address is not valid".into(),
        Problem::NameTaken => "somebody has that username".into(),
        Problem::EmailTaken => "somebody signs in with that e-mail address".into(),
        Problem::Password(weak) => weakness(weak),
    }
}

/// Says why a password is refused, for an operator.
pub fn weakness(weak: Weak) -> String {
    match weak {
        Weak::TooShort { min } => format!("the password needs at least {min} characters"),
        Weak::TooLong => "the password is longer than 1,024 bytes".into(),
        Weak::Common => "the password is one of the most common ones".into(),
        Weak::Personal => "the password is made of the person's own name, or of Portiere's".into(),
        Weak::NotText => "the password is not UTF-8 text".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verifier_of_another_account_is_told_from_a_hash() {
        let read = |hash: &str| match import::any(hash) {
            Ok(Imported::Stored(stored)) => is_bound(&stored),
            _ => panic!("{hash}"),
        };
        let rest = "$c2l4dGVlbiBieXRlIHNsdA$xCx6TzAjWZx7FnQVoBzb/MoX5N9ILT3QY0qhOXwGUj4";
        assert!(read(&format!("$pv1$m=64,t=2,p=1,keyid=azE,bindid=YjE{rest}")));
        assert!(!read(&format!("$argon2id$v=19$m=64,t=2,p=1,keyid=azE{rest}")));
    }
}
