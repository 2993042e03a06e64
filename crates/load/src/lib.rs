//! Measures an OpenID provider from the outside, as a stranger would: over HTTP, knowing only what discovery says.
//!
//! A [`plan::Plan`] says what to do and for how long. [`run::run`] carries it out: visitors sign in (or ask for keys, or
//! refresh tokens) over their own connections, every latency goes into a histogram, and a [`report::Report`] comes back.
//! [`cli`] is the same as a command line.
//!
//! | module | what it holds |
//! |---|---|
//! | [`plan`] | what is measured: target, client, people, workload, pace, time |
//! | [`schedule`] | when the iterations of an open loop start, evenly or by chance |
//! | [`visitor`] | one virtual user: reads pages, fills forms, exchanges codes |
//! | [`wire`] | HTTP/1.1 over one connection per origin, TLS, cookies, URLs, and how far it may go |
//! | [`record`], [`timeline`] | histograms and counters of one thread, whole and by slices, merged at the end |
//! | [`run`] | threads, warm-up, window, processor time |
//! | [`interrupt`] | an end before its time |
//! | [`programme`] | what takes several plans: repeats, streams side by side, sweeps, searches |
//! | [`search`] | the highest rate that still holds |
//! | [`report`], [`series`], [`page`], [`output`] | what is said afterwards: as a table, as JSON, as a page with charts |
//! | [`compare`] | two results, with confidence intervals |
//!
//! The generator mostly shares its machine with the server that it measures, so it is built to cost little: one thread by
//! default, no locks on the path of a request, buffers that are used again. It speaks to loopback unless told otherwise: it
//! makes load, and a mistyped address must not turn it on somebody else's machine.

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

/// Why nothing was measured, in one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The plan makes no sense as given (exit code 2).
    Use(String),
    /// The plan is sound, but the target does not play its part (exit code 1).
    Failure(String),
}

impl Refusal {
    /// The exit code that a command should end with.
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
