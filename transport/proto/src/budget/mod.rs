//! The bytes that are buffered, and their limits. An empty message counts as one byte (EXTENT-1).

mod receive;
mod shares;

pub(crate) use receive::{Beginning, Lack, ReceiveBudget, ReceiveRoom};

use crate::config::Config;
use crate::error::CommandError;
use crate::event::Event;
use crate::extent::charge;
use crate::peer::{OutgoingBytes, Peer};
use apus_wire::Role;
use std::collections::VecDeque;

/// Bytes buffered over all peers. The bytes of one peer are counted in [`Peer`].
#[derive(Debug, Default)]
pub(crate) struct Budget {
    /// Payload waiting for transmission or acknowledgment.
    pub(crate) send: OutgoingBytes,
    /// Bytes of incoming messages, until the application has consumed them.
    pub(crate) receive: ReceiveBudget,
    /// Whether a command was refused for lack of room since the last [`Event::Room`].
    wanted: bool,
}

impl Budget {
    /// Checks that a message of `bytes` bytes may be sent to `peer` (CAP-1) in the role `ours`.
    /// Requests and responses are counted separately.
    pub(crate) fn check_send(
        &mut self,
        config: &Config,
        peer: &mut Peer,
        ours: Role,
        bytes: u64,
    ) -> Result<(), CommandError> {
        let bytes = charge(bytes);
        let limit = if !fits(*self.send.of(ours), bytes, config.max_send_bytes()) {
            "max_send_bytes"
        } else if !fits(*peer.send.of(ours), bytes, config.max_send_bytes_per_peer()) {
            "max_send_bytes_per_peer"
        } else {
            return Ok(());
        };
        Err(self.out_of_room(CommandError::SendFull { limit }))
    }

    /// Reserves `bytes` bytes for a message to `peer`; [`Budget::check_send`] has accepted it.
    pub(crate) fn reserve_send(&mut self, peer: &mut Peer, ours: Role, bytes: u64) {
        let bytes = charge(bytes);
        *self.send.of(ours) += bytes;
        *peer.send.of(ours) += bytes;
    }

    /// Releases the `bytes` bytes of a message that `peer` no longer needs.
    pub(crate) fn release_send(
        &mut self,
        peer: &mut Peer,
        ours: Role,
        bytes: u64,
        events: &mut VecDeque<Event>,
    ) {
        let bytes = charge(bytes);
        *self.send.of(ours) -= bytes;
        *peer.send.of(ours) -= bytes;
        self.room_again(events);
    }

    /// A command is refused with `error`; [`Event::Room`] will follow.
    pub(crate) const fn out_of_room(&mut self, error: CommandError) -> CommandError {
        self.wanted = true;
        error
    }

    /// Something has become free: gives [`Event::Room`] if a command was refused.
    pub(crate) fn room_again(&mut self, events: &mut VecDeque<Event>) {
        if self.wanted {
            self.wanted = false;
            events.push_back(Event::Room);
        }
    }
}

const fn fits(used: u64, more: u64, limit: u64) -> bool {
    used + more <= limit
}
