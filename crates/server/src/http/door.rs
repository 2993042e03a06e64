//! A door: a request, and what is behind it. The route says how a refusal is told there, so that no handler can tell it
//! in another way, or forget to. Every handler is behind one, but for those of health.

use super::Site;
use super::again::Again;
use super::cookies::Name;
use super::error::Refusal;
use super::extract;
use super::reply;
use super::visit::Visit;
use crate::admission::{Debt, Pace, Went};
use crate::metrics::Refused;
use crate::net::BodyError;
use app::Fault;
use app::browser::{Browser, Unproved};
use app::guest::Guest;
use app::jobs::holding;
use app::stopwatch::{Stage, timed};
use axum::body::Body;
use axum::extract::Request;
use axum::handler::Handler;
use axum::response::Response;
use bytes::Bytes;
use hyper::body::Body as _;
use hyper::header::HeaderValue;
use hyper::{HeaderMap, Method, StatusCode, Uri, header};
use rules::oauth::redirect::Response as Answer;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::sync::{Arc, OnceLock};
use std::task::Poll;
use std::time::Instant;

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

    /// Whether it says that it is of a session, or has a token. That may be made up.
    fn is_inside(&self) -> bool {
        let has = |name| self.site.cookie(&self.headers, name).is_some();
        self.headers.contains_key(header::AUTHORIZATION)
            || self.site.session_cookie(&self.headers).is_some()
            || [Name::Access, Name::Refresh].into_iter().any(has)
    }

    /// Counts it as failed before it is worked on.
    fn owe(&self, pace: Pace) -> Result<Option<Debt>, Fault> {
        let Visit { client, sender, .. } = &self.visit;
        self.site.admission.owe(pace, (client, *sender), || self.is_inside())
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

    /// Does what a password is sent for, in a place for it, if its hash would be computed in time: nothing was asked of the
    /// database before. Forms ask for it once it is known that they are ours. The place is taken until all is done, whether
    /// or not the browser waits for it.
    pub async fn in_place_for_password<T, E, W>(&self, work: impl FnOnce() -> W) -> Result<T, E>
    where
        E: From<Fault>,
        W: Future<Output = Result<T, E>>,
    {
        self.site.app.has_time_for(&self.browser(), Guest::Typed)?;
        let place = self.site.admission.enter(Pace::Passwords, &self.visit.client).await?;
        holding(place, work()).await
    }

    /// What keeps this door from answering, as a page. `back` tells the application, where it may be told.
    pub fn refuse(&self, refusal: &Refusal, back: Option<(&str, &Answer)>, locales: Option<&str>) -> Response {
        refusal.to_page(self, &self.visit.chrome(&self.site, &self.headers, locales), back)
    }

    fn page(&self, again: Option<Again>, refusal: Refusal) -> Response {
        let form = again.and_then(|again| self.once_more(again, &refusal));
        form.unwrap_or_else(|| self.refuse(&refusal, None, self.locales_of_link().as_deref()))
    }

    /// The whole body, within its size and its time; kept, if it `is_form`.
    async fn take(&self, body: Body, is_form: bool) -> Result<Bytes, BodyError> {
        let bytes = match body.is_end_stream() {
            true => Bytes::new(),
            false => timed(Stage::Body, self.site.bodies.read(body)).await?,
        };
        if is_form {
            drop(self.sent.set(bytes.clone()));
        }
        Ok(bytes)
    }
}

/// What of a body a handler looks at. Of another kind it looks at none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reads {
    /// A form.
    Form,
    /// JSON.
    Json,
    /// Nothing.
    Nothing,
}

impl Reads {
    /// Whether the answer waits for the body. Where its sender asks first, and the head says that nobody will look at it, they
    /// are told how it went instead (RFC 9110 §10.1.1).
    fn waits(self, headers: &HeaderMap) -> bool {
        let asks = |line: &HeaderValue| line.as_bytes().eq_ignore_ascii_case(b"100-continue");
        let is_asked = headers.get_all(header::EXPECT).iter().any(asks);
        !is_asked
            || match self {
                Reads::Form => extract::is_form(headers),
                Reads::Json => extract::is_json(headers),
                Reads::Nothing => false,
            }
    }
}

/// A handler with the kind of its work, and its way to tell what keeps it from answering.
pub struct Told<A, E> {
    act: A,
    pace: Pace,
    reads: Reads,
    refuse: fn(&Door, Option<Again>, E) -> Response,
    /// How a form of ours is shown once more that cannot be looked at now.
    again: Option<Again>,
}

impl<A: Clone, E> Clone for Told<A, E> {
    fn clone(&self) -> Self {
        Told { act: self.act.clone(), ..*self }
    }
}

impl<A, E> Told<A, E> {
    /// For a handler that looks at JSON.
    pub fn of_json(self) -> Self {
        Told { reads: Reads::Json, ..self }
    }

    /// For a handler that looks at no body.
    pub fn of_no_body(self) -> Self {
        Told { reads: Reads::Nothing, ..self }
    }
}

/// Refusals are told by `refuse`.
pub fn told<A, E>(pace: Pace, refuse: fn(&Door, Option<Again>, E) -> Response, act: A) -> Told<A, E> {
    Told { act, pace, reads: Reads::Form, refuse, again: None }
}

/// Refusals are pages, for people.
pub fn page<A>(pace: Pace, act: A) -> Told<A, Refusal> {
    told(pace, Door::page, act)
}

/// The same for a form of ours: whoever has to come back finds it with what was typed.
pub fn form<A>(pace: Pace, again: Again, act: A) -> Told<A, Refusal> {
    Told { again: Some(again), ..page(pace, act) }
}

/// Refusals are what client libraries read (RFC 6749 §5.2).
pub fn json<A>(pace: Pace, act: A) -> Told<A, Refusal> {
    told(pace, |door, _, refusal: Refusal| refusal.to_json(&door.site, &door.visit), act)
}

/// Refusals are those of a resource server (RFC 6750 §3).
pub fn bearer<A>(pace: Pace, act: A) -> Told<A, Refusal> {
    told(pace, |door, _, refusal: Refusal| refusal.to_bearer(&door.site, &door.visit), act)
}

/// What a handler does, whichever it is: what is around it is in the program once, not once for each. Boxed, because it is
/// large: who waits for a place does without.
type Act<E> = Box<dyn FnOnce(Door, Body) -> Doing<E> + Send>;
type Doing<E> = Pin<Box<dyn Future<Output = Result<Response, E>> + Send>>;

impl<A, F, E> Handler<(), Site> for Told<A, E>
where
    A: FnOnce(Door, Body) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = Result<Response, E>> + Send + 'static,
    E: From<Fault> + From<BodyError> + Send + 'static,
{
    type Future = Pin<Box<dyn Future<Output = Response> + Send>>;

    fn call(self, request: Request, site: Site) -> Self::Future {
        let Told { act, pace, reads, refuse, again } = self;
        let act: Act<E> = Box::new(move |door, body| Box::pin(act(door, body)));
        Box::pin(Told { act, pace, reads, refuse, again }.answer(request, site))
    }
}

impl<E> Told<Act<E>, E>
where
    E: From<Fault> + From<BodyError> + Send + 'static,
{
    async fn answer(self, request: Request, site: Site) -> Response {
        let came = Instant::now();
        let (parts, body) = request.into_parts();
        let Some(visit) = parts.extensions.get::<Visit>().cloned() else {
            return reply::plain(StatusCode::INTERNAL_SERVER_ERROR, "text/plain", "no visit");
        };
        let door = Door::new(site, visit, (parts.method, parts.uri, parts.headers));
        let Told { act, pace, reads, refuse, again } = self;
        let body = if reads.waits(&door.headers) { body } else { Body::empty() };
        let (debt, answer) = match door.owe(pace) {
            Ok(debt) => (debt, unbroken(let_in(&door, (pace, again.is_some()), act, body)).await),
            Err(over) => {
                // A form is read even then: nothing that was typed is lost.
                if again.is_some() {
                    drop(door.take(body, true).await);
                }
                (None, Err(over.into()))
            }
        };
        let response = answer.unwrap_or_else(|refusal| refuse(&door, again, refusal));
        let response = settled(&door, debt, response);
        if is_put_off(&response) {
            let (site, client) = (door.site.clone(), door.visit.client.clone());
            // What came with it is not kept meanwhile.
            drop(door);
            site.admission.tell(&client, came, &site.app.hasher).await;
        }
        response
    }
}

/// Does what is behind a door, in a place for its kind of work: it is taken once all of the request is there, so that who
/// sends slowly holds none, and until all is done, whether or not the answer is waited for.
async fn let_in<E>(door: &Door, (pace, is_form): (Pace, bool), act: Act<E>, body: Body) -> Result<Response, E>
where
    E: From<Fault> + From<BodyError>,
{
    let bytes = door.take(body, is_form).await?;
    // What a password is for asks for its place itself: see [`Door::in_place_for_password`].
    let place = match pace {
        Pace::Passwords => None,
        pace => door.site.admission.enter(pace, &door.visit.client).await?,
    };
    let answered = async {
        let response = act(door.clone(), bytes.into()).await?;
        Ok(door.without_dead_session(response).await)
    };
    holding(place, answered).await
}

/// What comes of it, also where it panics. Otherwise the connection's task would end with it, and every other request on it; it
/// would count as a client that went away.
async fn unbroken<T, E: From<Fault>>(work: impl Future<Output = Result<T, E>>) -> Result<T, E> {
    let mut work = pin!(work);
    let whole = poll_fn(|context| {
        let step = catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(context)));
        step.unwrap_or_else(|_| Poll::Ready(Err(Fault::Broken("a request ended in a panic".to_owned()).into())))
    });
    whole.await
}

/// Marks an answer that is an error by its status and part of how things go: a device that polls (RFC 8628 §3.5).
#[derive(Clone, Copy, Debug)]
pub struct AsExpected;

/// Marks an answer that counts like a failure although it is none: anybody may ask, and what was asked for is kept, or comes to
/// nothing.
#[derive(Clone, Copy, Debug)]
pub struct Counts;

/// Whether there was no room for it.
fn is_put_off(response: &Response) -> bool {
    response.extensions().get().is_some_and(Refused::puts_off)
}

/// What was counted before a request was worked on is given back, unless it failed, or [counts](Counts). An application that asks
/// more often than it may has shown who it is: that is held against itself alone, and against nobody who shares its address. How it
/// stands under a rate of its own goes before how its address does.
fn settled(door: &Door, debt: Option<Debt>, mut response: Response) -> Response {
    let Some(debt) = debt else { return response };
    let (marks, refused) = (response.extensions(), response.extensions().get::<Refused>());
    let wrong = response.status().is_client_error() && marks.get::<AsExpected>().is_none();
    let went = match refused {
        Some(Refused::Rate) if app::asked::is_over_its_rate() => Went::Well,
        Some(refused) if refused.puts_off() && door.unproved.is_set() => Went::Stranger,
        Some(refused) if refused.puts_off() => Went::Refused,
        _ if wrong || marks.get::<Counts>().is_some() => Went::Wrong,
        _ => Went::Well,
    };
    let address = door.site.admission.settle(debt, went);
    if let Some(standing) = app::asked::standing().or(address) {
        reply::rate_limit(&mut response, &standing);
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_panic_is_a_fault_and_ends_one_request() {
        let broken = async {
            tokio::task::yield_now().await;
            panic!("of a test");
        };
        let told: Result<(), Refusal> = unbroken(broken).await;
        assert!(matches!(told, Err(Refusal::Fault(Fault::Broken(_)))));
        assert!(matches!(unbroken(async { Ok::<_, Refusal>(7) }).await, Ok(7)));
    }
}
