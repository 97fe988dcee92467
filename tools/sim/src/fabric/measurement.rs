//! Measurement of a fabric since its counters were reset.

use super::counts::FabricCounts;
use super::event::FabricEvent;
use super::model::Fabric;
use super::port::Meter;
use super::route::{Kind, PortId};
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

    /// Returns the counters.
    pub(super) fn counters_so_far(&self) -> Counters {
        let now = self.events.now();
        let counts = &self.counts;
        let time = (now - counts.since).max(1);
        let hosts = self.stations.len() as u64;
        let capacity = self.topology.host_rate.bytes(time) * hosts;
        let sent: u64 = self.ports[..self.stations.len()].iter().map(|port| port.meter.sent).sum();
        let sum =
            |figure: fn(&Meter) -> u64| self.ports.iter().map(|port| figure(&port.meter)).sum();
        Counters {
            time,
            tor_to_spine: self.queue_length(Kind::TorToSpine, now, time),
            spine_to_tor: self.queue_length(Kind::SpineToTor, now, time),
            tor_to_host: self.queue_length(Kind::TorToHost, now, time),
            utilisation: sent as f64 / capacity.max(1) as f64,
            wasted: counts.wasted as f64 / (counts.samples * hosts).max(1) as f64,
            level_bytes: counts.level_bytes,
            data_packets: counts.data_packets,
            packets: counts.packets,
            dropped: sum(|meter| meter.dropped),
            marked: sum(|meter| meter.marked),
            hosts: self.host_counters() - counts.hosts,
        }
    }

    /// Returns the sum of the counters of all hosts since the beginning of the run.
    fn host_counters(&self) -> HostCounters {
        self.hosts().fold(HostCounters::default(), |sum, host| sum + host.counters())
    }

    fn queue_length(&self, kind: Kind, now: Nanos, time: Nanos) -> QueueLength {
        let mut length = QueueLength::default();
        let (mut area, mut ports) = (0, 0_u32);
        for (id, port) in self.ports.iter().enumerate() {
            if self.routes.port(id as PortId).0 == kind {
                area += port.meter.area(now);
                ports += 1;
                length.max = length.max.max(port.meter.longest);
            }
        }
        length.mean = area as f64 / time as f64 / f64::from(ports.max(1));
        length
    }
}
