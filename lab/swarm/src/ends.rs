//! Ends: the instances of the protocol on each host, and how they reach each other.
//!
//! Usually a host has one end, and both have the same number. The endpoint of a host may have
//! *shards* instead: some serve behind one address, where the system assigns each client to one of
//! them, and the same number make calls, each from its own address (ADR 48). Or a host has several
//! *processes*, each with an endpoint that both serves and calls.
//!
//! The number of an end is the number of its host, plus the number of hosts for each preceding end
//! on its host.

use std::net::SocketAddr;

use crate::address::{address, alias, host_at, port, station};
use apus_sim::host::PORT;
use apus_sim::message::HostId;

/// The protocol instances on each host of a fabric.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Division {
    /// One endpoint.
    #[default]
    Whole,
    /// One endpoint with `n` shards that serve and `n` that call.
    Shards(u32),
    /// `n` processes.
    Processes(u32),
}

/// All ends of a fabric.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ends {
    hosts: u32,
    division: Division,
}

impl Ends {
    pub(crate) const fn new(hosts: u32, division: Division) -> Self {
        Self { hosts, division }
    }

    /// Returns the number of ends of each host.
    pub(crate) const fn of_each_host(&self) -> u32 {
        match self.division {
            Division::Whole => 1,
            Division::Shards(shards) => 2 * shards,
            Division::Processes(processes) => processes,
        }
    }

    /// Returns the number of all ends.
    pub(crate) const fn count(&self) -> u32 {
        self.hosts * self.of_each_host()
    }

    /// Returns the host that an end is on.
    pub(crate) const fn host_of(&self, end: HostId) -> HostId {
        match self.division {
            Division::Whole => station(end),
            _ => end % self.hosts,
        }
    }

    /// Returns the place of an end on its host.
    pub(crate) const fn place_of(&self, end: HostId) -> u32 {
        match self.division {
            Division::Whole => 0,
            _ => end / self.hosts,
        }
    }

    /// Returns the ends of a host, by place.
    pub(crate) fn on(&self, host: HostId) -> impl Iterator<Item = HostId> + use<> {
        let hosts = self.hosts;
        (0..self.of_each_host()).map(move |place| host + place * hosts)
    }

    /// Returns the ends of a host that make calls.
    pub(crate) fn callers_on(&self, host: HostId) -> impl Iterator<Item = HostId> + use<> {
        let servers = match self.division {
            Division::Shards(shards) => shards,
            _ => 0,
        };
        self.on(host).skip(servers as usize)
    }

    /// Returns an end that a caller can call on a host; the `number`th if it has several processes.
    pub(crate) fn server_on(&self, host: HostId, caller: HostId, number: u32) -> HostId {
        match self.division {
            Division::Whole => host,
            Division::Shards(shards) => host + self.hosts * self.shard_of(caller, host, shards),
            Division::Processes(processes) => host + self.hosts * (number % processes),
        }
    }

    /// Returns the shard that the system of `server` assigns to `client`: a hash of both addresses.
    const fn shard_of(&self, client: HostId, server: HostId, shards: u32) -> u32 {
        let path = (client as u64) << 32 | server as u64;
        (path.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as u32 % shards
    }

    /// Returns the socket address of an end. Shards that serve have the same address.
    pub(crate) fn address_of(&self, end: HostId) -> SocketAddr {
        let place = match (self.division, self.place_of(end)) {
            (Division::Whole, _) => return address(end),
            (Division::Shards(shards), place) if place < shards => 0,
            (_, place) => place,
        };
        address(alias(self.host_of(end), place as u16))
    }

    /// Returns the end that `own` reaches at an address.
    pub(crate) fn at(&self, own: HostId, address: SocketAddr) -> HostId {
        let peer = host_at(address);
        let (host, place) = (station(peer), u32::from(port(peer) - PORT));
        match self.division {
            Division::Whole => peer,
            Division::Shards(_) if place == 0 => self.server_on(host, own, 0),
            _ => host + self.hosts * place,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_caller_and_its_server_find_each_other_by_address() {
        for division in [Division::Whole, Division::Shards(3), Division::Processes(4)] {
            let ends = Ends::new(5, division);
            for caller in ends.callers_on(2) {
                let server = ends.server_on(4, caller, 1);
                assert_eq!((ends.host_of(caller), ends.host_of(server)), (2, 4));
                assert_eq!(ends.at(caller, ends.address_of(server)), server, "{division:?}");
                assert_eq!(ends.at(server, ends.address_of(caller)), caller, "{division:?}");
            }
        }
    }

    #[test]
    fn every_end_is_on_one_host() {
        let ends = Ends::new(3, Division::Shards(2));
        let all: Vec<HostId> = (0..3).flat_map(|host| ends.on(host)).collect();
        assert_eq!(all, [0, 3, 6, 9, 1, 4, 7, 10, 2, 5, 8, 11]);
        assert_eq!(ends.count(), 12);
        assert_eq!(ends.callers_on(1).collect::<Vec<_>>(), [7, 10]);
    }

    #[test]
    fn all_shards_get_clients() {
        let ends = Ends::new(4, Division::Shards(2));
        let callers = (0..4).flat_map(|host| ends.callers_on(host));
        let mut servers: Vec<HostId> = callers.map(|caller| ends.server_on(0, caller, 0)).collect();
        servers.sort_unstable();
        servers.dedup();
        assert_eq!(servers, [0, 4]);
    }

    /// An alias of a hostile host is an end that is not listed.
    #[test]
    fn an_alias_is_on_its_host() {
        let ends = Ends::new(4, Division::Whole);
        let hostile = alias(3, 7);
        assert_eq!(ends.host_of(hostile), 3);
        assert_eq!(ends.at(0, ends.address_of(hostile)), hostile);
    }
}
