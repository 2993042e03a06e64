//! The front page and "Try it".

use crate::http::error::Refusal;
use crate::http::oauth::authorize::Door;
use crate::http::reply;
use crate::http::site::Site;
use crate::http::try_it::CLIENT_ID;
use crate::http::visit::Visit;
use crate::pages::{HomePage, TryPage, Visitor};
use axum::Extension;
use axum::extract::State;
use axum::response::Response;
use hyper::{HeaderMap, StatusCode};

/// `GET /`.
pub async fn home(State(site): State<Site>, Extension(visit): Extension<Visit>, headers: HeaderMap) -> Response {
    let door = Door { site: &site, visit: &visit, headers: &headers };
    let browser = visit.browser(&site, &headers);
    let facts = async { Ok::<_, app::Fault>((site.app.has_owner().await?, site.app.session(&browser).await?)) };
    let (owned, session) = match facts.await {
        Ok(facts) => facts,
        Err(fault) => return door.refuse(fault.into()),
    };
    let name = session.as_ref().map(|(_, user)| user.display_name());
    let visitor = match (owned, &name) {
        (false, _) => Visitor::BeforeSetup,
        (true, None) => Visitor::SignedOut,
        (true, Some(name)) => Visitor::SignedIn { name },
    };
    let mut chrome = visit.chrome(&site, &headers, None);
    chrome.signed_in = session.as_ref().map(|(_, user)| user.username.as_str());
    let html = HomePage { visitor, issuer: site.url.as_str(), try_it: site.try_it }.render(&chrome);
    reply::page(StatusCode::OK, &visit, html, None)
}

/// `GET /try` and `GET /try/callback`.
pub async fn try_it(State(site): State<Site>, Extension(visit): Extension<Visit>, headers: HeaderMap) -> Response {
    let door = Door { site: &site, visit: &visit, headers: &headers };
    if !site.try_it {
        return door.refuse(Refusal::NotFound);
    }
    let view = TryPage { issuer: site.url.as_str(), client_id: CLIENT_ID };
    reply::page(StatusCode::OK, &visit, view.render(&visit.chrome(&site, &headers, None)), None)
}

/// Any other path.
pub async fn nothing(State(site): State<Site>, Extension(visit): Extension<Visit>, headers: HeaderMap) -> Response {
    Door { site: &site, visit: &visit, headers: &headers }.refuse(Refusal::NotFound)
}
