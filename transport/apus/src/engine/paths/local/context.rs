//! Groups of state that a handler of shared memory may change.

use super::state::LocalState;
use crate::engine::state::{Delivery, Time};
use apus_local::{Disconnected, SendError};
use apus_proto::{CommandError, FailureKind, Payload};

/// The groups of the core that a handler of shared memory may change. Shutting the endpoint down
/// and sending over the network are the caller's: handlers return whether packets must leave.
pub(crate) struct LocalContext<'a> {
    pub(crate) local: &'a mut LocalState,
    pub(crate) delivery: Delivery<'a>,
    pub(crate) time: &'a mut Time,
    /// Whether a cork holds messages back.
    pub(crate) is_corked: bool,
}

impl LocalContext<'_> {
    /// Sends held-back messages that have room.
    pub(super) fn flush(&mut self) {
        self.local.flush(self.delivery.calls);
    }

    /// Returns whether a cork holds a message with this payload back. It does not if too many
    /// messages are held back already: then the message is sent at once, as its own peer may have
    /// room.
    ///
    /// # Errors
    ///
    /// The payload is too long: a message that is held back must be valid.
    pub(super) fn holds_back(&mut self, payload: &Payload) -> Result<bool, CommandError> {
        if !self.is_corked {
            return Ok(false);
        }
        let limit = self.delivery.network.transport().config().max_message();
        let length = payload.len() as u64;
        if length > limit {
            return Err(CommandError::TooLarge { length, limit });
        }
        if self.local.is_cork_full() {
            self.flush();
        }
        Ok(!self.local.is_cork_full())
    }
}

/// The limit that is named if a ring is full.
const ROOM: &str = "the room in the memory shared with the peer";

/// Returns the caller's error for a rejected message.
pub(super) fn command_error(error: SendError) -> CommandError {
    match error {
        SendError::TooLarge { length, limit } => {
            CommandError::TooLarge { length, limit: u64::from(limit) }
        }
        SendError::Disconnected(_) => CommandError::UnknownRpc,
        // Full, or an error of a later version.
        _ => CommandError::SendFull { limit: ROOM },
    }
}

/// Returns the caller's error for the end of a pair.
pub(super) const fn failure_kind(why: Disconnected) -> FailureKind {
    match why {
        Disconnected::Closed => FailureKind::ShutDown,
        Disconnected::Violation(_) | Disconnected::Accused => FailureKind::ProtocolBroken,
        _ => FailureKind::PeerEnded,
    }
}
