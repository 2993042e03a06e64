//! New people: judging what they typed, and self sign-up.

use crate::browser::Browser;
use crate::flow::Flow;
use crate::pledge::{Pledge, to_the_end};
use crate::sign_in::{Next, SignedIn};
use crate::stakes::Stake;
use crate::tally::Entry;
use crate::{App, Fault, entropy};
use rules::events::Rejection;
use rules::id::UserId;
use rules::login::password::Weak;
use rules::login::session::Origin;
use rules::login::sign_up;
use rules::login::throttle::{Seen, Shared};
use rules::people::names::{BadName, Email, Username};
use rules::people::{Role, User};
use rules::{Span, Time};
use store::tables::counters;
use store::tables::users::ByLogin;
use zeroize::Zeroizing;

/// What a new person typed.
pub struct NewPerson {
    pub(crate) username: String,
    pub(crate) email: String,
    pub(crate) password: Zeroizing<Vec<u8>>,
}

impl NewPerson {
    /// Takes the name to sign in with, an address or nothing, and a password.
    pub fn new(username: &str, email: &str, password: &[u8]) -> Self {
        let password = Zeroizing::new(password.to_vec());
        NewPerson { username: username.to_owned(), email: email.to_owned(), password }
    }
}

/// What is wrong with what was typed.
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
    /// Somebody signs in with that address.
    EmailTaken,
}

/// Why no account was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotMade {
    /// Too many were made from that address: wait this long. Nothing that was typed was looked at.
    Wait(Span),
    /// Something that was typed is not acceptable.
    Problems(Vec<Problem>),
}

/// A person who could be made: everything judged, the password hashed.
pub(crate) struct Judged {
    /// Known before the password is hashed, which may be bound to it.
    id: UserId,
    username: Username,
    email: Option<Email>,
    verified: bool,
    role: Role,
    password: String,
}

impl Judged {
    /// A person whose password was hashed elsewhere: the names are judged, the hash is taken as it is.
    pub(crate) fn imported(
        id: UserId,
        (username, email): (&str, &str),
        password: String,
        role: Role,
    ) -> Result<Self, Vec<Problem>> {
        let mut problems = Vec::new();
        let names = names((username, email), &mut problems);
        let person = names.map(|(username, email)| Judged { id, username, email, verified: false, role, password });
        person.filter(|_| problems.is_empty()).ok_or(problems)
    }
    pub(crate) fn by_name(&self) -> ByLogin<'_> {
        ByLogin(Some(self.username.key()))
    }
    /// An address that nobody proved is no login name, and reserves nothing.
    pub(crate) fn by_email(&self) -> ByLogin<'_> {
        ByLogin(self.email.as_ref().filter(|_| self.verified).map(Email::key))
    }
    /// An address counts as proved when an operator entered it.
    pub(crate) fn verified(self, verified: bool) -> Self {
        Judged { verified: verified && self.email.is_some(), ..self }
    }
    pub(crate) fn user(&self, now: Time) -> User {
        User {
            email: self.email.as_ref().map(|email| email.as_str().to_owned()),
            email_verified: self.verified,
            password: Some(self.password.clone()),
            role: self.role.clone(),
            ..User::new(self.id.clone(), self.username.as_str(), now)
        }
    }
}

impl App {
    /// Judges what was typed, all of it at once, and hashes the password.
    pub(crate) async fn new_person(
        &self,
        typed: &NewPerson,
        role: Role,
        browser: &Browser,
    ) -> Result<Result<Judged, Vec<Problem>>, Fault> {
        let mut problems = Vec::new();
        let names = names((&typed.username, &typed.email), &mut problems);
        let password = self
            .acceptable(&typed.password, &[&typed.username, &typed.email])
            .map_err(|why| problems.push(Problem::Password(why)))
            .ok();
        let (Some((username, email)), Some(password), true) = (names, password, problems.is_empty()) else {
            return Ok(Err(problems));
        };
        if self.ask(ByLogin(Some(username.key()))).await?.is_some() {
            return Ok(Err(vec![Problem::NameTaken]));
        }
        let id = entropy::fresh()?.user();
        let password = self.hash_new(&id, &password, browser).await?;
        Ok(Ok(Judged { id, username, email, verified: false, role, password }))
    }

    /// Signs a user up: an account and a session in one batch. It may tell that a username is taken; an address that
    /// its owner did not prove reserves nothing and is no login name.
    pub async fn sign_up(
        &self,
        flow: Flow,
        typed: NewPerson,
        browser: &Browser,
    ) -> Result<Result<SignedIn, NotMade>, Fault> {
        let (app, browser) = (self.clone(), browser.clone());
        to_the_end(|pledge| async move { app.make_account(&pledge, flow, &typed, &browser).await }).await
    }

    /// A sign-up counts whatever comes of it, once its password was hashed; until then it is at stake.
    pub(crate) async fn make_account(
        &self,
        _: &Pledge,
        flow: Flow,
        typed: &NewPerson,
        browser: &Browser,
    ) -> Result<Result<SignedIn, NotMade>, Fault> {
        let made = self.enrolled(flow, typed, browser).await;
        self.tally.sign_ups.one(match &made {
            Ok(Ok(_)) => Entry::Success,
            Ok(Err(NotMade::Problems(_))) => Entry::Refused,
            Ok(Err(NotMade::Wait(_))) => Entry::Throttled,
            Err(fault) => Entry::of(fault),
        });
        made
    }

    async fn enrolled(
        &self,
        flow: Flow,
        typed: &NewPerson,
        browser: &Browser,
    ) -> Result<Result<SignedIn, NotMade>, Fault> {
        let shared = self.sign_up_counters(browser);
        // At stake until it was counted, whatever comes of it.
        let _stake = match self.may_sign_up(&shared).await? {
            Ok(stake) => stake,
            Err(wait) => {
                let Origin { client, .. } = self.origin_of(Some(&flow), browser).await;
                self.reject(Rejection::Throttled(client)).await;
                return Ok(Err(NotMade::Wait(wait)));
            }
        };
        // Operators may give such a name; a stranger who has one would be taken for somebody else.
        if Username::parse(&typed.username).is_ok_and(|name| name.mixes_scripts()) {
            return Ok(Err(NotMade::Problems(vec![Problem::Username(BadName::Character)])));
        }
        let person = match self.new_person(typed, Role::Member, browser).await? {
            Ok(person) => person,
            Err(problems) => return Ok(Err(NotMade::Problems(problems))),
        };
        let (person, shared, origin) = (&person, &shared[..], &self.origin_of(Some(&flow), browser).await);
        let made = self
            .settle(|now, fresh| async move {
                let taken = self.ask(person.by_name()).await?.is_some();
                let user = person.user(now);
                let before = self.session(browser).await?.map(|(session, _)| session);
                let ask = sign_up::SignUp { user: &user, taken, shared, before: before.as_ref(), origin };
                let judged = sign_up::judge(&ask, &self.realm.settings, &self.keyring.session, (now, &fresh));
                Ok(judged.map(|started| (started, user)))
            })
            .await?;
        match made {
            Err(sign_up::Taken) => Ok(Err(NotMade::Problems(vec![Problem::NameTaken]))),
            Ok((started, user)) => {
                self.leave_replaced(browser, &started.session).await;
                let device = self.remember_browser(browser, &user)?;
                let flow = Flow { proved: Some(started.session.id.clone()), ..flow };
                Ok(Ok(SignedIn { started, device, user, next: Next::GoOn(flow) }))
            }
        }
    }

    /// Checks that one more account may be made beside those that are being made; if not, returns how long to wait.
    async fn may_sign_up(&self, shared: &[Shared]) -> Result<Result<Stake, Span>, Fault> {
        let keys: Vec<_> = shared.iter().map(|one| one.key).collect();
        let stake = self.stakes.hopeful(keys.clone(), self.patience()).stake().await?;
        let beside = stake.beside();
        let seen = Seen::all(shared, self.ask(counters::Each(&keys)).await?, beside);
        Ok(sign_up::admits(&seen, self.clock.now()).map(|()| stake))
    }
}

/// Returns what of a new person another user signs in with, as [`Judged::by_name`] and [`Judged::by_email`] find it.
pub(crate) fn taken(by_name: Option<&User>, by_email: Option<&User>) -> Vec<Problem> {
    let name = by_name.map(|_| Problem::NameTaken);
    name.into_iter().chain(by_email.map(|_| Problem::EmailTaken)).collect()
}

/// Reads a username, and an address or nothing; adds what is wrong to `problems`.
pub(crate) fn names((username, email): (&str, &str), problems: &mut Vec<Problem>) -> Option<(Username, Option<Email>)> {
    // In the order in which forms have them.
    let username = Username::parse(username).map_err(|why| problems.push(Problem::Username(why))).ok();
    let email = match email.trim() {
        "" => None,
        text => Email::parse(text).map_err(|why| problems.push(Problem::Email(why))).ok(),
    };
    username.map(|username| (username, email))
}
