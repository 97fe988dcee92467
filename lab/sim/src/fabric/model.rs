//! State of a fabric, and the handling of its events.

use std::sync::Arc;

use rand::SeedableRng;
use rand_pcg::Pcg64Mcg;

use super::counts::FabricCounts;
use super::division::{Division, Place};
use super::event::FabricEvent;
use super::event_queue::EventQueue;
use super::mail::{Letter, Outbox};
use super::packets::{PacketIndex, Packets};
use super::port::{Port, PortIndex};
use super::route::{Hop, PortId, Routes};
use super::settings::{Buffers, Settings};
use crate::fault::FaultInjector;
use crate::host::Host;
use crate::message::{HostId, Message, Outcome};
use crate::network::{Counters, HostCounters, Network};
use crate::packet::Packet;
use crate::topology::Topology;
use apus_workload::time::Nanos;

/// A host and its link into the fabric.
#[derive(Debug)]
pub(super) struct Station<H> {
    pub(super) host: H,
    /// Time until which its link is busy.
    pub(super) busy_until: Nanos,
    /// Time of its timer event; [`Nanos::MAX`] without one.
    pub(super) timer: Nanos,
}

/// Hosts, switches and links.
#[derive(Debug)]
pub struct Fabric<H: Host> {
    pub(super) topology: Topology,
    pub(super) events: EventQueue<FabricEvent>,
    pub(super) packets: Packets<H::Body>,
    pub(super) stations: Vec<Station<H>>,
    pub(super) ports: Vec<Port>,
    /// Free bytes of each buffer pool.
    pub(super) pools: Vec<u64>,
    pub(super) routes: Routes,
    /// Delay from a host's decision to send to the packet's arrival at the TOR's queue, except for
    /// its time on the link.
    pub(super) delay_to_tor: Nanos,
    pub(super) counts: FabricCounts,
    /// Division of the fabric that this region belongs to. An undivided fabric is the only region.
    division: Arc<Division>,
    region: u32,
    /// Its first host.
    first_host: HostId,
    /// Packets to other regions.
    pub(super) outbox: Outbox<H::Body>,
    /// Faults, if configured.
    pub(super) faults: Option<Box<FaultInjector>>,
}

impl<H: Host> Fabric<H> {
    /// Returns a fabric at time 0, with hosts created by `host`.
    pub fn new(settings: &Settings, host: impl FnMut(HostId) -> H) -> Self {
        let routes = Self::routes(settings);
        let division = Arc::new(Division::new(&routes, 1));
        Self::region(settings, &routes, &division, 0, host)
    }

    /// Returns the routes of a fabric with these settings.
    pub(super) fn routes(settings: &Settings) -> Routes {
        let rng = Pcg64Mcg::seed_from_u64(settings.seed);
        Routes::new(settings.topology.shape, settings.spreading, rng)
    }

    /// Returns a region of a fabric at time 0, with hosts created by `host`.
    pub(super) fn region(
        settings: &Settings,
        routes: &Routes,
        division: &Arc<Division>,
        region: u32,
        mut host: impl FnMut(HostId) -> H,
    ) -> Self {
        let topology = settings.topology;
        // Multiples of an odd number differ between regions; the first region uses the seed itself.
        let seed = settings.seed ^ u64::from(region).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let hosts = division.hosts(region);
        let first_host = hosts.start;
        let stations =
            hosts.map(|id| Station { host: host(id), busy_until: 0, timer: Nanos::MAX }).collect();
        let shared = matches!(settings.buffers, Buffers::Shared(_));
        let port = |(index, &id): (u32, &PortId)| {
            let pool = if shared { routes.port(id).1 } else { index };
            Port::new(settings, routes, id, pool)
        };
        let ports: Vec<Port> = (0..).zip(division.ports(region)).map(port).collect();
        let switches = topology.shape.racks + topology.shape.spines;
        let pools = match settings.buffers {
            Buffers::PerPort(bytes) => vec![bytes; ports.len()],
            Buffers::PerPortTime(time) => ports.iter().map(|port| port.rate.bytes(time)).collect(),
            Buffers::Shared(bytes) => vec![bytes; switches as usize],
        };
        let mut events = EventQueue::new();
        events.schedule(settings.sample_every, FabricEvent::Sample);
        let delays = topology.delays;
        Self {
            topology,
            events,
            packets: Packets::new(),
            stations,
            ports,
            pools,
            routes: routes.with_rng(Pcg64Mcg::seed_from_u64(seed)),
            delay_to_tor: delays.host_out + delays.propagation + delays.switch,
            counts: FabricCounts::new(0, settings.sample_every, HostCounters::default()),
            division: Arc::clone(division),
            region,
            first_host,
            outbox: Outbox::new(division.regions()),
            faults: None,
        }
    }

    /// Returns the topology.
    pub const fn topology(&self) -> &Topology {
        &self.topology
    }

    /// Returns the time of the clock.
    pub fn now(&self) -> Nanos {
        self.events.now()
    }

    /// Returns a host.
    ///
    /// # Panics
    ///
    /// The host does not exist.
    pub fn host(&self, id: HostId) -> &H {
        &self.stations[(id - self.first_host) as usize].host
    }

    /// Runs `something` on a host between events, for example because its user acts. The host is
    /// then served.
    ///
    /// # Panics
    ///
    /// The host does not exist.
    pub fn attend(&mut self, id: HostId, something: impl FnOnce(&mut H)) {
        something(&mut self.station(id).host);
        self.events.schedule(self.events.now(), FabricEvent::Serve(id));
    }

    /// Returns all hosts.
    pub fn hosts(&self) -> impl Iterator<Item = &H> {
        self.stations.iter().map(|station| &station.host)
    }

    /// Returns the number of packets on links and in queues.
    pub fn under_way(&self) -> usize {
        self.packets.len()
    }

    /// Handles an event.
    #[inline]
    pub(super) fn handle_event(
        &mut self,
        event: FabricEvent,
        report: &mut dyn FnMut(Nanos, Outcome),
    ) {
        match event {
            FabricEvent::Enqueue(port, index) => self.enqueue(port, index),
            FabricEvent::PortFree(port) => self.port_free(port),
            FabricEvent::Arrive(index) => self.arrive(index, report),
            FabricEvent::Serve(host) => self.serve_host(host, report),
            FabricEvent::Timer(host) => self.timer(host, report),
            FabricEvent::Sample => self.sample(),
            FabricEvent::Deliver(_) | FabricEvent::Crash(_) | FabricEvent::Return(_) => {
                unreachable!(
                    "without faults these are never scheduled, and with faults they are handled elsewhere"
                )
            }
        }
    }

    /// Handles a packet at the output of a switch: transmits, queues or drops it.
    fn enqueue(&mut self, id: PortIndex, index: PacketIndex) {
        let now = self.events.now();
        let port = &mut self.ports[id as usize];
        if !port.is_scheduled && port.busy_until <= now {
            return self.send(id, index);
        }
        let packet = self.packets.get_mut(index);
        let bytes = u64::from(packet.wire_bytes);
        let Some(left) = self.pools[port.pool as usize].checked_sub(bytes) else {
            port.meter.dropped += 1;
            self.packets.remove(index);
            return;
        };
        self.pools[port.pool as usize] = left;
        if packet.ecn_capable && port.meter.waiting >= port.mark_at {
            packet.marked = true;
            port.meter.marked += 1;
        }
        port.meter.queued(now, bytes);
        port.queue.push(&mut self.packets, index);
        if !port.is_scheduled {
            port.is_scheduled = true;
            self.events.schedule(port.busy_until, FabricEvent::PortFree(id));
        }
    }

    /// Transmits the next packet of a port whose link has become free.
    fn port_free(&mut self, id: PortIndex) {
        let now = self.events.now();
        let port = &mut self.ports[id as usize];
        let index = port.queue.pop(&self.packets).expect("a port wakes if packets wait");
        let bytes = u64::from(self.packets.get(index).wire_bytes);
        port.meter.unqueued(now, bytes);
        self.pools[port.pool as usize] += bytes;
        port.is_scheduled = !port.queue.is_empty();
        self.send(id, index);
        let port = &self.ports[id as usize];
        if port.is_scheduled {
            self.events.schedule(port.busy_until, FabricEvent::PortFree(id));
        }
    }

    /// Transmits a packet on the link of a port.
    #[inline]
    fn send(&mut self, id: PortIndex, index: PacketIndex) {
        let packet = self.packets.get(index);
        let bytes = u64::from(packet.wire_bytes);
        let port = &mut self.ports[id as usize];
        port.busy_until = self.events.now() + port.rate.time(bytes);
        port.meter.sent += bytes;
        let at = port.busy_until + port.latency;
        match self.routes.next(port.id, packet.to) {
            Hop::Port(next) => self.pass(at, next, index),
            Hop::Host => {
                self.counts.level_bytes[usize::from(packet.priority) % 8] += bytes;
                self.events.schedule(at, FabricEvent::Arrive(index));
            }
        }
    }

    /// Delivers a packet to its host.
    pub(super) fn arrive(&mut self, index: PacketIndex, report: &mut dyn FnMut(Nanos, Outcome)) {
        let packet = self.packets.get(index);
        let to = packet.to;
        self.counts.packets += 1;
        self.counts.data_packets += u64::from(packet.payload > 0);
        self.stations[(to - self.first_host) as usize].host.receive(
            self.events.now(),
            packet,
            self.packets.body(index),
        );
        self.packets.remove(index);
        self.serve_host(to, report);
    }

    /// Handles a host's timer event.
    fn timer(&mut self, id: HostId, report: &mut dyn FnMut(Nanos, Outcome)) {
        let now = self.events.now();
        let station = &mut self.stations[(id - self.first_host) as usize];
        if station.timer != now {
            // An earlier deadline has replaced it.
            return;
        }
        station.timer = Nanos::MAX;
        if station.host.next_timeout().is_some_and(|at| at <= now) {
            station.host.handle_timeout(now);
        }
        self.serve_host(id, report);
    }

    /// Serves a host after it has changed: outcomes, link, timer.
    #[inline]
    pub(super) fn serve_host(&mut self, id: HostId, report: &mut dyn FnMut(Nanos, Outcome)) {
        let now = self.events.now();
        let station = &mut self.stations[(id - self.first_host) as usize];
        while let Some(outcome) = station.host.poll_outcome() {
            report(now, outcome);
        }
        if station.busy_until <= now {
            self.transmit(id);
        }
        let station = &mut self.stations[(id - self.first_host) as usize];
        // A postponed deadline is noticed when the event of the old deadline is handled.
        if let Some(at) = station.host.next_timeout()
            && at < station.timer
        {
            station.timer = at.max(now);
            self.events.schedule(station.timer, FabricEvent::Timer(id));
        }
    }

    /// Transmits the host's next packet, if any, on its free link.
    fn transmit(&mut self, id: HostId) {
        let now = self.events.now();
        let station = &mut self.stations[(id - self.first_host) as usize];
        if station.busy_until > now {
            return;
        }
        let host = &mut station.host;
        let write = |packet: &mut Packet, body: &mut H::Body| host.transmit(now, packet, body);
        let Some(index) = self.packets.insert(write) else { return };
        let packet = self.packets.get(index);
        let taken = self.topology.host_rate.time(u64::from(packet.wire_bytes));
        station.busy_until = now + taken;
        let port = self.routes.first(packet);
        self.events.schedule(now + taken, FabricEvent::Serve(id));
        self.pass(now + taken + self.delay_to_tor, port, index);
    }

    /// Schedules the arrival of a packet at the output of a switch at `at`.
    #[inline]
    fn pass(&mut self, at: Nanos, port: PortId, index: PacketIndex) {
        let place = self.division.place(port);
        if place.region == self.region {
            self.events.schedule(at, FabricEvent::Enqueue(place.index, index));
        } else {
            self.leave(at, place, index);
        }
    }

    /// Sends a packet to another region.
    #[inline(never)]
    fn leave(&mut self, at: Nanos, to: Place, index: PacketIndex) {
        let (packet, body) = (*self.packets.get(index), self.packets.body(index).clone());
        self.packets.remove(index);
        self.outbox.push(to.region, Letter { at, port: to.index, packet, body });
    }

    /// Accepts a packet from another region.
    ///
    /// # Panics
    ///
    /// The packet is late (REGION-1).
    pub(super) fn accept(&mut self, letter: Letter<H::Body>) {
        let Letter { at, port, packet, body } = letter;
        assert!(at >= self.events.now(), "REGION-1: a packet for {at} at {}", self.events.now());
        let write = |slot: &mut Packet, contents: &mut H::Body| {
            (*slot, *contents) = (packet, body);
            true
        };
        if let Some(index) = self.packets.insert(write) {
            self.events.schedule(at, FabricEvent::Enqueue(port, index));
        }
    }

    /// Returns when its next event is due; [`Nanos::MAX`] without one.
    pub(super) fn next_event_at(&self) -> Nanos {
        self.events.next_at()
    }

    /// Returns a host and its link.
    #[inline]
    fn station(&mut self, id: HostId) -> &mut Station<H> {
        &mut self.stations[(id - self.first_host) as usize]
    }
}

impl<H: Host> Network for Fabric<H> {
    fn submit(&mut self, message: &Message) {
        if self.faults.is_some() && self.holds_back(message) {
            return;
        }
        let now = self.events.now();
        self.station(message.from).host.submit(now, message);
        self.events.schedule(now, FabricEvent::Serve(message.from));
    }

    fn advance(&mut self, until: Nanos, report: &mut dyn FnMut(Nanos, Outcome)) {
        while let Some(event) = self.events.pop(until) {
            if self.faults.is_some() {
                self.handle_event_with_faults(event, report);
            } else {
                self.handle_event(event, report);
            }
        }
    }

    fn reset_counters(&mut self) {
        self.reset_counts();
    }

    fn data_packets(&self) -> u64 {
        self.counts.data_packets
    }

    fn counters(&self) -> Counters {
        self.totals().counters()
    }
}
