//! The end of a connection that was told to end, and has nothing left to do.

use super::clock::Clock;
use super::{Cut, Place};
use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::{Sleep, sleep};

/// How long a client may take to confirm that: HTTP/2 asks whether it has read all that is on its way (a PING), and a
/// client that vanished would never answer.
const LONGEST: Duration = Duration::from_secs(1);

/// Since when a connection has had nothing left to do but end.
#[derive(Default)]
pub struct Farewell(Option<Pin<Box<Sleep>>>);

impl Farewell {
    /// Ready once that took too long; `done` if nothing else is left to do. Poll only after it was told to end.
    pub fn poll(&mut self, context: &mut Context<'_>, done: bool) -> Poll<()> {
        if !done {
            self.0 = None;
            return Poll::Pending;
        }
        self.0.get_or_insert_with(|| Box::pin(sleep(LONGEST))).as_mut().poll(context)
    }
}

/// Counts how a connection ended: by itself, with a client's error, or, if `ended` is `None`, by this server.
pub fn told<E: std::fmt::Display>(
    address: SocketAddr,
    (place, clock): (&Place, &Clock),
    ended: &Option<Result<(), E>>,
    made_way: bool,
) {
    let made_way = made_way.then_some(Cut::MadeWay);
    match ended {
        Some(Ok(())) => place.end(address, made_way.or_else(|| clock.said_too_much())),
        Some(Err(error)) => {
            place.end(address, clock.said_too_much());
            tracing::debug!(%address, %error, "connection broke");
        }
        None => place.end(address, made_way.or_else(|| clock.fault()).or_else(|| clock.said_too_much())),
    }
}
