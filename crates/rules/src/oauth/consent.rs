//! What somebody lets an application have, remembered.

use super::client::Client;
use super::scope::Scope;
use crate::decision::{Change, Decision, Never};
use crate::events::{Event, Kind};
use crate::id::{ClientId, UserId};
use crate::login::session::Session;
use crate::time::Time;

/// A consent that stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Consent {
    /// Whose.
    pub user: UserId,
    /// To whom.
    pub client: ClientId,
    /// To what.
    pub scope: Scope,
    /// Since when: also what tells it from one that was taken back and given again.
    pub granted: Time,
}

/// Consent that was just given, together with what was given before; of that, what the application may still ask for: what was
/// taken from it does not come back by itself, and nothing piles up.
pub(super) fn given(before: Option<&Consent>, (user, client): (&UserId, &Client), scope: &Scope, now: Time) -> Consent {
    Consent {
        user: user.clone(),
        client: client.id.clone(),
        scope: before.map(|before| before.scope.both(&client.scope)).unwrap_or_default().either(scope),
        granted: before.map_or(now, |before| before.granted),
    }
}

/// Remembers what was given in a session, and says so, unless what was given `before` has changed meanwhile.
pub(super) fn grant(consent: Consent, before: Option<&Consent>, session: &Session, now: Time) -> [Change; 2] {
    let event = Event::new(Kind::ConsentGranted, now).user(&consent.user).client(&consent.client);
    let event = event.session(&session.id).detail("scope", consent.scope.to_string());
    let seen = before.map(|before| before.scope.clone());
    [Change::GrantConsent { consent: Box::new(consent), seen }, Change::Record(event)]
}

/// Somebody said no to an application. Nothing changes by that, but it is known.
pub fn deny(session: Option<&Session>, client: &ClientId, now: Time) -> Decision<(), Never> {
    let event = Event::new(Kind::ConsentDenied, now).client(client);
    Decision::accept(()).and(Change::Record(match session {
        Some(session) => event.user(&session.user).session(&session.id),
        None => event,
    }))
}

/// Whoever is signed in takes a consent back: everything that follows from it is dead at the next use.
pub fn revoke(session: &Session, client: &ClientId, now: Time) -> Decision<(), Never> {
    let user = &session.user;
    let event = Event::new(Kind::ConsentRevoked, now).user(user).client(client).session(&session.id);
    Decision::accept(())
        .and(Change::RevokeConsent { user: user.clone(), client: client.clone(), at: now })
        .and(Change::DropApprovalsOf { user: user.clone(), client: Some(client.clone()) })
        .and(Change::RevokeFamiliesOf { user: user.clone(), client: Some(client.clone()), except: None, at: now })
        .and(Change::Record(event))
}
