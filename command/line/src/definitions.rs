//! Definitions of a command line: parsing, the version, and the examples at the end of each help
//! text.

use std::ffi::OsString;

use apus_report::result::COMMIT;
use clap::{Command, FromArgMatches};

use crate::failure::Failure;

/// Returns a version such as `0.1.0 (0123456789ab)`, without the commit if the build did not record
/// one.
#[must_use]
pub fn version() -> String {
    let version = env!("CARGO_PKG_VERSION");
    if COMMIT == "unknown" { version.to_owned() } else { format!("{version} ({COMMIT})") }
}

/// Parses the words of a command line, starting with the program's name.
///
/// # Errors
///
/// [`Failure::CommandLine`] if the arguments are wrong, or if they request help.
pub fn parse<T: FromArgMatches>(
    mut definitions: Command,
    words: impl IntoIterator<Item = OsString>,
) -> Result<T, Failure> {
    let matches = definitions.try_get_matches_from_mut(words).map_err(Failure::CommandLine)?;
    let parsed = T::from_arg_matches(&matches);
    parsed.map_err(|error| Failure::CommandLine(error.format(&mut definitions)))
}

/// Returns a valid invocation of the command named by `words`, for the message about wrong
/// arguments.
#[must_use]
pub fn example(definitions: &Command, words: &[OsString]) -> Option<String> {
    let mut command = definitions;
    for word in words.iter().skip(1) {
        command = command.find_subcommand(word).unwrap_or(command);
    }
    examples(command, definitions.get_name()).into_iter().next()
}

/// Returns the examples at the end of a command's help: the lines that start with the program's
/// name.
pub(crate) fn examples(command: &Command, program: &str) -> Vec<String> {
    let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let start = format!("{program} ");
    let lines = help.lines().map(str::trim).filter(|line| line.starts_with(&start));
    lines.map(str::to_owned).collect()
}
