//! Remembered consents: what a user lets a client have.

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
    /// The user who gave it.
    pub user: UserId,
    /// The client that it was given to.
    pub client: ClientId,
    /// What the client may have.
    pub scope: Scope,
    /// When it was first given, which also tells it from a consent that was withdrawn and given again.
    pub granted: Time,
}

/// Returns a consent that was just given, joined with the earlier one as far as the client may still ask for that: what
/// was taken from the client does not come back by itself, and nothing piles up.
pub(super) fn given(before: Option<&Consent>, (user, client): (&UserId, &Client), scope: &Scope, now: Time) -> Consent {
    Consent {
        user: user.clone(),
        client: client.id.clone(),
        scope: before.map(|before| before.scope.both(&client.scope)).unwrap_or_default().either(scope),
        granted: before.map_or(now, |before| before.granted),
    }
}

/// Stores a consent that was given in a session and records it, unless the one given `before` has changed meanwhile.
pub(super) fn grant(consent: Consent, before: Option<&Consent>, session: &Session, now: Time) -> [Change; 2] {
    let event = Event::new(Kind::ConsentGranted, now).user(&consent.user).client(&consent.client);
    let event = event.session(&session.id).detail("scope", consent.scope.to_string());
    let seen = before.map(|before| before.scope.clone());
    [Change::GrantConsent { consent: Box::new(consent), seen }, Change::Record(event)]
}

/// Records that a user refused a client; nothing else changes.
pub fn deny(session: Option<&Session>, client: &ClientId, now: Time) -> Decision<(), Never> {
    let event = Event::new(Kind::ConsentDenied, now).client(client);
    Decision::accept(()).and(Change::Record(match session {
        Some(session) => event.user(&session.user).session(&session.id),
        None => event,
    }))
}

/// Withdraws a consent of the signed-in user: everything that follows from it is dead at the next use.
pub fn revoke(session: &Session, client: &ClientId, now: Time) -> Decision<(), Never> {
    let user = &session.user;
    let event = Event::new(Kind::ConsentRevoked, now).user(user).client(client).session(&session.id);
    Decision::accept(())
        .and(Change::RevokeConsent { user: user.clone(), client: client.clone(), at: now })
        .and(Change::DropApprovalsOf { user: user.clone(), client: Some(client.clone()) })
        .and(Change::RevokeFamiliesOf { user: user.clone(), client: Some(client.clone()), except: None, at: now })
        .and(Change::Record(event))
}
