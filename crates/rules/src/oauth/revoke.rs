//! Revocation (RFC 7009).

use super::client::Client;
use super::error::Error;
use super::family::Found;
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
    Jwt(&'a AccessClaims),
    /// An opaque access token.
    Opaque(Handle, &'a AccessClaims),
    /// Nothing of ours.
    Unknown,
}

/// RFC 7009 §2.2: the answer is the same whether there was something to revoke or not. A refresh token takes its whole
/// family along; somebody else's token is left alone. That it is somebody else's is told (§2.1) where the token says so by
/// itself, which a signed one does: of the others, nobody learns here that they exist (RT-04, decision 0010).
pub fn revoke(client: &Client, presented: &Presented<'_>, (settings, now): (&Settings, Time)) -> Decision<(), Error> {
    let event = Event::new(Kind::TokensRevoked, now).client(&client.id);
    let (owner, change, event) = match presented {
        Presented::Unknown => return Decision::accept(()),
        Presented::Refresh(found) => {
            let family = &found.family;
            let change = Change::RevokeFamily { family: family.id.clone(), at: now };
            (&family.client.0, change, event.user(&family.user).detail("kind", "refresh_token"))
        }
        Presented::Jwt(claims) => {
            let expires = settings.remembered(Time::from_seconds(claims.exp));
            let change = Change::RevokeToken { jti: claims.jti.clone(), expires };
            (&claims.client_id, change, event.detail("kind", "access_token"))
        }
        Presented::Opaque(handle, claims) => {
            (&claims.client_id, Change::DropOpaque(*handle), event.detail("kind", "access_token"))
        }
    };
    match (*owner == client.id.0, presented) {
        (true, _) => Decision::accept(()).and(change).and(Change::Record(event)),
        (false, Presented::Jwt(_)) => Decision::refuse(Error::grant("the token was issued to another client")),
        (false, _) => Decision::accept(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oauth::client::tests::confidential;
    use crate::oauth::token::Audience;
    use crate::realm::SKEW;

    pub(super) fn claims(client: &str) -> AccessClaims {
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

    #[test]
    fn rfc7009_2_1_whoever_revokes_anothers_signed_token_is_told() {
        // red without the arm for it in `revoke`.
        let (shop, foreign) = (confidential("shop", "https://shop.test/cb"), claims("other"));
        let now = Time::from_seconds(foreign.iat);
        let said = |presented| revoke(&shop, &presented, (&Settings::default(), now));
        let refused = said(Presented::Jwt(&foreign));
        assert!(refused.reply.is_err() && refused.changes.is_empty());
        let silent = said(Presented::Opaque(Handle::of("opaque"), &foreign));
        assert!(silent.reply.is_ok() && silent.changes.is_empty());
    }

    #[test]
    fn a_revoked_token_is_remembered_until_the_slowest_clock_refuses_it() {
        // red without `remembered` in `revoke`.
        let (shop, claims) = (confidential("shop", "https://shop.test/cb"), claims("shop"));
        let now = Time::from_seconds(claims.iat);
        let revoked = revoke(&shop, &Presented::Jwt(&claims), (&Settings::default(), now));
        let Some(Change::RevokeToken { expires, .. }) = revoked.changes.first() else { panic!("it is revoked") };
        assert_eq!(*expires - SKEW - SKEW, Time::from_seconds(claims.exp));
    }
}
