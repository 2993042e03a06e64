//! Revocation (RFC 7009).

use super::client::Client;
use super::error::Error;
use super::family::{Family, Found};
use super::token::AccessClaims;
use crate::decision::{Change, Decision};
use crate::events::{Event, Kind};
use crate::realm::Settings;
use crate::secret::Handle;
use crate::time::Time;

/// A token that was presented, as far as it could be read.
pub enum Presented<'a> {
    /// A refresh token and its family.
    Refresh(&'a Found),
    /// A signed access token.
    Jwt(AccessToken<'a>),
    /// An opaque access token.
    Opaque(Handle, AccessToken<'a>),
    /// No token of ours.
    Unknown,
}

/// An access token, and what may have ended it already.
#[derive(Clone, Copy)]
pub struct AccessToken<'a> {
    /// Its claims.
    pub claims: &'a AccessClaims,
    /// The family that it descends from, if it has one and that is known.
    pub family: Option<&'a Family>,
    /// Whether it was revoked by itself.
    pub revoked: bool,
}

/// The outcome of a revocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The token can no longer be used.
    Revoked,
    /// Nothing changed: the token could not be used before, or is not the client's to revoke.
    Nothing,
}

/// RFC 7009 §2.2: the answer is the same whether there was something to revoke or not. A refresh token takes its whole
/// family along; another client's token is left alone. The caller learns that it is another client's (§2.1) only from a
/// token that says so by itself, as a signed one does: nobody learns here that others exist (RT-04, decision 0010).
///
/// A token that is dead for good changes nothing and leaves no line in the audit log, however often it is presented.
/// Otherwise somebody with one token of a public client could fill the log (DS-05).
pub fn revoke(client: &Client, presented: &Presented<'_>, at: (&Settings, Time)) -> Decision<Outcome, Error> {
    let (settings, now) = at;
    let event = Event::new(Kind::TokensRevoked, now).client(&client.id);
    let (owner, dead, change, event) = match presented {
        Presented::Unknown => return Decision::accept(Outcome::Nothing),
        Presented::Refresh(Found { family, .. }) => {
            let change = Change::RevokeFamily { family: family.id.clone(), at: now };
            let event = about(family, event).detail("kind", "refresh_token");
            (&family.client.0, has_ended(family, at), change, event)
        }
        Presented::Jwt(token) => {
            let change = Change::RevokeToken { jti: token.claims.jti.clone(), expires: token.remembered(settings) };
            (&token.claims.client_id, token.is_dead(at), change, token.written_in(event))
        }
        Presented::Opaque(handle, token) => {
            let change = Change::DropOpaque(*handle);
            (&token.claims.client_id, token.is_dead(at), change, token.written_in(event))
        }
    };
    match (*owner == client.id.0, presented) {
        (true, _) if dead => Decision::accept(Outcome::Nothing),
        (true, _) => Decision::accept(Outcome::Revoked).and(change).and(Change::Record(event)),
        (false, Presented::Jwt(_)) => Decision::refuse(Error::grant("the token was issued to another client")),
        (false, _) => Decision::accept(Outcome::Nothing),
    }
}

impl AccessToken<'_> {
    /// Adds whose token it is, if that is known.
    fn written_in(&self, event: Event) -> Event {
        let event = event.detail("kind", "access_token");
        match self.family {
            Some(family) => about(family, event),
            None => event,
        }
    }
    /// From when on no clock believes it.
    fn remembered(&self, settings: &Settings) -> Time {
        settings.remembered(Time::from_seconds(self.claims.exp))
    }
    /// Whether it will never be valid again. Conditions that may pass (an account that is disabled, a family that is
    /// not found) do not count: a token revoked now stays revoked.
    fn is_dead(&self, (settings, now): (&Settings, Time)) -> bool {
        let ended = self.family.is_some_and(|family| has_ended(family, (settings, now)));
        let expired = Time::from_seconds(self.claims.exp).has_come(settings.by_the_slowest(now));
        self.revoked || ended || expired
    }
}

/// Adds the family's user, and the session in which it began: one that it has outlived still leads to a sign-in.
pub(super) fn about(family: &Family, event: Event) -> Event {
    let session = family.session.as_ref().or(family.granted.session.as_ref()).cloned();
    Event { session, ..event.user(&family.user) }
}

/// Whether a family has ended by every clock: if one clock is ahead, another may still believe an expired family.
fn has_ended(family: &Family, (settings, now): (&Settings, Time)) -> bool {
    family.revoked_at.is_some() || family.expires.has_come(settings.by_the_slowest(now))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oauth::client::tests::confidential;
    use crate::oauth::code::Granted;
    use crate::oauth::family::tests::begun;
    use crate::oauth::token::Audience;
    use crate::realm::SKEW;
    use crate::time::Span;

    const NOW: Time = Time::from_seconds(1_700_000_000);

    fn claims(client: &str) -> AccessClaims {
        AccessClaims {
            iss: "https://id.test".into(),
            sub: "client:shop".into(),
            aud: Audience::One("https://id.test".into()),
            exp: 1_700_000_900,
            iat: 1_700_000_000,
            jti: "jti".into(),
            client_id: client.into(),
            scope: String::new(),
            auth_time: None,
            acr: None,
            amr: vec![],
        }
    }

    fn family(client: &str) -> Family {
        begun(client, NOW)
    }

    fn found(family: Family) -> Found {
        Found { family, session: None, user: None, groups: vec![] }
    }

    fn token(claims: &AccessClaims) -> AccessToken<'_> {
        AccessToken { claims, family: None, revoked: false }
    }

    fn said(presented: &Presented<'_>, now: Time) -> Decision<Outcome, Error> {
        revoke(&confidential("shop", "https://shop.test/cb"), presented, (&Settings::default(), now))
    }

    #[track_caller]
    fn revokes(presented: &Presented<'_>, now: Time) {
        let said = said(presented, now);
        assert_eq!((said.reply, said.changes.len()), (Ok(Outcome::Revoked), 2), "a change, and its line");
        assert!(matches!(said.changes[1], Change::Record(_)));
    }

    #[track_caller]
    fn changes_nothing(presented: &Presented<'_>, now: Time) {
        let said = said(presented, now);
        assert_eq!((said.reply, said.changes.len()), (Ok(Outcome::Nothing), 0));
    }

    #[test]
    fn rfc7009_2_1_whoever_revokes_anothers_signed_token_is_told() {
        // red without its arm in `revoke`.
        let foreign = claims("other");
        let revoked = AccessToken { revoked: true, ..token(&foreign) };
        for presented in [token(&foreign), revoked] {
            let refused = said(&Presented::Jwt(presented), NOW);
            assert!(refused.reply.is_err() && refused.changes.is_empty());
        }
        changes_nothing(&Presented::Opaque(Handle::of("opaque"), token(&foreign)), NOW);
        changes_nothing(&Presented::Refresh(&found(family("other"))), NOW);
    }

    #[test]
    fn a_revoked_token_is_remembered_until_the_slowest_clock_refuses_it() {
        // red without `remembered` in AccessToken.
        let claims = claims("shop");
        let revoked = said(&Presented::Jwt(token(&claims)), NOW);
        let Some(Change::RevokeToken { expires, .. }) = revoked.changes.first() else { panic!("it is revoked") };
        assert_eq!(*expires - SKEW - SKEW, Time::from_seconds(claims.exp));
    }

    #[test]
    fn ds_05_what_is_dead_for_good_changes_nothing_and_leaves_no_line() {
        // red without `dead` in `revoke`.
        let (claims, lives) = (claims("shop"), family("shop"));
        let over = Family { revoked_at: Some(NOW - Span(1)), ..family("shop") };
        let of = |family| AccessToken { family: Some(family), ..token(&claims) };
        let revoked = AccessToken { revoked: true, ..of(&lives) };
        revokes(&Presented::Refresh(&found(lives.clone())), NOW);
        changes_nothing(&Presented::Refresh(&found(over.clone())), NOW);
        for opaque in [false, true] {
            let presented = |token| match opaque {
                false => Presented::Jwt(token),
                true => Presented::Opaque(Handle::of("opaque"), token),
            };
            revokes(&presented(token(&claims)), NOW);
            revokes(&presented(of(&lives)), NOW);
            changes_nothing(&presented(revoked), NOW);
            changes_nothing(&presented(of(&over)), NOW);
        }
    }

    #[test]
    fn what_has_expired_here_is_revoked_while_another_clock_may_believe_it() {
        // red where `is_dead` or `has_ended` asks this node's clock alone.
        let (claims, lives) = (claims("shop"), family("shop"));
        let (at, refresh) = (Time::from_seconds(claims.exp), found(lives.clone()));
        for (presented, expires) in [
            (Presented::Jwt(token(&claims)), at),
            (Presented::Opaque(Handle::of("opaque"), token(&claims)), at),
            (Presented::Refresh(&refresh), lives.expires),
        ] {
            revokes(&presented, expires + SKEW + SKEW - Span(1));
            changes_nothing(&presented, expires + SKEW + SKEW);
        }
    }

    #[test]
    fn a_line_tells_whose_the_token_was_and_in_which_session_it_began() {
        // red without `about` in `revoke`, or without the session of what was granted in it.
        let claims = claims("shop");
        let bound = Family { session: Some("sid".into()), ..family("shop") };
        let outlived =
            Family { granted: Granted { session: Some("sid".into()), ..bound.granted.clone() }, ..family("shop") };
        let of = |family| AccessToken { family: Some(family), ..token(&claims) };
        for family in [&bound, &outlived] {
            let found = found(family.clone());
            for presented in [
                Presented::Refresh(&found),
                Presented::Jwt(of(family)),
                Presented::Opaque(Handle::of("opaque"), of(family)),
            ] {
                let said = said(&presented, NOW);
                let Some(Change::Record(event)) = said.changes.last() else { panic!("a line: {:?}", said.changes) };
                assert_eq!((&event.user, &event.session), (&Some("ada".into()), &Some("sid".into())));
            }
        }
    }

    /// A disabled account may be enabled tomorrow, and a family that is not found today may be there.
    #[test]
    fn what_is_of_no_use_only_now_is_revoked() {
        // red where `revoke` asks whether the token is live.
        let orphan = AccessClaims { jti: "family.chance".into(), ..claims("shop") };
        revokes(&Presented::Refresh(&found(family("shop"))), NOW);
        revokes(&Presented::Jwt(token(&orphan)), NOW);
        let idle = Family { idle_until: NOW - Span(1), ..family("shop") };
        revokes(&Presented::Refresh(&found(idle)), NOW);
    }
}
