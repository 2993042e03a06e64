//! Revocation.

use crate::{App, Fault};
use rules::oauth::Error;
use rules::oauth::client::Client;
use rules::oauth::family::RefreshToken;
use rules::oauth::revoke::{Presented, revoke};
use rules::secret::Handle;
use store::tables::families;

impl App {
    /// RFC 7009: after the answer, the token is dead at every endpoint of ours.
    pub async fn revoke(&self, token: &str, client: &Client) -> Result<Result<(), Error>, Fault> {
        if let Some(refresh) = RefreshToken::read(token, &self.keyring.sealing) {
            let refresh = &refresh;
            self.settle(|now, _| async move {
                let found = self.ask(families::ForEnding(&refresh.family)).await?;
                let presented = found.as_ref().map_or(Presented::Unknown, Presented::Refresh);
                Ok(revoke(client, &presented, (&self.realm.settings, now)))
            })
            .await
        } else {
            let claims = self.read_access(token).await?;
            let claims = claims.as_deref();
            let opaque = !token.contains('.');
            self.settle(|now, _| async move {
                let presented = match claims {
                    None => Presented::Unknown,
                    Some(claims) if opaque => Presented::Opaque(Handle::of(token), claims),
                    Some(claims) => Presented::Jwt(claims),
                };
                Ok(revoke(client, &presented, (&self.realm.settings, now)))
            })
            .await
        }
    }
}
