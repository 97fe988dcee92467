//! The shared-memory path of an endpoint: how it is opened, and how it connects to peers.

use apus_local::{ConnectError, Local, LocalConfig, LocalLimits, PeerName};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::Arc;

/// The shared-memory path of an endpoint.
#[derive(Clone, Debug)]
pub(crate) struct Path {
    pub(super) local: Arc<Local>,
    /// The IP address of local clients: that of this host, in the family of the endpoint's socket.
    pub(super) host: IpAddr,
}

impl Path {
    /// Returns the connections to local peers.
    pub(crate) fn local(&self) -> Arc<Local> {
        self.local.clone()
    }

    /// Opens the path of an endpoint at `address`. If it serves, clients find it from now on.
    ///
    /// # Errors
    ///
    /// [`ConnectError`]: the name of the endpoint is in use, or the system grants no descriptors or
    /// no random number.
    pub(crate) fn open(
        address: SocketAddr,
        serve: bool,
        core: &apus_proto::Config,
        mut config: LocalConfig,
    ) -> Result<Self, ConnectError> {
        let bytes = |limit: u64| usize::try_from(limit).unwrap_or(usize::MAX);
        config.limits = LocalLimits {
            max_message: u32::try_from(core.max_message()).unwrap_or(u32::MAX),
            max_send_bytes: bytes(core.max_send_bytes_per_peer()),
            max_receive_bytes: bytes(core.max_receive_bytes_per_peer()),
        };
        config.identity = new_identity(address.port())?;
        let name = PeerName::of(address);
        let local = Local::new(serve.then_some(&name), config)?;
        let host = match address {
            SocketAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
            SocketAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
        };
        Ok(Self { local: Arc::new(local), host })
    }

    /// Starts a connection to the endpoint at `to`, if that is an address of this host. Returns the
    /// endpoint's name; `None` if there is none, or none to which a connection is possible now.
    ///
    /// Makes system calls of about 20 µs: the caller holds no lock.
    pub(crate) fn connect(&self, to: SocketAddr) -> Option<PeerName> {
        let to = SocketAddr::new(to.ip().to_canonical(), to.port());
        if !is_of_this_host(to.ip()) {
            return None;
        }
        for name in PeerName::candidates(to) {
            match self.local.start_connect(&name) {
                Ok(()) => return Some(name),
                Err(ConnectError::NotListening) => {}
                // Another user's endpoint, too many pairs, a full queue: tried again later.
                Err(_) => return None,
            }
        }
        None
    }

    /// Returns the address of the peer of a pair, with the port that the peer claims.
    pub(super) fn address_of(&self, pair: &apus_local::Pair) -> SocketAddr {
        // The identity that `open` sets, or what a hostile peer claims.
        SocketAddr::new(self.host, pair.peer().identity as u16)
    }
}

/// Returns the identity of an endpoint with this port: the port in the lowest 16 bits, and a random
/// number that is used for nothing else, so that peers learn nothing of other secrets from it.
fn new_identity(port: u16) -> Result<u64, ConnectError> {
    let mut random = [0; 8];
    getrandom::fill(&mut random).map_err(|error| ConnectError::System {
        action: "draw a random number",
        source: std::io::Error::other(error),
    })?;
    Ok(u64::from_ne_bytes(random) << 16 | u64::from(port))
}

/// Returns whether `ip` is an address of this host: only those can be bound.
fn is_of_this_host(ip: IpAddr) -> bool {
    ip.is_loopback() || ip.is_unspecified() || UdpSocket::bind((ip, 0)).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_addresses_of_this_host_are_connected_to() {
        let addresses = ["127.0.0.1", "127.8.9.1", "::1", "0.0.0.0", "192.0.2.1", "2001:db8::1"];
        let own = addresses.map(|ip| is_of_this_host(ip.parse().unwrap()));
        assert_eq!(own, [true, true, true, true, false, false]);
    }
}
