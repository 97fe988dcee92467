//! The interface of all checkers.

use crate::directory::Directory;
use crate::observation::Observation;
use crate::violation::Violation;

/// Verifies one promise of the protocol.
pub(crate) trait Checker {
    /// Handles the next observation.
    ///
    /// # Errors
    ///
    /// The promise is broken.
    fn observe(
        &mut self,
        directory: &Directory,
        observation: &Observation<'_>,
    ) -> Result<(), Violation>;
}
