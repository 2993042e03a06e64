//! A login flow: what somebody is on the way to, carried through the pages in a sealed form field. Nothing is stored,
//! so that nothing can pile up; the seal binds it to the browser that began it (CO-07, SE-01).

use crate::authorize::SignIn;
use crate::browser::Browser;
use crate::{App, Fault, entropy};
use rules::Time;
use rules::id::{SessionId, UserId};
use rules::oauth::params::Params;
use rules::oauth::scope::Scope;
use rules::oauth::step::Progress;
use rules::people::User;
use rules::secret::{Secret, base64url, from_base64url, mac, same};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use store::tables::users;

/// The longest sealed flow that is looked at, in bytes.
const LONGEST: usize = 32 * 1024;

/// What somebody is on the way to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Flow {
    /// Where to.
    pub to: To,
    /// When it began.
    pub started: Time,
    /// The session with which somebody chose to go on: the choice is of nobody else who is signed in here by then.
    #[serde(default)]
    pub chose: Option<SessionId>,
    /// The session that somebody signed in to for it.
    #[serde(default)]
    pub proved: Option<SessionId>,
    /// What a page asks of the owner of a session: an answer to another question, or in another session, does not
    /// count (MF-02).
    #[serde(default)]
    pub asks: Option<Question>,
    /// What the consent page has shown: a yes is to nothing else, whatever the application may have by then.
    #[serde(default)]
    pub shown: Option<Scope>,
    /// Whom the sign-in page expects: nobody else will do.
    #[serde(default)]
    pub expects: Option<UserId>,
}

/// What a page asks.
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

/// Pages of ours that need somebody to be signed in. No address comes from a request (OR-01).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Place {
    /// The account home.
    Account,
    /// The form there that changes a password.
    Password,
    /// The page on which a device's code is entered, with the code as far as it is known.
    Device(String),
}

impl Flow {
    /// A flow that begins now.
    pub fn new(to: To, now: Time) -> Self {
        Flow { to, started: now, chose: None, proved: None, asks: None, shown: None, expects: None }
    }
    /// How far it has come, as the rules count, for who is signed in.
    pub fn progress(&self, session: Option<&SessionId>, consented: bool) -> Progress {
        let is_of = |known: Option<&SessionId>| session.is_some() && session == known;
        Progress { proved: is_of(self.proved.as_ref()), chosen: is_of(self.chose.as_ref()), consented }
    }
    /// The parameters of its authorization request.
    pub fn params(&self) -> Option<Params> {
        match &self.to {
            To::Client(pairs) => Params::parse(pairs.clone()).ok(),
            _ => None,
        }
    }
    /// The languages that its request asks for (OpenID Connect Core §3.1.2.1, RP-Initiated Logout §2), as they were sent.
    pub fn ui_locales(&self) -> Option<&str> {
        let (To::Client(pairs) | To::Out(pairs)) = &self.to else { return None };
        pairs.iter().find(|(name, _)| name == "ui_locales").map(|(_, locales)| locales.as_str())
    }
}

/// What a sealed flow says that it is on the way to, whoever sealed it and however long ago: good for nothing but a link,
/// which any site may make.
pub fn destination(text: &str) -> Option<To> {
    let (body, _) = text.split_once('.').filter(|_| text.len() <= LONGEST)?;
    let flow: Flow = serde_json::from_slice(&from_base64url(body)?).ok()?;
    Some(flow.to)
}

/// A flow with the cookie that it is bound to.
#[derive(Clone, Debug)]
pub struct Sealed {
    /// For the form.
    pub text: String,
    /// To be set, also where the browser has it: the time that it is kept begins anew with each flow.
    pub cookie: Option<Secret>,
}

impl App {
    /// The sign-in page of a flow, on the way to an application or to a page of ours.
    pub async fn sign_in_page(&self, flow: Flow, browser: &Browser) -> Result<SignIn, Fault> {
        let scene = self.scene_of(&flow).await?;
        let (flow, expected) = self.who_is_expected(&flow).await?;
        let expected = expected.map(|user| user.username);
        let again = expected.is_some();
        let hinted = || scene.as_ref().and_then(|scene| scene.request.login_hint.clone());
        let login = expected.or_else(hinted).unwrap_or_default();
        Ok(SignIn {
            flow: self.seal(&flow, browser)?,
            client: scene.as_ref().map(|scene| scene.client.name.clone()),
            device: matches!(flow.to, To::Place(Place::Device(_))),
            login,
            again,
            already: None,
        })
    }

    /// Who has to be the one that signs in, and the flow with that: of somebody who was removed meanwhile nothing is expected any more.
    /// Their session went with them, and what is asked for is judged anew.
    pub(crate) async fn who_is_expected<'a>(&self, flow: &'a Flow) -> Result<(Cow<'a, Flow>, Option<User>), Fault> {
        let Some(who) = &flow.expects else { return Ok((Cow::Borrowed(flow), None)) };
        Ok(match self.ask(users::ById(who)).await? {
            Some(user) => (Cow::Borrowed(flow), Some(user)),
            None => (Cow::Owned(Flow { expects: None, ..flow.clone() }), None),
        })
    }

    /// Seals a flow again, after its progress was written into it.
    pub fn reseal(&self, flow: &Flow, browser: &Browser) -> Result<Sealed, Fault> {
        self.seal(flow, browser)
    }

    /// Seals a flow for this browser, whose cookie is a new one if it has none.
    pub(crate) fn seal(&self, flow: &Flow, browser: &Browser) -> Result<Sealed, Fault> {
        let body = serde_json::to_vec(flow).map_err(|error| Fault::Broken(error.to_string()))?;
        let holder = match &browser.flow {
            Some(known) => known.clone(),
            None => entropy::fresh()?.secret("flow"),
        };
        let tag = self.flow_tag(&body, &holder);
        Ok(Sealed { text: format!("{}.{}", base64url(&body), base64url(&tag)), cookie: Some(holder) })
    }

    /// Opens a flow that this browser began within the time that flows have.
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
