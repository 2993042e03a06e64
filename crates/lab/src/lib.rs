//! What this machine can carry, and why: measured on it, predicted from that, and proved.
//!
//! | module | what it holds |
//! |---|---|
//! | [`private`] | servers of our own: a folder that goes away, people, a client, cores |
//! | [`capacity`] | `portiere capacity`: parts measured, a model of queues, what it predicts, the proof |
//! | [`experiments`] | `portiere lab`: named experiments, each one page of a report |
//! | [`report`] | what experiments came to: verdicts, a page, Markdown |
//! | [`cli`] | the command line of `portiere lab` |

pub mod capacity;
pub mod cli;
pub mod experiments;
pub mod private;
pub mod report;
