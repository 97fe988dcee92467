//! `apus man`: man pages, generated from the definitions of the commands.

use std::fs;
use std::path::PathBuf;

use clap::{Args, Command};
use clap_mangen::{Man, generate_to};

use crate::failure::Failure;
use crate::output;

/// Print the man page of `apus`, or write the pages of all commands to a directory
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  apus man > apus.1
  apus man ~/.local/share/man/man1")]
pub(crate) struct Arguments {
    /// Directory for the pages of all commands; it is created if it does not exist
    #[arg(value_name = "DIR")]
    directory: Option<PathBuf>,
}

/// Prints one page, or writes the pages of all commands in `definitions`.
pub(crate) fn run(arguments: &Arguments, definitions: Command) -> Result<(), Failure> {
    let Some(directory) = &arguments.directory else {
        let mut page = Vec::new();
        // `apus help` has no page of its own, so this page must not refer to one.
        let rendered = Man::new(definitions.disable_help_subcommand(true)).render(&mut page);
        rendered.expect("writing to memory succeeds");
        return output::write(page);
    };
    fs::create_dir_all(directory)
        .and_then(|()| generate_to(definitions, directory))
        .map_err(|error| Failure::of(&format!("write to {}", directory.display()), &error))
}
