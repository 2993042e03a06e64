//! Serves the metrics, on addresses of their own, so that no mistake at the proxy shows them to the world.

use super::glance::Glance;
use super::page;
use super::secret::ScrapeSecret;
use crate::boot::BootError;
use crate::config::Config;
use crate::http::{Site, plain};
use crate::net::{self, Caps, Listeners, Terms};
use axum::Router;
use axum::extract::State;
use axum::response::Response;
use axum::routing::get;
use hyper::header::{AUTHORIZATION, HeaderMap, HeaderValue, WWW_AUTHENTICATE};
use hyper::{Method, StatusCode};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;

/// Connections at a time: a few scrapers, and a person who looks.
const CONNECTIONS: usize = 64;
/// Connections at a time from one address, other than this machine's.
const OF_ONE_ADDRESS: usize = 8;
/// The longest that a scraper takes for its request, which it has ready.
const HEADER_TIMEOUT: Duration = Duration::from_secs(2);
/// For so long, a connection on which nothing runs does not make way for another one.
const QUIET: Duration = Duration::from_secs(1);

/// What is needed to serve metrics: bound addresses, and the secret.
pub struct Desk {
    listeners: Listeners,
    terms: Terms,
    secret: Option<Arc<ScrapeSecret>>,
    glance: Glance,
}

/// The state from which a scrape is answered.
struct Counter {
    site: Site,
    secret: Option<Arc<ScrapeSecret>>,
    glance: Glance,
}

impl Desk {
    /// Makes the configured desk; `None` if metrics are not served.
    pub fn of(config: &Config) -> Result<Option<Self>, BootError> {
        let metrics = &config.metrics;
        if metrics.listen.is_empty() {
            return Ok(None);
        }
        let secret = secret(config)?;
        let listeners = Listeners::bind(&metrics.listen, false)?;
        tracing::info!(addresses = ?listeners.addresses(), "metrics are served");
        let limits = &config.limits;
        let terms = Terms {
            header_timeout: limits.header_timeout.min(HEADER_TIMEOUT),
            idle_timeout: limits.idle_timeout,
            // A scraper asks again.
            stop_delay: Duration::ZERO,
            hear_out: Duration::ZERO,
            quiet: limits.idle_timeout.min(QUIET),
            drain_timeout: Duration::ZERO,
            caps: Caps::new(CONNECTIONS, OF_ONE_ADDRESS, Vec::new()),
            tls: None,
            hears_hangups: false,
        };
        Ok(Some(Desk { listeners, terms, secret, glance: Glance::of(&config.server.data) }))
    }
}

/// Returns the secret that a scraper has to know, if there is one.
pub fn secret(config: &Config) -> Result<Option<Arc<ScrapeSecret>>, BootError> {
    config.metrics.secret.as_ref().map(ScrapeSecret::load).transpose().map_err(BootError::Other)
}

/// Serves the metrics until it is dropped; waits for ever without a desk.
pub async fn serve(desk: Option<Desk>, site: Site) {
    let Some(Desk { listeners, terms, secret, glance }) = desk else { return std::future::pending().await };
    let router = Router::new().route("/metrics", get(scrape).fallback(only_get)).fallback(nothing);
    let counter = Arc::new(Counter { site, secret, glance });
    // Before the first scrape is answered.
    counter.glance.look(&counter.site).await;
    let router = router.with_state(Arc::clone(&counter));
    tokio::select! {
        _ = net::serve(listeners, terms, router, mpsc::unbounded_channel().1) => {}
        () = counter.glance.renew(&counter.site) => {}
        () = watch(counter.secret.clone()) => {}
    }
}

/// Reads the secret again, if there is one.
async fn watch(secret: Option<Arc<ScrapeSecret>>) {
    match secret {
        Some(secret) => secret.watch().await,
        None => std::future::pending().await,
    }
}

async fn scrape(State(counter): State<Arc<Counter>>, headers: HeaderMap) -> Response {
    let Counter { site, secret, glance } = &*counter;
    if !secret.as_ref().is_none_or(|secret| knows(&headers, secret)) {
        let mut response = plain(StatusCode::UNAUTHORIZED, "text/plain", "the secret of metrics.secret is needed\n");
        response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"metrics\""));
        return response;
    }
    plain(StatusCode::OK, "text/plain; version=0.0.4; charset=utf-8", page(site, glance.looked()).await)
}

fn knows(headers: &HeaderMap, secret: &ScrapeSecret) -> bool {
    let mut lines = headers.get_all(AUTHORIZATION).iter();
    let (Some(line), None) = (lines.next(), lines.next()) else { return false };
    let given = line.to_str().ok().and_then(|line| line.split_once(' '));
    given.is_some_and(|(scheme, token)| scheme.eq_ignore_ascii_case("bearer") && secret.is(token.as_bytes()))
}

async fn only_get(method: Method) -> Response {
    let mut response = plain(StatusCode::METHOD_NOT_ALLOWED, "text/plain", format!("{method} is not served here\n"));
    response.headers_mut().insert(hyper::header::ALLOW, HeaderValue::from_static("GET, HEAD"));
    response
}

async fn nothing() -> Response {
    plain(StatusCode::NOT_FOUND, "text/plain", "there is only /metrics here\n")
}
