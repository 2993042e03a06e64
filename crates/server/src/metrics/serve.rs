//! Where the metrics are served: on addresses of their own, so that no mistake at the front shows them to the world.

use super::glance::Glance;
use super::page;
use crate::boot::BootError;
use crate::config::Config;
use crate::http::{Site, plain};
use crate::net::{self, Caps, Listeners, Terms};
use crate::private;
use axum::Router;
use axum::extract::State;
use axum::response::Response;
use axum::routing::get;
use hyper::header::{AUTHORIZATION, HeaderMap, HeaderValue, WWW_AUTHENTICATE};
use hyper::{Method, StatusCode};
use rules::secret::same;
use std::sync::Arc;
use tokio::sync::mpsc;
use zeroize::Zeroizing;

/// Connections at a time: a few scrapers, and somebody who looks.
const CONNECTIONS: usize = 64;
/// The shortest secret.
const SHORTEST: usize = 16;

/// What is needed to serve them: bound addresses, and the secret.
pub struct Desk {
    listeners: Listeners,
    terms: Terms,
    secret: Option<Zeroizing<Vec<u8>>>,
    glance: Glance,
}

/// What a scrape is answered from.
struct Counter {
    site: Site,
    secret: Option<Zeroizing<Vec<u8>>>,
    glance: Glance,
}

impl Desk {
    /// As configured; `None` where metrics are served nowhere.
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
            header_timeout: limits.header_timeout,
            idle_timeout: limits.idle_timeout,
            // Who scrapes asks again.
            stop_delay: std::time::Duration::ZERO,
            hear_out: std::time::Duration::ZERO,
            quiet: limits.idle_timeout,
            drain_timeout: std::time::Duration::ZERO,
            caps: Caps::new(CONNECTIONS, CONNECTIONS, Vec::new()),
            tls: None,
            hears_hangups: false,
        };
        Ok(Some(Desk { listeners, terms, secret, glance: Glance::of(&config.server.data) }))
    }
}

/// The secret that whoever scrapes has to know, if there is one.
pub fn secret(config: &Config) -> Result<Option<Zeroizing<Vec<u8>>>, BootError> {
    let Some(file) = &config.metrics.secret else { return Ok(None) };
    let failed = |why: String| BootError::Other(file.wrong("metrics.secret", &why));
    let text = private::read_text(file).map_err(|why| failed(why.to_string()))?;
    let text = Zeroizing::new(text.trim_ascii().to_vec());
    match text.len() < SHORTEST {
        true => Err(failed(format!("has fewer than {SHORTEST} characters"))),
        false => Ok(Some(text)),
    }
}

/// Serves them until it is dropped; for ever nothing where they are served nowhere.
pub async fn serve(desk: Option<Desk>, site: Site) {
    let Some(Desk { listeners, terms, secret, glance }) = desk else { return std::future::pending().await };
    let router = Router::new().route("/metrics", get(scrape).fallback(only_get)).fallback(nothing);
    let counter = Arc::new(Counter { site, secret, glance });
    // Before anybody is answered.
    counter.glance.look(&counter.site).await;
    let router = router.with_state(Arc::clone(&counter));
    tokio::select! {
        _ = net::serve(listeners, terms, router, mpsc::unbounded_channel().1) => {}
        () = counter.glance.renew(&counter.site) => {}
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

fn knows(headers: &HeaderMap, secret: &[u8]) -> bool {
    let mut lines = headers.get_all(AUTHORIZATION).iter();
    let (Some(line), None) = (lines.next(), lines.next()) else { return false };
    let given = line.to_str().ok().and_then(|line| line.split_once(' '));
    given.is_some_and(|(scheme, token)| scheme.eq_ignore_ascii_case("bearer") && same(token.as_bytes(), secret))
}

async fn only_get(method: Method) -> Response {
    let mut response = plain(StatusCode::METHOD_NOT_ALLOWED, "text/plain", format!("{method} is not served here\n"));
    response.headers_mut().insert(hyper::header::ALLOW, HeaderValue::from_static("GET, HEAD"));
    response
}

async fn nothing() -> Response {
    plain(StatusCode::NOT_FOUND, "text/plain", "there is only /metrics here\n")
}
