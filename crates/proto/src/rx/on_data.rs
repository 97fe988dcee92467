//! What does a DATA packet do?
//!
//! It brings a piece of a request ([`on_request`](super::on_request)) or of a response
//! ([`on_response`](super::on_response)); what both have in common is here. A message that fits into
//! one packet takes a short cut in both: no [`MessageIn`](crate::message::MessageIn) is made for it.

use super::{Source, our_role};
use crate::drop_reason::DropReason;
use crate::message::{Arrived, Inserted, MessageIn};
use crate::peer::PeerId;
use crate::probe::ProbeKind;
use crate::rpc::{RpcKey, Side};
use crate::time::USEC;
use crate::transport::Transport;
use apus_wire::{Body, Data, Flags, Header, Profile, Role};

/// Our cutoffs go to a peer at most once in this time (row P-16: once per jiffy).
const CUTOFFS_INTERVAL: u64 = 1_000 * USEC;

/// The longest length that a signed field of 32 bits can name.
const SIGNED_MAX: u32 = i32::MAX as u32;

impl Transport {
    pub(super) fn on_data(
        &mut self,
        from: Source,
        header: &Header,
        data: &Data,
        payload: &[u8],
    ) -> Result<(), DropReason> {
        let stripped = self.identity.profile == Profile::Kernel && data.incoming == 0;
        // WIRE-26: all of it comes, and no GRANT is understood.
        let incoming = if stripped { data.message_length } else { data.incoming };
        let data = &Data { incoming, ..*data };
        let used = match our_role(header) {
            Role::Server => self.on_request(from, header, data, payload),
            Role::Client => self.on_response(from, header, data, payload),
        };
        // RPC-11: the ack is looked at after the data is queued (row P-10), and even if the data was
        // dropped (row P-9). A peer that was not known before has nothing to acknowledge.
        if let Some(peer) = from.peer {
            if let Some(ack) = data.ack
                && ack.server_port == self.identity.port
            {
                self.acknowledge(peer, ack.client_id);
            }
            if data.cutoff_version != self.cutoffs.announced().version && !stripped {
                self.announce_cutoffs(peer, header);
            }
        }
        used
    }

    /// Puts the bytes of a packet into the incoming message of its RPC.
    pub(super) fn add_data(
        &mut self,
        rpc: RpcKey,
        data: &Data,
        payload: &[u8],
    ) -> Result<(), DropReason> {
        let entry = &mut self.rpcs[rpc];
        let (peer, may_receive) = (entry.peer, entry.may_receive());
        let limit = self.config.max_unconfirmed_bytes();
        if !may_receive && !self.budget.fits_unconfirmed(payload.len(), limit) {
            return Err(DropReason::TooManyUnconfirmed);
        }
        // A request that the application has already got.
        let Some(message) = &mut entry.incoming else { return Err(DropReason::Duplicate) };
        if message.length() != data.message_length {
            return Err(DropReason::LengthMismatch);
        }
        let inserted = message.insert(data.offset, payload);
        if may_receive {
            self.hear(peer, rpc);
        }
        let recovery = &mut self.metrics.recovery;
        match inserted {
            Inserted::New { bytes, gap } => {
                if gap && self.notes.are_wanted() {
                    self.note_gap(rpc, data.offset);
                }
                let recovery = &mut self.metrics.recovery;
                recovery.gaps_created += u64::from(gap);
                recovery.resent_packets_used += u64::from(data.retransmit);
                if may_receive {
                    self.granter.data_arrived(&mut self.rpcs, rpc, bytes);
                } else {
                    self.budget.add_unconfirmed_bytes(bytes);
                }
                self.finish_if_complete(rpc);
                Ok(())
            }
            Inserted::Duplicate => {
                recovery.resent_discards += u64::from(data.retransmit);
                Err(DropReason::Duplicate)
            }
            Inserted::TooManyGaps => Err(DropReason::TooManyGaps),
        }
    }

    /// Notes what is missing just before `offset`; nothing, if only the packets before that came ahead of others.
    #[cold]
    fn note_gap(&mut self, rpc: RpcKey, offset: u32) {
        let Some(message) = &self.rpcs[rpc].incoming else { return };
        if let Some(gap) = message.gaps(offset).last().filter(|gap| gap.end == offset) {
            self.note(rpc, ProbeKind::Gap { offset: gap.start, length: gap.end - gap.start });
        }
    }

    /// A message that begins to arrive with `data`.
    pub(crate) fn message_in(&mut self, data: &Data) -> Box<MessageIn> {
        let memory = self.buffers.take(data.message_length.min(self.keep));
        let message = MessageIn::new(data.message_length, data.incoming);
        Box::new(message.keeping(self.keep).in_memory(memory))
    }

    /// The message that came from `peer` in one packet, if it did; there was room for it.
    #[inline]
    pub(crate) fn message_in_one_packet(
        &mut self,
        peer: PeerId,
        data: &Data,
        payload: &[u8],
    ) -> Option<Arrived> {
        let message = Arrived::in_one_packet(data, payload, self.keep)?;
        self.receive_ends(peer, &message);
        self.peers[peer].resends.answered();
        Some(message)
    }

    /// Hands a message over if it is complete and may be.
    pub(crate) fn finish_if_complete(&mut self, rpc: RpcKey) {
        let Some(entry) = self.rpcs.get_mut(rpc) else { return };
        let ready = entry.may_receive();
        let Some(message) = entry.incoming.take_if(|message| ready && message.is_complete()) else {
            return;
        };
        self.granter.forget(rpc, entry);
        let peer = entry.peer;
        let is_client = matches!(entry.side, Side::Client(_));
        let memory = message.memory();
        let message = Arrived::in_pieces(*message);
        self.receive_ends(peer, &message);
        self.buffers.keep(&message.payload, memory);
        if is_client {
            self.complete_client(rpc, message);
        } else {
            self.complete_request(rpc, message);
        }
    }

    /// PRIO-6: tells the peer our cutoffs: its packet shows that it does not know them (row P-16). A
    /// stranger that has not proved to be there is told nothing, and the packet may have been the last
    /// that was known of it.
    fn announce_cutoffs(&mut self, peer: PeerId, header: &Header) {
        let now = self.now();
        let Some(entry) = self.peers.get_mut(peer) else { return };
        let proved = our_role(header) == Role::Client || entry.serving.is_established();
        let never = entry.cutoffs_sent == crate::Instant::ZERO;
        if proved && (never || now.since(entry.cutoffs_sent) >= CUTOFFS_INTERVAL) {
            entry.cutoffs_sent = now;
            let to = entry.address;
            let mut announced = *self.cutoffs.announced();
            if self.identity.profile == Profile::Kernel {
                // Lengths are signed there: what has no limit would have a negative one.
                announced.unscheduled = announced.unscheduled.map(|length| length.min(SIGNED_MAX));
            }
            let body = Body::Cutoffs(announced);
            self.answer(to, header, body, Flags::NONE, None);
        }
    }

    /// Counts a message that has arrived, and renews the cutoffs when it is time.
    pub(crate) fn record_message(&mut self, message: &Arrived) {
        self.sampler.record(message.length, message.unscheduled);
        let now = self.now();
        if self.sampler.renew(now, &mut self.cutoffs) {
            self.metrics.scheduling.cutoffs_renewed += 1;
        }
    }
}
