//! What a token is worth now: for introspection, userinfo, revocation and our own API.

use crate::tally::Cached;
use crate::{App, Fault};
use rules::Time;
use rules::id::FamilyId;
use rules::jose::{Expect, Times, Typ};
use rules::oauth::Error;
use rules::oauth::client::Client;
use rules::oauth::client_auth::Proof;
use rules::oauth::family::{Found, RefreshToken};
use rules::oauth::introspect::{self, Facts};
use rules::oauth::token::{AccessClaims, family_of};
use rules::secret::Handle;
use serde_json::{Map, Value};
use std::sync::Arc;
use store::tables::{families, groups, realms::AtEpoch, tokens};

/// The longest token that is looked at, in bytes.
const LONGEST: usize = 16 * 1024;

/// A live access token, with what it depends on.
pub struct Live {
    /// Its claims.
    pub claims: Arc<AccessClaims>,
    /// The client to which it was issued.
    pub client: Arc<Client>,
    /// The family that it descends from.
    pub family: Option<Found>,
}

/// Why a token is looked at.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Purpose {
    /// To use it: with the user's groups.
    Use,
    /// To tell whether it may be used.
    Telling,
    /// To end what it depends on: also what a fence holds (0013).
    Ending,
}

/// A token as it was looked at, and the configuration epoch at that moment.
struct Looked {
    epoch: i64,
    live: Option<Live>,
}

impl App {
    /// Returns the claims of an access token of ours, whether it is live or not, and whatever its times are: by another
    /// node's clock it may live, and whoever asks may want to end it.
    pub(crate) async fn read_access(&self, token: &str) -> Result<Option<Arc<AccessClaims>>, Fault> {
        if token.len() > LONGEST {
            return Ok(None);
        }
        if !token.contains('.') {
            return Ok(self.ask(tokens::ByHandle(Handle::of(token))).await?.map(Arc::new));
        }
        let epoch = self.epoch().await?;
        self.checked_at(token, epoch).await
    }

    /// Returns the claims of a signed access token. Its signature is checked once an epoch, since a key may have been
    /// revoked; the cache's key is the hash of the whole token. Its times are left to the rules, which judge them at each
    /// use.
    async fn checked_at(&self, token: &str, epoch: i64) -> Result<Option<Arc<AccessClaims>>, Fault> {
        let handle = Handle::of(token);
        if let Some((at, claims)) = self.checked(&handle)
            && self.counts(at, epoch)
        {
            self.tally.hits.one(Cached::Tokens);
            return Ok(Some(claims));
        }
        self.tally.misses.one(Cached::Tokens);
        let keys = self.keys(epoch).await?;
        let now = self.clock.now();
        let expect = Expect {
            required: &["iss", "sub", "aud", "exp", "iat", "jti", "client_id"],
            times: Times::Unjudged,
            ..Expect::ours(&[Typ::AccessToken, Typ::Jwt], &self.realm.issuer, now)
        };
        let Ok(claims) = rules::jose::verify(token, keys.verifiers(now), &expect) else { return Ok(None) };
        let Ok(claims) = serde_json::from_value::<AccessClaims>(Value::Object(claims.into_map())) else {
            return Ok(None);
        };
        let claims = Arc::new(claims);
        // What is of no more use does not take the place of what is.
        if !Time::from_seconds(claims.exp).has_come(now) {
            self.remember(handle, epoch, &claims);
        }
        Ok(Some(claims))
    }

    /// Returns an access token that may be used now. Family, session, user and client are read at every use.
    pub async fn live(&self, token: &str) -> Result<Option<Live>, Fault> {
        Ok(self.look(token, Purpose::Use).await?.live)
    }

    /// The same for ending what it depends on: what may not be used at present, since the database failed over, can
    /// end, too.
    pub(crate) async fn live_to_end(&self, token: &str) -> Result<Option<Live>, Fault> {
        Ok(self.look(token, Purpose::Ending).await?.live)
    }

    /// Looks at an access token in one round trip, if its claims are known from an earlier look; whether they are still
    /// accepted at the epoch that comes back is decided afterwards.
    async fn look(&self, token: &str, purpose: Purpose) -> Result<Looked, Fault> {
        let known = match token.contains('.') {
            true if token.len() <= LONGEST => self.checked(&Handle::of(token)).map(|(_, claims)| claims),
            _ => None,
        };
        let claims = match known {
            Some(claims) => claims,
            None => match self.read_access(token).await? {
                Some(claims) => claims,
                None => return Ok(Looked { epoch: self.epoch().await?, live: None }),
            },
        };
        let family: Option<FamilyId> = family_of(&claims.jti);
        let leans = AtEpoch(families::OfToken {
            family: family.as_ref(),
            jti: &claims.jti,
            issued: Time::from_seconds(claims.iat),
            to_end: purpose == Purpose::Ending,
        });
        let (read, names) = match purpose {
            Purpose::Use => self.ask((leans, groups::OfFamily(family.as_ref()))).await?,
            Purpose::Telling | Purpose::Ending => (self.ask(leans).await?, Vec::new()),
        };
        let (epoch, (found, revoked)) = self.epoch_of(read)?;
        if token.contains('.') && self.checked_at(token, epoch).await?.is_none() {
            return Ok(Looked { epoch, live: None });
        }
        let found = found.map(|found| Found { groups: names, ..found });
        let client = self.client(&claims.client_id.as_str().into(), epoch).await?;
        let facts = Facts { client: client.as_deref(), family: found.as_ref(), revoked };
        let (settings, now) = (&self.realm.settings, self.clock.now());
        let lives = match purpose {
            Purpose::Use | Purpose::Telling => introspect::is_live(&claims, &facts, settings, now),
            Purpose::Ending => introspect::can_end(&claims, &facts, settings, now),
        };
        let live = client.filter(|_| lives).map(|client| Live { claims, client, family: found });
        Ok(Looked { epoch, live })
    }

    /// Tells what a token is (RFC 7662), to a client that is authenticated, and only if the token concerns it.
    pub async fn introspect(
        &self,
        token: Option<&str>,
        proof: Proof,
    ) -> Result<Result<Map<String, Value>, Error>, Fault> {
        let Some(token) = token else {
            // The caller is authenticated first, whatever is asked.
            let asker = self.asker(proof, self.epoch().await?).await?;
            return Ok(Err(asker.err().unwrap_or(Error::request("token is missing"))));
        };
        if let Some(refresh) = RefreshToken::read(token, &self.keyring.sealing) {
            let epoch = self.epoch().await?;
            return match self.asker(proof, epoch).await? {
                Ok(asker) => self.introspect_refresh(&refresh, &asker).await.map(Ok),
                Err(error) => Ok(Err(error)),
            };
        }
        let Looked { epoch, live } = self.look(token, Purpose::Telling).await?;
        let asker = match self.asker(proof, epoch).await? {
            Ok(asker) => asker,
            Err(error) => return Ok(Err(error)),
        };
        Ok(Ok(match live {
            Some(live) if introspect::may_see(&asker, &live.claims) => {
                let user = live.family.as_ref().and_then(|found| found.user.as_ref());
                introspect::access(&live.claims, (user, &live.client))
            }
            _ => introspect::inactive(),
        }))
    }

    /// Only a client that authenticates may ask (AU-01).
    async fn asker(&self, proof: Proof, epoch: i64) -> Result<Result<Arc<Client>, Error>, Fault> {
        Ok(match self.authenticate_at(proof, epoch).await? {
            Ok(asker) if !asker.proves_itself() => {
                let why = "introspection needs a client that authenticates, and is not native";
                Err(self.not_proved(Some(&asker), why).await)
            }
            other => other,
        })
    }

    async fn introspect_refresh(&self, token: &RefreshToken, asker: &Client) -> Result<Map<String, Value>, Fault> {
        let found = self.ask(families::InContext(Some(&token.family))).await?;
        let now = self.clock.now();
        let live = found.filter(|found| {
            let current = found.family.refresh.as_ref().is_some_and(|r| r.current == token.secret.handle());
            current
                && found.family.is_of(asker)
                && found.is_live(&self.realm.settings, now)
                && !found.family.idle_until.has_come(now)
        });
        Ok(live.map_or_else(introspect::inactive, |found| introspect::refresh(&found, asker, &self.realm)))
    }
}
