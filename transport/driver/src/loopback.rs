//! Loopback: a network in memory, for tests and examples.
//!
//! A [`LoopbackNetwork`] creates [`LoopbackHost`]s, each of which is a driver. Packets never leave
//! the process, the behaviour is deterministic, and the creator of the network sets every limit.
//!
//! # Invariants
//!
//! - **LOOPBACK-1** A host's descriptor is readable exactly while a packet or a report waits in its
//!   inbox.
//! - **LOOPBACK-2** An inbox never holds more than [`LoopbackConfig::queue`] packets and as many
//!   reports; further ones are dropped and counted.
//! - **LOOPBACK-3** Packets of one sender arrive in the order in which they were sent.

mod host;
mod host_table;
mod inbox;

pub use host::LoopbackHost;
pub use host_table::LoopbackConfig;

use std::net::SocketAddr;
use std::sync::Arc;

use host_table::HostTable;

/// A network in memory. Clones refer to the same network.
#[derive(Clone, Debug, Default)]
pub struct LoopbackNetwork {
    hosts: Arc<HostTable>,
}

impl LoopbackNetwork {
    /// Returns a network with the default limits.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns a network with the given limits.
    #[must_use]
    pub fn with_config(config: LoopbackConfig) -> Self {
        Self { hosts: Arc::new(HostTable::new(config)) }
    }

    /// Returns a new host with its own IPv4 address, starting at 10.0.0.1.
    ///
    /// # Panics
    ///
    /// If the process has no file descriptor left.
    #[must_use]
    pub fn host(&self) -> LoopbackHost {
        self.host_in(|n| SocketAddr::from(((0x0a00_0000 + n).to_be_bytes(), 1)))
    }

    /// Returns a new host with its own IPv6 address, starting at `fd00::1`.
    ///
    /// # Panics
    ///
    /// If the process has no file descriptor left.
    #[must_use]
    pub fn host_v6(&self) -> LoopbackHost {
        self.host_in(|n| SocketAddr::from(((0xfd00_u128 << 112 | u128::from(n)).to_be_bytes(), 1)))
    }

    /// Returns a new host at `address`, or `None` if the address is or was in use.
    ///
    /// # Panics
    ///
    /// If the process has no file descriptor left.
    #[must_use]
    pub fn host_at(&self, address: SocketAddr) -> Option<LoopbackHost> {
        let inbox = self.hosts.open(address)?;
        Some(LoopbackHost::new(self.hosts.clone(), address, inbox))
    }

    /// Returns the number of packets dropped because a host's inbox was full.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.hosts.dropped()
    }

    /// Returns a new host at the first free address of `1`, `2`, ….
    fn host_in(&self, address: impl Fn(u32) -> SocketAddr) -> LoopbackHost {
        (1..=u32::MAX).find_map(|n| self.host_at(address(n))).expect("fewer than 2^32 hosts")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Burst, Driver, NetworkError};

    fn reports(receive: &mut dyn crate::ReceiveHalf) -> Vec<(SocketAddr, NetworkError)> {
        let mut reports = Vec::new();
        receive.reports(&mut |report| reports.push((report.peer, report.error)));
        reports
    }

    #[test]
    fn a_full_inbox_drops_and_counts() {
        let network =
            LoopbackNetwork::with_config(LoopbackConfig { queue: 2, ..LoopbackConfig::default() });
        let server = network.host();
        let to = server.local_addr();
        let (mut transmit, _receive) = Box::new(network.host()).split();
        for _ in 0..5 {
            transmit.send(&Burst::single(to, b"packet")).unwrap();
        }
        transmit.flush().unwrap();
        let (_transmit, mut receive) = Box::new(server).split();
        assert_eq!(receive.receive(64).unwrap(), 2);
        assert_eq!(network.dropped(), 3);
    }

    #[test]
    fn an_unknown_address_differs_from_a_closed_port() {
        let network = LoopbackNetwork::new();
        let neighbour = network.host().local_addr();
        let (mut transmit, mut receive) = Box::new(network.host()).split();
        let other_port = SocketAddr::new(neighbour.ip(), 99);
        let nowhere = SocketAddr::from(([192, 0, 2, 1], 1));
        for to in [neighbour, other_port, nowhere] {
            transmit.send(&Burst::single(to, b"packet")).unwrap();
        }
        transmit.flush().unwrap();
        let expected = [
            (neighbour, NetworkError::PortClosed),
            (other_port, NetworkError::PortClosed),
            (nowhere, NetworkError::HostUnreachable),
        ];
        assert_eq!(reports(&mut *receive), expected);
    }

    #[test]
    fn an_address_is_never_reused() {
        let network = LoopbackNetwork::new();
        let first = network.host().local_addr();
        assert_ne!(network.host().local_addr(), first);
        assert!(network.host_at(first).is_none());
        assert_eq!(network.host_v6().local_addr(), "[fd00::1]:1".parse().unwrap());
    }
}
