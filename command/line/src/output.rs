//! Output: results go to standard output, everything else to standard error.

use std::io::{self, ErrorKind, Write};

use crate::failure::Failure;

/// Writes to standard output and flushes it, so that a reader gets the text immediately.
///
/// # Errors
///
/// [`Failure::ReaderGone`] if the reader has closed its end, as `head` does after its last line;
/// [`Failure::Work`] if the write fails for another reason, such as a full disk.
pub fn write(text: impl AsRef<[u8]>) -> Result<(), Failure> {
    let mut stdout = io::stdout().lock();
    stdout_result(stdout.write_all(text.as_ref()).and_then(|()| stdout.flush()))
}

/// Converts the result of writing to standard output to the result of a command.
///
/// # Errors
///
/// As for [`write()`].
pub fn stdout_result(result: io::Result<()>) -> Result<(), Failure> {
    result.map_err(|error| match error.kind() {
        ErrorKind::BrokenPipe => Failure::ReaderGone,
        _ => Failure::of("write to standard output", &error),
    })
}

/// Writes a line to standard output, as [`write()`] does.
///
/// # Errors
///
/// As for [`write()`].
pub fn line(text: &str) -> Result<(), Failure> {
    write(format!("{text}\n"))
}

/// Writes a line that is not part of the result to standard error.
pub fn note(text: &str) {
    // A closed standard error leaves no place to report to.
    let _ = writeln!(io::stderr(), "{text}");
}
