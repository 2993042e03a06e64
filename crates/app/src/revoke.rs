//! Revocation.

use crate::{App, Fault};
use rules::Time;
use rules::decision::Decision;
use rules::oauth::Error;
use rules::oauth::client::Client;
use rules::oauth::family::RefreshToken;
use rules::oauth::revoke::{AccessToken, Outcome, Presented, revoke};
use rules::oauth::token::family_of;
use rules::secret::Handle;
use store::tables::families::{ForEnding, OfToken};
use store::tables::realms::AtEpoch;

impl App {
    /// Revokes a token (RFC 7009): after the answer, it is refused at every endpoint of ours.
    pub async fn revoke(&self, token: &str, client: &Client) -> Result<Result<Outcome, Error>, Fault> {
        if let Some(refresh) = RefreshToken::read(token, &self.keyring.sealing) {
            let refresh = &refresh;
            self.settle(|now, _| async move {
                let found = self.ask(ForEnding(&refresh.family)).await?;
                let presented = found.as_ref().map_or(Presented::Unknown, Presented::Refresh);
                Ok(revoke(client, &presented, (&self.realm.settings, now)))
            })
            .await
        } else {
            self.settle(|now, _| self.revoke_access(token, client, now)).await
        }
    }

    /// What an access token depends on is read behind the fence, too: what may not be used at present has not ended.
    async fn revoke_access(&self, token: &str, client: &Client, now: Time) -> Result<Decision<Outcome, Error>, Fault> {
        let at = (&self.realm.settings, now);
        let Some(claims) = self.read_access(token).await? else {
            return Ok(revoke(client, &Presented::Unknown, at));
        };
        let family = family_of(&claims.jti);
        let leans = AtEpoch(OfToken { family: family.as_ref(), jti: &claims.jti, issued: now, to_end: true });
        let (_, (found, revoked)) = self.epoch_of(self.ask(leans).await?)?;
        let access = AccessToken { claims: &claims, family: found.as_ref().map(|found| &found.family), revoked };
        let presented = match token.contains('.') {
            true => Presented::Jwt(access),
            false => Presented::Opaque(Handle::of(token), access),
        };
        Ok(revoke(client, &presented, at))
    }
}
