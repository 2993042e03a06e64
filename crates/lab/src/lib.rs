//! What this machine can carry, and why: measured on it, predicted from the measurements, and verified.
//!
//! | module | what it holds |
//! |---|---|
//! | [`private`] | private servers: a temporary folder, people, a client, cores |
//! | [`capacity`] | `portiere capacity`: measured parts, a queueing model, its predictions, the verification |
//! | [`experiments`] | `portiere lab`: named experiments, each one page of a report |
//! | [`report`] | the results of experiments: verdicts, a page, Markdown |
//! | [`cli`] | the command line of `portiere lab` |

pub mod capacity;
pub mod cli;
pub mod experiments;
pub mod private;
pub mod report;
