//! Options of all calls of a client.

use crate::metadata::Metadata;
use std::time::Duration;

/// Options of the calls of a generated client.
#[derive(Clone, Debug, Default)]
pub struct ClientOptions {
    /// Timeout of a call; `None` selects the endpoint's default.
    pub timeout: Option<Duration>,
    /// Metadata sent with each call.
    pub metadata: Metadata,
}
