//! What does a switch output know?

use super::queue::Queue;
use super::route::{Kind, Routes};
use super::{PortId, Settings};
use apus_workload::time::{Nanos, Rate};

/// An output of a switch: queues in front of a link.
#[derive(Debug)]
pub(super) struct Port {
    pub(super) queue: Queue,
    /// Until when the link is taken.
    pub(super) busy_until: Nanos,
    /// Whether the port has an event for the moment when the link becomes free.
    pub(super) wakes: bool,
    pub(super) rate: Rate,
    /// From the last bit on the link to the next place: propagation, and a switch's delay or a host's
    /// software.
    pub(super) latency: Nanos,
    /// The pool of memory that waiting packets lie in.
    pub(super) pool: u32,
    /// Bytes waiting from which on packets are marked.
    pub(super) mark_at: u64,
    pub(super) meter: Meter,
}

impl Port {
    /// The port with this number. Its pool is its own, or that of its switch if memory is `shared`.
    pub(super) fn new(settings: &Settings, routes: &Routes, id: PortId, shared: bool) -> Self {
        let topology = &settings.topology;
        let delays = topology.delays;
        let (kind, switch) = routes.port(id);
        let (rate, latency) = match kind {
            Kind::TorToHost => (topology.host_rate, delays.propagation + delays.host_in),
            Kind::TorToSpine | Kind::SpineToTor => {
                let propagation = topology.fabric_propagation(routes.rack_of_port(id));
                (topology.fabric_rate, propagation + delays.switch)
            }
        };
        let scaled = |bytes: u64| bytes * rate.mbps() / topology.host_rate.mbps();
        Self {
            queue: Queue::new(),
            busy_until: 0,
            wakes: false,
            rate,
            latency,
            pool: if shared { switch } else { id },
            mark_at: settings.mark_at.map_or(u64::MAX, scaled),
            meter: Meter::default(),
        }
    }
}

/// What has been at a port.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Meter {
    /// Bytes waiting now, without the packet on the link.
    pub(super) waiting: u64,
    /// Most bytes that waited.
    pub(super) longest: u64,
    /// Bytes waiting, summed over time, up to `since`.
    area: u128,
    since: Nanos,
    /// Bytes sent.
    pub(super) sent: u64,
    /// Packets dropped for lack of room.
    pub(super) dropped: u64,
    /// Packets marked.
    pub(super) marked: u64,
}

impl Meter {
    /// Notes that so many bytes have come to the queue.
    #[inline]
    pub(super) fn queued(&mut self, now: Nanos, bytes: u64) {
        self.settle(now);
        self.waiting += bytes;
        self.longest = self.longest.max(self.waiting);
    }

    /// Notes that so many bytes have left the queue.
    #[inline]
    pub(super) fn unqueued(&mut self, now: Nanos, bytes: u64) {
        self.settle(now);
        self.waiting -= bytes;
    }

    /// Bytes waiting, summed over time.
    pub(super) fn area(&self, now: Nanos) -> u128 {
        self.area + u128::from(self.waiting) * u128::from(now - self.since)
    }

    /// Begins anew; what waits goes on waiting.
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
    fn a_queue_is_weighed_by_how_long_it_stood() {
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
