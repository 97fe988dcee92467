//! How does a result reach standard output?

use std::io::{self, ErrorKind, Write};

use crate::failure::Failure;

/// Writes to standard output at once, so that whoever reads it need not wait.
///
/// # Errors
///
/// The reader has gone, as `head` does when it has seen enough, or the disk is full.
pub(crate) fn write(text: impl AsRef<[u8]>) -> Result<(), Failure> {
    let mut stdout = io::stdout().lock();
    written(stdout.write_all(text.as_ref()).and_then(|()| stdout.flush()))
}

/// What it means that standard output took something, or not.
///
/// # Errors
///
/// As for [`write()`].
pub(crate) fn written(result: io::Result<()>) -> Result<(), Failure> {
    result.map_err(|error| match error.kind() {
        ErrorKind::BrokenPipe => Failure::ReaderGone,
        _ => Failure::of("write to standard output", &error),
    })
}

/// The same with a line's end behind it.
///
/// # Errors
///
/// As for [`write()`].
pub(crate) fn line(text: &str) -> Result<(), Failure> {
    write(format!("{text}\n"))
}

/// Says something on standard error that is not part of the result.
pub(crate) fn note(text: &str) {
    // If nobody reads it, nobody misses it.
    let _ = writeln!(io::stderr(), "{text}");
}
