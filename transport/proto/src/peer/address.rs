//! The address that identifies a peer.

use apus_wire::Profile;
use std::net::SocketAddr;

/// The address of a packet's sender or receiver. In the udp profile the address and UDP port of the
/// peer's endpoint; in the kernel profile the host's address with port 0.
pub type Address = SocketAddr;

/// Returns the address that identifies the peer at `address`: the host alone in the kernel profile,
/// the endpoint in the udp profile. An IPv4-mapped IPv6 address (RFC 4291 section 2.5.5.2) becomes
/// the IPv4 address, because the host's packets have that source.
pub(crate) fn peer_address(profile: Profile, mut address: Address) -> Address {
    if let Address::V6(v6) = address
        && let Some(v4) = v6.ip().to_ipv4_mapped()
    {
        address = Address::from((v4, v6.port()));
    }
    if profile == Profile::Kernel {
        address.set_port(0);
    }
    address
}
