//! Exit status: prints a failure on standard error and maps it to 0, 1, 2, or the status of a
//! finding.

use std::process::ExitCode;

use clap::error::ErrorKind;

use crate::failure::Failure;
use crate::output;

/// Exit status for wrong arguments.
const WRONG_ARGUMENTS: u8 = 2;

/// Prints the failure on standard error and returns the exit status. `example` is a valid
/// invocation.
pub fn report(failure: Failure, example: Option<String>) -> ExitCode {
    match failure {
        Failure::ReaderGone => ExitCode::SUCCESS,
        Failure::Found(status) => ExitCode::from(status),
        Failure::Work(message) => {
            print(&clap::Error::raw(ErrorKind::Io, message + "\n"));
            ExitCode::FAILURE
        }
        Failure::Argument { argument, problem } => {
            let message = format!("invalid value for '{argument}': {problem}\n");
            report_arguments(&clap::Error::raw(ErrorKind::ValueValidation, message), example)
        }
        Failure::CommandLine(error) if error.use_stderr() => report_arguments(&error, example),
        Failure::CommandLine(help) => match output::stdout_result(help.print()) {
            Ok(()) => ExitCode::SUCCESS,
            Err(failure) => report(failure, None),
        },
    }
}

/// Prints the fault in the arguments, and a valid invocation.
fn report_arguments(error: &clap::Error, example: Option<String>) -> ExitCode {
    print(error);
    // Without arguments clap prints the help, which has its own examples.
    let help = error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand;
    if let Some(example) = example.filter(|_| !help) {
        output::note(&format!("Try: {example}"));
    }
    ExitCode::from(WRONG_ARGUMENTS)
}

/// Prints to standard error, in colours if that is a terminal.
fn print(error: &clap::Error) {
    // A closed standard error leaves no place to report to.
    let _ = error.print();
}
