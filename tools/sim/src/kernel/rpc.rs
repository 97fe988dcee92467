//! What is an RPC to the module?

use std::fmt;
use std::net::IpAddr;

use apus_wire::{Role, SenderId};

use super::incoming::Incoming;
use super::outgoing::Outgoing;
use apus_workload::time::Nanos;

/// How the module knows an RPC: by the other host, the even id, and its own role; ports have no part in it (row
/// L-2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RpcName {
    /// The other host.
    pub peer: IpAddr,
    /// The even id.
    pub id: u64,
    /// The module's role.
    pub role: Role,
}

impl RpcName {
    /// The id as the module writes it.
    pub(super) const fn sender_id(self) -> SenderId {
        SenderId::new(self.id, self.role)
    }
}

/// States (row L-3).
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
    /// Under which number of bytes it stands among those that may send.
    pub(super) queued: Option<u32>,
    /// Whether it stands among those that have something to send again.
    pub(super) again: bool,
    pub(super) silent_ticks: u32,
    /// Ticks since the whole response has left.
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
            again: false,
            silent_ticks: 0,
            done_ticks: 0,
            cookie: 0,
            deadline: None,
        }
    }

    /// Whether its outgoing message is what it is about at present.
    pub(super) fn may_send(&self) -> bool {
        self.state == State::Outgoing
    }
}

/// For people.
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
