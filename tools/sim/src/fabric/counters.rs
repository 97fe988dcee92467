//! Measurement of a fabric since its counters were reset.

use super::port::Meter;
use super::route::Kind;
use super::{Event, Fabric, PortId};
use crate::host::Host;
use apus_workload::time::Nanos;

/// Length of queues over all ports of a kind, in waiting bytes without the packet on the link.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct QueueLength {
    /// Mean over time and ports.
    pub mean: f64,
    /// Maximum over ports.
    pub max: u64,
}

/// Counters of a network.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Counters {
    /// Time over which was counted.
    pub time: Nanos,
    /// Queues of TORs towards spines.
    pub tor_to_spine: QueueLength,
    /// Queues of spines towards TORs.
    pub spine_to_tor: QueueLength,
    /// Queues of TORs towards hosts.
    pub tor_to_host: QueueLength,
    /// Mean share of the time in which the links to hosts were busy.
    pub utilisation: f64,
    /// Mean share of the time in which the links to hosts were idle although their hosts withheld
    /// grants from senders (published numbers, figure 16).
    pub wasted: f64,
    /// Bytes on the links to hosts by priority level.
    pub level_bytes: [u64; 8],
    /// Packets with payload that reached their hosts.
    pub data_packets: u64,
    /// Packets of any kind that reached their hosts.
    pub packets: u64,
    /// Packets that switches dropped because a buffer was full.
    pub dropped: u64,
    /// Packets that switches marked.
    pub marked: u64,
}

/// Counts of the whole fabric, in addition to those of each port.
#[derive(Debug, Default)]
pub(super) struct Tally {
    /// Beginning of the measurement.
    since: Nanos,
    pub(super) level_bytes: [u64; 8],
    pub(super) data_packets: u64,
    pub(super) packets: u64,
    /// Time between two samples.
    sample_every: Nanos,
    samples: u64,
    /// Idle links whose hosts withheld grants, summed over all samples.
    wasted: u64,
}

impl Tally {
    pub(super) fn new(since: Nanos, sample_every: Nanos) -> Self {
        Self { since, sample_every, ..Self::default() }
    }
}

impl<H: Host> Fabric<H> {
    /// Counts the idle links whose hosts withhold grants.
    pub(super) fn sample(&mut self) {
        let now = self.events.now();
        for (station, port) in self.stations.iter().zip(&self.ports) {
            let idle = port.busy_until <= now;
            self.tally.wasted += u64::from(idle && station.host.withholds());
        }
        self.tally.samples += 1;
        self.events.put(now + self.tally.sample_every, Event::Sample);
    }

    /// Resets all counters.
    pub(super) fn begin_counting(&mut self) {
        let now = self.events.now();
        self.tally = Tally::new(now, self.tally.sample_every);
        for port in &mut self.ports {
            port.meter.reset(now);
        }
    }

    /// Returns the counters.
    pub(super) fn counted(&self) -> Counters {
        let now = self.events.now();
        let tally = &self.tally;
        let time = (now - tally.since).max(1);
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
            wasted: tally.wasted as f64 / (tally.samples * hosts).max(1) as f64,
            level_bytes: tally.level_bytes,
            data_packets: tally.data_packets,
            packets: tally.packets,
            dropped: sum(|meter| meter.dropped),
            marked: sum(|meter| meter.marked),
        }
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
