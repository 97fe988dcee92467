//! Sealing on a simulated host: the shipped driver wrapper, around a driver for the simulated
//! network.
//!
//! Handshakes and cipher are the stubs of `apus_seal::stub`, which cost little and are the same in
//! each run.

use std::collections::VecDeque;
use std::io::{self, Stdin};
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use apus_driver::seal::{SealClock, SealHandle, Sealed};
use apus_driver::{Arrival, Burst, Capabilities, Driver, Ecn, NetworkReport};
use apus_driver::{ReceiveHalf, Session, TransmitHalf};
use apus_proto::Config;
use apus_seal::Limits;
use apus_seal::stub::{StubNegotiator, StubPolicy};
use apus_sim::message::HostId;
use apus_workload::time::Nanos;
use bytes::Bytes;

use super::stack::OutgoingPacket;
use crate::address::{address, host_at};

/// Bytes that sealing adds to a packet.
pub(super) use apus_seal::TAG_LEN;

/// Bits below the priority in the traffic class.
const PRIORITY_SHIFT: u8 = 2;

/// Packets that a stub key seals before it is replaced: few, so that runs replace keys.
const PACKETS_PER_KEY: u64 = 20_000;

/// The sealing of a host.
pub(super) struct SealedEnd {
    clock: Arc<AtomicU64>,
    handle: Arc<SealHandle>,
    transmit: Box<dyn TransmitHalf>,
    receive: Box<dyn ReceiveHalf>,
    wire: Wire,
}

impl SealedEnd {
    /// Returns the sealing of a host that starts now; `seed` determines its handshakes, whose
    /// packets leave at the level of control packets of `config`.
    pub(super) fn new(host: HostId, seed: u64, config: &Config, now: Nanos) -> Self {
        let clock = Arc::new(AtomicU64::new(now));
        let wire = Wire::default();
        let policy = StubPolicy { name: u64::from(host), trust: 1, limit: PACKETS_PER_KEY };
        let negotiator = Arc::new(StubNegotiator::new(policy, seed));
        let inner = Box::new(SimulatedDriver { local: address(host), wire: wire.clone() });
        let time = SealClock::Simulated(clock.clone());
        let sealed = Sealed::with_clock(inner, negotiator, Limits::default(), time)
            .with_traffic_class(config.highest_priority() << PRIORITY_SHIFT);
        let handle = sealed.handle();
        let (transmit, receive) = Box::new(sealed).split();
        Self { clock, handle, transmit, receive, wire }
    }

    fn set_time(&self, now: Nanos) {
        self.clock.store(now, Ordering::Relaxed);
    }

    /// Seals a burst. Returns whether there were keys for it: if not, it is dropped, and a
    /// handshake starts.
    pub(super) fn send(&mut self, now: Nanos, burst: &[OutgoingPacket]) -> bool {
        self.set_time(now);
        let Some(first) = burst.first() else { return true };
        let (header_len, segment) = (first.header_len, first.bytes.len() - first.header_len);
        let part = |packet: fn(&OutgoingPacket) -> &[u8]| {
            burst.iter().map(packet).collect::<Vec<_>>().concat()
        };
        let headers = part(|packet| &packet.bytes[..packet.header_len]);
        let payload = part(|packet| &packet.bytes[packet.header_len..]);
        let unsent = self.handle.counters().unsent.get();
        let sent = self.transmit.send(&Burst {
            to: address(first.to),
            from: None,
            traffic_class: first.priority << PRIORITY_SHIFT | u8::from(first.may_be_marked) << 1,
            headers: &headers,
            header_len,
            payload: &[&payload],
            segment,
            coalesce: first.coalesce,
        });
        sent.expect("the simulated network takes every packet");
        self.handle.counters().unsent.get() == unsent
    }

    /// Returns the outgoing datagrams, including those of handshakes.
    pub(super) fn flush(&mut self, now: Nanos) -> VecDeque<OutgoingPacket> {
        self.set_time(now);
        self.transmit.flush().expect("the simulated network takes every packet");
        std::mem::take(&mut self.wire.lock().sent)
    }

    /// Returns the contents of a datagram, if it can be opened.
    pub(super) fn open(&mut self, now: Nanos, from: HostId, datagram: Bytes) -> Option<Bytes> {
        self.set_time(now);
        self.wire.lock().arrived = Some((address(from), datagram));
        self.receive.receive(1).expect("the simulated network does not fail");
        let mut opened = None;
        self.receive.drain(&mut |arrival| opened = Some(Bytes::copy_from_slice(arrival.packet)));
        // All simulated peers are trusted.
        self.receive.reports(&mut |_| {});
        opened
    }

    /// Returns a session that has not been passed to the protocol yet.
    pub(super) fn poll_session(&mut self) -> Option<(HostId, Session)> {
        self.transmit.poll_session().map(|session| (host_at(session.peer), session))
    }

    pub(super) fn next_timeout(&self) -> Option<Nanos> {
        self.handle.next_due().map(|due| due.as_nanos() as Nanos)
    }

    pub(super) fn handle_timeout(&mut self, now: Nanos) {
        self.set_time(now);
        if self.next_timeout().is_some_and(|due| due <= now) {
            self.transmit.handle_timeout();
        }
    }
}

/// Datagrams between the wrapper and the simulated network.
#[derive(Clone, Default)]
struct Wire(Arc<Mutex<Datagrams>>);

#[derive(Default)]
struct Datagrams {
    sent: VecDeque<OutgoingPacket>,
    arrived: Option<(SocketAddr, Bytes)>,
}

impl Wire {
    fn lock(&self) -> MutexGuard<'_, Datagrams> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The wrapped driver.
struct SimulatedDriver {
    local: SocketAddr,
    wire: Wire,
}

impl Driver for SimulatedDriver {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            segments_per_send: 64,
            receive_offload: false,
            priorities: true,
            ecn: false,
            reports: false,
            busy_poll_usecs: 0,
            receive_buffer: 0,
            link_mbps: None,
            spray_ports: 0,
        }
    }

    fn local_addr(&self) -> SocketAddr {
        self.local
    }

    fn split(self: Box<Self>) -> (Box<dyn TransmitHalf>, Box<dyn ReceiveHalf>) {
        let receive = SimulatedReceive { wire: self.wire.clone(), descriptor: io::stdin() };
        (Box::new(SimulatedTransmit { wire: self.wire }), Box::new(receive))
    }
}

struct SimulatedTransmit {
    wire: Wire,
}

impl TransmitHalf for SimulatedTransmit {
    fn send(&mut self, burst: &Burst<'_>) -> io::Result<()> {
        let packets = burst.each().map(|packet| OutgoingPacket {
            to: host_at(burst.to),
            priority: burst.traffic_class >> PRIORITY_SHIFT,
            may_be_marked: burst.traffic_class & 0b11 != 0,
            bytes: packet.to_vec().into(),
            header_len: packet.header.len(),
            coalesce: 0,
        });
        self.wire.lock().sent.extend(packets);
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn has_room(&self) -> bool {
        true
    }

    fn has_pending(&self) -> bool {
        false
    }

    fn packet_limit(&mut self, _to: SocketAddr) -> usize {
        usize::MAX
    }
}

struct SimulatedReceive {
    wire: Wire,
    /// An arbitrary descriptor: no thread waits for it, since time is simulated.
    descriptor: Stdin,
}

impl ReceiveHalf for SimulatedReceive {
    fn receive(&mut self, _limit: usize) -> io::Result<usize> {
        Ok(usize::from(self.wire.lock().arrived.is_some()))
    }

    fn may_have_more(&self) -> bool {
        false
    }

    fn drain(&mut self, sink: &mut dyn FnMut(Arrival<'_>)) {
        let arrived = self.wire.lock().arrived.take();
        if let Some((from, packet)) = arrived {
            sink(Arrival { from, to: None, ecn: Ecn::NotCapable, packet: &packet });
        }
    }

    fn reports(&mut self, _sink: &mut dyn FnMut(NetworkReport<'_>)) {}
}

impl AsFd for SimulatedReceive {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}
