//! The receiving side of an endpoint: grants, memory, priorities, and which requests are accepted.

use crate::allowed::Allowed;
use crate::budget::{Budget, WaitingRequests};
use crate::config::Config;
use crate::grant::Granter;
use crate::message::{Buffers, CompleteMessage, MessageIn, Reservation};
use crate::metrics::Scheduling;
use crate::priority::{OwnCutoffs, Room, Sampler};
use crate::time::Instant;
use apus_wire::Data;

/// State for incoming messages: grants, budgets, memory, cutoffs and admission.
#[derive(Debug)]
pub(crate) struct Inbound {
    /// Decides which senders may transmit, and how far.
    pub(crate) granter: Granter,
    /// Bytes buffered, in both directions.
    pub(crate) budget: Budget,
    /// Memory of delivered messages, to be used again.
    pub(crate) buffers: Buffers,
    /// Sizes of the messages that have arrived.
    pub(crate) sampler: Sampler,
    /// The priorities that this endpoint announces for unscheduled packets.
    pub(crate) cutoffs: OwnCutoffs,
    /// The room for unscheduled bytes that is stated with the cutoffs.
    pub(crate) room: Room,
    /// Number of leading bytes retained of each message whose first packet arrives from now on.
    pub(crate) keep: u32,
    /// Whether requests are accepted.
    pub(crate) serving: bool,
    /// Number of requests to accept before further ones are refused (CAP-16).
    pub(crate) request_room: usize,
    /// Requests that wait for the application, by host.
    pub(crate) waiting: WaitingRequests,
    /// Whether the endpoint was shut down.
    pub(crate) shut_down: bool,
}

impl Inbound {
    /// The receiving side of an endpoint that accepts requests; the link carries `link_mbps`
    /// Mbit/s. `seed` is that of hashes.
    pub(crate) fn new(config: &Config, link_mbps: u64, seed: u64) -> Self {
        let mut granter = Granter::new(config);
        granter.set_link_rate(link_mbps);
        Self {
            granter,
            budget: Budget::new(config),
            buffers: Buffers::default(),
            sampler: Sampler::new(config),
            cutoffs: OwnCutoffs::configured(config),
            room: Room::new(config),
            keep: u32::MAX,
            serving: true,
            request_room: usize::MAX,
            waiting: WaitingRequests::new(seed),
            shut_down: false,
        }
    }

    /// Creates the message of `data`, its first packet, with the room reserved for it. Of the bytes
    /// that its sender has announced, `announced` are allowed.
    pub(crate) fn message_in(
        &mut self,
        now: Instant,
        data: &Data,
        announced: Allowed,
        room: Reservation,
    ) -> Box<MessageIn> {
        let message = MessageIn::new(data.message_length, data.incoming)
            .allowing(announced)
            .keeping(self.keep);
        let is_whole = room.positions >= data.message_length;
        let memory = self.buffers.take(u32::from(is_whole) * data.message_length.min(self.keep));
        Box::new(message.in_memory(memory).with_room(room, now))
    }

    /// Counts a message that has arrived, and renews the cutoffs when it is time.
    #[inline(always)]
    pub(crate) fn record_message(
        &mut self,
        now: Instant,
        message: &CompleteMessage,
        metrics: &mut Scheduling,
    ) {
        self.sampler.record(message.length, message.unscheduled);
        if let Some((bytes, nanos)) = self.sampler.due(now) {
            self.granter.note_unscheduled(bytes, nanos);
            metrics.cutoffs_renewed += u64::from(self.sampler.renew(now, &mut self.cutoffs));
        }
    }
}
