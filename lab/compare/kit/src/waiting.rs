//! Attempts of a process that polls or sleeps.

use std::io::{self, ErrorKind};

/// Repeats what a socket that does not block refuses for now, until it is done or `is_over` says so. A socket that blocks
/// sleeps in the first attempt.
///
/// # Errors
///
/// The first one that another attempt does not mend.
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
