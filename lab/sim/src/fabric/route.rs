//! Routing: the path of a packet over the switches.

use std::sync::Arc;

use rand::Rng;
use rand_pcg::Pcg64Mcg;

use super::settings::Spreading;
use crate::message::HostId;
use crate::packet::Packet;
use crate::topology::Shape;

/// Index of a switch port.
pub(super) type PortId = u32;

/// Next stop of a packet that a port has sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hop {
    /// The output of a switch.
    Port(PortId),
    /// The destination host.
    Host,
}

/// Kind of a switch port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// From a TOR to one of its hosts.
    TorToHost,
    /// From a TOR to a spine.
    TorToSpine,
    /// From a spine to a TOR.
    SpineToTor,
}

/// Port map of a fabric. Ports to hosts have the first indices, followed by ports from TORs to
/// spines ordered by rack, and ports from spines to TORs ordered by spine.
#[derive(Clone, Debug)]
pub(super) struct Routes {
    shape: Shape,
    spreading: Spreading,
    /// Rack of each host: a table look-up is cheaper than a division.
    rack_of: Arc<[u32]>,
    hosts: u32,
    to_spines: u32,
    rng: Pcg64Mcg,
}

impl Routes {
    pub(super) fn new(shape: Shape, spreading: Spreading, rng: Pcg64Mcg) -> Self {
        let hosts = shape.hosts();
        let rack_of = (0..hosts).map(|host| shape.rack_of(host)).collect();
        let to_spines = shape.racks * shape.spines;
        Self { shape, spreading, rack_of, hosts, to_spines, rng }
    }

    /// Returns these routes with other random numbers.
    pub(super) fn with_rng(&self, rng: Pcg64Mcg) -> Self {
        Self { rng, ..self.clone() }
    }

    /// Returns the numbers of racks, hosts and spines.
    pub(super) const fn shape(&self) -> Shape {
        self.shape
    }

    /// Returns the number of ports.
    pub(super) const fn ports(&self) -> u32 {
        self.hosts + 2 * self.to_spines
    }

    /// Returns the kind of a port and the index of its switch: TORs first, then spines.
    pub(super) fn port(&self, port: PortId) -> (Kind, u32) {
        if port < self.hosts {
            (Kind::TorToHost, self.rack_of[port as usize])
        } else if port < self.hosts + self.to_spines {
            (Kind::TorToSpine, (port - self.hosts) / self.shape.spines)
        } else {
            let spine = (port - self.hosts - self.to_spines) / self.shape.racks;
            (Kind::SpineToTor, self.shape.racks + spine)
        }
    }

    /// Returns the rack that a port between a TOR and a spine belongs to or leads to.
    pub(super) fn rack_of_port(&self, port: PortId) -> u32 {
        if port < self.hosts {
            self.rack_of[port as usize]
        } else if port < self.hosts + self.to_spines {
            (port - self.hosts) / self.shape.spines
        } else {
            (port - self.hosts - self.to_spines) % self.shape.racks
        }
    }

    /// Returns the host that a port leads to. The ports between a rack and the spines are
    /// distributed over the hosts of the rack.
    pub(super) fn nearest_host(&self, port: PortId) -> HostId {
        let Shape { hosts_per_rack, spines, racks } = self.shape;
        let spine = match self.port(port).0 {
            Kind::TorToHost => return port,
            Kind::TorToSpine => (port - self.hosts) % spines,
            Kind::SpineToTor => (port - self.hosts - self.to_spines) / racks,
        };
        let host = u64::from(spine) * u64::from(hosts_per_rack) / u64::from(spines);
        self.rack_of_port(port) * hosts_per_rack + host as u32
    }

    /// Returns the first port of a packet's path, where it is enqueued on arrival from its sender.
    #[inline]
    pub(super) fn first(&mut self, packet: &Packet) -> PortId {
        let Packet { from, to, flow, .. } = *packet;
        let (near, far) = (self.rack_of[from as usize], self.rack_of[to as usize]);
        if near == far {
            return to;
        }
        self.hosts + near * self.shape.spines + self.spine(from, to, flow)
    }

    /// Returns the next stop of a packet to `to` that leaves through `port`.
    #[inline]
    pub(super) fn next(&self, port: PortId, to: HostId) -> Hop {
        if port < self.hosts {
            Hop::Host
        } else if port < self.hosts + self.to_spines {
            let spine = (port - self.hosts) % self.shape.spines;
            let down = spine * self.shape.racks + self.rack_of[to as usize];
            Hop::Port(self.hosts + self.to_spines + down)
        } else {
            Hop::Port(to)
        }
    }

    /// Selects the spine for a packet.
    #[inline]
    fn spine(&mut self, from: HostId, to: HostId, flow: u16) -> u32 {
        let chance = match self.spreading {
            Spreading::PerPacket => self.rng.next_u32(),
            Spreading::PerFlow => flow_hash(from, to, flow),
        };
        // The high bits of a product replace a division.
        ((u64::from(chance) * u64::from(self.shape.spines)) >> 32) as u32
    }
}

/// Returns a hash of a flow between two hosts (the finaliser of MurmurHash3).
const fn flow_hash(from: HostId, to: HostId, flow: u16) -> u32 {
    let flow = (flow as u64) << 48;
    let mut hash = (flow | (from as u64) << 32 | to as u64).wrapping_mul(0xff51_afd7_ed55_8ccd);
    hash ^= hash >> 33;
    hash = hash.wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    (hash >> 32) as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;
    use std::collections::BTreeSet;

    fn routes(spreading: Spreading) -> Routes {
        Routes::new("9x16x4".parse().unwrap(), spreading, Pcg64Mcg::seed_from_u64(1))
    }

    fn packet(from: HostId, to: HostId, flow: u16) -> Packet {
        Packet { from, to, flow, ..Packet::default() }
    }

    #[test]
    fn a_packet_reaches_its_host_in_one_or_three_hops() {
        let mut routes = routes(Spreading::PerPacket);
        for (from, to, hops) in [(0, 1, 1), (0, 16, 3), (143, 0, 3), (128, 143, 1)] {
            let mut port = routes.first(&packet(from, to, 0));
            let mut switches = vec![routes.port(port)];
            while let Hop::Port(next) = routes.next(port, to) {
                port = next;
                switches.push(routes.port(port));
            }
            assert_eq!((port, switches.len()), (to, hops));
            let shape = routes.shape;
            assert_eq!(switches.last(), Some(&(Kind::TorToHost, shape.rack_of(to))));
            if hops == 3 {
                assert_eq!(switches[0], (Kind::TorToSpine, shape.rack_of(from)));
                assert!(matches!(switches[1], (Kind::SpineToTor, 9..=12)));
            }
        }
    }

    #[test]
    fn every_port_belongs_to_a_switch() {
        let routes = routes(Spreading::PerFlow);
        assert_eq!(routes.ports(), 144 + 36 + 36);
        assert_eq!(routes.port(routes.ports() - 1), (Kind::SpineToTor, 12));
        assert_eq!(routes.rack_of_port(routes.ports() - 1), 8);
        assert_eq!(routes.rack_of_port(144), 0);
    }

    #[test]
    fn packets_are_sprayed_evenly_and_a_flow_keeps_its_path() {
        let mut spray = routes(Spreading::PerPacket);
        let mut counts = [0; 4];
        for _ in 0..4_000 {
            counts[(spray.first(&packet(0, 16, 0)) - 144) as usize] += 1;
        }
        // Five standard deviations: sqrt(4000 * 0.25 * 0.75) * 5 = 137.
        assert!(counts.iter().all(|count| (863..1_137).contains(count)), "{counts:?}");

        let mut flows = routes(Spreading::PerFlow);
        let mut counts = [0; 4];
        for to in 16..144 {
            let way = flows.first(&packet(0, to, 0));
            assert_eq!(way, flows.first(&packet(0, to, 0)));
            counts[(way - 144) as usize] += 1;
        }
        assert!(counts.iter().all(|count| *count > 10), "{counts:?}");

        let ways: BTreeSet<_> = (0..16).map(|flow| flows.first(&packet(0, 16, flow))).collect();
        assert_eq!(ways.len(), 4, "flows of two hosts have paths of their own");
    }
}
