//! An RPC in the module.

use std::fmt;
use std::net::IpAddr;

use apus_wire::{Role, SenderId};

use super::incoming::Incoming;
use super::outgoing::Outgoing;
use apus_workload::time::Nanos;

/// Key of an RPC in the module: the other host, the even id, and the module's role. Ports are not
/// part of the key (HM `homa_rpc.c` `homa_rpc_find_server`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ModuleRpcKey {
    /// The other host.
    pub peer: IpAddr,
    /// The even id.
    pub id: u64,
    /// The module's role.
    pub role: Role,
}

impl ModuleRpcKey {
    /// Returns the id in packets of the module.
    pub(super) const fn sender_id(self) -> SenderId {
        SenderId::new(self.id, self.role)
    }
}

/// State of an RPC (HM `homa_rpc.h` `homa_rpc`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Outgoing,
    Incoming,
    InService,
}

/// An RPC.
#[derive(Debug)]
pub(super) struct Rpc {
    pub(super) state: State,
    pub(super) our_port: u16,
    pub(super) peer_port: u16,
    pub(super) birth: u64,
    pub(super) out: Option<Outgoing>,
    pub(super) inc: Option<Incoming>,
    /// Its position among the messages that may be transmitted, in bytes left.
    pub(super) queued: Option<u32>,
    /// Whether it is in the retransmission queue.
    pub(super) in_resend_queue: bool,
    pub(super) silent_ticks: u32,
    /// Ticks since the whole response was transmitted.
    pub(super) done_ticks: u32,
    pub(super) cookie: u64,
    pub(super) deadline: Option<Nanos>,
}

impl Rpc {
    pub(super) const fn new(state: State, our_port: u16, peer_port: u16, birth: u64) -> Self {
        Self {
            state,
            our_port,
            peer_port,
            birth,
            out: None,
            inc: None,
            queued: None,
            in_resend_queue: false,
            silent_ticks: 0,
            done_ticks: 0,
            cookie: 0,
            deadline: None,
        }
    }

    /// Returns whether the RPC is in the phase of its outgoing message.
    pub(super) fn may_send(&self) -> bool {
        self.state == State::Outgoing
    }
}

/// Formats the state for debugging.
impl fmt::Display for Rpc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.state)?;
        if let Some(inc) = &self.inc {
            let (received, granted, length) = (inc.received(), inc.granted, inc.length());
            write!(f, ", in: {received} received, {granted} granted of {length}")?;
        }
        if let Some(out) = &self.out {
            let left = out.sendable().unwrap_or(0);
            write!(f, ", out: {} sent, {left} may leave of {}", out.sent, out.length())?;
        }
        write!(f, ", {} silent ticks, done for {}", self.silent_ticks, self.done_ticks)
    }
}
