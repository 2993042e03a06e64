//! The set-up page: the first account.

use super::{Posted, problem};
use crate::http::door::Door;
use crate::http::error::Refusal;
use crate::http::reply::{self, Forms};
use crate::pages::{Notice, Problem, Setback, SetupClosed, SetupClosedPage, SetupPage};
use app::setup::{Refused, SetUp};
use app::sign_up::NewPerson;
use axum::body::Body;
use axum::response::Response;
use hyper::StatusCode;
use rules::oauth::params::Params;

/// `GET /setup`. The secret of the link is in the fragment and does not reach the server yet.
pub async fn get(door: Door, _: Body) -> Result<Response, Refusal> {
    let app = &door.site.app;
    Ok(match (app.has_owner().await?, app.setup_is_open().await?) {
        (true, _) => door.closed(SetupClosed::Done),
        (false, false) => door.closed(SetupClosed::Expired),
        (false, true) => door.setup(&Params::default(), &[]),
    })
}

/// `POST /setup`: `token`, `username`, `email`, `password`. The token itself proves that the form is not forged: only
/// somebody who was given the link has it.
pub async fn post(door: Door, body: Body) -> Result<Response, Refusal> {
    let Posted { params, browser } = door.posted(body).await?;
    let text = |name| params.get(name).unwrap_or("");
    let typed = NewPerson::new(text("username"), text("email"), text("password").as_bytes());
    let making = || door.site.app.set_up(text("token"), &typed, &browser);
    match door.in_place_for_password(making).await? {
        Ok(SetUp { started, device }) => {
            let mut response = door.done(Notice::Welcome, &started.session);
            reply::session_cookie(&mut response, &door.site, &started);
            reply::device_cookie(&mut response, &door.site, &device);
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

/// Shows the set-up page again, with what was typed except the password.
pub fn again(door: &Door, sent: &Params, setback: Setback) -> Option<Response> {
    Some(door.setup(sent, &[Problem::later(setback)?]))
}

impl Door {
    fn setup(&self, typed: &Params, problems: &[Problem]) -> Response {
        let view = SetupPage {
            csrf: "",
            token: typed.get("token").unwrap_or(""),
            username: typed.get("username").unwrap_or(""),
            email: typed.get("email").unwrap_or(""),
            minimum_password: self.site.app.realm.settings.password_min,
            problems,
        };
        let html = view.render(&self.chrome(None));
        reply::form(Setback::of(problems), &self.visit, html, Forms::Stay)
    }

    fn closed(&self, reason: SetupClosed) -> Response {
        let html = SetupClosedPage { reason }.render(&self.chrome(None));
        reply::page(StatusCode::GONE, &self.visit, html, Forms::Stay)
    }
}
