//! The bytes that wait for transmission or acknowledgment.

use apus_wire::Role;

/// Payload that waits for transmission or for its acknowledgment.
///
/// Requests and responses are counted apart, each against the whole limit: a request leaves room
/// when its response arrives. If responses waited for that room, two endpoints that call each other
/// could wait forever.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct OutgoingBytes {
    requests: u64,
    responses: u64,
}

impl OutgoingBytes {
    /// Bytes that this endpoint sends in this role.
    pub(crate) const fn of(&mut self, ours: Role) -> &mut u64 {
        match ours {
            Role::Client => &mut self.requests,
            Role::Server => &mut self.responses,
        }
    }

    /// Bytes of both.
    pub(crate) const fn bytes(&self) -> u64 {
        self.requests + self.responses
    }
}
