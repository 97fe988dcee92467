//! A host with several ends: shards of an endpoint, or processes.
//!
//! The ends share the link, which takes a datagram of each in turn. A packet travels in an
//! [`envelope`] that names both ends.

use std::ops::Add;

use bytes::Bytes;

use super::envelope;
use super::host::{ObservedHost, SimulatedHost};
use crate::ends::Ends;
use apus_sim::host::Host;
use apus_sim::message::{HostId, Message, Outcome};
use apus_sim::network::HostCounters;
use apus_sim::packet::Packet;
use apus_workload::time::Nanos;

/// A host whose ends are separate hosts to everything but the fabric.
pub(super) struct DividedHost<H> {
    id: HostId,
    ends: Ends,
    /// The ends, by place.
    parts: Vec<H>,
    /// The part whose turn it is to send.
    turn: usize,
}

impl<H: SimulatedHost> DividedHost<H> {
    /// Creates a host of these ends, by place.
    pub(super) const fn new(id: HostId, ends: Ends, parts: Vec<H>) -> Self {
        Self { id, ends, parts, turn: 0 }
    }

    fn part(&mut self, end: HostId) -> &mut H {
        &mut self.parts[self.ends.place_of(end) as usize]
    }
}

impl<H: SimulatedHost> SimulatedHost for DividedHost<H> {
    fn observed(&self, end: HostId) -> &ObservedHost {
        self.parts[self.ends.place_of(end) as usize].observed(end)
    }

    fn waiting_calls(&self) -> usize {
        self.parts.iter().map(H::waiting_calls).sum()
    }

    fn attend(&mut self, end: HostId, something: impl FnOnce(&mut ObservedHost)) {
        self.part(end).attend(end, something);
    }

    fn restart(&mut self, end: HostId, now: Nanos) {
        self.part(end).restart(end, now);
    }
}

impl<H: SimulatedHost> Host for DividedHost<H> {
    type Body = Bytes;

    fn submit(&mut self, now: Nanos, message: &Message) {
        let caller = self.parts[0].observed(self.id).caller_of(message.number);
        self.part(caller).submit(now, message);
    }

    fn receive(&mut self, now: Nanos, packet: &Packet, body: &Bytes) {
        let (from, body) = envelope::unwrap(body);
        let (to, body) = envelope::unwrap(&body);
        self.part(to).receive(now, &Packet { from, to, ..*packet }, &body);
    }

    fn transmit(&mut self, now: Nanos, packet: &mut Packet, body: &mut Bytes) -> bool {
        for _ in 0..self.parts.len() {
            let place = self.turn;
            let part = &mut self.parts[place];
            self.turn = (self.turn + 1) % self.ends.of_each_host() as usize;
            if part.transmit(now, packet, body) {
                *body = envelope::wrap(packet.from, &envelope::wrap(packet.to, body));
                (packet.from, packet.to) = (self.id, self.ends.host_of(packet.to));
                // Each end has its own port.
                let [_, port] = packet.flow.to_be_bytes();
                packet.flow = u16::from_be_bytes([place as u8, port]);
                return true;
            }
        }
        false
    }

    fn next_timeout(&self) -> Option<Nanos> {
        self.parts.iter().filter_map(Host::next_timeout).min()
    }

    fn set_receive_buffer(&mut self, bytes: u64) {
        self.parts.iter_mut().for_each(|part| part.set_receive_buffer(bytes));
    }

    fn handle_timeout(&mut self, now: Nanos) {
        for part in &mut self.parts {
            if part.next_timeout().is_some_and(|at| at <= now) {
                part.handle_timeout(now);
            }
        }
    }

    fn poll_outcome(&mut self) -> Option<Outcome> {
        None
    }

    fn counters(&self) -> HostCounters {
        self.parts.iter().map(Host::counters).fold(HostCounters::default(), Add::add)
    }

    fn crash(&mut self, now: Nanos) {
        self.parts.iter_mut().for_each(|part| part.crash(now));
    }

    fn corrupt(body: &mut Bytes, chance: u64) {
        let (from, rest) = envelope::unwrap(body);
        let (to, mut packet) = envelope::unwrap(&rest);
        H::corrupt(&mut packet, chance);
        *body = envelope::wrap(from, &envelope::wrap(to, &packet));
    }

    fn id(&self) -> HostId {
        self.id
    }
}
