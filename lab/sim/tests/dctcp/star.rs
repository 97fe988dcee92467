//! Hosts around one switch in the fabric, and measurements of the port to the first of them.

use apus_sim::dctcp::{Config, ConnectionInfo, DctcpHost, FULL_FRAME};
use apus_sim::fabric::{Buffers, Settings};
use apus_sim::{Delays, Fabric, HostId, Message, Network, Outcome, Topology};
use apus_workload::{Nanos, Rate};

/// Receiver of all messages.
pub(crate) const SINK: HostId = 0;

/// A switch and its hosts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    pub(crate) senders: u32,
    pub(crate) gbps: u64,
    /// Approximate round-trip time with an empty queue.
    pub(crate) round_trip: Nanos,
    /// Marking threshold in full packets; `None` for TCP without marks.
    pub(crate) mark_at: Option<u64>,
    /// Buffer of each port in full packets.
    pub(crate) room: u64,
    pub(crate) config: Config,
}

impl Default for Plan {
    /// Returns the set-up of the analysis in section 3.3: 10 Gbit/s and 100 µs.
    fn default() -> Self {
        Self {
            senders: 2,
            gbps: 10,
            round_trip: 100_000,
            mark_at: Some(65),
            room: 1_000,
            config: Config::default(),
        }
    }
}

impl Plan {
    fn rate(&self) -> Rate {
        Rate::from_mbps(self.gbps * 1_000).unwrap()
    }

    /// Returns the number of full packets that fit into a round trip.
    pub(crate) fn pipe(&self) -> f64 {
        self.rate().bytes(self.round_trip) as f64 / FULL_FRAME as f64
    }

    fn settings(&self) -> Settings {
        let rate = self.rate();
        // A full packet passes two links, and its ACK two links back.
        let links = 2 * rate.time(FULL_FRAME) + 2 * rate.time(90);
        let way = (self.round_trip - links) / 2;
        let delays =
            Delays { switch: 0, host_out: way / 2, host_in: way / 2, propagation: 0, per_rack: 0 };
        let shape = format!("1x{}x0", self.senders + 1).parse().unwrap();
        let topology = Topology { shape, host_rate: rate, fabric_rate: rate, delays };
        Settings {
            mark_at: self.mark_at.map(|packets| packets * FULL_FRAME),
            buffers: Buffers::PerPort(self.room * FULL_FRAME),
            ..Settings::new(topology, 1)
        }
    }

    pub(crate) fn build(self) -> Star {
        let fabric = Fabric::new(&self.settings(), |id| DctcpHost::new(id, self.config));
        Star { plan: self, fabric, told: Vec::new(), numbers: 0 }
    }
}

/// A running fabric.
pub(crate) struct Star {
    pub(crate) plan: Plan,
    pub(crate) fabric: Fabric<DctcpHost>,
    pub(crate) told: Vec<(Nanos, Outcome)>,
    numbers: u32,
}

/// Measurements of the port to the sink over some time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Port {
    /// Mean queue length in full packets.
    pub(crate) mean: f64,
    pub(crate) max: f64,
    /// Share of time that it was sending.
    pub(crate) busy: f64,
    pub(crate) dropped: u64,
}

impl Star {
    /// Submits a message from a sender to the sink.
    pub(crate) fn send(&mut self, from: HostId, bytes: u32) -> u32 {
        let number = self.numbers;
        self.numbers += 1;
        let at = self.fabric.now();
        self.fabric.submit(&Message { number, from, to: SINK, bytes, at });
        number
    }

    /// Submits `bytes` bytes from each sender.
    pub(crate) fn all_send(&mut self, bytes: u32) {
        for from in 1..=self.plan.senders {
            self.send(from, bytes);
        }
    }

    /// Simulates for some time and returns the measurements of the port to the sink.
    pub(crate) fn run(&mut self, time: Nanos) -> Port {
        self.fabric.reset_counters();
        let until = self.fabric.now() + time;
        self.fabric.advance(until, &mut |at, outcome| self.told.push((at, outcome)));
        let counters = self.fabric.counters();
        // The other ports carry ACKs, which never wait.
        let hosts = f64::from(self.plan.senders + 1);
        let acks = counters.utilisation * hosts - 1.0;
        Port {
            mean: counters.tor_to_host.mean * hosts / FULL_FRAME as f64,
            max: counters.tor_to_host.max as f64 / FULL_FRAME as f64,
            busy: counters.utilisation * hosts - acks.max(0.0),
            dropped: counters.dropped,
        }
    }

    pub(crate) fn info(&self, from: HostId) -> ConnectionInfo {
        self.fabric.host(from).connection(SINK).expect("it has sent")
    }

    /// Returns the bytes of a sender that were submitted and are not acknowledged.
    pub(crate) fn unacknowledged(&self, from: HostId) -> u64 {
        self.fabric.host(from).connection(SINK).map_or(0, |info| info.unacknowledged)
    }

    /// Returns the acknowledged bytes of each sender during `time`.
    pub(crate) fn shares(&mut self, time: Nanos) -> Vec<f64> {
        let left = |star: &Self| -> Vec<u64> {
            (1..=star.plan.senders).map(|from| star.unacknowledged(from)).collect()
        };
        let before = left(self);
        self.run(time);
        before.iter().zip(left(self)).map(|(before, after)| (before - after) as f64).collect()
    }
}

/// Returns Jain's index: 1 if all shares are equal, 1/n if one flow has everything.
pub(crate) fn fairness(shares: &[f64]) -> f64 {
    let sum: f64 = shares.iter().sum();
    let squares: f64 = shares.iter().map(|share| share * share).sum();
    sum * sum / (shares.len() as f64 * squares)
}
