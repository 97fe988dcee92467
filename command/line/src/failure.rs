//! Failures: why a command has no result.
//!
//! Commands return a [`Failure`]; [`exit`](crate::exit) prints it and maps it to the exit status.

/// Why a command did not do its work.
#[derive(Debug)]
pub enum Failure {
    /// The arguments do not parse, or they ask for help.
    CommandLine(clap::Error),
    /// An argument parses, but its value cannot be used.
    Argument {
        /// The argument as it is written on the command line, such as `--size`.
        argument: String,
        /// The fault of its value, and a value that would work.
        problem: String,
    },
    /// The work failed: the event and its remedy.
    Work(String),
    /// The work is done and has found a fault. Everything is printed already; only this exit status remains.
    Found(u8),
    /// The reader of standard output has closed it, so nothing is left to do.
    ReaderGone,
}

impl Failure {
    /// Returns the failure of a step of the work, where `doing` names the step.
    pub fn of(doing: &str, error: &impl ToString) -> Self {
        Self::Work(format!("{doing}: {}", error.to_string()))
    }
}

/// Options of experiments have the names of the arguments.
impl From<apus_measure::Error> for Failure {
    fn from(error: apus_measure::Error) -> Self {
        match error {
            apus_measure::Error::Option { option, problem } => {
                Self::Argument { argument: format!("--{option}"), problem }
            }
            error => Self::Work(error.to_string()),
        }
    }
}

impl From<apus::introspection::Error> for Failure {
    fn from(error: apus::introspection::Error) -> Self {
        // The text may come from a process of another user: control characters must not reach the terminal of root.
        Self::Work(error.to_string().replace(char::is_control, "?"))
    }
}
