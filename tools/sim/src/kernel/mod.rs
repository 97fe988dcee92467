//! Model of a host that runs the Linux kernel's Homa module.
//!
//! It follows the module's documentation and recorded packets, and shares no code with the protocol
//! core, so that wrong assumptions of either show when the two communicate. It has two uses: hosts
//! of a simulated fabric, mixed with hosts that run apus in the kernel profile; and verification of
//! what apus sends, because [`Module::handle_packet`] returns for each packet whether the module
//! would accept it ([`Objection`]).
//!
//! ```text
//!   rx         effect of each packet, and objections to it             incoming   the list of gaps
//!   tx         choice and headers of packets                           outgoing   segments that never change
//!   timer      ticks of a millisecond: silence, RESEND, NEED_ACK       grants     SRPT, windows, the oldest
//! ```
//!
//! Source: reference 1.2 to 1.6 (rows P, L, T, G, U) and 8.2. The numbers are the module's defaults.
//!
//! # What is absent
//!
//! Exhaustion of receive buffers, the pacer, GSO and GRO, more than two ports, fairness of grants
//! over peers. An application of the module cannot cancel a request.

mod grants;
mod incoming;
mod objection;
mod outgoing;
mod peer;
mod rpc;
mod rx;
#[cfg(test)]
mod tests;
mod timer;
mod tx;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::IpAddr;

use apus_wire::Role;
use bytes::Bytes;

pub use objection::Objection;
pub use rpc::RpcName;
pub use tx::Packet;

use apus_workload::time::{MILLISECOND, Nanos};
use outgoing::Outgoing;
use peer::Peer;
use rpc::{Rpc, State};

/// Bytes of a message that leave without grants (row U-1).
pub const UNSCHEDULED: u32 = 40_000;
/// Length of the longest message (row P-8).
pub const LONGEST: u32 = 1_000_000;
/// Initial version of the cutoffs of every host.
const CUTOFF_VERSION: u16 = 1;
/// The cutoffs (row U-2).
const CUTOFFS: [u32; 8] = [0, 0, 0, 0, 1_000_000, 15_000, 2_800, 200];
/// Port of the client socket (row L-4).
pub const CLIENT_PORT: u16 = 0x8000;
/// The highest level.
const HIGHEST: u8 = 7;

/// An event for the application.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A request is complete.
    Request {
        /// Key of the RPC, for the reply.
        rpc: RpcName,
        /// The whole request.
        payload: Bytes,
    },
    /// A call has completed.
    Response {
        /// Value given to the call.
        cookie: u64,
        /// The whole response.
        payload: Bytes,
    },
    /// A call has failed.
    Failed {
        /// Value given to the call.
        cookie: u64,
        /// Whether the deadline has passed; otherwise the server was silent for too long.
        late: bool,
    },
}

/// A host with the module and two sockets: port [`CLIENT_PORT`] for calls and another one for
/// service.
#[derive(Debug)]
pub struct Module {
    /// Port of the server socket.
    port: u16,
    /// Port of the client socket.
    client_port: u16,
    /// Payload bytes of a full packet.
    segment: u32,
    rpcs: BTreeMap<RpcName, Rpc>,
    peers: BTreeMap<IpAddr, Peer>,
    events: VecDeque<Event>,
    control: VecDeque<tx::Control>,
    /// RPCs with segments to retransmit.
    resends: VecDeque<RpcName>,
    /// RPCs with messages that may be transmitted: bytes left, age, key.
    sendable: BTreeSet<(u32, u64, RpcName)>,
    /// RPCs whose incoming messages need grants.
    scheduled: BTreeSet<RpcName>,
    /// Offsets up to which senders were ever allowed to transmit, also for RPCs that have ended:
    /// the module forgets these, but the verification needs them.
    allowed: BTreeMap<RpcName, u32>,
    /// Time from which on the oldest message may get another grant for its age.
    next_fifo: Nanos,
    deadlines: BTreeSet<(Nanos, RpcName)>,
    next_id: u64,
    births: u64,
    now: Nanos,
    next_tick: Nanos,
}

impl Module {
    /// Returns a host without any history. Its calls have even ids from `first_id` on; a full
    /// packet carries `segment` bytes of payload.
    ///
    /// # Panics
    ///
    /// `segment` is 0.
    #[must_use]
    pub fn new(port: u16, segment: u32, first_id: u64) -> Self {
        assert!(segment > 0, "packets carry something");
        Self {
            port,
            client_port: CLIENT_PORT,
            segment,
            rpcs: BTreeMap::new(),
            peers: BTreeMap::new(),
            events: VecDeque::new(),
            control: VecDeque::new(),
            resends: VecDeque::new(),
            sendable: BTreeSet::new(),
            scheduled: BTreeSet::new(),
            allowed: BTreeMap::new(),
            next_fifo: 0,
            deadlines: BTreeSet::new(),
            next_id: first_id & !1,
            births: 0,
            now: 0,
            next_tick: 0,
        }
    }

    /// Sets the port of the client socket.
    #[must_use]
    pub const fn calling_from(mut self, port: u16) -> Self {
        self.client_port = port;
        self
    }

    /// Sets the id of the next call, like the module's parameter `next_id`.
    pub const fn set_next_id(&mut self, id: u64) {
        self.next_id = id & !1;
    }

    /// Sends a request to port `port` of host `to`. [`Event::Response`] or
    /// [`Event::Failed`] follows, the latter no later than `deadline`.
    ///
    /// # Panics
    ///
    /// The message is empty or longer than [`LONGEST`].
    pub fn call(
        &mut self,
        now: Nanos,
        (to, port): (IpAddr, u16),
        payload: Bytes,
        cookie: u64,
        deadline: Option<Nanos>,
    ) -> RpcName {
        self.now = now;
        let name = RpcName { peer: to, id: self.next_id, role: Role::Client };
        self.next_id += 2;
        let mut rpc = Rpc::new(State::Outgoing, self.client_port, port, self.birth());
        rpc.out = Some(self.outgoing(payload));
        rpc.cookie = cookie;
        rpc.deadline = deadline;
        self.deadlines.extend(deadline.map(|at| (at, name)));
        self.insert(name, rpc);
        self.update(name);
        name
    }

    /// Answers a request. Returns `false` if its client has ended the RPC.
    ///
    /// # Panics
    ///
    /// The message is empty or longer than [`LONGEST`].
    pub fn reply(&mut self, now: Nanos, name: RpcName, payload: Bytes) -> bool {
        self.now = now;
        let out = self.outgoing(payload);
        let Some(rpc) = self.rpcs.get_mut(&name) else { return false };
        if rpc.state != State::InService {
            return false;
        }
        rpc.state = State::Outgoing;
        rpc.out = Some(out);
        self.update(name);
        true
    }

    /// Cancels a call without notifying its server (row L-9). Returns `false` if the call has
    /// ended.
    pub fn abort(&mut self, name: RpcName) -> bool {
        self.remove(name).is_some()
    }

    /// Returns the next event for the application.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Describes the state of an RPC; empty if it has ended.
    #[must_use]
    pub fn describe(&self, name: RpcName) -> String {
        self.rpcs.get(&name).map_or_else(String::new, ToString::to_string)
    }

    /// Returns whether an RPC waits for grants of a client that may have ended: it then waits
    /// forever, whatever happens (row L-6).
    #[must_use]
    pub fn waits_for_grants(&self, name: RpcName) -> bool {
        self.rpcs.get(&name).is_some_and(|rpc| {
            let waits = |out: &Outgoing| out.sendable().is_none() && !out.is_sent();
            name.role == Role::Server && rpc.may_send() && rpc.out.as_ref().is_some_and(waits)
        })
    }

    /// Returns the RPCs that have not ended.
    pub fn live(&self) -> impl Iterator<Item = RpcName> + '_ {
        self.rpcs.keys().copied()
    }

    /// Returns when [`Module::handle_timeout`] must be called; `None` without RPCs.
    #[must_use]
    pub fn next_timeout(&self) -> Option<Nanos> {
        let tick = (!self.rpcs.is_empty()).then_some(self.next_tick);
        let deadline = self.deadlines.first().map(|(at, _)| *at);
        [tick, deadline].into_iter().flatten().min()
    }

    fn birth(&mut self) -> u64 {
        self.births += 1;
        self.births
    }

    fn outgoing(&self, payload: Bytes) -> Outgoing {
        assert!((1..=LONGEST as usize).contains(&payload.len()), "no message of this module");
        Outgoing::new(payload, UNSCHEDULED, self.segment)
    }

    fn insert(&mut self, name: RpcName, rpc: Rpc) {
        if self.rpcs.is_empty() {
            self.next_tick = next_multiple(self.now);
        }
        self.rpcs.insert(name, rpc);
    }

    /// Updates the position of an RPC among the messages that may be transmitted.
    fn update(&mut self, name: RpcName) {
        let Some(rpc) = self.rpcs.get_mut(&name) else { return };
        let wanted = rpc.out.as_ref().and_then(Outgoing::sendable).filter(|_| rpc.may_send());
        if rpc.queued != wanted {
            if let Some(left) = rpc.queued {
                self.sendable.remove(&(left, rpc.birth, name));
            }
            if let Some(left) = wanted {
                self.sendable.insert((left, rpc.birth, name));
            }
            rpc.queued = wanted;
        }
    }

    /// Removes an RPC from all tables.
    fn remove(&mut self, name: RpcName) -> Option<Rpc> {
        let rpc = self.rpcs.remove(&name)?;
        if let Some(left) = rpc.queued {
            self.sendable.remove(&(left, rpc.birth, name));
        }
        if let Some(at) = rpc.deadline {
            self.deadlines.remove(&(at, name));
        }
        self.scheduled.remove(&name);
        Some(rpc)
    }
}

/// Returns the first tick after `now`.
const fn next_multiple(now: Nanos) -> Nanos {
    (now / MILLISECOND + 1) * MILLISECOND
}
