//! A simulated host that runs the shipped protocol.
//!
//! [`Transport`] runs unchanged: it gets commands, packets and the time, and returns packets and
//! events. The host takes the place of the engine and the driver: it polls for packets when its
//! link is free, sets the packet limit, and passes messages to the application. This file and the
//! engine's loop are the only places where the protocol meets its packet carrier.
//!
//! Payload is neither carried nor kept, except for the [`Label`] at the start of each message. All
//! other bytes are zeros that all messages share, and the transport keeps only the label of an
//! incoming message.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;

use apus_proto::{
    Call, CommandError, Config, Datagram, Event, Instant, Payload, RpcKey, Transmit, Transport,
};
use apus_wire::DATA_HEADER_LEN;
use apus_workload::PacketOverhead;
use bytes::Bytes;

use super::address::{PORT, address, host_at};
use super::frame::{Frame, LABEL, Label};
use super::interface::Host;
use super::spray::SprayPorts;
use crate::message::{HostId, Message, Outcome};
use crate::network::HostCounters;
use crate::packet::Packet;
use apus_workload::time::{Nanos, Rate};

/// Response of a host's application to a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The shortest possible response, which confirms the arrival: the closest equivalent of a
    /// one-way message in a request-response protocol.
    Nothing,
    /// A response as long as the message.
    Echo,
    /// A response of this number of bytes.
    Bytes(u32),
}

impl Answer {
    /// Returns the bytes of the response to a message of `message` bytes.
    #[must_use]
    pub const fn bytes(self, message: u32) -> u32 {
        match self {
            Self::Nothing => 1,
            Self::Echo => message,
            Self::Bytes(bytes) => bytes,
        }
    }

    /// Returns whether a message ends with its response, and not with its arrival.
    #[must_use]
    pub const fn is_awaited(self) -> bool {
        !matches!(self, Self::Nothing)
    }
}

/// State shared by all hosts of a fabric or of a region. All of them refer to one copy: a copy per
/// host would not stay in the cache.
#[derive(Clone, Debug)]
pub struct Shared {
    pub(super) state: Arc<State>,
}

/// The state itself.
#[derive(Debug)]
pub(super) struct State {
    config: Config,
    pub(super) answer: Answer,
    rate: Rate,
    pub(super) packets: PacketOverhead,
    /// Zeros for the longest message. Never written and rarely read, so that they occupy no memory.
    pub(super) zeros: Bytes,
}

impl Shared {
    /// Returns the state for hosts with this configuration, this link rate, and messages of at most
    /// `longest` bytes.
    #[must_use]
    pub fn new(
        config: Config,
        answer: Answer,
        rate: Rate,
        packets: PacketOverhead,
        longest: u32,
    ) -> Self {
        let state =
            State { config, answer, rate, packets, zeros: Bytes::from(vec![0; longest as usize]) };
        Self { state: Arc::new(state) }
    }

    /// Returns the payload of the message with this label.
    fn payload(&self, label: Label) -> Payload {
        let beginning = Bytes::copy_from_slice(&label.write());
        Payload::from_iter([beginning, self.state.zeros.slice(..label.bytes as usize - LABEL)])
    }
}

/// A host whose transport is apus.
#[derive(Debug)]
pub struct ApusHost {
    id: HostId,
    /// Its number among the processes of the host.
    process: u8,
    shared: Shared,
    transport: Transport,
    /// Packets of a burst that the link has not transmitted.
    burst: VecDeque<(Packet, Frame)>,
    /// Messages that the transport has no room for.
    refused: VecDeque<Message>,
    outcomes: VecDeque<Outcome>,
    spray_ports: SprayPorts,
}

impl ApusHost {
    /// Returns a host without any history. `seed` determines its transport's identity.
    #[must_use]
    pub fn new(id: HostId, shared: Shared, seed: u64) -> Self {
        Self::process(id, shared, seed, 0)
    }

    /// Returns a process of a host, without any history.
    pub(super) fn process(id: HostId, shared: Shared, seed: u64, process: u8) -> Self {
        let port = PORT + u16::from(process);
        let mut transport = Transport::new(shared.state.config.clone(), port, seed.into());
        let spray_ports = SprayPorts::new(transport.config().spray_ports());
        transport.set_payload_prefix(LABEL);
        transport.set_link_rate(u32::try_from(shared.state.rate.mbps()).unwrap_or(u32::MAX));
        Self {
            id,
            process,
            shared,
            transport,
            burst: VecDeque::new(),
            refused: VecDeque::new(),
            outcomes: VecDeque::new(),
            spray_ports,
        }
    }

    /// Returns the transport, for its counters.
    #[must_use]
    pub const fn transport(&self) -> &Transport {
        &self.transport
    }

    /// Returns the transport, to exchange state with neighbours.
    pub(super) const fn transport_mut(&mut self) -> &mut Transport {
        &mut self.transport
    }

    /// Returns the address of this process on another host.
    fn address(&self, host: HostId) -> SocketAddr {
        let mut address = address(host);
        address.set_port(PORT + u16::from(self.process));
        address
    }

    /// Passes a message to the transport; `false` if the transport has no room.
    fn call(&mut self, now: Instant, message: &Message) -> bool {
        let call = Call {
            to: self.address(message.to),
            payload: self.shared.payload(Label { number: message.number, bytes: message.bytes }),
            cookie: u64::from(message.number),
            deadline: None,
            idempotent: false,
        };
        match self.transport.call(now, call) {
            Ok(_) => true,
            Err(rejected) if rejected.reason.is_back_pressure() => false,
            Err(rejected) => {
                self.failed(message.number, &rejected.reason);
                true
            }
        }
    }

    fn failed(&mut self, number: u32, _error: &CommandError) {
        self.outcomes.push_back(Outcome::Failed(number));
    }

    /// Handles the transport's events.
    fn take_events(&mut self, now: Instant) {
        while let Some(event) = self.transport.poll_event() {
            match event {
                Event::Request { rpc, payload, .. } => self.serve(now, rpc, &payload),
                Event::Response { cookie, payload, .. } => {
                    self.transport.payload_consumed(payload.len());
                    self.outcomes.push_back(Outcome::Done(cookie as u32));
                }
                Event::Failed { cookie, .. } => {
                    self.outcomes.push_back(Outcome::Failed(cookie as u32));
                }
                Event::NewPeer(peer) => {
                    let longest = DATA_HEADER_LEN + self.shared.state.packets.payload as usize;
                    self.transport.set_packet_limit(peer, longest);
                }
                Event::Room => self.retry(now),
                _ => {}
            }
        }
    }

    /// Answers a request on behalf of the application.
    fn serve(&mut self, now: Instant, rpc: RpcKey, payload: &Bytes) {
        self.transport.payload_consumed(payload.len());
        let Some(label) = Label::read(payload) else { return };
        self.outcomes.push_back(Outcome::Delivered(label.number));
        let payload = match self.shared.state.answer {
            Answer::Nothing => self.shared.state.zeros.slice(..1).into(),
            Answer::Echo => self.shared.payload(label),
            Answer::Bytes(bytes) => self.shared.state.zeros.slice(..bytes as usize).into(),
        };
        // Responses have as much separate room as requests: the response to an accepted request is
        // refused only if its client has ended the call.
        let _ = self.transport.reply(now, rpc, payload);
    }

    /// Resubmits refused messages after room has become free.
    fn retry(&mut self, now: Instant) {
        while let Some(message) = self.refused.pop_front() {
            if !self.call(now, &message) {
                self.refused.push_front(message);
                return;
            }
        }
    }
}

impl Host for ApusHost {
    type Body = Frame;

    fn submit(&mut self, now: Nanos, message: &Message) {
        let at = Instant::from_nanos(now);
        if !self.refused.is_empty() || !self.call(at, message) {
            self.refused.push_back(*message);
        }
        self.take_events(at);
    }

    fn receive(&mut self, now: Nanos, packet: &Packet, frame: &Frame) {
        let now = Instant::from_nanos(now);
        let from = self.address(packet.from);
        frame.with_datagram(packet.payload, |datagram| {
            let datagram = Datagram { from, bytes: datagram, is_marked: packet.marked };
            self.transport.handle_datagram(now, datagram);
        });
        self.take_events(now);
    }

    fn transmit(&mut self, now: Nanos, packet: &mut Packet, frame: &mut Frame) -> bool {
        if let Some(next) = self.burst.pop_front() {
            (*packet, *frame) = next;
            return true;
        }
        let Some(transmit) = self.transport.poll_transmit(Instant::from_nanos(now)) else {
            return false;
        };
        let header_len = transmit.header_len();
        let port = self.spray_ports.choose(transmit.headers());
        let write = Writer {
            from: self.id,
            process: self.process,
            port,
            packets: &self.shared.state.packets,
            transmit: &transmit,
        };
        let (header, others) = transmit.headers().split_at(header_len);
        let segment = transmit.segment();
        let mut left = transmit.payload_len();
        write.packet(header, left.min(segment), packet, frame);
        // Only the first packet of a message has a label.
        frame.beginning = match transmit.payload().next().and_then(<[u8]>::first_chunk) {
            Some(beginning) => *beginning,
            None => [0; LABEL],
        };
        for header in others.chunks(header_len) {
            left -= segment;
            let (mut packet, mut frame) = Default::default();
            write.packet(header, left.min(segment), &mut packet, &mut frame);
            self.burst.push_back((packet, frame));
        }
        true
    }

    fn next_timeout(&self) -> Option<Nanos> {
        self.transport.next_timeout().map(|(at, _)| at.as_nanos())
    }

    fn set_receive_buffer(&mut self, bytes: u64) {
        self.transport.set_receive_buffer(bytes as usize);
    }

    fn handle_overflow(&mut self, at: Nanos) {
        self.transport.handle_overflow(Instant::from_nanos(at));
    }

    fn begin_reading(&mut self, at: Nanos) {
        self.transport.begin_reading(Instant::from_nanos(at));
    }

    fn finish_reading(&mut self, at: Nanos) {
        self.transport.finish_reading(Instant::from_nanos(at));
    }

    fn handle_timeout(&mut self, now: Nanos) {
        let now = Instant::from_nanos(now);
        self.transport.handle_timeout(now);
        self.take_events(now);
    }

    fn poll_outcome(&mut self) -> Option<Outcome> {
        self.outcomes.pop_front()
    }

    fn withholds(&self) -> bool {
        self.transport.live().grantable > 0
    }

    fn counters(&self) -> HostCounters {
        let metrics = self.transport.metrics();
        HostCounters {
            data_bytes: metrics.priority_bytes.iter().sum(),
            resent_packets: metrics.recovery.resent_packets,
            resent_bytes: metrics.recovery.resent_bytes,
            ..HostCounters::default()
        }
    }

    fn id(&self) -> HostId {
        self.id
    }
}

/// Writes the packets of a burst.
struct Writer<'a> {
    from: HostId,
    process: u8,
    /// Their source port; 0 is the port of the process.
    port: u8,
    packets: &'a PacketOverhead,
    transmit: &'a Transmit<'a>,
}

impl Writer<'_> {
    /// Writes the packet with this header and `payload` bytes of payload.
    #[inline]
    fn packet(&self, header: &[u8], payload: usize, packet: &mut Packet, frame: &mut Frame) {
        *packet = Packet {
            from: self.from,
            to: host_at(self.transmit.to()),
            flow: u16::from_be_bytes([self.process, self.port]),
            wire_bytes: wire_bytes(self.packets, header.len(), payload),
            payload: payload as u32,
            priority: self.transmit.priority(),
            ecn_capable: self.transmit.traffic_class() & 0b11 != 0,
            marked: false,
        };
        frame.header_len = header.len() as u8;
        frame.process = self.process;
        match header.first_chunk::<DATA_HEADER_LEN>() {
            // The usual case: copying a constant length needs no call.
            Some(data) if header.len() == DATA_HEADER_LEN => {
                frame.header[..DATA_HEADER_LEN].copy_from_slice(data);
            }
            _ => frame.header[..header.len()].copy_from_slice(header),
        }
    }
}

/// Returns the bytes on a link of a packet with a header of `header` bytes and `payload` bytes of
/// payload.
pub fn wire_bytes(packets: &PacketOverhead, header: usize, payload: usize) -> u32 {
    // `overhead` includes a DATA packet's header.
    let others = packets.overhead as usize - DATA_HEADER_LEN;
    ((others + header + payload) as u32).max(packets.minimum)
}
