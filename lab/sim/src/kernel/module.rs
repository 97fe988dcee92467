//! State of the module, and the calls of its applications.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::IpAddr;

use apus_wire::Role;
use bytes::Bytes;

use super::event::ModuleEvent;
use super::outgoing::Outgoing;
use super::packet::Control;
use super::parameters::{CLIENT_PORT, LONGEST, UNSCHEDULED};
use super::peer::Peer;
use super::rpc::{ModuleRpcKey, Rpc, State};
use apus_workload::time::{MILLISECOND, Nanos};

/// A host with the module and two sockets: port [`CLIENT_PORT`] for calls and another port for
/// service.
#[derive(Debug)]
pub struct Module {
    /// Port of the server socket.
    pub(super) port: u16,
    /// Port of the client socket.
    pub(super) client_port: u16,
    /// Payload bytes of a full packet.
    pub(super) segment: u32,
    pub(super) rpcs: BTreeMap<ModuleRpcKey, Rpc>,
    pub(super) peers: BTreeMap<IpAddr, Peer>,
    pub(super) events: VecDeque<ModuleEvent>,
    pub(super) control: VecDeque<Control>,
    /// RPCs with segments to retransmit.
    pub(super) resends: VecDeque<ModuleRpcKey>,
    /// RPCs with messages that may be transmitted: bytes left, age, key.
    pub(super) sendable: BTreeSet<(u32, u64, ModuleRpcKey)>,
    /// RPCs whose incoming messages need grants.
    pub(super) scheduled: BTreeSet<ModuleRpcKey>,
    /// Highest offset that each sender was ever allowed to transmit up to, also for RPCs that have
    /// ended: the module discards these, but the verification needs them.
    pub(super) allowed: BTreeMap<ModuleRpcKey, u32>,
    /// Earliest time of the next grant to the oldest message for its age.
    pub(super) next_fifo: Nanos,
    pub(super) deadlines: BTreeSet<(Nanos, ModuleRpcKey)>,
    pub(super) next_id: u64,
    pub(super) births: u64,
    pub(super) now: Nanos,
    pub(super) next_tick: Nanos,
    /// Offset of the ticks from whole milliseconds.
    phase: Nanos,
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
            phase: 0,
        }
    }

    /// Sets the offset of the module's ticks from whole milliseconds, which in reality depends on
    /// when the module was loaded. Without it, the ticks of all modules coincide.
    #[must_use]
    pub const fn ticking_at(mut self, phase: Nanos) -> Self {
        self.phase = phase % MILLISECOND;
        self
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

    /// Sends a request to port `port` of host `to`. [`ModuleEvent::Response`] or
    /// [`ModuleEvent::Failed`] follows, the latter no later than `deadline`.
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
    ) -> ModuleRpcKey {
        self.now = now;
        let key = ModuleRpcKey { peer: to, id: self.next_id, role: Role::Client };
        self.next_id += 2;
        let mut rpc = Rpc::new(State::Outgoing, self.client_port, port, self.birth());
        rpc.out = Some(self.outgoing(payload));
        rpc.cookie = cookie;
        rpc.deadline = deadline;
        self.deadlines.extend(deadline.map(|at| (at, key)));
        self.insert(key, rpc);
        self.update(key);
        key
    }

    /// Answers a request. Returns `false` if its client has ended the RPC.
    ///
    /// # Panics
    ///
    /// The message is empty or longer than [`LONGEST`].
    pub fn reply(&mut self, now: Nanos, key: ModuleRpcKey, payload: Bytes) -> bool {
        self.now = now;
        let out = self.outgoing(payload);
        let Some(rpc) = self.rpcs.get_mut(&key) else { return false };
        if rpc.state != State::InService {
            return false;
        }
        rpc.state = State::Outgoing;
        rpc.out = Some(out);
        self.update(key);
        true
    }

    /// Cancels a call without notifying its server (HM `homa_rpc.c` `homa_rpc_end`). Returns
    /// `false` if the call has ended.
    pub fn abort(&mut self, key: ModuleRpcKey) -> bool {
        self.remove(key).is_some()
    }

    /// Returns the next event for the application.
    pub fn poll_event(&mut self) -> Option<ModuleEvent> {
        self.events.pop_front()
    }

    /// Describes the state of an RPC; empty if it has ended.
    #[must_use]
    pub fn describe(&self, key: ModuleRpcKey) -> String {
        self.rpcs.get(&key).map_or_else(String::new, ToString::to_string)
    }

    /// Returns whether an RPC waits for grants of a client that may have ended: it then waits
    /// forever in any case (HM `homa_timer.c` `homa_timer_check_rpc`).
    #[must_use]
    pub fn waits_for_grants(&self, key: ModuleRpcKey) -> bool {
        self.rpcs.get(&key).is_some_and(|rpc| {
            let waits = |out: &Outgoing| out.sendable().is_none() && !out.is_sent();
            key.role == Role::Server && rpc.may_send() && rpc.out.as_ref().is_some_and(waits)
        })
    }

    /// Returns the RPCs that have not ended.
    pub fn live(&self) -> impl Iterator<Item = ModuleRpcKey> + '_ {
        self.rpcs.keys().copied()
    }

    /// Returns when [`Module::handle_timeout`] must be called; `None` without RPCs.
    #[must_use]
    pub fn next_timeout(&self) -> Option<Nanos> {
        let tick = (!self.rpcs.is_empty()).then_some(self.next_tick);
        let deadline = self.deadlines.first().map(|(at, _)| *at);
        [tick, deadline].into_iter().flatten().min()
    }

    pub(super) fn birth(&mut self) -> u64 {
        self.births += 1;
        self.births
    }

    fn outgoing(&self, payload: Bytes) -> Outgoing {
        assert!((1..=LONGEST as usize).contains(&payload.len()), "no message of this module");
        Outgoing::new(payload, UNSCHEDULED, self.segment)
    }

    /// Returns the first tick after `now`.
    pub(super) const fn next_tick_after(&self, now: Nanos) -> Nanos {
        (now + MILLISECOND - self.phase) / MILLISECOND * MILLISECOND + self.phase
    }

    pub(super) fn insert(&mut self, key: ModuleRpcKey, rpc: Rpc) {
        if self.rpcs.is_empty() {
            self.next_tick = self.next_tick_after(self.now);
        }
        self.rpcs.insert(key, rpc);
    }

    /// Updates the position of an RPC among the messages that may be transmitted.
    pub(super) fn update(&mut self, key: ModuleRpcKey) {
        let Some(rpc) = self.rpcs.get_mut(&key) else { return };
        let wanted = rpc.out.as_ref().and_then(Outgoing::sendable).filter(|_| rpc.may_send());
        if rpc.queued != wanted {
            if let Some(left) = rpc.queued {
                self.sendable.remove(&(left, rpc.birth, key));
            }
            if let Some(left) = wanted {
                self.sendable.insert((left, rpc.birth, key));
            }
            rpc.queued = wanted;
        }
    }

    /// Removes an RPC from all tables.
    pub(super) fn remove(&mut self, key: ModuleRpcKey) -> Option<Rpc> {
        let rpc = self.rpcs.remove(&key)?;
        if let Some(left) = rpc.queued {
            self.sendable.remove(&(left, rpc.birth, key));
        }
        if let Some(at) = rpc.deadline {
            self.deadlines.remove(&(at, key));
        }
        self.scheduled.remove(&key);
        Some(rpc)
    }
}
