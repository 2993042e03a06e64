//! The account itself: showing it, changing its password, signing out.

use super::caller::{Call, Keeping, Purpose};
use super::input::Input;
use super::problem::{Kind, Problem};
use super::sign_in::weak;
use crate::http::reply;
use app::account::{NotChanged, PasswordChange};
use axum::body::Body;
use axum::response::Response;
use hyper::StatusCode;
use serde_json::json;

/// `GET /api/v1/me`.
pub async fn me(call: Call, _: Input) -> Result<Response, Problem> {
    let opened = match call.account(Purpose::Read).await {
        Err(problem) if call.keeping == Keeping::Cookies => return call.out_of_access(problem).await,
        opened => opened?,
    };
    let app = &call.door.site.app;
    app.note_use(&opened.session).await;
    let mut claims = opened.claims();
    // A page that was reloaded has lost it.
    if call.keeping == Keeping::Cookies {
        claims.insert("csrf_token".into(), json!(app.account_csrf(&opened.family)));
    }
    Ok(reply::json(StatusCode::OK, serde_json::to_vec(&claims).unwrap_or_default()))
}

/// `PATCH /api/v1/password`.
pub async fn change_password(call: Call, input: Input) -> Result<Response, Problem> {
    let opened = call.account(Purpose::Change).await?;
    let typed = PasswordChange::new(input.text("current").as_bytes(), input.text("new").as_bytes());
    match call.door.site.app.change_account_password(opened, typed, &call.browser(&input)).await? {
        Ok(entered) => Ok(call.came_in(&entered, None)),
        Err(NotChanged::New(why)) => Err(Problem::fields(vec![weak("new", why)])),
        Err(NotChanged::SignedOut) => Err(Problem::of(Kind::TokenRefused)),
        Err(NotChanged::Current(refusal)) => Err(Problem::attempt(refusal, Kind::WrongPassword)),
        // The application was disabled meanwhile: the account's next request would be told the same.
        Err(NotChanged::Client(_)) => Err(Problem::of(Kind::TokenRefused)),
    }
}

/// `POST /api/v1/signout`: ends the session, and with it everything that was issued in it.
pub async fn sign_out(call: Call, input: Input) -> Result<Response, Problem> {
    let session = call.leaving().await?;
    call.door.site.app.leave(&session, &call.browser(&input)).await?;
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    reply::private(response.headers_mut());
    if call.keeping == Keeping::Cookies {
        call.forget(&mut response);
    }
    Ok(response)
}
