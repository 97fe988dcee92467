//! Endings: every operation returns once the network is healed.

use crate::Violation;
use crate::history::MountId;

/// Checks that nothing waits at the end of a run, after the world was left in peace for a while.
/// `waiting` are the operations that have not returned, at mounts that have not crashed.
///
/// # Errors
///
/// An operation that waits.
pub fn check(waiting: &[(MountId, String)]) -> Result<(), Violation> {
    match waiting {
        [] => Ok(()),
        [(mount, operation), ..] => {
            let what = format!("{mount} still waits for {operation}, one of {}", waiting.len());
            Err(Violation::new("every operation ends", what))
        }
    }
}
