//! Host of the loopback network.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use super::host_table::{HostTable, Route};
use super::inbox::{Inbox, Packet, Report};
use crate::{
    Arrival, Burst, Capabilities, Driver, Ecn, NetworkError, NetworkReport, ReceiveHalf,
    TransmitHalf,
};

/// A host of a [`LoopbackNetwork`](super::LoopbackNetwork). When the host is dropped, or after
/// [`Driver::split`] its receiving half, its port is closed.
#[derive(Debug)]
pub struct LoopbackHost {
    transmit: Sender,
    receive: Receiver,
}

impl LoopbackHost {
    pub(super) fn new(hosts: Arc<HostTable>, address: SocketAddr, inbox: Arc<Inbox>) -> Self {
        let transmit =
            Sender { hosts: hosts.clone(), address, inbox: inbox.clone(), pending: Vec::new() };
        let receive = Receiver { hosts, address, inbox, received: VecDeque::new(), full: false };
        Self { transmit, receive }
    }
}

impl Driver for LoopbackHost {
    fn capabilities(&self) -> Capabilities {
        let config = self.transmit.hosts.config();
        Capabilities {
            segments_per_send: 1,
            receive_offload: false,
            priorities: true,
            ecn: true,
            reports: true,
            busy_poll_usecs: 0,
            receive_buffer: config.queue.saturating_mul(config.packet_limit),
            link_mbps: None,
            spray_ports: 0,
        }
    }

    fn local_addr(&self) -> SocketAddr {
        self.transmit.address
    }

    fn split(self: Box<Self>) -> (Box<dyn TransmitHalf>, Box<dyn ReceiveHalf>) {
        (Box::new(self.transmit), Box::new(self.receive))
    }
}

/// The transmitting half. It holds all packets until `flush`, so that an engine that does not
/// flush is detected.
#[derive(Debug)]
struct Sender {
    hosts: Arc<HostTable>,
    address: SocketAddr,
    /// The host's own inbox, for reports.
    inbox: Arc<Inbox>,
    pending: Vec<(SocketAddr, Packet)>,
}

impl Sender {
    fn deliver(&self, to: SocketAddr, packet: Packet) {
        let error = match self.hosts.route(to) {
            _ if packet.bytes.len() > self.hosts.config().packet_limit => NetworkError::TooBig,
            Route::PortClosed => NetworkError::PortClosed,
            Route::Unreachable => NetworkError::HostUnreachable,
            Route::Open(inbox) => {
                if !inbox.put(packet) {
                    self.hosts.count_drop();
                }
                return;
            }
        };
        self.inbox.put_report(Report { peer: to, error, packet: packet.bytes });
    }
}

impl TransmitHalf for Sender {
    fn send(&mut self, burst: &Burst<'_>) -> io::Result<()> {
        debug_assert!(burst.is_consistent(), "{burst:?}");
        let ecn = Ecn::from_traffic_class(burst.traffic_class);
        self.pending.extend(
            burst.each().map(|packet| {
                (burst.to, Packet { from: self.address, ecn, bytes: packet.to_vec() })
            }),
        );
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        for (to, packet) in std::mem::take(&mut self.pending) {
            self.deliver(to, packet);
        }
        Ok(())
    }

    fn has_room(&self) -> bool {
        true
    }

    fn has_pending(&self) -> bool {
        !self.pending.is_empty()
    }

    fn packet_limit(&mut self, _to: SocketAddr) -> usize {
        self.hosts.config().packet_limit
    }
}

/// The receiving half.
#[derive(Debug)]
struct Receiver {
    hosts: Arc<HostTable>,
    address: SocketAddr,
    inbox: Arc<Inbox>,
    /// Packets for the next `drain`.
    received: VecDeque<Packet>,
    /// Whether the last `receive` reached its limit.
    full: bool,
}

impl ReceiveHalf for Receiver {
    fn receive(&mut self, limit: usize) -> io::Result<usize> {
        self.received.clear();
        self.inbox.take(limit, &mut self.received);
        self.full = self.received.len() >= limit;
        Ok(self.received.len())
    }

    fn may_have_more(&self) -> bool {
        self.full
    }

    fn drain(&mut self, sink: &mut dyn FnMut(Arrival<'_>)) {
        for packet in self.received.drain(..) {
            sink(Arrival { from: packet.from, to: None, ecn: packet.ecn, packet: &packet.bytes });
        }
    }

    fn reports(&mut self, sink: &mut dyn FnMut(NetworkReport<'_>)) {
        for Report { peer, error, packet } in self.inbox.take_reports() {
            sink(NetworkReport { peer, error, packet: &packet });
        }
    }
}

impl AsFd for Receiver {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.inbox.as_fd()
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.hosts.close(self.address);
    }
}
