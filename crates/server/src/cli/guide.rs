//! Generates the page `docs/guide/commands.md` from the table of commands. A test keeps the page up to date.

use super::table::Cli;
use clap::{Arg, Command, CommandFactory};
use std::fmt::Write as _;

/// Returns the page.
pub fn markdown() -> String {
    let mut program = Cli::command();
    program.build();
    let mut out = String::from(
        "# Commands

<!-- Generated from crates/server/src/cli/table.rs; `UPDATE_DOCS=1 make test` writes it again. -->

",
    );
    let _ = writeln!(out, "{}\n", about(&program));
    out.push_str(
        "A password or a secret is never an argument. It comes on standard input (`--password-stdin`, \
         `--secret-stdin`), where\none line break at its end is cut, or is typed at a terminal that does not show it. \
         There are two exceptions: the token\nof a hash worker, which is valid once and expires in minutes; and the \
         URL of a database (`move`, `lab`), which may hold\na password. `move` also reads a URL from a file. Wrong \
         use, or a file to read that does not exist, exits with code 2; a\nfailure exits with 1, \
         or with 75 if nothing was done, or a part of it as it says, and the same command may succeed later (the database is away, is being\nmoved or \
         is full of other changes; the server is busy, starts or stops). What a database server refuses exits with \
         1: a\nwrong password, a database that does not exist, missing rights, a certificate. So does a change of \
         which nobody knows\nwhether it was made. Each says why in one line on standard error.\n\nEvery command takes:\n\n",
    );
    out.push_str(&rows(program.get_arguments().filter(|arg| arg.is_global_set())));
    for command in commands(&program) {
        section(&mut out, command, 2);
    }
    out
}

fn commands(of: &Command) -> impl Iterator<Item = &Command> {
    of.get_subcommands().filter(|command| command.get_name() != "help" && !command.is_hide_set())
}

fn section(out: &mut String, command: &Command, depth: usize) {
    let name = command.get_bin_name().unwrap_or(command.get_name());
    let _ = writeln!(out, "\n{} {name}\n\n{}", "#".repeat(depth), about(command));
    // A command with commands below it may do something by itself, too.
    if !command.has_subcommands() || command.get_positionals().next().is_some() {
        own(out, command);
    }
    for below in commands(command) {
        section(out, below, depth + 1);
    }
}

fn own(out: &mut String, command: &Command) {
    let usage = command.clone().render_usage().to_string();
    let _ = writeln!(out, "\n```\n{}\n```", usage.trim_start_matches("Usage: "));
    let own = |arg: &&Arg| !arg.is_global_set() && !matches!(arg.get_id().as_str(), "help" | "version");
    let table = rows(command.get_arguments().filter(own));
    if !table.is_empty() {
        let _ = write!(out, "\n{table}");
    }
    if let Some(examples) = command.get_after_long_help() {
        let lines = examples.to_string();
        let lines = lines.lines().skip(1).map(|line| line.strip_prefix("  ").unwrap_or(line));
        let _ = writeln!(out, "\n```\n{}\n```", lines.collect::<Vec<_>>().join("\n"));
    }
}

fn about(command: &Command) -> String {
    let text = command.get_long_about().or(command.get_about()).map(ToString::to_string).unwrap_or_default();
    text.split("\n\n").map(|paragraph| format!("{}.", paragraph.trim_end_matches('.'))).collect::<Vec<_>>().join("\n\n")
}

fn rows<'a>(args: impl Iterator<Item = &'a Arg>) -> String {
    let rows: String = args.filter(|arg| !arg.is_hide_set()).map(row).collect();
    if rows.is_empty() { rows } else { format!("| argument | what it does |\n|---|---|\n{rows}") }
}

fn row(arg: &Arg) -> String {
    let help = arg.get_long_help().or(arg.get_help()).map(ToString::to_string).unwrap_or_default();
    let mut help = help.split_whitespace().collect::<Vec<_>>().join(" ");
    let takes = arg.get_action().takes_values();
    // Hidden choices are named in the argument's help.
    let choices = if arg.is_hide_possible_values_set() { Vec::new() } else { arg.get_possible_values() };
    if takes && !choices.is_empty() {
        let choices: Vec<_> = choices.iter().map(|choice| format!("`{}`", choice.get_name())).collect();
        let _ = write!(help, ": {}", choices.join(", "));
    }
    let defaults: Vec<_> = arg.get_default_values().iter().map(|value| value.to_string_lossy()).collect();
    if takes && !defaults.is_empty() {
        let _ = write!(help, " [default: {}]", defaults.join(", "));
    }
    let short = arg.get_short().map(|short| format!("-{short}, ")).unwrap_or_default();
    let shown = format!("{short}{arg}");
    format!("| `{}` | {} |\n", shown.replace('|', "\\|"), help.replace('|', "\\|").replace('<', "&lt;"))
}
