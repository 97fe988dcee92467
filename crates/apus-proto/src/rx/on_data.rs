//! What does a DATA packet do?

use super::{Proof, our_role};
use crate::drop_reason::DropReason;
use crate::error::FailReason;
use crate::message::{Inserted, MessageIn};
use crate::peer::{Address, PeerId};
use crate::rpc::{ClientStep, RpcId, ServerState, ServerStep, Side};
use crate::time::USEC;
use crate::transport::{Event, Transport};
use apus_wire::{Body, Data, Flags, Header, Role};

/// Our cutoffs go to a peer at most once in this time (row P-16: once per jiffy).
const CUTOFFS_INTERVAL: u64 = 1_000 * USEC;

impl Transport {
    pub(super) fn on_data(
        &mut self,
        from: Address,
        header: &Header,
        data: &Data,
        payload: &[u8],
    ) -> Result<(), DropReason> {
        let used = match our_role(header) {
            Role::Server => self.on_request(from, header, data, payload),
            Role::Client => self.on_response(from, header, data, payload),
        };
        // The ack is looked at after the data is queued (row P-10), and even if the data was dropped
        // (row P-9).
        if let Some(peer) = self.peers.find(from) {
            if let Some(ack) = data.ack
                && ack.server_port == self.identity.port
            {
                self.acknowledge(peer, ack.client_id);
            }
            self.announce_cutoffs(peer, header, data.cutoff_version);
        }
        used
    }

    /// A piece of a request.
    fn on_request(
        &mut self,
        from: Address,
        header: &Header,
        data: &Data,
        payload: &[u8],
    ) -> Result<(), DropReason> {
        let rpc = match self.find_rpc(from, header) {
            None => self.admit(from, header, data, payload.len())?,
            Some((peer, rpc)) => {
                if let Some(fields) = header.udp()
                    && fields.flags.contains(Flags::SESSION)
                {
                    self.confirm(rpc, fields.incarnation)?;
                    self.peers[peer].serving.note_low_water(self.rpcs[rpc].id, fields);
                }
                rpc
            }
        };
        self.add_data(rpc, data, payload)
    }

    /// A piece of a response.
    fn on_response(
        &mut self,
        from: Address,
        header: &Header,
        data: &Data,
        payload: &[u8],
    ) -> Result<(), DropReason> {
        let (peer, rpc) = self.rpc_of(from, header, Proof::Session)?;
        if u64::from(data.message_length) > self.config.max_message() {
            let length = data.message_length;
            self.begin_response(peer, rpc);
            self.fail_and_disown(rpc, FailReason::ResponseTooLarge { length });
            return Err(DropReason::TooLarge);
        }
        if self.rpcs[rpc].incoming.is_none() {
            if !self.reserve_receive(peer, u64::from(data.message_length)) {
                // The server lives; we will ask again when there may be room.
                self.hear(peer, rpc);
                return Err(DropReason::NoBuffers);
            }
            self.begin_response(peer, rpc);
            self.rpcs[rpc].incoming = Some(MessageIn::new(data.message_length, data.incoming));
        }
        self.add_data(rpc, data, payload)
    }

    /// The server has the whole request: its bytes are not needed any more.
    fn begin_response(&mut self, peer: PeerId, rpc: RpcId) {
        let now = self.now();
        self.outbox.messages.remove(&mut self.rpcs, rpc);
        let entry = &mut self.rpcs[rpc];
        if let Side::Client(client) = &mut entry.side
            && let Some(state) = client.state.after(ClientStep::ResponseBegins)
        {
            client.state = state;
        }
        let Some(request) = entry.outgoing.take() else { return };
        if !request.resent {
            let elapsed = now.since(request.last_sent);
            self.peers[peer].rtt.sample_upper_bound(now, elapsed);
        }
        self.release_send(peer, u64::from(request.length()));
    }

    /// Puts the bytes of a packet into the incoming message of its RPC.
    fn add_data(&mut self, rpc: RpcId, data: &Data, payload: &[u8]) -> Result<(), DropReason> {
        let now = self.now();
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
        entry.hear(now);
        let peer_entry = &mut self.peers[peer];
        peer_entry.resends.answered();
        peer_entry.last_used = now;
        let recovery = &mut self.metrics.recovery;
        match inserted {
            Inserted::New { bytes, gap } => {
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

    /// Hands a message over if it is complete and may be.
    pub(crate) fn finish_if_complete(&mut self, rpc: RpcId) {
        let Some(entry) = self.rpcs.get_mut(rpc) else { return };
        let complete = entry.incoming.as_ref().is_some_and(MessageIn::is_complete);
        if !complete || !entry.may_receive() {
            return;
        }
        match &mut entry.side {
            Side::Client(_) => self.complete_client(rpc),
            Side::Server(server) => {
                if let Some(state) = server.state.after(ServerStep::RequestComplete) {
                    server.state = state;
                    self.deliver_request(rpc);
                }
            }
        }
    }

    /// The request is complete and confirmed: the application gets it. From now on until its reply
    /// nobody is waited for (row T-2).
    fn deliver_request(&mut self, rpc: RpcId) {
        debug_assert!(
            self.rpcs[rpc]
                .server()
                .is_some_and(|s| s.confirmed && s.state == ServerState::InService),
            "S1: only confirmed requests are executed"
        );
        self.granter.forget(&mut self.rpcs, rpc);
        self.silence.forget(&mut self.rpcs, rpc);
        let entry = &mut self.rpcs[rpc];
        let peer = entry.peer;
        let Some(message) = entry.incoming.take() else { return };
        let length = u64::from(message.length());
        self.sampler.record(message.length(), message.unscheduled());
        self.release_receive(peer, length, true);
        self.metrics.progress.server_requests_done += 1;
        self.metrics.progress.server_request_bytes_done += length;
        let from = self.peers[peer].address;
        self.events.push_back(Event::Request { rpc, from, payload: message.into_bytes() });
    }

    /// Tells the peer our cutoffs if its packet shows that it does not know them (row P-16). A
    /// stranger that has not proved to be there is told nothing.
    fn announce_cutoffs(&mut self, peer: PeerId, header: &Header, version: u16) {
        let now = self.now();
        if self.sampler.renew(now, &mut self.cutoffs) {
            self.metrics.scheduling.cutoffs_renewed += 1;
        }
        let entry = &mut self.peers[peer];
        let known = version == self.cutoffs.announced().version;
        let proved = our_role(header) == Role::Client || entry.serving.is_established();
        let lately = now.since(entry.cutoffs_sent) < CUTOFFS_INTERVAL;
        if known || !proved || (lately && entry.cutoffs_sent > crate::Instant::ZERO) {
            return;
        }
        entry.cutoffs_sent = now;
        let to = entry.address;
        let body = Body::Cutoffs(*self.cutoffs.announced());
        self.answer(to, header, body, Flags::NONE, None);
    }
}
