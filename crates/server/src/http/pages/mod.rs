//! The doors of this server's own pages.

pub mod account;
pub mod assets;
pub mod device;
pub mod home;
pub mod login;
pub mod setup;
pub mod signup;

use super::door::Door;
use super::error::Refusal;
use super::reply::Forms;
use app::authorize::SignIn;
use app::browser::Browser;
use app::flow::{Flow, Place, To};
use axum::body::Body;
use rules::login::session::Session;
use rules::oauth::params::Params;
use rules::people::User;
use rules::people::names::BadName;

/// The longest link that starts again what a page was for, in bytes: proxies accept no longer ones.
const LONGEST_LINK: usize = 8192;

/// A form that the owner of a session posted from a page of ours.
pub struct OwnForm {
    /// What was sent.
    pub params: Params,
    /// The browser.
    pub browser: Browser,
    /// Its session.
    pub session: Session,
    /// Whose it is.
    pub user: User,
}

/// A form of ours that a browser posted.
#[derive(Clone)]
pub struct Posted {
    /// What was sent.
    pub params: Params,
    /// The browser.
    pub browser: Browser,
}

impl Door {
    /// Returns the login flow that a link carries on.
    fn flow_text(&self) -> Option<String> {
        super::extract::flow(&self.uri)
    }

    /// Refuses because a flow cannot go on, and says where its request can be started again.
    fn stale(&self, flow: &str) -> Refusal {
        Refusal::Stale(self.anew_of(flow))
    }

    fn anew_of(&self, flow: &str) -> Option<String> {
        app::flow::destination(flow).and_then(|to| self.anew(&to))
    }

    /// Returns the link that starts again on the way to `to`.
    pub fn anew(&self, to: &To) -> Option<String> {
        let link = match to {
            To::Client(request) => self.site.link("/oauth2/authorize", request),
            To::Place(Place::Device(code)) => self.site.link("/device", &[("user_code".into(), code.clone())]),
            To::Place(Place::Password) => self.site.link("/login", &[("change".into(), "1".into())]),
            To::Out(request) => self.site.link("/oauth2/logout", request),
            To::Place(Place::Account) => return None,
        };
        (link.len() <= LONGEST_LINK).then_some(link)
    }

    /// Returns the languages that a link asks for, by itself or by the login flow that it carries on.
    pub fn locales_of_link(&self) -> Option<String> {
        // Refusals at the door ask for it: nothing but that one value is decoded.
        let query = self.uri.query()?;
        let named = |name: &str| {
            let is_it = |pair: &&str| pair.strip_prefix(name).is_some_and(|rest| rest.starts_with('='));
            let pair = query.split('&').find(is_it)?;
            form_urlencoded::parse(pair.as_bytes()).next().map(|(_, value)| value)
        };
        match named("ui_locales") {
            Some(locales) => Some(locales.into_owned()),
            None => self.site.app.open_flow(&named("flow")?, &self.browser())?.ui_locales().map(str::to_owned),
        }
    }

    /// Reads a form and checks that it comes from a page of ours: no door can read a form without that check.
    pub async fn posted(&self, body: Body) -> Result<Posted, Refusal> {
        super::extract::own_form(&self.site, &self.headers)?;
        let params = super::extract::form(&self.site, &self.headers, body).await?;
        Ok(Posted { params, browser: self.browser() })
    }

    /// Reads such a form together with the login flow that it carries on.
    pub async fn posted_flow(&self, body: Body) -> Result<(Posted, Flow), Refusal> {
        let posted = self.posted(body).await?;
        let text = posted.params.get("flow").unwrap_or("");
        let flow = self.site.app.open_flow(text, &posted.browser).ok_or_else(|| match posted.browser.flow {
            Some(_) => self.stale(text),
            // The page came from us a moment ago, with a cookie.
            None => Refusal::NoCookie(self.anew_of(text)),
        })?;
        Ok((posted, flow))
    }

    /// Reads a form that needs a session and its CSRF token. `None` if nobody is signed in.
    pub async fn own_form(&self, body: Body) -> Result<Option<OwnForm>, Refusal> {
        let posted = self.posted(body).await?;
        self.own(posted).await
    }

    /// Checks the session and the CSRF token of a form that was read already.
    pub async fn own(&self, posted: Posted) -> Result<Option<OwnForm>, Refusal> {
        let found = self.site.app.session(&posted.browser).await?;
        let form = self.of(posted, found)?;
        if let Some(form) = &form {
            self.site.app.note_use(&form.session).await;
        }
        Ok(form)
    }

    /// Reads a form that ends its session. A session that may not be used at present, since the database failed over,
    /// ends too: a user who was sent to the sign-in page instead would think that it had ended.
    pub async fn own_form_to_end(&self, body: Body) -> Result<Option<OwnForm>, Refusal> {
        let posted = self.posted(body).await?;
        let found = self.site.app.session_to_end(&posted.browser).await?;
        self.of(posted, found)
    }

    fn of(&self, posted: Posted, found: Option<(Session, User)>) -> Result<Option<OwnForm>, Refusal> {
        let Posted { params, browser } = posted;
        let Some((session, user)) = found else { return Ok(None) };
        self.must_be_of(&session, &params)?;
        Ok(Some(OwnForm { params, browser, session, user }))
    }

    /// Refuses a form without the token of a session as foreign, and one with another token as stale: its page is older
    /// than the session is now, because the user signed in again in another window.
    pub fn must_be_of(&self, session: &Session, params: &Params) -> Result<(), Refusal> {
        match params.get("csrf") {
            Some(token) if self.site.app.csrf_holds(session, token) => Ok(()),
            Some(_) => Err(Refusal::Stale(None)),
            None => Err(Refusal::Forgery),
        }
    }
}

/// Without an application, the forms of a page lead to the account.
fn forms(page: &SignIn) -> Forms<'static> {
    if page.client.is_some() { Forms::Leave } else { Forms::Stay }
}

/// Translates what was wrong with a new account into the terms of the pages.
pub fn problem(problem: app::sign_up::Problem) -> crate::pages::Problem {
    use app::sign_up::Problem;
    match problem {
        Problem::Username(BadName::Id) => crate::pages::Problem::UsernameForm,
        Problem::Username(_) => crate::pages::Problem::Username,
        Problem::Email(_) => crate::pages::Problem::Email,
        Problem::NameTaken => crate::pages::Problem::UsernameTaken,
        Problem::EmailTaken => crate::pages::Problem::EmailTaken,
        Problem::Password(weak) => weakness(weak),
    }
}

/// Translates what was wrong with a password.
pub fn weakness(weak: rules::login::password::Weak) -> crate::pages::Problem {
    use crate::pages::Problem;
    use rules::login::password::Weak;
    match weak {
        Weak::TooShort { min } => Problem::PasswordShort { minimum: min },
        Weak::TooLong | Weak::NotText => Problem::PasswordLong,
        Weak::Common => Problem::PasswordCommon,
        Weak::Personal => Problem::PasswordPersonal,
    }
}
