//! An opened driver, and everything that a test does with it.

use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::sync::Arc;

use apus_driver::{Arrival, Burst, Driver, NetworkError, ReceiveHalf, TransmitHalf};
use apus_socket::{Raw, RawConfig, SocketCounters};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::namespace::Namespace;

pub(crate) struct Host {
    pub(crate) transmit: Box<dyn TransmitHalf>,
    pub(crate) receive: Box<dyn ReceiveHalf>,
    pub(crate) address: SocketAddr,
    pub(crate) counters: Arc<SocketCounters>,
}

/// What has arrived.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Got {
    pub(crate) from: SocketAddr,
    pub(crate) packet: Vec<u8>,
}

/// A packet of Homa's shape: ports, and `len` bytes in all.
pub(crate) fn packet(sport: u16, dport: u16, len: usize) -> Vec<u8> {
    let mut packet = [sport.to_be_bytes(), dport.to_be_bytes()].concat();
    packet.resize(len, 0x5a);
    packet
}

impl Host {
    pub(crate) fn open(namespace: &Namespace, bind: &str) -> Self {
        let config = RawConfig::bound_to(bind.parse().unwrap());
        let driver = namespace.inside(|| Raw::open(&config).unwrap());
        let (address, counters) = (driver.local_addr(), driver.counters());
        let (transmit, receive) = Box::new(driver).split();
        Self { transmit, receive, address, counters }
    }

    /// Sends one packet of `len` bytes to the port of `to`.
    pub(crate) fn send(&mut self, to: SocketAddr, class: u8, len: usize) {
        let packet = packet(self.address.port(), to.port(), len);
        self.transmit.send(&Burst { traffic_class: class, ..Burst::single(to, &packet) }).unwrap();
        self.transmit.flush().unwrap();
    }

    /// Takes what is there.
    pub(crate) fn take(&mut self) -> Vec<Got> {
        let mut got = Vec::new();
        while self.receive.receive(64).unwrap() > 0 {
            self.receive.drain(&mut |Arrival { from, packet, .. }| {
                got.push(Got { from, packet: packet.to_vec() });
            });
        }
        got
    }

    /// Waits for packets, and takes what is there.
    pub(crate) fn get(&mut self) -> Vec<Got> {
        self.wait();
        self.take()
    }

    /// Reports that are there.
    pub(crate) fn troubles(&mut self) -> Vec<(SocketAddr, NetworkError, Vec<u8>)> {
        let mut troubles = Vec::new();
        self.receive.reports(&mut |report| {
            troubles.push((report.peer, report.error, report.packet.to_vec()));
        });
        troubles
    }

    /// Waits for reports.
    pub(crate) fn await_troubles(&mut self) -> Vec<(SocketAddr, NetworkError, Vec<u8>)> {
        loop {
            self.wait();
            assert_eq!(self.take(), [], "ICMP errors are no packets");
            let troubles = self.troubles();
            if !troubles.is_empty() {
                return troubles;
            }
        }
    }

    pub(crate) fn wait(&self) {
        // A watchdog, not a limit.
        assert!(self.is_ready(Timespec { tv_sec: 60, tv_nsec: 0 }), "something hangs");
    }

    /// Whether there is something to wake up for.
    pub(crate) fn is_readable(&self) -> bool {
        self.is_ready(Timespec { tv_sec: 0, tv_nsec: 0 })
    }

    fn is_ready(&self, timeout: Timespec) -> bool {
        let fd = self.receive.as_fd();
        poll(&mut [PollFd::new(&fd, PollFlags::IN)], Some(&timeout)).unwrap() > 0
    }
}
