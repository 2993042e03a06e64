//! The set-up page: the first account.

use super::{Posted, problem};
use crate::http::error::Refusal;
use crate::http::oauth::authorize::Door;
use crate::http::reply;
use crate::http::site::Site;
use crate::http::visit::Visit;
use crate::pages::{Notice, Problem, SetupClosed, SetupClosedPage, SetupPage};
use app::setup::Refused;
use app::sign_up::NewPerson;
use axum::Extension;
use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use hyper::{HeaderMap, StatusCode};
use rules::oauth::params::Params;

/// `GET /setup`. The secret of the link is in the fragment and does not reach us yet.
pub async fn get(State(site): State<Site>, Extension(visit): Extension<Visit>, headers: HeaderMap) -> Response {
    let door = Door { site: &site, visit: &visit, headers: &headers };
    let open = async { Ok::<_, app::Fault>((site.app.has_owner().await?, site.app.setup_is_open().await?)) };
    match open.await {
        Ok((true, _)) => door.closed(SetupClosed::Done),
        Ok((false, false)) => door.closed(SetupClosed::Expired),
        Ok((false, true)) => door.setup(&Params::default(), &[]),
        Err(fault) => door.refuse(fault.into()),
    }
}

/// `POST /setup`: `token`, `username`, `email`, `password`. The token itself proves that the form is not forged: only
/// who was given the link has it.
pub async fn post(
    State(site): State<Site>,
    Extension(visit): Extension<Visit>,
    headers: HeaderMap,
    body: Body,
) -> Response {
    let door = Door { site: &site, visit: &visit, headers: &headers };
    match set_up(&door, body).await {
        Ok(response) => response,
        Err(refusal) => door.refuse(refusal),
    }
}

async fn set_up(door: &Door<'_>, body: Body) -> Result<Response, Refusal> {
    let Posted { params, browser } = door.posted(body).await?;
    let typed = NewPerson {
        username: params.get("username").unwrap_or(""),
        email: params.get("email").unwrap_or(""),
        password: params.get("password").unwrap_or("").as_bytes(),
    };
    match door.site.app.set_up(params.get("token").unwrap_or("").trim(), &typed, &browser).await? {
        Ok(started) => {
            let place = format!("{}/account?done={}", door.site.url.path(), Notice::Welcome.code());
            let mut response = reply::see_other(&place);
            reply::session_cookie(&mut response, door.site, &started);
            Ok(response)
        }
        Err(Refused::Done) => Ok(door.closed(SetupClosed::Done)),
        Err(Refused::Link) => Ok(door.setup(&params, &[Problem::SetupCode])),
        Err(Refused::Problems(problems)) => {
            let problems: Vec<Problem> = problems.into_iter().map(problem).collect();
            Ok(door.setup(&params, &problems))
        }
    }
}

impl Door<'_> {
    fn setup(&self, typed: &Params, problems: &[Problem]) -> Response {
        let view = SetupPage {
            csrf: "",
            token: typed.get("token").unwrap_or(""),
            username: typed.get("username").unwrap_or(""),
            email: typed.get("email").unwrap_or(""),
            minimum_password: self.site.app.realm.settings.password_min,
            problems,
        };
        let status = if problems.is_empty() { StatusCode::OK } else { StatusCode::UNPROCESSABLE_ENTITY };
        reply::page(status, self.visit, view.render(&self.visit.chrome(self.site, self.headers, None)), None)
    }

    fn closed(&self, reason: SetupClosed) -> Response {
        let html = SetupClosedPage { reason }.render(&self.visit.chrome(self.site, self.headers, None));
        reply::page(StatusCode::GONE, self.visit, html, None)
    }
}
