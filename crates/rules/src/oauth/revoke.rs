//! Revocation (RFC 7009).

use super::client::Client;
use super::family::Found;
use super::token::AccessClaims;
use crate::decision::{Change, Decision, Never};
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
/// family along; somebody else's token is left alone.
pub fn revoke(client: &Client, presented: &Presented<'_>, (settings, now): (&Settings, Time)) -> Decision<(), Never> {
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
    match *owner == client.id.0 {
        true => Decision::accept(()).and(change).and(Change::Record(event)),
        false => Decision::accept(()),
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
    fn a_revoked_token_is_remembered_until_the_slowest_clock_refuses_it() {
        // red without `remembered` in `revoke`.
        let (shop, claims) = (confidential("shop", "https://shop.test/cb"), claims("shop"));
        let now = Time::from_seconds(claims.iat);
        let revoked = revoke(&shop, &Presented::Jwt(&claims), (&Settings::default(), now));
        let Some(Change::RevokeToken { expires, .. }) = revoked.changes.first() else { panic!("it is revoked") };
        assert_eq!(*expires - SKEW - SKEW, Time::from_seconds(claims.exp));
    }
}
