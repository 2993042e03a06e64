//! What this machine can carry: measured parts, a queueing model, its predictions, and the verification.
//!
//! | module | what it holds |
//! |---|---|
//! | [`probe`] | the parts of the machine, each measured alone |
//! | [`demand`] | what each kind of operation demands of them |
//! | [`stations`] | the machine as queues, and which of them sets the limit |
//! | [`simulate`] | a simulation of those queues |

pub mod advice;
pub mod cli;
pub mod demand;
pub mod figure;
pub mod outcome;
pub mod page;
pub mod predict;
pub mod probe;
pub mod progress;
pub mod report;
pub mod simulate;
pub mod stations;
pub mod users;
pub mod verify;
