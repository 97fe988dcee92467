//! Introspection: RPCs that are live, counters and gauges.

use super::Transport;
use crate::metrics::{Live, Metrics};
use crate::peer::Address;
use crate::probe::{ProbeEvent, ProbeFilter};
use crate::rpc::{ClientState, Rpc, RpcKey, ServerState, SideState};
use apus_wire::{Role, SenderId};
use std::time::Duration;

/// The state of one live RPC (the kernel's HOMAIOCINFO).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RpcInfo {
    /// Its name at this end.
    pub rpc: RpcKey,
    /// Its even id on the wire.
    pub id: u64,
    /// The other end.
    pub peer: Address,
    /// This endpoint's role.
    pub role: Role,
    /// Its state.
    pub state: RpcState,
    /// Time since it was created.
    pub age: Duration,
    /// Time since the peer showed that it works on it.
    pub silent: Duration,
    /// RESENDs or NEED_ACKs sent since then.
    pub asks: u32,
    /// The incoming message, once its first packet has arrived.
    pub incoming: Option<MessageProgress>,
    /// The outgoing message, until it is acknowledged or answered.
    pub outgoing: Option<MessageProgress>,
}

/// How much of a message has been transferred, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct MessageProgress {
    /// Length of the message.
    pub length: u32,
    /// Bytes of it that have been received, or sent at least once.
    pub done: u32,
    /// Bytes from its start that may be sent.
    pub granted: u32,
}

/// State of a live RPC (HM `homa_rpc.h` `homa_rpc`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RpcState {
    /// The outgoing message is in flight.
    Outgoing,
    /// The incoming message is in flight.
    Incoming,
    /// The application has the request.
    InService,
}

impl Transport {
    /// Returns all live RPCs.
    #[must_use]
    pub fn info(&self) -> Vec<RpcInfo> {
        self.protocol.tables.rpcs.iter().map(|(name, rpc)| self.describe(name, rpc)).collect()
    }

    /// Returns one RPC, if it is live.
    #[must_use]
    pub fn info_of(&self, rpc: RpcKey) -> Option<RpcInfo> {
        self.protocol.tables.rpcs.get(rpc).map(|entry| self.describe(rpc, entry))
    }

    fn describe(&self, name: RpcKey, rpc: &Rpc) -> RpcInfo {
        RpcInfo {
            rpc: name,
            id: rpc.id,
            peer: self.protocol.tables.peers[rpc.peer].address,
            role: rpc.role(),
            state: state_of(rpc),
            age: self.protocol.now - rpc.started,
            silent: self.protocol.now - rpc.heard,
            asks: rpc.asks,
            incoming: rpc
                .incoming
                .as_ref()
                .map(|m| MessageProgress::new(m.length(), m.received(), m.granted())),
            outgoing: rpc
                .outgoing
                .as_ref()
                .map(|m| MessageProgress::new(m.length(), m.sent(), m.granted())),
        }
    }

    /// Returns a snapshot of all counters and gauges.
    #[must_use]
    pub fn metrics(&self) -> Metrics {
        let mut metrics = self.output.observation.metrics.clone();
        metrics.live = self.live();
        metrics.admission.peers_displaced = self.protocol.tables.peers.displaced();
        metrics
    }

    /// Returns the gauges of [`Metrics::live`] without a copy of all counters, for frequent use.
    #[must_use]
    pub fn live(&self) -> Live {
        Live {
            client_rpcs: self.protocol.tables.rpcs.count(Role::Client) as u64,
            server_rpcs: self.protocol.tables.rpcs.count(Role::Server) as u64,
            peers: self.protocol.tables.peers.len() as u64,
            send_bytes: self.inbound.budget.send.bytes(),
            receive_bytes: self.inbound.budget.receive.bytes(),
            grantable: self.inbound.granter.waiting() as u64,
            incoming_bytes: self.inbound.granter.backlog(),
            sendable: self.output.outbound.messages.len() as u64,
            timers: (self.protocol.timers.silence.len() + self.protocol.timers.deadlines.len())
                as u64,
            control_packets: self.output.outbound.control.len() as u64,
        }
    }

    /// Sets the filter for notes; `None`, which is the default, disables them.
    pub fn set_probe_filter(&mut self, filter: Option<ProbeFilter>) {
        let notes = &mut self.output.observation.notes;
        notes.set_filter(filter);
        self.protocol.tables.rpcs.select(|id| notes.are_wanted_of(id));
    }

    /// Returns the next note, the earliest first. Fetch all after each other call: beyond 8,192,
    /// further ones are lost.
    #[inline]
    pub fn poll_probe(&mut self) -> Option<ProbeEvent> {
        self.output.observation.notes.poll()
    }

    /// Returns the id of a live RPC, as this endpoint writes it, and the other end, if the RPC is
    /// selected ([`ProbeFilter::multiplier`]).
    #[inline]
    #[must_use]
    pub fn selected(&self, rpc: RpcKey) -> Option<(SenderId, Address)> {
        let entry = self.protocol.tables.rpcs.get(rpc)?;
        entry.selected.then(|| (entry.sender_id(), self.protocol.tables.peers[entry.peer].address))
    }

    /// Returns the configuration.
    #[must_use]
    pub const fn config(&self) -> &crate::Config {
        &self.protocol.config
    }
}

impl MessageProgress {
    /// `done` and `granted` are positions: an empty message has one.
    fn new(length: u32, done: u32, granted: u32) -> Self {
        Self { length, done: done.min(length), granted: granted.min(length) }
    }
}

const fn state_of(rpc: &Rpc) -> RpcState {
    match rpc.state() {
        SideState::Client(ClientState::Outgoing | ClientState::NoRoom)
        | SideState::Server(ServerState::Outgoing) => RpcState::Outgoing,
        SideState::Client(ClientState::Incoming) | SideState::Server(ServerState::Incoming) => {
            RpcState::Incoming
        }
        SideState::Server(ServerState::InService) => RpcState::InService,
    }
}
