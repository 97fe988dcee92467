//! Simulated host with an observer.
//!
//! It resembles other simulated hosts, but carries the full content of messages, and its
//! applications take time, cancel calls and abandon requests. All events at the transport's API and
//! on the wire are passed to the [`Observer`]. Most hosts run the shipped protocol, some a model of
//! the Linux module ([`Stack`]), which objects to invalid packets.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;

use apus_proto::probe::ProbeKind;
use apus_wire::Kind;
use apus_workload::PacketOverhead;
use bytes::Bytes;

use super::applications::Applications;
use super::datagrams::{self, Datagrams};
use super::envelope;
use super::neighbours::Place;
use super::sealed_end::TAG_LEN;
use super::sealing::Sealing;
use super::stack::{Stack, StackEvent};
use crate::attack::{Attack, Position};
use crate::checker::memory;
use crate::observation::{CallId, HostEvent};
use crate::observer::{Observer, Origin};
use crate::violation::{Violation, ViolationKind};
use apus_sim::host::{Host, SprayPorts, wire_bytes};
use apus_sim::message::{HostId, Message, Outcome};
use apus_sim::packet::Packet;
use apus_sim::processor::ProcessorHost;
use apus_workload::time::Nanos;

/// Payload bytes of a pass; it ends when they are reached. Source: the engine's quota
/// (`transport/apus/src/overload/quota.rs`).
const PASS_BYTES: usize = 1 << 17;

/// Maximum number of calls of `handle_timeout` at the same time; each should end at least one RPC.
const MAX_TIMEOUTS: u32 = 100_000;

/// An observed host, with or without a processor.
pub(super) trait SimulatedHost: Host<Body = Bytes> {
    /// Returns an end of this host.
    fn observed(&self, end: HostId) -> &ObservedHost;

    /// Returns the number of calls that have not reached a protocol of this host.
    fn waiting_calls(&self) -> usize {
        0
    }

    /// Runs `something` on an end of this host.
    fn attend(&mut self, end: HostId, something: impl FnOnce(&mut ObservedHost));

    /// Restarts an end: its protocol has no memory, and the packets in its socket are lost.
    fn restart(&mut self, _end: HostId, now: Nanos) {
        self.crash(now);
    }
}

impl SimulatedHost for ObservedHost {
    fn observed(&self, _: HostId) -> &ObservedHost {
        self
    }

    fn attend(&mut self, _: HostId, something: impl FnOnce(&mut ObservedHost)) {
        something(self);
    }
}

impl SimulatedHost for ProcessorHost<ObservedHost> {
    fn observed(&self, _: HostId) -> &ObservedHost {
        self.inner()
    }

    fn waiting_calls(&self) -> usize {
        self.waiting_calls()
    }

    fn attend(&mut self, _: HostId, something: impl FnOnce(&mut ObservedHost)) {
        self.attend(something);
    }
}

/// A simulated host with an observer.
pub(crate) struct ObservedHost {
    id: HostId,
    stack: Stack,
    /// The sealing of its packets, if they are sealed.
    sealing: Option<Sealing>,
    observer: Rc<RefCell<Observer>>,
    packets: PacketOverhead,
    /// Packets of a pass that the link has not accepted yet.
    datagrams: Datagrams,
    applications: Applications,
    incarnation: u64,
    /// Whether its endpoint has been shut down: arriving packets are not received.
    gone: bool,
    /// Bytes of its socket, if it reports them.
    receive_buffer: Option<u64>,
    /// Maximum number of bursts in a pass.
    bursts: u32,
    spray_ports: SprayPorts,
    /// Calls whose first packet in a session from this host has yet to be lost.
    lost: BTreeSet<CallId>,
    /// The attack of another host, if any.
    attack: Option<Attack>,
    /// Time of the last call of `handle_timeout`, and number of calls at that time.
    timeouts: (Nanos, u32),
    /// Its place among the ends of its host, if they publish their state.
    place: Option<Place>,
}

impl ObservedHost {
    pub(super) fn new(id: HostId, observer: Rc<RefCell<Observer>>, place: Option<Place>) -> Self {
        let (spray_ports, stack, limit, sharing, attack, lost) = {
            let scenario = &observer.borrow().directory.scenario;
            let lost = scenario.lost_at(id).collect();
            (
                SprayPorts::new(scenario.config.spray_ports()),
                Stack::boot(scenario, id, 0, 0),
                scenario.packet_limit,
                scenario.sharing.clone(),
                scenario.attack,
                lost,
            )
        };
        let mut host = Self {
            stack,
            sealing: Sealing::new(id, 0, &observer, 0),
            id,
            applications: Applications::new(id, observer.clone()),
            observer,
            packets: overhead(limit),
            datagrams: Datagrams::default(),
            incarnation: 0,
            gone: false,
            receive_buffer: None,
            bursts: sharing.as_ref().map_or(1, |sharing| sharing.bursts),
            spray_ports,
            lost,
            attack,
            timeouts: (0, 0),
            place,
        };
        if let Some(sharing) = sharing {
            host.set_receive_buffer(sharing.receive_buffer);
        }
        host
    }

    /// Returns the end that makes a planned call.
    pub(super) fn caller_of(&self, call: CallId) -> HostId {
        self.observer.borrow().directory.call(call).from
    }

    /// Returns the protocol on this host, to read its gauges.
    pub(super) const fn stack(&self) -> &Stack {
        &self.stack
    }

    fn observe(&self, now: Nanos, event: HostEvent<'_>) {
        self.observer.borrow_mut().observe(now, self.id, event);
    }

    /// Reads the published state of the host's other ends.
    fn read_neighbours(&mut self) {
        if let (Some(place), Stack::Apus(transport, _)) = (&self.place, &mut self.stack) {
            place.read(transport);
        }
    }

    /// Publishes the state of this end.
    fn publish(&mut self, now: Nanos) {
        if let (Some(place), Stack::Apus(transport, _)) = (&self.place, &mut self.stack) {
            place.write(now, transport);
        }
    }

    fn is_over(&self) -> bool {
        self.observer.borrow().is_over()
    }

    /// Handles all pending events of the transport.
    fn handle_events(&mut self, now: Nanos) {
        while let Some(told) = self.stack.poll() {
            if let StackEvent::NewPeer(peer) = told {
                let tag = if self.sealing.is_some() { TAG_LEN } else { 0 };
                let limit = self.packets.payload as usize + apus_wire::DATA_HEADER_LEN - tag;
                if let Stack::Apus(transport, _) = &mut self.stack {
                    transport.set_packet_limit(peer, limit);
                }
            } else {
                self.applications.hear(now, &mut self.stack, told);
            }
        }
    }

    /// Cancels all calls of the applications.
    pub(super) fn cancel_all(&mut self, now: Nanos) {
        self.applications.cancel_all(now, &self.stack);
        self.handle_timeout(now);
    }

    /// Shuts the endpoint down. Its last packets leave; the host is inactive afterwards.
    pub(super) fn depart(&mut self, now: Nanos) {
        self.stack.shut_down(now);
        self.handle_events(now);
        self.gone = true;
    }

    /// Closes the sockets of a module: arriving packets are not received, until it is restarted.
    pub(super) const fn close_sockets(&mut self) {
        self.gone = true;
    }

    /// Receives ICMP: the port of calls from `module` is closed.
    pub(super) fn learn_closed_port(&mut self, now: Nanos, module: HostId) {
        self.stack.report_closed_port(now, module);
        self.handle_events(now);
    }

    /// Fetches the bursts of a pass from the transport. Returns whether there were any.
    fn next_pass(&mut self, now: Nanos) -> bool {
        let mut payload = 0;
        let mut bursts = 0;
        while bursts < self.bursts && payload < PASS_BYTES {
            let burst = self.stack.burst(now);
            if burst.is_empty() {
                break;
            }
            bursts += 1;
            if let Some(sealing) = &mut self.sealing {
                sealing.seal(now, &burst);
            }
            for (place, packet) in burst.into_iter().enumerate() {
                let mut observer = self.observer.borrow_mut();
                let sent = observer.sent(now, self.id, packet.to, &packet.bytes, place);
                payload += packet.bytes.len() - packet.header_len;
                let is_lost = sent.is_some_and(|call| self.lost.remove(&call));
                if !is_lost && self.sealing.is_none() {
                    self.datagrams.push(packet);
                }
            }
        }
        if let Some(sealing) = &mut self.sealing {
            sealing.flush(now).for_each(|datagram| self.datagrams.push(datagram));
        }
        bursts > 0
    }

    /// Receives the packets that arrive as a result of a sealed datagram.
    fn receive_sealed(&mut self, now: Nanos, from: HostId, datagram: &Bytes, is_marked: bool) {
        let Some(sealing) = &self.sealing else { return };
        for (from, datagram) in sealing.arrivals(from, datagram) {
            let opened =
                self.sealing.as_mut().and_then(|sealing| sealing.open(now, from, datagram));
            self.take_sessions(now);
            if let Some(opened) = opened {
                self.receive_datagram(now, (from, Origin::Genuine), &opened, is_marked);
            }
        }
    }

    /// Passes sessions established by handshakes to the protocol, before it receives their first
    /// packet.
    fn take_sessions(&mut self, now: Nanos) {
        while let Some((peer, session)) = self.sealing.as_mut().and_then(Sealing::poll_session) {
            self.stack.establish_session(now, peer, session);
            self.handle_events(now);
        }
    }

    /// Receives the packets of a datagram.
    fn receive_datagram(
        &mut self,
        now: Nanos,
        (from, origin): (HostId, Origin),
        datagram: &Bytes,
        is_marked: bool,
    ) {
        let profile = self.observer.borrow().directory.scenario.config.profile();
        let mut place = 0;
        for part in datagrams::parts(profile, datagram) {
            place += self.observer.borrow_mut().received(now, self.id, from, part, place, origin);
            if let Some(objection) = self.stack.receive(now, from, part, is_marked) {
                self.observer.borrow_mut().module_objection(self.id, from, part, objection);
            }
            self.handle_events(now);
        }
    }

    /// Returns the address that a packet's sender states, whether that is true, and the packet.
    fn origin(&self, packet: &Packet, body: &Bytes) -> (HostId, Origin, Bytes) {
        match self.attack {
            Some(attack) if packet.from == attack.host => {
                let (claimed, body) = envelope::unwrap(body);
                // Packets seen on the link are sent again unchanged.
                let is_true = claimed >= attack.host || attack.position == Position::OnLink;
                (claimed, if is_true { Origin::Genuine } else { Origin::Forged }, body)
            }
            _ => (packet.from, Origin::Genuine, body.clone()),
        }
    }

    /// Checks the conditions that must hold after any packet.
    fn check_after_packet(&mut self, now: Nanos) {
        let Stack::Apus(transport, view) = &mut self.stack else { return };
        let mut asked_by = None;
        while let Some(probe) = transport.poll_probe() {
            if let ProbeKind::Received { kind: Kind::Freeze, .. } = probe.what {
                asked_by = Some(view.at(probe.peer));
            }
        }
        let mut observer = self.observer.borrow_mut();
        let expected = observer.expected.at(self.id);
        let (live, config) = (transport.live(), transport.config());
        observer.record(memory::check_limits(self.id, &live, config, expected));
        drop(observer);
        if let Some(peer) = asked_by {
            self.observe(now, HostEvent::Frozen(peer));
        }
    }

    /// Returns whether timers fire endlessly at the same time.
    fn is_stuck(&mut self, now: Nanos) -> bool {
        let (last, count) = &mut self.timeouts;
        *count = if *last == now { *count + 1 } else { 0 };
        *last = now;
        if *count > MAX_TIMEOUTS {
            self.observer.borrow_mut().record(Err(Violation {
                kind: ViolationKind::Liveness,
                calls: Vec::new(),
                expected: format!("host {} has no timer left at {now} ns", self.id),
                observed: format!(
                    "after {count} calls the next one is due: {:?}",
                    self.stack.next_timeout()
                ),
            }));
        }
        *count > MAX_TIMEOUTS
    }
}

/// Returns the sizes of packets of up to `limit` bytes.
pub(super) const fn overhead(limit: u32) -> PacketOverhead {
    PacketOverhead::ethernet(limit + 28, 20 + 8 + 56)
}

impl Host for ObservedHost {
    type Body = Bytes;

    fn submit(&mut self, now: Nanos, message: &Message) {
        if self.is_over() {
            return;
        }
        self.read_neighbours();
        self.applications.submit(now, &mut self.stack, message.number);
        self.handle_events(now);
        self.publish(now);
    }

    fn receive(&mut self, now: Nanos, packet: &Packet, body: &Bytes) {
        if self.is_over() || self.gone {
            return;
        }
        if self.sealing.is_some() {
            return self.receive_sealed(now, packet.from, body, packet.marked);
        }
        let (from, origin, body) = self.origin(packet, body);
        let is_hostile = self.attack.is_some_and(|attack| packet.from == attack.host);
        self.observer.borrow_mut().hostile_packets += u64::from(is_hostile);
        self.read_neighbours();
        self.receive_datagram(now, (from, origin), &body, packet.marked);
        self.publish(now);
        if self.attack.is_some() {
            self.check_after_packet(now);
        }
    }

    fn transmit(&mut self, now: Nanos, packet: &mut Packet, body: &mut Bytes) -> bool {
        if self.is_over() {
            return false;
        }
        self.read_neighbours();
        // A pass whose packets all went to peers without keys is empty.
        while self.datagrams.is_empty() && self.next_pass(now) {}
        self.publish(now);
        let Some(next) = self.datagrams.pop() else { return false };
        let payload = next.len - next.header_len;
        let peer = next.to;
        let to =
            self.attack.filter(|attack| peer >= attack.host).map_or(peer, |attack| attack.host);
        *packet = Packet {
            from: self.id,
            to,
            flow: 0,
            wire_bytes: wire_bytes(&self.packets, next.header_len, payload),
            payload: payload as u32,
            priority: next.priority,
            ecn_capable: next.may_be_marked,
            marked: false,
        };
        *body = next.into_bytes();
        packet.flow = self.spray_ports.choose(body).into();
        let mut observer = self.observer.borrow_mut();
        observer.datagrams += 1;
        if self.attack.is_some_and(|attack| to == attack.host) {
            *body = envelope::wrap(peer, body);
        } else {
            observer.taps.datagram(self.id, to, body);
        }
        true
    }

    fn next_timeout(&self) -> Option<Nanos> {
        if self.is_over() || self.gone {
            return None;
        }
        let sealing = self.sealing.as_ref().and_then(Sealing::next_timeout);
        [self.stack.next_timeout(), self.applications.next_timeout(), sealing]
            .into_iter()
            .flatten()
            .min()
    }

    fn set_receive_buffer(&mut self, bytes: u64) {
        if self.observer.borrow().directory.states_room(self.id) {
            self.receive_buffer = Some(bytes);
            self.stack.set_receive_buffer(bytes);
        }
    }

    fn handle_overflow(&mut self, at: Nanos) {
        self.stack.handle_overflow(at);
    }

    fn begin_reading(&mut self, at: Nanos) {
        self.stack.begin_reading(at);
    }

    fn finish_reading(&mut self, at: Nanos) {
        self.stack.finish_reading(at);
    }

    fn handle_timeout(&mut self, now: Nanos) {
        if self.is_over() || self.is_stuck(now) {
            return;
        }
        self.read_neighbours();
        self.applications.handle_timeout(now, &mut self.stack);
        if let Some(sealing) = &mut self.sealing {
            sealing.handle_timeout(now);
            self.take_sessions(now);
        }
        self.stack.handle_timeout(now);
        self.handle_events(now);
        self.publish(now);
    }

    fn poll_outcome(&mut self) -> Option<Outcome> {
        None
    }

    fn crash(&mut self, now: Nanos) {
        self.observe(now, HostEvent::Crashed);
        self.gone = false;
        self.incarnation += 1;
        self.stack =
            Stack::boot(&self.observer.borrow().directory.scenario, self.id, self.incarnation, now);
        self.sealing = Sealing::new(self.id, self.incarnation, &self.observer, now);
        if let Some(bytes) = self.receive_buffer {
            self.stack.set_receive_buffer(bytes);
        }
        self.datagrams.clear();
        self.applications.forget();
        self.publish(now);
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
