//! The shared-memory path of an endpoint: how it is opened, and how it connects to peers.

use apus_local::{ConnectError, Local, LocalConfig, LocalLimits, PeerName, PeerPolicy, udp_owner};
use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::Arc;

/// The shared-memory path of an endpoint.
#[derive(Clone, Debug)]
pub(crate) struct Path {
    pub(super) local: Arc<Local>,
    /// The IP address of local clients: this host's address, in the family of the endpoint's
    /// socket.
    pub(super) host: IpAddr,
    /// Whether the kernel reports the owners of UDP sockets, so that a peer must own its socket.
    checks_owner: bool,
    /// Whether another process has the endpoint's name, so that clients of this host do not find
    /// it.
    is_name_taken: bool,
}

/// Start of a connection to a peer.
#[derive(Clone, Debug)]
pub(crate) enum ConnectStart {
    /// The handshake with the endpoint of this name has started.
    Started(PeerName),
    /// The peer's queue is full for a moment.
    Busy,
    /// There is no such endpoint on this host, or none that accepts this one.
    Absent,
    /// A process has the peer's name and not its UDP socket.
    Impostor,
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
        // Tells whether the kernel answers: this endpoint's own socket exists.
        let checks_owner = udp_owner(address).is_some();
        if !checks_owner && config.peer_policy != PeerPolicy::SameUser {
            // Another user could take a name undetected.
            return Err(ConnectError::NotListening);
        }
        let served = Local::new(serve.then_some(&name), config.clone());
        let is_name_taken = matches!(&served, Err(ConnectError::System { source, .. })
            if source.kind() == ErrorKind::AddrInUse);
        // Calls to other endpoints go through shared memory all the same.
        let local = if is_name_taken { Local::new(None, config)? } else { served? };
        let host = match address {
            SocketAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
            SocketAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
        };
        Ok(Self { local: Arc::new(local), host, checks_owner, is_name_taken })
    }

    /// Returns whether another process has the endpoint's name.
    pub(crate) const fn is_name_taken(&self) -> bool {
        self.is_name_taken
    }

    /// Starts a connection to the endpoint at `to`, if that is an address of this host.
    ///
    /// Makes system calls of about 30 µs: the caller holds no lock.
    pub(crate) fn connect(&self, to: SocketAddr) -> ConnectStart {
        let to = SocketAddr::new(to.ip().to_canonical(), to.port());
        if !is_of_this_host(to.ip()) {
            return ConnectStart::Absent;
        }
        for name in PeerName::candidates(to) {
            match self.local.start_connect(&name, self.checks_owner.then_some(to)) {
                Ok(()) => return ConnectStart::Started(name),
                Err(ConnectError::NotListening) => {}
                Err(ConnectError::NotOwner { .. }) => return ConnectStart::Impostor,
                Err(ConnectError::Busy) => return ConnectStart::Busy,
                // Another user's endpoint, too many pairs: tried again later.
                Err(_) => return ConnectStart::Absent,
            }
        }
        ConnectStart::Absent
    }

    /// Returns the address of the peer of a pair, with the port that the peer claims.
    pub(super) fn address_of(&self, pair: &apus_local::Pair) -> SocketAddr {
        // The identity that `open` sets, or the claim of a hostile peer.
        SocketAddr::new(self.host, pair.peer().identity as u16)
    }
}

/// Returns the identity of an endpoint with this port: the port in the lowest 16 bits, and a random
/// number that has no other use, so that it reveals no other secret to peers.
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
