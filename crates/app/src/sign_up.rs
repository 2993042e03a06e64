//! New people: what they typed, judged; and self sign-up.

use crate::browser::Browser;
use crate::flow::Flow;
use crate::sign_in::{Next, SignedIn};
use crate::{App, Fault, entropy};
use rules::decision::Change;
use rules::events::{Event, Kind};
use rules::login::password::{Acceptable, Password, Policy, Weak, judge};
use rules::login::session::{Entry, Method, enter};
use rules::login::throttle::{self, address_key};
use rules::people::names::{BadName, Email, LoginKey, Username};
use rules::people::user::Profile;
use rules::people::{Role, User};
use rules::{Decision, Fresh, Span, Time};
use store::tables::counters;
use store::tables::users::ByLogin;

/// Accounts that one address may make in one go; after that one every [`SIGN_UP_LEAK`].
const SIGN_UPS_AT_ONCE: i64 = 500;
/// How long it takes until one sign-up of an address is forgotten.
const SIGN_UP_LEAK: Span = Span::seconds(1);

/// What a new person typed.
pub struct NewPerson<'a> {
    /// The name to sign in with.
    pub username: &'a str,
    /// An address, or nothing.
    pub email: &'a str,
    /// The password.
    pub password: &'a [u8],
}

/// What will not do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Problem {
    /// The username cannot be one.
    Username(BadName),
    /// The address cannot be one.
    Email(BadName),
    /// The password is too weak.
    Password(Weak),
    /// Somebody has that name.
    NameTaken,
    /// Too many accounts were made from that address: wait so long.
    Wait(Span),
}

/// A person who could be made: everything judged, the password hashed.
pub(crate) struct Judged {
    username: Username,
    email: Option<Email>,
    verified: bool,
    role: Role,
    password: String,
}

impl Judged {
    pub(crate) fn by_name(&self) -> ByLogin<'_> {
        ByLogin(Some(self.username.key()))
    }
    /// An address counts as proved when an operator entered it.
    pub(crate) fn verified(self, verified: bool) -> Self {
        Judged { verified: verified && self.email.is_some(), ..self }
    }
    pub(crate) fn user(&self, now: Time, fresh: &Fresh) -> User {
        User {
            id: fresh.user(),
            username: self.username.as_str().to_owned(),
            email: self.email.as_ref().map(|email| email.as_str().to_owned()),
            email_verified: self.verified,
            profile: Profile::empty(),
            password: Some(self.password.clone()),
            role: self.role,
            disabled_at: None,
            created: now,
            updated: now,
        }
    }
}

impl App {
    /// Judges what was typed, all of it at once, and hashes the password.
    pub(crate) async fn new_person(
        &self,
        typed: &NewPerson<'_>,
        role: Role,
        browser: &Browser,
    ) -> Result<Result<Judged, Vec<Problem>>, Fault> {
        let mut problems = Vec::new();
        let username = Username::parse(typed.username).map_err(|why| problems.push(Problem::Username(why))).ok();
        let email = match typed.email.trim() {
            "" => None,
            text => Email::parse(text).map_err(|why| problems.push(Problem::Email(why))).ok(),
        };
        let local = typed.email.split('@').next().unwrap_or("");
        let password = self
            .acceptable(typed.password, &[typed.username, typed.email, local])
            .map_err(|why| problems.push(Problem::Password(why)))
            .ok();
        let (Some(username), Some(password), true) = (username, password, problems.is_empty()) else {
            return Ok(Err(problems));
        };
        if self.ask(ByLogin(Some(username.key()))).await?.is_some() {
            return Ok(Err(vec![Problem::NameTaken]));
        }
        let password = self.hash_new(&password, browser).await?;
        Ok(Ok(Judged { username, email, verified: false, role, password }))
    }

    /// Whether a new password will do for somebody of these names.
    pub(crate) fn acceptable(&self, password: &[u8], names: &[&str]) -> Result<Acceptable, Weak> {
        let names: Vec<&str> = names.iter().copied().filter(|name| !name.is_empty()).collect();
        let policy = Policy { min_length: self.realm.settings.password_min, names: &names };
        judge(Password::read(password)?, &policy)
    }

    /// Hashes a new password with fresh salt.
    pub(crate) async fn hash_new(&self, password: &Acceptable, browser: &Browser) -> Result<String, Fault> {
        let seed = entropy::bytes()?;
        let mut salt = [0; 16];
        salt.copy_from_slice(&seed[..16]);
        Ok(self.hasher.hash(&self.fair_key(browser), password.as_bytes(), salt).await?)
    }

    /// Self sign-up: an account and a session in one batch. Whether a username is taken may be told; an address that
    /// its owner did not prove reserves nothing and is no login name.
    pub async fn sign_up(
        &self,
        flow: Flow,
        typed: NewPerson<'_>,
        browser: &Browser,
    ) -> Result<Result<SignedIn, Vec<Problem>>, Fault> {
        let address = address_key(&self.keyring.lookup, &format!("sign-up:{}", browser.address_key));
        let policy = &self.realm.settings.throttle;
        let seen = self.ask(counters::Of(address)).await?;
        let slow = throttle::Policy { leak: SIGN_UP_LEAK, ..*policy };
        if let Err(wait) = slow.leaky_admits(seen, SIGN_UPS_AT_ONCE, self.clock.now()) {
            return Ok(Err(vec![Problem::Wait(wait)]));
        }
        let person = match self.new_person(&typed, Role::Member, browser).await? {
            Ok(person) => person,
            Err(problems) => return Ok(Err(problems)),
        };
        let person = &person;
        let made = self
            .settle(|now, fresh| async move {
                if self.ask(person.by_name()).await?.is_some() {
                    return Ok(Decision::refuse(vec![Problem::NameTaken]));
                }
                let user = person.user(now, &fresh);
                let before = self.session(browser).await?;
                let before = before.as_ref().map(|(session, _)| session);
                let entry = Entry { user: &user, method: Method::Password, before, origin: &browser.origin };
                let entered = enter(&entry, &self.realm.settings, now, &fresh);
                let event = Event::new(Kind::UserAdded, now).user(&user.id).address(&browser.origin.address);
                let made = [
                    Change::AddUser(Box::new(user.clone())),
                    Change::Record(event.detail("by", "sign-up")),
                    Change::CountFailure { key: address, at: now, leak: SIGN_UP_LEAK },
                ];
                let changes = made.into_iter().chain(entered.changes).collect();
                let reply = entered.reply.map(|started| (started, user)).map_err(|_| vec![Problem::NameTaken]);
                Ok(Decision { changes, reply })
            })
            .await?;
        Ok(match made {
            Err(problems) => Err(problems),
            Ok((started, user)) => {
                let device = self.remember_browser(browser, &user)?;
                Ok(SignedIn { started, device, user, next: Next::GoOn(flow) })
            }
        })
    }

    /// Whether nobody signs in with that name yet.
    pub(crate) async fn is_free(&self, key: &LoginKey) -> Result<bool, Fault> {
        Ok(self.ask(ByLogin(Some(key))).await?.is_none())
    }
}
