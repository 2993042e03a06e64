//! What a user can see and do about their own account.

use crate::api::Opened;
use crate::browser::Browser;
use crate::pledge::{Pledge, to_the_end};
use crate::settle::{AT_ONCE, whole};
use crate::token::Given;
use crate::{App, Fault};
use rules::decision::Change;
use rules::events::{Event, Kind};
use rules::id::{ClientId, SessionId};
use rules::login::attempt::Refusal;
use rules::login::password::{Acceptable, Weak};
use rules::login::session::{Entry, Method, Session, Started, enter, leave, renew, still_proved};
use rules::oauth::client::Client;
use rules::oauth::consent::{self, Consent};
use rules::oauth::error::Error;
use rules::people::User;
use rules::people::names::{BadName, Email};
use rules::secret::{PasswordHash, Secret, base64url, mac, same};
use rules::{Decision, Time};
use std::sync::Arc;
use store::tables::sessions::{ForEnding, NEWEST, WithUser};
use store::tables::{consents, sessions};
use zeroize::Zeroizing;

/// Everything that the account home shows.
pub struct Home {
    /// Live sessions, newest first.
    pub sessions: Vec<Session>,
    /// Whether there are more than those.
    pub more_sessions: bool,
    /// Applications with access.
    pub applications: Vec<(Arc<Client>, Consent)>,
}

/// What was typed to change a password.
pub struct PasswordChange {
    current: Zeroizing<Vec<u8>>,
    new: Zeroizing<Vec<u8>>,
}

impl PasswordChange {
    /// Takes the present password, and the one from now on.
    pub fn new(current: &[u8], new: &[u8]) -> Self {
        PasswordChange { current: Zeroizing::new(current.to_vec()), new: Zeroizing::new(new.to_vec()) }
    }
}

/// A password was changed.
#[derive(Debug)]
pub struct Changed {
    /// The session in which it was changed, and its new cookie.
    pub started: Started,
    /// By which this browser, or an application on its device, is known from now on: the one before is void.
    pub device: Secret,
    /// The new tokens of the first-party client that changed it, if one did.
    pub(crate) tokens: Option<Given>,
}

/// Why a password was not changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotChanged {
    /// The current one was wrong, or too many were tried.
    Current(Refusal),
    /// The new one is not acceptable.
    New(Weak),
    /// The session ended meanwhile, or goes on under another cookie.
    SignedOut,
    /// The first-party client that asked for it may not have tokens any more.
    Client(Error),
}

/// Who changes a password, and where.
pub(crate) struct Changing<'a> {
    /// The session in which it is changed.
    pub(crate) session: &'a Session,
    /// The user whose it is.
    pub(crate) user: &'a User,
    /// The access token that opened the account, if it is not changed on our own pages.
    pub(crate) token: Option<&'a Secret>,
}

/// What a change of password rests on, as it is now: the session with its user and, where a token opened the account,
/// what it opens, and the configuration epoch.
type Ground = (Option<(Session, User)>, Option<(Opened, i64)>);

/// What a profile form holds: standard claims by name, and the address.
pub struct ProfileForm<'a> {
    /// Claims and their new values; empty removes.
    pub claims: &'a [(&'static str, &'a str)],
    /// The address; empty removes.
    pub email: Option<&'a str>,
}

/// Why a profile was not saved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotSaved {
    /// This claim cannot have that value, for that reason.
    Claim(&'static str, &'static str),
    /// The address cannot be one.
    Email(BadName),
    /// The address is verified, and the user signed in too long ago to change it.
    SignInAgain,
    /// The session ended meanwhile, or goes on under another cookie.
    SignedOut,
}

/// Why a session was not ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotEnded {
    /// The user has no such session.
    Unknown,
    /// The user signed in too long ago to end any other session than the own one.
    SignInAgain,
    /// The own session ended meanwhile, or goes on under another cookie.
    SignedOut,
}

/// Why an application's access was not taken away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotTaken {
    /// It had none.
    Nothing,
    /// The session ended meanwhile, or goes on under another cookie.
    SignedOut,
}

/// How many sessions the account home shows.
const SHOWN: usize = 100;
/// Sessions that are read at a time: one more than is shown tells that there are more.
const ROWS: usize = SHOWN + 1;
/// How often they are read at most. The query leaves out expired sessions: once is enough, unless the rule leaves out
/// more.
const PAGES: usize = 3;

impl App {
    /// Returns the account home of a user.
    pub async fn home(&self, user: &User) -> Result<Home, Fault> {
        let page = |after: String| async move {
            self.ask(consents::Page { user: &user.id, after: &after, limit: AT_ONCE }).await
        };
        let consents = whole(page, |consent| consent.client.as_str()).await?;
        let ((sessions, more_sessions), epoch) = (self.live_sessions(user).await?, self.epoch().await?);
        let mut applications = Vec::new();
        for consent in consents {
            if let Some(client) = self.client(&consent.client, epoch).await? {
                applications.push((client, consent));
            }
        }
        Ok(Home { sessions, more_sessions, applications })
    }

    /// Returns the newest sessions of a user that can be ended, as many as a page shows, and whether there are more;
    /// "sign out everywhere else" ends the others, too. One dated by a clock that was ahead is among them: its time
    /// will come. The cost is bounded, however many expired sessions the sweep has not taken yet.
    async fn live_sessions(&self, user: &User) -> Result<(Vec<Session>, bool), Fault> {
        let (settings, now) = (&self.realm.settings, self.clock.now());
        let (mut live, mut before, mut more) = (Vec::new(), NEWEST.to_owned(), true);
        for _ in 0..PAGES {
            let (user, idle_since) = (&user.id, now - settings.session_idle);
            let page = sessions::Page { user, before: &before, limit: ROWS as i64, now, idle_since };
            let page = self.ask(page).await?;
            more = page.len() >= ROWS;
            before = page.last().map(|last| last.id.0.clone()).unwrap_or_default();
            live.extend(page.into_iter().filter(|session| session.can_end(settings, now)));
            if live.len() > SHOWN || !more {
                break;
            }
        }
        let more = more || live.len() > SHOWN;
        live.truncate(SHOWN);
        Ok((live, more))
    }

    /// Saves a profile. An address that is entered here is not verified. A verified one is part of what proves an
    /// account to be somebody's: a session that was left open must not be enough to take it away.
    pub async fn save_profile(&self, session: &Session, form: &ProfileForm<'_>) -> Result<Result<(), NotSaved>, Fault> {
        let email = match form.email.map(str::trim) {
            None => None,
            Some("") => Some(None),
            Some(text) => match Email::parse(text) {
                Ok(email) => Some(Some(email.as_str().to_owned())),
                Err(why) => return Ok(Err(NotSaved::Email(why))),
            },
        };
        let email = &email;
        self.settle(|now, _| async move {
            let found = self.ask(WithUser(Some(&session.id))).await?;
            let Some((session, user)) = still_proved(session, found, &self.realm.settings, now) else {
                return Ok(Decision::refuse(NotSaved::SignedOut));
            };
            let mut profile = user.profile.clone();
            for (claim, value) in form.claims {
                profile = match profile.with(claim, value) {
                    Ok(profile) => profile,
                    Err(why) => return Ok(Decision::refuse(NotSaved::Claim(claim, why))),
                };
            }
            let email = email.as_ref().filter(|email| **email != user.email);
            if email.is_some() && user.email_verified && !session.is_fresh(now) {
                return Ok(Decision::refuse(NotSaved::SignInAgain));
            }
            // Saving what is there already writes nothing and tells the log nothing, however often it is done.
            if profile == user.profile && email.is_none() {
                return Ok(Decision::accept(()));
            }
            // The log is told which claims changed, and no more of a person.
            let mut changed = user.profile.changed(&profile, form.claims.iter().map(|(claim, _)| *claim));
            changed.extend(email.map(|_| "email"));
            let event = Event::new(Kind::UserChanged, now).user(&user.id).session(&session.id);
            let event = event.detail("what", "profile").detail("changed", changed.join(" "));
            let mut decision = Decision::accept(())
                .and(session.stands())
                .and(Change::SetProfile { user: user.id.clone(), seen: user.profile.clone(), profile, at: now })
                .and(Change::Record(event));
            if let Some(email) = email {
                decision = decision.and(Change::SetEmail {
                    user: user.id.clone(),
                    seen: Some((user.email.clone(), user.email_verified)),
                    email: email.clone(),
                    verified: false,
                    at: now,
                });
            }
            Ok(decision)
        })
        .await
    }

    /// Seals the code of a notice for a link to the account home, so that nobody else's link shows it to the user.
    pub fn seal_notice(&self, code: &str, session: &Session) -> String {
        let parts = [code, session.id.as_str()].map(str::as_bytes);
        base64url(&mac(&*self.keyring.flow, &[b"account notice", parts[0], parts[1]]))
    }

    /// Whether such a link is ours, and of this session.
    pub fn notice_holds(&self, code: &str, seal: &str, session: &Session) -> bool {
        same(self.seal_notice(code, session).as_bytes(), seal.as_bytes())
    }

    /// Changes a password. Every other session ends, and every application has to ask again; this session goes on
    /// under a new cookie.
    pub async fn change_password(
        &self,
        (session, user): (&Session, &User),
        typed: PasswordChange,
        browser: &Browser,
    ) -> Result<Result<Changed, NotChanged>, Fault> {
        let (app, session, user, browser) = (self.clone(), session.clone(), user.clone(), browser.clone());
        to_the_end(|pledge| async move {
            let who = Changing { session: &session, user: &user, token: None };
            app.set_new_password(&pledge, &who, &typed, &browser).await
        })
        .await
    }

    pub(crate) async fn set_new_password(
        &self,
        pledge: &Pledge,
        who: &Changing<'_>,
        typed: &PasswordChange,
        browser: &Browser,
    ) -> Result<Result<Changed, NotChanged>, Fault> {
        let new = match self.acceptable(&typed.new, &who.user.names()) {
            Ok(new) => new,
            Err(why) => return Ok(Err(NotChanged::New(why))),
        };
        // Once more if another hash is stored by the end: another sign-in of the user may have replaced it.
        for _ in 0..2 {
            let proved = match self.knows_password(pledge, (who.user, who.session), &typed.current, browser).await? {
                Ok(proved) => proved,
                Err(refusal) => return Ok(Err(NotChanged::Current(refusal))),
            };
            if let Some(set) = self.replace_password(&Changing { user: &proved, ..*who }, &new, browser).await? {
                return Ok(set);
            }
        }
        Ok(Err(NotChanged::Current(Refusal::Wrong)))
    }

    /// `None` if the stored hash is no longer the one that was verified: nothing was decided. A client's new tokens are
    /// committed with the password or not at all: after a failure in between, the user would try the old one again.
    async fn replace_password(
        &self,
        who: &Changing<'_>,
        new: &Acceptable,
        browser: &Browser,
    ) -> Result<Option<Result<Changed, NotChanged>>, Fault> {
        let (session, user) = (who.session, who.user);
        let password = &self.hash_new(&user.id, new, browser).await?;
        let reply = self
            .settle(|now, fresh| async move {
                let (found, opened) = self.ground(who).await?;
                let found = match self.still(found, (session, user), now) {
                    Ok(found) => found,
                    Err(why) => return Ok(Decision::refuse(why)),
                };
                let changed = User { password: Some(password.clone()), ..found };
                let (method, before) = (Method::Password, Some(session));
                let entry = Entry { user: &changed, method, before, origin: &browser.origin };
                let entered = enter(&entry, &self.realm.settings, &self.keyring.session, (now, &fresh));
                let Ok(started) = entered.reply else { return Ok(Decision::refuse(Some(NotChanged::SignedOut))) };
                let change = Change::SetPassword {
                    user: user.id.clone(),
                    seen: user.password.clone().map(PasswordHash::from),
                    password: password.as_str().into(),
                    at: changed.next_change(now),
                };
                // The other sessions end without audit entries of their own.
                let event = browser.origin.event(Kind::PasswordChanged, &user.id, now).session(&session.id);
                let event = event.detail("ended", "others");
                // What opened the account ends with all else, and must have lasted until then.
                let stands = opened.as_ref().map(|(opened, _)| opened.stands());
                let (mut tokens, mut given) = (None, Vec::new());
                if let Some((opened, epoch)) = opened {
                    let who = (&changed, &started.session);
                    let begun = self.begun(Some(&opened.client), who, (now, &fresh), epoch).await?;
                    match begun.reply {
                        Ok(begun) => tokens = Some(begun),
                        Err(error) => return Ok(Decision::refuse(Some(NotChanged::Client(error)))),
                    }
                    given = begun.changes;
                }
                // After the last refusal: some of it ends at once.
                let ends = self.ends_all_but(&user.id, Some(&session.id), now).await?;
                let ahead = [change].into_iter().chain(stands).chain([Change::Record(event)]).chain(ends);
                let changes = ahead.chain(entered.changes).chain(given).collect();
                Ok(Decision { changes, reply: Ok((started, changed, tokens)) })
            })
            .await?;
        Ok(match reply {
            Err(why) => why.map(Err),
            Ok((started, changed, tokens)) => {
                Some(Ok(Changed { started, device: self.remember_browser(browser, &changed)?, tokens }))
            }
        })
    }

    /// A token is looked at as when it came: a client that has sent it may have revoked it since, or be another one.
    async fn ground(&self, who: &Changing<'_>) -> Result<Ground, Fault> {
        let Some(token) = who.token else { return Ok((self.ask(WithUser(Some(&who.session.id))).await?, None)) };
        let epoch = self.epoch().await?;
        let opened = self.open_account(token).await?;
        let found = opened.as_ref().map(|opened| (opened.session.clone(), opened.user.clone()));
        Ok((found, opened.map(|opened| (opened, epoch))))
    }

    /// Returns the user as they are now, if they are still signed in by `session` and their password is still the one
    /// that was verified (`None` if not): nothing of theirs was held while it was hashed.
    fn still(
        &self,
        found: Option<(Session, User)>,
        (session, verified): (&Session, &User),
        now: Time,
    ) -> Result<User, Option<NotChanged>> {
        if found.as_ref().is_some_and(|(_, user)| user.password != verified.password) {
            return Err(None);
        }
        let still = still_proved(session, found, &self.realm.settings, now);
        still.map(|(_, user)| user).ok_or(Some(NotChanged::SignedOut))
    }

    /// Ends a session of a user by its id, even one that may not be used at present, or sees that it is over. The own
    /// one may always be ended; for another, the user has signed in a short time ago (ASVS 7.5.2): whoever has a copy
    /// of a cookie must not be able to shut its owner out with it.
    pub async fn leave_one(
        &self,
        (own, user): (&Session, &User),
        id: &SessionId,
        browser: &Browser,
    ) -> Result<Result<(), NotEnded>, Fault> {
        self.settle(|now, _| async move {
            let (found, asked) = self.ask((WithUser(Some(&own.id)), ForEnding(Some(id)))).await?;
            let Some((own, _)) = still_proved(own, found, &self.realm.settings, now) else {
                return Ok(Decision::refuse(NotEnded::SignedOut));
            };
            let Some((session, _)) = asked.filter(|(_, owner)| owner.id == user.id) else {
                return Ok(Decision::refuse(NotEnded::Unknown));
            };
            if session.id != own.id && !own.is_fresh(now) {
                return Ok(Decision::refuse(NotEnded::SignInAgain));
            }
            if session.ended_at.is_some() {
                return Ok(Decision::accept(()));
            }
            let left = leave(&session, &browser.origin.address, now);
            Ok(Decision::accept(()).and(own.stands()).with(left.changes))
        })
        .await
    }

    /// Ends every other session of a user who signed in a short time ago (ASVS 7.5.2), and what their applications
    /// hold. This session gets a new secret, as a copy of its cookie may be elsewhere, too.
    pub async fn leave_everywhere_else(&self, session: &Session) -> Result<Result<Started, NotEnded>, Fault> {
        let renewed = self
            .settle(|now, fresh| async move {
                let found = self.ask(WithUser(Some(&session.id))).await?;
                let Some((found, user)) = still_proved(session, found, &self.realm.settings, now) else {
                    return Ok(Decision::refuse(NotEnded::SignedOut));
                };
                if !found.is_fresh(now) {
                    return Ok(Decision::refuse(NotEnded::SignInAgain));
                }
                // The event names no session: to a search for the one that goes on, it would seem to have ended.
                let event = Event::new(Kind::SignedOut, now).user(&user.id).detail("which", "others");
                let event = event.detail("kept", session.id.as_str());
                let ends = self.ends_all_but(&user.id, Some(&session.id), now).await?;
                let Decision { changes, reply } = renew(session, &self.keyring.session, now, &fresh).or_refuse();
                // This session first: a client that is issued something in it by a copy of its cookie holds its row,
                // and what it was issued is there when the rest is looked for.
                let changes = changes.into_iter().chain(ends).chain([Change::Record(event)]).collect();
                Ok(Decision { changes, reply })
            })
            .await?;
        Ok(renewed)
    }

    /// Takes an application's access away. If it had none, nothing is recorded.
    pub async fn revoke_consent(&self, session: &Session, client: &ClientId) -> Result<Result<(), NotTaken>, Fault> {
        self.settle(|now, _| async move {
            let (found, consent) =
                self.ask((WithUser(Some(&session.id)), consents::Between(&session.user, client))).await?;
            let Some((session, _)) = still_proved(session, found, &self.realm.settings, now) else {
                return Ok(Decision::refuse(NotTaken::SignedOut));
            };
            if consent.is_none() {
                return Ok(Decision::refuse(NotTaken::Nothing));
            }
            let revoked = consent::revoke(&session, client, now);
            Ok(Decision::accept(()).and(session.stands()).with(revoked.changes))
        })
        .await
    }
}
