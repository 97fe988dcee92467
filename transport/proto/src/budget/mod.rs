//! The budgets: bytes that are buffered ([`receive`], [`send`]), where an empty message counts as one
//! (EXTENT-1), and requests that wait ([`requests`]). [`quota`](crate::quota) has their rules.

mod receive;
mod requests;
mod send;

pub(crate) use receive::{Beginning, Lack, ReceiveBudget, ReceiveRoom};
pub(crate) use requests::WaitingRequests;
pub(crate) use send::{SendBudget, SendExcess};

use crate::config::Config;
use crate::error::CommandError;
use crate::event::Event;
use crate::peer::Peer;
use apus_wire::Role;
use std::collections::VecDeque;

/// Bytes buffered over all peers. The bytes of one peer are counted in [`Peer`].
#[derive(Debug)]
pub(crate) struct Budget {
    /// Payload waiting for transmission or acknowledgment.
    pub(crate) send: SendBudget,
    /// Bytes of incoming messages, until the application has consumed them.
    pub(crate) receive: ReceiveBudget,
    /// Whether a command was refused for lack of room since the last [`Event::Room`].
    wanted: bool,
}

impl Budget {
    /// The empty budgets of an endpoint with this configuration.
    pub(crate) fn new(config: &Config) -> Self {
        let (send, receive) = (SendBudget::new(config), ReceiveBudget::new(config));
        Self { send, receive, wanted: false }
    }

    /// Checks that a request of `bytes` bytes may be sent to `peer` (CAP-1).
    pub(crate) fn check_request(
        &mut self,
        peer: &mut Peer,
        bytes: u64,
    ) -> Result<(), CommandError> {
        self.send.check_request(peer, bytes).map_err(|excess| self.send_full(excess))
    }

    /// The error of a command that found no room to send; [`Event::Room`] will follow.
    pub(crate) const fn send_full(&mut self, excess: SendExcess) -> CommandError {
        let limit = match excess {
            SendExcess::All => "max_send_bytes",
            SendExcess::Peer | SendExcess::Host => "max_send_bytes_per_peer",
        };
        self.out_of_room(CommandError::SendFull { limit })
    }

    /// Releases the `bytes` bytes of a message that `peer` no longer needs.
    pub(crate) fn release_send(
        &mut self,
        peer: &mut Peer,
        ours: Role,
        bytes: u64,
        events: &mut VecDeque<Event>,
    ) {
        self.send.release(peer, ours, bytes);
        self.room_again(events);
    }

    /// A command is refused with `error`; [`Event::Room`] will follow.
    pub(crate) const fn out_of_room(&mut self, error: CommandError) -> CommandError {
        self.wanted = true;
        error
    }

    /// Something has become free, or a reply need not wait any more: gives [`Event::Room`] if a
    /// command was refused.
    pub(crate) fn room_again(&mut self, events: &mut VecDeque<Event>) {
        if self.wanted {
            self.wanted = false;
            self.send.retry();
            events.push_back(Event::Room);
        }
    }
}
