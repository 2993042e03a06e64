//! The command line of `portiere lab`. The program around it parses ([`Command`] is a `clap::Args`), calls [`main`] and ends
//! with the exit code of the [`Refusal`], if any.

use crate::private;
use clap::{Args, Subcommand, ValueHint};
use load::Refusal;
use std::path::PathBuf;

/// What can be asked of the lab.
#[derive(Args, Clone, Debug)]
pub struct Command {
    /// Which of it.
    #[command(subcommand)]
    pub action: Action,
}

/// The commands.
#[derive(Clone, Debug, Subcommand)]
pub enum Action {
    /// Wait for the end of standard input, then end what it named and remove a folder
    #[command(hide = true)]
    Guard {
        /// The folder of a private server
        #[arg(value_hint = ValueHint::DirPath)]
        folder: PathBuf,
    },
}

/// Does what `command` says.
///
/// # Errors
/// [`Refusal`]: one line for the user, and the exit code.
pub fn main(command: &Command) -> Result<(), Refusal> {
    match &command.action {
        Action::Guard { folder } => private::guard(folder, std::io::stdin().lock()),
    }
}
