//! Packet sockets: all packets of an interface, with their Ethernet headers.
//!
//! See packet(7). A packet socket needs CAP_NET_RAW in the user namespace that owns the network
//! namespace. A process that created both has that capability.

use std::os::fd::{AsRawFd, OwnedFd};

use nix::sys::socket::{AddressFamily, LinkAddr, SockFlag, SockProtocol, SockType, bind, socket};

use apus_measure::error::{Doing, Error};

/// Direction of a packet socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// Receives incoming IPv4 packets.
    Receive,
    /// Sends packets.
    Send,
}

/// Opens a packet socket at an interface of this process's namespace.
pub fn open(interface: &str, purpose: Use) -> Result<OwnedFd, Error> {
    // A socket without a protocol receives no packets.
    let protocol = match purpose {
        Use::Receive => Some(SockProtocol::EthIp),
        Use::Send => None,
    };
    let address = address(interface)?;
    let socket = socket(AddressFamily::Packet, SockType::Raw, SockFlag::SOCK_CLOEXEC, protocol)
        .doing(|| "open a packet socket (it needs CAP_NET_RAW)".to_owned())?;
    bind(socket.as_raw_fd(), &address).doing(|| format!("bind to {interface}"))?;
    Ok(socket)
}

/// Returns the link-layer address of an interface.
fn address(interface: &str) -> Result<LinkAddr, Error> {
    let addresses = nix::ifaddrs::getifaddrs().doing(|| "list the interfaces".to_owned())?;
    addresses
        .filter(|each| each.interface_name == interface)
        .find_map(|each| each.address?.as_link_addr().copied())
        .ok_or_else(|| Error::Peer(format!("there is no interface {interface}")))
}
