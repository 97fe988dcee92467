//! An attacker that sends UDP packets with any source address.

use rustix::fd::OwnedFd;
use rustix::net::{AddressFamily, SendFlags, SocketType, ipproto};
use std::cell::Cell;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};

/// Bytes of the headers of IP and UDP.
pub(crate) const HEADERS: usize = 20 + 8;

/// A raw socket, which a test in a namespace may open.
pub(crate) struct Forger {
    socket: OwnedFd,
    dice: Cell<u64>,
}

impl Forger {
    pub(crate) fn open() -> Self {
        let raw = rustix::net::socket(AddressFamily::INET, SocketType::RAW, Some(ipproto::RAW));
        Self { socket: raw.unwrap(), dice: Cell::new(1) }
    }

    /// Sends a datagram from `from`, which need not be an address of this host.
    pub(crate) fn send(&self, from: SocketAddrV4, to: SocketAddrV4, datagram: &[u8]) {
        let length = u16::try_from(8 + datagram.len()).unwrap();
        // The kernel fills in the sum of the IP header; a sum of 0 is none in UDP.
        let packet = [
            &[0x45, 0][..],
            &(20 + length).to_be_bytes(),
            &[0, 0, 0, 0, 64, 17, 0, 0],
            &from.ip().octets(),
            &to.ip().octets(),
            &from.port().to_be_bytes(),
            &to.port().to_be_bytes(),
            &length.to_be_bytes(),
            &[0, 0],
            datagram,
        ]
        .concat();
        rustix::net::sendto(&self.socket, &packet, SendFlags::empty(), &SocketAddr::from(to))
            .unwrap();
    }

    /// Guesses a number.
    pub(crate) fn guess(&self) -> u64 {
        let next = self.dice.get().wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        self.dice.set(next);
        next >> 16
    }

    /// Guesses an address that is not in the namespace (RFC 2544).
    pub(crate) fn guess_address(&self) -> SocketAddrV4 {
        let number = self.guess();
        let host = 0xc612_0000 | number as u32 & 0x1_ffff;
        SocketAddrV4::new(Ipv4Addr::from_bits(host), 1024 | (number >> 32) as u16)
    }
}
