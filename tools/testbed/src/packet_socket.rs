//! How does a program get a socket for the packets of an interface?
//!
//! A packet socket (packet(7)) sees packets with their Ethernet headers. It takes CAP_NET_RAW, in the user namespace to
//! which the network namespace belongs: whoever makes both has it there.

use std::os::fd::{AsRawFd, OwnedFd};

use nix::sys::socket::{AddressFamily, LinkAddr, SockFlag, SockProtocol, SockType, bind, socket};

use crate::error::{Doing, Error};

/// What it is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// IPv4 packets that come in.
    Receive,
    /// Packets that go out.
    Send,
}

/// A socket at the interface of that name, in the namespace of this process.
pub fn open(interface: &str, purpose: Use) -> Result<OwnedFd, Error> {
    // A socket without a protocol receives nothing.
    let protocol = match purpose {
        Use::Receive => Some(SockProtocol::EthIp),
        Use::Send => None,
    };
    let address = address(interface)?;
    let socket = socket(AddressFamily::Packet, SockType::Raw, SockFlag::SOCK_CLOEXEC, protocol)
        .doing(|| "open a packet socket (it takes CAP_NET_RAW)".to_owned())?;
    bind(socket.as_raw_fd(), &address).doing(|| format!("bind to {interface}"))?;
    Ok(socket)
}

/// The address by which the system knows an interface.
fn address(interface: &str) -> Result<LinkAddr, Error> {
    let addresses = nix::ifaddrs::getifaddrs().doing(|| "list the interfaces".to_owned())?;
    addresses
        .filter(|each| each.interface_name == interface)
        .find_map(|each| each.address?.as_link_addr().copied())
        .ok_or_else(|| Error::Peer(format!("there is no interface {interface}")))
}
