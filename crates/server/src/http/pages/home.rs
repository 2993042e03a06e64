//! The front page and "Try it".

use crate::http::door::Door;
use crate::http::error::{Refusal, for_programs};
use crate::http::reply::{self, Forms};
use crate::http::try_it::CLIENT_ID;
use crate::pages::{HomePage, TryPage, Visitor};
use axum::body::Body;
use axum::response::Response;
use hyper::StatusCode;
use rules::people::Role;

/// `GET /`.
pub async fn home(door: Door, _: Body) -> Result<Response, Refusal> {
    let app = &door.site.app;
    let (owned, session) = (app.has_owner().await?, app.session(&door.browser()).await?);
    let known = session.as_ref().map(|(_, user)| (user.display_name(), user.role == Role::Owner));
    let visitor = match (owned, &known) {
        (false, None) => Visitor::BeforeSetup { inhabited: app.is_inhabited().await? },
        (true, None) => Visitor::SignedOut,
        (_, Some((name, owner))) => Visitor::SignedIn { name, owner: *owner },
    };
    let chrome = session.as_ref().map_or_else(|| door.chrome(None), |(_, user)| door.chrome_of(user));
    let html = HomePage { visitor, issuer: door.site.url.as_str(), try_it: door.site.try_it }.render(&chrome);
    Ok(reply::page(StatusCode::OK, &door.visit, html, Forms::Stay))
}

/// `GET /try` and `GET /try/callback`.
pub async fn try_it(door: Door, _: Body) -> Result<Response, Refusal> {
    if !door.site.try_it {
        return Err(Refusal::NotFound);
    }
    let view = TryPage { issuer: door.site.url.as_str(), client_id: CLIENT_ID };
    let html = view.render(&door.chrome(None));
    Ok(reply::page(StatusCode::OK, &door.visit, html, Forms::Stay))
}

/// Any other path.
pub async fn nothing(door: Door, _: Body) -> Result<Response, Refusal> {
    let why = "nothing is at this address: is it below the issuer?";
    for_programs(&door, StatusCode::NOT_FOUND, why).ok_or(Refusal::NotFound)
}
