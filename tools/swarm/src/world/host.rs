//! How does a protocol run on a host that is watched?
//!
//! As on any other simulated host, but with all bytes of all messages, and with applications that take their
//! time, change their mind, and never answer. Everything that crosses the transport's API or the wire is
//! shown to the [`Watch`]. Most hosts run the protocol that ships, some a model of the Linux module
//! ([`Stack`]), which says what it has against the packets that it gets.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use apus_proto::{CommandError, Transport};
use apus_wire::Role;
use apus_workload::PacketOverhead;
use bytes::Bytes;

use super::service::{Agenda, Task};
use super::stack::{Handle, Leaving, Stack, Told, Wish};
use crate::call::Answer;
use crate::payload::payload;
use crate::seen::{CallId, What};
use crate::violation::{Kind, Violation};
use crate::watch::Watch;
use apus_sim::host::{Host, PORT, wire_bytes};
use apus_sim::kernel::Module;
use apus_sim::message::{HostId, Message, Outcome};
use apus_sim::packet::Packet;
use apus_workload::time::Nanos;

/// Calls of `handle_timeout` at the same time that make sense: each ends an RPC at least.
const MOST_TIMEOUTS: u32 = 100_000;

/// A host that is watched.
pub(crate) struct WatchedHost {
    id: HostId,
    stack: Stack,
    watch: Rc<RefCell<Watch>>,
    packets: PacketOverhead,
    /// Packets of a burst that the link has not taken yet.
    burst: VecDeque<(Packet, Bytes)>,
    agenda: Agenda,
    /// Calls and replies that the transport has no room for.
    calls: VecDeque<CallId>,
    replies: VecDeque<(Handle, CallId)>,
    life: u64,
    /// When `handle_timeout` was called last, and how often at that time.
    timeouts: (Nanos, u32),
}

impl WatchedHost {
    pub(super) fn new(id: HostId, watch: Rc<RefCell<Watch>>) -> Self {
        let limit = watch.borrow().directory.scenario.packet_limit;
        Self {
            stack: boot(&watch, id, 0),
            id,
            watch,
            packets: PacketOverhead::ethernet(limit + 28, 20 + 8 + 56),
            burst: VecDeque::new(),
            agenda: Agenda::default(),
            calls: VecDeque::new(),
            replies: VecDeque::new(),
            life: 0,
            timeouts: (0, 0),
        }
    }

    /// What runs here, for who wants to look at its gauges.
    pub(super) const fn stack(&self) -> &Stack {
        &self.stack
    }

    fn see(&self, now: Nanos, what: What<'_>) {
        self.watch.borrow_mut().see(now, self.id, what);
    }

    fn is_over(&self) -> bool {
        self.watch.borrow().is_over()
    }

    /// An application's command was refused although nothing is wrong with it.
    fn refused(&self, call: CallId, error: &CommandError) {
        self.watch.borrow_mut().note(Err(Violation {
            kind: Kind::Liveness,
            calls: vec![call],
            expected: format!("host {} accepts what the application of call {call} wants", self.id),
            seen: error.to_string(),
        }));
    }

    /// Makes a call; `false` if there is no room.
    fn call(&mut self, now: Nanos, call: CallId) -> bool {
        let planned = *self.watch.borrow().directory.call(call);
        let wish = Wish {
            to: planned.to,
            payload: payload(call, Role::Client, planned.request as usize),
            cookie: u64::from(call),
            deadline: planned.deadline,
            idempotent: planned.idempotent,
        };
        match self.stack.call(now, wish) {
            Ok((rpc, id)) => {
                if let Some(id) = id {
                    self.watch.borrow_mut().directory.name(call, id);
                }
                self.see(now, What::Called(call));
                if let Some(after) = planned.cancel {
                    self.agenda.put(now + after, Task::Cancel { rpc, call });
                }
                true
            }
            Err(error) if error.is_back_pressure() => false,
            Err(error) => {
                self.refused(call, &error);
                true
            }
        }
    }

    /// Takes what the transport has to say.
    fn take_events(&mut self, now: Nanos) {
        while let Some(told) = self.stack.poll() {
            match told {
                Told::Request { rpc, from, id, payload } => {
                    self.serve(now, rpc, (from, id), &payload);
                }
                Told::Response { cookie, payload } => {
                    self.stack.taken(payload.len());
                    self.see(now, What::Responded(cookie as CallId, &payload));
                }
                Told::Failed { cookie, error } => {
                    self.see(now, What::Failed(cookie as CallId, error));
                }
                Told::NewPeer(peer) => {
                    let limit = self.packets.payload as usize + apus_wire::DATA_HEADER_LEN;
                    if let Stack::Apus(transport) = &mut self.stack {
                        transport.set_packet_limit(peer, limit);
                    }
                }
                Told::Room => self.retry(now),
                Told::Nothing => {}
            }
        }
    }

    /// The application gets a request.
    fn serve(
        &mut self,
        now: Nanos,
        rpc: Handle,
        (from, id): (HostId, Option<u64>),
        request: &Bytes,
    ) {
        let (call, late, service) = {
            let directory = &self.watch.borrow().directory;
            let call = id.and_then(|id| directory.find(from, self.id, id));
            let service = call.map_or(0, |call| directory.call(call).service);
            (call, directory.scenario.takes_late, service)
        };
        self.see(now, What::Requested(call, request));
        let taken = if late { request.len() } else { 0 };
        self.stack.taken(request.len() - taken);
        let task = Task::Answer { rpc, call, taken };
        if service == 0 { self.perform(now, task) } else { self.agenda.put(now + service, task) }
    }

    /// The application does what it has on its agenda.
    fn perform(&mut self, now: Nanos, task: Task) {
        match task {
            Task::Answer { rpc, call, taken } => {
                self.stack.taken(taken);
                let answer = call.map(|call| self.watch.borrow().directory.call(call).answer);
                match (call, answer) {
                    (Some(call), Some(Answer::Reply)) => self.reply(now, rpc, call),
                    _ => self.abandon(now, rpc, call),
                }
            }
            Task::Cancel { rpc, call } => {
                // It may have ended already.
                if self.stack.cancel(now, rpc) {
                    self.see(now, What::Cancelled(call));
                }
            }
        }
    }

    fn reply(&mut self, now: Nanos, rpc: Handle, call: CallId) {
        if !self.replies.is_empty() || !self.try_reply(now, rpc, call) {
            self.replies.push_back((rpc, call));
        }
    }

    /// Replies; `false` if there is no room.
    fn try_reply(&mut self, now: Nanos, rpc: Handle, call: CallId) -> bool {
        let length = self.watch.borrow().directory.call(call).response;
        let payload = payload(call, Role::Server, length as usize);
        match self.stack.reply(now, rpc, payload) {
            Ok(()) => self.see(now, What::Replied(call)),
            Err(error) if error.is_back_pressure() => return false,
            // The client is gone, or has lost interest.
            Err(CommandError::UnknownRpc) => {}
            Err(error) => self.refused(call, &error),
        }
        true
    }

    fn abandon(&mut self, now: Nanos, rpc: Handle, call: Option<CallId>) {
        match (self.stack.abandon(now, rpc), call) {
            (Some(true), Some(call)) => self.see(now, What::Abandoned(call)),
            // The module does not offer that.
            (None, Some(call)) => self.reply(now, rpc, call),
            // What a corrupted packet has asked for; its answer interests nobody.
            (None, None) => drop(self.stack.reply(now, rpc, Bytes::from_static(b"?"))),
            (Some(_), _) => {}
        }
    }

    /// The applications let go of everything that they wait for.
    pub(super) fn cancel_all(&mut self, now: Nanos) {
        for (rpc, server, id) in self.stack.open_calls() {
            if let Some(call) = self.watch.borrow().directory.find(self.id, server, id) {
                self.agenda.put(now, Task::Cancel { rpc, call });
            }
        }
        for call in std::mem::take(&mut self.calls) {
            self.see(now, What::Cancelled(call));
        }
        self.handle_timeout(now);
    }

    /// There is room again for what was refused.
    fn retry(&mut self, now: Nanos) {
        while let Some((rpc, call)) = self.replies.pop_front() {
            if !self.try_reply(now, rpc, call) {
                self.replies.push_front((rpc, call));
                break;
            }
        }
        while let Some(call) = self.calls.pop_front() {
            if !self.call(now, call) {
                self.calls.push_front(call);
                break;
            }
        }
    }

    /// Everything at once that the transport wants to send now: a burst.
    fn next_burst(&mut self, now: Nanos) {
        for (place, leaving) in self.stack.burst(now).into_iter().enumerate() {
            let Leaving { to, priority, bytes, header_len } = leaving;
            self.watch.borrow_mut().sent(now, self.id, to, &bytes, place);
            let payload = bytes.len() - header_len;
            let packet = Packet {
                from: self.id,
                to,
                wire_bytes: wire_bytes(&self.packets, header_len, payload),
                payload: payload as u32,
                priority,
                ecn_capable: false,
                marked: false,
            };
            self.burst.push_back((packet, bytes));
        }
    }

    /// Whether timers go round in circles.
    fn is_stuck(&mut self, now: Nanos) -> bool {
        let (last, count) = &mut self.timeouts;
        *count = if *last == now { *count + 1 } else { 0 };
        *last = now;
        if *count > MOST_TIMEOUTS {
            self.watch.borrow_mut().note(Err(Violation {
                kind: Kind::Liveness,
                calls: Vec::new(),
                expected: format!("host {} has done everything that is due at {now} ns", self.id),
                seen: format!("after {count} calls more is due: {:?}", self.stack.next_timeout()),
            }));
        }
        *count > MOST_TIMEOUTS
    }
}

/// What runs in another life of a host.
fn boot(watch: &RefCell<Watch>, id: HostId, life: u64) -> Stack {
    let scenario = &watch.borrow().directory.scenario;
    if scenario.kernel_hosts.contains(&id) {
        let segment = scenario.packet_limit - apus_wire::DATA_HEADER_LEN as u32;
        // No id of an earlier life is used again.
        return Stack::Kernel(Box::new(Module::new(PORT, segment, 2 + (life << 40))));
    }
    // No multiples of what the transport's own generator adds in each step.
    let seed = scenario.seed.wrapping_mul(0xd134_2543_de82_ef95)
        ^ (life << 32 | u64::from(id)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    let mut transport = Transport::new(scenario.config.clone(), PORT, seed);
    if scenario.knows_rate {
        let mbps = scenario.fabric.topology.host_rate.mbps();
        transport.set_link_rate(u32::try_from(mbps).unwrap_or(u32::MAX));
    }
    Stack::Apus(Box::new(transport))
}

impl Host for WatchedHost {
    type Body = Bytes;

    fn submit(&mut self, now: Nanos, message: &Message) {
        if self.is_over() {
            return;
        }
        let call = message.number;
        if !self.calls.is_empty() || !self.call(now, call) {
            self.see(now, What::Waiting(call));
            self.calls.push_back(call);
        }
        self.take_events(now);
    }

    fn receive(&mut self, now: Nanos, packet: &Packet, body: &Bytes) {
        if self.is_over() {
            return;
        }
        self.watch.borrow_mut().received(now, self.id, packet.from, body);
        if let Some(objection) = self.stack.receive(now, packet.from, body) {
            self.watch.borrow_mut().objected(self.id, packet.from, body, objection);
        }
        self.take_events(now);
    }

    fn transmit(&mut self, now: Nanos, packet: &mut Packet, body: &mut Bytes) -> bool {
        if self.is_over() {
            return false;
        }
        if self.burst.is_empty() {
            self.next_burst(now);
        }
        let Some(next) = self.burst.pop_front() else { return false };
        (*packet, *body) = next;
        true
    }

    fn next_timeout(&self) -> Option<Nanos> {
        if self.is_over() {
            return None;
        }
        [self.stack.next_timeout(), self.agenda.next()].into_iter().flatten().min()
    }

    fn handle_timeout(&mut self, now: Nanos) {
        if self.is_over() || self.is_stuck(now) {
            return;
        }
        while let Some(task) = self.agenda.take(now) {
            self.perform(now, task);
        }
        self.stack.handle_timeout(now);
        self.take_events(now);
    }

    fn poll_outcome(&mut self) -> Option<Outcome> {
        None
    }

    fn crash(&mut self, now: Nanos) {
        self.see(now, What::Crashed);
        self.life += 1;
        self.stack = boot(&self.watch, self.id, self.life);
        self.burst.clear();
        self.calls.clear();
        self.replies.clear();
        self.agenda = Agenda::default();
    }

    fn corrupt(body: &mut Bytes, chance: u64) {
        let mut bytes = body.to_vec();
        let bit = chance as usize % (8 * bytes.len());
        bytes[bit / 8] ^= 1 << (bit % 8);
        *body = Bytes::from(bytes);
    }

    fn id(&self) -> HostId {
        self.id
    }
}
