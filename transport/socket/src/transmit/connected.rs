//! Connected sockets for sends to frequent peers.
//!
//! A send through an unconnected socket looks up its route each time. A frequent peer therefore
//! gets a connected socket with the driver's port, which saves 330 ns of 2,670 for a small packet
//! (lab/log, 2026-11-28). A connected socket that
//! receives as well gains no more on loopback, and receiving, sleeping, offload and the spreading
//! of shards would have two sockets each. Sends above 16 KiB use the driver's socket: two buffers
//! would fill the interface's queue.
//!
//! These sockets receive no packets, so the receiving half is unaffected. Each is bound to a
//! multicast address: Linux then sends packets from the address of the route, and delivers only
//! packets sent to the multicast address (`inet_bind` in `net/ipv4/af_inet.c`,
//! `__ip4_datagram_connect` in `net/ipv4/datagram.c`, and their siblings for IPv6). Replies and
//! ICMP errors reach the driver's socket as before.
//!
//! # Invariants
//!
//! - **CONNECTED-1** No packet depends on them: a packet that one of them does not accept leaves
//!   through the driver's socket in the same flush, and that socket's error counts.
//! - **CONNECTED-2** There are at most [`PEERS`] sockets, and at most one is opened per
//!   [`ConnectOptions::after`] sends, for any behaviour of the peers.

use std::io::{self, IoSlice};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::AsFd;

use apus_process::Descriptor;
use arrayvec::ArrayVec;
use rustix::io::Errno;
use rustix::time::{ClockId, clock_gettime};
use socket2::{Domain, Protocol, Socket, Type};

use crate::address::{self, Family};
use crate::carrier::Carrier;
use crate::class::{self, DefaultClass};
use crate::errors::{self, ErrorClass};
use crate::group::{Flow, Group};
use crate::kernel::{self, OutgoingDatagram, set_option};
use crate::open::{forbid_fragments, size_buffers};
use crate::shared::SharedSocket;

/// Number of peers that are counted and may have sockets. Chosen by us: comparing them with the
/// peer of a send takes less than 10 ns.
const PEERS: usize = 4;

/// Maximum count of a peer, in multiples of the count that earns a socket. A peer without further
/// sends loses its place after this number of sends to uncounted peers. Chosen by us: with the
/// default, ten milliseconds of a busy endpoint.
const MOST_COUNTED: u32 = 4;

/// Maximum length of a send through such a socket. Chosen by us: looking up the route takes less
/// than a tenth of a longer send, and long sends would fill two send buffers.
const SHORT: usize = 1 << 14;

/// Send buffer of such a socket, as a fraction of the driver's. Chosen by us: with the default,
/// several times the longest send, and little compared with the queue of the driver's socket.
const PART_OF_BUFFER: usize = 8;

/// Whole seconds for which a socket keeps the source address that the system chose. Chosen by us:
/// bounds the delay until a better route is used, at a cost of 20 us per second.
const CHOSEN_FOR: i64 = 1;

/// How connected sockets are opened.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ConnectOptions {
    /// Sends to a peer, minus sends to uncounted peers, that earn it a socket. Opening and closing
    /// a socket takes about 20 us, which 60 sends save. With 256, sends to peers that never benefit
    /// cost at most 80 ns more each.
    pub after: u32,
    /// The address of the driver's socket.
    pub local: SocketAddr,
    /// Bytes of the send buffer that the driver requests.
    pub send_buffer: usize,
    /// Whether the driver's socket has IP_RECVERR. Without it a full interface is not reported.
    pub reports: bool,
}

/// The frequent peers, with their sockets.
///
/// They are counted as by Misra and Gries ("Finding repeated elements", 1982): a send to a peer
/// without a place, when none is free, decrements the counts of all peers with a place. A peer with
/// more than a fifth of the sends therefore has a place.
#[derive(Debug)]
pub(crate) struct ConnectedPeers {
    /// `None` if no socket is ever opened.
    options: Option<ConnectOptions>,
    peers: ArrayVec<CountedPeer, PEERS>,
}

/// A peer of recent sends.
#[derive(Debug)]
struct CountedPeer {
    to: SocketAddr,
    from: Option<IpAddr>,
    /// Sends to it, minus sends to peers without a place; at least 1.
    sends: u32,
    socket: Option<ConnectedSocket>,
}

/// A socket that is connected to a peer.
#[derive(Debug)]
struct ConnectedSocket {
    socket: Descriptor<Socket>,
    family: Family,
    class: DefaultClass,
    /// When it was opened, on the clock of [`coarse_seconds`], if a new socket might get another
    /// source address.
    chosen_at: Option<i64>,
}

impl ConnectedPeers {
    /// Creates an empty set of peers. Without options, none ever has a socket.
    pub(crate) const fn new(options: Option<ConnectOptions>) -> Self {
        Self { options, peers: ArrayVec::new_const() }
    }

    /// Sends the unsent packets of a group through the socket of its peer. `segment` is the size of
    /// its packets if there are several. Returns `false` if the send is long, the peer has no
    /// socket, or the socket does not accept it now (CONNECTED-1).
    #[inline]
    pub(super) fn send(
        &mut self,
        group: &mut Group,
        segment: Option<usize>,
        shared: &SharedSocket,
    ) -> bool {
        let Some(options) = &self.options else { return false };
        if group.unsent().len() > SHORT {
            return false;
        }
        let Some(place) = self.peers.iter().position(|peer| peer.is_of(&group.flow)) else {
            self.count_other(&group.flow);
            return false;
        };
        let peer = &mut self.peers[place];
        peer.sends = (peer.sends + 1).min(options.after.saturating_mul(MOST_COUNTED));
        let result = match &mut peer.socket {
            Some(socket) if socket.is_outdated() => {
                // The next send opens a new socket.
                peer.socket = None;
                return false;
            }
            Some(socket) => socket.send(group, segment, shared),
            None if peer.sends < options.after => return false,
            None => peer.open(options, shared),
        };
        match result {
            Ok(sent) => sent,
            Err(_) => {
                // The peer has to earn its next socket.
                self.peers.swap_remove(place);
                false
            }
        }
    }

    /// Counts a send to a peer without a place.
    fn count_other(&mut self, flow: &Flow) {
        let peer = CountedPeer { to: flow.to, from: flow.from, sends: 1, socket: None };
        if self.peers.try_push(peer).is_err() {
            self.peers.iter_mut().for_each(|peer| peer.sends -= 1);
            self.peers.retain(|peer| peer.sends > 0);
        }
    }
}

impl CountedPeer {
    #[inline]
    fn is_of(&self, flow: &Flow) -> bool {
        self.to == flow.to && self.from == flow.from
    }

    /// Opens the socket for later sends, and returns `false`.
    ///
    /// # Errors
    ///
    /// Errors of [`ConnectedSocket::open`].
    #[cold]
    fn open(&mut self, options: &ConnectOptions, shared: &SharedSocket) -> io::Result<bool> {
        let to = address::canonical(self.to);
        self.socket = Some(ConnectedSocket::open(to, self.from, options, &shared.socket)?);
        shared.counters.transmit.peers_connected.add(1);
        Ok(false)
    }
}

impl ConnectedSocket {
    /// Opens a socket that sends to `to` exactly as `main`, the driver's socket, does with the
    /// source address `from`.
    ///
    /// # Errors
    ///
    /// The system refuses, or would use another source address.
    fn open(
        to: SocketAddr,
        from: Option<IpAddr>,
        options: &ConnectOptions,
        main: &Socket,
    ) -> io::Result<Self> {
        let family = Family::of(to);
        let socket = new_socket(to)?;
        size_buffers(&socket, 0, options.send_buffer / PART_OF_BUFFER);
        forbid_fragments(&socket, family)?;
        let (level, recverr, nowhere) = match family {
            Family::V4 => {
                socket.set_multicast_all_v4(false)?;
                (libc::IPPROTO_IP, libc::IP_RECVERR, IpAddr::from(NO_GROUP_V4))
            }
            Family::V6 => {
                socket.set_multicast_all_v6(false)?;
                (libc::IPPROTO_IPV6, libc::IPV6_RECVERR, IpAddr::from(NO_GROUP_V6))
            }
        };
        if options.reports {
            // Without it, a packet dropped by the interface counts as sent: ip(7).
            set_option(socket.as_fd(), level, recverr, 1)?;
        }
        // Other sockets of this port have the address as well.
        socket.set_reuse_port(true)?;
        let nowhere = SocketAddr::new(nowhere, options.local.port());
        let own = options.local.ip();
        if address::is_wildcard(own) {
            bind_beside_wildcard(&socket, nowhere, main)?;
        } else {
            socket.bind(&nowhere.into())?;
        }
        socket.connect(&to.into())?;
        let source = from.or(Some(own)).filter(|ip| !address::is_wildcard(*ip));
        if source.is_some_and(|source| source_to(to).ok() != Some(source.to_canonical())) {
            return Err(Errno::ADDRNOTAVAIL.into());
        }
        let chosen_at = source.is_none().then(coarse_seconds);
        let socket = Descriptor::new(socket);
        Ok(Self { socket, family, class: DefaultClass::new(), chosen_at })
    }

    /// Returns whether the system may choose another source address now.
    #[inline]
    fn is_outdated(&self) -> bool {
        self.chosen_at.is_some_and(|chosen_at| coarse_seconds() - chosen_at > CHOSEN_FOR)
    }

    /// Sends the unsent packets of a group. Returns `false` if the socket accepts no packets now.
    ///
    /// # Errors
    ///
    /// The system's error; the socket is unusable then.
    #[inline]
    fn send(
        &mut self,
        group: &mut Group,
        segment: Option<usize>,
        shared: &SharedSocket,
    ) -> io::Result<bool> {
        let Self { socket, family, class, .. } = self;
        let counters = &shared.counters.transmit;
        if class.update(|class| class::set(socket.as_fd(), *family, Carrier::Udp, class)) {
            counters.class_changes.add(1);
        }
        let Group { flow, control, .. } = group;
        flow.control_without_source(control, segment, class);
        let piece = [IoSlice::new(group.unsent())];
        let message = OutgoingDatagram::to_connected(&piece, group.control.as_bytes());
        counters.send_calls.add(1);
        match kernel::send(socket.as_fd(), &mut [message]) {
            Ok(_) => {
                counters.connected_sends.add(1);
                Ok(true)
            }
            Err(error) => match errors::classify(error) {
                ErrorClass::Interrupted | ErrorClass::WouldBlock => Ok(false),
                _ => Err(error.into()),
            },
        }
    }
}

/// A multicast address that is never assigned to a group. Source: RFC 1112 section 4.
const NO_GROUP_V4: Ipv4Addr = Ipv4Addr::new(224, 0, 0, 0);

/// A multicast address that is never assigned to a group. Source: RFC 4291 section 2.7.1. Its scope
/// is one that needs no interface.
const NO_GROUP_V6: Ipv6Addr = Ipv6Addr::new(0xff05, 0, 0, 0, 0, 0, 0, 0);

/// Returns the seconds of a clock that is read in a few nanoseconds.
#[inline]
fn coarse_seconds() -> i64 {
    clock_gettime(ClockId::MonotonicCoarse).tv_sec
}

/// Returns a new non-blocking socket of the peer's family.
fn new_socket(to: SocketAddr) -> io::Result<Socket> {
    Socket::new(Domain::for_address(to), Type::DGRAM.nonblocking(), Some(Protocol::UDP))
}

/// Binds a socket to the port of `main`, which has all addresses of the host and therefore has to
/// share it for that moment.
fn bind_beside_wildcard(socket: &Socket, at: SocketAddr, main: &Socket) -> io::Result<()> {
    let is_shared = main.reuse_port()?;
    main.set_reuse_port(true)?;
    let bound = socket.bind(&at.into());
    main.set_reuse_port(is_shared)?;
    bound
}

/// Returns the source address of packets to `to`.
fn source_to(to: SocketAddr) -> io::Result<IpAddr> {
    let socket = new_socket(to)?;
    socket.connect(&to.into())?;
    let source = socket.local_addr()?.as_socket().ok_or(Errno::AFNOSUPPORT)?;
    Ok(source.ip())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mtu::PacketLimit;
    use crate::testing;
    use crate::transmit::{SocketTransmit, TransmitOptions};
    use apus_driver::{Burst, TransmitHalf};
    use std::net::UdpSocket;

    const AFTER: u32 = 5;

    /// Returns a half whose peer has a socket, and its peer. The tested socket has the loopback
    /// address; `local` is the address passed for it.
    fn connected(local: IpAddr) -> (SocketTransmit, UdpSocket) {
        let (shared, address) = testing::open();
        let local = SocketAddr::new(local, address.port());
        let connect = ConnectOptions { after: AFTER, local, send_buffer: 1 << 20, reports: true };
        let options = TransmitOptions { segments: 64, priorities: true, chooses_source: false };
        let limit = PacketLimit::new(65_535, Carrier::Udp);
        let mut half = SocketTransmit::new(shared, limit, options).connecting(Some(connect));
        let peer = UdpSocket::bind("127.0.0.1:0").unwrap();
        while half.shared.counters.connected_sends() == 0 {
            send(&mut half, &peer, 100);
        }
        assert_eq!(half.shared.counters.packets_sent(), u64::from(AFTER) + 1);
        (half, peer)
    }

    fn send(half: &mut SocketTransmit, peer: &UdpSocket, len: usize) {
        let packet = vec![0; len];
        half.send(&Burst::single(peer.local_addr().unwrap(), &packet)).unwrap();
        half.flush().unwrap();
        assert_eq!(peer.recv(&mut vec![0; len + 1]).unwrap(), len);
    }

    fn socket(half: &mut SocketTransmit) -> &mut ConnectedSocket {
        half.connected.peers[0].socket.as_mut().unwrap()
    }

    #[test]
    fn a_source_address_that_the_system_chose_is_chosen_again() {
        let (mut half, peer) = connected(Ipv4Addr::UNSPECIFIED.into());
        let counters = half.shared.counters();
        let before = counters.connected_sends();
        socket(&mut half).chosen_at = Some(coarse_seconds() - CHOSEN_FOR - 1);
        // This send finds the socket outdated, the next one opens a new socket, and the last one
        // uses it.
        for expected in [0, 0, 1] {
            send(&mut half, &peer, 100);
            assert_eq!(counters.connected_sends(), before + expected);
        }
        assert_eq!(counters.peers_connected(), 2);
    }

    #[test]
    fn the_address_of_a_socket_that_has_one_is_never_chosen_again() {
        let (mut half, _) = connected(Ipv4Addr::LOCALHOST.into());
        assert_eq!(socket(&mut half).chosen_at, None);
    }

    #[test]
    fn what_the_socket_does_not_accept_leaves_at_once_all_the_same() {
        let (mut half, peer) = connected(Ipv4Addr::LOCALHOST.into());
        let counters = half.shared.counters();
        // Shut down for writing, the socket refuses each send.
        socket(&mut half).socket.shutdown(std::net::Shutdown::Write).unwrap();
        let (sent, connected) = (counters.packets_sent(), counters.connected_sends());
        for _ in 0..AFTER {
            send(&mut half, &peer, 100);
        }
        assert_eq!(counters.packets_sent(), sent + u64::from(AFTER));
        assert_eq!((counters.connected_sends(), counters.packets_refused()), (connected, 0));
        assert_eq!(counters.peers_connected(), 1, "it has not earned another one yet");
        send(&mut half, &peer, 100);
        assert_eq!(counters.peers_connected(), 2);
    }

    #[test]
    fn long_sends_leave_through_the_socket_of_the_driver() {
        let (mut half, peer) = connected(Ipv4Addr::LOCALHOST.into());
        let counters = half.shared.counters();
        for (packets, len, through) in [(4, 4000, 1), (5, 4000, 0), (1, 4001, 0)] {
            let before = (counters.send_calls(), counters.connected_sends());
            for _ in 0..packets {
                half.send(&Burst::single(peer.local_addr().unwrap(), &vec![0; len])).unwrap();
            }
            half.flush().unwrap();
            let after = (counters.send_calls(), counters.connected_sends());
            assert_eq!(
                after,
                (before.0 + 1, before.1 + through),
                "{packets} packets of {len} bytes"
            );
        }
    }
}
