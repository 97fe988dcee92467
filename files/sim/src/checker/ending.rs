//! Endings: every operation returns once the network is healed.

use crate::Violation;
use crate::history::MountId;

/// Checks that no operation waits at the end of a run, after a period without disturbances.
/// `waiting` are the operations that have not returned, at mounts that have not crashed.
///
/// # Errors
///
/// An operation that still waits.
pub fn check(waiting: &[(MountId, String)]) -> Result<(), Violation> {
    match waiting {
        [] => Ok(()),
        [(mount, operation), ..] => {
            let what = format!("{mount} still waits for {operation}, one of {}", waiting.len());
            Err(Violation::new("every operation ends", what))
        }
    }
}
