//! Options of all calls of a client.

use crate::metadata::Metadata;
use std::time::Duration;

/// Options of the calls of a generated client.
#[derive(Clone, Debug, Default)]
pub struct ClientOptions {
    /// Time after which a call fails; without one, the endpoint's default.
    pub timeout: Option<Duration>,
    /// Sent with each call.
    pub metadata: Metadata,
}
