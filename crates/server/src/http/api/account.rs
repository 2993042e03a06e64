//! The account itself: who it is, another password, and leaving.

use super::caller::{Door, Keeping, Purpose};
use super::problem::{Kind, Problem};
use super::sign_in::weak;
use super::table::{CHANGE_PASSWORD, SIGN_OUT};
use crate::http::reply;
use crate::http::site::Site;
use crate::http::visit::Visit;
use app::account::{NotChanged, PasswordChange};
use app::api::NotChangedHere;
use axum::Extension;
use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use hyper::{HeaderMap, StatusCode};
use serde_json::json;

/// `GET /api/v1/me`.
pub async fn me(State(site): State<Site>, Extension(visit): Extension<Visit>, headers: HeaderMap) -> Response {
    let door = Door { site: &site, visit: &visit, headers: &headers };
    let keeping = door.keeping();
    door.close(show(&door, keeping).await, keeping)
}

async fn show(door: &Door<'_>, keeping: Keeping) -> Result<Response, Problem> {
    let opened = match door.account(keeping, Purpose::Read).await {
        Err(problem) if keeping == Keeping::Cookies => return door.out_of_access(problem).await,
        opened => opened?,
    };
    door.site.app.note_use(&opened.session).await;
    let mut claims = opened.claims();
    // A page that was loaded again has forgotten it.
    if keeping == Keeping::Cookies {
        claims.insert("csrf_token".into(), json!(door.site.app.account_csrf(&opened.family)));
    }
    Ok(reply::json(StatusCode::OK, serde_json::to_vec(&claims).unwrap_or_default()))
}

/// `PATCH /api/v1/password`.
pub async fn change_password(
    State(site): State<Site>,
    Extension(visit): Extension<Visit>,
    headers: HeaderMap,
    body: Body,
) -> Response {
    let door = Door { site: &site, visit: &visit, headers: &headers };
    let keeping = door.keeping();
    door.close(changed(&door, keeping, body).await, keeping)
}

async fn changed(door: &Door<'_>, keeping: Keeping, body: Body) -> Result<Response, Problem> {
    let input = door.read(body, &CHANGE_PASSWORD).await?;
    let opened = door.account(keeping, Purpose::Change).await?;
    let typed = PasswordChange::new(input.text("current").as_bytes(), input.text("new").as_bytes());
    match door.site.app.change_account_password(opened, typed, &door.browser(keeping)).await? {
        Ok(entered) => Ok(door.came_in(&entered, keeping, None)),
        Err(NotChangedHere::Password(NotChanged::New(why))) => Err(Problem::fields(vec![weak("new", why)])),
        Err(NotChangedHere::Password(NotChanged::SignedOut)) => Err(Problem::of(Kind::TokenRefused)),
        Err(NotChangedHere::Password(NotChanged::Current(refusal))) => {
            Err(Problem::attempt(refusal, Kind::WrongPassword))
        }
        Err(NotChangedHere::Tokens(error)) => Err(Problem::protocol(error)),
    }
}

/// `POST /api/v1/signout`: the session ends, and with it everything that was issued in it.
pub async fn sign_out(
    State(site): State<Site>,
    Extension(visit): Extension<Visit>,
    headers: HeaderMap,
    body: Body,
) -> Response {
    let door = Door { site: &site, visit: &visit, headers: &headers };
    let keeping = door.keeping();
    door.close(left(&door, keeping, body).await, keeping)
}

async fn left(door: &Door<'_>, keeping: Keeping, body: Body) -> Result<Response, Problem> {
    door.read(body, &SIGN_OUT).await?;
    let opened = door.account(keeping, Purpose::Leave).await?;
    door.site.app.leave(&opened.session, &door.browser(keeping)).await?;
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    reply::private(response.headers_mut());
    if keeping == Keeping::Cookies {
        door.forget(&mut response);
    }
    Ok(response)
}
