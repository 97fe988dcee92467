//! Hostile host: sends the packets of an attacker at the rate of the attack.

use apus_sim::host::{Host, wire_bytes};
use apus_sim::message::{HostId, Message, Outcome};
use apus_sim::packet::Packet;
use apus_workload::PacketOverhead;
use apus_workload::time::{MICROSECOND, Nanos, Rate};
use bytes::Bytes;

use super::envelope;
use super::host::{ObservedHost, SimulatedHost};
use crate::address::station;
use crate::attack::Attack;
use crate::attacker::Attacker;
use crate::generator::random::SeededRng;

/// Time until an attacker without packets to send is polled again.
const IDLE: Nanos = 20 * MICROSECOND;

/// The purpose of an attacker's random numbers.
const STREAM: u64 = 101;

/// A host that runs an [`Attacker`].
pub(super) struct HostileHost {
    attack: Attack,
    attacker: Box<dyn Attacker>,
    rng: SeededRng,
    rate: Rate,
    packets: PacketOverhead,
    /// Time of the next burst.
    next: Nanos,
    /// Packets of this burst that have not left, and the bytes of the packets that have left.
    left: u32,
    sent: u64,
}

impl HostileHost {
    pub(super) fn new(
        attack: Attack,
        attacker: Box<dyn Attacker>,
        rate: Rate,
        packets: PacketOverhead,
        seed: u64,
    ) -> Self {
        let rng = SeededRng::new(seed, STREAM);
        Self { attack, attacker, rng, rate, packets, next: attack.from, left: 0, sent: 0 }
    }

    /// Ends a burst: the next burst follows when the attack's share of the link permits it.
    fn end_burst(&mut self, now: Nanos) {
        let pause = self.rate.time(self.sent) * 1_000 / u64::from(self.attack.per_mille);
        self.next = now + pause.max(IDLE);
        (self.left, self.sent) = (0, 0);
    }
}

impl Host for HostileHost {
    type Body = Bytes;

    /// The hostile host has no application.
    fn submit(&mut self, _now: Nanos, _message: &Message) {}

    fn receive(&mut self, _now: Nanos, packet: &Packet, body: &Bytes) {
        let (to, datagram) = envelope::unwrap(body);
        // It represents all addresses that no host has; packets to other hosts' addresses are not
        // shown to it.
        if station(to) == self.attack.host {
            self.attacker.receive(packet.from, to, &datagram);
        }
    }

    fn transmit(&mut self, now: Nanos, packet: &mut Packet, body: &mut Bytes) -> bool {
        if self.left == 0 || now >= self.attack.until {
            return false;
        }
        let Some(hostile) = self.attacker.next_packet(&mut self.rng) else {
            self.end_burst(now);
            return false;
        };
        let wire_bytes = wire_bytes(&self.packets, hostile.bytes.len(), 0);
        *packet = Packet {
            from: self.attack.host,
            to: hostile.to,
            flow: 0,
            wire_bytes,
            payload: 0,
            priority: self.rng.within(0..8),
            // It may state anything about its own packets, marks included.
            ecn_capable: true,
            marked: self.rng.within(0..4) == 0,
        };
        *body = envelope::wrap(hostile.claimed, &hostile.bytes);
        self.sent += u64::from(wire_bytes);
        self.left -= 1;
        if self.left == 0 {
            self.end_burst(now);
        }
        true
    }

    fn next_timeout(&self) -> Option<Nanos> {
        let waits = self.left == 0 && self.next < self.attack.until && !self.attack.is_silent;
        waits.then_some(self.next)
    }

    fn handle_timeout(&mut self, now: Nanos) {
        if self.left == 0 && now >= self.next {
            self.left = self.attack.burst;
        }
    }

    fn poll_outcome(&mut self) -> Option<Outcome> {
        None
    }

    fn id(&self) -> HostId {
        self.attack.host
    }
}

/// A host of a fabric with a hostile one.
pub(super) enum Resident<H> {
    Honest(H),
    Hostile(Box<HostileHost>),
}

impl<H: SimulatedHost> SimulatedHost for Resident<H> {
    fn observed(&self, end: HostId) -> &ObservedHost {
        match self {
            Self::Honest(host) => host.observed(end),
            Self::Hostile(_) => unreachable!("nothing is promised to the hostile host"),
        }
    }

    fn attend(&mut self, end: HostId, something: impl FnOnce(&mut ObservedHost)) {
        if let Self::Honest(host) = self {
            host.attend(end, something);
        }
    }
}

/// Passes a call to the host of either kind.
macro_rules! either {
    ($self:expr, $host:ident => $call:expr) => {
        match $self {
            Resident::Honest($host) => $call,
            Resident::Hostile($host) => $call,
        }
    };
}

impl<H: Host<Body = Bytes>> Host for Resident<H> {
    type Body = Bytes;

    fn submit(&mut self, now: Nanos, message: &Message) {
        either!(self, host => host.submit(now, message));
    }

    fn receive(&mut self, now: Nanos, packet: &Packet, body: &Bytes) {
        either!(self, host => host.receive(now, packet, body));
    }

    fn transmit(&mut self, now: Nanos, packet: &mut Packet, body: &mut Bytes) -> bool {
        either!(self, host => host.transmit(now, packet, body))
    }

    fn next_timeout(&self) -> Option<Nanos> {
        either!(self, host => host.next_timeout())
    }

    fn set_receive_buffer(&mut self, bytes: u64) {
        either!(self, host => host.set_receive_buffer(bytes));
    }

    fn handle_overflow(&mut self, at: Nanos) {
        either!(self, host => host.handle_overflow(at));
    }

    fn begin_reading(&mut self, at: Nanos) {
        either!(self, host => host.begin_reading(at));
    }

    fn finish_reading(&mut self, at: Nanos) {
        either!(self, host => host.finish_reading(at));
    }

    fn handle_timeout(&mut self, now: Nanos) {
        either!(self, host => host.handle_timeout(now));
    }

    fn poll_outcome(&mut self) -> Option<Outcome> {
        either!(self, host => host.poll_outcome())
    }

    fn crash(&mut self, now: Nanos) {
        either!(self, host => host.crash(now));
    }

    fn corrupt(body: &mut Bytes, chance: u64) {
        H::corrupt(body, chance);
    }

    fn id(&self) -> HostId {
        either!(self, host => host.id())
    }
}
