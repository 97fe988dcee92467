//! The hosts of a loopback network: their addresses, inboxes and limits.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::inbox::Inbox;

/// Limits of a [`LoopbackNetwork`](super::LoopbackNetwork), equal for all its hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoopbackConfig {
    /// Longest packet in bytes, header and payload. Default 1472: the limit of UDP over IPv4 and
    /// Ethernet.
    pub packet_limit: usize,
    /// Maximum number of packets queued for one host. Default 1024, chosen by us: room for several
    /// bursts.
    pub queue: usize,
}

impl Default for LoopbackConfig {
    fn default() -> Self {
        Self { packet_limit: 1472, queue: 1024 }
    }
}

/// All hosts ever created. A closed host stays listed without an inbox, so that its address is not
/// reused and packets to it are refused.
type Hosts = BTreeMap<SocketAddr, Option<Arc<Inbox>>>;

/// The hosts of a network.
#[derive(Debug, Default)]
pub(super) struct HostTable {
    config: LoopbackConfig,
    hosts: Mutex<Hosts>,
    dropped: AtomicU64,
}

/// Result of routing a packet.
pub(super) enum Route {
    Open(Arc<Inbox>),
    /// The address exists, but no host listens on the port.
    PortClosed,
    /// The address does not exist.
    Unreachable,
}

impl HostTable {
    pub(super) fn new(config: LoopbackConfig) -> Self {
        Self { config, ..Self::default() }
    }

    pub(super) fn config(&self) -> LoopbackConfig {
        self.config
    }

    /// Adds a host at `address`. Returns its inbox, or `None` if the address is or was in use.
    pub(super) fn open(&self, address: SocketAddr) -> Option<Arc<Inbox>> {
        let mut hosts = self.lock();
        if hosts.contains_key(&address) {
            return None;
        }
        let inbox = Arc::new(Inbox::new(self.config.queue));
        hosts.insert(address, Some(inbox.clone()));
        Some(inbox)
    }

    pub(super) fn close(&self, address: SocketAddr) {
        self.lock().insert(address, None);
    }

    pub(super) fn route(&self, to: SocketAddr) -> Route {
        let hosts = self.lock();
        match hosts.get(&to) {
            Some(Some(inbox)) => Route::Open(inbox.clone()),
            Some(None) => Route::PortClosed,
            None if has_address(&hosts, to.ip()) => Route::PortClosed,
            None => Route::Unreachable,
        }
    }

    pub(super) fn count_drop(&self) {
        self.dropped.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    fn lock(&self) -> MutexGuard<'_, Hosts> {
        self.hosts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn has_address(hosts: &Hosts, ip: IpAddr) -> bool {
    hosts.range(SocketAddr::new(ip, 0)..).next().is_some_and(|(address, _)| address.ip() == ip)
}
