//! The row of a live RPC, as other processes read it.

use apus_proto::{MessageProgress, Role, RpcInfo, RpcState};
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;

/// A live RPC, as the request `rpcs` shows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RpcRow {
    /// Address of the endpoint.
    pub endpoint: SocketAddr,
    /// The even id of the RPC on the wire.
    pub id: u64,
    /// Address of the peer.
    pub peer: SocketAddr,
    /// Role of the endpoint: `client` or `server`.
    pub role: String,
    /// State of the RPC: `outgoing`, `incoming`, `held` or `in_service`.
    pub state: String,
    /// Nanoseconds since the RPC was created.
    pub age_nanos: u64,
    /// Nanoseconds since the last packet from the peer that showed progress.
    pub silent_nanos: u64,
    /// Number of RESENDs or NEED_ACKs sent since then.
    pub asks: u32,
    /// The incoming message, once its first packet has arrived.
    pub incoming: Option<MessageProgress>,
    /// The outgoing message, until it is acknowledged or answered.
    pub outgoing: Option<MessageProgress>,
}

impl RpcRow {
    /// Returns the row of an RPC of the endpoint at `endpoint`.
    #[must_use]
    pub fn new(endpoint: SocketAddr, rpc: &RpcInfo) -> Self {
        let role = match rpc.role {
            Role::Client => "client",
            Role::Server => "server",
        };
        let state = match rpc.state {
            RpcState::Outgoing => "outgoing",
            RpcState::Incoming => "incoming",
            RpcState::InService => "in_service",
        };
        Self {
            endpoint,
            id: rpc.id,
            peer: rpc.peer,
            role: role.to_owned(),
            state: state.to_owned(),
            age_nanos: rpc.age.as_nanos() as u64,
            silent_nanos: rpc.silent.as_nanos() as u64,
            asks: rpc.asks,
            incoming: rpc.incoming,
            outgoing: rpc.outgoing,
        }
    }
}
