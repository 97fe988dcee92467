//! A gate in front of a host of the loopback network: while it is closed, packets wait in the
//! network.
//!
//! A test that asserts what an endpoint has not yet received closes the gate first. No background
//! poller and no other thread can be faster then.

use apus_driver::loopback::LoopbackHost;
use apus_driver::{
    Arrival, Capabilities, Driver, DriverCounters, NetworkReport, ReceiveHalf, TransmitHalf,
};
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, Mutex};

/// Opens and closes the gate, which is open at first.
#[derive(Clone, Default)]
pub(crate) struct Gate(Arc<Mutex<bool>>);

impl Gate {
    /// Returns a driver that receives only while the gate is open.
    pub(crate) fn in_front_of(&self, host: LoopbackHost) -> Box<dyn Driver> {
        Box::new(Gated { host, gate: self.clone() })
    }

    /// Nothing is received after this returns.
    pub(crate) fn close(&self) {
        *self.0.lock().unwrap() = true;
    }

    pub(crate) fn open(&self) {
        *self.0.lock().unwrap() = false;
    }
}

struct Gated {
    host: LoopbackHost,
    gate: Gate,
}

impl Driver for Gated {
    fn capabilities(&self) -> Capabilities {
        self.host.capabilities()
    }

    fn local_addr(&self) -> SocketAddr {
        self.host.local_addr()
    }

    fn counters(&self) -> Option<Arc<dyn DriverCounters>> {
        self.host.counters()
    }

    fn split(self: Box<Self>) -> (Box<dyn TransmitHalf>, Box<dyn ReceiveHalf>) {
        let Self { host, gate } = *self;
        let (transmit, receive) = Box::new(host).split();
        (transmit, Box::new(Receive { inner: receive, gate }))
    }
}

struct Receive {
    inner: Box<dyn ReceiveHalf>,
    gate: Gate,
}

impl ReceiveHalf for Receive {
    fn receive(&mut self, limit: usize) -> io::Result<usize> {
        // Locked until the packets have been received: `close` waits for that.
        let closed = self.gate.0.lock().unwrap();
        if *closed { Ok(0) } else { self.inner.receive(limit) }
    }

    fn may_have_more(&self) -> bool {
        !*self.gate.0.lock().unwrap() && self.inner.may_have_more()
    }

    fn drain(&mut self, sink: &mut dyn FnMut(Arrival<'_>)) {
        self.inner.drain(sink);
    }

    fn reports(&mut self, sink: &mut dyn FnMut(NetworkReport<'_>)) {
        self.inner.reports(sink);
    }
}

impl AsFd for Receive {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.inner.as_fd()
    }
}
