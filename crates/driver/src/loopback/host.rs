//! What is a host of the loopback network?

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use super::inbox::{Inbox, Letter, Refusal};
use super::{LoopbackNetwork, Way};
use crate::{
    Arrival, Burst, Capabilities, Driver, Ecn, NetworkError, NetworkReport, ReceiveHalf,
    TransmitHalf,
};

/// A host of a [`LoopbackNetwork`]. When the host, or after [`Driver::split`] its receiving half, is dropped,
/// its port is closed.
#[derive(Debug)]
pub struct LoopbackHost {
    transmit: Sender,
    receive: Receiver,
}

impl LoopbackHost {
    pub(super) fn new(network: LoopbackNetwork, address: SocketAddr, inbox: Arc<Inbox>) -> Self {
        let transmit =
            Sender { network: network.clone(), address, inbox: inbox.clone(), held: Vec::new() };
        let receive = Receiver { network, address, inbox, taken: VecDeque::new(), full: false };
        Self { transmit, receive }
    }
}

impl Driver for LoopbackHost {
    fn capabilities(&self) -> Capabilities {
        let config = self.transmit.network.config();
        Capabilities {
            segments_per_send: 1,
            receive_offload: false,
            priorities: true,
            ecn: true,
            reports: true,
            busy_poll_usecs: 0,
            receive_buffer: config.queue.saturating_mul(config.packet_limit),
            link_mbps: None,
        }
    }

    fn local_addr(&self) -> SocketAddr {
        self.transmit.address
    }

    fn split(self: Box<Self>) -> (Box<dyn TransmitHalf>, Box<dyn ReceiveHalf>) {
        (Box::new(self.transmit), Box::new(self.receive))
    }
}

/// The half that sends. It holds back everything until `flush`, so that an engine that forgets to
/// flush is found out.
#[derive(Debug)]
struct Sender {
    network: LoopbackNetwork,
    address: SocketAddr,
    /// The own inbox, for reports.
    inbox: Arc<Inbox>,
    held: Vec<(SocketAddr, Letter)>,
}

impl Sender {
    fn deliver(&self, to: SocketAddr, letter: Letter) {
        let trouble = match self.network.way(to) {
            _ if letter.bytes.len() > self.network.config().packet_limit => NetworkError::TooBig,
            Way::Closed => NetworkError::PortClosed,
            Way::None => NetworkError::HostUnreachable,
            Way::Open(inbox) => {
                if !inbox.put(letter) {
                    self.network.count_drop();
                }
                return;
            }
        };
        self.inbox.put_refusal(Refusal { peer: to, trouble, packet: letter.bytes });
    }
}

impl TransmitHalf for Sender {
    fn send(&mut self, burst: &Burst<'_>) -> io::Result<()> {
        debug_assert!(burst.is_consistent(), "{burst:?}");
        let ecn = Ecn::from_traffic_class(burst.traffic_class);
        self.held.extend(
            burst.each().map(|packet| {
                (burst.to, Letter { from: self.address, ecn, bytes: packet.to_vec() })
            }),
        );
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        for (to, letter) in std::mem::take(&mut self.held) {
            self.deliver(to, letter);
        }
        Ok(())
    }

    fn has_room(&self) -> bool {
        true
    }

    fn has_pending(&self) -> bool {
        !self.held.is_empty()
    }

    fn packet_limit(&mut self, _to: SocketAddr) -> usize {
        self.network.config().packet_limit
    }
}

/// The half that receives.
#[derive(Debug)]
struct Receiver {
    network: LoopbackNetwork,
    address: SocketAddr,
    inbox: Arc<Inbox>,
    /// Packets for the next `drain`.
    taken: VecDeque<Letter>,
    /// Whether these were as many as were asked for.
    full: bool,
}

impl ReceiveHalf for Receiver {
    fn receive(&mut self, limit: usize) -> io::Result<usize> {
        self.taken.clear();
        self.inbox.take(limit, &mut self.taken);
        self.full = self.taken.len() >= limit;
        Ok(self.taken.len())
    }

    fn may_have_more(&self) -> bool {
        self.full
    }

    fn drain(&mut self, sink: &mut dyn FnMut(Arrival<'_>)) {
        for letter in self.taken.drain(..) {
            sink(Arrival { from: letter.from, to: None, ecn: letter.ecn, packet: &letter.bytes });
        }
    }

    fn reports(&mut self, sink: &mut dyn FnMut(NetworkReport<'_>)) {
        for refusal in self.inbox.take_refusals() {
            let Refusal { peer, trouble, packet } = refusal;
            sink(NetworkReport { peer, trouble, packet: &packet });
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
        self.network.close(self.address);
    }
}
