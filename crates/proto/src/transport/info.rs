//! What may be looked at from outside?

use super::Transport;
use crate::metrics::{Live, Metrics};
use crate::peer::Address;
use crate::rpc::{ClientState, Rpc, RpcKey, ServerState, Side};
use apus_wire::Role;
use std::time::Duration;

/// What one live RPC is doing (the kernel's HOMAIOCINFO).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RpcInfo {
    /// Its name at this end.
    pub rpc: RpcKey,
    /// Its even id on the wire.
    pub id: u64,
    /// The other end.
    pub peer: Address,
    /// Our role.
    pub role: Role,
    /// What it is doing.
    pub state: RpcState,
    /// Time since it was created.
    pub age: Duration,
    /// Time since the peer showed that it works on it.
    pub silent: Duration,
    /// RESENDs or NEED_ACKs sent since then.
    pub asks: u32,
    /// The message to us: length, received and granted bytes.
    pub incoming: Option<(u32, u32, u32)>,
    /// The message from us: length, sent and granted bytes.
    pub outgoing: Option<(u32, u32, u32)>,
}

/// State of a live RPC (row L-3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RpcState {
    /// The outgoing message of this end is on its way.
    Outgoing,
    /// The incoming message is on its way.
    Incoming,
    /// A request waits for its client's confirmation.
    Held,
    /// The application has the request.
    InService,
}

impl Transport {
    /// All RPCs that live.
    #[must_use]
    pub fn info(&self) -> Vec<RpcInfo> {
        self.rpcs.iter().map(|(name, rpc)| self.describe(name, rpc)).collect()
    }

    /// One RPC, if it lives.
    #[must_use]
    pub fn info_of(&self, rpc: RpcKey) -> Option<RpcInfo> {
        self.rpcs.get(rpc).map(|entry| self.describe(rpc, entry))
    }

    fn describe(&self, name: RpcKey, rpc: &Rpc) -> RpcInfo {
        RpcInfo {
            rpc: name,
            id: rpc.id,
            peer: self.peers[rpc.peer].address,
            role: rpc.role(),
            state: state_of(rpc),
            age: self.now() - rpc.started,
            silent: self.now() - rpc.heard,
            asks: rpc.asks,
            incoming: rpc.incoming.as_ref().map(|m| (m.length(), m.received(), m.granted())),
            outgoing: rpc.outgoing.as_ref().map(|m| (m.length(), m.sent(), m.granted())),
        }
    }

    /// All counters as they stand, and what lives now.
    #[must_use]
    pub fn metrics(&self) -> Metrics {
        let mut metrics = self.metrics.clone();
        metrics.live = self.live();
        metrics
    }

    /// What lives now: [`Metrics::live`] without a copy of all counters, for who looks often.
    #[must_use]
    pub fn live(&self) -> Live {
        Live {
            client_rpcs: self.rpcs.count(Role::Client) as u64,
            server_rpcs: self.rpcs.count(Role::Server) as u64,
            peers: self.peers.len() as u64,
            send_bytes: self.budget.send.bytes(),
            receive_bytes: self.budget.receive,
            unconfirmed_bytes: self.budget.unconfirmed,
            grantable: self.granter.waiting() as u64,
            incoming_bytes: self.granter.backlog(),
            sendable: self.outbox.messages.len() as u64,
            timers: (self.silence.len() + self.deadlines.len()) as u64,
            control_packets: self.outbox.control.len() as u64,
        }
    }

    /// The configuration.
    #[must_use]
    pub const fn config(&self) -> &crate::Config {
        &self.config
    }
}

const fn state_of(rpc: &Rpc) -> RpcState {
    match &rpc.side {
        Side::Client(client) => match client.state {
            ClientState::Outgoing => RpcState::Outgoing,
            ClientState::Incoming => RpcState::Incoming,
        },
        Side::Server(server) => match server.state {
            ServerState::Incoming if !server.confirmed => RpcState::Held,
            ServerState::Incoming => RpcState::Incoming,
            ServerState::InService => RpcState::InService,
            ServerState::Outgoing => RpcState::Outgoing,
        },
    }
}
