//! Topology of a fabric, and the time of a packet without contention.
//!
//! ```text
//!   spines       S0     S1   ...                 rate of the fabric's links
//!               /  \   /  \
//!   racks     T0    T1    T2 ...  (TOR)          every TOR has a link to every spine
//!            / | \
//!   hosts   0  1  2 ...                          rate of the hosts' links
//! ```
//!
//! The path of a packet is host, TOR, host within a rack and host, TOR, spine, TOR, host between
//! racks. Switches store and forward: a packet is enqueued at a switch's output a fixed delay after
//! its last bit has arrived.

use std::fmt;
use std::str::FromStr;

use apus_workload::PacketOverhead;

use crate::message::HostId;
use apus_workload::time::{Nanos, Rate};

/// Number of racks, hosts and spines: `RACKSxHOSTSxSPINES`, like `9x16x4`. Zero spines require a
/// single rack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Racks, each with a top-of-rack switch.
    pub racks: u32,
    /// Hosts in each rack.
    pub hosts_per_rack: u32,
    /// Spine switches.
    pub spines: u32,
}

/// Delays that are independent of load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delays {
    /// From the last bit of a packet at a switch to its arrival at the output's queue.
    pub switch: Nanos,
    /// Software on transmission: from the transport's decision to the link's first bit.
    pub host_out: Nanos,
    /// Software on reception: from the packet's last bit to the transport.
    pub host_in: Nanos,
    /// Propagation on each link.
    pub propagation: Nanos,
    /// Additional propagation on each link between a spine and the TOR of rack `n`, multiplied by
    /// `n`, for fabrics with different round-trip times.
    pub per_rack: Nanos,
}

/// A leaf-spine fabric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Topology {
    /// Numbers of racks, hosts and spines.
    pub shape: Shape,
    /// Rate of the links between hosts and TORs.
    pub host_rate: Rate,
    /// Rate of the links between TORs and spines.
    pub fabric_rate: Rate,
    /// Fixed delays.
    pub delays: Delays,
}

/// Reason why a fabric is impossible.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TopologyError {
    /// The text is not three numbers.
    #[error(
        "`{0}` is not a topology: write RACKSxHOSTSxSPINES, like 9x16x4, or 1x16x0 for one rack"
    )]
    Syntax(String),
    /// There are fewer than two hosts.
    #[error("{0}: a fabric has at least two hosts, like 1x2x0")]
    TooFewHosts(Shape),
    /// There are several racks and no spine connects them.
    #[error("{0}: several racks need at least one spine, like {racks}x{hosts}x1", racks = .0.racks, hosts = .0.hosts_per_rack)]
    NoSpine(Shape),
    /// There are more hosts than addresses, or more links than indices.
    #[error("{0}: at most {MAX_HOSTS} hosts and as many links between racks and spines")]
    TooLarge(Shape),
}

/// Maximum number of hosts of a fabric, and of links between TORs and spines. Chosen by us:
/// addresses are 10.x.y.z.
pub const MAX_HOSTS: u32 = 1 << 22;

impl Shape {
    /// Returns the number of hosts.
    #[must_use]
    pub const fn hosts(self) -> u32 {
        self.racks * self.hosts_per_rack
    }

    /// Returns the rack of a host.
    #[must_use]
    pub const fn rack_of(self, host: HostId) -> u32 {
        host / self.hosts_per_rack
    }

    /// Checks that a fabric of this shape is possible.
    ///
    /// # Errors
    ///
    /// The reason why such a fabric is impossible.
    pub fn check(self) -> Result<Self, TopologyError> {
        let hosts = u64::from(self.racks) * u64::from(self.hosts_per_rack);
        let links = u64::from(self.racks) * u64::from(self.spines);
        if hosts.max(links) > u64::from(MAX_HOSTS) {
            Err(TopologyError::TooLarge(self))
        } else if hosts < 2 {
            Err(TopologyError::TooFewHosts(self))
        } else if self.racks > 1 && self.spines == 0 {
            Err(TopologyError::NoSpine(self))
        } else {
            Ok(self)
        }
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}x{}x{}", self.racks, self.hosts_per_rack, self.spines)
    }
}

impl FromStr for Shape {
    type Err = TopologyError;

    fn from_str(text: &str) -> Result<Self, TopologyError> {
        let numbers: Result<Vec<u32>, _> = text.split('x').map(str::parse).collect();
        match numbers.as_deref() {
            Ok(&[racks, hosts_per_rack, spines]) => Self { racks, hosts_per_rack, spines }.check(),
            _ => Err(TopologyError::Syntax(text.to_owned())),
        }
    }
}

impl Topology {
    /// Returns the propagation on the link between the TOR of a rack and a spine.
    #[must_use]
    pub const fn fabric_propagation(&self, rack: u32) -> Nanos {
        self.delays.propagation + self.delays.per_rack * rack as Nanos
    }

    /// Returns the capacity of the links between racks and spines divided by the total link rate of
    /// the racks' hosts: 1 if the fabric never limits, 0.5 if it is oversubscribed twice. With
    /// uniform destinations, at most the share (racks - 1) / racks of the traffic uses these links.
    #[must_use]
    pub fn core_capacity(&self) -> f64 {
        if self.shape.racks == 1 {
            return 1.0;
        }
        let up = f64::from(self.shape.spines) * self.fabric_rate.mbps() as f64;
        up / (f64::from(self.shape.hosts_per_rack) * self.host_rate.mbps() as f64)
    }

    /// Returns this fabric with links between racks and spines whose total rate is the `ratio`th
    /// part of the total link rate of a rack's hosts; `None` if no link can have such a rate.
    /// Unchanged for a single rack.
    #[must_use]
    pub fn oversubscribed(self, ratio: f64) -> Option<Self> {
        if self.shape.racks == 1 {
            return Some(self);
        }
        let hosts = f64::from(self.shape.hosts_per_rack) * self.host_rate.mbps() as f64;
        let link = hosts / (ratio * f64::from(self.shape.spines));
        Some(Self { fabric_rate: Rate::from_mbps(link.round() as u64)?, ..self })
    }

    /// Returns the load of the links to hosts that saturates the links between racks and spines, if
    /// destinations are uniform: 1 if they never limit, about 0.56 in the paper's fabric
    /// oversubscribed twice.
    #[must_use]
    pub fn uniform_capacity(&self) -> f64 {
        let Shape { racks, hosts_per_rack, .. } = self.shape;
        if racks == 1 {
            return 1.0;
        }
        // Destinations of a host in other racks.
        let others = f64::from(self.shape.hosts() - hosts_per_rack);
        (self.core_capacity() * f64::from(self.shape.hosts() - 1) / others).min(1.0)
    }

    /// Returns the time from the submission of a message to its arrival, with packets of these wire
    /// lengths, if the fabric is otherwise idle and no packet waits for grants: the best possible
    /// time, and the basis of slowdown.
    ///
    /// `full` is the wire length of all packets but the last, `count` the number of packets.
    ///
    /// The delay of the switch counts once between two hosts of one rack. The simulator of the
    /// paper omits it from its ideal (docs/reference/papers.md, *Simulation set-up*); this one does
    /// not.
    #[must_use]
    pub fn unloaded(&self, from: HostId, to: HostId, count: u64, full: u64, last: u64) -> Nanos {
        // Times when the last packet but one, and the last packet, have left the previous link.
        let first_link = self.delays.host_out + self.host_rate.time(full * (count - 1));
        let mut before = if count > 1 { first_link } else { 0 };
        let mut end = first_link + self.host_rate.time(last);
        let mut hop = |rate: Rate, propagation: Nanos| {
            before = before + propagation + self.delays.switch + rate.time(full);
            let start =
                (end + propagation + self.delays.switch).max(if count > 1 { before } else { 0 });
            end = start + rate.time(last);
        };
        let (near, far) = (self.shape.rack_of(from), self.shape.rack_of(to));
        if near == far {
            hop(self.host_rate, self.delays.propagation);
        } else {
            hop(self.fabric_rate, self.delays.propagation);
            hop(self.fabric_rate, self.fabric_propagation(near));
            hop(self.host_rate, self.fabric_propagation(far));
        }
        end + self.delays.propagation + self.delays.host_in
    }

    /// Returns [`Topology::unloaded`] for a message of `bytes` bytes, at least 1, that is divided
    /// into `packets`.
    #[must_use]
    pub fn ideal(&self, from: HostId, to: HostId, bytes: u32, packets: &PacketOverhead) -> Nanos {
        let count = bytes.div_ceil(packets.payload);
        let last = packets.wire_bytes(bytes - (count - 1) * packets.payload);
        self.unloaded(from, to, u64::from(count), packets.wire_bytes(packets.payload), last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the set-up of SIGCOMM 2018 (docs/reference/papers.md, *Simulation set-up*).
    fn sigcomm() -> Topology {
        Topology {
            shape: "9x16x4".parse().unwrap(),
            host_rate: Rate::from_mbps(10_000).unwrap(),
            fabric_rate: Rate::from_mbps(40_000).unwrap(),
            delays: Delays {
                switch: 250,
                host_out: 1_000,
                host_in: 500,
                propagation: 0,
                per_rack: 0,
            },
        }
    }

    /// A.1: 2.42 µs between racks, 1.88 µs within one.
    #[test]
    fn a_short_message_takes_the_papers_time() {
        let topology = sigcomm();
        assert_eq!(topology.unloaded(0, 16, 1, 0, 84), 2_418);
        assert_eq!(topology.unloaded(0, 1, 1, 0, 84), 1_884);
    }

    /// A.1: a grant out and a full packet back take 7.74 µs.
    #[test]
    fn the_round_trip_time_is_the_papers() {
        let topology = sigcomm();
        let grant = topology.unloaded(0, 16, 1, 0, 84);
        let packet = topology.unloaded(16, 0, 1, 0, 1_538);
        assert!((7_600..7_800).contains(&(grant + packet)), "{}", grant + packet);
    }

    /// The last packet waits for its predecessor on the last link, which is as slow as the first.
    #[test]
    fn a_short_last_packet_waits_for_the_long_one_before_it() {
        let topology = sigcomm();
        let one = topology.unloaded(0, 16, 1, 0, 1_538);
        let more = topology.unloaded(0, 16, 2, 1_538, 84);
        assert_eq!(more, one + 67);
        let many = topology.unloaded(0, 16, 1_000, 1_538, 1_538);
        assert_eq!(many - one, topology.host_rate.time(999 * 1_538));
    }

    #[test]
    fn an_oversubscribed_fabric_is_loaded_by_its_core() {
        let paper = sigcomm();
        assert_eq!(paper.uniform_capacity(), 1.0);
        let twice = paper.oversubscribed(2.0).unwrap();
        assert_eq!((twice.fabric_rate.mbps(), twice.core_capacity()), (20_000, 0.5));
        // 128 of 143 other hosts are in other racks.
        assert!((twice.uniform_capacity() - 0.5 * 143.0 / 128.0).abs() < 1e-9);
        let rack = Topology { shape: "1x16x0".parse().unwrap(), ..paper };
        assert_eq!(rack.oversubscribed(2.0), Some(rack));
        assert_eq!(rack.uniform_capacity(), 1.0);
        assert_eq!(paper.oversubscribed(1e9), None);
    }

    #[test]
    fn the_ideal_of_a_message_is_that_of_its_packets() {
        let topology = sigcomm();
        let packets = PacketOverhead { payload: 1_000, overhead: 100, minimum: 150 };
        let ideal = |bytes| topology.ideal(0, 16, bytes, &packets);
        assert_eq!(ideal(1), topology.unloaded(0, 16, 1, 1_100, 150), "padded");
        assert_eq!(ideal(1_000), topology.unloaded(0, 16, 1, 1_100, 1_100), "exactly one packet");
        assert_eq!(ideal(2_500), topology.unloaded(0, 16, 3, 1_100, 600));
    }

    #[test]
    fn impossible_fabrics_are_refused_by_name() {
        let error = |text: &str| text.parse::<Shape>().unwrap_err().to_string();
        for (text, part) in [
            ("9x16", "RACKSxHOSTSxSPINES"),
            ("9xax4", "`9xax4`"),
            ("", "like 9x16x4"),
            ("1x1x0", "two hosts"),
            ("0x16x4", "two hosts"),
            ("2x4x0", "2x4x1"),
            ("4294967295x4294967295x1", "at most"),
        ] {
            assert!(error(text).contains(part), "{text}: {}", error(text));
        }
        assert_eq!("1x2x0".parse::<Shape>().unwrap().hosts(), 2);
    }
}
