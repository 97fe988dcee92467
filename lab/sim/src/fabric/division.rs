//! Division of a fabric into regions that are simulated at the same time.
//!
//! A region has some hosts, the links to them, and its part of the links between their racks and
//! the spines. If there are enough racks, it has whole racks, so that a packet enters another
//! region at most once. Otherwise hosts are divided evenly and in order, and the links between a
//! rack and the spines are distributed over the hosts of the rack.

use std::ops::Range;

use super::route::{PortId, Routes};
use crate::message::HostId;
use crate::topology::Shape;

/// The place of a port: its region, and its index among the ports of the region.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) region: u32,
    pub(super) index: u32,
}

/// Division of the hosts and ports of a fabric into regions.
#[derive(Debug)]
pub(super) struct Division {
    /// Each group of consecutive hosts is in one region: a rack, or a single host.
    groups: u32,
    hosts_per_group: u32,
    regions: u32,
    /// Place of each port.
    places: Box<[Place]>,
    /// Ports of each region, ports to hosts first.
    ports: Box<[Vec<PortId>]>,
}

impl Division {
    /// Divides a fabric with these routes. There are at least as many hosts as regions.
    pub(super) fn new(routes: &Routes, regions: u32) -> Self {
        let Shape { racks, hosts_per_rack, .. } = routes.shape();
        let has_racks = regions <= racks;
        let hosts_per_group = if has_racks { hosts_per_rack } else { 1 };
        let mut division = Self {
            groups: racks * hosts_per_rack / hosts_per_group,
            hosts_per_group,
            regions,
            places: vec![Place::default(); routes.ports() as usize].into(),
            ports: vec![Vec::new(); regions as usize].into(),
        };
        for port in 0..routes.ports() {
            let region = division.region_of(routes.nearest_host(port));
            let ports = &mut division.ports[region as usize];
            division.places[port as usize] = Place { region, index: ports.len() as u32 };
            ports.push(port);
        }
        division
    }

    /// Returns the number of regions.
    pub(super) const fn regions(&self) -> u32 {
        self.regions
    }

    /// Returns the region of a host.
    pub(super) fn region_of(&self, host: HostId) -> u32 {
        let group = u64::from(host / self.hosts_per_group);
        (group * u64::from(self.regions) / u64::from(self.groups)) as u32
    }

    /// Returns the hosts of a region.
    pub(super) fn hosts(&self, region: u32) -> Range<HostId> {
        let first = |region: u32| {
            let groups = u64::from(region) * u64::from(self.groups);
            groups.div_ceil(u64::from(self.regions)) as u32 * self.hosts_per_group
        };
        first(region)..first(region + 1)
    }

    /// Returns the ports of a region. The port to its `n`th host is the `n`th.
    pub(super) fn ports(&self, region: u32) -> &[PortId] {
        &self.ports[region as usize]
    }

    /// Returns the place of a port.
    #[inline]
    pub(super) fn place(&self, port: PortId) -> Place {
        self.places[port as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::super::settings::Spreading;
    use super::*;
    use rand::SeedableRng;
    use rand_pcg::Pcg64Mcg;

    fn routes(shape: &str) -> Routes {
        let rng = Pcg64Mcg::seed_from_u64(1);
        Routes::new(shape.parse().unwrap(), Spreading::PerPacket, rng)
    }

    #[test]
    fn every_port_has_one_place() {
        for (shape, regions) in
            [("9x16x4", 9), ("9x16x4", 10), ("1x16x0", 8), ("3x2x5", 4), ("2x5x1", 3)]
        {
            let routes = routes(shape);
            let division = Division::new(&routes, regions);
            let mut ports = Vec::new();
            for region in 0..regions {
                let hosts = division.hosts(region);
                assert!(!hosts.is_empty(), "{shape}");
                assert!(hosts.clone().all(|host| division.region_of(host) == region), "{shape}");
                assert_eq!(division.ports(region)[..hosts.len()], hosts.collect::<Vec<_>>());
                for (index, &port) in (0..).zip(division.ports(region)) {
                    assert_eq!(division.place(port), Place { region, index });
                    ports.push(port);
                }
            }
            ports.sort_unstable();
            assert_eq!(ports, (0..routes.ports()).collect::<Vec<_>>(), "{shape}");
        }
    }

    #[test]
    fn regions_have_whole_racks_or_as_many_hosts() {
        let of = |shape, regions| {
            let division = Division::new(&routes(shape), regions);
            let numbers = |region| (division.hosts(region).len(), division.ports(region).len());
            (0..regions).map(numbers).collect::<Vec<_>>()
        };
        assert_eq!(of("9x16x4", 9), [(16, 24); 9]);
        assert_eq!(of("5x4x2", 2), [(12, 24), (8, 16)]);
        assert_eq!(of("1x16x0", 8), [(2, 2); 8]);
        assert_eq!(of("2x16x4", 8), [(4, 6); 8]);
    }
}
