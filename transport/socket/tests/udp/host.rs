//! Test host: a driver with the operations that the tests need.

use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::sync::Arc;

use apus_driver::{Driver, NetworkError, ReceiveHalf, TransmitHalf};
use apus_socket::{SocketCounters, Udp, UdpConfig};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// Any free port of the loopback device.
pub(crate) const LOOPBACK: &str = "127.0.0.1:0";

pub(crate) fn bound_to(bind: &str) -> UdpConfig {
    UdpConfig::bound_to(bind.parse().unwrap())
}

pub(crate) struct Host {
    pub(crate) transmit: Box<dyn TransmitHalf>,
    pub(crate) receive: Box<dyn ReceiveHalf>,
    pub(crate) address: SocketAddr,
    pub(crate) counters: Arc<SocketCounters>,
}

impl Host {
    pub(crate) fn open(config: &UdpConfig) -> Self {
        Self::of(Udp::open(config).unwrap())
    }

    pub(crate) fn of(driver: Udp) -> Self {
        let (address, counters) = (driver.local_addr(), driver.counters());
        let (transmit, receive) = Box::new(driver).split();
        Self { transmit, receive, address, counters }
    }

    pub(crate) fn flush(&mut self) {
        self.transmit.flush().unwrap();
    }

    /// Receives all available packets, one at a time.
    pub(crate) fn receive_all(&mut self, sink: &mut dyn FnMut(&[u8])) {
        while self.receive.receive(64).unwrap() > 0 {
            self.receive.drain(&mut |arrival| sink(arrival.packet));
        }
    }

    /// Receives packets until at least `count` have arrived.
    pub(crate) fn collect(&mut self, count: usize, sink: &mut dyn FnMut(&[u8])) {
        let mut received = 0;
        loop {
            self.receive_all(&mut |packet| {
                received += 1;
                sink(packet);
            });
            if received >= count {
                return;
            }
            self.wait(PollFlags::IN);
        }
    }

    /// Returns the lengths of the next `count` packets, and of all packets received with them.
    pub(crate) fn lengths(&mut self, count: usize) -> Vec<usize> {
        let mut lengths = Vec::new();
        self.collect(count, &mut |packet| lengths.push(packet.len()));
        lengths
    }

    pub(crate) fn reports(&mut self) -> Vec<(SocketAddr, NetworkError)> {
        let mut reports = Vec::new();
        self.receive.reports(&mut |report| reports.push((report.peer, report.error)));
        reports
    }

    /// Waits on the descriptor.
    pub(crate) fn wait(&self, events: PollFlags) {
        // A watchdog, not a limit.
        let timeout = Timespec { tv_sec: 60, tv_nsec: 0 };
        assert!(self.is_ready(events, timeout), "something hangs");
    }

    /// Returns whether the descriptor is readable now.
    pub(crate) fn is_readable(&self) -> bool {
        self.is_ready(PollFlags::IN, Timespec { tv_sec: 0, tv_nsec: 0 })
    }

    fn is_ready(&self, events: PollFlags, timeout: Timespec) -> bool {
        let fd = self.receive.as_fd();
        poll(&mut [PollFd::new(&fd, events)], Some(&timeout)).unwrap() > 0
    }
}
