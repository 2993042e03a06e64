//! The pool and the gate together, with a kernel that does as it is told.

mod admission;
mod batches;
mod calibration;
mod claims;
mod liars;
mod memory;
mod stage;
mod watch;
mod workers;
