//! Measurement of a fabric since its counters were reset.

use std::array;
use std::iter::Sum;
use std::ops::Add;

use super::counts::FabricCounts;
use super::event::FabricEvent;
use super::model::Fabric;
use super::port::Meter;
use super::route::Kind;
use crate::host::Host;
use crate::network::{Counters, HostCounters, QueueLength};
use apus_workload::time::Nanos;

impl<H: Host> Fabric<H> {
    /// Counts the idle links whose hosts withhold grants.
    pub(super) fn sample(&mut self) {
        let now = self.events.now();
        for (station, port) in self.stations.iter().zip(&self.ports) {
            let idle = port.busy_until <= now;
            self.counts.wasted += u64::from(idle && station.host.withholds());
        }
        self.counts.samples += 1;
        self.events.schedule(now + self.counts.sample_every, FabricEvent::Sample);
    }

    /// Resets all counters.
    pub(super) fn reset_counts(&mut self) {
        let now = self.events.now();
        self.counts = FabricCounts::new(now, self.counts.sample_every, self.host_counters());
        for port in &mut self.ports {
            port.meter.reset(now);
        }
    }

    /// Returns the measurements.
    pub(super) fn totals(&self) -> Totals {
        let now = self.events.now();
        let hosts = self.stations.len() as u64;
        let time = (now - self.counts.since).max(1);
        let mut totals = Totals {
            time,
            capacity: u128::from(self.topology.host_rate.bytes(time)) * u128::from(hosts),
            possible: self.counts.samples * hosts,
            wasted: self.counts.wasted,
            level_bytes: self.counts.level_bytes,
            data_packets: self.counts.data_packets,
            packets: self.counts.packets,
            hosts: self.host_counters() - self.counts.hosts,
            ..Totals::default()
        };
        for port in &self.ports {
            let kind = self.routes.port(port.id).0;
            totals.queues[kind as usize].add(&port.meter, now);
            totals.dropped += port.meter.dropped;
            totals.marked += port.meter.marked;
            if kind == Kind::TorToHost {
                totals.sent += port.meter.sent;
            }
        }
        totals
    }

    /// Returns the sum of the counters of all hosts since the start of the run.
    fn host_counters(&self) -> HostCounters {
        self.hosts().fold(HostCounters::default(), |sum, host| sum + host.counters())
    }
}

/// Measurements of a fabric or of some of its regions, as sums.
#[derive(Clone, Debug, Default)]
pub(super) struct Totals {
    time: Nanos,
    /// Queues by [`Kind`].
    queues: [Queues; 3],
    /// Bytes that the links to hosts could have carried, and bytes that they have carried.
    capacity: u128,
    sent: u64,
    /// Samples of links to hosts, and samples of an idle link whose host withheld grants.
    possible: u64,
    wasted: u64,
    level_bytes: [u64; 8],
    data_packets: u64,
    packets: u64,
    dropped: u64,
    marked: u64,
    hosts: HostCounters,
}

/// Queues of a kind.
#[derive(Clone, Copy, Debug, Default)]
struct Queues {
    ports: u32,
    /// Waiting bytes integrated over time.
    area: u128,
    longest: u64,
}

impl Queues {
    fn add(&mut self, meter: &Meter, now: Nanos) {
        self.ports += 1;
        self.area += meter.area(now);
        self.longest = self.longest.max(meter.longest);
    }

    fn length(&self, time: Nanos) -> QueueLength {
        let mean = self.area as f64 / time as f64 / f64::from(self.ports.max(1));
        QueueLength { mean, max: self.longest }
    }
}

impl Totals {
    /// Returns the counters.
    pub(super) fn counters(&self) -> Counters {
        let length = |kind: Kind| self.queues[kind as usize].length(self.time);
        Counters {
            time: self.time,
            tor_to_spine: length(Kind::TorToSpine),
            spine_to_tor: length(Kind::SpineToTor),
            tor_to_host: length(Kind::TorToHost),
            utilisation: self.sent as f64 / self.capacity.max(1) as f64,
            wasted: self.wasted as f64 / self.possible.max(1) as f64,
            level_bytes: self.level_bytes,
            data_packets: self.data_packets,
            packets: self.packets,
            dropped: self.dropped,
            marked: self.marked,
            hosts: self.hosts,
        }
    }
}

impl Add for Totals {
    type Output = Self;

    /// Adds the measurements of another region over the same time.
    fn add(self, other: Self) -> Self {
        let queues = |kind: usize| Queues {
            ports: self.queues[kind].ports + other.queues[kind].ports,
            area: self.queues[kind].area + other.queues[kind].area,
            longest: self.queues[kind].longest.max(other.queues[kind].longest),
        };
        Self {
            time: self.time.max(other.time),
            queues: array::from_fn(queues),
            capacity: self.capacity + other.capacity,
            sent: self.sent + other.sent,
            possible: self.possible + other.possible,
            wasted: self.wasted + other.wasted,
            level_bytes: array::from_fn(|level| self.level_bytes[level] + other.level_bytes[level]),
            data_packets: self.data_packets + other.data_packets,
            packets: self.packets + other.packets,
            dropped: self.dropped + other.dropped,
            marked: self.marked + other.marked,
            hosts: self.hosts + other.hosts,
        }
    }
}

impl Sum for Totals {
    fn sum<I: Iterator<Item = Self>>(totals: I) -> Self {
        totals.fold(Self::default(), Add::add)
    }
}
