//! Portiere: an OpenID provider in one binary with one data folder.

mod admission;
mod auditing;
mod boot;
mod cli;
mod config;
mod control;
mod database;
mod fence;
#[cfg(test)]
mod generated;
mod hashing;
#[cfg(test)]
mod house;
mod http;
mod journal;
mod logs;
mod loops;
mod metrics;
mod named_file;
mod net;
mod pages;
mod private;
mod profile;
mod receivers;
mod setup_link;
mod strain;
mod trace;
mod trial;
mod verifier;
#[cfg(test)]
mod versions;

/// Packs the memory of thousands of requests tighter than the C library's (docs/decisions/0027-allocator.md).
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> std::process::ExitCode {
    cli::main()
}
