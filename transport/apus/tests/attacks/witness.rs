//! Packets on the wire: for assertions, and never for an attacker.

use apus_wire::{Body, Flags, Packet, Profile};
use rustix::fd::OwnedFd;
use rustix::net::{AddressFamily, RecvFlags, SocketType, ipproto};
use std::net::SocketAddrV4;

/// A raw socket that receives a copy of all UDP packets that arrive in the namespace.
pub(crate) struct Witness {
    socket: OwnedFd,
}

impl Witness {
    pub(crate) fn open() -> Self {
        let raw = rustix::net::socket(AddressFamily::INET, SocketType::RAW, Some(ipproto::UDP));
        Self { socket: raw.unwrap() }
    }

    /// The session between `server` and `client`. Clears the record.
    pub(crate) fn session(&self, server: SocketAddrV4, client: SocketAddrV4) -> u64 {
        let mut session = None;
        self.packets(server, client, |packet| {
            let fields = packet.header.udp().unwrap();
            if fields.flags.contains(Flags::SESSION) {
                session = Some(fields.incarnation);
            }
        });
        session.expect("the server has answered in a session")
    }

    /// Versions of cutoffs that `client` has sent to `server`. Clears the record.
    pub(crate) fn cutoff_versions(&self, client: SocketAddrV4, server: SocketAddrV4) -> Vec<u16> {
        let mut versions = Vec::new();
        self.packets(client, server, |packet| {
            if let Body::Data(data, _) = packet.body {
                versions.push(data.cutoff_version);
            }
        });
        versions
    }

    fn packets(&self, from: SocketAddrV4, to: SocketAddrV4, mut see: impl FnMut(&Packet<'_>)) {
        let mut buffer = vec![0; 1 << 16];
        while let Ok((length, _)) =
            rustix::net::recv(&self.socket, &mut buffer[..], RecvFlags::DONTWAIT)
        {
            let (ip, rest) = buffer[..length].split_at(20);
            let (udp, datagram) = rest.split_at(8);
            let ports = [from.port().to_be_bytes(), to.port().to_be_bytes()].concat();
            let addresses = [from.ip().octets(), to.ip().octets()].concat();
            if ip[12..] == addresses && udp[..4] == ports {
                Packet::all(Profile::Udp, datagram).flatten().for_each(|packet| see(&packet));
            }
        }
    }
}
