//! Ports for the suite's packets, which consist of arbitrary bytes.
//!
//! Each packet gets a prefix of four bytes, the start of Homa's header, which is hidden from the
//! suite.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};

use apus_driver::{Arrival, Burst, Capabilities, Driver, NetworkReport, ReceiveHalf, TransmitHalf};

/// Bytes of both ports.
const PORTS: usize = 4;

/// A driver whose packets have a prefix with their ports.
pub(crate) struct PortPrefixed<D>(pub(crate) D);

struct Sender {
    inner: Box<dyn TransmitHalf>,
    port: u16,
}

struct Receiver(Box<dyn ReceiveHalf>);

impl<D: Driver> Driver for PortPrefixed<D> {
    fn capabilities(&self) -> Capabilities {
        self.0.capabilities()
    }

    fn local_addr(&self) -> SocketAddr {
        self.0.local_addr()
    }

    fn split(self: Box<Self>) -> (Box<dyn TransmitHalf>, Box<dyn ReceiveHalf>) {
        let port = self.0.local_addr().port();
        let (inner, receive) = Box::new(self.0).split();
        (Box::new(Sender { inner, port }), Box::new(Receiver(receive)))
    }
}

impl TransmitHalf for Sender {
    fn send(&mut self, burst: &Burst<'_>) -> io::Result<()> {
        let mut headers = Vec::new();
        for header in burst.headers.chunks(burst.header_len) {
            headers.extend(self.port.to_be_bytes());
            headers.extend(burst.to.port().to_be_bytes());
            headers.extend(header);
        }
        let header_len = burst.header_len + PORTS;
        self.inner.send(&Burst { headers: &headers, header_len, ..*burst })
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }

    fn has_room(&self) -> bool {
        self.inner.has_room()
    }

    fn has_pending(&self) -> bool {
        self.inner.has_pending()
    }

    fn packet_limit(&mut self, to: SocketAddr) -> usize {
        self.inner.packet_limit(to) - PORTS
    }
}

impl ReceiveHalf for Receiver {
    fn receive(&mut self, limit: usize) -> io::Result<usize> {
        self.0.receive(limit)
    }

    fn may_have_more(&self) -> bool {
        self.0.may_have_more()
    }

    fn drain(&mut self, sink: &mut dyn FnMut(Arrival<'_>)) {
        self.0.drain(&mut |arrival| sink(Arrival { packet: &arrival.packet[PORTS..], ..arrival }));
    }

    fn reports(&mut self, sink: &mut dyn FnMut(NetworkReport<'_>)) {
        self.0.reports(&mut |report| {
            let packet = report.packet.get(PORTS..).unwrap_or_default();
            sink(NetworkReport { packet, ..report });
        });
    }
}

impl AsFd for Receiver {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
