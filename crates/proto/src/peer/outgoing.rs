//! How many bytes wait to be sent or acknowledged?

use apus_wire::Role;

/// Payload that waits for transmission or for its acknowledgment.
///
/// Requests and responses are counted apart, each against the whole limit: a request leaves room when
/// its response comes, so that responses which wait for that room would let two endpoints that call
/// each other wait for ever.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Outgoing {
    requests: u64,
    responses: u64,
}

impl Outgoing {
    /// Bytes of what we send in this role.
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
