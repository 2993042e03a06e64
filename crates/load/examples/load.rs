//! The load generator as a program of its own.
//!
//! `cargo run --release -p load --example load -- w1 --client ID --client-secret-file F --redirect-uri URI --users FILE`

use clap::Parser;
use std::process::ExitCode;

/// Measures an OpenID provider on this machine.
#[derive(Parser)]
#[command(name = "load")]
struct Command {
    #[command(flatten)]
    options: load::cli::Options,
}

fn main() -> ExitCode {
    let command = Command::parse();
    match load::cli::main(&command.options, &mut std::io::stdout().lock()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(refusal) => {
            eprintln!("load: {refusal}");
            ExitCode::from(refusal.exit_code())
        }
    }
}
