//! The first account: a one-time link, and the owner that it makes.

use crate::browser::Browser;
use crate::sign_up::{NewPerson, Problem, taken};
use crate::{App, Fault, entropy};
use rules::decision::Change;
use rules::events::{Event, Kind};
use rules::login::session::{Entry, Method, Started, enter};
use rules::people::Role;
use rules::realm::lasts;
use rules::secret::{Handle, Secret};
use rules::{Decision, Span, Time};
use store::tables::realms::SetupLinks;
use store::tables::sessions::WithUser;
use store::tables::users::Owner;

/// How long a set-up link is valid.
pub const LINK_LIVES: Span = Span::minutes(30);

/// A link that ends within this time is of little use to somebody who reads it now.
const ENDS_SOON: Span = Span::minutes(5);

/// Why no owner was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refused {
    /// There is one already.
    Done,
    /// The link is unknown or too old.
    Link,
    /// Something that was typed is not acceptable.
    Problems(Vec<Problem>),
}

/// The owner is there, and signed in.
#[derive(Debug)]
pub struct SetUp {
    /// The session and its cookie.
    pub started: Started,
    /// The cookie by which this browser is known from now on.
    pub device: Secret,
}

impl App {
    /// Whether this realm has an owner.
    pub async fn has_owner(&self) -> Result<bool, Fault> {
        Ok(self.ask(Owner).await?.is_some())
    }

    /// Offers a new one-time link, beside those that other nodes offered; with `alone` those become void. `None` if
    /// there is an owner.
    pub async fn offer_setup(&self, alone: bool) -> Result<Option<Secret>, Fault> {
        if self.has_owner().await? {
            return Ok(None);
        }
        let secret = entropy::fresh()?.secret("setup");
        let link = secret.handle();
        self.settle(|now, _| async move {
            let expires = now + LINK_LIVES;
            // To be the only link, it also replaces those that were dated by a clock that was ahead.
            let keep = if alone { Time(i64::MAX) } else { now };
            let offered = Change::Record(Event::new(Kind::SetupOffered, now));
            Ok(Decision::<(), ()>::accept(()).and(Change::OfferSetup { link, keep, expires }).and(offered))
        })
        .await?
        .ok();
        Ok(Some(secret))
    }

    /// Whether a link would be accepted now.
    pub async fn setup_is_open(&self) -> Result<bool, Fault> {
        let (owner, links) = self.ask((Owner, SetupLinks)).await?;
        let now = self.clock.now();
        Ok(owner.is_none() && links.iter().any(|(_, expires)| lasts(*expires, LINK_LIVES, now)))
    }

    /// Whether a link will still be accepted for some minutes.
    pub async fn setup_link_lasts(&self, link: &str) -> Result<bool, Fault> {
        let (owner, links) = self.ask((Owner, SetupLinks)).await?;
        Ok(owner.is_none() && is_open(&links, Handle::of(link), self.clock.now() + ENDS_SOON))
    }

    /// Makes the owner, who is signed in afterwards. The link is used up in the same batch.
    pub async fn set_up(
        &self,
        link: &str,
        typed: &NewPerson,
        browser: &Browser,
    ) -> Result<Result<SetUp, Refused>, Fault> {
        let link = Handle::of(link);
        if self.has_owner().await? {
            return Ok(Err(Refused::Done));
        }
        let now = self.clock.now();
        if !is_open(&self.ask(SetupLinks).await?, link, now) {
            return Ok(Err(Refused::Link));
        }
        // The holder of the link is the operator, whose word counts.
        let person = match self.new_person(typed, Role::Owner, browser).await? {
            Ok(person) => person.verified(true),
            Err(problems) => return Ok(Err(Refused::Problems(problems))),
        };
        let person = &person;
        let made = self
            .settle(|now, fresh| async move {
                let sid = browser.session.as_ref().map(|cookie| &cookie.id);
                let (owner, known, name, email, before) =
                    self.ask((Owner, SetupLinks, person.by_name(), person.by_email(), WithUser(sid))).await?;
                if owner.is_some() {
                    return Ok(Decision::refuse(Refused::Done));
                }
                if !is_open(&known, link, now) {
                    return Ok(Decision::refuse(Refused::Link));
                }
                let taken = taken(name.as_ref(), email.as_ref());
                if !taken.is_empty() {
                    return Ok(Decision::refuse(Refused::Problems(taken)));
                }
                let user = person.user(now);
                let before = self.prove(browser, before, now).map(|(session, _)| session);
                let (before, origin) = (before.as_ref(), &browser.origin);
                let entry = Entry { user: &user, method: Method::Setup, before, origin };
                let entered = enter(&entry, &self.realm.settings, &self.keyring.session, (now, &fresh));
                let made = vec![
                    Change::UseSetup { link, now },
                    Change::ClaimOwner(user.id.clone()),
                    Change::AddUser(Box::new(user.clone())),
                    Change::Record(Event::new(Kind::SetUp, now).user(&user.id).address(&browser.origin.address)),
                ];
                let changes = made.into_iter().chain(entered.changes).collect();
                Ok(Decision { changes, reply: entered.reply.map(|started| (started, user)).map_err(|_| Refused::Link) })
            })
            .await?;
        match made {
            Err(refused) => Ok(Err(refused)),
            Ok((started, user)) => {
                self.leave_replaced(browser, &started.session).await;
                Ok(Ok(SetUp { started, device: self.remember_browser(browser, &user)? }))
            }
        }
    }
}

fn is_open(links: &[(Handle, Time)], link: Handle, now: Time) -> bool {
    links.iter().any(|(known, expires)| *known == link && lasts(*expires, LINK_LIVES, now))
}
