//! Manual pages and completions, made from the table of commands.

use super::outcome::Failure;
use super::table::Cli;
use clap::{Args, CommandFactory, ValueHint};
use clap_mangen::roff::{Roff, roman};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The arguments of `man`.
#[derive(Clone, Debug, Args)]
pub struct Man {
    /// A command, such as: client add
    pub command: Vec<String>,
    /// Write the pages of all commands into this folder instead
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, conflicts_with = "command")]
    pub dir: Option<PathBuf>,
}

impl Man {
    /// Returns the page; nothing if the pages were written to a folder.
    pub fn page(&self) -> Result<Vec<u8>, Failure> {
        // Pages about the command `help`, which every command with subcommands has, would say nothing.
        let mut program = Cli::command().disable_help_subcommand(true);
        program.build();
        let program = with_synopsis(program);
        if let Some(folder) = &self.dir {
            let failed = |error| Failure::Failed(format!("{}: {error}", folder.display()));
            std::fs::create_dir_all(folder).map_err(failed)?;
            write_pages(&program, folder).map_err(failed)?;
            return Ok(Vec::new());
        }
        let mut command = &program;
        for word in &self.command {
            let next = command.find_subcommand(word).filter(|next| !next.is_hide_set());
            command = next.ok_or_else(|| Failure::Use(format!("{} has no command {word}", command.get_name())))?;
        }
        Ok(page(command)?.into_bytes())
    }
}

fn write_pages(command: &clap::Command, folder: &Path) -> std::io::Result<()> {
    for below in command.get_subcommands().filter(|below| !below.is_hide_set()) {
        write_pages(below, folder)?;
    }
    std::fs::write(folder.join(format!("{}.1", title(command))), page(command)?)
}

fn title(command: &clap::Command) -> &str {
    command.get_display_name().unwrap_or(command.get_name())
}

/// Renders the page of one command. No word is hyphenated and no line is stretched, since the text to type must not be.
/// What follows the help comes last, in sections of its own.
fn page(command: &clap::Command) -> std::io::Result<String> {
    let nothing = None::<&'static str>;
    let bare = command.clone().after_help(nothing).after_long_help(nothing);
    let source = format!("portiere {}", env!("CARGO_PKG_VERSION"));
    // No date, in quotes: an empty one would be left out, and the source would take its place.
    let written = clap_mangen::Man::new(bare).title(title(command)).date("\"\"").source(source);
    let mut page = Vec::new();
    written.render(&mut page)?;
    let mut page = String::from_utf8_lossy(&page).into_owned();
    let ends = page.find(".TH ").and_then(|at| Some(at + page.get(at..)?.find('\n')? + 1));
    page.insert_str(ends.unwrap_or(0), ".nh\n.ad l\n");
    let after = command.get_after_long_help().map(ToString::to_string).unwrap_or_default();
    page.push_str(&sections(&after));
    Ok(page)
}

/// Renders what follows a command's help: a word and a colon at the beginning of a line head a section, and everything
/// that is indented below it is shown line by line.
fn sections(help: &str) -> String {
    let mut roff = Roff::new();
    let mut shown = false;
    for line in help.lines() {
        let Some((heading, rest)) = line.split_once(':').filter(|_| !line.starts_with(' ')) else {
            roff.text([roman(line.strip_prefix("  ").unwrap_or(line))]);
            continue;
        };
        if shown {
            roff.control("fi", []);
        }
        roff.control("SH", [heading.to_uppercase().as_str()]);
        shown = rest.is_empty();
        match shown {
            true => roff.control("nf", []),
            false => roff.text([roman(rest.trim_start())]),
        };
    }
    if shown {
        roff.control("fi", []);
    }
    // As they are in a shell, not as a typesetter would set them.
    let plain = [('\'', r"\*(Aq"), ('`', r"\(ga"), ('^', r"\(ha"), ('~', r"\(ti")];
    plain.into_iter().fold(roff.to_roff(), |text, (c, escape)| text.replace(c, escape))
}

/// Gives every command a synopsis that says what each option takes.
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

/// Returns the completion script for a shell.
pub fn completions(shell: clap_complete::Shell) -> Vec<u8> {
    let mut script = Vec::new();
    let mut program = without_files(with_names(without_hidden(&Cli::command())));
    if shell == clap_complete::Shell::Bash {
        program = without_values_after_equals(program);
    }
    clap_complete::generate(shell, &mut program, "portiere", &mut script);
    if shell == clap_complete::Shell::Fish {
        script = with_equals_for_fish(&program, &String::from_utf8_lossy(&script)).into_bytes();
        script.extend(choices_for_fish(&program).into_bytes());
    }
    script
}

/// Adds the names that arguments may have and that the parser does not know: commands, and experiments. What else is
/// typed gets an answer in our own words.
fn with_names(program: clap::Command) -> clap::Command {
    let commands = words_below(&program);
    let experiments: Vec<&str> = lab::experiments::ALL.iter().map(|experiment| experiment.name).collect();
    let man = |man: clap::Command| man.mut_arg("command", |arg| arg.value_parser(commands));
    let run = |run: clap::Command| run.mut_arg("names", |arg| arg.value_parser(experiments));
    program.mut_subcommand("man", man).mut_subcommand("lab", |lab| lab.mut_subcommand("run", run))
}

/// Returns the names of all commands, each once.
fn words_below(command: &clap::Command) -> Vec<&'static str> {
    let names =
        command.get_subcommands().flat_map(|below| std::iter::once(named(below.get_name())).chain(words_below(below)));
    names.collect::<BTreeSet<_>>().into_iter().collect()
}

/// Says that a value is no file where neither its type nor a hint says that it is one: shells would offer files. For a
/// URL, bash would, too.
fn without_files(command: clap::Command) -> clap::Command {
    let is_free = |arg: &clap::Arg| arg.get_action().takes_values() && arg.get_possible_values().is_empty();
    let hinted = |arg: clap::Arg| match arg.get_value_hint() {
        ValueHint::Unknown | ValueHint::Url if is_free(&arg) => arg.value_hint(ValueHint::Other),
        _ => arg,
    };
    command.mut_args(hinted).mut_subcommands(without_files)
}

/// Makes plain flags of options whose value may only follow an equals sign (`--trusted=no`): bash would offer the value
/// as the next word, which is refused.
fn without_values_after_equals(command: clap::Command) -> clap::Command {
    let plain = |arg: clap::Arg| match arg.get_long().map(named) {
        Some(long) if arg.is_require_equals_set() => {
            let flag = clap::Arg::new(arg.get_id().clone()).long(long).action(clap::ArgAction::SetTrue);
            arg.get_help().into_iter().fold(flag, |flag, help| flag.help(help.clone()))
        }
        _ => arg,
    };
    command.mut_args(plain).mut_subcommands(without_values_after_equals)
}

/// Returns the script without the word that makes fish offer such a value as the next word, too.
fn with_equals_for_fish(program: &clap::Command, script: &str) -> String {
    let lines = script.lines().map(|line| match needs_equals(program, line) {
        true => line.replacen(" -r -f -a ", " -f -a ", 1) + "\n",
        false => format!("{line}\n"),
    });
    lines.collect()
}

/// Returns whether a line of that script is about an option whose value may only follow an equals sign.
fn needs_equals(program: &clap::Command, line: &str) -> bool {
    let is_named = |arg: &clap::Arg| arg.get_long().is_some_and(|long| line.contains(&format!(" -l {long} ")));
    program.get_arguments().any(|arg| arg.is_require_equals_set() && is_named(arg))
        || program.get_subcommands().any(|below| needs_equals(below, line))
}

/// Returns what fish may offer for a word without a flag: its generator leaves that out, and fish would offer files.
fn choices_for_fish(program: &clap::Command) -> String {
    let mut lines = String::new();
    for command in program.get_subcommands() {
        let using = format!("__fish_portiere_using_subcommand {}", command.get_name());
        lines += &choices(command, &using);
        for below in command.get_subcommands() {
            lines += &choices(below, &format!("{using}; and __fish_seen_subcommand_from {}", below.get_name()));
        }
    }
    lines
}

/// Returns the line with what fish may offer for a word of this command, if there is anything.
fn choices(command: &clap::Command, using: &str) -> String {
    let values = command.get_positionals().flat_map(clap::Arg::get_possible_values);
    let names: Vec<String> = values.map(|value| value.get_name().to_owned()).collect();
    match names.is_empty() {
        true => String::new(),
        false => format!("complete -c portiere -n \"{using}\" -f -a \"{}\"\n", names.join(" ")),
    }
}

/// Returns a name that lives as long as the program, as those of commands have to: the program makes one script and ends.
fn named(name: &str) -> &'static str {
    name.to_owned().leak()
}

/// Copies the table without its hidden entries, which completions would offer, too.
fn without_hidden(command: &clap::Command) -> clap::Command {
    let shown = command.get_subcommands().filter(|below| !below.is_hide_set()).map(without_hidden);
    let copy = clap::Command::new(named(command.get_name()))
        .args(command.get_arguments().filter(|arg| !arg.is_hide_set()))
        .visible_aliases(command.get_visible_aliases().map(named))
        .subcommands(shown);
    let copy = command.get_about().into_iter().fold(copy, |copy, about| copy.about(about.clone()));
    command.get_version().map(named).into_iter().fold(copy, clap::Command::version)
}
