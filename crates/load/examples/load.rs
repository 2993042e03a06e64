//! The load generator as a program of its own.
//!
//! `cargo run --release -p load --example load -- w1 --client ID --client-secret-file F --redirect-uri URI --users FILE`

use clap::Parser;
use std::process::ExitCode;

/// Measures an OpenID provider.
#[derive(Parser)]
#[command(name = "load")]
struct Program {
    #[command(flatten)]
    command: load::cli::Command,
}

fn main() -> ExitCode {
    let program = Program::parse();
    match load::cli::main(&program.command, &load::interrupt::Interrupt::by_signals(), &mut std::io::stdout().lock()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(refusal) => {
            eprintln!("load: {refusal}");
            ExitCode::from(refusal.exit_code())
        }
    }
}
