//! How many bytes are buffered, and may more come?

use super::{Event, Transport};
use crate::error::CommandError;
use crate::message::Arrived;
use crate::peer::{Outgoing, PeerId};
use apus_wire::Role;

/// Bytes buffered over all peers. What one peer holds is in [`crate::peer::Peer`].
#[derive(Debug, Default)]
pub(crate) struct Budget {
    /// Payload waiting for transmission or acknowledgment.
    pub(crate) send: Outgoing,
    /// Messages being received, with their whole length, and what is kept of those that wait for the
    /// application.
    pub(crate) receive: u64,
    /// Payload of requests that are held until their client has confirmed them.
    pub(crate) unconfirmed: u64,
    /// Such requests.
    pub(crate) unconfirmed_rpcs: u64,
    /// Whether a command was refused for lack of room since [`Event::Room`] was given last.
    wanted: bool,
}

impl Budget {
    /// Whether `bytes` more of payload of held requests stay within `limit`.
    pub(crate) const fn fits_unconfirmed(&self, bytes: usize, limit: u64) -> bool {
        fits(self.unconfirmed, bytes as u64, limit)
    }

    /// Counts `bytes` of payload of a held request.
    pub(crate) fn add_unconfirmed_bytes(&mut self, bytes: u32) {
        self.unconfirmed += u64::from(bytes);
    }
}

impl Transport {
    /// Whether there is room for `bytes` of payload to be sent to `peer` (CAP-1): a request if `ours` is the
    /// client's role, or a response.
    pub(super) fn check_send(
        &mut self,
        peer: PeerId,
        ours: Role,
        bytes: u64,
    ) -> Result<(), CommandError> {
        let limit = if !fits(*self.budget.send.of(ours), bytes, self.config.max_send_bytes()) {
            "max_send_bytes"
        } else if !fits(
            *self.peers[peer].send.of(ours),
            bytes,
            self.config.max_send_bytes_per_peer(),
        ) {
            "max_send_bytes_per_peer"
        } else {
            return Ok(());
        };
        Err(self.out_of_room(CommandError::SendFull { limit }))
    }

    /// Counts `bytes` of payload to be sent to `peer`; there is room for them.
    pub(super) fn reserve_send(&mut self, peer: PeerId, ours: Role, bytes: u64) {
        *self.budget.send.of(ours) += bytes;
        *self.peers[peer].send.of(ours) += bytes;
    }

    /// The peer does not need `bytes` of payload any more.
    pub(crate) fn release_send(&mut self, peer: PeerId, ours: Role, bytes: u64) {
        *self.budget.send.of(ours) -= bytes;
        *self.peers[peer].send.of(ours) -= bytes;
        self.room_again();
    }

    /// CAP-8: counts a message of `bytes` bytes that begins to arrive from `peer`; `false` if there is no
    /// room for it.
    pub(crate) fn reserve_receive(&mut self, peer: PeerId, bytes: u64) -> bool {
        let fits = fits(self.budget.receive, bytes, self.config.max_receive_bytes())
            && fits(
                self.peers[peer].receive_bytes,
                bytes,
                self.config.max_receive_bytes_per_peer(),
            );
        if fits {
            self.budget.receive += bytes;
            self.peers[peer].receive_bytes += bytes;
        }
        fits
    }

    /// CAP-15: a message has arrived from `peer`. What is kept of it waits for the application.
    pub(crate) fn receive_ends(&mut self, peer: PeerId, message: &Arrived) {
        self.release_receive(peer, message.length, message.payload.len());
    }

    /// A message of `length` bytes from `peer` does not arrive any more; `kept` bytes of it stay here.
    pub(crate) fn release_receive(&mut self, peer: PeerId, length: u32, kept: usize) {
        self.peers[peer].receive_bytes -= u64::from(length);
        self.budget.receive -= u64::from(length) - kept as u64;
    }

    /// Counts a request that is held until its client confirms it; `false` if there are too many (CAP-4).
    pub(crate) const fn reserve_unconfirmed(&mut self) -> bool {
        let fits = fits(self.budget.unconfirmed_rpcs, 1, self.config.max_unconfirmed_rpcs());
        self.budget.unconfirmed_rpcs += fits as u64;
        fits
    }

    /// A held request with `bytes` bytes of payload is confirmed or dropped.
    pub(crate) const fn release_unconfirmed(&mut self, bytes: u64) {
        self.budget.unconfirmed -= bytes;
        self.budget.unconfirmed_rpcs -= 1;
    }

    /// A command is refused with `error`; [`Event::Room`] will follow.
    pub(super) const fn out_of_room(&mut self, error: CommandError) -> CommandError {
        self.budget.wanted = true;
        error
    }

    /// Something has become free: whoever was refused may try again.
    pub(crate) fn room_again(&mut self) {
        if self.budget.wanted {
            self.budget.wanted = false;
            self.events.push_back(Event::Room);
        }
    }
}

const fn fits(used: u64, more: u64, limit: u64) -> bool {
    used + more <= limit
}
