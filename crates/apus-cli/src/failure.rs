//! Why was there no result?

use std::process::ExitCode;

use clap::error::ErrorKind;

use crate::output;

/// Why a command did not do what it was asked for.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The arguments are no command, or help was asked for.
    CommandLine(clap::Error),
    /// An argument that looked right and is not.
    Argument {
        /// As it is written, like `--size`.
        argument: String,
        /// What is wrong with its value, and what would be right.
        problem: String,
    },
    /// The work failed; what happened, and what to do.
    Work(String),
    /// The work is done, and what it has found is bad: all is said, but for the exit status.
    Found(u8),
    /// Nobody reads the output any more, so there is nothing left to do.
    ReaderGone,
}

/// Exit status for wrong arguments.
const WRONG_ARGUMENTS: u8 = 2;

impl Failure {
    /// The work failed while `doing` this.
    pub(crate) fn of(doing: &str, error: &impl ToString) -> Self {
        Self::Work(format!("{doing}: {}", error.to_string()))
    }

    /// Says on standard error what happened, and gives the exit status.
    pub(crate) fn report(self, example: Option<String>) -> ExitCode {
        match self {
            Self::ReaderGone => ExitCode::SUCCESS,
            Self::Found(status) => ExitCode::from(status),
            Self::Work(message) => {
                tell(&clap::Error::raw(ErrorKind::Io, message + "\n"));
                ExitCode::FAILURE
            }
            Self::Argument { argument, problem } => {
                let message = format!("invalid value for '{argument}': {problem}\n");
                wrong(&clap::Error::raw(ErrorKind::ValueValidation, message), example)
            }
            Self::CommandLine(error) if error.use_stderr() => wrong(&error, example),
            Self::CommandLine(help) => match output::written(help.print()) {
                Ok(()) => ExitCode::SUCCESS,
                Err(failure) => failure.report(None),
            },
        }
    }
}

/// Says what is wrong with the arguments, and what would be right.
fn wrong(error: &clap::Error, example: Option<String>) -> ExitCode {
    tell(error);
    // Help, which is shown when there are no arguments, ends with examples itself.
    let help = error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand;
    if let Some(example) = example.filter(|_| !help) {
        output::note(&format!("Try: {example}"));
    }
    ExitCode::from(WRONG_ARGUMENTS)
}

/// Prints to standard error, in colours if that is a terminal.
fn tell(error: &clap::Error) {
    // If nobody reads it, nobody misses it.
    let _ = error.print();
}

/// Options of experiments have the names of arguments.
impl From<apus_lab::Error> for Failure {
    fn from(error: apus_lab::Error) -> Self {
        match error {
            apus_lab::Error::Option { option, problem } => {
                Self::Argument { argument: format!("--{option}"), problem }
            }
            error => Self::Work(error.to_string()),
        }
    }
}
