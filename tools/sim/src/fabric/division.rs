//! Division of a fabric into regions that are simulated at the same time.
//!
//! A region has some hosts, the links to them, and its part of the links between their racks and the
//! spines. Hosts are divided evenly and in their order. The links between a rack and the spines are
//! dealt to the hosts of the rack, so that a region has as many of them as it has hosts.

use crate::message::HostId;

use super::route::{PortId, Routes};

/// The place of a port: its region, and its index among the ports of that.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) region: u32,
    pub(super) index: u32,
}

/// Division of the hosts and ports of a fabric into regions.
#[derive(Debug)]
pub(super) struct Division {
    hosts: u32,
    regions: u32,
    /// Place of each port.
    places: Box<[Place]>,
    /// Ports of each region, those to hosts first.
    ports: Box<[Vec<PortId>]>,
}

impl Division {
    /// Divides a fabric with these routes. There are at least as many hosts as regions.
    pub(super) fn new(routes: &Routes, regions: u32) -> Self {
        let mut division = Self {
            hosts: routes.hosts(),
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

    /// Returns the region of a host.
    pub(super) fn region_of(&self, host: HostId) -> u32 {
        (u64::from(host) * u64::from(self.regions) / u64::from(self.hosts)) as u32
    }

    /// Returns the hosts of a region.
    pub(super) fn hosts(&self, region: u32) -> std::ops::Range<HostId> {
        let first = |region: u32| {
            (u64::from(region) * u64::from(self.hosts)).div_ceil(u64::from(self.regions)) as u32
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
        for (shape, regions) in [("9x16x4", 8), ("1x16x0", 8), ("3x2x5", 4), ("2x5x1", 3)] {
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
    fn regions_of_the_papers_fabric_have_as_much_to_do() {
        let division = Division::new(&routes("9x16x4"), 8);
        let hosts: Vec<usize> = (0..8).map(|region| division.hosts(region).len()).collect();
        let ports: Vec<usize> = (0..8).map(|region| division.ports(region).len()).collect();
        assert_eq!(hosts, [18; 8]);
        assert!(ports.iter().all(|ports| (26..=28).contains(ports)), "{ports:?}");
    }
}
