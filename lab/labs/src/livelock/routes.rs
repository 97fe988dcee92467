//! The routes of the router.

use std::net::Ipv4Addr;

use ipnet::Ipv4Net;
use prefix_trie::PrefixMap;

/// The target of a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hop {
    /// Out, to the neighbour with that Ethernet address.
    Out([u8; 6]),
    /// Nowhere: packets are dropped.
    Nowhere,
}

/// A router's table.
#[derive(Debug)]
pub(super) struct Routes {
    table: PrefixMap<Ipv4Net, Hop>,
}

/// The neighbour that every packet of the experiment is sent to. It does not exist, like the
/// paper's phantom entry in the ARP table.
pub(super) const PHANTOM: [u8; 6] = [0x02, 0, 0x0a, 0x4e, 0xff, 0xff];

/// Number of destination networks, of the form 10.2.N.0/24.
pub(super) const NETWORKS: u8 = 64;

impl Routes {
    /// Returns a table of these routes.
    pub(super) fn new(routes: impl IntoIterator<Item = (Ipv4Net, Hop)>) -> Self {
        Self { table: routes.into_iter().collect() }
    }

    /// Returns the experiment's table: each network has a route, below wider routes that lead
    /// nowhere, so the first match is never the longest.
    pub(super) fn of_experiment() -> Self {
        let net = |address: [u8; 4], len| {
            Ipv4Net::new(Ipv4Addr::from(address), len).expect("at most 32 bits")
        };
        let wide = [net([0, 0, 0, 0], 0), net([10, 0, 0, 0], 8), net([10, 2, 0, 0], 16)];
        let wide = wide.into_iter().map(|net| (net, Hop::Nowhere));
        let narrow = (0..NETWORKS).map(|n| (net([10, 2, n, 0], 24), Hop::Out(PHANTOM)));
        Self::new(wide.chain(narrow))
    }

    /// Returns the hop of the longest matching prefix.
    pub(super) fn find(&self, destination: [u8; 4]) -> Option<Hop> {
        let host = Ipv4Net::from(Ipv4Addr::from(destination));
        self.table.get_lpm(&host).map(|(_, hop)| *hop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn routes(list: &[(&str, u8)]) -> Routes {
        let route = |&(net, hop): &(&str, u8)| (net.parse().unwrap(), Hop::Out([hop; 6]));
        Routes::new(list.iter().map(route))
    }

    #[test]
    fn the_longest_prefix_wins() {
        let list =
            [("10.0.0.0/8", 8), ("10.2.0.0/16", 16), ("10.2.3.0/24", 24), ("10.2.3.4/32", 32)];
        let table = routes(&list);
        let hop = |address| table.find(address);
        assert_eq!(hop([10, 2, 3, 4]), Some(Hop::Out([32; 6])));
        assert_eq!(hop([10, 2, 3, 5]), Some(Hop::Out([24; 6])));
        assert_eq!(hop([10, 2, 4, 4]), Some(Hop::Out([16; 6])));
        assert_eq!(hop([10, 255, 255, 255]), Some(Hop::Out([8; 6])));
        assert_eq!(hop([11, 0, 0, 0]), None);
        assert_eq!(routes(&[("0.0.0.0/0", 1)]).find([255; 4]), Some(Hop::Out([1; 6])));
    }

    #[test]
    fn only_the_experiments_networks_lead_out() {
        let table = Routes::of_experiment();
        for n in 0..NETWORKS {
            assert_eq!(table.find([10, 2, n, 200]), Some(Hop::Out(PHANTOM)));
        }
        for other in [[10, 2, NETWORKS, 1], [10, 3, 0, 1], [192, 0, 2, 1]] {
            assert_eq!(table.find(other), Some(Hop::Nowhere));
        }
    }
}
