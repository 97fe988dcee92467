//! Commands of the application: call, reply, cancel, abandon.

use super::Transport;
use crate::budget::{SendBudget, SendExcess};
use crate::config::Config;
use crate::error::{CommandError, Rejected};
use crate::extent::extent;
use crate::lifecycle::{end_stalled_response, peer_for, refuse_live, remove_client};
use crate::limits::FIRST_BYTES;
use crate::message::{MessageOut, Payload};
use crate::observation::exemplar;
use crate::peer::{Address, Peer, PeerId, peer_address};
use crate::protocol::Protocol;
use crate::rpc::{Binding, Client, NewRpc, RpcKey, RpcStep, Side, Tables};
use crate::time::Instant;
use apus_wire::{Profile, Refusal, Role};

/// A request to be sent.
#[derive(Clone, Debug)]
pub struct Call {
    /// The server: address and port. In the kernel profile the port is the Homa port alone.
    pub to: Address,
    /// The request, up to `max_message` bytes; in the kernel profile at least one (RPC-1).
    pub payload: Payload,
    /// Returned in the event that ends the call.
    pub cookie: u64,
    /// The time at which the call fails if it has not completed.
    pub deadline: Option<Instant>,
    /// Whether executing the request twice does no harm. If so, the call survives a restart of the
    /// server: the request is sent again.
    pub idempotent: bool,
}

impl Transport {
    /// Sends a request: [`crate::Event::Response`] or [`crate::Event::Failed`] follows, exactly one
    /// of them (RPC-3). Returns the name of the call.
    ///
    /// # Errors
    ///
    /// [`Rejected`], with the payload; the state is unchanged. If the reason is
    /// [back-pressure](CommandError::is_back_pressure), [`crate::Event::Room`] follows when it is
    /// worth trying again.
    pub fn call(&mut self, now: Instant, call: Call) -> Result<RpcKey, Rejected> {
        self.call_observed(now, call, &mut || ())
    }

    /// Sends a request as [`Transport::call`] does. If the call is [selected](Transport::selected),
    /// `on_selected` runs as soon as that is known: after its server was found, and before anything
    /// else.
    ///
    /// # Errors
    ///
    /// As for [`Transport::call`]; `on_selected` has not run then.
    pub fn call_observed(
        &mut self,
        now: Instant,
        call: Call,
        on_selected: &mut dyn FnMut(),
    ) -> Result<RpcKey, Rejected> {
        self.advance(now);
        match self.peer_of_call(call.to, &call.payload) {
            Ok(peer) => Ok(self.begin_call(peer, call, on_selected)),
            Err(reason) => Err(Rejected { reason, payload: call.payload }),
        }
    }

    /// Answers the request of an [`crate::Event::Request`] with `payload`, which may be empty.
    ///
    /// # Errors
    ///
    /// [`Rejected`], with the payload. [`CommandError::UnknownRpc`] means that the client disappeared
    /// or cancelled the call, or that its host takes so few of its responses that this one was
    /// dropped (CAP-21): the call has failed. Otherwise the state is unchanged. If the reason is
    /// [back-pressure](CommandError::is_back_pressure), [`crate::Event::Room`] follows when it is
    /// worth trying again.
    pub fn reply(&mut self, now: Instant, rpc: RpcKey, payload: Payload) -> Result<(), Rejected> {
        self.advance(now);
        match self.peer_of_reply(rpc, &payload) {
            Ok(peer) => {
                self.begin_reply(rpc, peer, payload);
                Ok(())
            }
            Err(reason) => Err(Rejected { reason, payload }),
        }
    }

    /// Cancels a call: no event follows. The server may have executed it already.
    ///
    /// # Errors
    ///
    /// [`CommandError::UnknownRpc`] if the call has ended, [`CommandError::WrongState`] if `rpc` is
    /// a request that was received.
    pub fn cancel(&mut self, now: Instant, rpc: RpcKey) -> Result<(), CommandError> {
        self.advance(now);
        let entry = self.protocol.tables.rpcs.get(rpc).ok_or(CommandError::UnknownRpc)?;
        if entry.role() != Role::Client {
            return Err(CommandError::WrongState);
        }
        let Self { protocol, inbound, output, .. } = self;
        output.disown(protocol, rpc);
        remove_client(protocol, inbound, output, rpc);
        Ok(())
    }

    /// Sets or replaces the deadline of a call (RPC-8). A deadline that has passed ends the call
    /// when timers are handled next.
    ///
    /// # Errors
    ///
    /// [`CommandError::UnknownRpc`] if the call has ended, [`CommandError::WrongState`] if `rpc` is
    /// a request that was received.
    pub fn set_deadline(&mut self, rpc: RpcKey, deadline: Instant) -> Result<(), CommandError> {
        let entry = self.protocol.tables.rpcs.get_mut(rpc).ok_or(CommandError::UnknownRpc)?;
        let Side::Client(client) = &mut entry.side else { return Err(CommandError::WrongState) };
        if let Some(before) = client.deadline.replace(deadline) {
            self.protocol.timers.deadlines.remove(before, rpc);
        }
        self.protocol.timers.deadlines.insert(deadline, rpc);
        Ok(())
    }

    /// Drops the request of an [`crate::Event::Request`] without a reply: the call fails at the
    /// client with [`Refusal::Abandoned`].
    ///
    /// # Errors
    ///
    /// [`CommandError::UnknownRpc`] if the RPC has ended, [`CommandError::WrongState`] if `rpc` is
    /// a call or was replied to.
    pub fn abandon(&mut self, now: Instant, rpc: RpcKey) -> Result<(), CommandError> {
        self.abandon_for(now, rpc, Refusal::Abandoned)
    }

    /// Drops the request of an [`crate::Event::Request`] as [`Transport::abandon`] does; the call
    /// fails at the client for the reason `why`.
    ///
    /// # Errors
    ///
    /// As for [`Transport::abandon`].
    pub fn abandon_for(
        &mut self,
        now: Instant,
        rpc: RpcKey,
        why: Refusal,
    ) -> Result<(), CommandError> {
        self.advance(now);
        let entry = self.protocol.tables.rpcs.get(rpc).ok_or(CommandError::UnknownRpc)?;
        // Only a request that the application has can be abandoned.
        if !entry.permits(RpcStep::Reply) {
            return Err(CommandError::WrongState);
        }
        refuse_live(&mut self.protocol, &mut self.inbound, &mut self.output, rpc, why);
        Ok(())
    }

    /// Watches the client of a request that the application has: it is asked from now on whether it
    /// still waits, and [`crate::Event::ClientGone`] follows if it does not (RPC-20). Returns
    /// `false` if the request has ended. In the kernel profile, clients are not asked.
    pub fn watch_client(&mut self, now: Instant, rpc: RpcKey) -> bool {
        self.advance(now);
        let Protocol { tables, timers, .. } = &mut self.protocol;
        let Some(entry) = tables.rpcs.get(rpc) else { return false };
        let is_asked = self.output.outbound.identity.profile == Profile::Udp;
        if is_asked && entry.permits(RpcStep::Reply) && entry.silence_place.tick == 0 {
            tables.rpcs[rpc].hear(now);
            timers.silence.watch(&mut tables.rpcs, rpc, now);
        }
        true
    }

    /// Returns the peer of a call, if the call may be made.
    fn peer_of_call(&mut self, to: Address, payload: &Payload) -> Result<PeerId, CommandError> {
        if self.inbound.shut_down {
            return Err(CommandError::ShutDown);
        }
        let length = self.check_length(payload)?;
        if self.protocol.tables.rpcs.count(Role::Client) as u64
            >= self.protocol.config.max_client_rpcs()
        {
            return Err(self.inbound.budget.out_of_room(CommandError::TooManyRpcs));
        }
        let address = peer_address(self.output.outbound.identity.profile, to);
        let known = self.protocol.tables.peers.find(&address);
        let Some(peer) = known.or_else(|| peer_for(&mut self.protocol, &mut self.output, &address))
        else {
            return Err(self.inbound.budget.out_of_room(CommandError::TooManyPeers));
        };
        let entry = &mut self.protocol.tables.peers[peer];
        self.inbound.budget.check_request(entry, length)?;
        Ok(peer)
    }

    /// Makes a call to `peer`, for which there is room.
    fn begin_call(&mut self, peer: PeerId, call: Call, on_selected: &mut dyn FnMut()) -> RpcKey {
        let Call { to, payload, idempotent, cookie, deadline } = call;
        let length = payload.len() as u64;
        let entry = &mut self.protocol.tables.peers[peer];
        let id = match self.output.outbound.identity.profile {
            Profile::Udp => entry.calls.allocate(),
            Profile::Kernel => {
                let next = self.next_kernel_id.wrapping_add(2);
                std::mem::replace(&mut self.next_kernel_id, next)
            }
        };
        let selected = self.output.observation.notes.are_wanted_of(id);
        if selected {
            on_selected();
        }
        self.inbound.budget.send.reserve(entry, Role::Client, length);
        let binding = Binding::new(entry.calls.session());
        let side = Side::Client(Client::new(binding, idempotent, cookie, deadline));
        let new = NewRpc { peer, id, peer_port: to.port(), side, selected };
        let rpc = self.protocol.tables.create(self.protocol.now, new);
        self.begin_message(rpc, peer, payload, None);
        if let Some(deadline) = deadline {
            self.protocol.timers.deadlines.insert(deadline, rpc);
        }
        let progress = &mut self.output.observation.metrics.progress;
        progress.client_requests_started += 1;
        progress.client_request_bytes_started += length;
        rpc
    }

    /// Returns the peer of a reply, if the reply may be given.
    fn peer_of_reply(&mut self, rpc: RpcKey, payload: &Payload) -> Result<PeerId, CommandError> {
        let length = self.check_length(payload)?;
        let entry = self.protocol.tables.rpcs.get(rpc).ok_or(CommandError::UnknownRpc)?;
        if !entry.permits(RpcStep::Reply) {
            return Err(CommandError::WrongState);
        }
        let peer = entry.peer;
        let peers = &mut self.protocol.tables.peers;
        match self.inbound.budget.send.check_response(peers, peer, length) {
            Ok(()) => Ok(peer),
            Err(SendExcess::Host) => self.make_room_of_host(rpc, peer, length),
            Err(excess) => Err(self.inbound.budget.send_full(excess)),
        }
    }

    /// Makes room for a response of `length` bytes to `peer`, whose host has as many as a host may
    /// have. The reply waits as long as no other host has requests. Otherwise responses without
    /// progress end, or this one: a client that takes its responses slowly must not keep the
    /// application from others (CAP-21).
    #[cold]
    fn make_room_of_host(
        &mut self,
        rpc: RpcKey,
        peer: PeerId,
        length: u64,
    ) -> Result<PeerId, CommandError> {
        let Self { protocol, inbound, output, .. } = self;
        if protocol.tables.is_alone(peer) {
            inbound.budget.send.wait();
            return Err(inbound.budget.send_full(SendExcess::Host));
        }
        while end_stalled_response(protocol, inbound, output, peer) {
            let peers = &mut protocol.tables.peers;
            match inbound.budget.send.check_response(peers, peer, length) {
                Ok(()) => return Ok(peer),
                Err(SendExcess::Host) => {}
                Err(excess) => return Err(inbound.budget.send_full(excess)),
            }
        }
        output.observation.metrics.admission.responses_refused += 1;
        refuse_live(protocol, inbound, output, rpc, Refusal::Abandoned);
        Err(CommandError::UnknownRpc)
    }

    /// Sends a reply, for which there is room.
    fn begin_reply(&mut self, rpc: RpcKey, peer: PeerId, payload: Payload) {
        let length = payload.len() as u64;
        let entry = &mut self.protocol.tables.rpcs[rpc];
        let limit = entry.server().and_then(|server| server.response_limit);
        entry.step(RpcStep::Reply);
        let now = self.protocol.now;
        entry.hear(now);
        let (nanos, selected) = (now.since(entry.started), entry.selected);
        self.output.observation.metrics.calls.served.record(nanos, 1);
        if selected {
            let exemplar = exemplar(&self.protocol.tables, rpc, now, nanos);
            self.output.observation.metrics.calls.served_exemplars.remember(exemplar);
        }
        let to = &mut self.protocol.tables.peers[peer];
        self.inbound.budget.send.reserve(to, Role::Server, length);
        if SendBudget::is_counted(Role::Server, length) {
            let Tables { rpcs, peers } = &mut self.protocol.tables;
            let is_live = |rpc| rpcs.get(rpc).is_some_and(|entry| entry.outgoing.is_some());
            self.inbound.budget.send.count_for_host(peers, peer, rpc, length, now, is_live);
        }
        self.begin_message(rpc, peer, payload, limit);
        self.output.observation.metrics.progress.server_responses_started += 1;
        self.output.observation.metrics.progress.server_response_bytes_started += length;
    }

    /// Gives an RPC with `peer` its outgoing message, whose room is reserved. `limit`, if given, is
    /// the most that may leave without a GRANT.
    #[inline(always)]
    fn begin_message(&mut self, rpc: RpcKey, peer: PeerId, payload: Payload, limit: Option<u32>) {
        let Protocol { now, config, tables, timers } = &mut self.protocol;
        let outbound = &mut self.output.outbound;
        let (to, length) = (&mut tables.peers[peer], payload.len() as u64);
        let unscheduled = take_unscheduled(config, outbound.link_mbps, to, length, limit);
        timers.silence.make_room(&mut tables.rpcs);
        outbound.messages.make_room(&tables.rpcs);
        let entry = &mut tables.rpcs[rpc];
        let message =
            entry.outgoing.insert(MessageOut::new(payload, unscheduled, to.size.segment()));
        if message.is_sendable() {
            outbound.messages.add(rpc, entry, extent(length as u32));
        }
        timers.silence.watch_entry(rpc, entry, *now);
    }

    fn check_length(&self, payload: &Payload) -> Result<u64, CommandError> {
        let (length, limit) = (payload.len() as u64, self.protocol.config.max_message());
        if length == 0 && self.output.outbound.identity.profile == Profile::Kernel {
            return Err(CommandError::EmptyMessage);
        }
        if length > limit {
            return Err(CommandError::TooLarge { length, limit });
        }
        Ok(length)
    }
}

/// Takes room for the bytes of a message to `peer` that may leave without a GRANT: as many as the
/// link carries in a round-trip time, so that the first GRANT arrives when they have left (PRIO-1;
/// SIGCOMM 2018 section 3.3: RTTbytes), within bounds. `limit`, if given, is the most (PRIO-15),
/// and one byte in any case.
#[inline(always)]
fn take_unscheduled(
    config: &Config,
    link_mbps: u64,
    peer: &mut Peer,
    length: u64,
    limit: Option<u32>,
) -> u32 {
    let length = extent(length as u32);
    if peer.variant.is_stripped() {
        // No GRANT will arrive (WIRE-26).
        return peer.unscheduled.take(length, length);
    }
    let usual = peer.rtt.min().map_or(config.unsched_bytes(), |nanos| {
        (nanos.saturating_mul(link_mbps) / 8_000)
            .clamp(config.unsched_bytes_min(), config.unsched_bytes_max())
    }) as u32;
    let bytes = limit.map_or(usual, |limit| usual.min(limit.max(1)));
    let is_long = length > peer.cutoffs.longest_unscheduled;
    let bytes = if is_long { bytes.min(FIRST_BYTES) } else { bytes };
    peer.unscheduled.take(bytes.min(length), peer.size.segment())
}
