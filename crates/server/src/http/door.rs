//! A door: a request, and what is behind it. The route says how a refusal is told there, so that no handler can tell it
//! in another way, or forget to.

use super::Site;
use super::error::Refusal;
use super::reply;
use super::visit::Visit;
use crate::admission::{Debt, Pace, Permit};
use crate::metrics::Refused;
use crate::net::{BodyError, read_body};
use app::Fault;
use app::browser::Browser;
use app::jobs::holding;
use app::sign_in::Guest;
use app::stopwatch::{Stage, timed};
use axum::body::Body;
use axum::extract::Request;
use axum::handler::Handler;
use axum::response::Response;
use hyper::body::Body as _;
use hyper::{HeaderMap, Method, StatusCode, Uri};
use rules::oauth::redirect::Response as Answer;
use std::pin::Pin;
use std::sync::Arc;

/// A request before its handler, but for the body. Clones are the same request.
#[derive(Clone)]
pub struct Door(Arc<Inside>);

/// The inside of a [`Door`].
pub struct Inside {
    /// What every door knows.
    pub site: Site,
    /// Who came.
    pub visit: Visit,
    /// The request's method.
    pub method: Method,
    /// The request's target.
    pub uri: Uri,
    /// The request's headers.
    pub headers: HeaderMap,
}

impl std::ops::Deref for Door {
    type Target = Inside;
    fn deref(&self) -> &Inside {
        &self.0
    }
}

impl Door {
    /// The browser that came.
    pub fn browser(&self) -> Browser {
        self.visit.browser(&self.site, &self.headers)
    }

    /// Does what a form with a password is for, in a place for it, which its handler asks for itself: the page that says no
    /// keeps what was typed. The place is taken until all is done, whether or not the browser waits for it.
    pub async fn in_place_for_password<T>(&self, work: impl Future<Output = Result<T, Fault>>) -> Result<T, Fault> {
        let place = place_for_password(&self.site, &self.browser()).await?;
        holding(place, work).await
    }

    /// What keeps this door from answering, as a page. `back` tells the application, where it may be told.
    pub fn refuse(&self, refusal: &Refusal, back: Option<(&str, &Answer)>, locales: Option<&str>) -> Response {
        refusal.to_page(&self.visit, &self.visit.chrome(&self.site, &self.headers, locales), back)
    }

    fn page(&self, refusal: Refusal) -> Response {
        self.refuse(&refusal, None, self.locales_of_link().as_deref())
    }
}

/// A handler with the kind of its work, and its way to tell a refusal.
#[derive(Clone)]
pub struct Told<A> {
    act: A,
    pace: Pace,
    refuse: fn(&Door, Refusal) -> Response,
}

/// Refusals are pages, for people.
pub fn page<A>(pace: Pace, act: A) -> Told<A> {
    Told { act, pace, refuse: Door::page }
}

/// Refusals are what client libraries read (RFC 6749 §5.2).
pub fn json<A>(pace: Pace, act: A) -> Told<A> {
    Told { act, pace, refuse: |door, refusal| refusal.to_json(&door.visit) }
}

/// Refusals are those of a resource server (RFC 6750 §3).
pub fn bearer<A>(pace: Pace, act: A) -> Told<A> {
    Told { act, pace, refuse: |door, refusal| refusal.to_bearer(&door.visit) }
}

impl<A, F> Handler<(), Site> for Told<A>
where
    A: FnOnce(Door, Body) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = Result<Response, Refusal>> + Send + 'static,
{
    type Future = Pin<Box<dyn Future<Output = Response> + Send>>;

    fn call(self, request: Request, site: Site) -> Self::Future {
        let (parts, body) = request.into_parts();
        Box::pin(async move {
            let Some(visit) = parts.extensions.get::<Visit>().cloned() else {
                return reply::plain(StatusCode::INTERNAL_SERVER_ERROR, "text/plain", "no visit");
            };
            let (method, uri, headers) = (parts.method, parts.uri, parts.headers);
            let door = Door(Arc::new(Inside { site, visit, method, uri, headers }));
            let debt = match door.site.admission.owe(self.pace, &door.visit.client) {
                Ok(debt) => debt,
                Err(fault) => return (self.refuse)(&door, fault.into()),
            };
            let answer = match let_in(&door.site, self.pace, body).await {
                Ok((body, _permit)) => (self.act)(door.clone(), body).await,
                Err(refusal) => Err(refusal),
            };
            let response = answer.unwrap_or_else(|refusal| (self.refuse)(&door, refusal));
            settled(&door.site, debt, response)
        })
    }
}

/// A place for a form with a password, if its hash would be computed in time: nothing was asked of the database before.
pub async fn place_for_password(site: &Site, browser: &Browser) -> Result<Option<Permit>, Fault> {
    site.app.has_time_for(browser, Guest::Typed)?;
    site.admission.enter(Pace::Passwords).await
}

/// A place for a request, once all of it is there: who sends slowly holds none. See [`Door::in_place_for_password`], too.
pub async fn let_in<E>(site: &Site, pace: Pace, body: Body) -> Result<(Body, Option<Permit>), E>
where
    E: From<BodyError> + From<Fault>,
{
    let body = match body.is_end_stream() {
        true => body,
        false => timed(Stage::Body, read_body(body, site.body_size, site.body_timeout)).await?.into(),
    };
    match pace {
        Pace::Passwords => Ok((body, None)),
        pace => Ok((body, site.admission.enter(pace).await?)),
    }
}

/// Marks an answer that is an error by its status and part of how things go: a device that polls (RFC 8628 §3.5).
#[derive(Clone, Copy, Debug)]
pub struct AsExpected;

/// What was counted before a request was worked on is given back, unless it failed.
pub fn settled(site: &Site, debt: Option<Debt>, mut response: Response) -> Response {
    let Some(debt) = debt else { return response };
    let wrong = response.status().is_client_error() && response.extensions().get::<AsExpected>().is_none();
    let failed = wrong || response.extensions().get() == Some(&Refused::Busy);
    if let Some(standing) = site.admission.settle(debt, failed) {
        reply::rate_limit(&mut response, &standing);
    }
    response
}
