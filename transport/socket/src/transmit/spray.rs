//! Spray ports: sockets at additional ports of the host that marked packets leave from in turn
//! (SEND-15).
//!
//! A network that spreads flows by a hash of their ports (ECMP) routes packets from different ports
//! over different paths. The receiver of a marked packet uses the port in its header as the
//! sender's (WIRE-36), so no peer answers to these sockets. A filter discards any packets that
//! still arrive at them.
//!
//! # Invariants
//!
//! - **SPRAY-1** No packet depends on them: a packet that one of them does not accept leaves
//!   through the driver's socket in the same flush, and that socket's error counts.

use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd;

use apus_driver::Burst;
use apus_process::Descriptor;
use apus_wire::Header;
use socket2::{Domain, Protocol, SockFilter, Socket, Type};

use crate::address::{Family, is_wildcard};
use crate::carrier::Carrier;
use crate::class::{self, DefaultClass};
use crate::cmsg::Control;
use crate::counters::Transmitted;
use crate::group::{Flow, PortNumber};
use crate::kernel::{self, OutgoingDatagram};
use crate::open::{forbid_fragments, size_buffers};

/// A filter that keeps 0 bytes of each packet: `BPF_RET|BPF_K` of `linux/filter.h`.
const DISCARD_ALL: SockFilter = SockFilter::new(0x06, 0, 0, 0);

/// The spray ports of a driver, numbered from 1.
#[derive(Debug, Default)]
pub(crate) struct SprayPorts {
    ports: Vec<SprayPort>,
    /// Number of the last burst's port.
    last: PortNumber,
}

/// A socket at a spray port.
#[derive(Debug)]
struct SprayPort {
    socket: Descriptor<Socket>,
    family: Family,
    class: DefaultClass,
}

impl SprayPorts {
    /// Opens up to `count` sockets at free ports of the address of `local`, with this send buffer
    /// in bytes. Opens fewer if the system refuses one.
    pub(crate) fn open(count: PortNumber, local: SocketAddr, send_buffer: usize) -> Self {
        let open = |_| SprayPort::open(local, send_buffer).ok();
        Self { ports: (0..count).map_while(open).collect(), last: 0 }
    }

    /// Returns the number of ports.
    pub(crate) const fn count(&self) -> usize {
        self.ports.len()
    }

    /// Returns whether the packets of a burst leave from spray ports.
    #[inline]
    pub(super) fn take(&self, burst: &Burst<'_>) -> bool {
        !self.ports.is_empty() && Header::peek_sprayed(burst.headers).is_some()
    }

    /// Returns the source port of a burst: the next spray port if it is marked.
    pub(super) fn choose(&mut self, burst: &Burst<'_>) -> PortNumber {
        if !self.take(burst) {
            return 0;
        }
        self.last = self.last % self.ports.len() as PortNumber + 1;
        self.last
    }

    /// Writes the control messages for a send of this flow from a spray port.
    pub(super) fn control(
        &mut self,
        flow: &Flow,
        control: &mut Control,
        segment: Option<usize>,
        counters: &Transmitted,
    ) {
        let SprayPort { socket, family, class } = &mut self.ports[usize::from(flow.port) - 1];
        if class.update(|class| class::set(socket.as_fd(), *family, Carrier::Udp, class)) {
            counters.class_changes.add(1);
        }
        flow.control(control, segment, class);
    }

    /// Sends a message from the spray port with this number. Returns `false` if the socket does not
    /// accept it.
    pub(super) fn send(
        &self,
        port: PortNumber,
        message: OutgoingDatagram<'_>,
        counters: &Transmitted,
    ) -> bool {
        counters.send_calls.add(1);
        let socket = &self.ports[usize::from(port) - 1].socket;
        let is_sent = kernel::send(socket.as_fd(), &mut [message]).is_ok();
        counters.sprayed_sends.add(u64::from(is_sent));
        is_sent
    }
}

impl SprayPort {
    fn open(local: SocketAddr, send_buffer: usize) -> io::Result<Self> {
        let family = Family::of(local);
        let domain = Domain::for_address(local);
        let socket = Socket::new(domain, Type::DGRAM.nonblocking(), Some(Protocol::UDP))?;
        size_buffers(&socket, 0, send_buffer);
        forbid_fragments(&socket, family)?;
        if family == Family::V6 {
            socket.set_only_v6(!is_wildcard(local.ip()))?;
        }
        // Attached before the bind, so that no packet arrives earlier.
        socket.attach_filter(&[DISCARD_ALL])?;
        socket.bind(&SocketAddr::new(local.ip(), 0).into())?;
        Ok(Self { socket: Descriptor::new(socket), family, class: DefaultClass::new() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mtu::PacketLimit;
    use crate::testing;
    use crate::transmit::{SocketTransmit, TransmitOptions};
    use apus_driver::TransmitHalf;
    use std::net::UdpSocket;

    /// SPRAY-1.
    #[test]
    fn what_a_port_does_not_accept_leaves_from_the_own_port_at_once() {
        let (shared, address) = testing::open();
        let mut spray = SprayPorts::open(2, address, 1 << 20);
        for port in &mut spray.ports {
            // It cannot reach an internet address.
            let other = Socket::new(Domain::UNIX, Type::DGRAM.nonblocking(), None).unwrap();
            port.socket = Descriptor::new(other);
        }
        let options = TransmitOptions { segments: 64, priorities: true, chooses_source: false };
        let limit = PacketLimit::new(65_535, Carrier::Udp);
        let mut half = SocketTransmit::new(shared.clone(), limit, options).spraying(spray);
        let peer = UdpSocket::bind("127.0.0.1:0").unwrap();
        let mut header = [0; 56];
        (header[11], header[12], header[13]) = (0x10, 0xeb, 0x11);
        for len in [100, 5_000] {
            let headers = header.repeat(3);
            let payload = vec![0; 3 * len];
            let burst = Burst {
                headers: &headers,
                header_len: 56,
                payload: &[&payload],
                segment: len,
                ..Burst::single(peer.local_addr().unwrap(), &[])
            };
            half.send(&burst).unwrap();
            half.flush().unwrap();
            assert!(half.has_room() && !half.has_pending());
            for _ in 0..3 {
                let (received, from) = peer.recv_from(&mut [0; 10_000]).unwrap();
                assert_eq!((received, from), (56 + len, address));
            }
        }
        assert_eq!((shared.counters.sprayed_sends(), shared.counters.packets_sent()), (0, 6));
        assert_eq!(shared.counters.packets_refused(), 0);
    }
}
