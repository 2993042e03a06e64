//! A door: a request, and what is behind it. The route says how a refusal is told there, so that no handler can tell it
//! in another way, or forget to.

use super::Site;
use super::error::Refusal;
use super::reply;
use super::visit::Visit;
use app::browser::Browser;
use axum::body::Body;
use axum::extract::Request;
use axum::handler::Handler;
use axum::response::Response;
use hyper::{HeaderMap, Method, StatusCode, Uri};
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

    fn page(&self, refusal: Refusal) -> Response {
        refusal.to_page(&self.site, &self.visit, &self.headers, None)
    }
}

/// A handler with its way to tell a refusal.
#[derive(Clone)]
pub struct Told<A> {
    act: A,
    refuse: fn(&Door, Refusal) -> Response,
}

/// Refusals are pages, for people.
pub fn page<A>(act: A) -> Told<A> {
    Told { act, refuse: Door::page }
}

/// Refusals are what client libraries read (RFC 6749 §5.2).
pub fn json<A>(act: A) -> Told<A> {
    Told { act, refuse: |door, refusal| refusal.to_json(&door.visit) }
}

/// Refusals are those of a resource server (RFC 6750 §3).
pub fn bearer<A>(act: A) -> Told<A> {
    Told { act, refuse: |door, refusal| refusal.to_bearer(&door.visit) }
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
            let answer = (self.act)(door.clone(), body).await;
            answer.unwrap_or_else(|refusal| (self.refuse)(&door, refusal))
        })
    }
}
