//! RP-Initiated Logout.

use crate::browser::Browser;
use crate::flow::{Flow, Question, Sealed, To};
use crate::{App, Fault};
use rules::login::session::{Session, leave};
use rules::oauth::client::Client;
use rules::oauth::logout::{Ask, Hint, Step, decide};
use rules::oauth::params::Params;
use rules::oauth::redirect::{Mode, Verified};
use rules::people::User;
use std::sync::Arc;

/// What to show or send.
#[derive(Debug)]
pub enum Leaving {
    /// Ask first.
    Confirm {
        /// The flow for the form.
        flow: Sealed,
        /// The application that asks, if it is known.
        client: Option<String>,
        /// The user of the session.
        user: Box<User>,
        /// The session.
        session: Box<Session>,
        /// What part of the request was not used.
        unused: Option<&'static str>,
    },
    /// Nobody is signed in any more. Says where to go, if that is a registered address.
    Left {
        /// The application, if it is known.
        client: Option<String>,
        /// Where to go, `state` included.
        to: Option<String>,
        /// Where the person may go: the same, also if nobody has vouched for the application that asks.
        back: Option<String>,
        /// What part of the request was not used.
        unused: Option<&'static str>,
    },
}

impl App {
    /// Handles a sign-out request of an application, or of a user who typed the address.
    pub async fn logout(&self, params: &Params, browser: &Browser) -> Result<Leaving, Fault> {
        let now = self.clock.now();
        let epoch = self.epoch().await?;
        let hint = match params.get("id_token_hint") {
            Some(token) => self.hint(token, epoch).await?,
            None => None,
        };
        let client = self.party(params, hint.as_ref(), epoch).await?;
        let session = self.session_to_end(browser).await?;
        let ask = Ask {
            hint: hint.as_ref(),
            hint_sent: params.get("id_token_hint").is_some(),
            client_sent: params.get("client_id").is_some(),
            client: client.as_deref(),
            post_logout: params.get("post_logout_redirect_uri"),
            session: session.as_ref().map(|(session, user)| (&session.id, &user.id)),
        };
        let (step, unused) = (decide(&ask), ask.unused());
        let back = ask.destination().map(|to| address(&to, params));
        let name = client.map(|client| client.name.clone());
        match (step, session) {
            (Step::Confirm(_), Some((session, user))) => {
                // A long ID token does not fit. One that fits goes on as it is: what is read from it expires.
                let carried = match params.portable() {
                    Ok(()) => params.clone(),
                    Err(_) => self.without_token(params, epoch).await?,
                };
                let mut flow = Flow::new(To::Out(carried.pairs().to_vec()), now);
                flow.asks = Some(Question::SignOut(session.id.clone()));
                let flow = self.seal(&flow, browser)?;
                let (user, session) = (Box::new(user), Box::new(session));
                Ok(Leaving::Confirm { flow, client: name, user, session, unused })
            }
            (Step::SignOut(to), Some((session, _))) => {
                self.leave(&session, browser).await?;
                Ok(Leaving::Left { client: name, to: to.map(|to| address(&to, params)), back, unused })
            }
            (Step::Confirm(to) | Step::SignOut(to) | Step::Done(to), _) => {
                Ok(Leaving::Left { client: name, to: to.map(|to| address(&to, params)), back, unused })
            }
        }
    }

    /// Signs out after the person said yes.
    pub async fn logout_confirmed(&self, flow: &Flow, browser: &Browser) -> Result<Leaving, Fault> {
        const NOWHERE: Leaving = Leaving::Left { client: None, to: None, back: None, unused: None };
        let To::Out(pairs) = &flow.to else { return Ok(NOWHERE) };
        let Ok(params) = Params::parse(pairs.clone()) else { return Ok(NOWHERE) };
        let epoch = self.epoch().await?;
        let hint = match params.get("id_token_hint") {
            Some(token) => self.hint(token, epoch).await?,
            None => None,
        };
        let client = self.party(&params, hint.as_ref(), epoch).await?;
        if let Some((session, _)) = self.session_to_end(browser).await? {
            self.leave(&session, browser).await?;
        }
        let ask = Ask {
            hint: hint.as_ref(),
            hint_sent: params.get("id_token_hint").is_some(),
            client_sent: params.get("client_id").is_some(),
            client: client.as_deref(),
            post_logout: params.get("post_logout_redirect_uri"),
            session: None,
        };
        let to = ask.destination().map(|to| address(&to, &params));
        let client = client.map(|client| client.name.clone());
        Ok(Leaving::Left { client, back: to.clone(), to, unused: None })
    }

    /// Returns the application that a sign-out request names: by `client_id`, which must not contradict the hint, or by
    /// the hint alone.
    async fn party(&self, params: &Params, hint: Option<&Hint>, epoch: i64) -> Result<Option<Arc<Client>>, Fault> {
        let named = params.get("client_id").map(rules::id::ClientId::from);
        let id = match (named, hint) {
            (Some(named), Some(hint)) if named != hint.client => return Ok(None),
            (Some(named), _) => named,
            (None, Some(hint)) => hint.client.clone(),
            (None, None) => return Ok(None),
        };
        Ok(self.client(&id, epoch).await?.filter(|client| client.is_enabled()))
    }

    /// Ends a session.
    pub async fn leave(&self, session: &Session, browser: &Browser) -> Result<(), Fault> {
        let reply = self.settle(|now, _| async move { Ok(leave(session, &browser.origin.address, now)) }).await?;
        match reply {
            Ok(()) => Ok(()),
            Err(never) => match never {},
        }
    }
}

fn address(to: &Verified, params: &Params) -> String {
    let state: Vec<(&'static str, String)> =
        params.get("state").map(|state| ("state", state.to_owned())).into_iter().collect();
    to.with(Mode::Query, &state)
}
