//! Measures an OpenID provider from the outside: over HTTP, knowing only what its discovery document says.
//!
//! A [`plan::Plan`] says what to do and for how long. [`run::run`] carries it out: visitors sign in (or fetch keys, or
//! refresh tokens) over their own connections, every latency goes into a histogram, and the result is a
//! [`report::Report`]. [`cli`] offers all of this as a command line.
//!
//! | module | what it holds |
//! |---|---|
//! | [`plan`] | what is measured: target, client, people, workload, pace, time |
//! | [`schedule`] | when the iterations of an open loop start, evenly spaced or at random |
//! | [`visitor`] | one virtual user: reads pages, fills in forms, exchanges codes |
//! | [`wire`] | HTTP/1.1 over one connection per origin, TLS, cookies, URLs, and which addresses may be reached |
//! | [`record`], [`timeline`] | one thread's histograms and counters, in total and per slice, merged at the end |
//! | [`run`] | threads, warm-up, window, processor time |
//! | [`interrupt`] | ending a run early |
//! | [`programme`] | measurements of several plans: repeats, streams side by side, sweeps, searches |
//! | [`search`] | the highest rate that the server still sustains |
//! | [`report`], [`series`], [`page`], [`output`] | the results: as a table, as JSON, as a page with charts |
//! | [`compare`] | a comparison of two results, with confidence intervals |
//!
//! The generator usually shares its machine with the server that it measures, so it is built to cost little: one thread
//! by default, no locks on the request path, reused buffers. It connects only to loopback unless told otherwise: it
//! makes load, and a mistyped address must not direct that load at somebody else's machine.

mod chance;
pub mod cli;
pub mod compare;
pub mod cpu;
mod desk;
mod doubts;
pub mod interrupt;
pub mod made;
pub mod output;
mod pacer;
pub mod page;
pub mod plan;
pub mod programme;
pub mod record;
mod rehearsal;
pub mod report;
mod room;
pub mod run;
pub mod schedule;
pub mod search;
pub mod series;
pub mod timeline;
mod turns;
pub mod visitor;
mod welch;
pub mod wire;

/// The reason why nothing was measured, in one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The plan makes no sense as given (exit code 2).
    Use(String),
    /// The plan is sound, but the target does not behave as it requires (exit code 1).
    Failure(String),
}

impl Refusal {
    /// Returns the exit code that a command should end with.
    pub const fn exit_code(&self) -> u8 {
        match self {
            Refusal::Use(_) => 2,
            Refusal::Failure(_) => 1,
        }
    }
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (Refusal::Use(line) | Refusal::Failure(line)) = self;
        f.write_str(line)
    }
}

impl std::error::Error for Refusal {}
