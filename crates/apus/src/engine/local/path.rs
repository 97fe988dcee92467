//! How is the way through memory opened, and how does an endpoint meet its peers there?

use apus_local::{ConnectError, Local, LocalConfig, LocalLimits, PeerName};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::Arc;

/// An endpoint's way through memory.
#[derive(Clone, Debug)]
pub(crate) struct Path {
    pub(super) local: Arc<Local>,
    /// The address that local clients have: that of this host, in the family of the endpoint's socket.
    pub(super) host: IpAddr,
}

impl Path {
    /// For an endpoint with this address. If it serves, it can be found from now on.
    ///
    /// # Errors
    ///
    /// [`ConnectError`]: the name of the endpoint is taken, or the system has no descriptors left.
    pub(crate) fn open(
        address: SocketAddr,
        serve: bool,
        core: &apus_proto::Config,
        mut config: LocalConfig,
        seed: u64,
    ) -> Result<Self, ConnectError> {
        let bytes = |limit: u64| usize::try_from(limit).unwrap_or(usize::MAX);
        config.limits = LocalLimits {
            max_message: u32::try_from(core.max_message()).unwrap_or(u32::MAX),
            max_send_bytes: bytes(core.max_send_bytes_per_peer()),
            max_receive_bytes: bytes(core.max_receive_bytes_per_peer()),
        };
        config.identity = seed << 16 | u64::from(address.port());
        let name = PeerName::of(address);
        let local = Local::new(serve.then_some(&name), config)?;
        let host = match address {
            SocketAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
            SocketAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
        };
        Ok(Self { local: Arc::new(local), host })
    }

    /// Greets whoever listens at `to`, if that is on this host. The name that it has there; `None`: nobody, or nobody
    /// who can be greeted.
    ///
    /// Makes system calls, 20 µs or so: not under a lock.
    pub(crate) fn connect(&self, to: SocketAddr) -> Option<PeerName> {
        let to = SocketAddr::new(to.ip().to_canonical(), to.port());
        if !is_of_this_host(to.ip()) {
            return None;
        }
        for name in PeerName::candidates(to) {
            match self.local.start_connect(&name) {
                Ok(()) => return Some(name),
                Err(ConnectError::NotListening) => {}
                // Another user's, too many pairs, a full queue: perhaps later.
                Err(_) => return None,
            }
        }
        None
    }

    /// The address of the peer at the other end: its port is what it says.
    pub(super) fn address_of(&self, pair: &apus_local::Pair) -> SocketAddr {
        // The lowest 16 bits of what `open` has put there.
        SocketAddr::new(self.host, pair.peer().identity as u16)
    }
}

/// Whether `ip` is an address of this host: only those can be bound.
fn is_of_this_host(ip: IpAddr) -> bool {
    ip.is_loopback() || ip.is_unspecified() || UdpSocket::bind((ip, 0)).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_addresses_of_this_host_are_greeted() {
        let addresses = ["127.0.0.1", "127.8.9.1", "::1", "0.0.0.0", "192.0.2.1", "2001:db8::1"];
        let own = addresses.map(|ip| is_of_this_host(ip.parse().unwrap()));
        assert_eq!(own, [true, true, true, true, false, false]);
    }
}
