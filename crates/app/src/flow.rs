//! A login flow: what a user is on the way to, carried through the pages in a sealed form field. Nothing is stored, so
//! nothing can pile up; the seal binds the flow to the browser that began it (CO-07, SE-01).

use crate::browser::Browser;
use crate::{App, Fault, entropy};
use rules::Time;
use rules::id::{LifeId, SessionId, UserId};
use rules::oauth::client::Client;
use rules::oauth::params::Params;
use rules::oauth::scope::Scope;
use rules::oauth::step::Progress;
use rules::secret::{Secret, base64url, from_base64url, mac, same};
use serde::{Deserialize, Serialize};

/// The longest sealed flow that is read, in bytes.
const LONGEST: usize = 32 * 1024;

/// What a user is on the way to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Flow {
    /// Where the flow leads.
    pub to: To,
    /// When it began.
    pub started: Time,
    /// The session with which a user chose to go on: the choice does not hold for another user signed in here by then.
    #[serde(default)]
    pub chose: Option<SessionId>,
    /// The session that a user signed in to for this flow.
    #[serde(default)]
    pub proved: Option<SessionId>,
    /// What a page asks the owner of a session: an answer to another question, or in another session, does not count
    /// (MF-02).
    #[serde(default)]
    pub asks: Option<Question>,
    /// The scope that the consent page has shown: a yes covers nothing else, whatever the application may have by then.
    #[serde(default)]
    pub shown: Option<Scope>,
    /// The application that the consent page has named: a yes is to that one, and to no other that has its id by then.
    #[serde(default)]
    pub named: Option<Named>,
    /// The user whom the sign-in page expects: no other user will do.
    #[serde(default)]
    pub expects: Option<UserId>,
}

/// An application as a page names it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Named {
    /// Its name.
    pub name: String,
    /// Its life: one that was registered again, or whose users are asked from now on, has another.
    pub life: Option<LifeId>,
}

impl Named {
    /// Returns what a page says of an application.
    pub fn of(client: &Client) -> Self {
        Named { name: client.name.clone(), life: client.life().cloned() }
    }
}

/// A question that a page asks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Question {
    /// Whether to go on with this account.
    Choice(SessionId),
    /// Whether an application may have what it asks for.
    Consent(SessionId),
    /// Whether to sign out.
    SignOut(SessionId),
}

/// Where a flow leads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum To {
    /// Back to an application: its authorization request, parameter by parameter.
    Client(Vec<(String, String)>),
    /// To a page of ours.
    Place(Place),
    /// Out: a sign-out request that waits for a confirmation.
    Out(Vec<(String, String)>),
}

/// Pages of ours that need a signed-in user. No address comes from a request (OR-01).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Place {
    /// The account home.
    Account,
    /// The form on the account home that changes a password.
    Password,
    /// The page on which a device's code is entered, with the code as far as it is known.
    Device(String),
}

impl Flow {
    /// Creates a flow that begins now.
    pub fn new(to: To, now: Time) -> Self {
        Flow { to, started: now, chose: None, proved: None, asks: None, shown: None, named: None, expects: None }
    }
    /// Returns how far the flow has come for the session that is signed in, as the rules count.
    pub fn progress(&self, session: Option<&SessionId>, consented: bool) -> Progress {
        let is_of = |known: Option<&SessionId>| session.is_some() && session == known;
        Progress { proved: is_of(self.proved.as_ref()), chosen: is_of(self.chose.as_ref()), consented }
    }
    /// Returns the parameters of the flow's authorization request.
    pub fn params(&self) -> Option<Params> {
        match &self.to {
            To::Client(pairs) => Params::parse(pairs.clone()).ok(),
            _ => None,
        }
    }
    /// The languages that its request asks for, as sent (OpenID Connect Core §3.1.2.1, RP-Initiated Logout §2).
    pub fn ui_locales(&self) -> Option<&str> {
        let (To::Client(pairs) | To::Out(pairs)) = &self.to else { return None };
        pairs.iter().find(|(name, _)| name == "ui_locales").map(|(_, locales)| locales.as_str())
    }
}

/// Returns where a sealed flow says that it leads, whoever sealed it and however long ago: good only for a link, which
/// any site may make.
pub fn destination(text: &str) -> Option<To> {
    let (body, _) = text.split_once('.').filter(|_| text.len() <= LONGEST)?;
    let flow: Flow = serde_json::from_slice(&from_base64url(body)?).ok()?;
    Some(flow.to)
}

/// A sealed flow with the cookie that it is bound to.
#[derive(Clone, Debug)]
pub struct Sealed {
    /// The text for the form.
    pub text: String,
    /// The cookie to set, even if the browser has it already: its lifetime begins anew with each flow.
    pub cookie: Option<Secret>,
}

impl App {
    /// Seals a flow for this browser, which gets a new cookie if it has none.
    pub fn seal(&self, flow: &Flow, browser: &Browser) -> Result<Sealed, Fault> {
        let body = serde_json::to_vec(flow).map_err(|error| Fault::Broken(error.to_string()))?;
        let holder = match &browser.flow {
            Some(known) => known.clone(),
            None => entropy::fresh()?.secret("flow"),
        };
        let tag = self.flow_tag(&body, &holder);
        Ok(Sealed { text: format!("{}.{}", base64url(&body), base64url(&tag)), cookie: Some(holder) })
    }

    /// Opens a flow that this browser began and whose lifetime is not over.
    pub fn open_flow(&self, text: &str, browser: &Browser) -> Option<Flow> {
        if text.len() > LONGEST {
            return None;
        }
        let (body, tag) = text.split_once('.')?;
        let (body, tag) = (from_base64url(body)?, from_base64url(tag)?);
        if !same(&self.flow_tag(&body, browser.flow.as_ref()?), &tag) {
            return None;
        }
        let flow: Flow = serde_json::from_slice(&body).ok()?;
        (!(flow.started + self.realm.settings.flow_ttl).has_come(self.clock.now())).then_some(flow)
    }

    fn flow_tag(&self, body: &[u8], holder: &Secret) -> [u8; 32] {
        mac(&*self.keyring.flow, &[b"flow", self.realm.id.as_str().as_bytes(), holder.reveal().as_bytes(), body])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_a_request_may_hold_its_flow_can_be_read() {
        // Red where `portable` in rules/oauth/params.rs counts less than a flow takes: the sign-in page was shown, and
        // its form was refused.
        for byte in (1..=u8::MAX).map(char::from) {
            let of = |many: usize| Params::parse(vec![("state".to_owned(), String::from(byte).repeat(many))]);
            let most = (1..=12 * 1024).rev().find(|many| of(*many).is_ok_and(|params| params.portable().is_ok()));
            let params = of(most.unwrap()).unwrap();
            let body = serde_json::to_vec(&Flow::new(To::Client(params.pairs().to_vec()), Time(0))).unwrap();
            // Beside it, a consent page's flow holds the scope that it shows, which is among the parameters, too.
            let longest = base64url(&body).len() + 8 * 1024 * 4 / 3 + 2 * PROOF;
            assert!(longest <= LONGEST, "{byte:?}: {longest}");
        }
    }

    /// A MAC in base64url, and about as much for the ids of a user and of a session.
    const PROOF: usize = 43 * 4;
}
