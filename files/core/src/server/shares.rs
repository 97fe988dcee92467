//! Shares of hosts in a bounded resource of the server.
//!
//! Each resource has a limit for all, a limit for each host, and a part that only hosts with
//! little of it may use. So one host cannot use up a resource, and a host that begins finds room
//! although others are large.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

/// A host, or a user of the server's own host: local users do not share their limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Host {
    pub(super) ip: IpAddr,
    pub(super) user: Option<u32>,
}

impl Host {
    /// Returns the host of an address. A host with IPv6 has 2^64 addresses and counts once.
    pub(super) fn of(peer: SocketAddr, user: Option<u32>) -> Self {
        let ip = match peer.ip().to_canonical() {
            IpAddr::V6(ip) => IpAddr::V6((ip.to_bits() >> 64 << 64).into()),
            ip => ip,
        };
        Self { ip, user }
    }
}

/// Limits of a resource.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// Of all hosts together.
    pub(super) total: usize,
    /// Of each host.
    pub(super) host: usize,
    /// Below it, a host may also use the last quarter of the total.
    pub(super) small: usize,
}

/// What each host has.
#[derive(Debug)]
pub(super) struct Shares {
    limits: Limits,
    total: usize,
    hosts: BTreeMap<Host, usize>,
}

impl Shares {
    pub(super) const fn new(limits: Limits) -> Self {
        Self { limits, total: 0, hosts: BTreeMap::new() }
    }

    /// Returns whether a host may have `more`.
    pub(super) fn has_room(&self, host: Host, more: usize) -> bool {
        let Limits { total, host: most, small } = self.limits;
        let own = self.hosts.get(&host).copied().unwrap_or_default().saturating_add(more);
        let available = if own <= small { total } else { total - total / 4 };
        own <= most && self.total.saturating_add(more) <= available
    }

    pub(super) fn add(&mut self, host: Host, more: usize) {
        if more > 0 {
            *self.hosts.entry(host).or_default() += more;
            self.total += more;
        }
    }

    pub(super) fn remove(&mut self, host: Host, less: usize) {
        let Some(own) = self.hosts.get_mut(&host) else { return };
        let less = less.min(*own);
        *own -= less;
        self.total -= less;
        if *own == 0 {
            self.hosts.remove(&host);
        }
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.total == 0 && self.hosts.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits { total: 100, host: 60, small: 5 };

    fn host(number: u8) -> Host {
        Host::of(SocketAddr::from(([10, 0, 0, number], 1)), None)
    }

    #[test]
    fn the_last_quarter_is_for_hosts_that_have_little() {
        let mut shares = Shares::new(LIMITS);
        assert!(shares.has_room(host(1), 60) && !shares.has_room(host(1), 61));
        shares.add(host(1), 60);
        assert!(shares.has_room(host(2), 15) && !shares.has_room(host(2), 16));
        shares.add(host(2), 15);
        assert!(shares.has_room(host(3), 5) && !shares.has_room(host(3), 6));
        for number in 3..8 {
            shares.add(host(number), 5);
        }
        assert!(!shares.has_room(host(8), 1));
        shares.remove(host(2), 15);
        assert!(shares.has_room(host(8), 1));
        for number in 1..8 {
            shares.remove(host(number), 100);
        }
        assert!(shares.is_empty());
    }

    #[test]
    fn a_host_has_one_share_for_all_its_ports_and_addresses() {
        let of = |address: &str| Host::of(address.parse().unwrap(), None);
        assert_eq!(of("10.0.0.1:1"), of("[::ffff:10.0.0.1]:2"));
        assert_eq!(of("[fd00::1]:1"), of("[fd00::2]:1"));
        assert_ne!(of("[fd00::1]:1"), of("[fd00:0:0:1::1]:1"));
        let local = "127.0.0.1:1".parse().unwrap();
        assert_ne!(Host::of(local, Some(1)), Host::of(local, Some(2)));
    }
}
