//! What somebody lets an application have, remembered.

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

/// Somebody said no to an application. Nothing changes by that, but it is known.
pub fn deny(session: Option<&Session>, client: &ClientId, now: Time) -> Decision<(), Never> {
    let event = Event::new(Kind::ConsentDenied, now).client(client);
    Decision::accept(()).and(Change::Record(match session {
        Some(session) => event.user(&session.user).session(&session.id),
        None => event,
    }))
}

/// Takes a consent back: everything that follows from it is dead at the next use.
pub fn revoke(user: &UserId, client: &ClientId, now: Time) -> Decision<(), Never> {
    let event = Event::new(Kind::ConsentRevoked, now).user(user).client(client);
    Decision::accept(())
        .and(Change::RevokeConsent { user: user.clone(), client: client.clone(), at: now })
        .and(Change::DropApprovalsOf { user: user.clone(), client: Some(client.clone()) })
        .and(Change::RevokeFamiliesOf { user: user.clone(), client: Some(client.clone()), except: None, at: now })
        .and(Change::Record(event))
}
