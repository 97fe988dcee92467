//! Loopback: a network in memory, for tests and examples.
//!
//! A [`LoopbackNetwork`] makes [`LoopbackHost`]s, each of which is a driver. Packets never leave
//! the process, nothing is random, and the creator of the network sets every limit.
//!
//! # Invariants
//!
//! - **LOOPBACK-1** A host's descriptor is readable exactly while a packet or a report waits in its
//!   inbox.
//! - **LOOPBACK-2** An inbox never holds more than [`LoopbackConfig::queue`] packets and as many
//!   reports; further ones are dropped and counted.
//! - **LOOPBACK-3** Packets of one sender arrive in the order in which they were sent.

mod host;
mod inbox;

pub use host::LoopbackHost;

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use inbox::Inbox;

/// Limits of a [`LoopbackNetwork`], equal for all its hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoopbackConfig {
    /// Longest packet in bytes, header and payload. Default 1472: the limit of UDP over IPv4 and
    /// Ethernet.
    pub packet_limit: usize,
    /// Maximum number of packets that wait for one host. Default 1024, chosen by us: room for
    /// several bursts.
    pub queue: usize,
}

impl Default for LoopbackConfig {
    fn default() -> Self {
        Self { packet_limit: 1472, queue: 1024 }
    }
}

/// A network in memory. Clones refer to the same network.
#[derive(Clone, Debug, Default)]
pub struct LoopbackNetwork {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    config: LoopbackConfig,
    /// All hosts ever made. A closed host stays listed, so that its address is not reused and
    /// packets to it are refused.
    hosts: Mutex<BTreeMap<SocketAddr, Option<Arc<Inbox>>>>,
    dropped: AtomicU64,
}

/// Result of routing a packet.
enum Route {
    Open(Arc<Inbox>),
    /// The address exists, but no host listens on the port.
    PortClosed,
    /// The address does not exist.
    Unreachable,
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
        Self { shared: Arc::new(Shared { config, ..Shared::default() }) }
    }

    /// Returns a new host with an IPv4 address of its own; 10.0.0.1 is the first one.
    ///
    /// # Panics
    ///
    /// If the process has no file descriptor left.
    #[must_use]
    pub fn host(&self) -> LoopbackHost {
        self.host_in(|n| SocketAddr::from(((0x0a00_0000 + n).to_be_bytes(), 1)))
    }

    /// Returns a new host with an IPv6 address of its own; `fd00::1` is the first one.
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
        let mut hosts = self.shared.hosts();
        if hosts.contains_key(&address) {
            return None;
        }
        let inbox = Arc::new(Inbox::new(self.shared.config.queue));
        hosts.insert(address, Some(inbox.clone()));
        Some(LoopbackHost::new(self.clone(), address, inbox))
    }

    /// Returns the number of packets dropped because a host's inbox was full.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.shared.dropped.load(Ordering::Relaxed)
    }

    /// Returns a new host at the first free one of the addresses `1`, `2`, ….
    fn host_in(&self, address: impl Fn(u32) -> SocketAddr) -> LoopbackHost {
        (1..=u32::MAX).find_map(|n| self.host_at(address(n))).expect("fewer than 2^32 hosts")
    }

    fn config(&self) -> LoopbackConfig {
        self.shared.config
    }

    fn route(&self, to: SocketAddr) -> Route {
        let hosts = self.shared.hosts();
        match hosts.get(&to) {
            Some(Some(inbox)) => Route::Open(inbox.clone()),
            Some(None) => Route::PortClosed,
            None if Self::has_address(&hosts, to.ip()) => Route::PortClosed,
            None => Route::Unreachable,
        }
    }

    fn has_address(hosts: &BTreeMap<SocketAddr, Option<Arc<Inbox>>>, ip: IpAddr) -> bool {
        hosts.range(SocketAddr::new(ip, 0)..).next().is_some_and(|(address, _)| address.ip() == ip)
    }

    fn count_drop(&self) {
        self.shared.dropped.fetch_add(1, Ordering::Relaxed);
    }

    fn close(&self, address: SocketAddr) {
        self.shared.hosts().insert(address, None);
    }
}

impl Shared {
    fn hosts(&self) -> std::sync::MutexGuard<'_, BTreeMap<SocketAddr, Option<Arc<Inbox>>>> {
        self.hosts.lock().unwrap_or_else(PoisonError::into_inner)
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
