//! How does a packet get from one host to another?
//!
//! ```text
//!   Host::transmit ─▶ host's link ─▶ enqueue at TOR ─▶ … ─▶ enqueue at TOR ─▶ arrive ─▶ Host::receive
//!        ▲                              │  ▲                                   │
//!        └── link free                  └──┴── port free: strict priority      └─▶ outcomes, link, timer
//! ```
//!
//! All that happens is an `Event`; `Fabric::happen` is the table of contents. An uncontended hop costs
//! one event (the packet's place in the next queue), a contended one two (and the link becomes free).
//!
//! # Invariants
//!
//! - **P1** A place in an event or a queue holds a packet, and no place is in two of them.
//! - **P2** A port whose queue is not empty has exactly one event for the moment when its link is free.
//! - **P3** The same settings, hosts and messages give the same events: everything that is random comes from
//!   the seed, and events of the same nanosecond happen in the order in which they were caused.

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

/// Number of a port of a switch.
type PortId = u32;

/// What can happen.
#[derive(Clone, Copy, Debug, Default)]
enum Event {
    /// A packet stands at the output of a switch.
    Enqueue(PortId, Place),
    /// A port has sent its packet.
    PortFree(PortId),
    /// A packet has passed the software of its host.
    Arrive(Place),
    /// A host's link can take the next packet, or an application has called.
    Attend(HostId),
    /// A host's deadline has passed.
    Timer(HostId),
    /// It is time to look who idles.
    #[default]
    Sample,
    /// A packet is late enough; only if there are faults.
    Deliver(Place),
    /// A host dies; only if there are faults.
    Crash(HostId),
    /// A host wakes up or comes back; only if there are faults.
    Return(HostId),
}

/// A host and its link into the fabric.
#[derive(Debug)]
struct Station<H> {
    host: H,
    /// Until when its link is taken.
    busy_until: Nanos,
    /// When it has a timer event; [`Nanos::MAX`] if it has none.
    timer: Nanos,
}

/// Hosts, switches and links, and what happens there.
#[derive(Debug)]
pub struct Fabric<H: Host> {
    topology: Topology,
    events: Events<Event>,
    packets: Packets<H::Body>,
    stations: Vec<Station<H>>,
    ports: Vec<Port>,
    /// Free bytes of each pool of memory.
    pools: Vec<u64>,
    routes: Routes,
    /// From a host's decision to send to the packet's place in the TOR's queue, but for its time on the link.
    way_to_tor: Nanos,
    tally: Tally,
    /// What goes wrong, if anything does.
    trouble: Option<Box<Trouble>>,
}

impl<H: Host> Fabric<H> {
    /// A fabric whose hosts are made by `host`, in which nothing has happened yet.
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

    /// Where everything is.
    pub const fn topology(&self) -> &Topology {
        &self.topology
    }

    /// The clock.
    pub fn now(&self) -> Nanos {
        self.events.now()
    }

    /// A host.
    ///
    /// # Panics
    ///
    /// If there is no such host.
    pub fn host(&self, id: HostId) -> &H {
        &self.stations[id as usize].host
    }

    /// Does something with a host that gets nothing from the fabric: its user turns up. Then it is attended to.
    ///
    /// # Panics
    ///
    /// If there is no such host.
    pub fn attend(&mut self, id: HostId, something: impl FnOnce(&mut H)) {
        something(&mut self.stations[id as usize].host);
        self.events.put(self.events.now(), Event::Attend(id));
    }

    /// All hosts.
    pub fn hosts(&self) -> impl Iterator<Item = &H> {
        self.stations.iter().map(|station| &station.host)
    }

    /// Packets that are on a link or in a queue.
    pub fn under_way(&self) -> usize {
        self.packets.len()
    }

    /// Makes an event happen.
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
                    "without faults nobody puts these in, and with them `faulty` takes them"
                )
            }
        }
    }

    /// A packet stands at the output of a switch: it leaves at once, waits, or is dropped.
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

    /// The link of a port has become free: the next packet leaves.
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

    /// Puts a packet on the link of a port.
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

    /// A packet is at its host.
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

    /// A host's timer event.
    fn timer(&mut self, id: HostId, tell: &mut dyn FnMut(Nanos, Outcome)) {
        let now = self.events.now();
        let station = &mut self.stations[id as usize];
        if station.timer != now {
            // An earlier deadline has taken its place.
            return;
        }
        station.timer = Nanos::MAX;
        if station.host.next_timeout().is_some_and(|at| at <= now) {
            station.host.handle_timeout(now);
        }
        self.settle(id, tell);
    }

    /// After a host has taken something: outcomes, the link, the timer.
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
        // A deadline that has been put off is noticed when the event for the old one happens.
        if let Some(at) = station.host.next_timeout()
            && at < station.timer
        {
            station.timer = at.max(now);
            self.events.put(station.timer, Event::Timer(id));
        }
    }

    /// Puts the host's next packet, if it has one, on its free link.
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
