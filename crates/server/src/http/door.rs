//! A door: a request, and what is behind it. The route says how a refusal is told there, so that no handler can tell it
//! in another way, or forget to.

use super::Site;
use super::again::Again;
use super::cookies::Name;
use super::error::Refusal;
use super::reply;
use super::visit::Visit;
use crate::admission::{Debt, Pace, Permit};
use crate::metrics::Refused;
use crate::net::BodyError;
use app::Fault;
use app::browser::{Browser, Unproved};
use app::jobs::holding;
use app::sign_in::Guest;
use app::stopwatch::{Stage, timed};
use axum::body::Body;
use axum::extract::Request;
use axum::handler::Handler;
use axum::response::Response;
use bytes::Bytes;
use hyper::body::Body as _;
use hyper::{HeaderMap, Method, StatusCode, Uri};
use rules::oauth::redirect::Response as Answer;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};

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
    /// Whether the session cookie proved nothing.
    unproved: Unproved,
    /// What a form sent, once all of it is there, for whoever has to be told to send it again.
    sent: OnceLock<Bytes>,
}

impl std::ops::Deref for Door {
    type Target = Inside;
    fn deref(&self) -> &Inside {
        &self.0
    }
}

impl Door {
    /// Of a request.
    pub fn new(site: Site, visit: Visit, (method, uri, headers): (Method, Uri, HeaderMap)) -> Self {
        Door(Arc::new(Inside {
            site,
            visit,
            method,
            uri,
            headers,
            unproved: Unproved::default(),
            sent: OnceLock::new(),
        }))
    }

    /// What a form sent, as far as it is there.
    pub fn sent(&self) -> Option<&Bytes> {
        self.sent.get()
    }

    /// The browser that came.
    pub fn browser(&self) -> Browser {
        Browser { unproved: self.unproved.clone(), ..self.visit.browser(&self.site, &self.headers) }
    }

    /// Takes a session cookie away that was looked at and names no living session (SE-05), unless the answer has another one,
    /// or the database cannot say.
    async fn without_dead_session(&self, mut response: Response) -> Response {
        if !self.unproved.is_set() || self.site.sets_cookie(&response, Name::Session) {
            return response;
        }
        if matches!(self.site.app.is_over(&self.browser()).await, Ok(true)) {
            self.forget_session(&mut response);
        }
        response
    }

    /// Does what a form with a password is for, in a place for it, which its handler asks for itself once it knows that the
    /// form is one of ours. The place is taken until all is done, whether or not the browser waits for it.
    pub async fn in_place_for_password<T, E, W>(&self, work: impl FnOnce() -> W) -> Result<T, E>
    where
        E: From<Fault>,
        W: Future<Output = Result<T, E>>,
    {
        let place = place_for_password(&self.site, &self.browser()).await?;
        holding(place, work()).await
    }

    /// What keeps this door from answering, as a page. `back` tells the application, where it may be told.
    pub fn refuse(&self, refusal: &Refusal, back: Option<(&str, &Answer)>, locales: Option<&str>) -> Response {
        refusal.to_page(self, &self.visit.chrome(&self.site, &self.headers, locales), back)
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
    /// How a form of ours is shown once more that cannot be looked at now.
    again: Option<Again>,
}

/// Refusals are pages, for people.
pub fn page<A>(pace: Pace, act: A) -> Told<A> {
    Told { act, pace, refuse: Door::page, again: None }
}

/// The same for a form of ours: whoever has to come back finds it with what was typed.
pub fn form<A>(pace: Pace, again: Again, act: A) -> Told<A> {
    Told { again: Some(again), ..page(pace, act) }
}

/// Refusals are what client libraries read (RFC 6749 §5.2).
pub fn json<A>(pace: Pace, act: A) -> Told<A> {
    Told { refuse: |door, refusal| refusal.to_json(&door.site, &door.visit), ..page(pace, act) }
}

/// Refusals are those of a resource server (RFC 6750 §3).
pub fn bearer<A>(pace: Pace, act: A) -> Told<A> {
    Told { refuse: |door, refusal| refusal.to_bearer(&door.site, &door.visit), ..page(pace, act) }
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
            let door = Door::new(site, visit, (parts.method, parts.uri, parts.headers));
            let Told { act, pace, refuse, again } = self;
            let (debt, answer) = match door.site.admission.owe(pace, &door.visit.client) {
                Ok(debt) => (debt, let_in(&door, (pace, again.is_some()), act, body).await),
                Err(over) => {
                    // A form is read even then: nothing that was typed is lost.
                    if again.is_some() {
                        drop(door.take(body, true).await);
                    }
                    (None, Err(over.into()))
                }
            };
            let response = answer.unwrap_or_else(|refusal| {
                again.and_then(|again| door.once_more(again, &refusal)).unwrap_or_else(|| refuse(&door, refusal))
            });
            settled(&door.site, debt, response)
        })
    }
}

impl Door {
    /// The whole body; kept, if it `is_form`.
    async fn take(&self, body: Body, is_form: bool) -> Result<Bytes, BodyError> {
        let bytes = whole(&self.site, body).await?;
        if is_form {
            drop(self.sent.set(bytes.clone()));
        }
        Ok(bytes)
    }
}

/// Does what is behind a door, in a place for its kind of work: it is taken once all of the request is there, so that who
/// sends slowly holds none.
async fn let_in<F>(
    door: &Door,
    (pace, is_form): (Pace, bool),
    act: impl FnOnce(Door, Body) -> F,
    body: Body,
) -> Result<Response, Refusal>
where
    F: Future<Output = Result<Response, Refusal>>,
{
    let bytes = door.take(body, is_form).await?;
    let _place = place(&door.site, pace).await?;
    // Boxed, because it is large: who waits for a place does without.
    let response = Box::pin(act(door.clone(), bytes.into())).await?;
    Ok(door.without_dead_session(response).await)
}

/// The whole of a body, within its size and its time.
pub async fn whole(site: &Site, body: Body) -> Result<Bytes, BodyError> {
    match body.is_end_stream() {
        true => Ok(Bytes::new()),
        false => timed(Stage::Body, site.bodies.read(body)).await,
    }
}

/// A place for work of this kind. Forms with a password ask for theirs themselves: see [`Door::in_place_for_password`].
pub async fn place(site: &Site, pace: Pace) -> Result<Option<Permit>, Fault> {
    match pace {
        Pace::Passwords => Ok(None),
        pace => site.admission.enter(pace).await,
    }
}

/// A place for a form with a password, if its hash would be computed in time: nothing was asked of the database before.
pub async fn place_for_password(site: &Site, browser: &Browser) -> Result<Option<Permit>, Fault> {
    site.app.has_time_for(browser, Guest::Typed)?;
    site.admission.enter(Pace::Passwords).await
}

/// Marks an answer that is an error by its status and part of how things go: a device that polls (RFC 8628 §3.5).
#[derive(Clone, Copy, Debug)]
pub struct AsExpected;

/// Marks an answer that counts like a failure although it is none: what was asked for is kept, and anybody may ask.
#[derive(Clone, Copy, Debug)]
pub struct Counts;

/// What was counted before a request was worked on is given back, unless it failed, or [counts](Counts).
pub fn settled(site: &Site, debt: Option<Debt>, mut response: Response) -> Response {
    let Some(debt) = debt else { return response };
    let wrong = response.status().is_client_error() && response.extensions().get::<AsExpected>().is_none();
    let counts = wrong || response.extensions().get::<Counts>().is_some();
    let failed = counts || response.extensions().get() == Some(&Refused::Busy);
    if let Some(standing) = site.admission.settle(debt, failed) {
        reply::rate_limit(&mut response, &standing);
    }
    response
}
