//! The device pages (RFC 8628 §3.3): a code is entered, shown with the client that asks, and answered.

use super::OwnForm;
use crate::http::door::Door;
use crate::http::error::Refusal;
use crate::http::extract;
use crate::http::reply::{self, Forms};
use crate::pages::{DeviceCodePage, DeviceConfirmPage, DeviceOutcome, DeviceProblem, DeviceResultPage};
use app::device::{Ending, Lookup, Waiting};
use app::flow::{Flow, Place, To};
use axum::body::Body;
use axum::response::Response;
use hyper::StatusCode;
use rules::login::session::Session;
use rules::oauth::ErrorCode;
use rules::oauth::device::as_shown;
use rules::oauth::params::Params;
use rules::people::User;

/// `GET /device[?user_code=…]`: a user who is not signed in signs in first. A code in the link still has to be
/// confirmed. With `done`, `client` and `seal`: shows how an answer ended, to the user who gave it.
pub async fn get(door: Door, _: Body) -> Result<Response, Refusal> {
    let (app, browser) = (&door.site.app, door.browser());
    let params = extract::query(&door.uri).unwrap_or_default();
    let code = params.get("user_code").filter(|code| code.len() <= 32).unwrap_or_default().to_owned();
    let (now, known) = (app.clock.now(), app.session_in_use(&browser).await?);
    if let Some(whose) = &known
        && let Some(said) = door.ended(&params, whose).await?
    {
        return Ok(said);
    }
    match known {
        Some((session, user)) if session.is_fresh(now) => Ok(door.enter(&session, &user, &code, None)),
        known => {
            // As at the sign-in page: a user who would be refused after typing is refused before.
            app.has_time_for_newcomer(&browser).await?;
            let mut flow = Flow::new(To::Place(Place::Device(code)), now);
            flow.expects = known.map(|(_, user)| user.id);
            let page = app.sign_in_page(flow, &browser).await?;
            Ok(door.sign_in(&page, None, None))
        }
    }
}

/// `POST /device`: `user_code`, `csrf`. Shows which client asks.
pub async fn post(door: Door, body: Body) -> Result<Response, Refusal> {
    match door.recent_form(body).await? {
        Ok(form) => door.find(&form).await,
        Err(code) => Ok(door.start_again(&code)),
    }
}

/// `POST /device/confirm`: `user_code`, `csrf`, `shown`, `decision` of `allow` or `deny`. If the application may have other
/// things by now than its page showed, the page is shown again.
pub async fn confirm(door: Door, body: Body) -> Result<Response, Refusal> {
    match door.recent_form(body).await? {
        Ok(form) => door.answer(&form).await,
        Err(code) => Ok(door.start_again(&code)),
    }
}

impl Door {
    /// Returns the form of a user who signed in a short time ago, or else the code that it had.
    async fn recent_form(&self, body: Body) -> Result<Result<OwnForm, String>, Refusal> {
        let now = self.site.app.clock.now();
        let posted = self.posted(body).await?;
        let code = posted.params.get("user_code").unwrap_or("").to_owned();
        Ok(self.own(posted).await?.filter(|form| form.session.is_fresh(now)).ok_or(code))
    }

    /// Leads to the sign-in page, and from there back here with the code as it was typed.
    fn start_again(&self, code: &str) -> Response {
        /// Longer than any code, however it is written.
        const LONGEST: usize = 64;
        let typed = (!code.is_empty() && code.len() <= LONGEST).then(|| ("user_code".to_owned(), code.to_owned()));
        reply::see_other(&self.site.link("/device", typed.as_slice()))
    }

    fn enter(&self, session: &Session, user: &User, code: &str, problem: Option<DeviceProblem>) -> Response {
        let csrf = self.site.app.csrf(session);
        let view = DeviceCodePage { csrf: &csrf, user_code: code, problem };
        let chrome = self.chrome_of(user);
        reply::form(problem.map(DeviceProblem::setback), &self.visit, view.render(&chrome), Forms::Stay)
    }

    async fn find(&self, form: &OwnForm) -> Result<Response, Refusal> {
        let code = form.params.get("user_code").unwrap_or("");
        let app = &self.site.app;
        Ok(match app.device_find(code, &form.session, &form.browser).await? {
            Ok(waiting) => self.confirm_page(form, code, &waiting)?,
            Err(Lookup::Unknown) => self.enter(&form.session, &form.user, code, Some(DeviceProblem::Unknown)),
            Err(Lookup::Wait(wait)) => {
                let problem = DeviceProblem::Throttled { seconds: wait.whole_seconds() };
                self.enter(&form.session, &form.user, code, Some(problem))
            }
        })
    }

    fn confirm_page(&self, form: &OwnForm, code: &str, waiting: &Waiting) -> Result<Response, Refusal> {
        let (app, code) = (&self.site.app, as_shown(code));
        let now = app.clock.now();
        // For a user who is not the one signed in.
        let flow = app.seal(&Flow::new(To::Place(Place::Device(code.clone())), now), &form.browser)?;
        let csrf = app.csrf(&form.session);
        let shown = app.seal_shown(&waiting.device, &form.session);
        let scopes: Vec<&str> = waiting.device.scope.tokens().iter().map(String::as_str).collect();
        let view = DeviceConfirmPage {
            flow: &flow.text,
            csrf: &csrf,
            user_code: &code,
            shown: &shown,
            client: &waiting.client.name,
            account: &form.user.username,
            requester: &waiting.device.address,
            requested: waiting.device.asked,
            now,
            scopes: &scopes,
        };
        let chrome = self.chrome_of(&form.user);
        let mut response = reply::page(StatusCode::OK, &self.visit, view.render(&chrome), Forms::Stay);
        reply::flow_cookie(&mut response, &self.site, flow.cookie.as_ref());
        Ok(response)
    }

    async fn answer(&self, form: &OwnForm) -> Result<Response, Refusal> {
        let app = &self.site.app;
        let allow = match form.params.get("decision") {
            Some("allow") => true,
            Some("deny") => false,
            _ => return Err(rules::oauth::Error::request("decision must be allow or deny").into()),
        };
        let found = app.device_find(form.params.get("user_code").unwrap_or(""), &form.session, &form.browser).await?;
        let (outcome, client) = match found {
            Err(Lookup::Wait(wait)) => return Err(Refusal::Wait(wait)),
            Err(Lookup::Unknown) => (DeviceOutcome::Invalid, None),
            Ok(waiting)
                if allow && !app.has_shown(&waiting.device, form.params.get("shown").unwrap_or(""), &form.session) =>
            {
                return self.confirm_page(form, form.params.get("user_code").unwrap_or(""), &waiting);
            }
            Ok(waiting) => {
                let outcome = match app.device_answer(&waiting.device, allow, &form.session).await? {
                    Ok(()) if allow => DeviceOutcome::Approved,
                    Ok(()) => DeviceOutcome::Denied,
                    Err(error) if error.code == ErrorCode::LoginRequired => {
                        return Ok(self.start_again(form.params.get("user_code").unwrap_or("")));
                    }
                    // Answered already: by the same user in another window, or by somebody else.
                    Err(error) if error.code == ErrorCode::InvalidGrant => DeviceOutcome::Invalid,
                    Err(_) => DeviceOutcome::Expired,
                };
                (outcome, Some(waiting.client.id.0.clone()))
            }
        };
        let ending = Ending { done: outcome.code(), client: client.as_deref().unwrap_or("") };
        let seal = app.seal_ending(&ending, &form.session);
        let told = [("done", ending.done), ("client", ending.client), ("seal", &seal)];
        let pairs = told.map(|(name, value)| (name.to_owned(), value.to_owned()));
        Ok(reply::see_other(&self.site.link("/device", &pairs)))
    }

    /// Returns the page that says how an answer ended. Reloading it gives no answer again.
    async fn ended(&self, params: &Params, (session, user): &(Session, User)) -> Result<Option<Response>, Refusal> {
        let (Some(done), Some(seal)) = (params.get("done"), params.get("seal")) else { return Ok(None) };
        let ending = Ending { done, client: params.get("client").unwrap_or("") };
        let ours = self.site.app.open_ending(&ending, seal, session).await?;
        let (Some(client), Some(outcome)) = (ours, DeviceOutcome::of_code(done)) else { return Ok(None) };
        let view = DeviceResultPage { outcome, client: client.as_deref() };
        let chrome = self.chrome_of(user);
        Ok(Some(reply::page(StatusCode::OK, &self.visit, view.render(&chrome), Forms::Stay)))
    }
}
