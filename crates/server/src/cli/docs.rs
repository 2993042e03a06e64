//! What the table of commands says elsewhere: manual pages and completions.

use super::outcome::Failure;
use super::table::Cli;
use clap::{Args, CommandFactory, ValueHint};
use std::path::PathBuf;

/// Which manual page.
#[derive(Clone, Debug, Args)]
pub struct Man {
    /// A command, such as: client add
    pub command: Vec<String>,
    /// Write the pages of all commands into this folder instead
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, conflicts_with = "command")]
    pub dir: Option<PathBuf>,
}

impl Man {
    /// The page; nothing when the pages were written to a folder.
    pub fn page(&self) -> Result<Vec<u8>, Failure> {
        // A page about the command `help`, and one more below each that has commands, would say nothing.
        let mut program = Cli::command().disable_help_subcommand(true);
        program.build();
        let program = with_synopsis(program);
        if let Some(folder) = &self.dir {
            let failed = |error| Failure::Failed(format!("{}: {error}", folder.display()));
            std::fs::create_dir_all(folder).map_err(failed)?;
            clap_mangen::generate_to(program, folder).map_err(failed)?;
            return Ok(Vec::new());
        }
        let mut command = &program;
        for word in &self.command {
            let next = command.find_subcommand(word).filter(|next| !next.is_hide_set());
            command = next.ok_or_else(|| Failure::Use(format!("{} has no command {word}", command.get_name())))?;
        }
        let mut page = Vec::new();
        let name = command.get_display_name().unwrap_or(command.get_name()).to_owned();
        clap_mangen::Man::new(command.clone()).title(name).render(&mut page)?;
        Ok(page)
    }
}

/// With synopses that say what each option takes, all the way down.
fn with_synopsis(command: clap::Command) -> clap::Command {
    let synopsis = synopsis(&command);
    command.mut_subcommands(with_synopsis).override_usage(synopsis)
}

fn synopsis(command: &clap::Command) -> String {
    let mut words = vec![command.get_bin_name().unwrap_or(command.get_name()).to_owned()];
    let shown = || command.get_arguments().filter(|arg| !arg.is_hide_set());
    let optional = |arg: &clap::Arg| if arg.is_required_set() { arg.to_string() } else { format!("[{arg}]") };
    words.extend(shown().filter(|arg| !arg.is_positional()).map(optional));
    words.extend(shown().filter(|arg| arg.is_positional()).map(clap::Arg::to_string));
    if command.get_subcommands().any(|below| !below.is_hide_set()) {
        words.push("<command>".to_owned());
    }
    words.join(" ")
}

/// A shell's completions.
pub fn completions(shell: clap_complete::Shell) -> Vec<u8> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut without_hidden(&Cli::command()), "portiere", &mut script);
    script
}

/// The table as completions want it, which offer what is hidden, too. Names have to live as long as the program: it makes one
/// script and ends.
fn without_hidden(command: &clap::Command) -> clap::Command {
    let named = |name: &str| &*name.to_owned().leak();
    let shown = command.get_subcommands().filter(|below| !below.is_hide_set()).map(without_hidden);
    let copy = clap::Command::new(named(command.get_name()))
        .args(command.get_arguments().filter(|arg| !arg.is_hide_set()))
        .visible_aliases(command.get_visible_aliases().map(named))
        .subcommands(shown);
    let copy = command.get_about().into_iter().fold(copy, |copy, about| copy.about(about.clone()));
    command.get_version().map(named).into_iter().fold(copy, clap::Command::version)
}
