//! A door: a request, and the handler behind it. The route decides how a refusal is told, so that no handler can tell
//! it in another way, or forget to. Every handler is behind a door, except those of health.

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
use crate::pages::{Brand, Chrome, Language};
use app::Fault;
use app::browser::{Browser, Unproved};
use app::guest::Guest;
use app::pledge::holding;
use app::stopwatch::{Stage, timed};
use axum::body::Body;
use axum::extract::Request;
use axum::handler::Handler;
use axum::response::Response;
use bytes::Bytes;
use hyper::body::Body as _;
use hyper::header::HeaderValue;
use hyper::http::request::Parts;
use hyper::{HeaderMap, Method, StatusCode, Uri, header};
use rules::oauth::params::Params;
use rules::oauth::redirect::Response as Answer;
use rules::people::User;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::sync::{Arc, OnceLock};
use std::task::Poll;
use std::time::Instant;

/// A request without its body, before its handler runs. Clones are the same request.
#[derive(Clone)]
pub struct Door(Arc<Inside>);

/// Marks a request whose target has lost the issuer's path on its way through the router.
#[derive(Clone, Copy, Debug)]
pub struct Below;

/// The inside of a [`Door`].
pub struct Inside {
    /// State and settings that all doors share.
    pub site: Site,
    /// Who sent the request.
    pub visit: Visit,
    /// The request's method.
    pub method: Method,
    /// The request's target. Below the issuer's path, that path has been taken off.
    pub uri: Uri,
    /// The request's headers.
    pub headers: HeaderMap,
    /// Whether the router took the issuer's path off the target.
    is_below: bool,
    /// Whether the session cookie proved nothing.
    unproved: Unproved,
    /// What a form sent, once all of it has arrived, to show it again to a user who has to send it again. Passwords are
    /// not kept: they are typed again.
    sent: OnceLock<Params>,
}

impl std::ops::Deref for Door {
    type Target = Inside;
    fn deref(&self) -> &Inside {
        &self.0
    }
}

impl Door {
    /// Makes the door of a request.
    fn new(site: Site, visit: Visit, parts: Parts) -> Self {
        let is_below = parts.extensions.get::<Below>().is_some();
        let Parts { method, uri, headers, .. } = parts;
        Door(Arc::new(Inside {
            site,
            visit,
            method,
            uri,
            headers,
            is_below,
            unproved: Unproved::default(),
            sent: OnceLock::new(),
        }))
    }

    /// Returns whether the request claims to belong to a session, or to have a token. The claim may be made up.
    fn is_inside(&self) -> bool {
        let has = |name| self.site.cookie(&self.headers, name).is_some();
        self.headers.contains_key(header::AUTHORIZATION)
            || self.site.session_cookie(&self.headers).is_some()
            || [Name::Access, Name::Refresh].into_iter().any(has)
    }

    /// Counts the request as failed before it is worked on.
    fn owe(&self, pace: Pace) -> Result<Option<Debt>, Fault> {
        let Visit { client, sender, .. } = &self.visit;
        self.site.admission.owe(pace, (client, *sender), || self.is_inside())
    }

    /// Returns the path below the issuer's, or the whole path of a request that is not below it.
    pub fn path(&self) -> &str {
        let path = self.uri.path();
        // A path that has lost the issuer's may begin with the same letters once more: /oauth2/oauth2/token.
        if self.is_below { path } else { self.site.below(path).unwrap_or(path) }
    }

    /// Returns what a form sent, without its passwords, to show it again.
    pub fn sent(&self) -> Option<&Params> {
        self.sent.get()
    }

    /// Returns the browser that sent the request.
    pub fn browser(&self) -> Browser {
        Browser { unproved: self.unproved.clone(), ..self.visit.browser(&self.site, &self.headers) }
    }

    /// Returns the frame of a page, in the first language of `ui_locales` that there is, or else in the one that the
    /// browser prefers.
    pub fn chrome(&self, ui_locales: Option<&str>) -> Chrome<'_> {
        let accepted = self.headers.get(header::ACCEPT_LANGUAGE).and_then(|value| value.to_str().ok());
        Chrome {
            language: Language::choose(ui_locales, accepted),
            brand: Brand { name: &self.site.brand },
            nonce: &self.visit.nonce,
            base: self.site.url.path(),
            signed_in: None,
        }
    }

    /// Returns the frame of a page of a user's own.
    pub fn chrome_of<'a>(&'a self, user: &'a User) -> Chrome<'a> {
        Chrome { signed_in: Some(&user.username), ..self.chrome(None) }
    }

    /// Removes the session cookie.
    pub fn forget_session(&self, response: &mut Response) {
        reply::cookie(response, &self.site, Name::Session, None);
    }

    /// Removes a session cookie that was checked and names no living session (SE-05), unless the response sets another
    /// one or the database cannot say.
    async fn without_dead_session(&self, mut response: Response) -> Response {
        if !self.unproved.is_set() || self.site.sets_cookie(&response, Name::Session) {
            return response;
        }
        if matches!(self.site.app.is_over(&self.browser()).await, Ok(true)) {
            self.forget_session(&mut response);
        }
        response
    }

    /// Does the work that a password is sent for, in a place for it, if its hash would be computed in time: before that
    /// check, the database was asked nothing. Forms ask for the place once they are known to be ours. The place is held
    /// until the work is done, whether or not the browser waits for it.
    pub async fn in_place_for_password<T, E, W>(&self, work: impl FnOnce() -> W) -> Result<T, E>
    where
        E: From<Fault>,
        W: Future<Output = Result<T, E>>,
    {
        self.site.app.has_time_for(&self.browser(), Guest::Typed)?;
        let place = self.site.admission.enter(Pace::Passwords, &self.visit.client).await?;
        holding(place, work()).await
    }

    /// Renders a refusal as a page. `back` is the way to tell the application, where it may be told.
    pub fn refuse(&self, refusal: &Refusal, back: Option<(&str, &Answer)>, locales: Option<&str>) -> Response {
        refusal.to_page(self, &self.chrome(locales), back)
    }

    fn page(&self, again: Option<Again>, refusal: Refusal) -> Response {
        let form = again.and_then(|again| self.once_more(again, &refusal));
        form.unwrap_or_else(|| self.refuse(&refusal, None, self.locales_of_link().as_deref()))
    }

    /// Reads the whole body, within its limits of size and time; keeps what can be shown again, if it `is_form`.
    async fn take(&self, body: Body, is_form: bool) -> Result<Bytes, BodyError> {
        let bytes = match body.is_end_stream() {
            true => Bytes::new(),
            false => timed(Stage::Body, self.site.bodies.read(body)).await?,
        };
        if is_form
            && extract::is_form(&self.headers)
            && let Ok(sent) = extract::pairs(&bytes).and_then(Params::parse)
        {
            drop(self.sent.set(sent.without_passwords()));
        }
        Ok(bytes)
    }
}

/// Which kind of body a handler reads. It ignores a body of any other kind.
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
    /// Returns whether the response waits for the body. If the client sent `Expect: 100-continue` and the headers show
    /// that nothing will read the body, the response is sent without it (RFC 9110 §10.1.1).
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

/// A handler with the kind of its work, and the way its refusals are told.
pub struct Told<A, E> {
    act: A,
    pace: Pace,
    reads: Reads,
    refuse: fn(&Door, Option<Again>, E) -> Response,
    /// Shows a form of ours again that cannot be processed now.
    again: Option<Again>,
}

impl<A: Clone, E> Clone for Told<A, E> {
    fn clone(&self) -> Self {
        Told { act: self.act.clone(), ..*self }
    }
}

impl<A, E> Told<A, E> {
    /// For a handler that reads JSON.
    pub fn of_json(self) -> Self {
        Told { reads: Reads::Json, ..self }
    }

    /// For a handler that reads no body.
    pub fn of_no_body(self) -> Self {
        Told { reads: Reads::Nothing, ..self }
    }
}

/// Wraps a handler whose refusals are told by `refuse`.
pub fn told<A, E>(pace: Pace, refuse: fn(&Door, Option<Again>, E) -> Response, act: A) -> Told<A, E> {
    Told { act, pace, reads: Reads::Form, refuse, again: None }
}

/// Wraps a handler whose refusals are pages, for people.
pub fn page<A>(pace: Pace, act: A) -> Told<A, Refusal> {
    told(pace, Door::page, act)
}

/// Wraps the handler of a form of ours: a user who has to come back gets the form with what was typed.
pub fn form<A>(pace: Pace, again: Again, act: A) -> Told<A, Refusal> {
    Told { again: Some(again), ..page(pace, act) }
}

/// Wraps a handler whose refusals are what client libraries read (RFC 6749 §5.2).
pub fn json<A>(pace: Pace, act: A) -> Told<A, Refusal> {
    told(pace, |door, _, refusal: Refusal| refusal.to_json(&door.site, &door.visit), act)
}

/// Wraps a handler whose refusals are those of a resource server (RFC 6750 §3).
pub fn bearer<A>(pace: Pace, act: A) -> Told<A, Refusal> {
    told(pace, |door, _, refusal: Refusal| refusal.to_bearer(&door.site, &door.visit), act)
}

/// Any handler, with its type erased: the code around it is compiled once, not once per handler. Boxed, because its
/// future is large: a request that waits for a place does not hold one yet.
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
        let door = Door::new(site, visit, parts);
        let Told { act, pace, reads, refuse, again } = self;
        let body = if reads.waits(&door.headers) { body } else { Body::empty() };
        let (debt, answer) = match door.owe(pace) {
            Ok(debt) => (debt, unbroken(let_in(&door, (pace, again.is_some()), act, body)).await),
            Err(over) => {
                // The form is read even then, so that nothing that was typed is lost.
                if again.is_some() {
                    drop(door.take(body, true).await);
                }
                (None, Err(over.into()))
            }
        };
        let response = answer.unwrap_or_else(|refusal| refuse(&door, again, refusal));
        let mut response = settled(&door, debt, response);
        if is_put_off(&response) {
            let (site, client) = (door.site.clone(), door.visit.client.clone());
            // What the request carried is not kept while its refusal waits.
            drop(door);
            let waited = site.admission.tell(&client, (came, reply::absence(&response)), &site.app.hasher).await;
            reply::told_later(&mut response, waited);
        }
        response
    }
}

/// Runs the handler in a place for its kind of work. The place is taken once the whole request has arrived, so that a
/// slow sender holds none, and is kept until the work is done, whether or not anybody waits for the response.
async fn let_in<E>(door: &Door, (pace, is_form): (Pace, bool), act: Act<E>, body: Body) -> Result<Response, E>
where
    E: From<Fault> + From<BodyError>,
{
    let bytes = door.take(body, is_form).await?;
    // Work for a password takes its place itself: see [`Door::in_place_for_password`].
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

/// Returns the outcome of `work`, and a fault if it panics. Otherwise the panic would end the connection's task, and
/// every other request on it; it would count as a client that went away.
async fn unbroken<T, E: From<Fault>>(work: impl Future<Output = Result<T, E>>) -> Result<T, E> {
    let mut work = pin!(work);
    let whole = poll_fn(|context| {
        let step = catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(context)));
        step.unwrap_or_else(|_| Poll::Ready(Err(Fault::Broken("a request ended in a panic".to_owned()).into())))
    });
    whole.await
}

/// Marks a response that is an error by its status but expected: to a device that polls (RFC 8628 §3.5).
#[derive(Clone, Copy, Debug)]
pub struct AsExpected;

/// Marks a response that counts like a failure although it is none: anybody may make the request, and what it asked for
/// is stored, or it had no effect.
#[derive(Clone, Copy, Debug)]
pub struct Counts;

/// Returns whether there was no room for the request.
fn is_put_off(response: &Response) -> bool {
    response.extensions().get().is_some_and(Refused::puts_off)
}

/// Gives back what was counted before a request was worked on, unless it failed or [counts](Counts). An application
/// that exceeds its own rate has shown who it is: that is held against it alone, and not against others at its address.
/// Its standing under a rate of its own takes precedence over its address's. Who failed too often with a password hears
/// nothing of other requests: those that are left would be an invitation to try again.
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
    let throttled = refused == Some(&Refused::Throttled);
    let address = door.site.admission.settle(debt, went).filter(|_| !throttled);
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
