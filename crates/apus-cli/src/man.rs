//! Where do the man pages come from?

use std::fs;
use std::path::PathBuf;

use clap::Args;
use clap_mangen::{Man, generate_to};

use crate::command_line::definitions;
use crate::failure::Failure;
use crate::output;

/// Print the man page, or write the pages of all commands into a directory
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  apus man > apus.1
  apus man ~/.local/share/man/man1")]
pub(crate) struct Arguments {
    /// Where the pages of all commands go; it is made if it is missing
    #[arg(value_name = "DIR")]
    directory: Option<PathBuf>,
}

/// Prints one page or writes all.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let Some(directory) = &arguments.directory else {
        let mut page = Vec::new();
        // There is no page about `help`, so this one does not refer to it.
        let rendered = Man::new(definitions().disable_help_subcommand(true)).render(&mut page);
        rendered.expect("memory takes everything");
        return output::write(page);
    };
    fs::create_dir_all(directory)
        .and_then(|()| generate_to(definitions(), directory))
        .map_err(|error| Failure::of(&format!("write to {}", directory.display()), &error))
}
