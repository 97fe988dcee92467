//! The error of a measurement.

/// The cause of a failed measurement.
pub(crate) type Error = Box<dyn std::error::Error + Send + Sync>;
