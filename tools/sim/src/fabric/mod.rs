//! Simulated fabric: carries packets from host to host over links and switches.
//!
//! ```text
//!   Host::transmit ─▶ host's link ─▶ enqueue at TOR ─▶ … ─▶ enqueue at TOR ─▶ arrive ─▶ Host::receive
//!        ▲                              │  ▲                                   │
//!        └── link free                  └──┴── port free: strict priority      └─▶ outcomes, link, timer
//! ```
//!
//! Everything that happens is an event; `Fabric::handle_event` lists them. An uncontended hop costs
//! one event (the packet's arrival at the next queue), a contended one two (and the end of the
//! transmission before it).
//!
//! # Invariants
//!
//! - FABRIC-SIM-1: An index in an event or a queue refers to a packet, and no index is in two of
//!   them.
//! - FABRIC-SIM-2: A port with a non-empty queue has exactly one event for the end of its current
//!   transmission.
//! - FABRIC-SIM-3: Equal settings, hosts and messages give equal events: everything random comes
//!   from the seed, and events of the same nanosecond are handled in the order in which they were
//!   scheduled.

mod counters;
mod events;
mod faulty;
mod packets;
mod port;
mod queue;
mod route;
mod settings;

pub use counters::{Counters, QueueLength};
pub use settings::{Buffers, Settings, Spreading};

use rand::SeedableRng;
use rand_pcg::Pcg64Mcg;

use crate::fault::Trouble;
use crate::host::Host;
use crate::message::{HostId, Message, Outcome};
use crate::network::Network;
use crate::packet::Packet;
use crate::topology::Topology;
use apus_workload::time::Nanos;
use counters::Tally;
use events::Events;
use packets::{Packets, Place};
use port::Port;
use route::{Hop, Routes};

/// Index of a switch port.
type PortId = u32;

/// An event of the fabric.
#[derive(Clone, Copy, Debug, Default)]
enum Event {
    /// A packet reaches the output of a switch.
    Enqueue(PortId, Place),
    /// A port has finished its transmission.
    PortFree(PortId),
    /// A packet has passed the software of its host.
    Arrive(Place),
    /// A host's link is free, or an application has called.
    Attend(HostId),
    /// A host's deadline has passed.
    Timer(HostId),
    /// A sample of idle links is due.
    #[default]
    Sample,
    /// A delayed packet is delivered; only with faults.
    Deliver(Place),
    /// A host crashes; only with faults.
    Crash(HostId),
    /// A host resumes or restarts; only with faults.
    Return(HostId),
}

/// A host and its link into the fabric.
#[derive(Debug)]
struct Station<H> {
    host: H,
    /// Time until which its link is busy.
    busy_until: Nanos,
    /// Time of its timer event; [`Nanos::MAX`] without one.
    timer: Nanos,
}

/// Hosts, switches and links.
#[derive(Debug)]
pub struct Fabric<H: Host> {
    topology: Topology,
    events: Events<Event>,
    packets: Packets<H::Body>,
    stations: Vec<Station<H>>,
    ports: Vec<Port>,
    /// Free bytes of each buffer pool.
    pools: Vec<u64>,
    routes: Routes,
    /// Delay from a host's decision to send to the packet's arrival at the TOR's queue, except for
    /// its time on the link.
    way_to_tor: Nanos,
    tally: Tally,
    /// Faults, if configured.
    trouble: Option<Box<Trouble>>,
}

impl<H: Host> Fabric<H> {
    /// Returns a fabric at time 0 whose hosts `host` creates.
    pub fn new(settings: &Settings, mut host: impl FnMut(HostId) -> H) -> Self {
        let topology = settings.topology;
        let rng = Pcg64Mcg::seed_from_u64(settings.seed);
        let routes = Routes::new(topology.shape, settings.spreading, rng);
        let stations = (0..topology.shape.hosts())
            .map(|id| Station { host: host(id), busy_until: 0, timer: Nanos::MAX })
            .collect();
        let switches = topology.shape.racks + topology.shape.spines;
        let (pools, shared) = match settings.buffers {
            Buffers::PerPort(bytes) => (vec![bytes; routes.ports() as usize], false),
            Buffers::Shared(bytes) => (vec![bytes; switches as usize], true),
        };
        let ports =
            (0..routes.ports()).map(|id| Port::new(settings, &routes, id, shared)).collect();
        let mut events = Events::new();
        events.put(settings.sample_every, Event::Sample);
        let delays = topology.delays;
        Self {
            topology,
            events,
            packets: Packets::new(),
            stations,
            ports,
            pools,
            routes,
            way_to_tor: delays.host_out + delays.propagation + delays.switch,
            tally: Tally::new(0, settings.sample_every),
            trouble: None,
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
    /// There is no such host.
    pub fn host(&self, id: HostId) -> &H {
        &self.stations[id as usize].host
    }

    /// Runs `something` on a host that otherwise waits for events, for example because its user
    /// acts. The host is then served.
    ///
    /// # Panics
    ///
    /// There is no such host.
    pub fn attend(&mut self, id: HostId, something: impl FnOnce(&mut H)) {
        something(&mut self.stations[id as usize].host);
        self.events.put(self.events.now(), Event::Attend(id));
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
    fn happen(&mut self, event: Event, tell: &mut dyn FnMut(Nanos, Outcome)) {
        match event {
            Event::Enqueue(port, place) => self.enqueue(port, place),
            Event::PortFree(port) => self.port_free(port),
            Event::Arrive(place) => self.arrive(place, tell),
            Event::Attend(host) => self.settle(host, tell),
            Event::Timer(host) => self.timer(host, tell),
            Event::Sample => self.sample(),
            Event::Deliver(_) | Event::Crash(_) | Event::Return(_) => {
                unreachable!(
                    "without faults these are never scheduled, and with faults they are handled elsewhere"
                )
            }
        }
    }

    /// Handles a packet at the output of a switch: transmits, queues or drops it.
    fn enqueue(&mut self, id: PortId, place: Place) {
        let now = self.events.now();
        let port = &mut self.ports[id as usize];
        if !port.wakes && port.busy_until <= now {
            return self.send(id, place);
        }
        let packet = self.packets.get_mut(place);
        let bytes = u64::from(packet.wire_bytes);
        let Some(left) = self.pools[port.pool as usize].checked_sub(bytes) else {
            port.meter.dropped += 1;
            self.packets.remove(place);
            return;
        };
        self.pools[port.pool as usize] = left;
        if packet.ecn_capable && port.meter.waiting >= port.mark_at {
            packet.marked = true;
            port.meter.marked += 1;
        }
        port.meter.queued(now, bytes);
        port.queue.push(&mut self.packets, place);
        if !port.wakes {
            port.wakes = true;
            self.events.put(port.busy_until, Event::PortFree(id));
        }
    }

    /// Transmits the next packet of a port whose link has become free.
    fn port_free(&mut self, id: PortId) {
        let now = self.events.now();
        let port = &mut self.ports[id as usize];
        let place = port.queue.pop(&self.packets).expect("P2: a port wakes if packets wait");
        let bytes = u64::from(self.packets.get(place).wire_bytes);
        port.meter.unqueued(now, bytes);
        self.pools[port.pool as usize] += bytes;
        port.wakes = !port.queue.is_empty();
        self.send(id, place);
        let port = &self.ports[id as usize];
        if port.wakes {
            self.events.put(port.busy_until, Event::PortFree(id));
        }
    }

    /// Transmits a packet on the link of a port.
    #[inline]
    fn send(&mut self, id: PortId, place: Place) {
        let packet = self.packets.get(place);
        let bytes = u64::from(packet.wire_bytes);
        let port = &mut self.ports[id as usize];
        port.busy_until = self.events.now() + port.rate.time(bytes);
        port.meter.sent += bytes;
        let at = port.busy_until + port.latency;
        match self.routes.next(id, packet.to) {
            Hop::Port(next) => self.events.put(at, Event::Enqueue(next, place)),
            Hop::Host => {
                self.tally.level_bytes[usize::from(packet.priority) % 8] += bytes;
                self.events.put(at, Event::Arrive(place));
            }
        }
    }

    /// Delivers a packet to its host.
    fn arrive(&mut self, place: Place, tell: &mut dyn FnMut(Nanos, Outcome)) {
        let packet = self.packets.get(place);
        let to = packet.to;
        self.tally.packets += 1;
        self.tally.data_packets += u64::from(packet.payload > 0);
        self.stations[to as usize].host.receive(
            self.events.now(),
            packet,
            self.packets.body(place),
        );
        self.packets.remove(place);
        self.settle(to, tell);
    }

    /// Handles a host's timer event.
    fn timer(&mut self, id: HostId, tell: &mut dyn FnMut(Nanos, Outcome)) {
        let now = self.events.now();
        let station = &mut self.stations[id as usize];
        if station.timer != now {
            // An earlier deadline has replaced it.
            return;
        }
        station.timer = Nanos::MAX;
        if station.host.next_timeout().is_some_and(|at| at <= now) {
            station.host.handle_timeout(now);
        }
        self.settle(id, tell);
    }

    /// Serves a host after it has changed: outcomes, link, timer.
    #[inline]
    fn settle(&mut self, id: HostId, tell: &mut dyn FnMut(Nanos, Outcome)) {
        let now = self.events.now();
        let station = &mut self.stations[id as usize];
        while let Some(outcome) = station.host.poll_outcome() {
            tell(now, outcome);
        }
        if station.busy_until <= now {
            self.transmit(id);
        }
        let station = &mut self.stations[id as usize];
        // A deadline that has been postponed is noticed when the event of the old one is handled.
        if let Some(at) = station.host.next_timeout()
            && at < station.timer
        {
            station.timer = at.max(now);
            self.events.put(station.timer, Event::Timer(id));
        }
    }

    /// Transmits the host's next packet, if there is one, on its free link.
    fn transmit(&mut self, id: HostId) {
        let now = self.events.now();
        let station = &mut self.stations[id as usize];
        if station.busy_until > now {
            return;
        }
        let host = &mut station.host;
        let write = |packet: &mut Packet, body: &mut H::Body| host.transmit(now, packet, body);
        let Some(place) = self.packets.insert(write) else { return };
        let packet = self.packets.get(place);
        let taken = self.topology.host_rate.time(u64::from(packet.wire_bytes));
        station.busy_until = now + taken;
        let port = self.routes.first(packet.from, packet.to);
        self.events.put(now + taken, Event::Attend(id));
        self.events.put(now + taken + self.way_to_tor, Event::Enqueue(port, place));
    }
}

impl<H: Host> Network for Fabric<H> {
    fn submit(&mut self, message: &Message) {
        if self.trouble.is_some() && self.keeps_back(message) {
            return;
        }
        let now = self.events.now();
        self.stations[message.from as usize].host.submit(now, message);
        self.events.put(now, Event::Attend(message.from));
    }

    fn advance(&mut self, until: Nanos, tell: &mut dyn FnMut(Nanos, Outcome)) {
        while let Some(event) = self.events.take(until) {
            if self.trouble.is_some() {
                self.happen_in_trouble(event, tell);
            } else {
                self.happen(event, tell);
            }
        }
    }

    fn reset_counters(&mut self) {
        self.begin_counting();
    }

    fn counters(&self) -> Counters {
        self.counted()
    }
}
