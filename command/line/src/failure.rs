//! Failures: reasons for a command to end without a result.
//!
//! Commands return a [`Failure`]; [`exit`](crate::exit) prints it and maps it to the exit status.

/// Reason that a command did not complete its work.
#[derive(Debug)]
pub enum Failure {
    /// The arguments do not parse, or they request help.
    CommandLine(clap::Error),
    /// An argument parses, but its value is unusable.
    Argument {
        /// The argument as written on the command line, such as `--size`.
        argument: String,
        /// The fault in its value, and a valid value.
        problem: String,
    },
    /// The work failed: the event and its remedy.
    Work(String),
    /// The work is complete and has found a fault. All output is already printed; only this exit
    /// status remains.
    Found(u8),
    /// The reader of standard output has closed it, so the command can only end.
    ReaderGone,
}

impl Failure {
    /// Returns the failure of a step of the work; `doing` is the name of the step.
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
        // The text may come from a process of another user: control characters must not reach
        // root's terminal.
        Self::Work(error.to_string().replace(char::is_control, "?"))
    }
}
