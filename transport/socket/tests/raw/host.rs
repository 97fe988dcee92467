//! Test host: a driver with the operations that the tests need.

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

/// A received packet.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ReceivedPacket {
    pub(crate) from: SocketAddr,
    pub(crate) packet: Vec<u8>,
}

/// Returns a packet of `len` bytes that starts with its ports, like Homa's packets.
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

    /// Receives all available packets.
    pub(crate) fn receive_all(&mut self) -> Vec<ReceivedPacket> {
        let mut got = Vec::new();
        while self.receive.receive(64).unwrap() > 0 {
            self.receive.drain(&mut |Arrival { from, packet, .. }| {
                got.push(ReceivedPacket { from, packet: packet.to_vec() });
            });
        }
        got
    }

    /// Waits for packets and receives all available ones.
    pub(crate) fn wait_and_receive(&mut self) -> Vec<ReceivedPacket> {
        self.wait();
        self.receive_all()
    }

    /// Returns the available reports.
    pub(crate) fn reports(&mut self) -> Vec<(SocketAddr, NetworkError, Vec<u8>)> {
        let mut reports = Vec::new();
        self.receive.reports(&mut |report| {
            reports.push((report.peer, report.error, report.packet.to_vec()));
        });
        reports
    }

    /// Waits for reports.
    pub(crate) fn wait_for_reports(&mut self) -> Vec<(SocketAddr, NetworkError, Vec<u8>)> {
        loop {
            self.wait();
            assert_eq!(self.receive_all(), [], "ICMP errors are no packets");
            let reports = self.reports();
            if !reports.is_empty() {
                return reports;
            }
        }
    }

    pub(crate) fn wait(&self) {
        // A watchdog, not a limit.
        assert!(self.is_ready(Timespec { tv_sec: 60, tv_nsec: 0 }), "something hangs");
    }

    /// Returns whether the descriptor is readable now.
    pub(crate) fn is_readable(&self) -> bool {
        self.is_ready(Timespec { tv_sec: 0, tv_nsec: 0 })
    }

    fn is_ready(&self, timeout: Timespec) -> bool {
        let fd = self.receive.as_fd();
        poll(&mut [PollFd::new(&fd, PollFlags::IN)], Some(&timeout)).unwrap() > 0
    }
}
