//! Packets for endpoints of this host that have ended.
//!
//! A server of the kernel module asks the client of a response for its acknowledgment every
//! millisecond, without end (HM `homa_timer.c` `homa_timer_check_rpc`). If the client's process was
//! killed, no socket has its port, and as long as any other socket of the protocol is open, the
//! system does not answer either. One process of the host therefore answers in place of those that
//! ended. The port decides and not the id, whose range passes from process to process. Rationale:
//! answers by every endpoint would wake all processes of the host; a million NEED_ACKs came in 40
//! seconds.
//!
//! # Invariants
//!
//! - **ENDED-1** At most one socket of a host and protocol receives these packets: it holds a name
//!   ([`crate::raw::abstract_name`]).
//! - **ENDED-2** No packet is passed on whose port an endpoint of the host has at any moment between its arrival and the
//!   check, or had when the packet was sent and has still. Whether the port is reserved is checked after the packet has
//!   been received; a call has the port of its endpoint from its first packet to its end, and an endpoint holds its port for
//!   as long as it lives.

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
use crate::shared::Shared;
use crate::transmit::{SocketTransmit, TransmitOptions};

/// Bytes of the socket's buffers. Chosen by us: some hundred packets, which are repeated if they are dropped.
const BUFFER: usize = 1 << 17;

/// Packets that are answered at a time.
const BATCH: usize = 64;

/// The packets for ports of this host that no endpoint has, as far as they ask for acknowledgments.
#[derive(Debug)]
pub struct EndedPorts {
    family: Family,
    transmit: SocketTransmit,
    receive: SocketReceive,
}

impl EndedPorts {
    /// Opens a socket for the protocol of `address`, on all addresses of the host; `None` if another endpoint of the host
    /// has done so.
    ///
    /// # Errors
    ///
    /// [`RawOpenError`] if the process lacks CAP_NET_RAW, or the system refuses something else.
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
            // The answer must come from the address that was asked.
            set_option(socket.as_fd(), libc::IPPROTO_IPV6, libc::IPV6_RECVPKTINFO, 1)
                .map_err(|error| failed("receive destinations on")(error.into()))?;
        }
        let carrier = Carrier::Ip { port: None, any: true };
        let options = TransmitOptions { segments: 1, priorities: false, chooses_source: true };
        let shared = Arc::new(Shared::new(socket, family, carrier).owning(name));
        let limit = PacketLimit::new(crate::mtu::MINIMUM, carrier);
        let transmit = SocketTransmit::new(shared.clone(), limit, options);
        Ok(Some(Self { family, transmit, receive: SocketReceive::of_short_packets(shared) }))
    }

    /// Passes each packet that has arrived for a port that no endpoint has to `answer`, and sends what it returns to the
    /// sender, from the address that the packet was sent to.
    ///
    /// # Errors
    ///
    /// The system's; the socket is of no use then.
    pub fn answer<A: AsRef<[u8]>>(
        &mut self,
        mut answer: impl FnMut(&[u8]) -> Option<A>,
    ) -> io::Result<()> {
        while self.receive.receive(BATCH)? > 0 {
            let mut arrivals = Vec::with_capacity(BATCH);
            self.receive.drain(&mut |Arrival { from, to, packet, .. }| {
                arrivals.push((from, to, packet.to_vec()));
            });
            // ENDED-2: each port is checked once for all packets that have been received before.
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
