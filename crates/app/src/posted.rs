//! What an application posts to us through a user's browser. Any site may send it, so the browser holds its cookies
//! back (SameSite=Lax), and is asked to send the same request again as GET. An error that is the same for every user is
//! reported at once, and an ID token is not put into a URL (CO-11): what was read from it is, signed by us.

use crate::authorize::Outcome;
use crate::browser::Browser;
use crate::{App, Fault};
use rules::id::{ClientId, SessionId, UserId};
use rules::oauth::authorize;
use rules::oauth::error::Error;
use rules::oauth::logout::Hint;
use rules::oauth::params::Params;
use rules::secret::{base64url, from_base64url, mac, same};
use rules::{Span, Time};
use serde::{Deserialize, Serialize};

/// The beginning of what was read; no ID token begins like this.
const MARK: &str = "read.";
/// How long a browser may take to come again.
const FOLLOWED_WITHIN: Span = Span::minutes(5);

/// What was read from an ID token.
#[derive(Serialize, Deserialize)]
struct Carried {
    client: ClientId,
    user: UserId,
    session: Option<SessionId>,
    until: Time,
}

/// What becomes of a posted authorization request.
#[derive(Debug)]
pub enum Posted {
    /// The browser sends it again as GET, with these parameters.
    Again(Params),
    /// The browser is told this.
    Told(Box<Outcome>),
}

impl Posted {
    fn told(outcome: Outcome) -> Self {
        Posted::Told(Box::new(outcome))
    }
}

impl App {
    /// Returns the parameters with which a posted authorization request comes again, or what to answer at once. If its
    /// client or redirect URI is wrong, it leads nowhere (RFC 9700 §4.11.2). A request that is too long to come again
    /// is refused like any other error: by a redirect with `prompt=none`, or if the browser's session came along, since
    /// the request was then sent from our site; otherwise on our page.
    pub async fn posted_authorize(&self, params: &Params, browser: &Browser) -> Result<Posted, Fault> {
        let epoch = self.epoch().await?;
        let client = match authorize::client_id(params) {
            Ok(client) => self.client(&client, epoch).await?,
            Err(error) => return Ok(Posted::told(Outcome::Refused(error, None))),
        };
        let again = self.without_token(params, epoch).await?;
        match (authorize::read(&again, client.as_deref(), &self.realm), again.portable()) {
            (Err(authorize::Fault::Local(error)), _) => Ok(Posted::told(Outcome::Refused(error, None))),
            (_, Ok(())) => Ok(Posted::Again(again)),
            (Err(authorize::Fault::Client { error, back, silent }), Err(_)) => {
                let at_once = silent || self.session(browser).await?.is_some();
                Ok(Posted::told(self.tell(error, &back, client.as_ref(), at_once)))
            }
            // Reading refuses what is not portable.
            (Ok(_), Err(error)) => Ok(Posted::told(Outcome::Refused(error, None))),
        }
    }

    /// Returns the parameters with which a posted sign-out request comes again: a long ID token, which is why
    /// applications post, does not count.
    ///
    /// # Errors
    /// A request that is too long.
    pub async fn posted_logout(&self, params: &Params) -> Result<Result<Params, Error>, Fault> {
        let epoch = self.epoch().await?;
        let again = self.without_token(params, epoch).await?;
        Ok(again.portable().map(|()| again))
    }

    /// Puts what was read from the ID token in its place. A token that says nothing here may say much elsewhere:
    /// nothing of it is kept.
    pub(crate) async fn without_token(&self, params: &Params, epoch: i64) -> Result<Params, Fault> {
        let hint = match params.get("id_token_hint") {
            // What was read before stays as it is, and expires when it does.
            Some(read) if self.carried(read).is_some() => return Ok(params.clone()),
            Some(token) => self.hint(token, epoch).await?,
            None => None,
        };
        let carried = hint.map_or_else(|| Ok(MARK.to_owned()), |hint| self.carry(hint))?;
        Ok(params.with("id_token_hint", &carried))
    }

    fn carry(&self, Hint { client, user, session }: Hint) -> Result<String, Fault> {
        // It is checked once more after the pages of the flow.
        let until = self.clock.now() + self.realm.settings.flow_ttl + FOLLOWED_WITHIN;
        let body = serde_json::to_vec(&Carried { client, user, session, until })
            .map_err(|error| Fault::Broken(error.to_string()))?;
        Ok(format!("{MARK}{}.{}", base64url(&body), base64url(&self.hint_tag(&body))))
    }

    /// Returns what was read from an ID token that was posted before; `None` if the text is not ours, or has expired.
    pub(crate) fn carried(&self, text: &str) -> Option<Hint> {
        let (body, tag) = text.strip_prefix(MARK)?.split_once('.')?;
        let (body, tag) = (from_base64url(body)?, from_base64url(tag)?);
        if !same(&self.hint_tag(&body), &tag) {
            return None;
        }
        let Carried { client, user, session, until } = serde_json::from_slice(&body).ok()?;
        (!until.has_come(self.clock.now())).then_some(Hint { client, user, session })
    }

    fn hint_tag(&self, body: &[u8]) -> [u8; 32] {
        mac(&*self.keyring.flow, &[b"hint", self.realm.id.as_str().as_bytes(), body])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sent_again_is_not_printed() {
        // Red where Params derives Debug: a login hint, a state or a token would be in whatever prints this.
        let pairs = vec![("state".to_owned(), "gorse-violet-anvil".to_owned())];
        let printed = format!("{:?}", Posted::Again(Params::parse(pairs).unwrap()));
        assert_eq!(printed, r#"Again(Params["state"])"#);
    }
}
