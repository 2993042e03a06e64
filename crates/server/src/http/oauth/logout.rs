//! The end-session endpoint (RP-Initiated Logout 1.0).

use super::authorize::{Door, with_query};
use crate::http::error::Refusal;
use crate::http::extract;
use crate::http::pages::Posted;
use crate::http::reply;
use crate::http::site::Site;
use crate::http::visit::Visit;
use crate::pages::{Back, SignOutPage, SignedOutPage};
use app::flow::Question;
use app::logout::Leaving;
use axum::Extension;
use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use hyper::{HeaderMap, StatusCode, Uri};

/// `GET /oauth2/logout`.
pub async fn get(
    State(site): State<Site>,
    Extension(visit): Extension<Visit>,
    uri: Uri,
    headers: HeaderMap,
) -> Response {
    let door = Door { site: &site, visit: &visit, headers: &headers };
    let params = match extract::query(&uri) {
        Ok(params) => params,
        Err(error) => return door.refuse(error.into()),
    };
    let locales = params.get("ui_locales").map(str::to_owned);
    match site.app.logout(&params, &visit.browser(&site, &headers)).await {
        Ok(leaving) => door.leave(&leaving, locales.as_deref()),
        Err(fault) => door.refuse(fault.into()),
    }
}

/// `POST /oauth2/logout`: from any site, so the same request as GET, one 303 later.
pub async fn post(
    State(site): State<Site>,
    Extension(visit): Extension<Visit>,
    headers: HeaderMap,
    body: Body,
) -> Response {
    let door = Door { site: &site, visit: &visit, headers: &headers };
    match extract::form(&site, &headers, body).await {
        Err(refusal) => door.refuse(refusal),
        Ok(params) => reply::see_other(&with_query(&site, "/oauth2/logout", params.pairs())),
    }
}

/// `POST /oauth2/logout/confirm`: `flow`, `csrf`, `decision` of `sign_out` or `stay`.
pub async fn confirm(
    State(site): State<Site>,
    Extension(visit): Extension<Visit>,
    headers: HeaderMap,
    body: Body,
) -> Response {
    let door = Door { site: &site, visit: &visit, headers: &headers };
    match confirmed(&door, body).await {
        Ok(response) => response,
        Err(refusal) => door.refuse(refusal),
    }
}

async fn confirmed(door: &Door<'_>, body: Body) -> Result<Response, Refusal> {
    let (Posted { params, browser }, flow) = door.posted_flow(body).await?;
    let app = &door.site.app;
    if let Some((session, _)) = app.session(&browser).await? {
        if !app.csrf_holds(&session, params.get("csrf").unwrap_or("")) {
            return Err(Refusal::Forgery);
        }
        if flow.asks != Some(Question::SignOut(session.id)) {
            return Err(Refusal::Stale);
        }
    }
    if params.get("decision") != Some("sign_out") {
        return Ok(reply::see_other(&format!("{}/account", door.site.url.path())));
    }
    Ok(door.leave(&app.logout_confirmed(&flow, &browser).await?, None))
}

impl Door<'_> {
    /// Asks, or goes, or says that nobody is signed in any more.
    fn leave(&self, leaving: &Leaving, locales: Option<&str>) -> Response {
        let chrome = self.visit.chrome(self.site, self.headers, locales);
        match leaving {
            Leaving::Confirm { flow, client, user, session, destination } => {
                let csrf = self.site.app.csrf(session);
                let view =
                    SignOutPage { flow: &flow.text, csrf: &csrf, client: client.as_deref(), account: &user.username };
                let html = view.render(&chrome);
                let mut response = reply::page(StatusCode::OK, self.visit, html, destination.as_deref());
                reply::flow_cookie(&mut response, self.site, flow.cookie.as_ref());
                response
            }
            Leaving::Left { to: Some(to), .. } => {
                let mut response = reply::see_other(to);
                self.forget_session(&mut response);
                response
            }
            Leaving::Left { client: _, to: None } => {
                let view = SignedOutPage { back: None::<Back<'_>> };
                let mut response = reply::page(StatusCode::OK, self.visit, view.render(&chrome), None);
                self.forget_session(&mut response);
                response
            }
        }
    }
}
