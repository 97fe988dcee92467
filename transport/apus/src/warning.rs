//! Warnings: conditions that a user should correct although the endpoint works, as a line on
//! standard error.

use std::fmt::Arguments;
use std::io::Write;

/// Prints a line. A standard error that is closed or full is no error.
pub(crate) fn print(text: Arguments<'_>) {
    let _ = writeln!(std::io::stderr().lock(), "apus: warning: {text}");
}
