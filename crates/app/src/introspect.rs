//! What a token is worth now: for introspection, userinfo, revocation and our own API.

use crate::{App, Fault};
use rules::id::FamilyId;
use rules::jose::{Alg, Expect, Typ};
use rules::oauth::client::Client;
use rules::oauth::family::{Found, RefreshToken};
use rules::oauth::introspect::{self, Facts};
use rules::oauth::token::{AccessClaims, family_of};
use rules::secret::Handle;
use serde_json::{Map, Value};
use std::sync::Arc;
use store::tables::{families, groups, realms::Epoch, tokens};

/// Longest token that is looked at, in bytes.
const LONGEST: usize = 16 * 1024;

/// A live access token, with what it leans on.
pub struct Live {
    /// What it says.
    pub claims: Arc<AccessClaims>,
    /// What it descends from.
    pub family: Option<Found>,
}

impl App {
    /// The claims of an access token of ours, whether it is live or not. The signature is checked once an epoch; the
    /// cache's key is the hash of the whole token.
    pub(crate) async fn read_access(&self, token: &str) -> Result<Option<Arc<AccessClaims>>, Fault> {
        if token.len() > LONGEST {
            return Ok(None);
        }
        let handle = Handle::of(token);
        if !token.contains('.') {
            return Ok(self.ask(tokens::ByHandle(handle)).await?.map(Arc::new));
        }
        let epoch = self.epoch().await?;
        if let Some(claims) = self.checked(&handle, epoch) {
            return Ok(Some(claims));
        }
        let keys = self.keys(epoch).await?;
        let now = self.clock.now();
        let expect = Expect {
            required: &["iss", "sub", "aud", "exp", "iat", "jti", "client_id"],
            issuer: Some(&self.realm.issuer),
            ..Expect::new(&[Alg::RS256, Alg::ES256, Alg::EdDSA], &[Typ::AccessToken, Typ::Jwt], now)
        };
        let Ok(claims) = rules::jose::verify(token, keys.verifiers(now), &expect) else { return Ok(None) };
        let Ok(claims) = serde_json::from_value::<AccessClaims>(Value::Object(claims.into_map())) else {
            return Ok(None);
        };
        let claims = Arc::new(claims);
        self.remember(handle, epoch, &claims);
        Ok(Some(claims))
    }

    /// An access token that may be used now. Family, session, person and client are read at every use.
    pub async fn live(&self, token: &str) -> Result<Option<Live>, Fault> {
        let Some(claims) = self.read_access(token).await? else { return Ok(None) };
        let family: Option<FamilyId> = family_of(&claims.jti);
        let (epoch, found, names, revoked) = self
            .ask((
                Epoch,
                families::InContext(family.as_ref()),
                groups::OfFamily(family.as_ref()),
                tokens::IsRevoked(&claims.jti),
            ))
            .await?;
        let found = found.map(|found| Found { groups: names, ..found });
        let client = self.client(&claims.client_id.as_str().into(), self.epoch_of(epoch)?).await?;
        let facts = Facts { client: client.as_deref(), family: found.as_ref(), revoked };
        let live = introspect::is_live(&claims, &facts, &self.realm.settings, self.clock.now());
        Ok(live.then_some(Live { claims, family: found }))
    }

    /// RFC 7662: what a token is, told to `asker` only if it concerns them.
    pub async fn introspect(&self, token: &str, asker: &Client) -> Result<Map<String, Value>, Fault> {
        if let Some(refresh) = RefreshToken::read(token, &self.keyring.sealing) {
            return self.introspect_refresh(&refresh, asker).await;
        }
        Ok(match self.live(token).await? {
            Some(live) if introspect::may_see(asker, &live.claims) => {
                let user = live.family.as_ref().and_then(|found| found.user.as_ref());
                introspect::access(&live.claims, user.map(|user| user.username.as_str()))
            }
            _ => introspect::inactive(),
        })
    }

    async fn introspect_refresh(&self, token: &RefreshToken, asker: &Client) -> Result<Map<String, Value>, Fault> {
        let found = self.ask(families::InContext(Some(&token.family))).await?;
        let now = self.clock.now();
        let live = found.filter(|found| {
            let current = found.family.refresh.as_ref().is_some_and(|r| r.current == token.secret.handle());
            current
                && found.family.client == asker.id
                && found.family.created >= asker.since()
                && found.is_live(&self.realm.settings, now)
                && !found.family.idle_until.has_come(now)
        });
        Ok(live.map_or_else(introspect::inactive, |found| introspect::refresh(&found, &self.realm.issuer)))
    }
}
