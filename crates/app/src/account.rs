//! What somebody can see and do about their own account.

use crate::api::Given;
use crate::browser::Browser;
use crate::jobs::{Pledge, to_the_end};
use crate::settle::{AT_ONCE, whole};
use crate::{App, Fault};
use rules::decision::{Change, Standing};
use rules::events::{Event, Kind};
use rules::id::ClientId;
use rules::login::attempt::Refusal;
use rules::login::password::{Acceptable, Weak};
use rules::login::session::{Entry, Method, Session, Started, enter, renew, still_proved};
use rules::oauth::client::Client;
use rules::oauth::consent::{self, Consent};
use rules::oauth::error::Error;
use rules::people::User;
use rules::people::names::{BadName, Email};
use rules::realm::SKEW;
use rules::secret::{Secret, base64url, mac, same};
use rules::{Decision, Span, Time};
use std::sync::Arc;
use store::tables::sessions::{NEWEST, WithUser};
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
    /// The password of now, and the one from now on.
    pub fn new(current: &[u8], new: &[u8]) -> Self {
        PasswordChange { current: Zeroizing::new(current.to_vec()), new: Zeroizing::new(new.to_vec()) }
    }
}

/// A password was changed.
#[derive(Debug)]
pub struct Changed {
    /// The session of whoever changed it, and its new cookie.
    pub started: Started,
    /// What this browser, or an application on its device, is known by from now on: that of before is void.
    pub device: Secret,
    /// Where a first-party client changed it: its new tokens.
    pub(crate) tokens: Option<Given>,
}

/// Why a password was not changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotChanged {
    /// The current one was wrong, or too many were tried.
    Current(Refusal),
    /// The new one will not do.
    New(Weak),
    /// The session ended meanwhile, or goes on under another cookie.
    SignedOut,
    /// The first-party client that asked for it may have no tokens any more.
    Client(Error),
}

/// Who changes a password.
pub(crate) struct Changing<'a> {
    /// In which session.
    pub(crate) session: &'a Session,
    /// Whose.
    pub(crate) user: &'a User,
    /// On whose screen, where it is not ours.
    pub(crate) client: Option<&'a ClientId>,
}

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
    /// The address is verified, and they signed in too long ago to change it.
    SignInAgain,
    /// The session ended meanwhile, or goes on under another cookie.
    SignedOut,
}

/// How many sessions the account home shows.
const SHOWN: usize = 100;
/// How many are read at a time: one more than is shown tells that there are more.
const ROWS: usize = SHOWN + 1;
/// How often they are read at the most. The question leaves out what has run out: once is enough, unless the rule leaves out
/// more.
const PAGES: usize = 3;

impl App {
    /// The account home of somebody.
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

    /// The newest sessions of somebody that live, as many as a page shows, and whether there are more; "sign out everywhere
    /// else" ends the others, too. What this costs has an end, however many ran out that the sweep has not taken yet.
    async fn live_sessions(&self, user: &User) -> Result<(Vec<Session>, bool), Fault> {
        let (settings, now) = (&self.realm.settings, self.clock.now());
        let (mut live, mut before, mut more) = (Vec::new(), NEWEST.to_owned(), true);
        for _ in 0..PAGES {
            let (user, idle_since) = (&user.id, now - settings.session_idle);
            let page = sessions::Page { user, before: &before, limit: ROWS as i64, now, idle_since };
            let page = self.ask(page).await?;
            more = page.len() >= ROWS;
            before = page.last().map(|last| last.id.0.clone()).unwrap_or_default();
            live.extend(page.into_iter().filter(|session| session.is_live(settings, now)));
            if live.len() > SHOWN || !more {
                break;
            }
        }
        let more = more || live.len() > SHOWN;
        live.truncate(SHOWN);
        Ok((live, more))
    }

    /// Saves a profile. An address that is entered here is not verified. One that is verified belongs to what proves an account
    /// to be somebody's: a session that was left open must not be enough to take it away.
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
            // Nothing is written, nor told to the log, as often as somebody saves what is there.
            if profile == user.profile && email.is_none() {
                return Ok(Decision::accept(()));
            }
            // The log is told which, and no more of a person.
            let mut changed = user.profile.changed(&profile, form.claims.iter().map(|(claim, _)| *claim));
            changed.extend(email.map(|_| "email"));
            let event = Event::new(Kind::UserChanged, now).user(&user.id).session(&session.id);
            let event = event.detail("what", "profile").detail("changed", changed.join(" "));
            // An ending that was acknowledged before holds: a copy of the cookie may have been on its way.
            let stands = Standing {
                user: Some(user.id.clone()),
                session: Some(session.id.clone()),
                handle: Some(session.handle),
                ..Standing::default()
            };
            let mut decision = Decision::accept(())
                .and(Change::Stands(stands))
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

    /// What a link to the account home carries beside the code of a notice, so that nobody else's link says it to them.
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
            let who = Changing { session: &session, user: &user, client: None };
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
        // Once more where another hash is stored by the end: who signed in beside it may have had it made anew.
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

    /// `None` where the stored hash is not the one that was verified any more: nothing was decided. A client's new tokens come with
    /// it or nothing does: whoever was told of a failure in between would try the old password again.
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
                let found = self.ask(WithUser(Some(&session.id))).await?;
                let found = match self.still(found, (session, user), now) {
                    Ok(found) => found,
                    Err(why) => return Ok(Decision::refuse(why)),
                };
                let changed = User { password: Some(password.clone()), ..found };
                let (method, before) = (Method::Password, Some(session));
                let entry = Entry { user: &changed, method, before, origin: &browser.origin };
                let entered = enter(&entry, &self.realm.settings, now, &fresh);
                let Ok(started) = entered.reply else { return Ok(Decision::refuse(Some(NotChanged::SignedOut))) };
                let change = Change::SetPassword {
                    user: user.id.clone(),
                    seen: user.password.clone(),
                    password: password.clone(),
                    at: changed.next_change(now),
                };
                // The others end without lines of their own.
                let event = browser.origin.event(Kind::PasswordChanged, &user.id, now).session(&session.id);
                let event = event.detail("ended", "others");
                let ends = everything_else(user, Some(session), self.realm.settings.code_ttl, now);
                let ahead = [change, Change::Record(event)].into_iter().chain(ends).chain(entered.changes);
                let mut decision = Decision { changes: ahead.collect(), reply: Ok(()) };
                let mut tokens = None;
                if let Some(client) = who.client {
                    let epoch = self.epoch().await?;
                    let client = self.client(client, epoch).await?;
                    let who = (&changed, &started.session);
                    let begun = self.begun(client.as_deref(), who, (now, &fresh), epoch).await?;
                    match begun.reply {
                        Ok(given) => tokens = Some(given),
                        Err(error) => return Ok(Decision::refuse(Some(NotChanged::Client(error)))),
                    }
                    decision.changes.extend(begun.changes);
                }
                Ok(decision.map(|()| (started, changed, tokens)))
            })
            .await?;
        Ok(match reply {
            Err(why) => why.map(Err),
            Ok((started, changed, tokens)) => {
                Some(Ok(Changed { started, device: self.remember_browser(browser, &changed)?, tokens }))
            }
        })
    }

    /// Somebody as they are now, if they are still signed in by `session` and their password is still the one that was
    /// verified (`None` if not): nothing of them was held while it was hashed.
    fn still(
        &self,
        found: Option<(Session, User)>,
        (session, verified): (&Session, &User),
        now: Time,
    ) -> Result<User, Option<NotChanged>> {
        match found {
            Some((_, user)) if user.password != verified.password => Err(None),
            Some((found, user)) if found.handle == session.handle && found.is_live(&self.realm.settings, now) => {
                Ok(user)
            }
            _ => Err(Some(NotChanged::SignedOut)),
        }
    }

    /// Ends every session of somebody but this one, and what their applications hold. This one gets a new secret, for a copy
    /// of its cookie is elsewhere, too. `None` where it is over meanwhile.
    pub async fn leave_everywhere_else(&self, session: &Session, user: &User) -> Result<Option<Started>, Fault> {
        let renewed = self
            .settle(|now, fresh| async move {
                let found = self.ask(WithUser(Some(&session.id))).await?;
                let still =
                    |found: &Session| found.handle == session.handle && found.is_live(&self.realm.settings, now);
                if !found.is_some_and(|(found, _)| still(&found)) {
                    return Ok(Decision::refuse(()));
                }
                // No session of its own: whoever asks for lines about the one that goes on would read that it ended.
                let event = Event::new(Kind::SignedOut, now).user(&user.id).detail("which", "others");
                let event = event.detail("kept", session.id.as_str());
                let ends = everything_else(user, Some(session), self.realm.settings.code_ttl, now);
                let Decision { changes, reply } = renew(session, now, &fresh);
                // This session first: whoever is issued something in it by a copy of its cookie holds its row, and what they
                // were issued is there when the rest is looked for.
                let changes = changes.into_iter().chain(ends).chain([Change::Record(event)]).collect();
                Ok(Decision { changes, reply: reply.map_err(|never| match never {}) })
            })
            .await?;
        Ok(renewed.ok())
    }

    /// Takes an application's access away; whether it had any. What was not there is not written down.
    pub async fn revoke_consent(&self, session: &Session, client: &ClientId) -> Result<bool, Fault> {
        let revoked = self
            .settle(|now, _| async move {
                if self.ask(consents::Between(&session.user, client)).await?.is_none() {
                    return Ok(Decision::refuse(()));
                }
                let Decision { changes, reply } = consent::revoke(session, client, now);
                Ok(Decision { changes, reply: reply.map_err(|never| match never {}) })
            })
            .await?;
        Ok(revoked.is_ok())
    }
}

/// All sessions of somebody end, but for one, and so does everything that was issued to them, codes on their way too.
///
/// The order matters where a statement waits only for rows that it finds, as on PostgreSQL. Sessions end before approvals of
/// devices are looked for: whoever gives one in another session holds the row of that until the approval is there, and one
/// that is missed would outlive it. A code that is missed would not: it is worth nothing without its session. What tokens come
/// from goes before them: who redeems it meanwhile holds its row, and what they got for it is there when families end.
pub(crate) fn everything_else(user: &User, except: Option<&Session>, code_ttl: Span, at: Time) -> Vec<Change> {
    let user = &user.id;
    vec![
        // Their ids have the time of whoever issued them, whose clock may be as far behind as ours is ahead.
        Change::BurnCodesOf { user: user.clone(), since: at - code_ttl - SKEW - SKEW, at },
        Change::EndSessionsOf { user: user.clone(), except: except.map(|session| session.id.clone()), at },
        Change::DropApprovalsOf { user: user.clone(), client: None },
        Change::RevokeFamiliesOf { user: user.clone(), client: None, except: None, at },
    ]
}
