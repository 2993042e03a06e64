//! The device pages (RFC 8628 §3.3): a code is entered, shown with who asks, and answered.

use super::OwnForm;
use crate::http::error::Refusal;
use crate::http::extract;
use crate::http::oauth::authorize::Door;
use crate::http::reply;
use crate::http::site::Site;
use crate::http::visit::Visit;
use crate::pages::{DeviceCodePage, DeviceConfirmPage, DeviceOutcome, DeviceProblem, DeviceResultPage};
use app::device::{Lookup, Waiting};
use app::flow::{Flow, Place, To};
use axum::Extension;
use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use hyper::{HeaderMap, StatusCode, Uri};
use rules::login::session::Session;
use rules::oauth::device::may_answer;
use rules::people::User;

/// `GET /device[?user_code=…]`: whoever is not signed in signs in first. A code in the link still has to be confirmed.
pub async fn get(
    State(site): State<Site>,
    Extension(visit): Extension<Visit>,
    uri: Uri,
    headers: HeaderMap,
) -> Response {
    let door = Door { site: &site, visit: &visit, headers: &headers };
    let browser = visit.browser(&site, &headers);
    let code = extract::query(&uri).ok().and_then(|params| params.get("user_code").map(str::to_owned));
    let code = code.filter(|code| code.len() <= 32).unwrap_or_default();
    let now = site.app.clock.now();
    match site.app.session(&browser).await {
        Ok(Some((session, user))) if may_answer(&session, now) => door.enter(&session, &user, &code, None),
        Ok(known) => {
            let mut flow = Flow::new(To::Place(Place::Device(code)), now);
            flow.expects = known.map(|(_, user)| user.id);
            match site.app.sign_in_page(flow, &browser).await {
                Ok(page) => door.sign_in(&page, None, None),
                Err(fault) => door.refuse(fault.into()),
            }
        }
        Err(fault) => door.refuse(fault.into()),
    }
}

/// `POST /device`: `user_code`, `csrf`. Shows who asks.
pub async fn post(
    State(site): State<Site>,
    Extension(visit): Extension<Visit>,
    headers: HeaderMap,
    body: Body,
) -> Response {
    let door = Door { site: &site, visit: &visit, headers: &headers };
    let answer = match door.own_form(body).await {
        Ok(Some(form)) if may_answer(&form.session, site.app.clock.now()) => door.find(&form).await,
        Ok(_) => Ok(reply::see_other(&format!("{}/device", site.url.path()))),
        Err(refusal) => Err(refusal),
    };
    answer.unwrap_or_else(|refusal| door.refuse(refusal))
}

/// `POST /device/confirm`: `user_code`, `csrf`, `decision` of `allow` or `deny`.
pub async fn confirm(
    State(site): State<Site>,
    Extension(visit): Extension<Visit>,
    headers: HeaderMap,
    body: Body,
) -> Response {
    let door = Door { site: &site, visit: &visit, headers: &headers };
    let answer = match door.own_form(body).await {
        Ok(Some(form)) if may_answer(&form.session, site.app.clock.now()) => door.answer(&form).await,
        Ok(_) => Ok(reply::see_other(&format!("{}/device", site.url.path()))),
        Err(refusal) => Err(refusal),
    };
    answer.unwrap_or_else(|refusal| door.refuse(refusal))
}

impl Door<'_> {
    fn enter(&self, session: &Session, user: &User, code: &str, problem: Option<DeviceProblem>) -> Response {
        let csrf = self.site.app.csrf(session);
        let view = DeviceCodePage { csrf: &csrf, user_code: code, problem };
        let status = match problem {
            None => StatusCode::OK,
            Some(DeviceProblem::Unknown) => StatusCode::UNPROCESSABLE_ENTITY,
            Some(DeviceProblem::Throttled { .. }) => StatusCode::TOO_MANY_REQUESTS,
        };
        let mut chrome = self.visit.chrome(self.site, self.headers, None);
        chrome.signed_in = Some(&user.username);
        reply::page(status, self.visit, view.render(&chrome), None)
    }

    async fn find(&self, form: &OwnForm) -> Result<Response, Refusal> {
        let code = form.params.get("user_code").unwrap_or("");
        let app = &self.site.app;
        Ok(match app.device_find(code, &form.session, &form.browser).await? {
            Ok(waiting) => self.confirm_page(form, code, &waiting),
            Err(Lookup::Unknown) => self.enter(&form.session, &form.user, code, Some(DeviceProblem::Unknown)),
            Err(Lookup::Wait(wait)) => {
                let problem = DeviceProblem::Throttled { seconds: wait.whole_seconds() };
                let mut response = self.enter(&form.session, &form.user, code, Some(problem));
                reply::retry_after(&mut response, wait);
                response
            }
        })
    }

    fn confirm_page(&self, form: &OwnForm, code: &str, waiting: &Waiting) -> Response {
        let csrf = self.site.app.csrf(&form.session);
        let scopes: Vec<&str> = waiting.device.scope.tokens().iter().map(String::as_str).collect();
        let view = DeviceConfirmPage {
            csrf: &csrf,
            user_code: code,
            client: &waiting.client.name,
            account: &form.user.username,
            requester: &waiting.device.address,
            requested: waiting.device.asked,
            now: self.site.app.clock.now(),
            scopes: &scopes,
        };
        let mut chrome = self.visit.chrome(self.site, self.headers, None);
        chrome.signed_in = Some(&form.user.username);
        reply::page(StatusCode::OK, self.visit, view.render(&chrome), None)
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
            Ok(waiting) => {
                let outcome = match app.device_answer(&waiting.device, allow, &form.session).await? {
                    Ok(()) if allow => DeviceOutcome::Approved,
                    Ok(()) => DeviceOutcome::Denied,
                    Err(_) => DeviceOutcome::Expired,
                };
                (outcome, Some(waiting.client.name.clone()))
            }
        };
        let view = DeviceResultPage { outcome, client: client.as_deref() };
        let mut chrome = self.visit.chrome(self.site, self.headers, None);
        chrome.signed_in = Some(&form.user.username);
        Ok(reply::page(StatusCode::OK, self.visit, view.render(&chrome), None))
    }
}
