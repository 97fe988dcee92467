//! Packets for ended endpoints of this host.
//!
//! A server of the kernel module requests the acknowledgment of a response from its client every
//! millisecond, forever (HM `homa_timer.c` `homa_timer_check_rpc`). If the client's process was
//! killed, no socket has its port, and while any other socket of the protocol is open, the system
//! does not answer either. Therefore one process of the host answers in place of the ended
//! endpoints. The port decides, not the id, whose range passes from process to process. Rationale:
//! answers by every endpoint would wake all processes of the host; a million NEED_ACKs arrived in
//! 40 seconds.
//!
//! # Invariants
//!
//! - **ENDED-1** At most one socket per host and protocol receives these packets: it holds a name
//!   ([`crate::raw::abstract_name`]).
//! - **ENDED-2** A packet is never passed on if an endpoint of the host has its port at any moment
//!   between its arrival and the check, or has had it since the packet was sent. The check follows
//!   the receive; a call uses the port of its endpoint from its first packet to its end, and an
//!   endpoint holds its port while it lives.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use apus_driver::{Arrival, Burst, ReceiveHalf, TransmitHalf};

use crate::address::{Family, canonical};
use crate::carrier::{Carrier, ports};
use crate::kernel::set_option;
use crate::mtu::PacketLimit;
use crate::open::{forbid_fragments, size_buffers};
use crate::raw::abstract_name::AbstractName;
use crate::raw::error::RawOpenError;
use crate::raw::filter;
use crate::raw::port::{Port, protocol};
use crate::raw::socket::{new_socket, not_opened, system};
use crate::receive::SocketReceive;
use crate::shared::SharedSocket;
use crate::transmit::{SocketTransmit, TransmitOptions};

/// Bytes of the socket's buffers. Chosen by us: a few hundred packets; dropped packets are
/// repeated.
const BUFFER: usize = 1 << 17;

/// Packets answered at a time.
const BATCH: usize = 64;

/// Receives requests for acknowledgments to ports of this host that no endpoint has.
#[derive(Debug)]
pub struct EndedPorts {
    family: Family,
    transmit: SocketTransmit,
    receive: SocketReceive,
}

impl EndedPorts {
    /// Opens a socket for the protocol of `address`, on all addresses of the host; `None` if
    /// another endpoint of the host has done so.
    ///
    /// # Errors
    ///
    /// [`RawOpenError`] if the process lacks CAP_NET_RAW, or another operation fails.
    pub fn open(address: SocketAddr) -> Result<Option<Self>, RawOpenError> {
        let family = Family::of(canonical(address));
        let all: IpAddr = match family {
            Family::V4 => Ipv4Addr::UNSPECIFIED.into(),
            Family::V6 => Ipv6Addr::UNSPECIFIED.into(),
        };
        let all = SocketAddr::new(all, 0);
        let failed = |operation| move |source| system(operation, all, source);
        let name = AbstractName::bind(&format!("{}/ended-ports", protocol(family)));
        let Some(name) = name.map_err(failed("reserve the ended ports of"))? else {
            return Ok(None);
        };
        let socket = new_socket(family).map_err(|error| not_opened(all, error))?;
        let program = filter::for_need_acks(family);
        socket.attach_filter(&program).map_err(failed("filter the packets for"))?;
        size_buffers(&socket, BUFFER, BUFFER);
        forbid_fragments(&socket, family).map_err(failed("forbid fragments on"))?;
        if family == Family::V6 {
            // The answer must leave from the packet's destination address.
            set_option(socket.as_fd(), libc::IPPROTO_IPV6, libc::IPV6_RECVPKTINFO, 1)
                .map_err(|error| failed("receive destinations on")(error.into()))?;
        }
        let carrier = Carrier::Ip { port: None, any: true };
        let options = TransmitOptions { segments: 1, priorities: false, chooses_source: true };
        let shared = Arc::new(SharedSocket::new(socket, family, carrier).owning(name));
        let limit = PacketLimit::new(crate::mtu::MINIMUM, carrier);
        let transmit = SocketTransmit::new(shared.clone(), limit, options);
        Ok(Some(Self { family, transmit, receive: SocketReceive::of_short_packets(shared) }))
    }

    /// Passes each received packet for an unused port to `answer`, and sends the returned packet to
    /// the sender, from the destination address of the request.
    ///
    /// # Errors
    ///
    /// The system's error; the socket is unusable then.
    pub fn answer<A: AsRef<[u8]>>(
        &mut self,
        mut answer: impl FnMut(&[u8]) -> Option<A>,
    ) -> io::Result<()> {
        while self.receive.receive(BATCH)? > 0 {
            let mut arrivals = Vec::with_capacity(BATCH);
            self.receive.drain(&mut |Arrival { from, to, packet, .. }| {
                arrivals.push((from, to, packet.to_vec()));
            });
            // ENDED-2: each port is checked once for all packets received before.
            let mut reserved = HashMap::new();
            for (from, to, packet) in arrivals {
                let Some((_, port)) = ports(&packet) else { continue };
                let family = self.family;
                if *reserved.entry(port).or_insert_with(|| Port::is_reserved(port, family)) {
                    continue;
                }
                if let Some(response) = answer(&packet) {
                    let burst = Burst::single(from, response.as_ref());
                    self.transmit.send(&Burst { from: to, ..burst })?;
                }
            }
            self.transmit.flush()?;
        }
        Ok(())
    }
}

impl AsFd for EndedPorts {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.receive.as_fd()
    }
}
