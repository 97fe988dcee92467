//! Output port of a switch.

use super::queue::Queue;
use super::route::{Kind, PortId, Routes};
use super::settings::Settings;
use apus_workload::time::{Nanos, Rate};

/// Index of a port in its fabric or region.
pub(super) type PortIndex = u32;

/// Output port of a switch: queues and a link.
#[derive(Debug)]
pub(super) struct Port {
    pub(super) id: PortId,
    pub(super) queue: Queue,
    /// Time until which the link is busy.
    pub(super) busy_until: Nanos,
    /// Whether an event for the end of the current transmission is scheduled.
    pub(super) is_scheduled: bool,
    pub(super) rate: Rate,
    /// Time from the last bit on the link to the next queue or host: propagation, and a switch's
    /// delay or a host's software.
    pub(super) latency: Nanos,
    /// Buffer pool of the waiting packets.
    pub(super) pool: u32,
    /// Queue length, in bytes, from which packets are marked.
    pub(super) mark_at: u64,
    pub(super) meter: Meter,
}

impl Port {
    /// Returns the port with this id; its queued packets occupy the buffer pool `pool`.
    pub(super) fn new(settings: &Settings, routes: &Routes, id: PortId, pool: u32) -> Self {
        let topology = &settings.topology;
        let delays = topology.delays;
        let (kind, _) = routes.port(id);
        let (rate, latency) = match kind {
            Kind::TorToHost => (topology.host_rate, delays.propagation + delays.host_in),
            Kind::TorToSpine | Kind::SpineToTor => {
                let propagation = topology.fabric_propagation(routes.rack_of_port(id));
                (topology.fabric_rate, propagation + delays.switch)
            }
        };
        let marks = !settings.only_core_marks || kind != Kind::TorToHost;
        let scaled = |bytes: u64| bytes * rate.mbps() / topology.host_rate.mbps();
        Self {
            id,
            queue: Queue::new(),
            busy_until: 0,
            is_scheduled: false,
            rate,
            latency,
            pool,
            mark_at: settings.mark_at.filter(|_| marks).map_or(u64::MAX, scaled),
            meter: Meter::default(),
        }
    }
}

/// Measurements of a port.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Meter {
    /// Bytes queued now, without the packet on the link.
    pub(super) waiting: u64,
    /// Longest queue in bytes.
    pub(super) longest: u64,
    /// Waiting bytes integrated over time up to `since`.
    area: u128,
    since: Nanos,
    /// Bytes sent.
    pub(super) sent: u64,
    /// Packets dropped because the buffer was full.
    pub(super) dropped: u64,
    /// Packets marked.
    pub(super) marked: u64,
}

impl Meter {
    /// Records that `bytes` bytes joined the queue.
    #[inline]
    pub(super) fn queued(&mut self, now: Nanos, bytes: u64) {
        self.settle(now);
        self.waiting += bytes;
        self.longest = self.longest.max(self.waiting);
    }

    /// Records that `bytes` bytes left the queue.
    #[inline]
    pub(super) fn unqueued(&mut self, now: Nanos, bytes: u64) {
        self.settle(now);
        self.waiting -= bytes;
    }

    /// Returns the waiting bytes integrated over time.
    pub(super) fn area(&self, now: Nanos) -> u128 {
        self.area + u128::from(self.waiting) * u128::from(now - self.since)
    }

    /// Resets the measurements, except for the queued bytes.
    pub(super) fn reset(&mut self, now: Nanos) {
        *self =
            Self { waiting: self.waiting, longest: self.waiting, since: now, ..Self::default() };
    }

    #[inline]
    fn settle(&mut self, now: Nanos) {
        self.area = self.area(now);
        self.since = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queue_length_is_weighted_by_time() {
        let mut meter = Meter::default();
        meter.queued(100, 50);
        meter.queued(200, 50);
        meter.unqueued(300, 100);
        assert_eq!((meter.area(400), meter.longest), (50 * 100 + 100 * 100, 100));
        meter.queued(400, 10);
        meter.reset(500);
        assert_eq!((meter.area(600), meter.longest, meter.waiting), (1_000, 10, 10));
    }
}
