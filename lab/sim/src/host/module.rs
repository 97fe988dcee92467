//! A simulated host that runs the model of the Linux module.
//!
//! The model ([`Module`]) runs among hosts that run apus in the kernel profile; [`MixedHost`] is
//! either. Every second host runs the module, so that half of all exchanges are between the two, a
//! quarter between two modules, and a quarter between two hosts with apus.

use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};

use bytes::Bytes;

use super::address::{PORT, address, host_at};
use super::apus::{Answer, ApusHost, Shared, wire_bytes};
use super::frame::{Frame, LABEL, Label};
use super::interface::Host;
use crate::kernel::{Module, ModuleEvent, ModuleRpcKey};
use crate::message::{HostId, Message, Outcome};
use crate::network::HostCounters;
use crate::packet::Packet;
use apus_workload::time::Nanos;

/// A host of a fabric where some hosts run the module.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "there is one of them for each host")]
pub enum MixedHost {
    /// apus.
    Apus(ApusHost),
    /// The model of the Linux module.
    Module(ModuleHost),
}

impl MixedHost {
    /// Returns the module if `id` is odd, apus otherwise. `seed` determines the identity of the
    /// latter.
    #[must_use]
    pub fn new(id: HostId, shared: Shared, seed: u64) -> Self {
        if id.is_multiple_of(2) {
            Self::Apus(ApusHost::new(id, shared, seed))
        } else {
            Self::Module(ModuleHost::new(id, shared))
        }
    }
}

/// Calls the same method of either variant.
macro_rules! either {
    ($self:ident, $host:ident => $call:expr) => {
        match $self {
            Self::Apus($host) => $call,
            Self::Module($host) => $call,
        }
    };
}

impl Host for MixedHost {
    type Body = Frame;

    fn submit(&mut self, now: Nanos, message: &Message) {
        either!(self, host => host.submit(now, message));
    }

    fn receive(&mut self, now: Nanos, packet: &Packet, frame: &Frame) {
        either!(self, host => host.receive(now, packet, frame));
    }

    fn transmit(&mut self, now: Nanos, packet: &mut Packet, frame: &mut Frame) -> bool {
        either!(self, host => host.transmit(now, packet, frame))
    }

    fn next_timeout(&self) -> Option<Nanos> {
        either!(self, host => host.next_timeout())
    }

    fn handle_timeout(&mut self, now: Nanos) {
        either!(self, host => host.handle_timeout(now));
    }

    fn poll_outcome(&mut self) -> Option<Outcome> {
        either!(self, host => host.poll_outcome())
    }

    fn withholds(&self) -> bool {
        either!(self, host => host.withholds())
    }

    fn counters(&self) -> HostCounters {
        either!(self, host => host.counters())
    }

    fn id(&self) -> HostId {
        either!(self, host => host.id())
    }
}

/// A host that runs the model of the Linux module. Its applications behave like the applications of
/// [`ApusHost`].
#[derive(Debug)]
pub struct ModuleHost {
    id: HostId,
    shared: Shared,
    module: Module,
    outcomes: VecDeque<Outcome>,
}

/// Returns the IP address of a host.
fn ip(host: HostId) -> IpAddr {
    address(host).ip()
}

impl ModuleHost {
    /// Returns a host without any history.
    #[must_use]
    pub fn new(id: HostId, shared: Shared) -> Self {
        // Golden ratio: the ticks of few hosts are far apart, the ticks of many hosts spread
        // evenly.
        let phase = Nanos::from(id) * 618_034;
        let module = Module::new(PORT, shared.state.packets.payload, 2).ticking_at(phase);
        Self { id, shared, module, outcomes: VecDeque::new() }
    }

    /// Returns the payload of the message with this label. The model needs contiguous bytes.
    fn payload(label: Label) -> Bytes {
        let mut bytes = vec![0; label.bytes as usize];
        bytes[..LABEL].copy_from_slice(&label.write());
        bytes.into()
    }

    /// Handles the module's events.
    fn take_events(&mut self, now: Nanos) {
        while let Some(event) = self.module.poll_event() {
            match event {
                ModuleEvent::Request { rpc, payload } => self.serve(now, rpc, &payload),
                ModuleEvent::Response { cookie, .. } => {
                    self.outcomes.push_back(Outcome::Done(cookie as u32));
                }
                ModuleEvent::Failed { cookie, .. } => {
                    self.outcomes.push_back(Outcome::Failed(cookie as u32));
                }
            }
        }
    }

    /// Answers a request on behalf of the application.
    fn serve(&mut self, now: Nanos, rpc: ModuleRpcKey, payload: &Bytes) {
        let Some(label) = Label::read(payload) else { return };
        self.outcomes.push_back(Outcome::Delivered(label.number));
        let payload = match self.shared.state.answer {
            Answer::Nothing => self.shared.state.zeros.slice(..1),
            Answer::Echo => Self::payload(label),
            Answer::Bytes(bytes) => self.shared.state.zeros.slice(..bytes as usize),
        };
        self.module.reply(now, rpc, payload);
    }
}

impl Host for ModuleHost {
    type Body = Frame;

    fn submit(&mut self, now: Nanos, message: &Message) {
        let payload = Self::payload(Label { number: message.number, bytes: message.bytes });
        let to = (ip(message.to), PORT);
        self.module.call(now, to, payload, u64::from(message.number), None);
        self.take_events(now);
    }

    fn receive(&mut self, now: Nanos, packet: &Packet, frame: &Frame) {
        frame.with_datagram(packet.payload, |datagram| {
            // Objections are irrelevant here: the module drops packets silently.
            let _ = self.module.handle_packet(now, ip(packet.from), datagram);
        });
        self.take_events(now);
    }

    fn transmit(&mut self, now: Nanos, packet: &mut Packet, frame: &mut Frame) -> bool {
        let Some(leaving) = self.module.transmit(now) else { return false };
        let (header, payload) = leaving.bytes.split_at(leaving.header_len);
        *packet = Packet {
            from: self.id,
            to: host_at(SocketAddr::new(leaving.to, PORT)),
            flow: 0,
            wire_bytes: wire_bytes(&self.shared.state.packets, header.len(), payload.len()),
            payload: payload.len() as u32,
            priority: leaving.priority,
            ecn_capable: false,
            marked: false,
        };
        frame.header_len = header.len() as u8;
        frame.header[..header.len()].copy_from_slice(header);
        let beginning = payload.len().min(LABEL);
        frame.beginning = [0; LABEL];
        frame.beginning[..beginning].copy_from_slice(&payload[..beginning]);
        true
    }

    fn next_timeout(&self) -> Option<Nanos> {
        self.module.next_timeout()
    }

    fn handle_timeout(&mut self, now: Nanos) {
        self.module.handle_timeout(now);
        self.take_events(now);
    }

    fn poll_outcome(&mut self) -> Option<Outcome> {
        self.outcomes.pop_front()
    }

    fn id(&self) -> HostId {
        self.id
    }
}
