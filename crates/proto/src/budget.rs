//! The bytes that are buffered, and their limits. An empty message counts as one byte (EXTENT-1).

use crate::config::Config;
use crate::error::CommandError;
use crate::event::Event;
use crate::extent::charge;
use crate::message::CompleteMessage;
use crate::peer::{Outgoing, Peer};
use apus_wire::Role;
use std::collections::VecDeque;

/// Bytes buffered over all peers. The bytes of one peer are counted in [`Peer`].
#[derive(Debug, Default)]
pub(crate) struct Budget {
    /// Payload waiting for transmission or acknowledgment.
    pub(crate) send: Outgoing,
    /// Messages being received, with their whole length, and the retained bytes of those that wait for the
    /// application.
    pub(crate) receive: u64,
    /// Payload of requests that wait for their client's confirmation.
    pub(crate) unconfirmed: u64,
    /// Number of such requests.
    pub(crate) unconfirmed_rpcs: u64,
    /// Whether a command was refused for lack of room since the last [`Event::Room`].
    wanted: bool,
}

impl Budget {
    /// Checks that there is room for a message of `bytes` bytes to be sent to `peer` (CAP-1), in the role `ours`: requests and
    /// responses are counted apart.
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

    /// Counts a message of `bytes` bytes to be sent to `peer`; there is room for it.
    pub(crate) fn reserve_send(&mut self, peer: &mut Peer, ours: Role, bytes: u64) {
        let bytes = charge(bytes);
        *self.send.of(ours) += bytes;
        *peer.send.of(ours) += bytes;
    }

    /// Releases a message of `bytes` bytes that `peer` does not need any more.
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

    /// CAP-8: counts a message of `bytes` bytes that begins to arrive from `peer`. Returns `false`, and counts nothing,
    /// if there is no room for it.
    pub(crate) fn reserve_receive(&mut self, config: &Config, peer: &mut Peer, bytes: u64) -> bool {
        let bytes = charge(bytes);
        let fits = fits(self.receive, bytes, config.max_receive_bytes())
            && fits(peer.receive_bytes, bytes, config.max_receive_bytes_per_peer());
        if fits {
            self.receive += bytes;
            peer.receive_bytes += bytes;
        }
        fits
    }

    /// CAP-15: a message from `peer` is complete. Its retained bytes wait for the application.
    pub(crate) fn receive_ends(&mut self, peer: &mut Peer, message: &CompleteMessage) {
        self.release_receive(peer, message.length);
        self.hold(message.payload.len());
    }

    /// A message of `length` bytes from `peer` is no longer being received.
    pub(crate) fn release_receive(&mut self, peer: &mut Peer, length: u32) {
        let bytes = charge(u64::from(length));
        peer.receive_bytes -= bytes;
        self.receive -= bytes;
    }

    /// CAP-6: a message with `kept` bytes in memory waits for the application.
    pub(crate) const fn hold(&mut self, kept: usize) {
        self.receive += charge(kept as u64);
    }

    /// The application has consumed a message with `kept` bytes in memory.
    pub(crate) fn consume(&mut self, kept: usize) {
        let bytes = charge(kept as u64);
        debug_assert!(self.receive >= bytes, "more consumed than received");
        self.receive -= bytes;
    }

    /// Counts a request that waits for its client's confirmation. Returns `false`, and counts nothing, if there are too
    /// many (CAP-4).
    pub(crate) const fn reserve_unconfirmed(&mut self, config: &Config) -> bool {
        let fits = fits(self.unconfirmed_rpcs, 1, config.max_unconfirmed_rpcs());
        self.unconfirmed_rpcs += fits as u64;
        fits
    }

    /// Whether a packet with `bytes` more of payload of unconfirmed requests stays within `limit`.
    pub(crate) const fn fits_unconfirmed(&self, bytes: usize, limit: u64) -> bool {
        fits(self.unconfirmed, charge(bytes as u64), limit)
    }

    /// Counts `bytes` of payload of an unconfirmed request.
    pub(crate) fn add_unconfirmed_bytes(&mut self, bytes: u32) {
        self.unconfirmed += u64::from(bytes);
    }

    /// An unconfirmed request with `bytes` bytes of payload is confirmed or dropped.
    pub(crate) const fn release_unconfirmed(&mut self, bytes: u64) {
        self.unconfirmed -= bytes;
        self.unconfirmed_rpcs -= 1;
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
