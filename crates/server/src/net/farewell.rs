//! The end of a connection that was told to end, and has nothing to do any more.

use super::clock::Clock;
use super::{Cut, Place};
use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::{Sleep, sleep};

/// How long it may take its client to hear that: HTTP/2 asks whether all was read that is on its way (a PING), and whoever has
/// gone without a word would answer never.
const LONGEST: Duration = Duration::from_secs(1);

/// Since when a connection has had nothing to do but to end.
#[derive(Default)]
pub struct Farewell(Option<Pin<Box<Sleep>>>);

impl Farewell {
    /// Ready once that took too long; `done` says whether there is nothing else to do now. To be polled only once it was told to end.
    pub fn poll(&mut self, context: &mut Context<'_>, done: bool) -> Poll<()> {
        if !done {
            self.0 = None;
            return Poll::Pending;
        }
        self.0.get_or_insert_with(|| Box::pin(sleep(LONGEST))).as_mut().poll(context)
    }
}

/// Counts how a connection ended: by itself, with an error of the client's, or, where there is nothing, since it was ended here.
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
