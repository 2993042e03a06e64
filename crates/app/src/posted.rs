//! What an application posts to us by way of somebody's browser. Any site may send it, so cookies stay behind
//! (SameSite=Lax), and the browser is asked to come again with the same request as GET. What is wrong for everybody is told at
//! once, and an ID token is not put into an address (CO-11): what was read from it is, signed by us.

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

/// What an ID token never begins with.
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

/// What becomes of an authorization request that was posted.
#[derive(Debug)]
pub enum Posted {
    /// It comes again as GET, with these parameters.
    Again(Params),
    /// This is told.
    Told(Box<Outcome>),
}

impl Posted {
    fn told(outcome: Outcome) -> Self {
        Posted::Told(Box::new(outcome))
    }
}

impl App {
    /// The parameters with which an authorization request that was posted comes again; or what to tell at once. Where its client
    /// or redirect URI is wrong it leads nowhere (RFC 9700 §4.11.2). One that is too long to come again is told so as any other
    /// error is: by a redirect with `prompt=none`, or where the browser's session came along, since it was sent from our site;
    /// otherwise on our page.
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

    /// The parameters with which a sign-out request that was posted comes again: a long ID token is what people post for, and
    /// does not count.
    ///
    /// # Errors
    /// One that is too long.
    pub async fn posted_logout(&self, params: &Params) -> Result<Result<Params, Error>, Fault> {
        let epoch = self.epoch().await?;
        let again = self.without_token(params, epoch).await?;
        Ok(again.portable().map(|()| again))
    }

    /// With what was read from the ID token in its place. One that says nothing here may say much elsewhere: nothing of it is
    /// kept.
    pub(crate) async fn without_token(&self, params: &Params, epoch: i64) -> Result<Params, Fault> {
        let hint = match params.get("id_token_hint") {
            // What was read before stays what it is, and lapses when it lapses.
            Some(read) if self.carried(read).is_some() => return Ok(params.clone()),
            Some(token) => self.hint(token, epoch).await?,
            None => None,
        };
        let carried = hint.map_or_else(|| Ok(MARK.to_owned()), |hint| self.carry(hint))?;
        Ok(params.with("id_token_hint", &carried))
    }

    fn carry(&self, Hint { client, user, session }: Hint) -> Result<String, Fault> {
        // It is looked at once more when the pages of the flow have been gone through.
        let until = self.clock.now() + self.realm.settings.flow_ttl + FOLLOWED_WITHIN;
        let body = serde_json::to_vec(&Carried { client, user, session, until })
            .map_err(|error| Fault::Broken(error.to_string()))?;
        Ok(format!("{MARK}{}.{}", base64url(&body), base64url(&self.hint_tag(&body))))
    }

    /// What was read from an ID token that was posted before; `None` where the text is none of ours.
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
