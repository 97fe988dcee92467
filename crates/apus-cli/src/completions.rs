//! How does a shell learn what to suggest?

use clap::Args;
use clap_complete::{Shell, generate};

use crate::command_line::definitions;
use crate::failure::Failure;
use crate::output;

/// Print a script that completes the arguments of `apus` in a shell
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  apus completions bash > ~/.local/share/bash-completion/completions/apus
  apus completions zsh > ~/.zfunc/_apus
  apus completions fish > ~/.config/fish/completions/apus.fish")]
pub(crate) struct Arguments {
    /// The shell
    #[arg(value_name = "SHELL")]
    shell: Shell,
}

/// Prints the script.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let mut script = Vec::new();
    generate(arguments.shell, &mut definitions(), "apus", &mut script);
    output::write(script)
}
