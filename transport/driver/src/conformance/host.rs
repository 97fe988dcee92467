//! Test host: a driver with the operations that the tests need.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Instant;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::{Fixture, WATCHDOG};
use crate::{Burst, Capabilities, NetworkError, ReceiveHalf, TransmitHalf};

/// Length of the headers that the suite sends.
pub(super) const HEADER_LEN: usize = 4;

/// An opened driver.
pub(super) struct Host {
    pub(super) address: SocketAddr,
    pub(super) capabilities: Capabilities,
    pub(super) transmit: Box<dyn TransmitHalf>,
    pub(super) receive: Box<dyn ReceiveHalf>,
    /// Reports received so far.
    pub(super) reports: Vec<ReceivedReport>,
}

/// A report, copied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ReceivedReport {
    pub(super) peer: SocketAddr,
    pub(super) error: NetworkError,
    pub(super) packet: Vec<u8>,
}

/// A received packet, copied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ReceivedPacket {
    pub(super) from: SocketAddr,
    pub(super) to: Option<IpAddr>,
    pub(super) bytes: Vec<u8>,
}

impl Host {
    pub(super) fn open(fixture: &dyn Fixture) -> Self {
        let driver = fixture.open();
        let address = fixture.address_of(&*driver);
        let capabilities = driver.capabilities();
        let (transmit, receive) = driver.split();
        Self { address, capabilities, transmit, receive, reports: Vec::new() }
    }

    /// Returns the bytes that can queue at this host without an overflow: a quarter of the buffer,
    /// because systems also count their own structures.
    pub(super) fn budget(&self) -> usize {
        self.capabilities.receive_buffer / 4
    }

    /// Sends one packet.
    pub(super) fn send(&mut self, to: SocketAddr, packet: &[u8]) {
        self.send_class(to, 0, packet);
    }

    /// Sends one packet with a traffic class.
    pub(super) fn send_class(&mut self, to: SocketAddr, traffic_class: u8, packet: &[u8]) {
        let header_len = packet.len().min(HEADER_LEN);
        let (headers, payload) = packet.split_at(header_len);
        let (payload, segment) = (&[payload][..], payload.len());
        let burst = Burst {
            traffic_class,
            headers,
            header_len,
            payload,
            segment,
            ..Burst::single(to, &[])
        };
        self.send_burst(&burst);
    }

    /// Sends packets of equal size; the last one may be shorter. The payload is cut into slices of
    /// the given lengths, repeatedly.
    pub(super) fn send_packets(&mut self, to: SocketAddr, packets: &[Vec<u8>], slices: &[usize]) {
        let headers: Vec<u8> =
            packets.iter().flat_map(|packet| &packet[..HEADER_LEN]).copied().collect();
        let payload: Vec<u8> =
            packets.iter().flat_map(|packet| &packet[HEADER_LEN..]).copied().collect();
        let mut rest = &payload[..];
        let mut cut = Vec::new();
        for len in slices.iter().cycle() {
            let (slice, behind) = rest.split_at(rest.len().min(*len));
            cut.push(slice);
            rest = behind;
            if rest.is_empty() {
                break;
            }
        }
        let segment = packets[0].len() - HEADER_LEN;
        let (headers, payload) = (&headers[..], &cut[..]);
        let header_len = HEADER_LEN;
        let burst = Burst { headers, header_len, payload, segment, ..Burst::single(to, &[]) };
        self.send_burst(&burst);
    }

    /// Sends a burst as soon as there is room.
    pub(super) fn send_burst(&mut self, burst: &Burst<'_>) {
        assert!(burst.is_consistent(), "a bug of the suite: {burst:?}");
        self.make_room();
        self.transmit.send(burst).expect("DRIVER-4: send fails only if the driver is broken");
    }

    /// Sends all pending packets.
    pub(super) fn flush(&mut self) {
        self.transmit.flush().expect("DRIVER-4: flush fails only if the driver is broken");
        self.make_room();
        assert!(!self.transmit.has_pending(), "DRIVER-5: packets are pending despite room");
    }

    fn make_room(&mut self) {
        while !self.transmit.has_room() {
            wait(&*self.receive, PollFlags::OUT);
            self.transmit.flush().expect("DRIVER-4: flush fails only if the driver is broken");
        }
    }

    /// Waits for `count` packets and asserts that no more arrive.
    pub(super) fn collect(&mut self, count: usize) -> Vec<ReceivedPacket> {
        let mut packets = Vec::new();
        loop {
            self.receive_all(64, &mut packets);
            if packets.len() >= count {
                break;
            }
            wait(&*self.receive, PollFlags::IN);
        }
        assert_eq!(packets.len(), count, "more packets than were sent");
        packets
    }

    /// Receives all available packets, up to `limit` per call, and the reports. Afterwards a
    /// thread may wait (DRIVER-6). Returns the largest number of packets of one call.
    pub(super) fn receive_all(&mut self, limit: usize, packets: &mut Vec<ReceivedPacket>) -> usize {
        let mut most = 0;
        self.receive_reports();
        loop {
            let announced =
                self.receive.receive(limit).expect("DRIVER-4: ICMP errors are not errors");
            if announced == 0 {
                assert!(!self.receive.may_have_more(), "no packet is left");
                return most;
            }
            let before = packets.len();
            self.receive.drain(&mut |arrival| {
                let bytes = arrival.packet.to_vec();
                packets.push(ReceivedPacket { from: arrival.from, to: arrival.to, bytes });
            });
            assert_eq!(packets.len() - before, announced, "receive and drain disagree");
            most = most.max(announced);
        }
    }

    pub(super) fn receive_reports(&mut self) {
        self.receive.reports(&mut |report| {
            let packet = report.packet.to_vec();
            self.reports.push(ReceivedReport { peer: report.peer, error: report.error, packet });
        });
    }

    /// Returns whether the descriptor is readable now.
    pub(super) fn is_readable(&self) -> bool {
        is_ready(&*self.receive, PollFlags::IN, Timespec { tv_sec: 0, tv_nsec: 0 })
    }

    /// Waits a moment for a report. It may be lost; the caller then tries again.
    pub(super) fn linger(&self) {
        is_ready(&*self.receive, PollFlags::IN, Timespec { tv_sec: 0, tv_nsec: 20_000_000 });
    }

    pub(super) fn wait_readable(&self) {
        wait(&*self.receive, PollFlags::IN);
    }
}

fn wait(receive: &dyn ReceiveHalf, events: PollFlags) {
    let secs = i64::try_from(WATCHDOG.as_secs()).expect("a watchdog of seconds");
    let timeout = Timespec { tv_sec: secs, tv_nsec: 0 };
    assert!(is_ready(receive, events, timeout), "no event within {WATCHDOG:?}");
}

fn is_ready(receive: &dyn ReceiveHalf, events: PollFlags, timeout: Timespec) -> bool {
    let began = Instant::now();
    loop {
        let fd = receive.as_fd();
        match poll(&mut [PollFd::new(&fd, events)], Some(&timeout)) {
            Ok(ready) => return ready > 0,
            Err(error) if io::Error::from(error).kind() == io::ErrorKind::Interrupted => {
                assert!(began.elapsed() <= WATCHDOG, "interrupted again and again");
            }
            Err(error) => panic!("poll: {error}"),
        }
    }
}

/// Returns bytes that differ between packets and between positions.
pub(super) fn pattern(len: usize, salt: usize) -> Vec<u8> {
    let mut state = u32::try_from(salt % 0xffff_fffb).expect("below 2^32").wrapping_add(1);
    std::iter::repeat_with(|| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state.to_be_bytes()[0]
    })
    .take(len)
    .collect()
}

/// Asserts that exactly these packets were received, in any order (CONFORMANCE-1).
pub(super) fn assert_same(sent: &[Vec<u8>], got: &[ReceivedPacket]) {
    let mut balance = BTreeMap::<&[u8], isize>::new();
    for packet in sent {
        *balance.entry(packet).or_default() += 1;
    }
    for packet in got {
        *balance.entry(&packet.bytes).or_default() -= 1;
    }
    let wrong: Vec<String> = balance
        .iter()
        .filter(|(_, count)| **count != 0)
        .map(|(bytes, count)| {
            let what = if *count > 0 { "missing" } else { "never sent" };
            let start = &bytes[..bytes.len().min(8)];
            format!("{what}: {} bytes beginning with {start:02x?}", bytes.len())
        })
        .collect();
    assert!(
        wrong.is_empty(),
        "DRIVER-2: {} packets differ: {:#?}",
        wrong.len(),
        &wrong[..wrong.len().min(8)]
    );
}
