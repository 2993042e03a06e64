//! Refreshing (RFC 6749 §6, RFC 9700 §4.14.2): rotation, reuse, and a grace period for lost answers.

use super::client::{Client, Grant};
use super::error::{Code as ErrorCode, Error};
use super::family::{Found, Previous, Refresh, RefreshToken, Rotation};
use super::first_party::is_for_accounts;
use super::revoke::about;
use super::scope::Scope;
use super::token::{Ask, Context, Line, Person, Tokens, Way, issue};
use crate::Fresh;
use crate::decision::{Change, Decision};
use crate::events::{Event, Kind};
use crate::realm::is_believable;
use crate::secret::Secret;
use crate::time::{Span, Time};

/// A request to refresh, by a client that proved who it is.
pub struct Renewal<'a> {
    /// The client that asks.
    pub client: &'a Client,
    /// A token that is one of ours, by its tag.
    pub token: &'a RefreshToken,
    /// A narrower scope, if wanted.
    pub scope: Option<&'a str>,
    /// Narrower audiences, if wanted.
    pub resources: Vec<String>,
}

/// How a presented refresh token relates to its family.
enum Standing {
    /// The current token, with the number of tokens before it.
    Current(i64),
    Predecessor(Previous),
    Outdated,
}

/// Exchanges a refresh token. The current one rotates; its immediate predecessor yields the same successor again within
/// the grace; any other one ends the family, although the request is refused.
pub fn renew(
    ask: &Renewal<'_>,
    found: Option<&Found>,
    context: &Context<'_>,
    at: (Time, &Fresh),
) -> Decision<Tokens, Error> {
    if let Err(error) = ask.client.registered_for(Grant::RefreshToken) {
        return Decision::refuse(error);
    }
    // A line of the account API is refreshed there. Here it does not exist, and stays as it is.
    let ours = |found: &&Found| !is_for_accounts(found, context.realm);
    carry_on(ask, Grant::RefreshToken.into(), found.filter(ours), context, at)
}

/// The exchange itself, for every [`Way`] that can be refreshed.
pub(super) fn carry_on(
    ask: &Renewal<'_>,
    way: Way,
    found: Option<&Found>,
    context: &Context<'_>,
    (now, fresh): (Time, &Fresh),
) -> Decision<Tokens, Error> {
    // RT-04: only the token's client is told whether it exists.
    let refused = || Decision::refuse(Error::grant("the refresh token is not valid"));
    let Some((found, refresh)) = found.and_then(|found| Some((found, found.family.refresh.as_ref()?))) else {
        return refused();
    };
    if !found.family.is_of(ask.client) || !found.is_live(&context.realm.settings, now) {
        return refused();
    }
    let standing = standing(ask.token, refresh, (context.realm.settings.refresh_grace, now));
    if matches!(standing, Standing::Outdated) {
        let event = about(&found.family, Event::new(Kind::RefreshReused, now).client(&ask.client.id));
        return refused()
            .and(Change::RevokeFamily { family: found.family.id.clone(), at: now })
            .and(Change::Record(event));
    }
    if found.family.idle_until.has_come(now) {
        return refused();
    }
    // A line that outlives its session does so by this scope: without the scope it ends, whatever is asked for (RT-02).
    if matches!(way, Way::Grant(_)) && found.family.session.is_none() && !ask.client.scope.has("offline_access") {
        return refused();
    }
    match narrowed(ask, found, &context.realm.issuer) {
        Err(error) => Decision::refuse(error),
        Ok((scope, resources)) => {
            let successor = successor(ask.token, standing, context, (now, fresh));
            let Some(person) = successor.and_then(|successor| person(found, successor)) else { return refused() };
            let touched = person.session.and_then(|session| session.touch(&context.realm.settings, now));
            let ask = Ask { client: ask.client, way, scope, resources, person: Some(person) };
            let decision = issue(&ask, context, (now, fresh));
            if decision.reply.is_ok() { decision.with(touched) } else { decision }
        }
    }
}

fn standing(token: &RefreshToken, refresh: &Refresh, (grace, now): (Span, Time)) -> Standing {
    let presented = token.secret.handle();
    // A clock that was ahead would leave the token far more than the grace.
    let in_grace = |until: Time| !until.has_come(now) && is_believable(until - grace, now);
    match refresh.previous {
        _ if presented == refresh.current => Standing::Current(refresh.turn),
        Some(previous) if presented == previous.handle && in_grace(previous.until) => Standing::Predecessor(previous),
        _ => Standing::Outdated,
    }
}

/// RT-05: a narrower scope is allowed and changes nothing that is stored; a wider one is refused.
fn narrowed(ask: &Renewal<'_>, found: &Found, issuer: &str) -> Result<(Scope, Vec<String>), Error> {
    let granted = &found.family.granted;
    let wider = Error::new(ErrorCode::InvalidScope, "the scope is wider than what was granted");
    let scope = match ask.scope.map(Scope::parse) {
        None => granted.scope.clone(),
        Some(Ok(scope)) if scope.is_within(&granted.scope) && !scope.is_empty() => scope,
        Some(_) => return Err(wider),
    };
    Ok((scope, granted.audiences(&ask.resources, issuer)?))
}

/// The token that takes over.
struct Successor {
    secret: Secret,
    /// What makes it the current one; `None` if it already is.
    rotation: Option<Change>,
}

fn successor(
    token: &RefreshToken,
    standing: Standing,
    context: &Context<'_>,
    (now, fresh): (Time, &Fresh),
) -> Option<Successor> {
    let settings = &context.realm.settings;
    match standing {
        Standing::Outdated => None,
        Standing::Predecessor(previous) => {
            let secret = token.successor(previous.bridge, context.sealing)?.secret;
            Some(Successor { secret, rotation: None })
        }
        Standing::Current(turn) => {
            let next = RefreshToken::make(&token.family, fresh.bytes("refresh"), context.sealing)?;
            let bridge = match settings.refresh_grace {
                Span::ZERO => [0; 32],
                _ => token.bridge_to(&next, context.sealing),
            };
            let was = token.secret.handle();
            let previous = Previous { handle: was, until: now + settings.refresh_grace, bridge };
            let idle_until = now + settings.refresh_idle;
            let rotation = Rotation { was, current: next.secret.handle(), previous, idle_until, turn: turn + 1 };
            let rotation = Some(Change::RotateFamily { family: token.family.clone(), rotation });
            Some(Successor { secret: next.secret, rotation })
        }
    }
}

/// Whom the tokens are for. `None` if the user is gone.
fn person(found: &Found, successor: Successor) -> Option<Person<'_>> {
    let Successor { secret, rotation } = successor;
    Some(Person {
        user: found.user.as_ref()?,
        session: found.session.as_ref().filter(|_| found.family.session.is_some()),
        groups: &found.groups,
        granted: &found.family.granted,
        family: &found.family.id,
        line: Line::GoesOn { refresh: secret, rotation: rotation.map(Box::new), ends: found.family.expires },
    })
}
