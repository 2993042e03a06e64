//! Black-box tests of the real binary over HTTP: one module per specification, one per class of attacks, races, crashes
//! and durability. Servers start once per configuration and are shared; every test makes its own users and
//! applications, so tests may run side by side.

#![allow(clippy::unwrap_used, clippy::print_stdout, clippy::disallowed_methods, reason = "these are tests")]

mod attacks;
mod audit;
mod capacity;
mod commands;
mod crash;
mod deploy;
mod durability;
mod fence;
mod hashes;
mod lab;
mod load;
mod monitoring;
mod moving;
mod nodes;
mod pages;
mod profile;
mod races;
mod rfc;
mod rounds;
mod scale;
mod signals;
mod starts;
mod support;
mod tampered;
mod turns;
mod typed;
mod versions;
mod workers;
