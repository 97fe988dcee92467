//! Attempts of a process that polls or sleeps.

use std::io::{self, ErrorKind};

/// Repeats an operation that a non-blocking socket refuses for now, until it succeeds or `is_over`
/// returns true. A blocking socket sleeps in the first attempt.
///
/// # Errors
///
/// The first permanent error.
pub fn when_ready<T>(
    mut attempt: impl FnMut() -> io::Result<T>,
    is_over: impl Fn() -> bool,
) -> io::Result<Option<T>> {
    loop {
        match attempt() {
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                if is_over() {
                    return Ok(None);
                }
                std::hint::spin_loop();
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            done => return done.map(Some),
        }
    }
}
