//! The loops of a server, and what happens when one breaks down.

use super::*;
use crate::loops::without_time;
use crate::net::serve;

#[test]
#[should_panic(expected = "timers are disabled")]
fn a_door_that_breaks_down_ends_the_server() {
    // Red where doors are first checked when the server is told to stop: one is closed, and nobody knows.
    let elsewhere = tokio::runtime::Builder::new_current_thread().enable_io().build().unwrap();
    let bound = elsewhere.block_on(async { Listeners::bind(&["127.0.0.1:0".parse().unwrap()], false) });
    let listeners = bound.unwrap();
    // From now on nothing can be accepted there; the pause after a failure needs the timer.
    drop(elsewhere);
    let (_stop, told) = mpsc::unbounded_channel();
    without_time(serve(listeners, generous(), Router::new(), told));
}
