//! `apus completions`: scripts that complete arguments in a shell, generated from the definitions of the commands.

use clap::{Args, Command};
use clap_complete::{Shell, generate};

use crate::failure::Failure;
use crate::output;

/// Print a script that completes the arguments of `apus` in a shell
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  apus completions bash > ~/.local/share/bash-completion/completions/apus
  apus completions zsh > ~/.zfunc/_apus
  apus completions fish > ~/.config/fish/completions/apus.fish")]
pub(crate) struct Arguments {
    /// Name of the shell
    #[arg(value_name = "SHELL")]
    shell: Shell,
}

/// Prints the script for the commands in `definitions`.
pub(crate) fn run(arguments: &Arguments, mut definitions: Command) -> Result<(), Failure> {
    let mut script = Vec::new();
    generate(arguments.shell, &mut definitions, "apus", &mut script);
    output::write(script)
}
