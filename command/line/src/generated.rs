//! Completions and man pages, generated from the definitions of a program's commands.

use std::fs;
use std::path::PathBuf;

use clap::{Args, Command};
use clap_complete::{Shell, generate};
use clap_mangen::{Man, generate_to};

use crate::failure::Failure;
use crate::output;

/// Arguments of `completions`. [`describe`] adds the help.
#[derive(Debug, Args)]
pub struct CompletionsArguments {
    /// Name of the shell
    #[arg(value_name = "SHELL")]
    shell: Shell,
}

/// Arguments of `man`. [`describe`] adds the help.
#[derive(Debug, Args)]
pub struct ManArguments {
    /// Directory for the pages of all commands; it is created if it does not exist
    #[arg(value_name = "DIR")]
    directory: Option<PathBuf>,
}

/// Returns the definitions with the help texts of `completions` and `man`, which contain the
/// program's name.
#[must_use]
pub fn describe(definitions: Command) -> Command {
    let program = definitions.get_name().to_owned();
    let completions = |command: Command| {
        command
            .about(format!("Print a script that completes the arguments of `{program}` in a shell"))
            .after_help(format!(
                "Examples:
  {program} completions bash > ~/.local/share/bash-completion/completions/{program}
  {program} completions zsh > ~/.zfunc/_{program}
  {program} completions fish > ~/.config/fish/completions/{program}.fish"
            ))
    };
    let man = |command: Command| {
        command
            .about(format!(
                "Print the man page of `{program}`, or write the pages of all commands to a directory"
            ))
            .after_help(format!(
                "Examples:
  {program} man > {program}.1
  {program} man ~/.local/share/man/man1"
            ))
    };
    definitions.mut_subcommand("completions", completions).mut_subcommand("man", man)
}

impl CompletionsArguments {
    /// Prints the script for the commands in `definitions`.
    ///
    /// # Errors
    ///
    /// As for [`output::write`].
    pub fn run(&self, mut definitions: Command) -> Result<(), Failure> {
        let program = definitions.get_name().to_owned();
        let mut script = Vec::new();
        generate(self.shell, &mut definitions, program, &mut script);
        output::write(script)
    }
}

impl ManArguments {
    /// Prints one page, or writes the pages of all commands in `definitions`.
    ///
    /// # Errors
    ///
    /// As for [`output::write`], or a page cannot be written.
    pub fn run(&self, definitions: Command) -> Result<(), Failure> {
        let Some(directory) = &self.directory else {
            let mut page = Vec::new();
            // `help` has no page, so this page must not refer to one.
            let rendered = Man::new(definitions.disable_help_subcommand(true)).render(&mut page);
            rendered.expect("writing to memory succeeds");
            return output::write(page);
        };
        fs::create_dir_all(directory)
            .and_then(|()| generate_to(definitions, directory))
            .map_err(|error| Failure::of(&format!("write to {}", directory.display()), &error))
    }
}
