//! UDP socket with traffic classes and merged packets.

use std::io::{IoSlice, IoSliceMut};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;
use std::time::Duration;

use nix::cmsg_space;
use nix::sys::socket::sockopt::{
    IpRecvTos, Ipv4PacketInfo, Ipv6RecvPacketInfo, Ipv6RecvTClass, UdpGroSegment,
};
use nix::sys::socket::{
    ControlMessage, ControlMessageOwned, MsgFlags, SockaddrStorage, recvmsg, sendmsg, setsockopt,
};
use rustix::net::sockopt::{
    Ipv4PathMtuDiscovery, Ipv6PathMtuDiscovery, ip_mtu, ipv6_mtu, set_ip_mtu_discover,
    set_ipv6_mtu_discover, set_socket_recv_buffer_size,
};

use apus_measure::error::{Doing, Error};

/// Size of the receive buffer in bytes: the longest datagram, merged or not.
const ROOM: usize = 1 << 16;

/// A UDP socket whose packets are never fragmented.
#[derive(Debug)]
pub(super) struct ClassSocket {
    socket: UdpSocket,
    room: Vec<u8>,
}

/// A received datagram, possibly of several merged packets.
pub(super) struct Datagram<'a> {
    pub(super) from: Option<SocketAddr>,
    /// Destination address, which responses must use as their source.
    pub(super) to: Option<IpAddr>,
    pub(super) class: u8,
    /// Length of each packet but the last, which may be shorter.
    pub(super) segment: usize,
    pub(super) bytes: &'a [u8],
}

impl ClassSocket {
    /// Opens a socket at `address`.
    pub(super) fn open(address: SocketAddr) -> Result<Self, Error> {
        let socket = UdpSocket::bind(address).doing(|| format!("bind {address}"))?;
        // If an option is missing, classes read 0, packets are not merged, or the buffer is small;
        // the checks detect that.
        let _ = setsockopt(&socket, IpRecvTos, &true);
        let _ = setsockopt(&socket, UdpGroSegment, &true);
        let _ = setsockopt(&socket, Ipv4PacketInfo, &true);
        let _ = set_socket_recv_buffer_size(&socket, 4 << 20);
        if address.is_ipv6() {
            let _ = setsockopt(&socket, Ipv6RecvTClass, &true);
            let _ = setsockopt(&socket, Ipv6RecvPacketInfo, &true);
            // Full packets are sent even if the system has stored a smaller path MTU, because the
            // check itself must find it.
            set_ipv6_mtu_discover(&socket, Ipv6PathMtuDiscovery::PROBE)
                .doing(|| "forbid fragments".to_owned())?;
        }
        // On an IPv6 socket this IPv4 option applies to IPv4 peers, which may not exist.
        let v4 = set_ip_mtu_discover(&socket, Ipv4PathMtuDiscovery::PROBE);
        if address.is_ipv4() {
            v4.doing(|| "forbid fragments".to_owned())?;
        }
        Ok(Self { socket, room: vec![0; ROOM] })
    }

    /// Opens a socket connected to `peer`, so that ICMP errors are returned.
    pub(super) fn towards(peer: SocketAddr) -> Result<Self, Error> {
        let any: IpAddr =
            if peer.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { [0_u16; 8].into() };
        let socket = Self::open((any, 0).into())?;
        socket.socket.connect(peer).doing(|| format!("find a way to {peer}"))?;
        Ok(socket)
    }

    /// Returns the local address.
    pub(super) fn address(&self) -> Result<SocketAddr, Error> {
        self.socket.local_addr().doing(|| "find out the port".to_owned())
    }

    /// Returns the underlying socket.
    pub(super) const fn socket(&self) -> &UdpSocket {
        &self.socket
    }

    /// Returns the path MTU stored by the system, for connected sockets.
    pub(super) fn path_mtu(&self) -> Option<usize> {
        let is_v4 = self.socket.peer_addr().ok()?.is_ipv4();
        let mtu = if is_v4 { ip_mtu(&self.socket) } else { ipv6_mtu(&self.socket) };
        usize::try_from(mtu.ok()?).ok()
    }

    /// Limits the duration of a receive.
    pub(super) fn set_timeout(&self, time: Duration) -> Result<(), Error> {
        self.socket.set_read_timeout(Some(time)).doing(|| "set a time limit".to_owned())
    }

    /// Sends `bytes` to the connected peer with a traffic class, split into packets of `segment`
    /// bytes.
    pub(super) fn send(&self, bytes: &[u8], class: u8, segment: usize) -> nix::Result<()> {
        let is_v4 = self.socket.peer_addr().is_ok_and(|peer| is_v4(peer.ip()));
        let wide = i32::from(class);
        let class = class_message(is_v4, &class, &wide);
        let cut = u16::try_from(segment).unwrap_or(u16::MAX);
        let mut control = vec![class];
        if segment < bytes.len() {
            control.push(ControlMessage::UdpGsoSegments(&cut));
        }
        let slices = [IoSlice::new(bytes)];
        let to = None::<&SockaddrStorage>;
        sendmsg(self.socket.as_raw_fd(), &slices, &control, MsgFlags::empty(), to).map(drop)
    }

    /// Sends one packet to `to`, from `from`, the address that received the request.
    pub(super) fn answer(
        &self,
        bytes: &[u8],
        class: u8,
        to: SocketAddr,
        from: Option<IpAddr>,
    ) -> nix::Result<()> {
        let wide = i32::from(class);
        let mut control = vec![class_message(is_v4(to.ip()), &class, &wide)];
        let zero = libc::in_addr { s_addr: 0 };
        let mut v4 = libc::in_pktinfo { ipi_ifindex: 0, ipi_spec_dst: zero, ipi_addr: zero };
        let mut v6 =
            libc::in6_pktinfo { ipi6_addr: libc::in6_addr { s6_addr: [0; 16] }, ipi6_ifindex: 0 };
        match from {
            Some(IpAddr::V4(from)) => {
                v4.ipi_spec_dst.s_addr = u32::from_ne_bytes(from.octets());
                control.push(ControlMessage::Ipv4PacketInfo(&v4));
            }
            Some(IpAddr::V6(from)) => {
                v6.ipi6_addr.s6_addr = from.octets();
                control.push(ControlMessage::Ipv6PacketInfo(&v6));
            }
            None => {}
        }
        let to = SockaddrStorage::from(to);
        let slices = [IoSlice::new(bytes)];
        sendmsg(self.socket.as_raw_fd(), &slices, &control, MsgFlags::empty(), Some(&to)).map(drop)
    }

    /// Receives the next datagram.
    pub(super) fn receive(&mut self, flags: MsgFlags) -> nix::Result<Datagram<'_>> {
        let mut control = cmsg_space!(u8, i32, i32, libc::in_pktinfo, libc::in6_pktinfo);
        let (length, from, to, class, segment) = {
            let mut slices = [IoSliceMut::new(&mut self.room)];
            let descriptor = self.socket.as_raw_fd();
            let message =
                recvmsg::<SockaddrStorage>(descriptor, &mut slices, Some(&mut control), flags)?;
            let (mut to, mut class, mut segment) = (None, 0, message.bytes);
            for each in message.cmsgs()? {
                match each {
                    ControlMessageOwned::Ipv4Tos(tos) => class = tos,
                    ControlMessageOwned::Ipv6TClass(wide) => class = wide as u8,
                    ControlMessageOwned::UdpGroSegments(size) => {
                        segment = usize::try_from(size).unwrap_or(segment);
                    }
                    ControlMessageOwned::Ipv4PacketInfo(info) => {
                        to = Some(IpAddr::from(info.ipi_addr.s_addr.to_ne_bytes()));
                    }
                    ControlMessageOwned::Ipv6PacketInfo(info) => {
                        to = Some(IpAddr::from(info.ipi6_addr.s6_addr));
                    }
                    _ => {}
                }
            }
            (message.bytes, message.address.as_ref().and_then(address), to, class, segment)
        };
        Ok(Datagram { from, to, class, segment: segment.max(1), bytes: &self.room[..length] })
    }
}

fn is_v4(ip: IpAddr) -> bool {
    ip.to_canonical().is_ipv4()
}

/// Returns the control message for the class, in the form of the peer's address family.
fn class_message<'a>(is_v4: bool, class: &'a u8, wide: &'a i32) -> ControlMessage<'a> {
    if is_v4 { ControlMessage::Ipv4Tos(class) } else { ControlMessage::Ipv6TClass(wide) }
}

fn address(storage: &SockaddrStorage) -> Option<SocketAddr> {
    let v4 = storage.as_sockaddr_in().map(|it| SocketAddr::V4((*it).into()));
    v4.or_else(|| storage.as_sockaddr_in6().map(|it| SocketAddr::V6((*it).into())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn class_and_segments_arrive_unchanged() {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let mut receiver = ClassSocket::open(address.parse().unwrap()).unwrap();
            receiver.set_timeout(Duration::from_secs(20)).unwrap();
            let sender = ClassSocket::towards(receiver.address().unwrap()).unwrap();
            assert!(sender.path_mtu().unwrap() > 1_280);
            sender.send(&[7; 1_000], 0xe0, 300).unwrap();
            let datagram = receiver.receive(MsgFlags::empty()).unwrap();
            assert_eq!(
                (datagram.class, datagram.segment, datagram.bytes),
                (0xe0, 300, &[7; 1_000][..])
            );
            let (from, to) = (datagram.from.unwrap(), datagram.to);
            receiver.answer(b"back", 0x20, from, to).unwrap();
            let mut sender = sender;
            sender.set_timeout(Duration::from_secs(20)).unwrap();
            let back = sender.receive(MsgFlags::empty()).unwrap();
            assert_eq!((back.class, back.bytes), (0x20, &b"back"[..]));
        }
    }

    #[test]
    fn a_socket_for_both_families_knows_the_class_of_either() {
        let mut receiver = ClassSocket::open("[::]:0".parse().unwrap()).unwrap();
        receiver.set_timeout(Duration::from_secs(20)).unwrap();
        let port = receiver.address().unwrap().port();
        for (ip, class) in [("127.0.0.1", 0x40), ("::1", 0xa0)] {
            let sender = ClassSocket::towards(SocketAddr::new(ip.parse().unwrap(), port)).unwrap();
            sender.send(b"x", class, 1).unwrap();
            assert_eq!(receiver.receive(MsgFlags::empty()).unwrap().class, class, "{ip}");
        }
    }

    /// A host with several addresses, contacted at an address that is not its default source.
    #[test]
    fn responses_come_from_the_contacted_address() {
        for any in ["0.0.0.0:0", "[::]:0"] {
            let mut receiver = ClassSocket::open(any.parse().unwrap()).unwrap();
            receiver.set_timeout(Duration::from_secs(20)).unwrap();
            let port = receiver.address().unwrap().port();
            let mut sender = ClassSocket::towards(([127, 0, 0, 7], port).into()).unwrap();
            sender.send(b"x", 0, 1).unwrap();
            let datagram = receiver.receive(MsgFlags::empty()).unwrap();
            let (from, to) = (datagram.from.unwrap(), datagram.to);
            receiver.answer(b"back", 0x20, from, to).unwrap();
            sender.set_timeout(Duration::from_secs(20)).unwrap();
            // A connected socket receives from this address only.
            let back = sender.receive(MsgFlags::empty()).unwrap();
            assert_eq!((back.class, back.bytes), (0x20, &b"back"[..]), "{any}");
        }
    }
}
